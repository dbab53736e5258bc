//! Mail from other servers: the reception behind its real listener, on the in-memory store.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use postway_domain::{
    Clock, EventKind, InboundState, MessageUid, TenantSettings, WatchedMailbox,
    mailbox::{MailboxRole, MailboxSettings, WatchStart},
    verp::{self, VerpKey},
};
use postway_inbound::{Reception, ReceptionParts, SenderCheck, SenderVerdict, SystemSenderCheck};
use postway_intake::smtp::{ReceptionDesk, ReceptionMail, SmtpConfig, SmtpListener, SmtpTimeouts};
use postway_mime::dkim::{Algorithm, DkimSigner, dns_name, dns_record, generate};
use postway_store::{InboundStore, record::DirectoryChange};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, TestGateway, mailbox, reports::said, secret_key, tenant};

/// Finds nothing, or, when it is set so, that the author's domain asks to refuse the mail.
#[derive(Default)]
struct FixedSenderCheck(AtomicBool);

#[async_trait]
impl SenderCheck for FixedSenderCheck {
    async fn check(&self, _: &ReceptionMail) -> SenderVerdict {
        let is_to_be_refused = self.0.load(Ordering::Relaxed);
        let result = if is_to_be_refused { "fail" } else { "pass" };
        SenderVerdict { results: vec![format!("dmarc={result} header.from=example.org")], is_to_be_refused }
    }
}

/// A listener on the store of a gateway.
struct TestReception {
    address: SocketAddr,
    sender_check: Arc<FixedSenderCheck>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _service: watch::Sender<Option<Arc<dyn ReceptionDesk>>>,
}

impl TestReception {
    async fn open(gateway: &TestGateway) -> Self {
        Self::open_with(gateway, |config| config, 1_000).await
    }

    async fn open_with(
        gateway: &TestGateway,
        edit: impl FnOnce(SmtpConfig) -> SmtpConfig,
        mails_per_minute_max: u32,
    ) -> Self {
        let sender_check = Arc::new(FixedSenderCheck::default());
        let desk: Arc<dyn ReceptionDesk> = Arc::new(Reception::new(ReceptionParts {
            store: gateway.store.clone(),
            depot: gateway.depot.clone(),
            clock: gateway.clock.clone(),
            secret_key: Arc::new(secret_key()),
            sender_check: sender_check.clone(),
            name: "mx.example.net".to_owned(),
            mail_bytes_max: 64 * 1024,
            mails_per_minute_max,
            refuses_by_dmarc: true,
        }));
        let timeouts = SmtpTimeouts {
            idle: Duration::from_millis(300),
            login: Duration::from_millis(300),
            wrong_key: Duration::from_millis(5),
            ..SmtpTimeouts::default()
        };
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let config = SmtpConfig { listen, timeouts, ..SmtpConfig::new("mx.example.net") };
        let listener = SmtpListener::bind(edit(config)).await.unwrap();
        let address = listener.address().unwrap();
        let (service, served) = watch::channel(Some(desk));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.run(served, stop.clone()));
        Self { address, sender_check, stop, serving, _service: service }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Says all of this at once and returns the codes of the replies, the greeting's first, until the session ends.
    async fn talk(&self, said: &[u8]) -> Vec<String> {
        let mut stream = self.connect().await;
        stream.write_all(said).await.unwrap();
        codes(&mut stream).await
    }

    /// Delivers a mail; returns the code that answers its recipient, or its end.
    async fn deliver(&self, from: &str, to: &str, mail: &str) -> String {
        let said = format!(
            "EHLO mx.example.org\r\nMAIL FROM:<{from}>\r\nRCPT TO:<{to}>\r\nDATA\r\n{mail}.\r\nQUIT\r\n"
        );
        let codes = self.talk(said.as_bytes()).await;
        match codes[3].as_str() {
            "250" => codes[5].clone(),
            refused => refused.to_owned(),
        }
    }

    async fn close(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.serving).await.expect("it stops").unwrap();
    }
}

