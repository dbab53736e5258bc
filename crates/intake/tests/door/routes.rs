//! Routes at every way in, and what circuits, limits and other nodes have to do with them.

use bytes::Bytes;
use postway_domain::{
    Account, AccountLimits, AccountSettings, Clock, EventKind, Incarnation, LeaseToken, MailRoute, Time,
    route::{RouteConditions, RouteContent, RouteTarget},
};
use postway_intake::{ComposedForward, ForwardRequest, RawOptions};
use postway_mime::ComposedMail;
use postway_store::{
    DirectoryStore, RouteStore, WorkStore,
    record::{AccountKey, AccountWant, ClaimRequest, DirectoryChange, LeaseGrant, OpenCircuit},
};
use serde_json::{Value, json};

use super::{TestGateway, account, ctx, keyed, message, tenant};

async fn with_route(conditions: Value, accounts: &[(&str, u32)]) -> TestGateway {
    let gateway = TestGateway::new().await;
    let target =
        |(account, weight): &(&str, u32)| RouteTarget { account: account.parse().unwrap(), weight: *weight };
    let route = MailRoute {
        tenant: tenant(),
        id: "one".parse().unwrap(),
        position: 1,
        active: true,
        content: RouteContent {
            description: None,
            conditions: serde_json::from_value::<RouteConditions>(conditions).unwrap(),
            accounts: accounts.iter().map(target).collect(),
        },
        version: 1,
        created_at: Time::from_millis(0),
        updated_at: Time::from_millis(0),
    };
    gateway.change(DirectoryChange::CreateRoute(route)).await;
    gateway
}

/// The account of a message, and what its history says of the route.
async fn choice(gateway: &TestGateway, uid: postway_domain::MessageUid) -> (String, Value) {
    let accepted = gateway.events(uid).await.into_iter().find(|(kind, _)| *kind == EventKind::Accepted);
    let account = gateway.stored(uid).await.summary.lane.account.to_string();
    (account, accepted.unwrap().1["route"].clone())
}

fn circuit(open_until: Time) -> DirectoryChange {
    DirectoryChange::OpenCircuit(OpenCircuit {
        key: AccountKey { tenant: tenant(), account: "second".parse().unwrap() },
        code: "auth_failed".to_owned(),
        reason: "535".to_owned(),
        opened_at: Time::from_millis(0),
        open_until,
        faults: 1,
    })
}

#[tokio::test]
async fn finished_mail_is_routed_by_its_author_and_its_envelope() {
    let gateway = with_route(
        json!({"sender_domains": ["*.example.com"], "recipient_domains": ["near.example"], "tags": ["t"],
               "streams": ["news"], "priorities": [3]}),
        &[("second", 1)],
    )
    .await;
    let options = || RawOptions {
        tags: vec!["t".to_owned()],
        batch: Some("news:1".to_owned()),
        priority: Some("low".to_owned()),
        ..RawOptions::default()
    };
    let mail =
        |from: &str, to: &str| Bytes::from(format!("From: {from}\r\nTo: {to}\r\nSubject: x\r\n\r\nx\r\n"));
    for (from, to, envelope, account) in [
        ("a@news.example.com", "b@near.example", &[][..], "second"),
        ("a@news.example.com", "b@near.example, c@far.example", &[], "relay"),
        ("a@news.example.com", "c@far.example", &["b@near.example"], "second"),
        ("a@news.example.com", "b@near.example", &["b@near.example", "c@far.example"], "relay"),
        ("a@example.com", "b@near.example", &[], "relay"),
    ] {
        let options = RawOptions { to: envelope.iter().map(ToString::to_string).collect(), ..options() };
        let receipt = gateway.door.accept_raw(&ctx(), options, mail(from, to)).await.unwrap();
        assert_eq!(choice(&gateway, receipt.uid).await.0, account, "{from} {to} {envelope:?}");
    }
    for wrong in [
        RawOptions { tags: Vec::new(), ..options() },
        RawOptions { batch: None, ..options() },
        RawOptions { priority: None, ..options() },
    ] {
        let body = mail("a@news.example.com", "b@near.example");
        let receipt = gateway.door.accept_raw(&ctx(), wrong.clone(), body).await.unwrap();
        assert_eq!(choice(&gateway, receipt.uid).await, ("relay".to_owned(), Value::Null), "{wrong:?}");
    }
    let named = RawOptions { account: Some("relay".to_owned()), ..options() };
    let body = mail("a@news.example.com", "b@near.example");
    let receipt = gateway.door.accept_raw(&ctx(), named, body).await.unwrap();
    assert_eq!(choice(&gateway, receipt.uid).await.0, "relay", "it names its account");
}

