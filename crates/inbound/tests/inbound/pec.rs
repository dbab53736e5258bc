//! Receipts of certified mail: what they say about their message, and which of them are believed.

use std::{fs, path::Path, process::Command, time::Duration};

use postway_domain::{
    Clock, EventKind, InboundState, MessageUid, Time,
    mailbox::{MailboxRole, WatchStart},
};
use postway_inbound::TrustStore;
use postway_store::{InboundStore, Read, record::MessageKey};
use tempfile::TempDir;

use super::{TestGateway, reports::said, tenant};

const PEC: &[MailboxRole] = &[MailboxRole::Pec];

/// The unsigned header of a receipt.
fn header(kind: &str, uid: MessageUid, own_id: &str) -> String {
    format!(
        "X-Ricevuta: {kind}\r\nX-Riferimento-Message-ID: <{uid}@example.com>\r\nMessage-ID: <{own_id}@pec.example>\r\n\
         From: posta-certificata@pec.example\r\nSubject: {kind}\r\n"
    )
}

/// The part that a provider signs, with a daticert.xml of this kind if one is given.
fn content(daticert: Option<&str>, uid: MessageUid, own_id: &str) -> String {
    let file = daticert.map(|kind| {
        format!(
            "--b\r\nContent-Type: application/xml; name=daticert.xml\r\nContent-Disposition: attachment; filename=daticert.xml\r\n\r\n\
             <?xml version=\"1.0\" encoding=\"UTF-8\"?><postacert tipo=\"{kind}\" errore=\"nessuno\"><intestazione><mittente>shop@example.com</mittente>\
             <destinatari tipo=\"certificato\">ada@pec.example</destinatari></intestazione><dati><gestore-emittente>G</gestore-emittente>\
             <msgid>&lt;{uid}@example.com&gt;</msgid><consegna>ada@pec.example</consegna></dati></postacert>\r\n"
        )
    });
    format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nRicevuta {own_id}\r\n{}--b--\r\n",
        file.unwrap_or_default()
    )
}

/// An unsigned receipt.
fn receipt(kind: &str, uid: MessageUid, own_id: &str) -> String {
    format!("{}MIME-Version: 1.0\r\n{}", header(kind, uid, own_id), content(Some(kind), uid, own_id))
}

#[tokio::test]
async fn receipts_become_part_of_their_message_each_once() {
    let gateway = TestGateway::new(WatchStart::Beginning, &[MailboxRole::Pec, MailboxRole::Forward]).await;
    let uid = gateway.send(&["ada@pec.example"]).await;
    for (kind, own_id) in [
        ("accettazione", "r1"),
        ("preavviso-errore-consegna", "r2"),
        ("preavviso-errore-consegna", "r3"),
        ("avvenuta-consegna", "r4"),
    ] {
        gateway.mail_server.deliver(receipt(kind, uid, own_id), gateway.clock.now());
        let count = gateway.mail_server.state().mails.len();
        gateway.settled(count).await;
    }
    let kinds: Vec<_> = said(&gateway, uid).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [EventKind::PecAccepted, EventKind::Delayed, EventKind::PecFailed, EventKind::PecDelivered]
    );
    let kept = gateway.store.receipts(&tenant(), uid).await.unwrap();
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|receipt| receipt.signature == "absent"));
    assert_eq!(kept[3].address.as_deref(), Some("ada@pec.example"));
    let mails = gateway.mails().await;
    assert!(
        mails.iter().all(|mail| mail.kind.as_deref() == Some("pec") && mail.state == InboundState::Routed)
    );
    // Processed once more, nothing is written twice.
    gateway.store.replay_inbound(&tenant(), mails[3].uid, gateway.clock.now()).await.unwrap();
    gateway.settled(4).await;
    assert_eq!(said(&gateway, uid).await.len(), 4);
}

/// A reference that can be guessed: the receipt is stored with its message, and counts only with a verified
/// signature.
#[tokio::test]
async fn a_receipt_finds_the_message_id_that_a_mail_brought_along() {
    let gateway = TestGateway::new(WatchStart::Beginning, PEC).await;
    let uid = super::reports::hand_in(&gateway, "ticket-77.1@desk").await;
    let named = format!("{uid}@example.com");
    let receipt = receipt("avvenuta-consegna", uid, "r1").replace(&named, "ticket-77.1@desk");
    gateway.mail_server.deliver(receipt, gateway.clock.now());
    gateway.settled(1).await;
    let events = said(&gateway, uid).await;
    assert_eq!(events.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [EventKind::UnprovenReport]);
    assert_eq!(events[0].1["says"], "pec_delivered");
    assert_eq!(gateway.store.receipts(&tenant(), uid).await.unwrap().len(), 1);
}

