SELECT {uuid:i.uid} AS "id",
    {json:b.settings:username} AS "inbox_email",
    i.imap_uid AS "uid",
    i.subject AS "subject",
    {at:COALESCE(i.dated_at, i.arrived_at)} AS "email_date",
    w.word AS "status",
    CASE WHEN i.attempts < i.tries THEN i.tries ELSE i.attempts END AS "attempt_count",
    COALESCE(i.error, {forward_error}) AS "error_message",
    {at:i.created_at} AS "created_at",
    {at:i.updated_at} AS "updated_at",
    i.mailbox AS "monitored_email_id",
    i.tenant AS "tenant_id",
    i.uid_validity AS "uid_validity",
    {at:i.arrived_at} AS "arrived_at"
FROM {rows:inbound} i
JOIN {words} w ON w.code = i.state AND w.mark = {forwarded}
LEFT JOIN {rows:mailbox} b ON b.tenant = i.tenant AND b.id = i.mailbox
