//! What programs for Postmark do besides sending: the calls of the published integration tests of its npm
//! package, and the clients that Python has for it, with nothing changed but the address and the key.

use postway_e2e::{Gateway, PATIENCE, text};
use postway_testkit::{NodeJs, PythonClients, SmtpSink};
use serde_json::{Value, json};

/// A gateway with this door at `/` too, whose mail goes to the sink, and a key that may do all that a
/// tenant's may.
async fn gateway_to(sink: &SmtpSink) -> anyhow::Result<(Gateway, String)> {
    let gateway = Gateway::start_with(&[("POSTWAY_COMPAT_ROOT", "postmark")]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    let scopes = json!({"name": "application", "scopes": ["send", "read", "manage"]});
    let key = gateway.post("/v1/tenants/default/keys", scopes).await?;
    Ok((gateway, text(&key, "key").to_owned()))
}

const NPM: &str = r#"
    import * as postmark from "postmark";
    const client = new postmark.ServerClient(process.env.KEY, { requestHost: process.env.HOST, useHttps: false });
    const { CreateTemplateRequest, TemplateTypes, TemplatedMessage, Message, OutboundMessagesFilteringParameters } = postmark.Models;
    const told = {};
    const fails = async (call) => {
        try {
            return { none: await call() };
        } catch ({ message, code, statusCode, constructor }) {
            return { kind: constructor.name, message, code, statusCode };
        }
    };
    const standard = (name) => new CreateTemplateRequest(name, "Hi {{name}}", "Html {{#each items}}<b>{{.}}</b>{{/each}}",
        "Text body", null, TemplateTypes.Standard);
    const layout = new CreateTemplateRequest("layout", undefined, "<h1>{{shop}}</h1>{{{@content}}}", "{{{@content}}}", "base",
        TemplateTypes.Layout);

    const made = await client.createTemplate(standard("one"));
    told.made = made;
    told.shown = await client.getTemplate(made.TemplateId);
    told.layout = await client.createTemplate(layout);
    told.layoutShown = await client.getTemplate(told.layout.TemplateId);
    told.edited = await client.editTemplate(made.TemplateId, { Name: "two", LayoutTemplate: "base" });
    told.badLayout = await fails(() => client.editTemplate(told.layout.TemplateId, { HtmlBody: "Html content" }));
    told.templates = await client.getTemplates({ count: 5, offset: 0, templateType: TemplateTypes.Standard });
    told.valid = await client.validateTemplate({ TestRenderModel: { Name: "joe!" }, HtmlBody: "{{content}}",
        TextBody: "text body for template {{id}}!", Subject: "{{subject}}" });
    const mail = new TemplatedMessage("shop@example.com", made.TemplateId, { name: "Ada", shop: "S", items: [1, 2] }, "ada@example.net");
    mail.Metadata = { Key: "Value" };
    told.sent = await client.sendEmailWithTemplate(mail);
    told.batch = await client.sendEmailBatch([1, 2, 3].map((n) => new Message("shop@example.com", `Mail ${n}`, "Html", undefined, "bob@example.net")));
    told.deleted = await client.deleteTemplate(made.TemplateId);
    told.gone = await fails(() => client.getTemplate(made.TemplateId));

    told.messages = await client.getOutboundMessages(new OutboundMessagesFilteringParameters(1, 0));
    told.details = await client.getOutboundMessageDetails(told.messages.Messages[0].MessageID);
    told.byMetadata = await client.getOutboundMessages({ count: 5, offset: 0, metadata_Key: "Value" });
    told.opens = await client.getMessageOpens();

    told.bounces = await client.getBounces();
    told.badBounces = await fails(() => client.getBounces({ count: -1, offset: 0 }));
    told.noBounce = await fails(() => client.getBounce(7));

    const EmailAddress = "nothing+create@example.net";
    told.suppressed = await client.createSuppressions("outbound", { Suppressions: [{ EmailAddress }] });
    told.suppressions = await client.getSuppressions("outbound", { emailAddress: EmailAddress, origin: "Customer",
        suppressionReason: "ManualSuppression" });
    told.others = await client.getSuppressions("outbound", { emailAddress: EmailAddress, origin: "Admin" });
    told.unsuppressed = await client.deleteSuppressions("outbound", { Suppressions: [{ EmailAddress }] });

    told.stream = await client.createMessageStream({ Name: "test", ID: "test", Description: "test description",
        MessageStreamType: "Transactional" });
    told.archived = await client.archiveMessageStream("test");
    told.unarchived = await client.unarchiveMessageStream("test");
    told.outbound = await client.getMessageStream("outbound");
    told.streams = await client.getMessageStreams();

    told.delivery = await client.getDeliveryStatistics();
    const today = new Date();
    const toDate = `${today.getFullYear()}-${today.getMonth() + 1}-${today.getDate()}`;
    told.overview = await client.getOutboundOverview({ toDate });
    for (const call of ["getSentCounts", "getBounceCounts", "getSpamComplaintsCounts", "getTrackedEmailCounts", "getEmailOpenCounts",
                        "getEmailOpenPlatformUsage", "getEmailOpenClientUsage", "getClickCounts", "getClickBrowserUsage",
                        "getClickPlatformUsage", "getClickLocation"]) {
        told[call] = await client[call]();
    }
    told.server = await client.getServer();
    told.webhooks = await fails(() => client.getWebhooks());
    console.log(JSON.stringify(told));
"#;

#[tokio::test]
async fn the_calls_of_the_published_tests_of_postmark_js_are_answered() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink).await?;
    let host = format!("{}/compat/postmark", gateway.url().trim_start_matches("http://"));
    let node = tokio::task::spawn_blocking(NodeJs::installed).await?;
    let told: Value = serde_json::from_str(&node.say(NPM, &[("HOST", &host), ("KEY", &key)]).await)?;

    assert_eq!(
        (text(&told["made"], "TemplateType"), text(&told["layoutShown"], "TemplateType")),
        ("Standard", "Layout")
    );
    assert_eq!(text(&told["shown"], "HtmlBody"), "Html {{#each items}}<b>{{.}}</b>{{/each}}");
    assert_eq!(
        (text(&told["edited"], "Name"), &told["templates"]["TotalCount"]),
        ("two", &json!(1)),
        "{told:#}"
    );
    assert_eq!(text(&told["badLayout"], "kind"), "ApiInputError");
    assert!(
        text(&told["badLayout"], "message").contains("The layout content placeholder must be present"),
        "{told:#}"
    );
    assert_eq!(told["valid"]["TextBody"]["ContentIsValid"], true, "{told:#}");
    assert_eq!(text(&told["sent"], "Message"), "OK", "{told:#}");
    assert!(!text(&told["deleted"], "Message").is_empty());
    assert_eq!(told["gone"]["code"], 1101, "{told:#}");
    // Those of a batch are made in one moment, and any of them may be the newest.
    assert_eq!(told["messages"]["TotalCount"], 4, "{told:#}");
    assert!(text(&told["details"], "Subject").starts_with("Mail "), "{told:#}");
    assert_eq!(
        (&told["byMetadata"]["TotalCount"], &told["opens"]["TotalCount"]),
        (&json!(1), &json!(0)),
        "{told:#}"
    );
    assert_eq!(
        (&told["bounces"]["TotalCount"], text(&told["badBounces"], "kind")),
        (&json!(0), "ApiInputError")
    );
    assert_eq!(told["noBounce"]["code"], 407);
    assert_eq!(text(&told["suppressed"]["Suppressions"][0], "Status"), "Suppressed");
    assert_eq!(told["suppressions"]["Suppressions"].as_array().map(Vec::len), Some(1), "{told:#}");
    assert_eq!(told["others"]["Suppressions"], json!([]));
    assert_eq!(text(&told["unsuppressed"]["Suppressions"][0], "Status"), "Deleted");
    assert_eq!(
        (text(&told["stream"], "Description"), text(&told["archived"], "ID")),
        ("test description", "test")
    );
    assert_eq!(
        (text(&told["unarchived"], "MessageStreamType"), text(&told["outbound"], "ID")),
        ("Transactional", "outbound")
    );
    assert_eq!((&told["delivery"]["InactiveMails"], &told["overview"]["Bounced"]), (&json!(0), &json!(0)));
    assert!(
        told["getSentCounts"]["Sent"].is_u64() && told["getClickLocation"]["Days"] == json!([]),
        "{told:#}"
    );
    assert!(told["server"]["ID"].as_u64().is_some_and(|id| id > 0), "{told:#}");
    assert_eq!(text(&told["server"], "DeliveryType"), "Live");
    assert_eq!((&told["webhooks"]["code"], &told["webhooks"]["statusCode"]), (&json!(300), &json!(404)));

    let mails = sink.wait_for(4, PATIENCE).await;
    let hi = mails.iter().find(|mail| mail.header("Subject").as_deref() == Some("Hi Ada"));
    let hi = postway_e2e::Opened::of(hi.expect("the mail of the template came"))?;
    assert_eq!(hi.html.trim(), "<h1>S</h1>Html <b>1</b><b>2</b>");
    Ok(())
}

