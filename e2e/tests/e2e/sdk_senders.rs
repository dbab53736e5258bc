//! The official SDKs of SendGrid and Mailgun, for Node and Python, with nothing changed but the address and the
//! key: all that their users say of a mail, one mail for each recipient, trials, and what their errors hold.

use std::process::Output;

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, Opened, PATIENCE, text};
use postway_testkit::{
    ClientScript::{self, Node, Python},
    MailClients, ReceivedMail, SmtpSink,
};
use serde_json::{Value, json};

/// A gateway whose mail goes to the sink, and a key that may only send.
async fn gateway_to(sink: &SmtpSink, root: &str) -> anyhow::Result<(Gateway, String)> {
    let gateway = Gateway::start_with(&[("POSTWAY_COMPAT_ROOT", root)]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    let template = json!({"name": "d-order", "subject": "Order {{ n }}", "text": "Dear {{ name }}"});
    gateway.post("/v1/templates", template).await?;
    let key = gateway.post("/v1/tenants/default/keys", json!({"scopes": ["send"]})).await?;
    Ok((gateway, text(&key, "key").to_owned()))
}

/// Runs a script that prints one JSON object.
async fn told(gateway: &Gateway, key: &str, script: ClientScript) -> anyhow::Result<Value> {
    let clients = tokio::task::spawn_blocking(MailClients::installed).await?;
    let Output { status, stdout, stderr } =
        clients.run(script, &[("URL", &gateway.url()), ("KEY", key)]).await;
    ensure!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    Ok(serde_json::from_slice(&stdout)?)
}

fn subject<'a>(mails: &'a [ReceivedMail], subject: &str) -> anyhow::Result<(&'a ReceivedMail, Opened)> {
    for mail in mails {
        let opened = Opened::of(mail)?;
        if opened.subject == subject {
            return Ok((mail, opened));
        }
    }
    anyhow::bail!("no mail came with the subject {subject}")
}

const SENDGRID_NODE: &str = r#"
    import sendgrid from "@sendgrid/mail";
    // A key brings the address of SendGrid with it, so that ours comes after it.
    const signIn = (key) => {
        sendgrid.setApiKey(key);
        sendgrid.client.setDefaultRequest("baseUrl", `${process.env.URL}/compat/sendgrid`);
    };
    signIn(process.env.KEY);
    const told = {};
    const send = async (mail, multiple = false) => {
        try {
            const [{ statusCode, headers }] = await sendgrid.send({ from: "shop@example.com", ...mail }, multiple);
            return { statusCode, id: headers["x-message-id"] };
        } catch ({ code, response }) {
            return { statusCode: code, errors: response.body.errors };
        }
    };
    told.whole = await send({
        to: { email: "ada@example.net", name: "Lovelace, Ada" }, cc: "cc@example.net", bcc: ["bcc@example.net"],
        replyTo: "help@example.com", subject: "whole", text: "Grüße", html: "<p><img src='cid:logo'></p>",
        categories: ["receipt"], customArgs: { order: "7" }, headers: { "X-Order": "7" },
        attachments: [{ content: "aGk=", filename: "a.png", type: "image/png", disposition: "inline", content_id: "logo" }],
        trackingSettings: { clickTracking: { enable: true }, openTracking: { enable: false } },
    });
    told.each = await send({ to: ["ada@example.net", "bob@example.net"], subject: "each", text: "Hi" }, true);
    told.personal = await send({
        subject: "Hi {{name}}", text: "Dear {{name}}", substitutionWrappers: ["{{", "}}"],
        personalizations: [
            { to: "ada@example.net", substitutions: { name: "Ada" } }, { to: "bob@example.net", substitutions: { name: "Bob" } },
        ],
    });
    told.template = await send({ to: "ada@example.net", templateId: "d-order", dynamicTemplateData: { n: 7, name: "Ada" } });
    told.trial = await send({ to: "ada@example.net", subject: "trial", text: "Hi", mailSettings: { sandboxMode: { enable: true } } });
    told.bad = await send({ to: "ada", subject: "bad", text: "Hi" });
    told.footer = await send({ to: "ada@example.net", subject: "bad", text: "Hi", mailSettings: { footer: { enable: true, text: "x", html: "x" } } });
    signIn("SG.wrong");
    told.stranger = await send({ to: "ada@example.net", subject: "bad", text: "Hi" });
    console.log(JSON.stringify(told));
"#;

