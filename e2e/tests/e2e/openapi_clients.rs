//! Clients that generators make of the OpenAPI document, as it is served: one in Python sends through the
//! real binary, one in TypeScript passes the compiler.

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