const POSTMARKER: &str = r#"
import json, os
from postmarker.core import PostmarkClient
from postmarker.exceptions import ClientError
client = PostmarkClient(server_token=os.environ["KEY"], root_api_url=os.environ["ROOT"])
told = {}
told["sent"] = client.emails.send(From="shop@example.com", To="ada@example.net", Subject="One", HtmlBody="<p>Hi</p>", Tag="a")
told["batch"] = client.emails.send_batch({"From": "shop@example.com", "To": "bob@example.net", "Subject": "Two", "TextBody": "Hi"})
told["messages"] = [message.Subject for message in client.messages.outbound.all(tag="a")]
told["details"] = client.messages.outbound.get(told["sent"]["MessageID"]).Subject
told["dump"] = client.messages.outbound.get_dump(told["sent"]["MessageID"])
told["bounces"] = len(client.bounces.all())
told["stats"] = client.stats.overview()
told["delivery"] = client.bounces.deliverystats
template = client.templates.create(Name="t", Subject="Hi {{name}}", TextBody="Hi", Alias="hello")
told["templates"] = [one.Alias for one in client.templates.all()]
told["removed"] = client.templates.delete(template.TemplateId)
told["server"] = client.server.get().Name
try:
    client.emails.send(From="shop@example.com", To="gone@example.net", Subject="x", TextBody="x")
