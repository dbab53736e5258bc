//! Reference 001, its document from top to bottom: the states and fields of a message as door, view and
//! report tell them, on the real binary over PostgreSQL.
//!
//! Shown elsewhere: what is queued survives a kill, held batches and their release
//! (`compat::the_door_of_001…`); a time that was asked for (`scheduling`); which entries of a report were
//! taken, and when to call again (`reports::a_batch_is_told…`); limits (`accounts::a_limit_…`); attachments
//! by endpoint, address and path (`attachments::files_from_anywhere…`); large files with links
//! (`large_files`); retention of seven days and its bounds (`retention::what_is_reported_goes_by_itself…`);
//! tenants apart (`tenants`); bounces of a real server (`bounces`); each rejected message by id and field,
//! keys and tenants of calls (`crates/api/tests/compat/reference_001*.rs`).
//!
//! Each requirement under its number, with the tests that show it here and elsewhere: `requirements/001.md`.

mod outcomes;
mod priorities;
mod states;

use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, eventually, node_env};
use postway_testkit::{
    HttpSource, ReceivedMail, SmtpSink, SourceReply,
    dovecot::{Dovecot, PASSWORD},
    postgres::PostgresDatabase,
};
use reqwest::Method;
use serde_json::{Value, json};

const MAILBOX: &str = "bounces@reference.test";
/// The columns of the table `messages`, in their order.
const COLUMNS: &str = "id account_id priority payload batch_code created_at updated_at deferred_ts sent_ts error_ts error \
     reported_ts bounce_type bounce_code bounce_reason bounce_ts bounce_reported_ts pec_rda_ts pec_rdc_ts pec_error pec_error_ts ";

/// A gateway with the door at `/`, a relay that knows some addresses, and a client that takes reports.
struct World {
    gateway: Gateway,
    database: PostgresDatabase,
    relay: SmtpSink,
    client: HttpSource,
}

impl World {
    async fn make() -> anyhow::Result<Self> {
        let database = PostgresDatabase::create();
        let relay = SmtpSink::builder()
            .rcpt("nobody@", "550 5.1.1 no such user here")
            .rcpt("later@", "451 4.7.1 come back later")
            .start()
            .await;
        let client = HttpSource::start().await;
        // A simple client, whose answer is no JSON.
        client.serve("/mail-proxy/sync", SourceReply::ok("OK"));
        let url = database.url();
        let mut env = node_env(&url, "reference.test");
        env.extend([ALLOW_LOOPBACK, ("POSTWAY_COMPAT_ROOT", "001")]);
        let gateway = Gateway::start_untouched(&env).await?;
        let installed = gateway.run(&["views", "install", "--database", &url], &[], b"").await?;
        assert_eq!(installed.code, Some(0), "{}", installed.err);
        let world = Self { gateway, database, relay, client };
        world.set_up().await?;
        Ok(world)
    }

    /// As a mover does it: account and client by the door, what the door has no word for by the API.
    async fn set_up(&self) -> anyhow::Result<()> {
        let account = |id: &str, pec: bool| {
            json!({"id": id, "tenant_id": "default", "host": "127.0.0.1", "port": self.relay.port(), "use_tls": false,
                "is_pec_account": pec, "ttl": 300})
        };
        let made = self.gateway.post("/account", account("relay", false)).await?;
        assert_eq!((&made["ok"], &made["ignored"]), (&json!(true), &json!(["ttl"])), "{made}");
        self.gateway.post("/account", account("pec", true)).await?;
        let tenant = json!({"client_base_url": self.client.url(""), "client_auth": {"method": "bearer", "token": "s3cr3t"}});
        let (status, told) = self.gateway.call(Method::PUT, "/tenant/default", Some(tenant)).await?;
        assert!(status.is_success(), "{told}");
        let settings = json!({"default_account": "relay", "id_header": "X-Genro-Mail-ID"});
        self.gateway.patch("/v1/tenants/default", settings).await.map(drop)
    }

    /// Has the mailbox watched that bounces and receipts come to.
    async fn watch(&self) -> anyhow::Result<()> {
        let mailbox = json!({"id": "bounces", "host": "127.0.0.1", "port": Dovecot::shared().port(), "tls": "none",
            "username": MAILBOX, "password": PASSWORD, "roles": ["bounces", "pec"], "start": "beginning", "poll_seconds": 5});
        self.gateway.post("/v1/mailboxes", mailbox).await.map(drop)
    }

