# Exim as the machine's own mail server, with Postway as its smarthost.
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-matrix.XXXXXX")
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/spool"
# Its parts run as another user, who may not be let into the folder that it was unpacked in.
cp -r "$EXIM/usr" "$folder/usr"
chown mail:mail "$folder/spool"
cat >"$folder/exim.conf" <<CF
exim_path = $folder/usr/sbin/exim4
exim_user = mail
exim_group = mail
deliver_drop_privilege = yes
spool_directory = $folder/spool
log_file_path = $folder/spool/%slog
primary_hostname = client.example
qualify_domain = client.example
local_interfaces = 127.0.0.1
keep_environment = LD_PRELOAD : LD_LIBRARY_PATH : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP
begin routers
smarthost:
  driver = manualroute
  route_list = * $HOST
  self = send
  transport = smarthost
begin transports
smarthost:
  driver = smtp
  port = $PORT
  hosts_require_auth = *
  hosts_avoid_tls = *
  hosts_try_chunking = *
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  client_send = ^default^$KEY
CF
# Debian's Exim looks for its own user at every start, whatever its settings say.
{ cat /etc/passwd; echo 'Debian-exim:x:8:8::/:/bin/false'; } >"$folder/passwd"
{ cat /etc/group; echo 'Debian-exim:x:8:'; } >"$folder/group"
libraries=$(dirname "$(find "$folder/usr/lib" -name 'libnss_wrapper.so')")
printf 'From: shop@example.com\nTo: ada@example.net\nSubject: exim smarthost\n\nHello from Exim.\n' |
    LD_PRELOAD=$libraries/libnss_wrapper.so NSS_WRAPPER_PASSWD=$folder/passwd NSS_WRAPPER_GROUP=$folder/group \
        LD_LIBRARY_PATH=$libraries "$folder/usr/sbin/exim4" -C "$folder/exim.conf" -odf -oi -f shop@example.com ada@example.net
cat "$folder/spool/mainlog"
grep -q ' => ada@example.net' "$folder/spool/mainlog"
