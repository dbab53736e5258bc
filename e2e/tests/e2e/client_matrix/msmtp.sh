cat >"$DIR/msmtprc" <<CF
account default
host $HOST
port $PORT
auth plain
user default
password $KEY
tls off
from shop@example.com
CF
chmod 600 "$DIR/msmtprc"
# As sendmail, from cron: names without a domain in the header, addresses in the envelope.
printf 'From: root (Cron Daemon)\nTo: root\nSubject: msmtp cron\n\nHello from cron.\n' |
    msmtp --file="$DIR/msmtprc" --debug ada@example.net | grep -v '^-->'
# And a system's monitor.
printf 'To: root\nSubject: msmtp monitor\n\nA disk is full.\n' | msmtp --file="$DIR/msmtprc" -- ada@example.net
# By a challenge, in which the key itself is not sent.
sed 's/^auth plain$/auth scram-sha-256/' "$DIR/msmtprc" >"$DIR/msmtprc.scram"
chmod 600 "$DIR/msmtprc.scram"
printf 'From: shop@example.com\nTo: ada@example.net\nSubject: msmtp scram\n\nHello by SCRAM.\n' |
    msmtp --file="$DIR/msmtprc.scram" -- ada@example.net
