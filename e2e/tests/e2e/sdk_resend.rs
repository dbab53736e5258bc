//! What applications do with Resend's SDKs besides sending: templates, attachments, lists and webhooks, in
//! Node and in Python.

use anyhow::Context;
use postway_e2e::{ALLOW_LOOPBACK, Gateway, Opened, PATIENCE, text};
use postway_testkit::{HttpSource, NodeJs, PythonClients, SmtpSink, SourceReply};
use serde_json::{Value, json};

/// A gateway whose mail goes to the sink, and a key of its tenant that may do all that the SDKs ask for.
async fn gateway_to(sink: &SmtpSink) -> anyhow::Result<(Gateway, String)> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    let scopes = json!({"name": "application", "scopes": ["send", "read", "manage"]});
    let key = gateway.post("/v1/tenants/default/keys", scopes).await?;
    Ok((gateway, text(&key, "key").to_owned()))
}

/// What came to a webhook first, as its receiver hands it to the SDK: body, id, time and signature.
async fn first_call(source: &HttpSource) -> anyhow::Result<[String; 4]> {
    source.wait_for(1, PATIENCE).await;
    let calls = source.requests();
    let call = calls.first().context("nobody called")?;
    let header = |name: &str| call.header(name).unwrap_or_default().to_owned();
    let body = String::from_utf8(call.body.to_vec())?;
    Ok([body, header("svix-id"), header("svix-timestamp"), header("svix-signature")])
}

const NODE: &str = r#"
    import { Resend } from "resend";
    const resend = new Resend(process.env.KEY);
    const mail = (subject) => ({ from: "Shop <shop@example.com>", to: "ada@example.net", subject, html: "<p>Hi <b>Ada</b></p>" });
    const told = {};
    told.hook = await resend.webhooks.create({ endpoint: process.env.HOOK, events: ["email.sent", "email.bounced", "email.opened"] });
    told.hooks = await resend.webhooks.list();
    told.hookShown = await resend.webhooks.get(told.hook.data.id);

    told.sent = await resend.emails.send({ ...mail("first"), scheduledAt: undefined,
        attachments: [{ content: Buffer.from("a,b"), contentType: "text/csv" }] });
    told.shown = await resend.emails.get(told.sent.data.id);
    told.files = await resend.emails.attachments.list({ emailId: told.sent.data.id });
    told.file = await resend.emails.attachments.get({ emailId: told.sent.data.id, id: told.files.data.data[0].id });
    told.bytes = await (await fetch(told.file.data.download_url)).text();
    const second = await resend.emails.send({ ...mail("second"), text: "", scheduledAt: "tomorrow at 9am" });
    told.second = await resend.emails.get(second.data.id);
    told.newer = await resend.emails.list({ before: told.sent.data.id });
    told.older = await resend.emails.list({ after: second.data.id });
    await resend.emails.cancel(second.data.id);

    const html = "<p>{{{PRODUCT}}} for {{{PRICE}}}</p>";
    told.made = await resend.templates.create({ name: "Order Confirmation", subject: "Your {{{PRODUCT}}}", html,
        variables: [{ key: "PRODUCT", type: "string" }, { key: "PRICE", type: "number", fallbackValue: 25 }] }).publish();
    told.template = await resend.templates.get(told.made.data.id);
    told.filled = await resend.emails.send({ from: "shop@example.com", to: "ada@example.net",
        template: { id: told.made.data.id, variables: { PRODUCT: "Tea" } } });
    told.templates = await resend.templates.list();
    told.changed = await resend.templates.update(told.made.data.id, { subject: "Other" });
    told.removed = await resend.templates.remove(told.made.data.id);
    told.metrics = await resend.get("/emails/metrics");
    told.domains = await resend.domains.list();
    console.log(JSON.stringify(told));
"#;

const NODE_VERIFIES: &str = r#"
    import { Resend } from "resend";
    const { KEY, PAYLOAD, ID, STAMP, SIGNATURE, SECRET } = process.env;
    const resend = new Resend(KEY);
    const headers = { id: ID, timestamp: STAMP, signature: SIGNATURE };
    const event = resend.webhooks.verify({ payload: PAYLOAD, headers, webhookSecret: SECRET });
    let refused = false;
    try {
        resend.webhooks.verify({ payload: PAYLOAD + " ", headers, webhookSecret: SECRET });
    } catch {
        refused = true;
    }
    console.log(JSON.stringify({ event, refused }));
