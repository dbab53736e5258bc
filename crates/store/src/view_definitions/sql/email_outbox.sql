SELECT {id} AS "outboxId",
    m.tenant AS "companyId",
    {uuid:c.recipient_id} AS "recipientId",
    {first_recipient} AS "to",
    {subject} AS "subject",
    {html} AS "html",
    w.word AS "status",
    m.attempt AS "attempts",
    {reason} AS "lastError",
    c.request_id AS "requestId",
    c.external_id AS "externalId",
    {at:m.created_at} AS "createdAt",
    {at:CASE WHEN m.status IN ({ended}) THEN COALESCE(m.sent_at, m.failed_at, m.updated_at) END} AS "processedAt",
    m.uid AS "message_uid"
FROM {words} w
{then} {rows:message} m ON {same:w.code:m.status} AND w.wait - {wait} = 0 AND w.mark - {trial} = 0
JOIN {rows:content} c ON c.uid = m.uid