#[tokio::test]
async fn forwarded_mail_is_routed_too() {
    let gateway = with_route(json!({"recipient_domains": ["example.net"]}), &[("second", 1)]).await;
    let request = ForwardRequest {
        from: "support@example.com".parse().unwrap(),
        to: vec!["bob@example.net".parse().unwrap()],
        account: None,
        subject: "Fwd".to_owned(),
        batch: None,
        tags: Vec::new(),
        external_id: None,
        size: 1,
        make: Box::new(|_| {
            let bytes = b"Subject: x\r\n\r\nx\r\n".to_vec();
            let composed = ComposedMail { bytes, eight_bit: false, smtputf8: false };
            Ok(ComposedForward { composed, is_our_own: true })
        }),
    };
    let receipt = gateway.door.accept_forward(&keyed("k"), request).await.unwrap();
    let (account, route) = choice(&gateway, receipt.uid).await;
    assert_eq!((account.as_str(), &route["because"]), ("second", &json!(["recipient_domain"])));
}

#[tokio::test]
async fn a_batch_is_routed_message_by_message_and_a_repeat_finds_the_first() {
    let gateway = with_route(json!({}), &[("relay", 1), ("second", 1)]).await;
    let mut accounts = std::collections::BTreeMap::<String, usize>::new();
    let messages: Vec<Value> = (0..60).map(|number| message(json!({"id": format!("m-{number}")}))).collect();
    let body = Bytes::from(json!({"messages": messages}).to_string());
    let receipt = gateway.door.accept_batch(&ctx(), body.clone()).await.unwrap();
    let uids: Vec<_> = receipt.results.iter().map(|one| one.as_ref().unwrap().uid).collect();
    for uid in &uids {
        *accounts.entry(choice(&gateway, *uid).await.0).or_default() += 1;
    }
    assert!(accounts.len() == 2 && accounts.values().all(|count| *count > 10), "{accounts:?}");
    let again = gateway.door.accept_batch(&ctx(), body).await.unwrap();
    assert!(again.results.iter().zip(&uids).all(|(one, uid)| one.as_ref().unwrap().uid == *uid));
    assert_eq!(gateway.count().await, 60);
}

#[tokio::test]
async fn an_open_circuit_is_left_out_until_its_time_is_over() {
    let gateway = with_route(json!({}), &[("relay", 0), ("second", 1)]).await;
    let sent = async || {
        let receipt = gateway.send(&message(json!({}))).await.unwrap();
        choice(&gateway, receipt.uid).await
    };
    assert_eq!(sent().await.0, "second");
    let now = Time::from_millis(super::NOW_MS);
    gateway.change(circuit(now.plus(std::time::Duration::from_secs(60)))).await;
    // Nobody else may send, so the first choice waits.
    let (account, route) = sent().await;
    assert_eq!((account.as_str(), &route["waits_for"]), ("second", &json!("circuit")));
    let mut route = gateway.store.routes(&tenant()).await.unwrap().remove(0);
    route.content.accounts[0].weight = 1;
    route.version = 2;
    gateway.change(DirectoryChange::UpdateRoute(route, 1)).await;
    for _ in 0..20 {
        assert_eq!(sent().await.0, "relay");
    }
    // It must be tried again, or it would never close.
    gateway.change(circuit(now)).await;
    let mut tried = false;
    for _ in 0..40 {
        tried |= sent().await.0 == "second";
    }
    assert!(tried);
}

#[tokio::test]
async fn a_used_up_limit_is_left_out() {
    let gateway = with_route(json!({}), &[("limited", 1_000), ("relay", 1)]).await;
    let limits = AccountLimits { per_day: 2, ..AccountLimits::default() };
    let limited = Account {
        settings: AccountSettings { limits, ..AccountSettings::sandbox() },
        ..account("limited", None)
    };
    assert!(gateway.store.create_account(limited).await.unwrap());
    let sent = async || {
        let receipt = gateway.send(&message(json!({}))).await.unwrap();
        choice(&gateway, receipt.uid).await
    };
    for _ in 0..20 {
        sent().await;
    }
    let key = AccountKey { tenant: tenant(), account: "limited".parse().unwrap() };
    let mut random = rand::rng();
    let request = ClaimRequest {
        wants: vec![AccountWant { limits, ..AccountWant::unlimited(key, 9, false) }],
        lease: LeaseGrant {
            incarnation: Incarnation::new(gateway.clock.now(), &mut random),
            token: LeaseToken::new(&mut random),
            until: gateway.clock.now().plus(std::time::Duration::from_secs(60)),
        },
        now: gateway.clock.now(),
        inline_bytes_max: 0,
    };
    assert_eq!(gateway.store.claim(request).await.unwrap().len(), 2);
    // What was read of limits is trusted for a second, or until a setting changes.
    gateway.change(circuit(Time::from_millis(super::NOW_MS))).await;
    for _ in 0..20 {
        let (account, route) = sent().await;
        let is_first_choice = route["left_out"].is_null();
        assert!(
            account == "relay" && (is_first_choice || route["left_out"] == json!(["limit:limited"])),
            "{route}"
        );
    }
}
