//! OAuth grants of accounts and mailboxes: their secrets are stored, never shown, and bound to their
//! destination.

use postway_domain::{
    Account, WatchedMailbox,
    oauth::{OAuthOwner, OAuthState},
    secret::SecretKey,
};
use postway_store::{
    DirectoryStore, InboundStore,
    record::{ChangeResult, DirectoryChange, MailboxKey},
};
use serde_json::{Value, json};

use crate::support::Api;

const HIDDEN: [&str; 3] = ["hidden-client", "hidden-refresh", "hidden-other"];

fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32]).unwrap()
}

fn grant() -> Value {
    json!({"preset": "microsoft", "grant": "client_credentials", "client_id": "app-1",
        "directory": "contoso.example", "client_secret": "hidden-client"})
}

fn account(grant: Value) -> Value {
    json!({"id": "relay-1", "host": "smtp.office365.com", "username": "shop@contoso.example", "oauth": grant})
}

async fn stored(api: &Api) -> (Account, Value) {
    let (tenant, id) = ("default".parse().unwrap(), "relay-1".parse().unwrap());
    let account = api.store.account(&tenant, &id).await.unwrap().unwrap();
    let text = key().open(&account.current_sealing_context(), account.secret.as_ref().unwrap()).unwrap();
    let secrets = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (account, secrets)
}

#[tokio::test]
async fn a_grant_is_made_shown_and_its_secrets_never() {
    let api = Api::start().await;
    let made = api.post("/v1/accounts", account(grant())).await;
    let shown = made.ok(201);
    let token_url = "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token";
    let scope = "https://outlook.office365.com/.default";
    assert_eq!(
        shown["oauth"],
        json!({"preset": "microsoft", "grant": "client_credentials", "token_url": token_url,
            "client_id": "app-1", "scope": scope, "directory": "contoso.example", "subject": null,
            "client_secret_set": true, "refresh_token_set": false, "private_key_set": false})
    );
    assert_eq!(shown["password_set"], false);
    for body in [&made.body, &api.get("/v1/accounts").await.body, &api.get("/v1/audit").await.body] {
        let text = String::from_utf8_lossy(body);
        assert!(HIDDEN.iter().all(|hidden| !text.contains(hidden)), "{text}");
    }
    let (account, secrets) = stored(&api).await;
    assert_eq!(secrets, json!({"client_secret": "hidden-client"}));
    let as_password = Account::sealing_context(&account.tenant, &account.id);
    assert!(key().open(&as_password, &account.secret.unwrap()).is_err(), "it is not taken for a password");

    // What is shown may be sent back, and means the same.
    let shown = api.get("/v1/accounts/relay-1").await.ok(200);
    let again = api.call("PUT", "/v1/accounts/relay-1", shown.to_string()).await.ok(200);
    assert_eq!(again["oauth"], shown["oauth"]);
    let (account, secrets) = stored(&api).await;
    assert_eq!(secrets, json!({"client_secret": "hidden-client"}));
    assert_eq!(account.settings.oauth.unwrap().token_url, None, "the preset still says where");
}

#[tokio::test]
async fn consent_comes_later_and_changes_nothing_else() {
    let api = Api::start().await;
    let by_person = json!({"preset": "google", "grant": "refresh_token", "client_id": "app-1"});
    let shown = api.post("/v1/accounts", account(by_person)).await.ok(201);
    assert_eq!(shown["oauth"]["refresh_token_set"], false);
    let patch = json!({"oauth": {"refresh_token": "hidden-refresh"}});
    let shown = api.patch("/v1/accounts/relay-1", patch).await.ok(200);
    assert_eq!(
        (&shown["oauth"]["refresh_token_set"], &shown["oauth"]["client_id"]),
        (&json!(true), &json!("app-1"))
    );
    assert_eq!(stored(&api).await.1, json!({"refresh_token": "hidden-refresh"}));
    api.patch("/v1/accounts/relay-1", json!({"max_connections": 2})).await.ok(200);
    assert_eq!(stored(&api).await.1, json!({"refresh_token": "hidden-refresh"}));
}

