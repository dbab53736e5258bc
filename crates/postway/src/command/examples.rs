//! The examples at the end of each command's `--help`.

/// `postway --help`, before the exit codes.
pub const START: &str = "First steps:
  postway                                          start the server; it prints where it listens and a key
  postway send --from shop@example.com --to ada@example.net --subject Hello --text 'It works.' --wait
  postway top                                      watch it work
  postway doctor                                   see whether everything is sound";

/// `postway serve`.
pub const SERVE: &str =
    "Settings come from postway.toml and from POSTWAY_* variables, which win; `postway config print` shows
what holds and where it comes from. SIGTERM finishes what is on the wire and ends.

Examples:
  postway serve
  postway serve --config /etc/postway/postway.toml
  postway serve --hold          # on a restored backup: nothing is sent until `postway tenants activate`
  POSTWAY_DATA_DIR=/var/lib/postway POSTWAY_HTTP_LISTEN=127.0.0.1:9000 postway serve";

/// `postway dev`.
pub const DEV: &str = "Point an application's SMTP settings at 127.0.0.1:1025, without login, and read its mail at http://127.0.0.1:8025.
Addresses like refused@shop.test, deferred@shop.test and doubt@shop.test fail as their names say.

Examples:
  postway dev --open
  postway dev --smtp 2525 --http 8080 --data-dir ./mail
  curl http://127.0.0.1:8025/v1/messages -H 'Content-Type: application/json' \\
    -d '{\"from\":\"a@example.com\",\"to\":\"b@example.net\",\"subject\":\"Hi\",\"text\":\"Hi\"}'";

/// `postway apply`.
pub const APPLY: &str = "A folder has one file for each thing, in the words of the API:
  settings/acme/tenant.toml
  settings/acme/accounts/relay-1.toml    host, port, …; password_env = \"RELAY_PASSWORD\" or password_file = \"relay.pw\"
  settings/acme/templates/welcome.toml, webhooks/crm.toml, mailboxes/…, rules/…, streams/…
  settings/acme/keys/shop.toml           scopes, allow_ips, …; key_file = \"shop.key\" is where a new key is written
A field that a file does not have stays as it is. Nothing is deleted unless --delete names its kind.

Examples:
  postway apply settings --dry-run
  postway apply settings
  postway apply settings --delete accounts,rules";

/// `postway export`.
pub const EXPORT: &str = "Examples:
  postway export settings
  postway export settings --tenant acme";

/// `postway send`.
pub const SEND: &str = "Examples:
  postway send --from 'Shop <shop@example.com>' --to ada@example.net --subject Hello --text 'Hi.' --wait
  postway send --from shop@example.com --to ada@example.net --subject Invoice --html @mail.html --attach invoice.pdf
  postway send --from shop@example.com --to ada@example.net --template welcome --var name=Ada --id order-1
  postway send --eml mail.eml --account relay-1";

/// `postway messages`.
pub const MESSAGES: &str = "Examples:
  postway messages list --status failed --all
  postway messages list --recipient ada@example.net --json
  postway messages show order-1          its recipients, attempts and events
  postway messages explain order-1       what it waits for
  postway messages list ada@example.net            also @gmail.com, an id, smtp_550, words of the subject
  postway messages list --outcome bounced --since 2030-01-25T00:00:00Z
  postway messages list --held-by any --watch
  postway messages retry order-1 order-2
  postway messages raw order-1 > order-1.eml";

/// `postway restore`.
pub const RESTORE: &str =
    "Run it as the user of the server, while none runs. Nothing that is there is overwritten.

Examples:
  POSTWAY_DATA_DIR=/var/lib/postway postway restore /backup/monday --hold
  postway tenants activate --all       # once it was looked at what would be sent again";

/// `postway bulk`.
pub const BULK: &str = "It says how many messages are meant and asks for that number; without a terminal it needs --yes. The server
does it step by step, also when this command is interrupted.

Examples:
  postway bulk retry --status failed --error-code smtp_451 --dry-run     only say what would be done
  postway bulk cancel --batch spring --waiting --yes
  postway bulk resolve --held-by doubt --as resend
  postway bulk suppress --outcome bounced --since 2030-01-25T00:00:00Z --note 'bounced in January'
  postway bulk list
  postway bulk stop 0192d3a4-5b6c-7d8e-9f01-23456789abcd";

/// `postway sink`.
pub const SINK: &str = "Examples:
  postway sink                                     on 127.0.0.1:2525
  postway accounts create local-1 --host 127.0.0.1 --port 2525 --tls none";

/// `postway templates`.
pub const TEMPLATES: &str = "Examples:
  postway templates create mails/                  NAME.subject.txt, NAME.html, NAME.txt, NAME.sample.json
  postway templates preview welcome --var name=Ada
  postway templates preview welcome --from mails/ --part html > welcome.html
  postway templates preview welcome --locale de-AT
  postway templates send-test welcome --to ada@example.net --locale de-AT";

/// `postway accounts`.
pub const ACCOUNTS: &str = "Examples:
  postway accounts create relay-1 --host smtp.example.com --port 587 --username shop
  postway accounts create ses-1 --kind ses --region eu-west-1 --access-key-id AKIA…
  postway accounts create sg-1 --kind sendgrid --api-key-file key.txt
  postway accounts test relay-1 --to ada@example.net --from shop@example.com
  postway accounts update relay-1 --per-hour 1000 --max-connections 5
  postway accounts suspend relay-1";

