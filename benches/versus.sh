#!/usr/bin/env bash
# The same load through Postway and through Debian's Postfix, relaying to the same kind of sink, one after the other.
# Needs root, the packages postfix (with smtp-sink and smtp-source), and a release build. Everything it starts ends with
# it, and everything it writes is in one temporary folder.
set -euo pipefail

messages=${1:-10000}
sessions=${2:-64}
root=$(cd "$(dirname "$0")/.." && pwd)
postway=${POSTWAY_BINARY:-$root/target/release/postway}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/postway-versus.XXXXXX")
chmod 755 "$work"
sink_pid=

finish() {
    [ -n "$sink_pid" ] && kill "$sink_pid" 2>/dev/null || true
    postfix -c "$work/conf" stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

for need in postfix smtp-sink smtp-source; do
    command -v "$need" >/dev/null || { echo "versus: $need is missing: apt-get install postfix" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "versus: Postfix only starts as root" >&2; exit 1; }
[ -x "$postway" ] || { echo "versus: build first: cargo build --release" >&2; exit 1; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
echo "== Postway, $messages messages, HTTP in, SMTP out, $sessions connections"
"$postway" bench --sink smtp-sink --messages "$messages" --connections "$sessions" --concurrency "$sessions" \
    --idle-latency 0 --temp-dir "$work" | tee "$work/postway.txt"

echo "== Postfix, $messages messages, SMTP in, SMTP out"
in_port=$(free_port) out_port=$(free_port)
mkdir -p "$work/conf" "$work/queue" "$work/data"
chown postfix "$work/data"
cat >"$work/conf/main.cf" <<CF
compatibility_level = 3.6
queue_directory = $work/queue
data_directory = $work/data
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = versus.test
mydestination =
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:$out_port
smtpd_recipient_restrictions = permit_mynetworks, reject
default_destination_concurrency_limit = $sessions
initial_destination_concurrency = $sessions
default_process_limit = $sessions
smtp_tls_security_level = none
maillog_file = $work/queue/mail.log
maillog_file_prefixes = $work
CF
cat >"$work/conf/master.cf" <<CF
127.0.0.1:$in_port inet n - n - - smtpd
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
relay     unix - - n - - smtp
showq     unix n - n - - showq
error     unix - - n - - error
retry     unix - - n - - error
discard   unix - - n - - discard
local     unix - n n - - local
anvil     unix - - n - 1 anvil
scache    unix - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
CF
smtp-sink -u nobody -c -m 2000 "inet:127.0.0.1:$out_port" 1024 >"$work/sink.txt" 2>&1 &
sink_pid=$!
for _ in $(seq 50); do (: <"/dev/tcp/127.0.0.1/$out_port") 2>/dev/null && break; sleep 0.1; done
postfix -c "$work/conf" start >/dev/null 2>&1
started=$(date +%s.%N)
smtp-source -s "$sessions" -m "$messages" -l 2048 -f shop@example.com -t user@example.net "127.0.0.1:$in_port"
accepted=$(date +%s.%N)
deadline=$(($(date +%s) + 300))
while [ "$(find "$work/queue/incoming" "$work/queue/active" "$work/queue/deferred" -type f | wc -l)" -gt 0 ]; do
    [ "$(date +%s)" -lt "$deadline" ] || { echo "versus: Postfix did not finish in time" >&2; break; }
    sleep 0.2
done
ended=$(date +%s.%N)
postfix -c "$work/conf" stop >/dev/null 2>&1 || true
awk -v n="$messages" -v s="$started" -v a="$accepted" -v e="$ended" 'BEGIN {
    printf " accepted/s        %d\n accept to sent/s  %d\n", n / (a - s), n / (e - s) }' | tee "$work/postfix.txt"
awk '/accept to sent\/s/ { rate[FILENAME] = $NF } END { printf "== ratio, accept to sent: Postway / Postfix = %.1f\n",
    rate["'"$work"'/postway.txt"] / rate["'"$work"'/postfix.txt"] }' "$work/postway.txt" "$work/postfix.txt"