const CONFIG: &str = "[req]\ndistinguished_name=name\n[name]\n[authority]\nbasicConstraints=critical,CA:TRUE\n\
                      keyUsage=critical,keyCertSign\n[mailbox]\nbasicConstraints=critical,CA:FALSE\n\
                      keyUsage=critical,digitalSignature\nextendedKeyUsage=emailProtection\n\
                      subjectAltName=email:posta-certificata@pec.example\n";

/// A provider with a certificate of its own authority, made by the `openssl` command.
struct PecProvider {
    folder: TempDir,
}

impl PecProvider {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("conf"), CONFIG).unwrap();
        let provider = Self { folder };
        for command in [
            "ecparam -name prime256v1 -genkey -noout -out ca.key",
            "req -x509 -new -key ca.key -config conf -extensions authority -subj /CN=Prova -days 30 -out ca.pem",
            "ecparam -name prime256v1 -genkey -noout -out key",
            "req -new -key key -config conf -subj /CN=Gestore -out csr",
            "x509 -req -in csr -CA ca.pem -CAkey ca.key -set_serial 7 -days 20 -extfile conf -extensions mailbox -out pem",
        ] {
            provider.openssl(command);
        }
        provider
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    #[track_caller]
    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        let made = command.args(arguments.split_whitespace()).current_dir(self.path()).output();
        let made = made.expect("the openssl command is there (Debian: openssl)");
        assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn trust(&self) -> TrustStore {
        TrustStore::from_pem(&fs::read(self.path().join("ca.pem")).unwrap()).unwrap()
    }

    /// When its certificates were created, and from when they are valid.
    fn now(&self) -> Time {
        let made = fs::metadata(self.path().join("pem")).unwrap().modified().unwrap();
        let since = made.duration_since(std::time::UNIX_EPOCH).unwrap();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap())
    }

    /// A mail with this header, around this content and its signature.
    fn sign(&self, header: &str, content: &str) -> Vec<u8> {
        fs::write(self.path().join("content"), content).unwrap();
        self.openssl("smime -sign -md sha256 -signer pem -inkey key -in content -out signed");
        [header.as_bytes(), &fs::read(self.path().join("signed")).unwrap()].concat()
    }
}

/// A gateway that trusts the provider, with a message that waits for its receipt for an hour.
async fn certified(provider: &PecProvider) -> (TestGateway, MessageUid) {
    let mut gateway = TestGateway::new(WatchStart::Beginning, PEC).await;
    gateway.trust = provider.trust();
    let until = gateway.clock.now().plus(Duration::from_secs(3_600));
    let uid = gateway.sent(&["ada@pec.example"], Some(until)).await;
    (gateway, uid)
}

async fn outcome(gateway: &TestGateway, uid: MessageUid) -> Option<EventKind> {
    let record = gateway.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
    record.recipients[0].outcome
}

/// How many messages have waited in vain by then.
async fn timed_out(gateway: &TestGateway) -> u32 {
    gateway.advance(Duration::from_secs(3_601));
    gateway.store.time_out_receipts(gateway.clock.now(), 9).await.unwrap()
}

#[tokio::test]
async fn a_verified_receipt_sets_the_outcome_and_ends_the_wait() {
    let provider = PecProvider::new();
    let (gateway, uid) = certified(&provider).await;
    let kind = "avvenuta-consegna";
    let raw = provider.sign(&header(kind, uid, "r1"), &content(Some(kind), uid, "r1"));
    gateway.mail_server.deliver(raw, provider.now());
    gateway.settled(1).await;
    let kept = gateway.store.receipts(&tenant(), uid).await.unwrap();
    assert_eq!((kept.len(), kept[0].signature.as_str()), (1, "verified"), "{}", kept[0].detail);
    assert_eq!(outcome(&gateway, uid).await, Some(EventKind::PecDelivered));
    assert_eq!(timed_out(&gateway).await, 0);
}

