//! Settings as files: applied, applied again, changed, exported to another gateway, and what must never be deleted.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, Ran, text};
use serde_json::{Value, json};

const FILES: &[(&str, &str)] = &[
    (
        "acme/tenant.toml",
        "name = \"Acme\"\nweight = 50\ndefault_account = \"relay-1\"\n[daily_quota]\nmessages = 1000\n",
    ),
    (
        "acme/accounts/relay-1.toml",
        "kind = \"smtp\"\nhost = \"smtp.example.com\"\nport = 587\ntls = \"starttls\"\nusername = \"shop\"\n\
         password_file = \"../../relay.pw\"\nfallback = \"spare\"\n[limits]\nper_minute = 60\n",
    ),
    (
        "acme/accounts/spare.toml",
        "kind = \"smtp\"\nhost = \"spare.example.com\"\nport = 25\ntls = \"starttls\"\n",
    ),
    (
        "acme/routes/news.toml",
        "description = \"what can wait\"\naccounts = [{ account = \"spare\", weight = 1 }, { account = \"relay-1\", weight = 3 }]\n\
         [match]\ntags = [\"news\"]\n",
    ),
    ("acme/templates/welcome.toml", "subject = \"Hello {{ name }}\"\ntext = \"Hi {{ name }}\"\n"),
    (
        "acme/webhooks/crm.toml",
        "url = \"https://hooks.example.com/mail\"\nevents = [\"email.sent\"]\nsecret_file = \"../../crm.secret\"\n",
    ),
    (
        "acme/mailboxes/support.toml",
        "host = \"imap.example.com\"\nport = 993\ntls = \"implicit\"\nusername = \"support\"\n\
         password_env = \"SUPPORT_PASSWORD\"\nroles = [\"forward\"]\n",
    ),
    ("acme/streams/news.toml", "name = \"News\"\n"),
    (
        "acme/keys/shop.toml",
        "scopes = [\"send\"]\nallow_ips = [\"127.0.0.0/8\"]\nkey_file = \"../../shop.key\"\n",
    ),
    ("relay.pw", "correct horse\n"),
];
const PASSWORD: (&str, &str) = ("SUPPORT_PASSWORD", "battery staple");

fn write(folder: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("it has a folder")?)?;
        fs::write(path, content)?;
    }
    Ok(())
}