#[tokio::test]
async fn a_grant_and_a_password_take_each_others_place() {
    let api = Api::start().await;
    let mut both = account(grant());
    both["password"] = "hidden-other".into();
    assert_eq!(api.post("/v1/accounts", both).await.wrong_fields(), ["password"]);
    api.post("/v1/accounts", account(grant())).await.ok(201);
    let path = "/v1/accounts/relay-1";
    assert_eq!(api.patch(path, json!({"password": "hidden-other"})).await.wrong_fields(), ["password"]);
    assert_eq!(api.patch(path, json!({"oauth": null})).await.wrong_fields(), ["password"]);
    assert_eq!(api.patch(path, json!({"username": null})).await.wrong_fields(), ["username"]);
    let by_password = api.patch(path, json!({"oauth": null, "password": "hidden-other"})).await.ok(200);
    assert_eq!((&by_password["oauth"], &by_password["password_set"]), (&Value::Null, &json!(true)));
    assert_eq!(stored(&api).await.1, "hidden-other");
    let by_token = api.patch(path, json!({"oauth": grant()})).await.ok(200);
    assert_eq!(by_token["password_set"], false);
    assert_eq!(stored(&api).await.1, json!({"client_secret": "hidden-client"}));
    let ses = json!({"kind": "ses", "region": "eu-west-1"});
    assert_eq!(api.patch(path, ses).await.ok(200)["oauth"], Value::Null);
}

#[tokio::test]
async fn every_fault_of_a_grant_is_named() {
    let api = Api::start().await;
    let wrong = async |oauth: Value| api.post("/v1/accounts", account(oauth)).await.wrong_fields();
    assert_eq!(wrong(json!({})).await, ["oauth.grant"]);
    assert_eq!(wrong(json!("microsoft")).await, ["oauth"]);
    assert_eq!(wrong(json!({"grant": "password", "client_id": "c"})).await, ["oauth.grant"]);
    let bare = json!({"grant": "client_credentials", "client_id": "c", "client_secret": "s"});
    assert_eq!(wrong(bare.clone()).await, ["oauth.token_url"]);
    let at = |url: &str| {
        let mut grant = bare.clone();
        grant["token_url"] = url.into();
        grant
    };
    assert_eq!(wrong(at("http://login.example.com/token")).await, ["oauth.token_url"]);
    for private in ["https://127.0.0.1/token", "http://127.0.0.1:9/token"] {
        assert_eq!(wrong(at(private)).await, ["oauth.token_url"], "{private}");
    }
    let mut colourful = at("https://login.example.com/token");
    colourful["colour"] = 1.into();
    assert_eq!(wrong(colourful).await, ["oauth.colour"]);
    let mut split = at("https://login.example.com/token");
    split["client_secret"] = "a\r\nb".into();
    assert_eq!(wrong(split).await, ["oauth.client_secret"]);
}

#[tokio::test]
async fn secrets_of_a_grant_do_not_follow_it_elsewhere() {
    let api = Api::start().await;
    api.post("/v1/accounts", account(grant())).await.ok(201);
    let path = "/v1/accounts/relay-1";
    for patch in [
        json!({"host": "smtp.evil.example"}),
        json!({"port": 2525}),
        json!({"tls": "none"}),
        json!({"oauth": {"token_url": "https://evil.example/token"}}),
        json!({"oauth": {"directory": "evil.example"}}),
        json!({"oauth": {"preset": null, "token_url": "https://evil.example/token", "directory": null}}),
    ] {
        let refused = api.patch(path, patch.clone()).await;
        assert_eq!(refused.wrong_fields(), ["oauth.client_secret"], "{patch}");
    }
    let whole = json!({"oauth": {"directory": "fabrikam.example", "client_secret": "hidden-other"}});
    api.patch(path, whole).await.ok(200);
    assert_eq!(stored(&api).await.1, json!({"client_secret": "hidden-other"}));
    api.patch(path, json!({"oauth": {"scope": "mail"}})).await.ok(200);
}