    async fn add(&self, messages: Vec<Value>) -> anyhow::Result<Value> {
        self.gateway.post("/add-messages", json!({"messages": messages})).await
    }

    /// A message as the door shows it.
    async fn shown(&self, id: &str) -> anyhow::Result<Value> {
        let list = self.gateway.get("/messages?tenant_id=default").await?;
        let found = list["messages"].as_array().and_then(|all| all.iter().find(|one| one["id"] == id));
        Ok(found.cloned().unwrap_or_default())
    }

    /// Waits until the door shows a message so.
    async fn until(&self, id: &str, what: &str, done: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        eventually(&format!("{id}: {what}"), async || {
            let shown = self.shown(id).await?;
            Ok(done(&shown).then_some(shown))
        })
        .await
    }

    async fn until_status(&self, id: &str, status: &str) -> anyhow::Result<Value> {
        self.until(id, status, |shown| shown["status"] == status).await
    }

    /// Some columns of a message in the view, as text; what is NULL is empty.
    fn viewed(&self, id: &str, columns: &[&str]) -> Vec<String> {
        let columns: Vec<String> = columns.iter().map(|name| format!("COALESCE({name}::text, '')")).collect();
        let sql = format!("SELECT {} FROM postway_views.messages WHERE id = '{id}'", columns.join(", "));
        self.database.run(&sql).trim().split('|').map(str::to_owned).collect()
    }

    /// That the view says of these columns what the door says.
    fn assert_viewed(&self, id: &str, shown: &Value, columns: &[&str]) {
        let text = |name: &&str| match &shown[*name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(
            self.viewed(id, columns),
            columns.iter().map(text).collect::<Vec<_>>(),
            "{id}: {columns:?}"
        );
    }

    /// What the client was notified of for a message, by kind.
    fn told(&self, id: &str, status: &str) -> Option<Value> {
        let reports = self.client.requests().into_iter().filter(|request| request.path == "/mail-proxy/sync");
        let mut entries = reports.flat_map(|request| {
            assert_eq!(request.header("authorization"), Some("Bearer s3cr3t"));
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            body["delivery_report"].as_array().cloned().unwrap_or_default()
        });
        entries.find(|entry| entry["id"] == id && entry["status"] == status)
    }

    async fn until_told(&self, id: &str, status: &str) -> anyhow::Result<Value> {
        eventually(&format!("{id} told as {status}"), async || Ok(self.told(id, status))).await
    }

    /// The mail that the relay took for a message.
    fn mail(&self, id: &str) -> ReceivedMail {
        let mails = self.relay.mails().into_iter();
        let mut of_it = mails.filter(|mail| mail.header("X-Genro-Mail-ID").as_deref() == Some(id));
        of_it.next().unwrap_or_else(|| panic!("the relay has no mail of {id}"))
    }

    fn come_back(&self, mail: &str) {
        Dovecot::shared().append(MAILBOX, "INBOX", mail.as_bytes());
    }
}

fn message(id: &str, to: &str) -> Value {
    json!({"id": id, "from": "Shop <shop@example.com>", "to": to, "subject": "Your order", "body": "Thank you."})
}

fn with(mut message: Value, fields: Value) -> Value {
    if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
        message.extend(fields);
    }
    message
}

/// 31: what the sandbox took is captured in door, view and report, and is sent in none of them.
/// Requirement 31.
#[tokio::test]
async fn what_was_captured_is_told_as_captured_alike() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.add(vec![with(message("trial", "ada@example.net"), json!({"account_id": "sandbox"}))]).await?;
    let told = world.until_told("trial", "captured").await?;
    assert!(told["error"].as_str().is_some_and(|error| error.contains("captured")), "{told}");
    let shown = world.until_status("trial", "REPORTED").await?;
    assert!(shown["sent_ts"].is_null(), "{shown}");
    assert_eq!(world.viewed("trial", &["status", "sent_ts"]), ["REPORTED", ""]);
    assert!(world.told("trial", "sent").is_none());
    world.client.serve("/mail-proxy/sync", SourceReply::status(503));
    world.add(vec![with(message("later", "ada@example.net"), json!({"account_id": "sandbox"}))]).await?;
    world.until_status("later", "CAPTURED").await?;
    assert_eq!(world.viewed("later", &["status"]), ["CAPTURED"]);
    Ok(())
}

