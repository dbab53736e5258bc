SELECT {id} AS "id",
    l.account AS "account_id",
    l.priority AS "priority",
    {payload} AS "payload",
    l.batch AS "batch_code",
    {at:m.created_at} AS "created_at",
    {at:m.updated_at} AS "updated_at",
    {seconds:CASE WHEN m.status = 3 THEN COALESCE(m.due_at, (SELECT p.due_at FROM {preparation} p WHERE p.uid = m.uid)) END} AS "deferred_ts",
    {seconds:m.sent_at} AS "sent_ts",
    {seconds:CASE WHEN m.status IN ({unsent}) THEN COALESCE(m.failed_at, m.updated_at) END} AS "error_ts",
    CASE WHEN m.status IN ({unsent}) THEN {reason} END AS "error",
    {seconds:CASE WHEN {told} = 2 THEN (SELECT MAX(n.settled_at) FROM {notification} n WHERE n.uid = m.uid) END} AS "reported_ts",
    {json:{bounce}:type} AS "bounce_type",
    {json:{bounce}:code} AS "bounce_code",
    {json:{bounce}:reason} AS "bounce_reason",
    {at:(SELECT MAX(e.at) FROM {event} e WHERE e.uid = m.uid AND e.kind = 19)} AS "bounce_ts",
    {seconds:(SELECT MAX(n.settled_at) FROM {notification} n WHERE n.uid = m.uid AND n.kind = 19 AND n.state = 3)} AS "bounce_reported_ts",
    {at:(SELECT MIN(e.at) FROM {event} e WHERE e.uid = m.uid AND e.kind = 22)} AS "pec_rda_ts",
    {at:(SELECT MAX(e.at) FROM {event} e WHERE e.uid = m.uid AND e.kind = 24)} AS "pec_rdc_ts",
    (SELECT COALESCE({json:e.data:message}, {json:e.data:reason}, {json:e.data:kind}, 'no receipt in time') FROM {event} e WHERE e.uid = m.uid AND e.kind IN (25, 26) ORDER BY e.seq DESC LIMIT 1) AS "pec_error",
    {at:(SELECT MAX(e.at) FROM {event} e WHERE e.uid = m.uid AND e.kind IN (25, 26))} AS "pec_error_ts",
    w.word AS "status",
    m.tenant AS "tenant_id",
    m.uid AS "message_uid"
FROM {rows:content} c
JOIN {rows:message} m ON m.uid = c.uid
JOIN {rows:lane} l ON l.id = m.lane
JOIN {words} w ON {same:w.code:m.status} AND w.wait - {wait} = 0 AND w.mark - {standing} = 0
