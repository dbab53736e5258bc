//! Lists of the Postmark API: messages, bounces, suppressions, streams, counts, and the server itself.

use postway_domain::{MessageState, RecipientStatus::*};
use serde_json::{Value, json};

use crate::{
    postmark::{message, refused, with},
    support::{Answer, Api, KEY},
};

async fn get(api: &Api, path: &str) -> Value {
    api.postmark_as(KEY, "GET", path, Value::Null).await.ok(200)
}

async fn ask(api: &Api, method: &str, path: &str, body: Value) -> Answer {
    api.postmark_as(KEY, method, path, body).await
}

fn subjects(list: &Value) -> Vec<&str> {
    list["Messages"].as_array().unwrap().iter().map(|message| message["Subject"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn messages_are_found_by_what_they_have() {
    let api = Api::start().await;
    for (subject, part) in [
        ("One", json!({"Tag": "receipt", "Metadata": {"Order": "7"}})),
        ("Two", json!({"To": "bob@example.net", "MessageStream": "news", "From": "News <news@example.com>"})),
        ("Three", json!({"Cc": "cc@example.net"})),
    ] {
        api.postmark("/email", with(message(subject), part)).await.ok(200);
        api.clock.forward_ms(10);
    }
    let all = get(&api, "/messages/outbound?count=50&offset=0").await;
    assert_eq!((&all["TotalCount"], subjects(&all)), (&json!(3), vec!["Three", "Two", "One"]));
    let three = &all["Messages"][0];
    assert_eq!(three["From"], "\"Shop\" <shop@example.com>");
    assert_eq!((&three["Cc"][0]["Email"], &three["Status"]), (&json!("cc@example.net"), &json!("Queued")));
    let page = get(&api, "/messages/outbound?count=1&offset=1").await;
    assert_eq!((&page["TotalCount"], subjects(&page)), (&json!(3), vec!["Two"]));
    for (query, found) in [
        ("recipient=bob@example.net", vec!["Two"]),
        ("recipient=nobody", vec![]),
        ("fromEmail=news@example.com", vec!["Two"]),
        ("fromemail=NEWS@example.com&count=1", vec!["Two"]),
        ("tag=receipt", vec!["One"]),
        ("metadata_order=7", vec!["One"]),
        ("metadata_order=8", vec![]),
        ("messageStream=news", vec!["Two"]),
        ("messagestream=outbound", vec!["Three", "One"]),
        ("subject=thr", vec!["Three"]),
        ("status=queued", vec!["Three", "Two", "One"]),
        ("status=sent", vec![]),
        ("fromdate=2023-11-14&todate=2023-11-14", vec!["Three", "Two", "One"]),
        ("fromdate=2023-11-15", vec![]),
        ("todate=2023-11-13T10:00:00", vec![]),
        ("offset=3", vec![]),
    ] {
        assert_eq!(subjects(&get(&api, &format!("/messages/outbound?{query}")).await), found, "{query}");
    }
    for bad in ["count=-1", "count=501", "count=500&offset=9600", "status=gone", "fromdate=soon"] {
        refused(&ask(&api, "GET", &format!("/messages/outbound?{bad}"), Value::Null).await, 422, 700);
    }
    assert_eq!(
        get(&api, "/messages/outbound/opens?count=1&offset=0").await,
        json!({"TotalCount": 0, "Opens": []})
    );
}

/// What came back long ago is in the list, however much was sent since.
#[tokio::test]
async fn an_old_bounce_is_listed_behind_ten_thousand_mails() {
    let api = Api::start().await;
    api.stored("old", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    api.clock.forward_ms(1_000);
    for n in 0..10_050 {
        api.stored(&format!("m-{n}"), MessageState::Ready, &[("bob@example.net", Pending)]).await;
    }
    let list = get(&api, "/bounces?count=50&offset=0").await;
    assert_eq!((&list["TotalCount"], &list["Bounces"][0]["Email"]), (&json!(1), &json!("ada@example.net")));
}

#[tokio::test]
async fn a_bounce_is_listed_shown_and_its_address_made_active() {
    let api = Api::start().await;
    api.stored("dead", MessageState::Failed, &[("ada@example.net", Failed), ("bob@example.net", Sent)]).await;
    api.stored("fine", MessageState::Sent, &[("carl@example.net", Sent)]).await;
    let list = get(&api, "/bounces?count=50&offset=0").await;
    assert_eq!(list["TotalCount"], 1, "{list}");
    let bounce = &list["Bounces"][0];
    assert_eq!((&bounce["Email"], &bounce["Type"]), (&json!("ada@example.net"), &json!("Blocked")));
    assert_eq!((&bounce["Inactive"], &bounce["Tag"]), (&json!(false), &json!("receipt")));
    let id = bounce["ID"].as_u64().unwrap();
    assert!(id < 1 << 53);
    assert_eq!(get(&api, &format!("/bounces/{id}")).await["MessageID"], bounce["MessageID"]);
    get(&api, &format!("/bounces/{id}/dump")).await["Body"].as_str().unwrap();
    for (query, count) in [
        ("type=Blocked", 1),
        ("type=HardBounce", 0),
        ("emailFilter=ADA@", 1),
        ("emailFilter=carl", 0),
        ("inactive=true", 0),
        ("tag=receipt", 1),
        ("messageID=00000000-0000-7000-8000-000000000000", 0),
        ("messagestream=b-1", 1),
        ("todate=2023-11-13", 0),
    ] {
        assert_eq!(get(&api, &format!("/bounces?{query}")).await["TotalCount"], count, "{query}");
    }
    let hard = json!({"address": "ada@example.net", "reason": "hard_bounce"});
    api.post("/v1/suppressions", hard).await.ok(201);
    assert_eq!(get(&api, "/bounces?inactive=true").await["TotalCount"], 1);
    let reader = api.key("default", json!({"name": "r", "scopes": ["read", "send"]})).await;
    let path = format!("/bounces/{id}/activate");
    refused(&api.postmark_as(&reader, "PUT", &path, Value::Null).await, 401, 10);
    let active = ask(&api, "PUT", &path, Value::Null).await.ok(200);
    assert_eq!((&active["Message"], &active["Bounce"]["Inactive"]), (&json!("OK"), &json!(false)));
    assert_eq!(api.get("/v1/suppressions").await.ok(200)["data"], json!([]));
    refused(&ask(&api, "GET", "/bounces/1", Value::Null).await, 422, 407);
    refused(&ask(&api, "GET", "/bounces/x", Value::Null).await, 422, 407);
    refused(&ask(&api, "GET", "/bounces?type=Nothing", Value::Null).await, 422, 700);
}

#[tokio::test]
async fn suppressions_are_dumped_made_and_deleted() {
    let api = Api::start().await;
    let path = "/message-streams/outbound/suppressions";
    let list = |addresses: &[&str]| {
        let entries: Vec<Value> = addresses.iter().map(|address| json!({"EmailAddress": address})).collect();
        json!({"Suppressions": entries})
    };
    let hard = json!({"address": "bob@example.net", "reason": "hard_bounce", "note": "gone"});
    api.post("/v1/suppressions", hard).await.ok(201);
    let made = ask(&api, "POST", path, list(&["Ada@example.net", "nobody", "bob@example.net"])).await.ok(200);
    let statuses: Vec<_> =
        made["Suppressions"].as_array().unwrap().iter().map(|one| one["Status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["Suppressed", "Failed", "Suppressed"]);
    let bob = api.get("/v1/suppressions/bob@example.net").await.ok(200);
    assert_eq!(
        (&bob["reason"], &bob["note"]),
        (&json!("hard_bounce"), &json!("gone")),
        "it says more than a wish"
    );
    let dump = get(&api, &format!("{path}/dump")).await;
    let shown: Vec<_> = dump["Suppressions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["EmailAddress"], &one["SuppressionReason"], &one["Origin"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("ada@example.net"), &json!("ManualSuppression"), &json!("Customer")),
            (&json!("bob@example.net"), &json!("HardBounce"), &json!("Recipient")),
        ]
    );
    for (query, count) in [
        ("emailAddress=ADA@example.net", 1),
        ("emailAddress=ada@example.net&origin=Recipient", 0),
        ("suppressionReason=HardBounce", 1),
        ("origin=Admin", 0),
        ("todate=2023-11-13", 0),
    ] {
        let dump = get(&api, &format!("{path}/dump?{query}")).await;
        assert_eq!(dump["Suppressions"].as_array().unwrap().len(), count, "{query}");
    }
    let gone = ask(&api, "POST", &format!("{path}/delete"), list(&["ada@example.net", "x"])).await.ok(200);
    assert_eq!(
        (&gone["Suppressions"][0]["Status"], &gone["Suppressions"][1]["Status"]),
        (&json!("Deleted"), &json!("Failed"))
    );
    assert_eq!(get(&api, &format!("{path}/dump")).await["Suppressions"].as_array().unwrap().len(), 1);
    refused(&ask(&api, "POST", path, json!({"Suppressions": "x"})).await, 422, 403);
    refused(&ask(&api, "GET", "/message-streams/a%20b/suppressions/dump", Value::Null).await, 422, 1226);
    let sender = api.key("default", json!({"name": "s", "scopes": ["send", "read"]})).await;
    refused(&api.postmark_as(&sender, "POST", path, list(&["x@example.net"])).await, 401, 10);
}

#[tokio::test]
async fn a_stream_has_suppressions_of_its_own() {
    let api = Api::start().await;
    let list = json!({"Suppressions": [{"EmailAddress": "ada@example.net"}]});
    ask(&api, "POST", "/message-streams/news/suppressions", list.clone()).await.ok(200);
    let count = async |stream: &str| {
        let dump = get(&api, &format!("/message-streams/{stream}/suppressions/dump")).await;
        dump["Suppressions"].as_array().unwrap().len()
    };
    assert_eq!((count("news").await, count("outbound").await, count("offers").await), (1, 0, 0));
    let one = get(&api, "/message-streams/news/suppressions/dump?EmailAddress=Ada@example.net").await;
    assert_eq!(one["Suppressions"][0]["SuppressionReason"], "ManualSuppression");
    let sent = |stream: &str| with(message("Hi"), json!({"To": "ada@example.net", "MessageStream": stream}));
    let states = async |stream: &str| {
        let answer = api.postmark("/email", sent(stream)).await.ok(200);
        let id = answer["MessageID"].as_str().unwrap().to_owned();
        api.get(&format!("/v1/messages/{id}")).await.ok(200)["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(states("news").await, "suppressed");
    assert_ne!(states("offers").await, "suppressed");
    ask(&api, "POST", "/message-streams/news/suppressions/delete", list).await.ok(200);
    assert_eq!(count("news").await, 0);
}

#[tokio::test]
async fn a_dump_of_many_suppressions_is_whole() {
    let api = Api::start().await;
    for part in 0..3 {
        let addresses: Vec<String> = (0..500).map(|n| format!("u{part}-{n}@example.net")).collect();
        api.post("/v1/suppressions", json!({"addresses": addresses})).await.ok(201);
    }
    let dump = get(&api, "/message-streams/outbound/suppressions/dump").await;
    assert_eq!(dump["Suppressions"].as_array().unwrap().len(), 1_500);
    assert_eq!(get(&api, "/deliverystats").await["InactiveMails"], 1_500);
}

#[tokio::test]
async fn a_stream_is_a_batch_and_waits_while_it_is_archived() {
    let api = Api::start().await;
    let made =
        json!({"ID": "news", "Name": "News", "Description": "monthly", "MessageStreamType": "Broadcasts"});
    let made = ask(&api, "POST", "/message-streams", made).await.ok(200);
    assert_eq!((&made["ID"], &made["Description"]), (&json!("news"), &json!("monthly")));
    let shown = get(&api, "/message-streams/news").await;
    assert_eq!((&shown["Name"], &shown["Description"]), (&json!("News"), &json!("monthly")), "it is kept");
    refused(&ask(&api, "POST", "/message-streams", json!({"ID": "news"})).await, 422, 1226);
    refused(&ask(&api, "GET", "/message-streams/nothing", Value::Null).await, 422, 1226);
    let renamed = json!({"Name": "Other news", "Description": "weekly"});
    let renamed = ask(&api, "PATCH", "/message-streams/news", renamed).await.ok(200);
    assert_eq!((&renamed["Name"], &renamed["Description"]), (&json!("Other news"), &json!("weekly")));
    api.postmark("/email", with(message("Hi"), json!({"MessageStream": "news"}))).await.ok(200);
    let ids = |list: &Value| -> Vec<String> {
        let streams = list["MessageStreams"].as_array().unwrap().iter();
        streams.map(|stream| stream["ID"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&get(&api, "/message-streams").await), ["outbound", "news"]);
    assert_eq!(get(&api, "/message-streams/outbound").await["ID"], "outbound");
    let archived = ask(&api, "POST", "/message-streams/news/archive", Value::Null).await.ok(200);
    assert_eq!(archived["ID"], "news");
    assert_eq!(api.get("/v1/batches/news").await.ok(200)["suspended"], true);
    assert_eq!(ids(&get(&api, "/message-streams").await), ["outbound"]);
    assert_eq!(ids(&get(&api, "/message-streams?includeArchivedStreams=true").await), ["outbound", "news"]);
    assert!(get(&api, "/message-streams/news").await["ArchivedAt"].is_string());
    let back = ask(&api, "POST", "/message-streams/news/unarchive", Value::Null).await.ok(200);
    assert_eq!(back["ArchivedAt"], Value::Null);
    assert_eq!(api.get("/v1/batches/news").await.ok(200)["suspended"], false);
    for (method, path) in
        [("POST", "/message-streams/outbound/archive"), ("PATCH", "/message-streams/outbound")]
    {
        refused(&ask(&api, method, path, json!({"Name": "x"})).await, 422, 1226);
    }
}

#[tokio::test]
async fn counts_are_those_that_are_kept() {
    let api = Api::start().await;
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.fan_out().await;
    let all = get(&api, "/stats/outbound").await;
    assert_eq!((&all["Sent"], &all["Bounced"], &all["Opens"]), (&json!(1), &json!(0), &json!(0)));
    let sent = get(&api, "/stats/outbound/sends?fromdate=2023-11-14&todate=2023-11-14").await;
    assert_eq!(sent, json!({"Days": [{"Date": "2023-11-14", "Sent": 1}], "Sent": 1}));
    assert_eq!(get(&api, "/stats/outbound/sends?fromDate=2023-11-15").await["Sent"], 0);
    for path in ["bounces", "spam", "tracked", "opens", "opens/emailClients", "clicks", "clicks/location"] {
        assert_eq!(get(&api, &format!("/stats/outbound/{path}")).await["Days"], json!([]), "{path}");
    }
    for bad in ["tag=x", "messagestream=outbound", "fromdate=2020-01-01"] {
        refused(&ask(&api, "GET", &format!("/stats/outbound?{bad}"), Value::Null).await, 422, 700);
    }
    let stats = get(&api, "/deliveryStats").await;
    assert_eq!((&stats["InactiveMails"], &stats["Bounces"][0]["Count"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn the_server_is_the_tenant_and_has_no_webhooks_here() {
    let api = Api::start().await;
    let server = get(&api, "/server").await;
    assert!(server["ID"].as_u64().unwrap() > 0, "{server}");
    assert_eq!(server["ApiTokens"], json!([]), "{server}");
    for (method, path) in
        [("GET", "/webhooks"), ("POST", "/webhooks"), ("PUT", "/webhooks/1"), ("DELETE", "/webhooks/1")]
    {
        let said = refused(&ask(&api, method, path, json!({"Url": "https://x.example"})).await, 404, 300);
        assert!(said.contains("/v1/webhooks"), "{said}");
    }
}
