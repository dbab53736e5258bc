//! Our own clients in `clients/`: made of the OpenAPI document as it is served, packed as for their
//! registries, installed from that, and used against the real binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::Context;
use postway_client::{CallFailure, GatewayClient, OutgoingMail, SignedCall, verify_webhook};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, PATIENCE, text};
use postway_testkit::{ClientTools, HttpSource, SourceReply};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/own_clients");

async fn tools() -> anyhow::Result<ClientTools> {
    Ok(tokio::task::spawn_blocking(ClientTools::installed).await?)
}

/// A copy of a client's folder, so that what packing it leaves behind is not left in the sources.
fn copied(client: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder.join(client);
    let mut open = vec![(Path::new(CLIENTS).join(client), copy.clone())];
    while let Some((from, to)) = open.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => open.push((entry.path(), target)),
                false => drop(fs::copy(entry.path(), target)?),
            }
        }
    }
    Ok(copy)
}

/// The one file of a folder whose name ends like this.
fn packed(folder: &Path, ending: &str) -> anyhow::Result<PathBuf> {
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut found =
        files.iter().map(fs::DirEntry::path).filter(|path| path.to_string_lossy().ends_with(ending));
    found.next().with_context(|| format!("no file ending in {ending}"))
}

/// The Python package, built and installed; the folder that it was installed into.
async fn python_package(tools: &ClientTools, folder: &Path) -> anyhow::Result<PathBuf> {
    let (source, built, installed) =
        (copied("python", folder)?, folder.join("dist"), folder.join("installed"));
    let mut build = tools.python(&source);
    build.args(["-m", "build", "--no-isolation", "--outdir"]).arg(&built).arg(".");
    ClientTools::run(&mut build).await;
    packed(&built, ".tar.gz")?;
    let mut pip = tools.python(folder);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
        "--target",
    ]);
    ClientTools::run(pip.arg(&installed).arg(packed(&built, ".whl")?)).await;
    Ok(installed)
}

/// The Node package, packed and unpacked; the folder in which a program finds it.
async fn node_package(tools: &ClientTools, folder: &Path) -> anyhow::Result<PathBuf> {
    let source = copied("node", folder)?;
    ClientTools::run(tools.npm(folder).args(["pack", "--pack-destination"]).arg(folder).arg(&source)).await;
    let app = folder.join("app");
    let modules = app.join("node_modules");
    fs::create_dir_all(&modules)?;
    let mut unpack = tokio::process::Command::new("tar");
    ClientTools::run(unpack.arg("-xzf").arg(packed(folder, ".tgz")?).arg("-C").arg(&modules)).await;
    fs::rename(modules.join("package"), modules.join("postway"))?;
    // Its own sources must not be found in the place of what was packed.
    fs::rename(source.join("test"), app.join("test"))?;
    fs::remove_dir_all(source)?;
    Ok(app)
}

