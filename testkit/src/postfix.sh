port=$1 lmtp_port=$2 next_port=$3 domain=$4 mailbox=$5
PATH=$PATH:/usr/sbin:/sbin
command -v postfix >/dev/null || { echo "postfix is not in PATH" >&2; exit 1; }
# Not below a folder that only its owner may enter: parts of Postfix run as another user.
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-postfix.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/conf" "$folder/queue" "$folder/data"
chown postfix "$folder/data"
# Mail for the domain goes to one mailbox over LMTP, or to an SMTP server as it is addressed.
to_domain="relay_transport = smtp:[127.0.0.1]:$lmtp_port"
[ -z "$mailbox" ] || to_domain="relay_transport = lmtp:inet:127.0.0.1:$lmtp_port
virtual_alias_maps = inline:{ { @$domain = $mailbox } }"
cat >"$folder/conf/main.cf" <<CF
compatibility_level = 3.6
queue_directory = $folder/queue
data_directory = $folder/data
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.test
mydestination =
mynetworks = 127.0.0.0/8
relay_domains = $domain
$to_domain
default_transport = smtp:[127.0.0.1]:$next_port
smtpd_recipient_restrictions = permit_mynetworks, reject
smtp_tls_security_level = none
lmtp_assume_final = yes
maillog_file = $folder/queue/mail.log
maillog_file_prefixes = $folder
CF
cat >"$folder/conf/master.cf" <<CF
127.0.0.1:$port inet n - n - - smtpd
pickup    unix n - n 60 1 pickup
cleanup   unix n - n - 0 cleanup
qmgr      unix n - n 300 1 qmgr
tlsmgr    unix - - n 1000? 1 tlsmgr
rewrite   unix - - n - - trivial-rewrite
bounce    unix - - n - 0 bounce
defer     unix - - n - 0 bounce
trace     unix - - n - 0 bounce
verify    unix - - n - 1 verify
flush     unix n - n 1000? 0 flush
proxymap  unix - - n - - proxymap
smtp      unix - - n - - smtp
lmtp      unix - - n - - lmtp
showq     unix n - n - - showq
error     unix - - n - - error
retry     unix - - n - - error
anvil     unix - - n - 1 anvil
scache    unix - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
CF
postfix -c "$folder/conf" start >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
for _ in $(seq 100); do
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.05
done
echo ready
read -r _
postfix -c "$folder/conf" stop >/dev/null 2>&1
