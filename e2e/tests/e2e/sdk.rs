//! The official SDKs of other services, as npm has them, with nothing changed but the base address and the
//! key.

use postway_e2e::{Gateway, Opened, PATIENCE, text};
use postway_testkit::{NodeJs, ReceivedMail, SmtpSink};
use serde_json::{Value, json};

/// A gateway with this door at `/` too, whose mail goes to the sink, and a key of its tenant.
async fn gateway_to(sink: &SmtpSink, root: &str) -> anyhow::Result<(Gateway, String)> {
    let gateway = Gateway::start_with(&[("POSTWAY_COMPAT_ROOT", root)]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    let scopes = json!({"name": "application", "scopes": ["send", "read"]});
    let key = gateway.post("/v1/tenants/default/keys", scopes).await?;
    Ok((gateway, text(&key, "key").to_owned()))
}

/// Runs a script that prints one JSON object.
async fn told(script: &str, env: &[(&str, &str)]) -> anyhow::Result<Value> {
    let node = tokio::task::spawn_blocking(NodeJs::installed).await?;
    Ok(serde_json::from_str(&node.say(script, env).await)?)
}

/// The mail with this subject.
#[track_caller]
fn subject<'a>(mails: &'a [ReceivedMail], subject: &str) -> &'a ReceivedMail {
    let found = mails.iter().find(|mail| mail.header("Subject").as_deref() == Some(subject));
    found.unwrap_or_else(|| panic!("no mail came with the subject {subject}"))
}

const RESEND: &str = r#"
    import { Resend } from "resend";
    const resend = new Resend(process.env.KEY);
    const mail = (subject) => ({ from: "Shop <shop@example.com>", to: "ada@example.net", subject, html: "<p>Hi</p>" });
    const told = {};

    const whole = {
        ...mail("whole"), to: ["ada@example.net", "bob@example.net"], cc: "cc@example.net", bcc: ["bcc@example.net"],
        replyTo: "help@example.com", text: "Hi", headers: { "X-Order": "7" }, tags: [{ name: "kind", value: "receipt" }],
        attachments: [{ filename: "a.bin", content: Buffer.from([0, 1, 254, 255]) }],
    };
    told.sent = await resend.emails.send(whole, { idempotencyKey: "order-7" });
    told.repeated = await resend.emails.send(whole, { idempotencyKey: "order-7" });
    told.conflict = await resend.emails.send(mail("other"), { idempotencyKey: "order-7" });
    told.shown = await resend.emails.get(told.sent.data.id);

    told.batch = await resend.batch.send([mail("first"), mail("second")]);
    const bad = { ...mail("bad"), to: "nobody" };
    told.strict = await resend.batch.send([mail("never"), bad]);
    told.permissive = await resend.batch.send([mail("third"), bad], { batchValidation: "permissive" });

    const later = await resend.emails.send({ ...mail("later"), scheduledAt: process.env.LATER });
    told.later = later;
    told.updated = await resend.emails.update({ id: later.data.id, scheduledAt: process.env.MUCH_LATER });
    told.waiting = await resend.emails.get(later.data.id);
    told.canceled = await resend.emails.cancel(later.data.id);
    told.afterwards = await resend.emails.get(later.data.id);
    told.tooLate = await resend.emails.update({ id: later.data.id, scheduledAt: process.env.LATER });
    told.list = await resend.emails.list({ limit: 2 });

    told.missing = await resend.emails.send({ ...mail("x"), from: undefined });
    told.from = await resend.emails.send({ ...mail("x"), from: "shop" });
    told.words = await resend.emails.send({ ...mail("x"), scheduledAt: "in a while" });
    const soon = await resend.emails.send({ ...mail("soon"), scheduledAt: "in 2 hours" });
    told.soon = await resend.emails.get(soon.data.id);
    await resend.emails.cancel(soon.data.id);
    told.unknown = await resend.emails.get("00000000-0000-7000-8000-000000000000");
    const { baseUrl } = resend;
    told.wrong = await new Resend("re_123", { baseUrl }).emails.send(mail("x"));
    told.root = await new Resend(process.env.KEY, { baseUrl: process.env.ROOT }).emails.get(told.sent.data.id);
    console.log(JSON.stringify(told));
"#;