except ClientError as error:
    told["inactive"] = [error.error_code, str(error)]
print(json.dumps(told))
"#;

#[tokio::test]
async fn postmarker_works_at_the_root() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink).await?;
    gateway.post("/v1/suppressions", json!({"address": "gone@example.net", "reason": "manual"})).await?;
    let root = format!("{}/", gateway.url());
    let python = tokio::task::spawn_blocking(PythonClients::installed).await?;
    let told: Value = serde_json::from_str(&python.say(POSTMARKER, &[("ROOT", &root), ("KEY", &key)]).await)?;
    assert_eq!(
        (text(&told["sent"], "Message"), text(&told["batch"][0], "Message")),
        ("OK", "OK"),
        "{told:#}"
    );
    assert_eq!((&told["messages"], text(&told, "details")), (&json!(["One"]), "One"), "{told:#}");
    assert!(text(&told, "dump").contains("Subject: One"), "{told:#}");
    assert_eq!((&told["bounces"], &told["templates"]), (&json!(0), &json!(["hello"])), "{told:#}");
    assert!(told["stats"]["Sent"].is_u64() && told["delivery"]["InactiveMails"] == 1, "{told:#}");
    assert!(text(&told, "removed").contains("removed"), "{told:#}");
    assert_eq!(told["inactive"][0], 406, "{told:#}");
    sink.wait_for(2, PATIENCE).await;
    Ok(())
}

