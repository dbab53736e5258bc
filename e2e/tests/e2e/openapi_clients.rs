//! The OpenAPI document as it is served: a linter has nothing to say, and of the clients that generators make
//! of it those in Python send through the real binary, and those in TypeScript pass the compiler.

use postway_e2e::{Gateway, text};
use postway_testkit::OpenApiTools;
use serde_json::{Value, json};

const PYTHON: &str = r#"
import datetime, io, json, os
from client import AuthenticatedClient
from client.api.messages import cancel_message, get_message, get_raw_message, list_messages, reschedule_message, send_message, send_raw_message
from client.api.suppressions import import_suppressions
from client.models import Error, ListMessagesStatus, MessageRequest, RescheduleRequest
from client.types import File

gateway = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["KEY"])
told = {}
soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
mail = dict(from_="Shop <shop@example.com>", to=["ada@example.net"], subject="Hello", text="Hi")
told["sent"] = send_message.sync(client=gateway, body=MessageRequest(id="order-1", **mail)).id
send_message.sync(client=gateway, body=MessageRequest(id="order-3", send_at=soon, **mail))
told["later"] = reschedule_message.sync(client=gateway, id="order-3", body=RescheduleRequest(send_at=soon)).status.value
told["status"] = get_message.sync(client=gateway, id="order-1").status.value
told["raw"] = get_raw_message.sync(client=gateway, id="order-1").payload.read().decode()
ready = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready-made\r\n\r\nHi\r\n"
told["ready"] = send_raw_message.sync(client=gateway, id="order-2", body=File(payload=io.BytesIO(ready))).id
page = list_messages.sync(client=gateway, status=ListMessagesStatus.SCHEDULED, limit=10)
told["listed"] = [one.id for one in page.data]
told["cancelled"] = cancel_message.sync(client=gateway, id="order-3").status.value
told["imported"] = import_suppressions.sync(client=gateway, body=File(payload=io.BytesIO(b"gone@example.net"))).imported
wrong = send_message.sync(client=gateway, body=MessageRequest(from_="shop@example.com"))
assert isinstance(wrong, Error), wrong
told["error"] = wrong.error.code
print(json.dumps(told))
"#;

/// The same by openapi-generator, whose clients have other names.
const GENERATED: &str = r#"
import json, os
from openapi_client import ApiClient, Configuration, MessageRequest, MessagesApi
from openapi_client.exceptions import ApiException

messages = MessagesApi(ApiClient(Configuration(host=os.environ["URL"], access_token=os.environ["KEY"])))
mail = {"from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "Hello", "text": "Hi"}
told = {"sent": messages.send_message(MessageRequest.from_dict({**mail, "id": "order-1"})).id}
told["status"] = messages.get_message("order-1").status
told["raw"] = bytes(messages.get_raw_message("order-1")).decode()
ready = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready-made\r\n\r\nHi\r\n"
told["ready"] = messages.send_raw_message(ready, id="order-2").id
told["listed"] = len(messages.list_messages(limit=10).data)
try:
    messages.send_message(MessageRequest.from_dict({"from": "shop@example.com"}))
except ApiException as error:
    told["error"] = json.loads(error.body)["error"]["code"]
print(json.dumps(told))
"#;

const TYPESCRIPT: &str = r#"
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8520" });

export async function send(): Promise<string> {
    const body: components["schemas"]["MessageRequest"] = {
        from: "Shop <shop@example.com>", to: ["ada@example.net"], subject: "Hello", text: "Hi",
        on_doubt: "hold", send_at: "2030-01-01T09:00:00Z", priority: "high",
    };
    const { data, error } = await client.POST("/v1/messages", { body });
    if (error) throw new Error(error.error.code);
    // @ts-expect-error: a closed list has no such word
    const nonsense: components["schemas"]["MessageSummary"]["status"] = "nonsense";
    // @ts-expect-error: a time is no number
    const soon: components["schemas"]["MessageRequest"]["send_at"] = 1_900_000_000;
    const { data: page } = await client.GET("/v1/messages", { params: { query: { status: "sent", limit: 10 } } });
    return [data.id, ...(page?.data ?? []).map((one) => one.status), nonsense, soon].join(" ");
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn clients_made_of_the_document_compile_and_send() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let tools = tokio::task::spawn_blocking(OpenApiTools::installed).await?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("openapi.json");
    std::fs::write(&document, gateway.get("/openapi.json").await?.to_string())?;

    let python = async {
        tools.python_client(&document, folder.path()).await;
        let (url, key) = (gateway.url(), gateway.key());
        tools.python(folder.path(), PYTHON, &[("URL", &url), ("KEY", &key)]).await
    };
    let (told, ()) = tokio::join!(python, tools.typescript(&document, folder.path(), TYPESCRIPT));
    let told: Value = serde_json::from_str(&told)?;
    assert_eq!((text(&told, "sent"), text(&told, "ready")), ("order-1", "order-2"), "{told:#}");
    assert!(text(&told, "raw").contains("Subject: Hello"), "{told:#}");
    assert!(["ready", "sending", "sent"].contains(&text(&told, "status")), "{told:#}");
    assert_eq!(text(&told, "error"), "validation_error");
    assert_eq!((text(&told, "cancelled"), &told["imported"]), ("cancelled", &json!(1)), "{told:#}");
    assert_eq!((text(&told, "later"), &told["listed"]), ("scheduled", &json!(["order-3"])), "{told:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linter_has_nothing_to_say_and_the_other_generators_clients_work() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let tools = tokio::task::spawn_blocking(OpenApiTools::installed).await?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("openapi.json");
    std::fs::write(&document, gateway.get("/openapi.json").await?.to_string())?;

    let python = async {
        tools.generated_client("python", &document, folder.path()).await;
        let (url, key) = (gateway.url(), gateway.key());
        tools.python(&folder.path().join("python"), GENERATED, &[("URL", &url), ("KEY", &key)]).await
    };
    let typescript = async {
        tools.generated_client("typescript-fetch", &document, folder.path()).await;
        tools.compile(&folder.path().join("typescript-fetch")).await;
    };
    let (told, (), ()) = tokio::join!(python, typescript, tools.lint(&document, folder.path()));
    let told: Value = serde_json::from_str(&told)?;
    assert_eq!(
        (text(&told, "sent"), text(&told, "ready"), &told["listed"]),
        ("order-1", "order-2", &json!(2)),
        "{told:#}"
    );
    assert!(text(&told, "raw").contains("Subject: Hello"), "{told:#}");
    assert!(["ready", "sending", "sent"].contains(&text(&told, "status")), "{told:#}");
    assert_eq!(text(&told, "error"), "validation_error");
    Ok(())
}