/// The codes of all replies until the connection ends.
async fn codes(stream: &mut TcpStream) -> Vec<String> {
    let mut heard = Vec::new();
    // A client that was cut off may see a reset after the last reply.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut heard)).await.expect("the session ends");
    let text = String::from_utf8(heard).unwrap();
    text.lines()
        .filter(|line| line.as_bytes().get(3) == Some(&b' '))
        .map(|line| line[..3].to_owned())
        .collect()
}

fn received(id: &str, addresses: &[&str], roles: &[MailboxRole]) -> WatchedMailbox {
    let watched = mailbox(WatchStart::Now, roles);
    let addresses = addresses.iter().map(|one| (*one).to_owned()).collect();
    let settings =
        MailboxSettings { host: String::new(), username: String::new(), addresses, ..watched.settings };
    WatchedMailbox { id: id.parse().unwrap(), settings, ..watched }
}

/// A gateway whose reception knows a desk, everybody of one domain, and the signed paths of another.
async fn gateway() -> TestGateway {
    let settings = TenantSettings { bounce_domain: Some("b.example.net".to_owned()), ..Default::default() };
    let gateway = TestGateway::with(settings, WatchStart::Now, &[MailboxRole::Forward]).await;
    for (id, addresses, role) in [
        ("desk", &["desk@in.example.net"][..], MailboxRole::Events),
        ("all", &["*@all.example.net"], MailboxRole::Events),
        ("paths", &["@b.example.net"], MailboxRole::Bounces),
    ] {
        gateway.change(DirectoryChange::CreateMailbox(received(id, addresses, &[role]))).await;
    }
    gateway
}

fn path(uid: MessageUid, recipient: &str) -> String {
    verp::encode(uid, Some(recipient), &VerpKey::new(&secret_key()), "b.example.net")
}

const QUESTION: &str = "From: Ada <ada@example.org>\r\nTo: desk@in.example.net\r\nSubject: Question\r\nMessage-ID: <q@example.org>\r\n\
    Authentication-Results: mx.example.net; dmarc=pass header.from=bank.example\r\n\r\nHello\r\n";

fn bounce(to: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.example.org\r\nTo: {to}\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\n\
         Final-Recipient: rfc822; ada@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n--b--\r\n"
    )
}

#[tokio::test]
async fn mail_for_a_known_address_is_durable_and_told_with_what_was_found_out_about_its_sender() {
    let gateway = gateway().await;
    let reception = TestReception::open(&gateway).await;
    assert_eq!(reception.deliver("ada@example.org", "Desk+7@in.example.net", QUESTION).await, "250");
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].state, mails[0].key.mailbox.as_str()), (InboundState::Routed, "desk"));
    let record = gateway.store.inbound_one(&tenant(), mails[0].uid).await.unwrap().unwrap();
    let event: Value = serde_json::from_str(record.events[0].data.as_deref().unwrap()).unwrap();
    assert_eq!(event["envelope"], json!({"from": "ada@example.org", "to": ["Desk+7@in.example.net"]}));
    // The field that the sender wrote stands below ours, and does not count.
    assert_eq!(event["authentication"]["dmarc"], json!({"result": "pass", "domain": "example.org"}));
    // The server that lost our 250 delivers it again.
    assert_eq!(reception.deliver("ada@example.org", "Desk+7@in.example.net", QUESTION).await, "250");
    assert_eq!(gateway.mails().await.len(), 1, "it is there once");
    let other = QUESTION.replace("Hello", "Hello again");
    assert_eq!(reception.deliver("ada@example.org", "desk@in.example.net", &other).await, "250");
    assert_eq!(gateway.settled(2).await.len(), 2);
    reception.close().await;
}

#[tokio::test]
async fn nobody_is_relayed_for_and_nobody_unknown_gets_mail() {
    let gateway = gateway().await;
    let reception = TestReception::open(&gateway).await;
    for (to, code) in [
        ("ada@example.org", "550"),
        ("nobody@in.example.net", "550"),
        ("desk@in.example.net.evil.example", "550"),
        ("desk%example.org@in.example.net", "550"),
        ("\"desk@in.example.net\"@example.org", "550"),
        ("anybody@all.example.net", "250"),
        ("anybody@sub.all.example.net", "550"),
        ("postmaster", "550"),
    ] {
        let answered = reception.deliver("a@example.org", to, QUESTION).await;
        assert!(answered.starts_with(&code[..2]), "{to}: {answered}");
    }
    assert_eq!(gateway.mails().await.len(), 1);
    reception.close().await;
}