#[tokio::test]
async fn the_sdk_of_resend_works_with_another_base_address() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink, "resend").await?;
    let now = gateway.now().await?;
    let [later, much_later] =
        [1, 2].map(|days| (now + jiff::SignedDuration::from_hours(24 * days)).to_string());
    let door = format!("{}/compat/resend", gateway.url());
    let root = gateway.url();
    let env = [
        ("RESEND_BASE_URL", &*door),
        ("ROOT", &*root),
        ("KEY", &*key),
        ("LATER", &*later),
        ("MUCH_LATER", &*much_later),
    ];
    let told = told(RESEND, &env).await?;
    let error = |call: &str| {
        let error = &told[call]["error"];
        assert!(error["message"].is_string() && told[call]["data"].is_null(), "{call}: {told:#}");
        (error["statusCode"].as_u64().unwrap_or_default(), text(error, "name").to_owned())
    };

    let id = text(&told["sent"]["data"], "id");
    assert!(!id.is_empty() && told["repeated"]["data"] == told["sent"]["data"], "{told:#}");
    let shown = &told["shown"]["data"];
    assert_eq!((text(shown, "id"), text(shown, "subject"), &shown["object"]), (id, "whole", &json!("email")));
    assert_eq!(shown["tags"], json!([{"name": "kind", "value": "receipt"}]));
    assert_eq!(told["root"]["data"]["id"], shown["id"]);
    assert_eq!(told["batch"]["data"]["data"].as_array().map(Vec::len), Some(2), "{told:#}");
    assert_eq!(told["permissive"]["data"]["data"].as_array().map(Vec::len), Some(1), "{told:#}");
    assert_eq!(told["permissive"]["data"]["errors"][0]["index"], 1);
    let waiting = &told["waiting"]["data"];
    assert_eq!((text(waiting, "last_event"), &told["updated"]["data"]["id"]), ("scheduled", &waiting["id"]));
    assert_eq!(text(waiting, "scheduled_at").parse::<jiff::Timestamp>()?, much_later.parse()?);
    assert_eq!(text(&told["soon"]["data"], "last_event"), "scheduled", "{told:#}");
    assert_eq!(told["canceled"]["data"], told["updated"]["data"]);
    assert_eq!(text(&told["afterwards"]["data"], "last_event"), "canceled");
    assert_eq!(
        (&told["list"]["data"]["object"], &told["list"]["data"]["has_more"]),
        (&json!("list"), &json!(true))
    );
    for (call, status, name) in [
        ("conflict", 409, "invalid_idempotent_request"),
        ("strict", 422, "validation_error"),
        ("tooLate", 422, "validation_error"),
        ("missing", 422, "missing_required_field"),
        ("from", 422, "invalid_from_address"),
        ("words", 422, "validation_error"),
        ("unknown", 404, "not_found"),
        ("wrong", 403, "invalid_api_key"),
    ] {
        assert_eq!(error(call), (status, name.to_owned()), "{call}");
    }

    let mails = sink.wait_for(4, PATIENCE).await;
    let whole = subject(&mails, "whole");
    assert_eq!(whole.recipients, ["ada@example.net", "bob@example.net", "cc@example.net", "bcc@example.net"]);
    assert_eq!(whole.postway_id.as_deref(), Some(id));
    for (name, value) in [("X-Order", "7"), ("Reply-To", "<help@example.com>"), ("Cc", "<cc@example.net>")] {
        assert_eq!(whole.header(name).as_deref(), Some(value));
    }
    assert!(whole.header("From").is_some_and(|from| from.contains("<shop@example.com>")));
    let opened = Opened::of(whole)?;
    assert_eq!((opened.text.trim(), opened.html.trim()), ("Hi", "<p>Hi</p>"));
    assert_eq!(opened.files, [("a.bin".to_owned(), vec![0, 1, 254, 255])]);
    for one in ["first", "second", "third"] {
        subject(&mails, one);
    }
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 4, "nothing that was refused, repeated or cancelled went out");
    Ok(())
}

const POSTMARK: &str = r#"
    import { ServerClient } from "postmark";
    const options = { requestHost: process.env.HOST, useHttps: false };
    const client = new ServerClient(process.env.KEY, options);
    const mail = (Subject) => ({ From: "Shop <shop@example.com>", To: "ada@example.net", Subject, TextBody: "Hi" });
    const told = {};
    const fails = async (call) => {
        try {
            return { none: await call() };
        } catch ({ name, message, code, statusCode, recipients, constructor }) {
            return { kind: constructor.name, message, code, statusCode, recipients };
        }
    };

    told.sent = await client.sendEmail({
        ...mail("whole"), To: '"Lovelace, Ada" <ada@example.net>, bob@example.net', Cc: "cc@example.net", Bcc: "bcc@example.net",
        HtmlBody: "<p>Hi</p>", ReplyTo: "help@example.com", Tag: "receipt", Metadata: { order: "7" }, MessageStream: "outbound",
        Headers: [{ Name: "X-Order", Value: "7" }], TrackOpens: true, TrackLinks: "HtmlOnly",
        Attachments: [{ Name: "a.bin", Content: Buffer.from([0, 1, 254, 255]).toString("base64"),
                        ContentType: "application/octet-stream", ContentID: "" }],
    });
    told.details = await client.getOutboundMessageDetails(told.sent.MessageID);
    told.dump = await client.getOutboundMessageDump(told.sent.MessageID);
    told.batch = await client.sendEmailBatch([mail("first"), { ...mail("bad"), To: "nobody" }, mail("second")]);
    const welcome = { From: "shop@example.com", To: "ada@example.net", TemplateAlias: "welcome", TemplateModel: { name: "Ada" } };
    told.template = await client.sendEmailWithTemplate(welcome);
    told.templates = await client.sendEmailBatchWithTemplates([{ ...welcome, TemplateModel: { name: "Bob" } },
                                                               { ...welcome, TemplateAlias: "none" }]);

    told.invalid = await fails(() => client.sendEmail({ ...mail("x"), From: "shop" }));
    told.inactive = await fails(() => client.sendEmail({ ...mail("x"), To: "gone@example.net" }));
    told.noTemplate = await fails(() => client.sendEmailWithTemplate({ ...welcome, TemplateAlias: "none" }));
    told.unknown = await fails(() => client.getOutboundMessageDetails("none"));
    told.wrong = await fails(() => new ServerClient("wrong", options).sendEmail(mail("x")));
    told.elsewhere = await fails(() => client.getInboundMessages());
    const some = "gone@example.net, dora@example.net";
    told.partly = await client.sendEmail({ ...mail("partly"), To: some });
    const root = new ServerClient(process.env.KEY, { ...options, requestHost: process.env.ROOT });
    told.root = await root.getOutboundMessageDump(told.sent.MessageID);
    console.log(JSON.stringify(told));