"#;

#[tokio::test]
async fn the_sdk_for_node_manages_templates_attachments_and_webhooks() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink).await?;
    let source = HttpSource::start().await;
    source.serve("/hook", SourceReply::status(200));
    let node = tokio::task::spawn_blocking(NodeJs::installed).await?;
    let (door, hook) = (format!("{}/compat/resend", gateway.url()), source.url("/hook"));
    let told = node.say(NODE, &[("RESEND_BASE_URL", &*door), ("KEY", &*key), ("HOOK", &*hook)]).await;
    let told: Value = serde_json::from_str(&told)?;
    let data = |call: &str| {
        assert!(told[call]["error"].is_null(), "{call}: {told:#}");
        told[call]["data"].clone()
    };
    assert_eq!(data("hookShown")["events"], json!(["email.bounced", "email.opened", "email.sent"]));
    assert_eq!(data("hooks")["data"][0]["id"], data("hook")["id"]);
    assert_eq!(
        (text(&data("shown"), "text"), text(&data("shown"), "html")),
        ("Hi Ada", "<p>Hi <b>Ada</b></p>")
    );
    let file = data("file");
    assert_eq!(
        (text(&file, "filename"), &file["size"], &told["bytes"]),
        ("attachment.csv", &json!(3), &json!("a,b"))
    );
    let second = data("second");
    assert!(second["text"].is_null() && text(&second, "last_event") == "scheduled", "{second:#}");
    assert!(text(&second, "scheduled_at").contains("T09:00:00.000"), "{second:#}");
    assert_eq!(data("newer")["data"][0]["id"], second["id"]);
    assert_eq!(data("older")["data"][0]["id"], data("sent")["id"]);
    assert_eq!(text(&data("template"), "html"), "<p>{{{PRODUCT}}} for {{{PRICE}}}</p>");
    assert_eq!(data("templates")["data"][0]["id"], data("made")["id"]);
    assert_eq!(data("changed")["id"], data("made")["id"]);
    assert_eq!(data("removed")["deleted"], true);
    for call in ["metrics", "domains"] {
        let error = &told[call]["error"];
        assert_eq!(
            (text(error, "name"), &error["statusCode"]),
            ("not_found", &json!(404)),
            "{call}: {told:#}"
        );
    }

    let mails = sink.wait_for(2, PATIENCE).await;
    for mail in &mails {
        let opened = Opened::of(mail)?;
        match mail.header("Subject").as_deref() {
            Some("first") => assert_eq!(opened.text.trim(), "Hi Ada"),
            _ => assert_eq!(opened.html.trim(), "<p>Tea for 25</p>"),
        }
    }
    let [body, id, stamp, signature] = first_call(&source).await?;
    let hook = data("hook");
    let env = [
        ("KEY", &*key),
        ("PAYLOAD", &*body),
        ("ID", &*id),
        ("STAMP", &*stamp),
        ("SIGNATURE", &*signature),
        ("SECRET", text(&hook, "signing_secret")),
    ];
    let verified: Value = serde_json::from_str(&node.say(NODE_VERIFIES, &env).await)?;
    let event = &verified["event"];
    assert_eq!((text(event, "type"), &verified["refused"]), ("email.sent", &json!(true)), "{verified:#}");
    assert_eq!(event["data"]["to"], json!(["ada@example.net"]));
    let known = [&data("sent")["id"], &data("filled")["id"]].contains(&&event["data"]["email_id"]);
    assert!(known && event["created_at"].is_string(), "{verified:#}");
    Ok(())
}

const PYTHON: &str = r#"
import json, os, resend
resend.api_key, resend.api_url = os.environ["KEY"], os.environ["DOOR"]
mail = lambda subject, **more: {"from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": subject,
                                "html": "<p>Hi <b>Ada</b></p>", **more}
told = {}
hook = resend.Webhooks.create({"endpoint": os.environ["HOOK"], "events": ["email.sent"]})
told["secret"] = hook["signing_secret"]
sent = resend.Emails.send(mail("first", attachments=[{"content": list(b"a,b"), "content_type": "text/csv"}]),
                          {"idempotency_key": "k"})
