SELECT e.at * 1000 + e.seq % 1000 AS "id",
    {id} AS "email_id",
    w.word AS "status",
    COALESCE({json:e.data:message}, {json:e.data:reason}, {json:e.data:code}) AS "reason",
    {at:e.at} AS "created_at",
    m.tenant AS "tenant_id",
    m.uid AS "message_uid"
FROM {rows:event} e
JOIN {rows:message} m ON m.uid = e.uid
JOIN {rows:content} c ON c.uid = m.uid
JOIN {words} w ON w.code = e.kind AND w.mark = {sense}
