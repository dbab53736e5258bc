//! Settings as files, with everything that can be set: what was applied needs no change, however it was written,
//! and what is exported is the same on another gateway.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, Ran};
use serde_json::{Value, json};

/// Every kind, and what people write in more than one way: times, hosts, networks, domains outside ASCII.
const FILES: &[(&str, &str)] = &[
    (
        "acme/tenant.toml",
        r#"
        name = "Acme Ltd"
        weight = 250
        default_account = "relay"
        report_retention_seconds = 86400
        unreported_retention_days = 30
        callback_form = "event"
        bounce_domain = "bounces.müller.example"
        return_path = "bounces@example.com"
        default_from = "Acme <mail@acme.example>"
        feedback_id = "acme-mail"
        auto_submitted = true
        id_header = "X-Acme-Id"
        on_doubt = "hold"
        allowed_senders = ["Example.com", "*.Example.com"]
        bind_reply_to = true
        virus_policy = "closed"
        guard_content = true
        daily_quota = { messages = 1000, bytes = 1000000, recipients = 5000 }
        content = { subject_chars = 200, html_bytes = 100000, message_bytes = 200000, html_required = false, auto_text = true }
        large_files = { policy = "rewrite", above_bytes = 1000000, link_days = 7 }
        client_sync = { url = "https://app.example.com", path = "/reports", auth = { type = "bearer", token_env = "SECRET" } }
        attachment_endpoint = { url = "https://app.example.com", path = "/files", auth = { type = "basic", username = "u", password_env = "SECRET" } }
        "#,
    ),
    (
        "acme/accounts/relay.toml",
        r#"
        kind = "smtp"
        host = "SMTP.example.com"
        port = 587
        tls = "starttls"
        username = "shop"
        password_env = "SECRET"
        fallback = "ses"
        max_connections = 7
        return_path = "relay@example.com"
        on_doubt = "hold"
        limits = { per_minute = 60, per_hour = 600, per_day = 6000, behavior = "reject" }
        warm_up = { from = 2030-01-31T09:00:00+01:00, per_day = [50, 100] }
        destinations = { "*" = { connections = 5, per_second = 2 }, "gmail.com" = { connections = 3 } }
        retry = { delays_s = [1, 60], jitter = 0.5 }
        "#,
    ),
    (
        "acme/accounts/ses.toml",
        "kind = \"ses\"\nregion = \"eu-west-1\"\naccess_key_id = \"AKIAEXAMPLE\"\nsecret_access_key_env = \"SECRET\"\n\
         configuration_set = \"set\"\n",
    ),
    (
        "acme/accounts/graph.toml",
        r#"
        kind = "graph"
        username = "shop@contoso.com"
        oauth = { preset = "microsoft", grant = "client_credentials", client_id = "c", client_secret_env = "SECRET", directory = "contoso.onmicrosoft.com" }
        "#,
    ),
    (
        "acme/accounts/postmark.toml",
        "kind = \"postmark\"\napi_key_env = \"SECRET\"\nmessage_stream = \"outbound\"\n",
    ),
    ("acme/accounts/capture.toml", "kind = \"sandbox\"\nlimits = { per_minute = 9 }\n"),
    (
        "acme/routes/news.toml",
        r#"
        description = "what can wait"
        accounts = [{ account = "ses" }, { account = "relay", weight = 3 }]
        match = { tags = ["news"], sender_domains = ["Example.com"], priorities = ["low"], recipient_domains = ["müller.example"] }
        "#,
    ),
    ("acme/routes/rest.toml", "position = 20\nactive = false\naccounts = [{ account = \"relay\" }]\n"),
    (
        "acme/templates/welcome.toml",
        "subject = \"Hello {{ name }}\"\ntext = \"Hi {{ name }}\"\nhtml = \"<p>Hi {{ name }}</p>\"\n",
    ),
    (
        "acme/webhooks/crm.toml",
        "url = \"https://Hooks.example.com/mail\"\nevents = [\"email.sent\", \"email.failed\"]\nform = \"resend\"\n\
         description = \"the shop\"\nactive = false\nsecret_file = \"../../crm.secret\"\n",
    ),
    (
        "acme/mailboxes/support.toml",
        r#"
        host = "IMAP.example.com"
        port = 993
        tls = "implicit"
        username = "support"
        password_env = "SECRET"
        folder = "INBOX"
        roles = ["forward", "bounces"]
        active = false
        description = "the desk"
        poll_seconds = 120
        proxy = "socks5://proxy.example.com:1080"
        attempts_max = 5
        on_doubt = "hold"
        mail_bytes_max = 1000000
        authserv_id = "mx.example.com"
        start = { since = 2026-01-31T00:00:00Z }
        "#,
    ),
    (
        "acme/mailboxes/oauth.toml",
        r#"
        host = "outlook.example.com"
        username = "bounces@contoso.com"
        roles = "bounces"
        active = false
        oauth = { preset = "google", grant = "refresh_token", client_id = "c", client_secret_env = "SECRET", refresh_token_env = "SECRET" }
        "#,
    ),
    (
        "acme/rules/orders.toml",
        r#"
        mailbox = "support"
        position = 5
        match = [{ field = "subject", regex = "order (?<order>[0-9]+)" }, { field = "header", name = "X-Kind", value = { contains = "x" } }, { field = "size", max = 100000 }]
        actions = [{ do = "forward", to = "orders@example.com", as = "redirect", account = "relay" }, { do = "tag", tag = "o-{order}" }, { do = "webhook" }, { do = "mark_seen" }, { do = "move", folder = "Done" }, { do = "stop" }]
        follow_up = { every_hours = 24, times_max = 3 }
        "#,
    ),
    (
        "acme/streams/news.toml",
        "name = \"News\"\ndescription = \"weekly\"\nunsubscribe = true\nunsubscribe_mailto = \"Leave@example.com\"\n",
    ),
    (
        "acme/keys/shop.toml",
        r#"
        scopes = ["send", "read:content", "read"]
        allow_ips = ["10.1.2.3", "2001:DB8::/32", "10.0.0.0/8"]
        allowed_senders = ["Shop@Example.com", "müller.example"]
        allowed_recipients = ["test.example"]
        expires_at = 2030-01-31T09:00:00+01:00
        key_file = "../../shop.key"
        "#,
    ),
];
const SECRETS: &[&str] = &[
    "SECRET",
    "POSTWAY_SECRET_ACME_TENANT_CLIENT_SYNC_AUTH_TOKEN",
    "POSTWAY_SECRET_ACME_TENANT_ATTACHMENT_ENDPOINT_AUTH_PASSWORD",
    "POSTWAY_SECRET_ACME_ACCOUNTS_RELAY_PASSWORD",
    "POSTWAY_SECRET_ACME_ACCOUNTS_SES_SECRET_ACCESS_KEY",
    "POSTWAY_SECRET_ACME_ACCOUNTS_GRAPH_OAUTH_CLIENT_SECRET",
    "POSTWAY_SECRET_ACME_ACCOUNTS_POSTMARK_API_KEY",
    "POSTWAY_SECRET_ACME_MAILBOXES_SUPPORT_PASSWORD",
    "POSTWAY_SECRET_ACME_MAILBOXES_OAUTH_OAUTH_CLIENT_SECRET",
    "POSTWAY_SECRET_ACME_MAILBOXES_OAUTH_OAUTH_REFRESH_TOKEN",
];