#[tokio::test]
async fn a_bounce_comes_straight_in_and_only_by_a_path_that_we_signed() {
    let gateway = gateway().await;
    let reception = TestReception::open(&gateway).await;
    let uid = gateway.sent(&["ada@example.org"], None).await;
    let path = path(uid, "ada@example.org");
    let forged = path.replacen("b+", "b+a", 1);
    let digest_changed = {
        let at = path.find('@').unwrap() - 1;
        let other = if path.as_bytes()[at] == b'a' { "b" } else { "a" };
        format!("{}{other}{}", &path[..at], &path[at + 1..])
    };
    for wrong in
        [forged, digest_changed, "somebody@b.example.net".to_owned(), path.replace("b.example", "in.example")]
    {
        assert_eq!(reception.deliver("", &wrong, &bounce(&wrong)).await, "550", "{wrong}");
    }
    assert_eq!(reception.deliver("", &path.to_uppercase(), &bounce(&path)).await, "250");
    gateway.settled(1).await;
    let events = said(&gateway, uid).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((*kind, data["proof"].as_str()), (EventKind::Bounced, Some("verp")));
    reception.close().await;
}

#[tokio::test]
async fn a_path_of_another_tenant_is_nobody_s() {
    let gateway = gateway().await;
    let key = super::MailboxKey { tenant: tenant(), mailbox: "paths".parse().unwrap() };
    gateway.change(DirectoryChange::DeleteMailbox(key)).await;
    let other = postway_domain::Tenant::new("other".parse().unwrap(), "Other", gateway.clock.now());
    use postway_store::DirectoryStore as _;
    assert!(gateway.store.create_tenant(other).await.unwrap());
    let theirs = received("paths", &["@b.example.net"], &[MailboxRole::Bounces]);
    let theirs = WatchedMailbox { tenant: "other".parse().unwrap(), ..theirs };
    gateway.change(DirectoryChange::CreateMailbox(theirs)).await;
    let reception = TestReception::open(&gateway).await;
    let uid = gateway.sent(&["ada@example.org"], None).await;
    let path = path(uid, "ada@example.org");
    assert_eq!(reception.deliver("", &path, &bounce(&path)).await, "550");
    reception.close().await;
}

#[tokio::test]
async fn what_dmarc_asks_to_refuse_is_refused_while_the_server_listens() {
    let gateway = gateway().await;
    let reception = TestReception::open(&gateway).await;
    reception.sender_check.0.store(true, Ordering::Relaxed);
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", QUESTION).await, "550");
    assert!(gateway.mails().await.is_empty());
    reception.close().await;
}

#[tokio::test]
async fn two_nodes_that_receive_for_one_mailbox_lose_nothing() {
    let gateway = gateway().await;
    let nodes = [TestReception::open(&gateway).await, TestReception::open(&gateway).await];
    let mails = (0..40).map(|number| {
        let (node, mail) = (&nodes[number % 2], QUESTION.replace("Hello", &format!("Hello {number}")));
        async move { node.deliver("a@example.org", "desk@in.example.net", &mail).await }
    });
    let codes = futures::future::join_all(mails).await;
    assert!(codes.iter().all(|code| code == "250"), "{codes:?}");
    let mails = gateway.mails().await;
    assert_eq!(mails.len(), 40);
    let mut uids: Vec<u32> = mails.iter().map(|mail| mail.imap_uid).collect();
    uids.dedup();
    assert_eq!(uids, (1..=40).collect::<Vec<_>>());
    for node in nodes {
        node.close().await;
    }
}