const SENDGRID_PYTHON: &str = r#"
import base64, json, os
from python_http_client.exceptions import BadRequestsError
from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Attachment, Category, CustomArg, Mail, To

# The door is at the root too.
client = SendGridAPIClient(os.environ["KEY"], host=os.environ["URL"])
mail = Mail("shop@example.com", [To("ada@example.net", "Ada", substitutions={"-n-": "1"}), To("bob@example.net", substitutions={"-n-": "2"})],
            "python -n-", "Hi", is_multiple=True)
mail.category = Category("receipt")
mail.custom_arg = CustomArg("order", "7")
mail.attachment = Attachment(base64.b64encode(b"a,b").decode(), "a.csv", "text/csv", "attachment")
told = {"sent": client.send(mail).status_code}
try:
    client.send(Mail("shop", "ada@example.net", "bad", "Hi"))
except BadRequestsError as error:
    told["bad"] = error.to_dict
print(json.dumps(told))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_of_sendgrid_send_what_they_send_there() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink, "sendgrid").await?;
    let node = told(&gateway, &key, Node(SENDGRID_NODE)).await?;
    let python = told(&gateway, &key, Python(SENDGRID_PYTHON)).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    let mails = sink.mails();

    for call in ["whole", "each", "personal", "template"] {
        assert_eq!(node[call]["statusCode"], 202, "{call}: {node:#}");
        let shown = gateway.get(&format!("/v1/messages/{}", text(&node[call], "id"))).await?;
        assert_eq!(text(&shown, "status"), "sent", "{call}: {shown:#}");
    }
    let (whole, opened) = subject(&mails, "whole")?;
    assert_eq!(whole.recipients.len(), 3);
    assert_eq!((whole.header("X-Order").as_deref(), opened.text.trim()), (Some("7"), "Grüße"));
    assert_eq!(whole.header("Reply-To").as_deref(), Some("<help@example.com>"));
    assert!(String::from_utf8_lossy(&whole.raw).contains("Content-ID: <logo>"));
    for name in ["Ada", "Bob"] {
        assert_eq!(subject(&mails, &format!("Hi {name}"))?.1.text.trim(), format!("Dear {name}"));
    }
    assert_eq!(subject(&mails, "Order 7")?.1.text.trim(), "Dear Ada");
    assert_eq!(node["trial"]["statusCode"], 200, "{node:#}");
    for (call, status, field) in [
        ("bad", 400, json!("personalizations.0.to.0.email")),
        ("footer", 400, json!("mail_settings.footer")),
        ("stranger", 401, Value::Null),
    ] {
        assert_eq!(
            (&node[call]["statusCode"], &node[call]["errors"][0]["field"]),
            (&json!(status), &field),
            "{node:#}"
        );
    }
    assert_eq!(
        (&python["sent"], &python["bad"]["errors"][0]["field"]),
        (&json!(202), &json!("from.email")),
        "{python:#}"
    );
    for (subject_line, to) in [("python 1", "ada@example.net"), ("python 2", "bob@example.net")] {
        assert_eq!(subject(&mails, subject_line)?.0.recipients, [to]);
    }
    assert_eq!(mails.len(), 8, "one each of whole, template; two each of the others");
    Ok(())
}

const MAILGUN_NODE: &str = r#"
    import FormData from "form-data";
    import Mailgun from "mailgun.js";
    const options = { username: "api", key: process.env.KEY, url: `${process.env.URL}/compat/mailgun` };
    const client = new Mailgun(FormData).client(options);
    const told = {};
    const send = async (mail, by = client) => {
        try {
            return await by.messages.create("mg.example.com", { from: "Shop <shop@example.com>", ...mail });
        } catch ({ status, details }) {
            return { status, details };
        }
    };
    told.whole = await send({
        to: "\"Lovelace, Ada\" <ada@example.net>", cc: "cc@example.net", bcc: "bcc@example.net", subject: "whole", text: "Grüße",
        html: "<p><img src='cid:logo.png'></p>", "o:tag": ["receipt", "eu"], "v:order": "7", "h:X-Order": "7",
        "h:Reply-To": "help@example.com", "o:tracking": true,
        attachment: { filename: "ä b.txt", data: Buffer.from("hello") }, inline: { filename: "logo.png", data: Buffer.from([0, 13, 10, 45, 45]) },
    });
    told.personal = await send({
        to: ["ada@example.net", "Bob <bob@example.net>"], subject: "Hi %recipient.name%", text: "Dear %recipient.name%",
        "recipient-variables": JSON.stringify({ "ada@example.net": { name: "Ada" }, "bob@example.net": { name: "Bob" } }),
    });
    told.template = await send({ to: "ada@example.net", template: "d-order", "t:variables": JSON.stringify({ n: 7, name: "Ada" }) });
    told.ready = await send({ to: "ada@example.net",
        message: "From: shop@example.com\r\nTo: list@example.net\r\nSubject: ready\r\nMessage-ID: <own-7@example.com>\r\n\r\nHi\r\n" });
    told.trial = await send({ to: "ada@example.net", subject: "trial", text: "Hi", "o:testmode": true });
    told.bad = await send({ to: "ada", subject: "bad", text: "Hi" });
    told.empty = await send({ to: "ada@example.net", subject: "bad" });
    told.stranger = await send({ to: "ada@example.net", subject: "bad", text: "Hi" }, new Mailgun(FormData).client({ ...options, key: "key-x" }));
    console.log(JSON.stringify(told));
