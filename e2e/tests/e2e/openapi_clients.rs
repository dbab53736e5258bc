//! Clients that generators make of the OpenAPI document, as it is served: one in Python sends through the real binary, one in
//! TypeScript passes the compiler.

use postway_e2e::{Gateway, text};
use postway_testkit::OpenApiTools;
use serde_json::{Value, json};

const PYTHON: &str = r#"
import datetime, io, json, os
from client import AuthenticatedClient
from client.api.messages import get_raw_message, list_messages, send_message, send_raw_message, show_message
from client.models import ErrorAnswer, MessageRequest, MessageSummaryStatus, MessageRequestOnDoubt
from client.models.list_messages_status import ListMessagesStatus
from client.types import File

gateway = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["KEY"])
told = {}
mail = MessageRequest(
    id="order-1", from_="Shop <shop@example.com>", to=["ada@example.net"], subject="Hello", text="Hi",
    on_doubt=MessageRequestOnDoubt.HOLD, send_at=datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc) if False else None,
)
receipt = send_message.sync(client=gateway, body=mail)
told["sent"] = receipt.id
shown = show_message.sync(client=gateway, id="order-1")
told["status"] = shown.status.value
raw = get_raw_message.sync(client=gateway, id="order-1")
told["raw"] = raw.payload.read().decode()
bytes_ = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready-made\r\n\r\nHi\r\n"
ready = send_raw_message.sync(client=gateway, id="order-2", body=File(payload=io.BytesIO(bytes_)))
told["ready"] = ready.id
told["listed"] = [one.id for one in list_messages.sync(client=gateway, status=ListMessagesStatus.SENT, limit=10).data]
wrong = send_message.sync(client=gateway, body=MessageRequest(from_="shop@example.com"))
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
    assert!(told["listed"].is_array() && told["listed"] != json!(null));
    Ok(())
}