told["sent"] = sent["id"]
told["shown"] = resend.Emails.get(sent["id"])["text"]
later = mail("later", scheduled_at="in 2 hours")
second = resend.Emails.send(later, {"idempotency_key": "later"})
told["again"] = resend.Emails.send(later, {"idempotency_key": "later"})["id"] == second["id"]
told["newer"] = [one["id"] for one in resend.Emails.list({"before": sent["id"]})["data"]] == [second["id"]]
resend.Emails.update({"id": second["id"], "scheduled_at": "tomorrow at 9am"})
resend.Emails.cancel(second["id"])
told["batch"] = len(resend.Batch.send([mail("second"), mail("third")])["data"])
files = resend.Emails.Attachments.list(email_id=sent["id"])["data"]
told["file"] = resend.Emails.Attachments.get(email_id=sent["id"], attachment_id=files[0]["id"])["filename"]
made = resend.Templates.create({"name": "hi", "subject": "Hi {{{NAME}}}", "html": "<p>{{{NAME}}}</p>",
                                "variables": [{"key": "NAME", "type": "string", "fallback_value": "you"}]})
told["template"] = resend.Templates.get(made["id"])["html"]
resend.Emails.send({"from": "shop@example.com", "to": "ada@example.net", "template": {"id": made["id"]}})
told["removed"] = resend.Templates.remove(made["id"])["deleted"]
def fails(call):
    try:
        return str(call())
    except Exception as error:
        return [type(error).__name__, str(getattr(error, "code", "")), str(error)]
told["missing"] = fails(lambda: resend.Emails.get("00000000-0000-7000-8000-000000000000"))
told["domains"] = fails(lambda: resend.Domains.list())
told["from"] = fails(lambda: resend.Emails.send({**mail("x"), "from": "shop"}))
print(json.dumps(told))
"#;

const PYTHON_VERIFIES: &str = r#"
import os, resend
e = os.environ
options = {"payload": e["PAYLOAD"], "webhook_secret": e["SECRET"],
           "headers": {"id": e["ID"], "timestamp": e["STAMP"], "signature": e["SIGNATURE"]}}
resend.Webhooks.verify(options)
try:
    resend.Webhooks.verify({**options, "payload": e["PAYLOAD"] + " "})
except Exception:
    print("verified")
"#;

#[tokio::test]
async fn the_sdk_for_python_sends_lists_and_verifies() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink).await?;
    let source = HttpSource::start().await;
    source.serve("/hook", SourceReply::status(200));
    let python = tokio::task::spawn_blocking(PythonClients::installed).await?;
    let (door, hook) = (format!("{}/compat/resend", gateway.url()), source.url("/hook"));
    let told = python.say(PYTHON, &[("DOOR", &*door), ("KEY", &*key), ("HOOK", &*hook)]).await;
    let told: Value = serde_json::from_str(&told)?;
    assert_eq!(
        (&told["again"], &told["newer"], &told["batch"]),
        (&json!(true), &json!(true), &json!(2)),
        "{told:#}"
    );
    assert_eq!((text(&told, "shown"), text(&told, "file")), ("Hi Ada", "attachment.csv"));
    assert_eq!((text(&told, "template"), &told["removed"]), ("<p>{{{NAME}}}</p>", &json!(true)));
    for (call, code) in [("missing", "404"), ("domains", "404"), ("from", "422")] {
        assert_eq!(told[call][1], code, "{call}: {told:#}");
    }
    let mails = sink.wait_for(4, PATIENCE).await;
    let mut subjects: Vec<_> = mails.iter().filter_map(|mail| mail.header("Subject")).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["Hi you", "first", "second", "third"]);
    let [body, id, stamp, signature] = first_call(&source).await?;
    let env = [
        ("PAYLOAD", &*body),
        ("ID", &*id),
        ("STAMP", &*stamp),
        ("SIGNATURE", &*signature),
        ("SECRET", text(&told, "secret")),
    ];
    assert_eq!(python.say(PYTHON_VERIFIES, &env).await.trim(), "verified");
    Ok(())
}
