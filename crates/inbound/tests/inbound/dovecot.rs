//! The subsystem on a real Dovecot: pages, IDLE, new UIDs, a server that dies, IMAP actions, the test of a
//! mailbox.

use std::sync::Arc;

use postway_domain::{
    WatchedMailbox,
    mailbox::{MailboxRole, MailboxTls, WatchStart},
};
use postway_inbound::{FolderSource, ImapSource, probe};
use postway_net::AddressGuard;
use postway_store::record::DirectoryChange;
use postway_testkit::{Dovecot, dovecot::PASSWORD};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{TestGateway, mail, secret_key, wait_until};

fn source() -> ImapSource {
    ImapSource::new(Arc::new(secret_key()), Arc::new(AddressGuard::with_loopback()))
}

/// The test gateway's mailbox, on this server.
fn on(server: &Dovecot, user: &str, start: WatchStart) -> WatchedMailbox {
    let mut mailbox = super::mailbox(start, &[MailboxRole::Forward]);
    let settings = &mut mailbox.settings;
    settings.host = "127.0.0.1".to_owned();
    settings.port = server.port();
    settings.tls = MailboxTls::None;
    settings.username = user.to_owned();
    // So long that mail seen earlier was reported by IDLE.
    settings.poll_seconds = 3_600;
    let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
    mailbox.secret = Some(secret_key().seal(&place, &json!({"password": PASSWORD}).to_string()).unwrap());
    mailbox.version = 2;
    mailbox
}

struct Running {
    stop: CancellationToken,
    rooms: Vec<tokio::task::JoinHandle<()>>,
}

impl Running {
    fn start(gateway: &TestGateway) -> Self {
        let (stop, source): (_, Arc<dyn FolderSource>) = (CancellationToken::new(), Arc::new(source()));
        let incarnation =
            postway_domain::Incarnation::new(postway_domain::Clock::now(&*gateway.clock), &mut rand::rng());
        let monitor = tokio::spawn(gateway.monitor(source.clone()).run(stop.clone()));
        let router = tokio::spawn(gateway.router(source, incarnation).run(stop.clone()));
        Self { stop, rooms: vec![monitor, router] }
    }

    async fn end(self) {
        self.stop.cancel();
        for room in self.rooms {
            room.await.unwrap();
        }
    }
}

async fn settled(gateway: &TestGateway, count: usize) {
    wait_until(&format!("{count} mails are settled"), || async {
        let mails = gateway.mails().await;
        mails.len() == count && mails.iter().all(|mail| mail.state.is_settled())
    })
    .await;
}

async fn gateway(server: &Dovecot, user: &str, start: WatchStart) -> TestGateway {
    let gateway = TestGateway::new(start, &[MailboxRole::Forward]).await;
    gateway.change(DirectoryChange::UpdateMailbox(on(server, user, start), 1)).await;
    gateway
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_forwarded_once_through_idle_restarts_and_new_uids() {
    let server = Dovecot::start();
    let gateway = gateway(&server, "once", WatchStart::Beginning).await;
    let rule = json!({"actions": [{"do": "forward", "to": ["bob@example.com"], "from": "support@example.net", "as": "redirect"}]});
    gateway.rule("all", 1, rule).await;
    let first: Vec<Vec<u8>> = (0..230).map(mail).collect();
    server.append_all("once", "INBOX", &first);
    let running = Running::start(&gateway);
    settled(&gateway, 230).await;
    // Reported by IDLE.
    server.append("once", "INBOX", &mail(1_000));
    settled(&gateway, 231).await;
    running.end().await;
    server.bump_uid_validity("once", "INBOX");
    server.append("once", "INBOX", &mail(1_001));
    let running = Running::start(&gateway);
    settled(&gateway, 232).await;
    server.kill();
    wait_until("the fault is noted", || async { gateway.state().await.error.is_some() }).await;
    server.start_again();
    server.append("once", "INBOX", &mail(1_002));
    settled(&gateway, 233).await;
    wait_until("the fault is over", || async { gateway.state().await.error.is_none() }).await;
    running.end().await;
    assert_eq!(gateway.messages().await.len(), 233);
    assert_eq!(gateway.state().await.lag(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn errands_are_run_on_the_server() {
    let server = Dovecot::shared();
    let gateway = gateway(server, "errands", WatchStart::Beginning).await;
    let rule = json!({"actions": [{"do": "mark_seen"}, {"do": "move", "folder": "Done"}]});
    gateway.rule("all", 1, rule).await;
    server.append("errands", "Done", &mail(0));
    server.append("errands", "INBOX", &mail(1));
    let running = Running::start(&gateway);
    settled(&gateway, 1).await;
    running.end().await;
    let said = server.client("errands").run("STATUS \"Done\" (MESSAGES UNSEEN)").join("\n");
    assert!(said.contains("MESSAGES 2") && said.contains("UNSEEN 1"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_tells_each_step_and_where_it_ends() {
    let server = Dovecot::shared();
    server.append("trial", "INBOX", &mail(1));
    let good = on(server, "trial", WatchStart::Now);
    let steps = |steps: Vec<postway_inbound::MailboxProbeStep>| {
        steps.into_iter().map(|step| (step.name, step.ok)).collect::<Vec<_>>()
    };
    let said = probe(&source(), &good).await;
    assert!(said.last().unwrap().message.starts_with("1 mails"), "{said:?}");
    assert_eq!(
        steps(said),
        [("connect", true), ("tls", true), ("login", true), ("folder", true), ("mail", true)]
    );
    let mut wrong = good.clone();
    wrong.settings.folder = "Nowhere".to_owned();
    assert_eq!(steps(probe(&source(), &wrong).await).last(), Some(&("folder", false)));
    let place = WatchedMailbox::sealing_context(&good.tenant, &good.id);
    wrong.secret = Some(secret_key().seal(&place, r#"{"password":"wrong"}"#).unwrap());
    let said = probe(&source(), &wrong).await;
    assert!(!format!("{said:?}").contains("\"wrong\""), "a password is never said");
    assert_eq!(steps(said), [("connect", true), ("tls", true), ("login", false)]);
    wrong.secret = None;
    assert_eq!(steps(probe(&source(), &wrong).await), [("settings", false)]);
    let mut away = good.clone();
    away.settings.port = 1;
    assert_eq!(steps(probe(&source(), &away).await), [("connect", false)]);
    let mut secured = good;
    secured.settings.port = server.tls_port();
    secured.settings.tls = MailboxTls::Implicit;
    assert_eq!(steps(probe(&source(), &secured).await), [("connect", true), ("tls", false)]);
    secured.settings.ca_pem = Some(server.ca_pem().to_owned());
    secured.settings.host = "localhost".to_owned();
    assert!(probe(&source(), &secured).await.iter().all(|step| step.ok));
}