/// What a script says of a whole life of mails.
fn assert_told(told: &Value, name: &str) {
    assert_eq!(text(told, "sent"), "sent", "{told:#}");
    assert!(text(told, "raw").contains("Subject: Hello"), "{told:#}");
    assert_eq!((&told["own"], &told["batch"]), (&json!(true), &json!([7, 1])), "{told:#}");
    let pages: Vec<String> = (0..7).map(|number| format!("{name}-b{number}")).collect();
    assert_eq!(told["pages"], json!(pages));
    assert_eq!((&told["ready"], &told["recipients"]), (&json!(format!("{name}-raw")), &json!(2)));
    let refused = ["not_found", "conflict", "conflict", "validation_error", "unauthorized"];
    assert_eq!(told["refused"], json!(refused), "{told:#}");
    assert_eq!(text(told, "feed"), format!("{name}-1"));
    assert_eq!(told["template"], json!([name, [name]]));
    assert_eq!(told["suppressed"], 1);
    assert!(text(told, "exported").contains("gone@example.net"), "{told:#}");
    assert_eq!((&told["stats"], &told["unknown"]), (&json!(true), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_what_the_document_makes_of_them() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("openapi.json");
    fs::write(&document, gateway.get("/openapi.json").await?.to_string())?;
    let mut make = tools().await?.python(folder.path());
    ClientTools::run(make.arg(Path::new(CLIENTS).join("make")).arg("--check").arg(&document)).await;

    // And the Rust client's fields, which are written by hand.
    let document = gateway.get("/openapi.json").await?;
    let fields = |schema: &str| document["components"]["schemas"][schema]["properties"].clone();
    let mail = OutgoingMail {
        id: Some(String::new()),
        account: Some(String::new()),
        from: Some(String::new()),
        to: vec![String::new()],
        cc: vec![String::new()],
        bcc: vec![String::new()],
        reply_to: vec![String::new()],
        subject: Some(String::new()),
        text: Some(String::new()),
        html: Some(String::new()),
        send_at: Some(String::new()),
        expires_at: Some(String::new()),
        batch: Some(String::new()),
        tags: vec![String::new()],
        rest: serde_json::Map::new(),
    };
    let known = fields("MessageRequest");
    for field in serde_json::to_value(mail)?.as_object().context("a mail is an object")?.keys() {
        assert!(!known[field].is_null(), "the document has no `{field}` of a mail");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_is_packed_checked_and_used() -> anyhow::Result<()> {
    let (tools, folder) = (tools().await?, tempfile::tempdir()?);
    let installed = python_package(&tools, folder.path()).await?;
    let tests = Path::new(CLIENTS).join("python/tests");
    let mut unit = tools.python(folder.path());
    unit.env("PYTHONPATH", &installed).args(["-W", "error", "-m", "unittest", "discover"]);
    let live = Path::new(SCRIPTS).join("live.py");
    let mut types = tools.python(folder.path());
    types.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(folder.path().join("mypy"));
    types.env("MYPYPATH", &installed).args(["-p", "postway"]);
    let mut program = tools.python(folder.path());
    program.args(["-m", "mypy", "--cache-dir"]).arg(folder.path().join("mypy"));
    program.env("MYPYPATH", &installed).arg(&live);

    let gateway = Gateway::start().await?;
    let mut script = tools.python(folder.path());
    script.arg(&live).env("PYTHONPATH", &installed);
    script.env("POSTWAY_URL", gateway.url()).env("POSTWAY_API_KEY", gateway.key());
    let (_, told) = tokio::join!(ClientTools::run(unit.arg(tests)), ClientTools::run(&mut script));
    assert_told(&serde_json::from_str(&told)?, "python");
    ClientTools::run(&mut types).await;
    ClientTools::run(&mut program).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_client_is_packed_checked_and_used() -> anyhow::Result<()> {
    let (tools, folder) = (tools().await?, tempfile::tempdir()?);
    let app = node_package(&tools, folder.path()).await?;
    for name in ["live.mjs", "program.ts"] {
        fs::copy(Path::new(SCRIPTS).join(name), app.join(name))?;
    }
    std::os::unix::fs::symlink(tools.node_modules().join("@types"), app.join("node_modules/@types"))?;
    let mut unit = tools.node(&app);
    unit.args(["--test", "test/client.test.js"]);
    let mut compiler = tools.node(&app);
    compiler
        .arg(tools.node_modules().join("typescript/bin/tsc"))
        .args(["--noEmit", "--strict", "--types", "node"]);
    compiler.args(["--target", "es2022", "--module", "nodenext", "program.ts"]);

    let gateway = Gateway::start().await?;
    let mut script = tools.node(&app);
    script.arg("live.mjs").env("POSTWAY_URL", gateway.url()).env("POSTWAY_API_KEY", gateway.key());
    let (_, told) = tokio::join!(ClientTools::run(&mut unit), ClientTools::run(&mut script));
    assert_told(&serde_json::from_str(&told)?, "node");
    ClientTools::run(&mut compiler).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_for_frameworks_send_and_hear() -> anyhow::Result<()> {
    let (tools, folder) = (tools().await?, tempfile::tempdir()?);
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let reach = |command: &mut tokio::process::Command| {
        command.env("POSTWAY_URL", gateway.url()).env("POSTWAY_API_KEY", gateway.key());
    };

    let examples = Path::new(CLIENTS).join("python/examples");
    let paths = std::env::join_paths([Path::new(CLIENTS).join("python/src"), examples])?;
    let mut script = tools.python(folder.path());
    script.arg(Path::new(SCRIPTS).join("examples.py")).env("PYTHONPATH", paths);
    reach(&mut script);
    let told: Value = serde_json::from_str(&ClientTools::run(&mut script).await)?;
    assert_eq!(told["ordered"], json!([202, 202]), "{told:#}");
    assert_eq!(told["refused"], json!([422, ["to"]]), "{told:#}");
    assert_eq!((&told["hooks"], &told["seen"]), (&json!([204, 401]), &json!(["id-1"])), "{told:#}");
    assert_eq!(told["django"], json!([1, 1]), "{told:#}");

    let app = node_package(&tools, folder.path()).await?;
    fs::copy(Path::new(CLIENTS).join("node/examples/express.mjs"), app.join("express.mjs"))?;
    for package in fs::read_dir(tools.node_modules())? {
        let package = package?;
        std::os::unix::fs::symlink(package.path(), app.join("node_modules").join(package.file_name()))?;
    }
    let made = json!({"url": "http://127.0.0.1:9/", "events": ["*"], "active": false});
    let made = gateway.post("/v1/webhooks", made).await?;
    let mut server = tools.node(&app);
    reach(server.arg("express.mjs").env("PORT", "0").env("WEBHOOK_SECRET", text(&made, "secret")));
    let mut server = server.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("its output is piped")?).lines();
    let mut line = async || -> anyhow::Result<String> {
        let line = timeout(PATIENCE, lines.next_line()).await.context("it prints nothing more")??;
        line.context("it has ended")
    };
    let said = line().await?;
    let port = said.strip_prefix("listening on ").with_context(|| format!("it said {said}"))?;
    let url = format!("http://127.0.0.1:{port}");
    let hook = json!({"url": format!("{url}/hooks/mail"), "active": true});
    gateway.patch(&format!("/v1/webhooks/{}", text(&made, "id")), hook).await?;
    let order = async |number: u32, address: &str| {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let request = reqwest::Client::new().post(format!("{url}/orders/{number}"));
        let request = request.header(form[0].0, form[0].1).body(format!("email={address}"));
        request.send().await.map(|answer| answer.status().as_u16())
    };
    assert_eq!((order(9, "ada%40example.net").await?, order(10, "nobody").await?), (202, 422));
    while line().await? != "email.sent order-9" {}
    let forged = reqwest::Client::new().post(format!("{url}/hooks/mail")).body("{}").send().await?;
    assert_eq!(forged.status(), 401);
    gateway.wait_until_settled(PATIENCE).await?;
    // Order 7 twice is one mail; two of Django's; order 9.
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["sent"], 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_client_sends_lists_and_verifies() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let client = GatewayClient::new(&gateway.url(), &gateway.key())?;
    let source = HttpSource::start().await;
    source.serve("/hook", SourceReply::ok(""));
    let made =
        gateway.post("/v1/webhooks", json!({"url": source.url("/hook"), "events": ["email.sent"]})).await?;
    let mail = |id: Option<&str>| OutgoingMail {
        id: id.map(str::to_owned),
        from: Some("Shop <shop@example.com>".to_owned()),
        to: vec!["ada@example.net".to_owned()],
        subject: Some("Hello".to_owned()),
        text: Some("Hi".to_owned()),
        tags: vec!["rust".to_owned()],
        rest: [("metadata".to_owned(), json!({"order": 7}))].into_iter().collect(),
        ..OutgoingMail::default()
    };
    let receipt = client.send(&mail(Some("rust-1"))).await?;
    assert_eq!(client.send(&mail(Some("rust-1"))).await?, receipt);
    let own = client.send(&mail(None)).await?;
    assert_eq!(own.id, own.uid);
    let batch = client.send_batch(&[mail(Some("rust-2")), OutgoingMail::default()]).await?;
    assert_eq!((batch.accepted, batch.rejected, batch.results.len()), (1, 1, 2));
    assert!(batch.results[1].error.is_some() && batch.results[0].id.as_deref() == Some("rust-2"));
    let ready = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready\r\n\r\nHi\r\n".to_vec();
    assert_eq!(client.send_raw(ready, &[("id", "rust-raw"), ("tag", "rust")]).await?.id, "rust-raw");
    gateway.wait_until_settled(PATIENCE).await?;
    let message = client.message("rust-1").await?;
    assert!(message.has_ended() && message.status == "sent" && message.rest["metadata"]["order"] == 7);

    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("tag", "rust"), ("limit", "1")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.messages(&query).await?;
        found.extend(page.data.into_iter().map(|message| message.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 4, "{found:?}");
    let events = client.events(None, 0).await?;
    assert!(!events.data.is_empty() && !events.next_cursor.is_empty());

    let wrong = client.send(&OutgoingMail { to: vec!["nobody".to_owned()], ..mail(None) }).await;
    let wrong = wrong.expect_err("an address without @ is refused");
    let refusal = wrong.refusal().context("it is refused")?;
    assert_eq!((refusal.status, &*refusal.code), (422, "validation_error"));
    assert!(refusal.details[0].field.starts_with("to"), "{refusal:?}");
    let stranger =
        GatewayClient::new(&gateway.url(), "a-key-that-nobody-has-given-away")?.message("rust-1").await;
    assert_eq!(stranger.expect_err("a wrong key").refusal().map(|refusal| refusal.status), Some(401));
    for wrong in ["", ".", ".."] {
        let answer = client.message(wrong).await;
        assert!(matches!(answer, Err(CallFailure::WrongArgument(_))), "{wrong}: {answer:?}");
    }

    source.wait_for(1, PATIENCE).await;
    let call = source.requests().remove(0);
    let header = |name: &str| call.header(name).unwrap_or_default();
    let signed = SignedCall {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: &call.body,
    };
    let now = signed.timestamp.parse()?;
    verify_webhook(&[text(&made, "secret")], signed, now)?;
    let forged = SignedCall { body: b"{}", ..signed };
    verify_webhook(&[text(&made, "secret")], forged, now).expect_err("another body");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_client_repeats_what_sends_nothing_twice() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    let taken = json!({"id": "order-1", "uid": "0192", "status": "accepted"}).to_string();
    source.serve_in_turn(
        "/v1/messages",
        vec![SourceReply::status(503), SourceReply::status(500), SourceReply::ok(taken)],
    );
    let client = GatewayClient::new(&source.url("/"), "a-key-that-nobody-shows")?;
    assert_eq!(client.send(&OutgoingMail::default()).await?.id, "order-1");
    let keys: Vec<_> =
        source.requests().iter().map(|call| call.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys.len() == 3 && keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(!format!("{client:?}").contains("nobody-shows"));

    source.serve("/v1/messages/order-1/cancel", SourceReply::status(500));
    let failure = client.cancel("order-1").await.expect_err("it is refused");
    assert_eq!(failure.refusal().map(|refusal| refusal.status), Some(500));
    assert_eq!(source.requests().len(), 4, "nobody knows whether it was done");
    source.serve("/v1/messages", SourceReply::status(429).header("retry-after", "3600"));
    let failure = client.send(&OutgoingMail::default()).await.expect_err("it asks for too long a wait");
    assert!(failure.refusal().is_some_and(|refusal| refusal.retry_after.is_some()), "{failure:?}");
    assert_eq!(source.requests().len(), 5);
    Ok(())
}
