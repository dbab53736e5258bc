//! One table of programs that send mail, and what must become of it. Each sends what it sends by default, not
//! what we would like; all of them to one gateway, at once, and one sink gets what leaves it.
//!
//! A program's script is in the folder of this name. It gets `HOST`, `PORT` and `KEY` of the SMTP door, `URL`
//! of the HTTP door, and `DIR`, a folder of its own. Its mails are known by their subjects.

pub mod lettre;
mod programs;

use std::{collections::BTreeMap, process::Output, sync::Arc};

use anyhow::{Context, ensure};
use futures::future::join_all;
use postway_e2e::{Gateway, Opened, PATIENCE, eventually, text};
use postway_testkit::{ClientScript, Dkimpy, HttpSource, MailClients, ReceivedMail, SmtpSink, SourceReply};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::programs::{ClientMail, ClientRun, KeptPart, PROGRAMS};
use ClientScript::{Node, Python};

/// Those that verify calls to webhooks.
const VERIFIERS: &[(&str, ClientScript)] = &[
    ("svix and standardwebhooks for Python", Python(include_str!("client_matrix/webhooks.py"))),
    ("svix and standardwebhooks for Node", Node(include_str!("client_matrix/webhooks.mjs"))),
];

/// The gateway that they all send to.
struct Matrix {
    gateway: Gateway,
    sink: SmtpSink,
    clients: Arc<MailClients>,
    env: Vec<(&'static str, String)>,
    /// The record by which the signature of `example.com` verifies.
    dkim_record: String,
    _folder: TempDir,
}

impl Matrix {
    async fn set() -> anyhow::Result<Self> {
        let sink = SmtpSink::start().await;
        let env = [
            ("POSTWAY_SMTP_LISTEN", "127.0.0.1:0"),
            ("POSTWAY_SMTP_EHLO_NAME", "mx.example"),
            ("POSTWAY_COMPAT_ROOT", "postmark"),
        ];
        let gateway = Gateway::start_with(&env).await?;
        gateway.relay_with(sink.port(), json!({"max_connections": 8})).await?;
        gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
        let key = gateway.post("/v1/tenants/default/keys", json!({"scopes": ["send", "read"]})).await?;
        let words = "taking mail over SMTP address=127.0.0.1:";
        let port = eventually("a word of where it takes mail", async || {
            let log = gateway.log();
            let said = log.split(words).nth(1).and_then(|rest| rest.split_whitespace().next());
            Ok(said.map(str::to_owned))
        });
        let port = port.await?;
        let folder = tempfile::tempdir()?;
        let private =
            openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "").await?;
        let public = openssl(&["pkey", "-pubout"], &private).await?;
        let public: String = public.lines().filter(|line| !line.starts_with("-----")).collect();
        let env = vec![
            ("HOST", "127.0.0.1".to_owned()),
            ("PORT", port),
            ("KEY", text(&key, "key").to_owned()),
            ("URL", gateway.url()),
            ("DIR", folder.path().to_string_lossy().into_owned()),
            ("DKIM_KEY", private),
        ];
        let clients = Arc::new(tokio::task::spawn_blocking(MailClients::installed).await?);
        let dkim_record = format!("v=DKIM1; k=rsa; p={public}");
        Ok(Self { gateway, sink, clients, env, dkim_record, _folder: folder })
    }

    async fn run_program(&self, name: &str, run: ClientRun) -> Result<String, String> {
        let send = match run {
            ClientRun::Script(script) => return self.run(name, script, &[]).await,
            ClientRun::Library(send) => send,
        };
        let value = |wanted: &str| {
            let found = self.env.iter().find(|(name, _)| *name == wanted);
            found.map_or_else(String::new, |(_, value)| value.clone())
        };
        let (host, port, key) = (value("HOST"), value("PORT"), value("KEY"));
        let sent = tokio::task::spawn_blocking(move || send(&host, port.parse()?, &key)).await;
        sent.map_err(|fault| format!("{name}: {fault}"))?.map_err(|fault| format!("{name}: {fault:#}"))
    }

    async fn run(&self, name: &str, script: ClientScript, more: &[(&str, &str)]) -> Result<String, String> {
        let own = self.env.iter().map(|(name, value)| (*name, value.as_str()));
        let env: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        let Output { status, stdout, stderr } = self.clients.run(script, &env).await;
        let printed = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if status.success() { Ok(printed) } else { Err(format!("{name}: {status}\n{printed}")) }
    }
}