#[tokio::test]
async fn mail_too_large_loops_smugglers_and_the_slow_are_refused_and_others_go_on() {
    let gateway = gateway().await;
    let reception = TestReception::open(&gateway).await;
    let large = format!("Subject: x\r\n\r\n{}\r\n", "y".repeat(70).repeat(1_000));
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", &large).await, "552");
    let looping = format!("{}{QUESTION}", "Received: from a by b\r\n".repeat(101));
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", &looping).await, "554");
    let opening = "EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<desk@in.example.net>\r\nDATA\r\n";
    let smuggled =
        format!("{opening}a\r\n\n.\r\nMAIL FROM:<x@y.example>\r\nRCPT TO:<desk@in.example.net>\r\n");
    let codes = reception.talk(smuggled.as_bytes()).await;
    assert_eq!(codes.last().map(String::as_str), Some("554"), "{codes:?}");
    // One that says nothing, and one that stops within a mail.
    for said in ["", opening] {
        let mut slow = reception.connect().await;
        slow.write_all(said.as_bytes()).await.unwrap();
        assert_eq!(codes_of(&mut slow).await.last().map(String::as_str), Some("421"));
    }
    assert!(gateway.mails().await.is_empty(), "nothing of all this was taken");
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", QUESTION).await, "250");
    reception.close().await;
}

async fn codes_of(stream: &mut TcpStream) -> Vec<String> {
    codes(stream).await
}

#[tokio::test]
async fn a_flood_is_held_by_connections_and_by_the_minute() {
    let gateway = gateway().await;
    let edit = |config| SmtpConfig { connections_per_client_max: 3, ..config };
    let reception = TestReception::open_with(&gateway, edit, 4).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(reception.connect().await);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(codes(&mut reception.connect().await).await, ["421"], "a fourth connection of one client");
    for mut stream in held {
        codes(&mut stream).await;
    }
    let tries = ["250", "250", "250", "250", "450", "450"];
    for (number, expected) in tries.into_iter().enumerate() {
        let mail = QUESTION.replace("Hello", &format!("Hello {number}"));
        assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", &mail).await, expected);
    }
    gateway.advance(Duration::from_secs(60));
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", QUESTION).await, "250");
    reception.close().await;
}

#[tokio::test]
async fn who_speaks_before_the_greeting_is_cut_off() {
    let gateway = gateway().await;
    let edit = |config| SmtpConfig { greeting_delay: Duration::from_millis(100), ..config };
    let reception = TestReception::open_with(&gateway, edit, 1_000).await;
    assert_eq!(reception.talk(b"EHLO x\r\nQUIT\r\n").await, ["554"]);
    let mut patient = reception.connect().await;
    let mut greeting = [0; 4];
    patient.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 ");
    reception.close().await;
}

#[tokio::test]
async fn a_suspended_mailbox_lets_mail_wait_with_its_server() {
    let gateway = gateway().await;
    let key = super::MailboxKey { tenant: tenant(), mailbox: "desk".parse().unwrap() };
    let (desk, _) = gateway.store.mailbox(&key).await.unwrap().unwrap();
    let settings = MailboxSettings { active: false, ..desk.settings.clone() };
    let (version, changed) = (desk.version, WatchedMailbox { settings, version: desk.version + 1, ..desk });
    gateway.change(DirectoryChange::UpdateMailbox(changed, version)).await;
    let reception = TestReception::open(&gateway).await;
    assert_eq!(reception.deliver("a@example.org", "desk@in.example.net", QUESTION).await, "450");
    reception.close().await;
}

/// A name server with these TXT records.
async fn name_server(records: HashMap<String, String>) -> (SocketAddr, JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut query = [0; 1_500];
        while let Ok((length, client)) = socket.recv_from(&mut query).await {
            let Some(answer) = answer(&query[..length], &records) else { continue };
            socket.send_to(&answer, client).await.ok();
        }
    });
    (address, serving)
}

fn answer(query: &[u8], records: &HashMap<String, String>) -> Option<Vec<u8>> {
    let (mut name, mut at) = (String::new(), 12);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        name += std::str::from_utf8(query.get(at..at + length)?).ok()?;
        name.push('.');
        at += length;
    }
    let kind = query.get(at..at + 2)?;
    let question = &query[12..at + 4];
    let found = records.get(name.trim_end_matches('.').to_lowercase().as_str()).filter(|_| kind == [0, 16]);
    let mut out = query[..2].to_vec();
    out.extend([
        0x81,
        if found.is_some() { 0x80 } else { 0x83 },
        0,
        1,
        0,
        u8::from(found.is_some()),
        0,
        0,
        0,
        0,
    ]);
    out.extend(question);
    if let Some(text) = found {
        let strings: Vec<u8> =
            text.as_bytes().chunks(200).flat_map(|chunk| [&[chunk.len() as u8], chunk].concat()).collect();
        out.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
        out.extend((strings.len() as u16).to_be_bytes());
        out.extend(strings);
    }
    Some(out)
}