"#;

const MAILGUN_PYTHON: &str = r#"
import json, os
from mailgun.client import Client

# The door is at the root too.
client = Client(auth=("api", os.environ["KEY"]), api_url=os.environ["URL"])
data = {"from": "shop@example.com", "to": ["ada@example.net", "bob@example.net"], "subject": "python", "text": "Hi", "o:tag": ["a", "b"]}
files = [("attachment", ("a.csv", b"a,b"))]
sent = client.messages.create(domain="mg.example.com", data=data, files=files)
bad = client.messages.create(domain="mg.example.com", data={**data, "to": "ada"})
print(json.dumps({"sent": sent.json(), "bad": [bad.status_code, bad.json()]}))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_of_mailgun_send_what_they_send_there() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink, "mailgun").await?;
    let node = told(&gateway, &key, Node(MAILGUN_NODE)).await?;
    let python = told(&gateway, &key, Python(MAILGUN_PYTHON)).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    let mails = sink.mails();

    let queued = |answer: &Value| {
        assert_eq!(answer["message"], "Queued. Thank you.", "{node:#}");
        text(answer, "id").trim_matches(['<', '>']).to_owned()
    };
    let (whole, opened) = subject(&mails, "whole")?;
    assert_eq!(
        whole.message_id.as_deref().map(|id| id.trim_matches(['<', '>'])),
        Some(&*queued(&node["whole"]))
    );
    assert_eq!(whole.recipients.len(), 3);
    assert_eq!((whole.header("X-Order").as_deref(), opened.text.trim()), (Some("7"), "Grüße"));
    assert_eq!(whole.header("Reply-To").as_deref(), Some("<help@example.com>"));
    let raw = String::from_utf8_lossy(&whole.raw).into_owned();
    assert!(
        raw.contains("Content-ID: <logo.png>") && raw.contains("aGVsbG8=") && raw.contains("AA0KLS0="),
        "{raw}"
    );
    let uid = whole.postway_id.clone().context("it is not marked as ours")?;
    let shown = gateway.get(&format!("/v1/messages/{uid}")).await?;
    assert_eq!((&shown["tags"], &shown["metadata"]), (&json!(["receipt", "eu"]), &json!({"order": "7"})));
    for (name, to) in [("Ada", "ada@example.net"), ("Bob", "bob@example.net")] {
        let (mail, opened) = subject(&mails, &format!("Hi {name}"))?;
        assert_eq!(
            (&mail.recipients[..], opened.text.trim()),
            (&[to.to_owned()][..], &*format!("Dear {name}"))
        );
    }
    queued(&node["template"]);
    assert_eq!(subject(&mails, "Order 7")?.1.text.trim(), "Dear Ada");
    assert_eq!(
        (queued(&node["ready"]), &subject(&mails, "ready")?.0.recipients[..]),
        ("own-7@example.com".to_owned(), &["ada@example.net".to_owned()][..])
    );
    queued(&node["trial"]);
    for (call, status, said) in [
        ("bad", 400, "to[0]: "),
        ("empty", 400, "Need at least one of"),
        ("stranger", 401, "Invalid private key"),
    ] {
        assert_eq!(node[call]["status"], status, "{node:#}");
        assert!(text(&node[call], "details").starts_with(said), "{call}: {node:#}");
    }
    queued(&python["sent"]);
    assert_eq!(python["bad"][0], 400, "{python:#}");
    assert_eq!(subject(&mails, "python")?.0.recipients.len(), 2);
    assert_eq!(mails.len(), 6, "the trial stays here");
    Ok(())
}