async fn run(gateway: &Gateway, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<Ran> {
    let url = gateway.url();
    gateway.run(args, &[&[("POSTWAY_URL", url.as_str()), PASSWORD], env].concat(), b"").await
}

async fn apply(gateway: &Gateway, folder: &Path, more: &[&str]) -> anyhow::Result<Value> {
    let path = folder.to_string_lossy().into_owned();
    let ran = run(gateway, &[&["--json", "apply", &path], more].concat(), &[]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(serde_json::from_str(&ran.out)?)
}

fn deeds(answer: &Value) -> Vec<String> {
    let changes = answer["changes"].as_array().into_iter().flatten();
    changes.map(|change| format!("{} {}", text(change, "deed"), text(change, "what"))).collect()
}

async fn of_acme(gateway: &Gateway, path: &str) -> anyhow::Result<Value> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request = client.get(format!("{}{path}", gateway.url())).bearer_auth(gateway.key());
    Ok(request.header("X-Tenant", "acme").send().await?.json().await?)
}

#[tokio::test]
async fn a_folder_is_applied_once_and_again_without_a_change() -> anyhow::Result<()> {
    let (gateway, folder) = (Gateway::start().await?, tempfile::tempdir()?);
    write(folder.path(), FILES)?;
    let planned = apply(&gateway, folder.path(), &["--dry-run"]).await?;
    ensure!(deeds(&planned).contains(&"create acme/accounts/relay-1".to_owned()), "{planned}");
    ensure!(
        of_acme(&gateway, "/v1/accounts").await?["error"]["code"] == "not_found",
        "a dry run does nothing"
    );
    let applied = apply(&gateway, folder.path(), &[]).await?;
    ensure!(deeds(&applied) == deeds(&planned), "{applied} {planned}");
    let account = of_acme(&gateway, "/v1/accounts/relay-1").await?;
    ensure!(account["password_set"] == true && account["limits"]["per_minute"] == 60, "{account}");
    let tenant = gateway.get("/v1/tenants/acme").await?;
    ensure!(tenant["default_account"] == "relay-1" && tenant["daily_quota"]["messages"] == 1000, "{tenant}");
    let route = of_acme(&gateway, "/v1/routes/news").await?;
    ensure!(route["accounts"][1]["weight"] == 3 && route["match"]["tags"] == json!(["news"]), "{route}");
    let key = fs::read_to_string(folder.path().join("shop.key"))?;
    ensure!(
        key.starts_with("pw_") && !fs::read_to_string(folder.path().join("crm.secret"))?.trim().is_empty()
    );

    let again = apply(&gateway, folder.path(), &[]).await?;
    ensure!(deeds(&again).is_empty(), "{again}");

    // One line changes one field, and the rest stays.
    let relay = fs::read_to_string(folder.path().join("acme/accounts/relay-1.toml"))?.replace("60", "90");
    write(folder.path(), &[("acme/accounts/relay-1.toml", &relay)])?;
    let changed = apply(&gateway, folder.path(), &[]).await?;
    ensure!(deeds(&changed) == ["change acme/accounts/relay-1"], "{changed}");
    ensure!(changed["changes"][0]["fields"] == json!(["limits.per_minute", "password"]), "{changed}");
    // What was made by hand stays until its kind is named, and then goes.
    gateway
        .run(
            &["streams", "create", "extra"],
            &[("POSTWAY_URL", &gateway.url()), ("POSTWAY_TENANT", "acme")],
            b"",
        )
        .await?;
    ensure!(deeds(&apply(&gateway, folder.path(), &[]).await?).is_empty());
    let deleted = apply(&gateway, folder.path(), &["--delete", "streams,accounts"]).await?;
    ensure!(deeds(&deleted) == ["delete acme/streams/extra"], "the sandbox stays: {deleted}");

    // A mistake is found before anything is done.
    write(
        folder.path(),
        &[("acme/streams/second.toml", "name = \"x\""), ("acme/rules/r.toml", "mailbox = ")],
    )?;
    let path = folder.path().to_string_lossy().into_owned();
    let ran = run(&gateway, &["apply", &path], &[]).await?;
    ensure!(ran.code == Some(2) && ran.err.contains("rules/r.toml"), "{ran:?}");
    ensure!(of_acme(&gateway, "/v1/streams/second").await?["error"]["code"] == "not_found");
    Ok(())
}

#[tokio::test]
async fn what_is_exported_applies_elsewhere_and_an_interrupted_run_is_repeated() -> anyhow::Result<()> {
    let (gateway, folder, exported) = (Gateway::start().await?, tempfile::tempdir()?, tempfile::tempdir()?);
    write(folder.path(), FILES)?;
    apply(&gateway, folder.path(), &[]).await?;
    let path = exported.path().to_string_lossy().into_owned();
    let ran = run(&gateway, &["--json", "export", &path], &[]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let relay = fs::read_to_string(exported.path().join("acme/accounts/relay-1.toml"))?;
    ensure!(relay.contains("password_env = \"POSTWAY_SECRET_ACME_ACCOUNTS_RELAY_1_PASSWORD\""), "{relay}");
    ensure!(!relay.contains("correct horse") && !relay.contains("version"), "{relay}");
    let route = fs::read_to_string(exported.path().join("acme/routes/news.toml"))?;
    ensure!(route.contains("spare") && !route.contains("missing"), "{route}");
    let secrets = [
        ("POSTWAY_SECRET_ACME_ACCOUNTS_RELAY_1_PASSWORD", "correct horse"),
        ("POSTWAY_SECRET_ACME_MAILBOXES_SUPPORT_PASSWORD", "battery staple"),
    ];
    // To the server that it came from it changes nothing.
    let ran = run(&gateway, &["--json", "apply", &path], &secrets).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    ensure!(deeds(&serde_json::from_str(&ran.out)?).is_empty(), "{}", ran.out);
    // Elsewhere a run that is killed in the middle is run again.
    let mut other = Gateway::start().await?;
    let broken = exported.path().join("acme/mailboxes/broken.toml");
    fs::write(&broken, "host = \"imap.example.com\"\nport = 0\nusername = \"x\"\n")?;
    let ran = run(&other, &["apply", &path], &secrets).await?;
    ensure!(ran.code == Some(4) && ran.err.contains("acme/mailboxes/broken"), "{ran:?}");
    other.kill().await?;
    other.launch(&[]).await?;
    fs::remove_file(&broken)?;
    let ran = run(&other, &["--json", "apply", &path], &secrets).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    ensure!(
        deeds(&serde_json::from_str(&ran.out)?).contains(&"create acme/keys/shop".to_owned()),
        "{}",
        ran.out
    );
    let ran = run(&other, &["--json", "apply", &path], &secrets).await?;
    ensure!(deeds(&serde_json::from_str(&ran.out)?).is_empty(), "{}", ran.out);
    Ok(())
}

#[tokio::test]
async fn the_way_in_is_never_deleted() -> anyhow::Result<()> {
    let (gateway, folder) = (Gateway::start().await?, tempfile::tempdir()?);
    let made = gateway.post("/v1/tenants/default/keys", json!({"name": "by-hand"})).await?;
    write(folder.path(), &[("default/streams/news.toml", "name = \"News\"\n")])?;
    let path = folder.path().to_string_lossy().into_owned();
    // A tenant's key may not manage keys at all, and the admin key is no key of a tenant.
    let key = text(&made, "key").to_owned();
    let ran = run(&gateway, &["apply", &path, "--delete", "keys"], &[("POSTWAY_API_KEY", &key)]).await?;
    ensure!(ran.code == Some(4), "{ran:?}");
    ensure!(
        of_default(&gateway, "/v1/streams/news").await?["error"]["code"] == "not_found",
        "nothing was done"
    );
    let applied = apply(&gateway, folder.path(), &["--delete", "keys"]).await?;
    ensure!(deeds(&applied) == ["create default/streams/news", "delete default/keys/by-hand"], "{applied}");
    ensure!(gateway.get("/v1/tenants").await?["data"].as_array().is_some_and(|tenants| !tenants.is_empty()));
    Ok(())
}

async fn of_default(gateway: &Gateway, path: &str) -> anyhow::Result<Value> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    Ok(client.get(format!("{}{path}", gateway.url())).bearer_auth(gateway.key()).send().await?.json().await?)
}