/// `postway routes`.
pub const ROUTES: &str = "Examples:
  postway routes create receipts --priority immediate --to relay-1
  postway routes create newsletters --sender-domain '*.news.example.com' --to bulk-1=3 --to bulk-2=1
  postway routes order receipts newsletters
  postway routes try --from letter@a.news.example.com --to ada@example.net";

/// `postway webhooks`.
pub const WEBHOOKS: &str = "Examples:
  postway webhooks create https://app.example.com/hooks/mail --event email.sent --event email.failed
  postway webhooks test wh_…
  postway webhooks deliveries wh_… --status dead
  postway webhooks resend wh_… --since 2030-01-25T18:00:00Z
  postway webhooks resend wh_… UID 3";

/// `postway mailboxes`.
pub const MAILBOXES: &str = "Examples:
  postway mailboxes create --id bounces --host imap.example.com --username bounces@example.com --role bounces
  postway mailboxes test bounces
  postway doctor mailboxes";

/// `postway tenants`.
pub const TENANTS: &str = "These need the admin key.

Examples:
  postway tenants create acme --name 'Acme Ltd'
  postway tenants keys create acme --name shop --scope send --scope read
  postway tenants update acme --default-account relay-1 --weight 50
  postway --tenant acme messages list";

/// `postway users`.
pub const USERS: &str = "These need the admin key.

Examples:
  postway users create ada --role operator --for acme
  postway users create root --role admin --all-tenants
  postway users update ada --role viewer
  postway users sessions ada --end
  postway users invite ada";

/// `postway outbox`.
pub const OUTBOX: &str = "Examples:
  postway outbox install --database postgres://app:secret@db.example.com/shop
  postway outbox install --database postgres://app:secret@db.example.com/shop --print
  postway outbox status";

/// `postway top`.
pub const TOP: &str = "Examples:
  postway top                      live; q leaves
  postway --tenant acme top        one tenant's mail
  postway top --once | less        one snapshot as text
  postway top --json --interval 5  a line of JSON every five seconds";

/// `postway doctor`.
pub const DOCTOR: &str =
    "Without a subcommand everything is checked: configuration, database, disk, server, clock, DNS, nodes,
queue, accounts, mailboxes, webhooks and outbox sources. Accounts and mailboxes are tried; nothing is
sent or changed. Exit code 0: sound, warnings at most; 1: a problem was found.

Examples:
  postway doctor                      everything, of all tenants
  postway --tenant acme doctor        one tenant's accounts, mailboxes and webhooks
  postway doctor --json               for programs
  postway doctor domain example.com   SPF, DKIM, DMARC and MX of a domain";

/// `postway archive`.
pub const ARCHIVE: &str = "Examples:
  postway tenants update acme --archive-storage true --archive-encrypt true --archive-days 3650
  postway --tenant acme archive list --since 2026-01-01T00:00:00Z
  postway --tenant acme archive raw 0192d3a4-5b6c-7d8e-9f01-23456789abcd > mail.eml
  postway archive open copy.eml.sealed > mail.eml   without a server, with the secret key";

/// `postway domains`.
pub const DOMAINS: &str = "Examples:
  postway domains list
  postway domains check example.com
  postway domains summary example.com --days 90   who sends in its name; unknown senders first
  postway domains reports example.com --limit 20";

/// `postway events`.
pub const EVENTS: &str = "Examples:
  postway events --limit 20
  postway events --follow --after now --json";

/// `postway inspect`.
pub const INSPECT: &str = "Examples:
  postway inspect bounce.eml
  postway inspect --why bounce.eml
  postway inspect --trust authorities.pem receipts/*.eml > receipts.jsonl
  cat mail.eml | postway inspect -";

/// `postway bench`.
pub const BENCH: &str = "Without --url a server of this program and a sink are started in a temporary folder.

Examples:
  postway bench
  postway bench --messages 100000 --mode batch
  postway bench --database postgres://postway:secret@127.0.0.1/bench --nodes 2
  postway bench --json > figures.json";

/// `postway backup`.
pub const BACKUP: &str = "The database, the blobs and the keys, as they are at one moment. TARGET gets its name when all of it is there.
Run it as the user that the server runs as.

Examples:
  postway backup /backup/monday";

/// `postway migrate compact`.
pub const COMPACT: &str =
    "Needs as much room again as the file has. A file that an earlier version made gives back
what was removed only after this.

Examples:
  systemctl stop postway && postway migrate compact && systemctl start postway";

/// `postway migrate copy`.
pub const COPY: &str = "Stop every server on either database first. It can be killed and run again: it goes on where it was.

Examples:
  postway migrate copy --from sqlite:///var/lib/postway/postway.db --to postgres://postway:secret@db.example.com/postway";

/// `postway moving`.
pub const MOVING: &str =
    "The old database is only read. Stop the old system before you import: a mail has one home.
Exit code 0: everything carries over; 1: something does not, and is listed.

Examples:
  postway moving check 000 --database mysql://reader:secret@db/outbox --payloads /srv/outbox/payloads
  postway moving check 001 --database sqlite:///srv/proxy/mail.db
  postway moving import 001 --database sqlite:///srv/proxy/mail.db --skip-wrong
  postway moving check 002 --database mysql://reader:secret@db/monitor --imap-host imap.example.com
  postway moving check 003 --database postgres://reader:secret@db/app
  postway moving check 004 --database postgres://reader:secret@db/mail --tenant-of 7b0c1a=acme";

/// `postway completions`.
pub const COMPLETIONS: &str = "Examples:
  postway completions bash > /etc/bash_completion.d/postway
  postway completions zsh > ~/.zfunc/_postway
  postway completions fish > ~/.config/fish/completions/postway.fish";