"#;

#[tokio::test]
async fn the_sdk_of_postmark_works_with_another_host() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink, "postmark").await?;
    let template =
        json!({"name": "welcome", "subject": "Hello {{ name }}", "html": "<p>Hello {{ name }}</p>"});
    gateway.post("/v1/templates", template).await?;
    gateway.post("/v1/suppressions", json!({"address": "gone@example.net", "reason": "manual"})).await?;
    let url = gateway.url();
    let root = url.trim_start_matches("http://");
    let host = format!("{root}/compat/postmark");
    let told = told(POSTMARK, &[("HOST", &host), ("ROOT", root), ("KEY", &key)]).await?;

    let sent = &told["sent"];
    assert_eq!((&sent["ErrorCode"], text(sent, "Message")), (&json!(0), "OK"), "{told:#}");
    assert_eq!(
        (text(sent, "Cc"), text(sent, "SubmittedAt").is_empty()),
        ("cc@example.net", false),
        "{told:#}"
    );
    let id = text(sent, "MessageID");
    let details = &told["details"];
    assert_eq!((text(details, "MessageID"), &details["Metadata"]), (id, &json!({"order": "7"})));
    assert_eq!((text(details, "Tag"), &details["Attachments"]), ("receipt", &json!(["a.bin"])));
    assert!(text(&told["dump"], "Body").contains("X-Order: 7"), "{told:#}");
    assert_eq!(told["root"], told["dump"]);
    let codes = |list: &str| {
        let answers = told[list].as_array().map_or(&[][..], Vec::as_slice);
        answers.iter().map(|one| one["ErrorCode"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!((codes("batch"), codes("templates")), (vec![0, 300, 0], vec![0, 1101]), "{told:#}");
    for (call, kind, status, code) in [
        ("invalid", "InvalidEmailRequestError", 422, 300),
        ("inactive", "InactiveRecipientsError", 422, 406),
        ("noTemplate", "ApiInputError", 422, 1101),
        ("unknown", "ApiInputError", 422, 701),
        ("wrong", "InvalidAPIKeyError", 401, 10),
        ("elsewhere", "PostmarkError", 404, 300),
    ] {
        let error = &told[call];
        let got = (text(error, "kind"), error["statusCode"].as_u64(), error["code"].as_u64());
        assert_eq!(got, (kind, Some(status), Some(code)), "{call}: {error:#}");
    }
    assert_eq!(told["inactive"]["recipients"], json!(["gone@example.net"]));
    let partly = text(&told["partly"], "Message");
    assert!(partly.contains("these inactive addresses: gone@example.net. Inactive recipients"), "{partly}");

    let mails = sink.wait_for(6, PATIENCE).await;
    let whole = subject(&mails, "whole");
    assert_eq!(whole.recipients, ["ada@example.net", "bob@example.net", "cc@example.net", "bcc@example.net"]);
    assert_eq!(whole.postway_id.as_deref(), Some(id));
    for (name, value) in [("X-Order", "7"), ("Reply-To", "<help@example.com>")] {
        assert_eq!(whole.header(name).as_deref(), Some(value));
    }
    let opened = Opened::of(whole)?;
    assert_eq!((opened.text.trim(), opened.html.trim()), ("Hi", "<p>Hi</p>"));
    assert_eq!(opened.files, [("a.bin".to_owned(), vec![0, 1, 254, 255])]);
    for one in ["first", "second", "Hello Ada", "Hello Bob"] {
        subject(&mails, one);
    }
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 6, "nothing that was refused went out");
    Ok(())
}