/// A delivery status notification about a mail.
fn notification(mail: &ReceivedMail, to: &str, action: &str, status: &str, diagnostic: &str) -> String {
    let uid = mail.postway_id.as_deref().unwrap_or_default();
    format!(
        "From: mailer-daemon@relay.test\r\nTo: {MAILBOX}\r\nSubject: Delivery status\r\nMIME-Version: 1.0\r\n\
         Message-ID: <{action}-{uid}@relay.test>\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nAbout your mail.\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; relay.test\r\n\r\n\
         Final-Recipient: rfc822; {to}\r\nAction: {action}\r\nStatus: {status}\r\nDiagnostic-Code: smtp; {diagnostic}\r\n\r\n\
         --b\r\nContent-Type: text/rfc822-headers\r\n\r\nX-Postway-ID: {uid}\r\nX-Genro-Mail-ID: {}\r\n\r\n--b--\r\n",
        mail.header("X-Genro-Mail-ID").unwrap_or_default()
    )
}

/// A receipt of certified mail.
fn receipt(mail: &ReceivedMail, kind: &str, error: &str, words: &str) -> String {
    let id = mail.message_id.as_deref().unwrap_or_default().trim_matches(['<', '>']);
    format!(
        "X-Ricevuta: {kind}\r\nX-Riferimento-Message-ID: <{id}>\r\nMessage-ID: <{kind}-{id}>\r\n\
         From: posta-certificata@pec.example\r\nTo: {MAILBOX}\r\nSubject: {kind}\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nRicevuta\r\n\
         --b\r\nContent-Type: application/xml; name=daticert.xml\r\nContent-Disposition: attachment; filename=daticert.xml\r\n\r\n\
         <?xml version=\"1.0\" encoding=\"UTF-8\"?><postacert tipo=\"{kind}\" errore=\"{error}\"><intestazione>\
         <mittente>shop@example.com</mittente><destinatari tipo=\"certificato\">ada@pec.example</destinatari></intestazione>\
         <dati><gestore-emittente>G</gestore-emittente><msgid>&lt;{id}&gt;</msgid>{words}</dati></postacert>\r\n--b--\r\n"
    )
}

