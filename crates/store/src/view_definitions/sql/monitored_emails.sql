SELECT b.id AS "id",
    {json:b.settings:username} AS "email_address",
    CAST(NULL AS {text}) AS "email_password",
    {json:b.settings:description} AS "description",
    {flag:b.settings:active} AS "is_active",
    COALESCE(s.last_uid, 0) AS "last_seen_uid",
    {at:s.scanned_at} AS "last_scanned_at",
    {at:b.created_at} AS "created_at",
    {at:b.updated_at} AS "updated_at",
    {json:b.settings:folder} AS "folder",
    b.tenant AS "tenant_id"
FROM {rows:mailbox} b
LEFT JOIN {rows:mailbox_state} s ON s.tenant = b.tenant AND s.mailbox = b.id
