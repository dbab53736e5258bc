SELECT {id} AS "outboxId",
    m.tenant AS "companyId",
    {uuid:c.recipient_id} AS "recipientId",
    {first_recipient} AS "to",
    {subject} AS "subject",
    w.word AS "status",
    (SELECT a.provider_message_id FROM {attempt} a WHERE a.uid = m.uid AND a.provider_message_id IS NOT NULL ORDER BY a.number DESC LIMIT 1) AS "sesMessageId",
    {json:m.error:code} AS "errorCode",
    {reason} AS "errorReason",
    m.attempt AS "attempts",
    COALESCE(m.sent_at, m.failed_at) - m.created_at AS "durationMs",
    c.request_id AS "requestId",
    {at:m.created_at} AS "createdAt",
    {at:m.sent_at} AS "sentAt",
    {at:CASE WHEN m.status IN ({unsent}) THEN COALESCE(m.failed_at, m.updated_at) END} AS "failedAt",
    m.uid AS "message_uid"
FROM {words} w
{then} {rows:message} m ON {same:w.code:m.status} AND w.wait - {wait} = 0 AND w.mark - {trial} = 0
JOIN {rows:content} c ON c.uid = m.uid