async fn openssl(args: &[&str], input: &str) -> anyhow::Result<String> {
    use tokio::io::AsyncWriteExt;
    let mut command = tokio::process::Command::new("openssl");
    command.args(args).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::null()).spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    ensure!(output.status.success(), "openssl {args:?}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_sends_what_it_sends_by_default() -> anyhow::Result<()> {
    let matrix = Matrix::set().await?;
    let runs = PROGRAMS.iter().map(|program| matrix.run_program(program.name, program.run));
    let mut faults = Vec::new();
    for (program, ran) in PROGRAMS.iter().zip(join_all(runs).await) {
        match ran {
            Ok(printed) if printed.contains(program.prints) => {}
            Ok(printed) => faults.push(format!("{}: no {:?} in\n{printed}", program.name, program.prints)),
            Err(fault) => faults.push(fault),
        }
    }
    matrix.gateway.wait_until_settled(PATIENCE).await?;
    let mails = matrix.sink.mails();
    let mut dkimpy = tokio::task::spawn_blocking(Dkimpy::start).await?;
    for (program, expected) in PROGRAMS.iter().flat_map(|one| one.mails.iter().map(move |mail| (one, mail))) {
        // Some write even such subjects in encoded words.
        let is_named =
            |mail: &&ReceivedMail| Opened::of(mail).is_ok_and(|mail| mail.subject == expected.subject);
        let named: Vec<&ReceivedMail> = mails.iter().filter(is_named).collect();
        let [mail] = named[..] else {
            faults.push(format!("{}: {} × {}", program.name, named.len(), expected.subject));
            continue;
        };
        if let Err(fault) = check(expected, mail, &matrix.dkim_record, &mut dkimpy) {
            faults.push(format!("{}, {}: {fault:#}", program.name, expected.subject));
        }
    }
    let expected: usize = PROGRAMS.iter().map(|program| program.mails.len()).sum();
    if mails.len() != expected {
        faults.push(format!("{} mails came, not {expected}", mails.len()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    Ok(())
}

/// Holds a mail that came against what must come.
fn check(
    expected: &ClientMail,
    mail: &ReceivedMail,
    record: &str,
    dkimpy: &mut Dkimpy,
) -> anyhow::Result<()> {
    let mut recipients: Vec<&str> = mail.recipients.iter().map(String::as_str).collect();
    recipients.sort_unstable();
    ensure!(recipients == expected.recipients, "it came to {recipients:?}");
    ensure!(mail.postway_id.is_some(), "it is not marked as ours");
    let raw = String::from_utf8_lossy(&mail.raw).into_owned();
    let opened = Opened::of(mail)?;
    ensure!(opened.text.contains(expected.text), "its text is {:?}\n{raw}", opened.text);
    ensure!(!raw.replace("\r\n", "").contains(['\r', '\n']), "it has bare line ends");
    for kept in expected.keeps {
        match *kept {
            KeptPart::MessageId(id) => {
                let found = mail.message_id.as_deref().unwrap_or_default();
                ensure!(found.trim_matches(['<', '>']) == id, "its Message-ID is {found}");
            }
            KeptPart::Signature => {
                let verdict = dkimpy.verify(&mail.raw, &[("matrix._domainkey.example.com.", record)]);
                ensure!(verdict.is_ok(), "{verdict:?}\n{raw}");
            }
            KeptPart::Part(kind) => {
                ensure!(raw.contains(&format!("Content-Type: {kind}")), "no {kind} in\n{raw}")
            }
            KeptPart::Html(html) => ensure!(opened.html.contains(html), "its html is {:?}", opened.html),
            KeptPart::Header(name, value) => {
                let found = mail.header(name).unwrap_or_default();
                ensure!(found.contains(value), "{name}: {found}");
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_library_verifies_a_call_and_refuses_another_body() -> anyhow::Result<()> {
    const HOOK: &str = "/hook";
    let matrix = Matrix::set().await?;
    let receiver = HttpSource::start().await;
    receiver.serve(HOOK, SourceReply::status(200));
    let hook = json!({"url": receiver.url(HOOK), "events": ["email.sent"]});
    let hook = matrix.gateway.post("/v1/webhooks", hook).await?;
    let mail = json!({"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"});
    matrix.gateway.send(mail).await?;
    receiver.wait_for(1, PATIENCE).await;
    let call = receiver.requests().into_iter().next().context("no call")?;
    let names = ["id", "timestamp", "signature"];
    let names = names.iter().flat_map(|name| [format!("webhook-{name}"), format!("svix-{name}")]);
    let headers: BTreeMap<String, &str> =
        names.filter_map(|name| Some((name.clone(), call.header(&name)?))).collect();
    let body = String::from_utf8(call.body.to_vec())?;
    let call: Value = json!({"headers": headers, "body": body});
    let (call, secret) = (call.to_string(), text(&hook, "secret").to_owned());
    let env = [("CALL", call.as_str()), ("SECRET", secret.as_str())];
    let runs = VERIFIERS.iter().map(|(name, script)| matrix.run(name, *script, &env));
    let faults: Vec<String> = join_all(runs).await.into_iter().filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    Ok(())
}