const ANYMAIL: &str = r#"
import json, os
import django
from django.conf import settings
settings.configure(
    EMAIL_BACKEND="anymail.backends.postmark.EmailBackend", INSTALLED_APPS=["anymail"], DEFAULT_FROM_EMAIL="shop@example.com",
    ANYMAIL={"POSTMARK_SERVER_TOKEN": os.environ["KEY"], "POSTMARK_API_URL": os.environ["URL"]},
)
django.setup()
from anymail.exceptions import AnymailRecipientsRefused
from anymail.message import AnymailMessage
told = {}

def send(name, **fields):
    message = AnymailMessage(subject=name, body="Hi", from_email="Shop <shop@example.com>", **fields)
    try:
        message.send()
        told[name] = {}
    except AnymailRecipientsRefused:
        told[name] = {"refused": True}
    status = message.anymail_status
    told[name]["recipients"] = {address: one.status for address, one in status.recipients.items()}
    told[name]["id"] = status.message_id if isinstance(status.message_id, str) else None

send("whole", to=["Ada <ada@example.net>"], cc=["cc@example.net"], metadata={"order": "7"}, tags=["receipt"])
send("partly", to=["gone@example.net", "bob@example.net"])
send("inactive", to=["Gone <gone@example.net>"])
send("invalid", to=["nobody@" + 70 * "x" + ".example"])
message = AnymailMessage(to=["ada@example.net"], template_id="welcome", merge_global_data={"name": "Ada"})
message.from_email = "shop@example.com"
message.subject = message.body = None
message.send()
told["template"] = {address: one.status for address, one in message.anymail_status.recipients.items()}
merged = AnymailMessage(to=["ada@example.net", "bob@example.net"], template_id="welcome", from_email="shop@example.com",
                        merge_data={"ada@example.net": {"name": "A"}, "bob@example.net": {"name": "B"}})
merged.subject = merged.body = None
merged.send()
told["merged"] = {address: one.status for address, one in merged.anymail_status.recipients.items()}
print(json.dumps(told))
"#;

#[tokio::test]
async fn django_with_anymail_knows_what_became_of_each_recipient() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let (gateway, key) = gateway_to(&sink).await?;
    gateway.post("/v1/suppressions", json!({"address": "gone@example.net", "reason": "manual"})).await?;
    gateway
        .post("/v1/templates", json!({"name": "welcome", "subject": "Hello {{ name }}", "text": "Hi"}))
        .await?;
    let url = format!("{}/compat/postmark/", gateway.url());
    let python = tokio::task::spawn_blocking(PythonClients::installed).await?;
    let told: Value = serde_json::from_str(&python.say(ANYMAIL, &[("URL", &url), ("KEY", &key)]).await)?;
    let recipients = |call: &str| told[call]["recipients"].clone();
    assert_eq!(recipients("whole"), json!({"ada@example.net": "sent", "cc@example.net": "sent"}), "{told:#}");
    assert_eq!(
        recipients("partly"),
        json!({"gone@example.net": "rejected", "bob@example.net": "sent"}),
        "{told:#}"
    );
    assert_eq!(
        (&told["inactive"]["refused"], recipients("inactive")),
        (&json!(true), json!({"gone@example.net": "rejected"}))
    );
    let nobody = format!("nobody@{}.example", "x".repeat(70));
    assert_eq!(
        (&told["invalid"]["refused"], recipients("invalid")),
        (&json!(true), json!({nobody: "invalid"})),
        "{told:#}"
    );
    assert_eq!(told["template"], json!({"ada@example.net": "sent"}));
    assert_eq!(told["merged"], json!({"ada@example.net": "sent", "bob@example.net": "sent"}));
    let mails = sink.wait_for(5, PATIENCE).await;
    let of = |subject: &str| {
        mails.iter().filter(|mail| mail.header("Subject").as_deref() == Some(subject)).count()
    };
    assert_eq!([of("whole"), of("partly"), of("Hello Ada"), of("Hello A"), of("Hello B")], [1; 5]);
    Ok(())
}
