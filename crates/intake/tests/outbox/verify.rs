//! Verifying tokens: valid, invalid, and how often a code may be guessed.

use postway_intake::outbox::{OutboxStatusApi, PresentedToken, TokenCheck};
use postway_testkit::postgres::PostgresDatabase;

use super::{ServedSource, TestGateway, installed, rotated_key, tenant, until, with_accounts};

struct MailedToken {
    gateway: TestGateway,
    database: PostgresDatabase,
    desk: OutboxStatusApi,
    served: ServedSource,
    token: String,
    code: String,
}

/// An account whose activation mail was accepted, and the contents of the mail.
async fn mailed() -> MailedToken {
    let database = installed(true).await;
    let gateway = TestGateway::beside(&database).await;
    let served = gateway.serve(with_accounts(&database.url()));
    database.run("INSERT INTO accounts (email, login) VALUES ('ada@example.net', 'ada')");
    until(&database, "SELECT state FROM tokens", "mailed").await;
    let (token, code) = said(&database, &gateway).await;
    MailedToken { desk: gateway.desk(&served), gateway, database, served, token, code }
}

/// The token and the code in a mail.
async fn said(database: &PostgresDatabase, gateway: &TestGateway) -> (String, String) {
    let nonce = database.run("SELECT nonce FROM tokens");
    let mail = gateway.mail(&format!("outbox:app:token:{nonce}")).await;
    let after = |words: &str| mail.split(words).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    (after("?token="), after("this code:"))
}

impl MailedToken {
    async fn verify(&self, token: &str, path: &str, code: Option<&str>, consume: bool) -> TokenCheck {
        let (token, path, code) = (token.to_owned(), path.to_owned(), code.map(str::to_owned));
        self.desk.verify(&tenant(), &PresentedToken { token, path, code, consume }).await.unwrap()
    }

    fn good(&self, consumed: bool) -> TokenCheck {
        TokenCheck::Valid { action: "activation", account: 1, login: "ada".to_owned(), consumed }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_for_its_path_until_it_is_consumed() {
    let mailed = mailed().await;
    assert_eq!(mailed.code.len(), 5);
    assert_eq!(mailed.verify(&mailed.token, "/activate", None, false).await, mailed.good(false));
    assert_eq!(mailed.verify(&mailed.token, "/recover", None, false).await, TokenCheck::Invalid("path"));
    assert_eq!(mailed.verify("AAAA", "/activate", None, false).await, TokenCheck::Invalid("malformed"));
    // The signature of another secret.
    let first = if mailed.token.starts_with('A') { "B" } else { "A" };
    let other = format!("{first}{}", &mailed.token[1..]);
    assert_eq!(mailed.verify(&other, "/activate", None, false).await, TokenCheck::Invalid("unknown"));
    let presented = PresentedToken {
        token: mailed.token.clone(),
        path: "/activate".to_owned(),
        code: None,
        consume: false,
    };
    let elsewhere = mailed.desk.verify(&"other".parse().unwrap(), &presented).await.unwrap();
    assert_eq!(elsewhere, TokenCheck::Invalid("unknown"));

    assert_eq!(mailed.verify(&mailed.token, "/activate", Some(&mailed.code), true).await, mailed.good(true));
    assert_eq!(mailed.database.run("SELECT status FROM accounts"), "active");
    assert_eq!(mailed.verify(&mailed.token, "/activate", None, false).await, TokenCheck::Invalid("consumed"));
    mailed.served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fifth_wrong_code_ends_the_token() {
    let mailed = mailed().await;
    let wrong = if mailed.code == "00000" { "00001" } else { "00000" };
    for _ in 0..4 {
        assert_eq!(
            mailed.verify(&mailed.token, "/activate", Some(wrong), true).await,
            TokenCheck::Invalid("code")
        );
    }
    assert_eq!(
        mailed.verify(&mailed.token, "/activate", Some(&mailed.code), false).await,
        mailed.good(false)
    );
    assert_eq!(
        mailed.verify(&mailed.token, "/activate", Some(wrong), true).await,
        TokenCheck::Invalid("attempts")
    );
    let now = mailed.verify(&mailed.token, "/activate", Some(&mailed.code), true).await;
    assert_eq!(now, TokenCheck::Invalid("attempts"));
    assert_eq!(mailed.database.run("SELECT state FROM tokens"), "revoked");
    assert_eq!(mailed.database.run("SELECT status FROM accounts"), "provisioned");
    mailed.served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_time_is_over_is_not_good() {
    let mailed = mailed().await;
    mailed.database.run("UPDATE tokens SET expires_at = 1");
    assert_eq!(mailed.verify(&mailed.token, "/activate", None, true).await, TokenCheck::Invalid("expired"));
    assert_eq!(mailed.database.run("SELECT status FROM accounts"), "provisioned");
    mailed.served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_out_outlives_the_secret_key_it_was_made_under() {
    let mut mailed = mailed().await;
    mailed.desk = OutboxStatusApi::new(vec![mailed.served.outbox.clone()], &rotated_key()).unwrap();
    for _ in 0..6 {
        let found = mailed.verify(&mailed.token, "/activate", Some(&mailed.code), false).await;
        assert_eq!(found, mailed.good(false));
    }
    assert_eq!(
        mailed.database.run("SELECT attempts FROM tokens"),
        "0",
        "a right code is not counted as wrong"
    );
    let wrong = if mailed.code == "00000" { "00001" } else { "00000" };
    let found = mailed.verify(&mailed.token, "/activate", Some(wrong), true).await;
    assert_eq!(found, TokenCheck::Invalid("code"), "a wrong one is");
    assert_eq!(mailed.verify(&mailed.token, "/activate", Some(&mailed.code), true).await, mailed.good(true));
    mailed.served.stop().await;
}

/// The process dies between accepting the mail and marking its row, and comes back with another secret key.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_was_accepted_under_the_old_key_keeps_its_link_and_code() {
    let mailed = mailed().await;
    let MailedToken { gateway, database, served, token, code, .. } = mailed;
    served.stop().await;
    database.run(
        "ALTER TABLE tokens DISABLE TRIGGER USER; UPDATE tokens SET state = 'issued', secret_hash = NULL, \
         link_hash = NULL, code_hash = NULL, message_uid = NULL, mail_status = NULL; ALTER TABLE tokens ENABLE TRIGGER USER",
    );
    let served = gateway.serve_under(with_accounts(&database.url()), &rotated_key());
    until(&database, "SELECT state FROM tokens", "mailed").await;
    assert_eq!(gateway.count().await, 1, "it is the same mail");
    let desk = OutboxStatusApi::new(vec![served.outbox.clone()], &rotated_key()).unwrap();
    let again = MailedToken { gateway, database, desk, served, token, code };
    assert_eq!(again.verify(&again.token, "/activate", Some(&again.code), true).await, again.good(true));
    again.served.stop().await;
}