/// The lifecycle: PENDING, SENDING, SENT, ERROR, DEFERRED, BOUNCED, REPORTED, and every field of it.
/// Requirements 1, 2, 7–13, 16–21, 26, 27, 35–50, 54, 66.
#[tokio::test]
async fn a_message_goes_through_its_states_and_each_is_told_alike() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.watch().await?;
    let answer = world
        .add(vec![
            message("sent", "ada@example.net"),
            message("refused", "nobody@example.net"),
            message("put-off", "later@example.net"),
            with(message("certified", "ada@pec.example"), json!({"account_id": "pec"})),
            json!({"id": "flawed", "to": "ada@example.net", "colour": "red"}),
        ])
        .await?;
    assert_eq!((&answer["queued"], &answer["rejected"][0]["id"]), (&json!(4), &json!("flawed")), "{answer}");

    // Sent, acknowledged, and so reported, though the client answers no more than OK.
    let sent = world.until_status("sent", "REPORTED").await?;
    assert_eq!(world.until_told("sent", "sent").await?["sent_ts"], sent["sent_ts"]);
    let columns =
        ["status", "account_id", "priority", "sent_ts", "error_ts", "error", "deferred_ts", "reported_ts"];
    world.assert_viewed("sent", &sent, &columns);
    let names = "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns \
         WHERE table_schema = 'postway_views' AND table_name = 'messages'";
    let names = world.database.run(names);
    assert!(names.starts_with(COLUMNS), "{names}");
    assert!(sent["sent_ts"].is_i64() && sent["reported_ts"].is_i64() && sent["priority"] == 2, "{sent:#}");
    let failed = world.until_status("refused", "REPORTED").await?;
    world.assert_viewed("refused", &failed, &columns);
    assert_eq!(failed["error"], world.until_told("refused", "error").await?["error"]);
    let deferred = world.until_told("put-off", "deferred").await?;
    assert!(deferred["deferred_ts"].is_i64(), "{deferred}");
    world.until_status("put-off", "DEFERRED").await?;

    // The same again is queued once; another under its id is not, as an INSERT of that id would not be.
    assert_eq!(world.add(vec![message("sent", "ada@example.net")]).await?["queued"], 1);
    let (_, other) = world
        .gateway
        .call(Method::POST, "/add-messages", Some(json!({"messages": [message("sent", "bob@example.net")]})))
        .await?;
    assert_eq!((&other["ok"], &other["rejected"][0]["id"]), (&json!(false), &json!("sent")), "{other}");

    // A notice of delay, which is not sent to clients, takes nothing back.
    let mail = world.mail("sent");
    world.come_back(&notification(&mail, "ada@example.net", "delayed", "4.2.0", "450 4.2.0 still trying"));
    world.gateway.wait_until("sent", "delayed", |message| message["outcome"] == "delayed").await?;
    let delayed = world.shown("sent").await?;
    assert_eq!((&delayed["status"], &delayed["reported_ts"]), (&json!("REPORTED"), &sent["reported_ts"]));
    assert!(world.gateway.message("sent").await?["reported_at"].is_string());
    world.assert_viewed("sent", &delayed, &columns);

    // A bounce, in the server's code and words, with ours beside them; sent and bounced at once.
    let words = "550 5.1.1 <ada@example.net> user unknown";
    world.come_back(&notification(&mail, "ada@example.net", "failed", "5.1.1", words));
    let told = world.until_told("sent", "bounced").await?;
    let bounced =
        world.until("sent", "the bounce reported", |shown| shown["bounce_reported_ts"].is_i64()).await?;
    for (field, value) in [
        ("bounce_type", "hard"),
        ("bounce_code", "550"),
        ("bounce_reason", words),
        ("bounce_status", "5.1.1"),
        ("bounce_kind", "user_unknown"),
    ] {
        assert_eq!((&bounced[field], &told[field]), (&json!(value), &json!(value)), "{field}");
    }
    assert_eq!((&bounced["sent_ts"], &bounced["bounce_ts"]), (&sent["sent_ts"], &told["bounce_ts"]));
    assert_eq!(bounced["status"], "REPORTED", "{bounced:#}");
    let columns =
        ["bounce_type", "bounce_code", "bounce_reason", "bounce_status", "bounce_kind", "bounce_reported_ts"];
    world.assert_viewed("sent", &bounced, &columns);
    let found =
        "SELECT COUNT(*) FROM postway_views.messages WHERE bounce_code = '550' AND bounce_ts IS NOT NULL";
    assert_eq!(world.database.run(found).trim(), "1");

    // Certified mail: taken, then not delivered, in the provider's words.
    let mail = world.mail("certified");
    let to = "<consegna>ada@pec.example</consegna>";
    world.come_back(&receipt(&mail, "accettazione", "nessuno", ""));
    world.until("certified", "accepted", |shown| shown["pec_rda_ts"].is_i64()).await?;
    let why = format!("{to}<errore-esteso>5.1.1 - indirizzo non valido</errore-esteso>");
    world.come_back(&receipt(&mail, "errore-consegna", "no-dest", &why));
    let told = world.until_told("certified", "pec_failed").await?;
    let failed = world.until("certified", "failed", |shown| shown["pec_error_ts"].is_i64()).await?;
    for (field, value) in [("pec_error", "5.1.1 - indirizzo non valido"), ("pec_error_code", "no-dest")] {
        assert_eq!((&failed[field], &told[field]), (&json!(value), &json!(value)), "{field}");
    }
    assert_eq!(failed["pec_error_ts"], told["pec_error_ts"]);
    world.assert_viewed("certified", &failed, &["pec_error", "pec_error_code"]);
    Ok(())
}