fn write(folder: &Path) -> anyhow::Result<()> {
    for (name, content) in FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("it has a folder")?)?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Runs a command with `--json`.
async fn run(gateway: &Gateway, args: &[&str]) -> anyhow::Result<Ran> {
    let url = gateway.url();
    let secrets = SECRETS.iter().map(|name| (*name, "battery staple"));
    let env: Vec<(&str, &str)> = std::iter::once(("POSTWAY_URL", url.as_str())).chain(secrets).collect();
    gateway.run(&[&["--json"], args].concat(), &env, b"").await
}

/// The changes of an `apply`, with their fields.
async fn apply(gateway: &Gateway, folder: &Path) -> anyhow::Result<Vec<Value>> {
    let ran = run(gateway, &["apply", &folder.to_string_lossy()]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.out)?;
    Ok(answer["changes"].as_array().cloned().unwrap_or_default())
}

async fn export(gateway: &Gateway, folder: &Path) -> anyhow::Result<Value> {
    let ran = run(gateway, &["export", &folder.to_string_lossy()]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(serde_json::from_str(&ran.out)?)
}

/// The text of every file below a folder.
fn files_of(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

#[tokio::test]
async fn everything_that_can_be_set_is_applied_once_and_exported_as_it_is() -> anyhow::Result<()> {
    let (gateway, folder, exported) = (Gateway::start().await?, tempfile::tempdir()?, tempfile::tempdir()?);
    write(folder.path())?;
    let made = apply(&gateway, folder.path()).await?;
    ensure!(made.len() == FILES.len() + 1, "each file, and the default account at the end: {made:#?}");
    let again = apply(&gateway, folder.path()).await?;
    ensure!(again.is_empty(), "{again:#?}");

    // A key without a name, and a second one with the same name, have no file of their own.
    for name in [json!({}), json!({"name": "shop"})] {
        let mut key = json!({"scopes": ["send"]});
        key.as_object_mut().context("an object")?.extend(name.as_object().cloned().unwrap_or_default());
        gateway.post("/v1/tenants/acme/keys", key).await?;
    }
    let told = export(&gateway, exported.path()).await?;
    ensure!(told["left_out"].as_array().is_some_and(|left| left.len() == 2), "{told:#}");
    let text = files_of(exported.path())?;
    ensure!(text.iter().all(|(_, text)| !text.contains("battery")), "{text:#?}");
    let unchanged = apply(&gateway, exported.path()).await?;
    ensure!(unchanged.is_empty(), "{unchanged:#?}");

    let (other, second) = (Gateway::start().await?, tempfile::tempdir()?);
    apply(&other, exported.path()).await?;
    let unchanged = apply(&other, exported.path()).await?;
    ensure!(unchanged.is_empty(), "{unchanged:#?}");
    export(&other, second.path()).await?;
    let (one, two) = (files_of(exported.path())?, files_of(second.path())?);
    ensure!(one.len() == two.len(), "{one:#?} {two:#?}");
    for (one, two) in one.iter().zip(&two).filter(|(one, _)| !one.0.contains("webhooks")) {
        ensure!(one == two, "{one:#?} {two:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_field_is_removed_by_its_name() -> anyhow::Result<()> {
    let (gateway, folder) = (Gateway::start().await?, tempfile::tempdir()?);
    write(folder.path())?;
    apply(&gateway, folder.path()).await?;
    let relay = "acme/accounts/relay.toml";
    let without = "unset = [\"fallback\", \"limits.per_day\", \"warm_up\"]\nlimits = { per_minute = 60 }\n";
    fs::write(folder.path().join(relay), without)?;
    let changed = apply(&gateway, folder.path()).await?;
    ensure!(changed.len() == 1, "{changed:#?}");
    let mut fields: Vec<&str> =
        changed[0]["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    fields.sort_unstable();
    ensure!(fields == ["fallback", "limits.per_day", "warm_up"], "{changed:#?}");
    let again = apply(&gateway, folder.path()).await?;
    ensure!(again.is_empty(), "{again:#?}");
    Ok(())
}