#[tokio::test]
async fn with_a_trust_store_a_receipt_that_is_not_verified_is_kept_and_changes_nothing() {
    let (provider, stranger) = (PecProvider::new(), PecProvider::new());
    let delivered = "avvenuta-consegna";
    let (gateway, uid) = certified(&provider).await;
    let header = |own_id: &str| header(delivered, uid, own_id);
    let genuine = |own_id: &str| content(Some(delivered), uid, own_id);
    let beside = format!("\r\n{}\r\n", genuine("r5"));
    let signed = provider.sign(&header("r5"), &content(None, uid, "r5"));
    let with_part_beside = insert_part(&signed, &beside);
    let unsigned = receipt(delivered, uid, "r1").into_bytes();
    for (own_id, raw, signature, why) in [
        ("r1", unsigned, "absent", ""),
        ("r2", stranger.sign(&header("r2"), &genuine("r2")), "unverified", "the certificate"),
        // The header of a receipt around what the provider signed for another purpose.
        ("r3", provider.sign(&header("r3"), &content(None, uid, "r3")), "unverified", "no daticert.xml"),
        (
            "r4",
            provider.sign(&header("r4"), &content(Some("accettazione"), uid, "r4")),
            "unverified",
            "contradict",
        ),
        ("r5", with_part_beside, "unverified", "no daticert.xml"),
    ] {
        gateway.mail_server.deliver(raw, provider.now());
        let count = gateway.mail_server.state().mails.len();
        gateway.settled(count).await;
        let kept = gateway.store.receipts(&tenant(), uid).await.unwrap();
        let own = format!("\"{own_id}@pec.example\"");
        let one = kept.iter().find(|one| one.detail.contains(&own)).unwrap();
        assert_eq!((kept.len(), one.signature.as_str()), (count, signature), "{}", one.detail);
        assert!(one.detail.contains(why), "{} instead of {why}", one.detail);
    }
    let events = said(&gateway, uid).await;
    assert_eq!(events.len(), 5);
    for (kind, data) in events {
        assert_eq!(kind, EventKind::UnprovenReport);
        assert_eq!([&data["says"], &data["proof"]], ["pec_delivered", "unverified_receipt"]);
    }
    assert_eq!(outcome(&gateway, uid).await, None);
    // The alarm for a missing receipt is still raised.
    assert_eq!(timed_out(&gateway).await, 1);
    assert_eq!(outcome(&gateway, uid).await, Some(EventKind::PecTimeout));
}

#[tokio::test]
async fn a_receipt_counts_when_it_is_replayed_after_its_authority_was_added() {
    let (provider, other) = (PecProvider::new(), PecProvider::new());
    let (mut gateway, uid) = certified(&other).await;
    let kind = "avvenuta-consegna";
    let raw = provider.sign(&header(kind, uid, "r1"), &content(Some(kind), uid, "r1"));
    gateway.mail_server.deliver(raw, provider.now());
    let mails = gateway.settled(1).await;
    assert_eq!(outcome(&gateway, uid).await, None);
    gateway.trust = provider.trust();
    for _ in 0..2 {
        gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap();
        gateway.settled(1).await;
    }
    let kinds: Vec<_> = said(&gateway, uid).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [EventKind::UnprovenReport, EventKind::PecDelivered]);
    assert_eq!(outcome(&gateway, uid).await, Some(EventKind::PecDelivered));
    let kept = gateway.store.receipts(&tenant(), uid).await.unwrap();
    assert_eq!((kept.len(), kept[0].signature.as_str()), (1, "verified"));
    assert_eq!(timed_out(&gateway).await, 0);
}

#[tokio::test]
async fn a_forged_notice_does_not_make_a_failure_of_the_next_one() {
    let provider = PecProvider::new();
    let (gateway, uid) = certified(&provider).await;
    let late = "preavviso-errore-consegna";
    gateway.mail_server.deliver(receipt(late, uid, "r1"), provider.now());
    gateway.settled(1).await;
    let raw = provider.sign(&header(late, uid, "r2"), &content(Some(late), uid, "r2"));
    gateway.mail_server.deliver(raw, provider.now());
    gateway.settled(2).await;
    let kinds: Vec<_> = said(&gateway, uid).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [EventKind::UnprovenReport, EventKind::Delayed]);
}

/// The mail with one more part in its outermost multipart, before its closing line.
fn insert_part(raw: &[u8], part: &str) -> Vec<u8> {
    let text = String::from_utf8(raw.to_vec()).unwrap();
    let boundary = text.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    let end = format!("--{boundary}--");
    assert_eq!(text.matches(&end).count(), 1, "{text}");
    text.replace(&end, &format!("--{boundary}{part}{end}")).into_bytes()
}
