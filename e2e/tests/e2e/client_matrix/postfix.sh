# Postfix as the machine's own mail server, with Postway as its relay.
PATH=$PATH:/usr/sbin:/sbin
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-matrix.XXXXXX")
trap 'postfix -c "$folder/conf" stop >/dev/null 2>&1; rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/conf" "$folder/queue" "$folder/data"
chown postfix "$folder/data"
cat >"$folder/conf/main.cf" <<CF
compatibility_level = 3.6
queue_directory = $folder/queue
data_directory = $folder/data
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = client.example
mydestination =
default_transport = smtp:[$HOST]:$PORT
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = inline:{ { [$HOST]:$PORT = default:$KEY } }
smtp_sasl_security_options = noanonymous
smtp_tls_security_level = none
maillog_file = $folder/queue/mail.log
maillog_file_prefixes = $folder
CF
cat >"$folder/conf/master.cf" <<CF
pickup    unix n - n 1 1 pickup
cleanup   unix n - n - 0 cleanup
qmgr      unix n - n 300 1 qmgr
rewrite   unix - - n - - trivial-rewrite
bounce    unix - - n - 0 bounce
defer     unix - - n - 0 bounce
trace     unix - - n - 0 bounce
proxymap  unix - - n - - proxymap
smtp      unix - - n - - smtp
showq     unix n - n - - showq
error     unix - - n - - error
retry     unix - - n - - error
scache    unix - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
CF
postfix -c "$folder/conf" start
# A list's mail: an envelope sender longer than most, and a header that Postfix does not look into.
printf 'From: list@example.com\nTo: (recipient list suppressed)\nSubject: postfix list\nMessage-ID: <kept-by-postfix@example.com>\n\nHello from a list.\n' |
    sendmail -C "$folder/conf" -i -f 'announce-bounces+some.long.user.name=some-long-company.example.net@lists.example.com' ada@example.net bob@example.net
for _ in $(seq 300); do
    grep -q 'qmgr.*removed' "$folder/queue/mail.log" && break
    sleep 0.05
done
grep 'postfix/smtp' "$folder/queue/mail.log"
grep -q 'status=sent' "$folder/queue/mail.log"