fn arrived(from: &str, body: Vec<u8>) -> ReceptionMail {
    ReceptionMail {
        client: postway_intake::smtp::ReceptionClient {
            peer: "192.0.2.7".parse().unwrap(),
            greeted_as: "mx.example.org".to_owned(),
            secure: true,
            session: "s".to_owned(),
        },
        from: Some(from.parse().unwrap()),
        to: vec!["desk@in.example.net".parse().unwrap()],
        smtputf8: false,
        body: body.into(),
        number: 1,
    }
}

/// Our own signatures are what is verified: by another library than the one that made them.
#[tokio::test]
async fn senders_are_checked_by_spf_dkim_and_dmarc() {
    postway_net::install_crypto_provider();
    let mut records: HashMap<String, String> = [
        ("example.org", "v=spf1 ip4:192.0.2.7 -all"),
        ("_dmarc.example.org", "v=DMARC1; p=reject"),
        ("lax.example", "v=spf1 ip4:198.51.100.1 ~all"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into();
    let mail = "From: Ada <ada@example.org>\r\nTo: desk@in.example.net\r\nSubject: s\r\nDate: Mon, 1 Jan 2024 00:00:00 +0000\r\n\r\nHello\r\n";
    let mut signed = mail.as_bytes().to_vec();
    for (selector, algorithm) in [("rsa", Algorithm::Rsa), ("ed", Algorithm::Ed25519)] {
        let key = generate(algorithm).unwrap();
        records.insert(dns_name(selector, "example.org"), dns_record(algorithm, &key.public));
        let signer =
            DkimSigner::new("example.org", selector, algorithm, key.private_pkcs8.expose_secret()).unwrap();
        let field = signer.sign(mail.as_bytes(), 1_700_000_000).unwrap();
        signed = [field.as_bytes(), &signed].concat();
    }
    let (server, serving) = name_server(records).await;
    let check = SystemSenderCheck::new("mx.example.net", Some(server)).unwrap();
    let results = async |from: &str, body: Vec<u8>| check.check(&arrived(from, body)).await;

    let good = results("ada@example.org", signed.clone()).await;
    assert_eq!(
        good.results,
        [
            "spf=pass smtp.mailfrom=example.org",
            "dkim=pass header.d=example.org",
            "dkim=pass header.d=example.org",
            "dmarc=pass header.from=example.org",
        ]
    );
    assert!(!good.is_to_be_refused);

    // The envelope is another's and the body was changed: nothing vouches for the author any more.
    let changed = String::from_utf8(signed).unwrap().replace("Hello", "Pay me");
    let bad = results("evil@lax.example", changed.into_bytes()).await;
    assert_eq!(bad.results[0], "spf=softfail smtp.mailfrom=lax.example");
    assert!(bad.results[1..3].iter().all(|one| one.starts_with("dkim=neutral")), "{bad:?}");
    assert_eq!(bad.results[3], "dmarc=fail header.from=example.org");
    assert!(bad.is_to_be_refused, "the domain says p=reject");

    let unsigned = results("x@nothing.example", b"From: x@nothing.example\r\n\r\nhi\r\n".to_vec()).await;
    assert_eq!(unsigned.results[0], "spf=none smtp.mailfrom=nothing.example");
    assert!(!unsigned.is_to_be_refused);
    serving.abort();

    // Without a name server nothing is known, and the mail is kept in time.
    let deaf = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let check = SystemSenderCheck::new("mx.example.net", Some(deaf.local_addr().unwrap())).unwrap();
    let late =
        timeout(PATIENCE, check.check(&arrived("a@example.org", mail.as_bytes().to_vec()))).await.unwrap();
    assert!(late.results[0].starts_with("spf=temperror") && !late.is_to_be_refused, "{late:?}");
}