/// Batches: held messages are not fetched, whatever they waited for; others go on.
/// Requirements 3–6, 34, 36, 51, 52.
#[tokio::test]
async fn a_held_batch_is_suspended_also_past_its_time_and_goes_when_activated() -> anyhow::Result<()> {
    let world = World::make().await?;
    let commands = "tenant_id=default&batch_code=campaign-2024-01";
    world.gateway.post(&format!("/commands/suspend?{commands}"), json!({})).await?;
    let soon = world.gateway.now().await?.as_second() + 8;
    let held = json!({"batch_code": "campaign-2024-01", "deferred_ts": soon, "priority": 0});
    world
        .add(vec![
            with(message("held", "ada@example.net"), held),
            with(message("other", "ada@example.net"), json!({"batch_code": "campaign-2024-02"})),
        ])
        .await?;
    assert_eq!(world.shown("held").await?["deferred_ts"], soon);
    assert_eq!(world.viewed("held", &["status", "deferred_ts"]), ["DEFERRED".to_owned(), soon.to_string()]);
    world.until_status("other", "REPORTED").await?;
    let shown = world.until_status("held", "SUSPENDED").await?;
    assert!(shown["deferred_ts"].is_null() && shown["sent_ts"].is_null(), "{shown:#}");
    assert_eq!(world.viewed("held", &["status", "deferred_ts"]), ["SUSPENDED", ""]);
    let status = world.gateway.get("/status?tenant_id=default").await?;
    assert_eq!((&status["pending"], &status["deferred"]), (&json!(1), &json!(0)), "{status}");
    world.gateway.post(&format!("/commands/activate?{commands}"), json!({})).await?;
    world.until_status("held", "REPORTED").await?;
    assert_eq!(world.relay.mails().len(), 2);
    Ok(())
}

/// Attachments: a file must be the one that the message means.
/// Requirement 64.
#[tokio::test]
async fn a_file_with_another_digest_is_an_error_that_names_it() -> anyhow::Result<()> {
    let world = World::make().await?;
    world.client.serve("/a.txt", SourceReply::ok("hello"));
    let file = |md5: &str| {
        json!({"attachments": [{"filename": "a.txt", "storage_path": world.client.url("/a.txt"), "fetch_mode": "http_url",
            "content_md5": md5}]})
    };
    world
        .add(vec![
            with(message("right", "ada@example.net"), file("5d41402abc4b2a76b9719d911017c592")),
            with(message("wrong", "ada@example.net"), file("5d41402abc4b2a76b9719d911017c593")),
        ])
        .await?;
    let wrong = world.until_status("wrong", "REPORTED").await?;
    let error = wrong["error"].as_str().unwrap_or_default();
    assert!(error.contains("5d41402abc4b2a76b9719d911017c592"), "{wrong:#}");
    let told = world.until_told("wrong", "error").await?;
    assert!(error.starts_with("attachments[0].content_md5: "), "{error}");
    assert!(error.ends_with(told["error"].as_str().unwrap_or("nothing")), "{told}");
    world.until_status("right", "REPORTED").await?;
    assert_eq!(world.relay.mails().len(), 1);
    Ok(())
}

/// Retention: as the instance says, for tenants that say nothing of their own.
/// Requirements 58, 60.
#[tokio::test]
async fn what_is_reported_goes_after_the_time_that_is_set_for_the_instance() -> anyhow::Result<()> {
    let relay = SmtpSink::start().await;
    let env = [ALLOW_LOOPBACK, ("POSTWAY_RETENTION_REPORT_RETENTION_SECONDS", "0")];
    let mut gateway = Gateway::start_untouched(&env).await?;
    let own = json!({"id": "own", "name": "Own", "report_retention_seconds": 604_800});
    gateway.post("/v1/tenants", own).await?;
    for tenant in ["default", "own"] {
        let account = json!({"id": "relay", "tenant_id": tenant, "host": "127.0.0.1", "port": relay.port(), "use_tls": false});
        gateway.post("/compat/001/account", account).await?;
        let mail = with(message("m", "ada@example.net"), json!({"account_id": "relay", "tenant_id": tenant}));
        gateway.post("/compat/001/add-messages", json!({"messages": [mail]})).await?;
    }
    relay.wait_for(2, PATIENCE).await;
    gateway.wait_until_reported("m").await?;
    // Retention looks every minute, and at the start.
    assert!(gateway.terminate().await?.success());
    gateway.launch(&env).await?;
    let count = async |tenant: &str| -> anyhow::Result<usize> {
        let list = gateway.get(&format!("/compat/001/messages?tenant_id={tenant}")).await?;
        Ok(list["messages"].as_array().map_or(0, Vec::len))
    };
    eventually("the message of the default tenant is gone", async || {
        Ok((count("default").await? == 0).then_some(()))
    })
    .await?;
    assert_eq!(count("own").await?, 1, "it keeps its own for a week");
    Ok(())
}
