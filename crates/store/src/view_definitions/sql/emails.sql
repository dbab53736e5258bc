SELECT {id} AS "id",
    w.word AS "status",
    {file:c.raw_blob} AS "eml_file_path",
    {file:c.payload_blob} AS "payload_file_path",
    {reason} AS "reason",
    m.version + COALESCE((SELECT COUNT(*) {calls}), 0) AS "version",
    {at:m.created_at} AS "created_at",
    {at:{later:m.updated_at:(SELECT MAX(e.at) {calls})}} AS "updated_at",
    m.tenant AS "tenant_id",
    m.uid AS "message_uid"
FROM {words} w
{then} {rows:message} m ON {same:w.code:m.status} AND w.wait - {wait} = 0 AND w.mark - {called} = 0
JOIN {rows:content} c ON c.uid = m.uid