#[tokio::test]
async fn a_mailbox_has_a_grant_in_the_place_of_its_token() {
    let api = Api::start().await;
    let oauth = json!({"preset": "microsoft", "grant": "refresh_token", "client_id": "app-1",
        "refresh_token": "hidden-refresh"});
    let body = json!({"id": "in", "host": "outlook.office365.com", "username": "in@contoso.example",
        "oauth": oauth});
    let shown = api.post("/v1/mailboxes", body.clone()).await.ok(201);
    assert_eq!(
        (&shown["auth"], &shown["token_set"], &shown["oauth"]["refresh_token_set"]),
        (&json!("xoauth2"), &json!(false), &json!(true))
    );
    let imap = "https://outlook.office.com/IMAP.AccessAsUser.All offline_access";
    assert_eq!(shown["oauth"]["scope"], imap);
    let kept = async || {
        let key_of = MailboxKey { tenant: "default".parse().unwrap(), mailbox: "in".parse().unwrap() };
        let (mailbox, _) = api.store.mailbox(&key_of).await.unwrap().unwrap();
        let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
        serde_json::from_str::<Value>(&key().open(&place, &mailbox.secret.unwrap()).unwrap()).unwrap()
    };
    assert_eq!(kept().await, json!({"oauth": {"refresh_token": "hidden-refresh"}}));
    let path = "/v1/mailboxes/in";
    let again = api.get(path).await.ok(200);
    assert_eq!(api.patch(path, again.clone()).await.ok(200)["oauth"], again["oauth"]);
    assert_eq!(kept().await, json!({"oauth": {"refresh_token": "hidden-refresh"}}));
    let moved = api.patch(path, json!({"host": "imap.evil.example"})).await;
    assert_eq!(moved.wrong_fields(), ["oauth.refresh_token"]);
    assert_eq!(api.patch(path, json!({"token": "t"})).await.wrong_fields(), ["oauth"]);
    assert_eq!(api.patch(path, json!({"oauth": null})).await.wrong_fields(), ["token"]);
    api.patch(path, json!({"oauth": null, "password": "p"})).await.ok(200);
    assert_eq!(kept().await, json!({"password": "p"}));
    let mut both = body;
    (both["id"], both["username"], both["password"]) = ("b".into(), "b".into(), "p".into());
    assert_eq!(api.post("/v1/mailboxes", both).await.wrong_fields(), ["oauth"]);
}

#[tokio::test]
async fn stored_tokens_are_sealed_anew_with_the_rest() {
    let (old, new) = (SecretKey::from_bytes(&[8; 32]).unwrap(), SecretKey::from_bytes(&[9; 32]).unwrap());
    let api = Api::with_secret_key(SecretKey::from_bytes(&[9; 32]).unwrap().with_previous(key())).await;
    let owner = |id: &str| OAuthOwner::account(&"default".parse().unwrap(), &id.parse().unwrap());
    for (id, sealing) in [("known", &key()), ("foreign", &old)] {
        let tokens = Some(sealing.seal(&owner(id).sealing_context(), "{}").unwrap());
        let updated_at = postway_domain::Time::from_millis(0);
        let state = OAuthState { owner: owner(id), tokens, renewing_until: None, version: 1, updated_at };
        let put = DirectoryChange::PutOAuthState(state, None);
        assert_eq!(api.store.change(put, None).await.unwrap(), ChangeResult::Done);
    }
    let done = api.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!(
        (&done["tokens"], &done["unreadable"]),
        (&json!(1), &json!(["oauth/default/account/foreign"]))
    );
    let state = api.store.oauth_state(&owner("known")).await.unwrap().unwrap();
    assert_eq!(new.open(&owner("known").sealing_context(), &state.tokens.unwrap()).unwrap(), "{}");
}
