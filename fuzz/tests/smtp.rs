//! SMTP from both sides: no client smuggles a mail past the receiver, and no relay makes the client believe
//! what it did not say. Neither makes the other panic, hang or hold more than it may.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use std::{cell::Cell, sync::Mutex, time::Duration};

use postway_dispatch::transport::{
    DeliveryEnd, DeliveryResult, GateRefused, MailEnvelope, RecipientReply, RelayDialer, SmtpConnection,
    SmtpDeadlines, SmtpSettings, WireGate,
};
use postway_domain::RelayTlsMode;
use postway_fuzz::{
    smtp::{
        client, cut,
        reference::{self, HeardSession},
        relay,
    },
    try_seeds,
};
use postway_intake::smtp::{OfflineRules, OfflineSession};
use postway_net::{AddressGuard, EgressPath, NetError, NetStream, TlsClient};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    runtime::Builder,
    time::Instant,
};

/// Within this many scripts, some are correct from end to end.
const ENOUGH: u64 = 200;
const MESSAGE_BYTES_MAX: usize = 4_000;
/// What a session may hold of lines that have not ended.
const UNREAD_BYTES_MAX: usize = 12_288;

fn heard(rules: OfflineRules, pieces: &[Vec<u8>]) -> OfflineSession {
    let mut session = OfflineSession::new(rules);
    for piece in pieces {
        session.hear(piece);
        assert!(session.is_over() || session.unread_bytes() <= UNREAD_BYTES_MAX + piece.len());
    }
    session
}

fn check(pieces: &[Vec<u8>], session: &OfflineSession) {
    let mails = session.mails().iter().map(|mail| &mail[..]).collect();
    let heard = HeardSession { output: session.output(), mails, is_over: session.is_over() };
    if let Err(wrong) = reference::check(pieces, &heard) {
        let said = pieces.concat();
        panic!("{wrong}\nsaid: {}\nheard: {}", said.escape_ascii(), session.output().escape_ascii());
    }
    assert!(session.mails().iter().all(|mail| mail.len() <= MESSAGE_BYTES_MAX));
}

#[test]
fn no_client_smuggles_a_mail_or_gets_one_in_without_a_key() {
    use rand::Rng as _;
    let taken = Cell::new(0);
    let scripts = try_seeds(|random| {
        let stream = client::session(random);
        let pieces = cut(random, &stream);
        let rules = OfflineRules {
            message_bytes_max: MESSAGE_BYTES_MAX,
            recipients_max: 3,
            offers_tls: random.random_bool(0.7),
            trusts_plain: random.random_bool(0.7),
            is_reception: false,
        };
        let session = heard(rules, &pieces);
        check(&pieces, &session);
        taken.set(taken.get() + session.mails().len());
        // Where nothing is forgotten for TLS, the pieces in which it came make no difference.
        if !rules.offers_tls {
            let whole = heard(rules, &[stream]);
            assert_eq!((whole.output(), whole.mails()), (session.output(), session.mails()));
        }
    });
    println!("{scripts} sessions, {} mails taken", taken.get());
    assert!(scripts < ENOUGH || taken.get() > 0, "no script came to where mail is taken");
}

/// A session of the reception: nothing is taken for a recipient that the desk did not admit, whatever is said and
/// in whatever pieces, and the mail is what a session without them would take.
#[test]
fn no_server_gets_a_mail_in_for_somebody_unknown() {
    use rand::Rng as _;
    let taken = Cell::new(0);
    let scripts = try_seeds(|random| {
        let stream = client::session(random);
        let knows = random.random_bool(0.5);
        let to: &[u8] = if knows { b"good@x.example" } else { b"bad@x.example" };
        let opening = [b"EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<", to, b">\r\nDATA\r\nhi\r\n.\r\n"].concat();
        let rules = OfflineRules {
            message_bytes_max: MESSAGE_BYTES_MAX,
            recipients_max: 3,
            offers_tls: false,
            trusts_plain: false,
            is_reception: true,
        };
        let stream = [opening, stream].concat();
        let pieces = cut(random, &stream);
        let (session, whole) = (heard(rules, &pieces), heard(rules, &[stream]));
        assert_eq!((whole.output(), whole.mails()), (session.output(), session.mails()));
        assert!(session.mails().iter().all(|mail| mail.len() <= MESSAGE_BYTES_MAX));
        assert_eq!(session.mails().first().is_some_and(|mail| mail == "hi\r\n"), knows);
        assert!(!session.output().windows(8).any(|said| said == b"250-AUTH"));
        taken.set(taken.get() + session.mails().len());
    });
    println!("{scripts} sessions of the reception, {} mails taken", taken.get());
    assert!(scripts < ENOUGH || taken.get() > 0, "no script came to where mail is taken");
}

/// A gate that opens, and knows that it did.
#[derive(Default)]
struct OpenGate {
    commits: usize,
}

#[async_trait::async_trait]
impl WireGate for OpenGate {
    async fn commit(&mut self, _: &[RecipientReply]) -> Result<(), GateRefused> {
        self.commits += 1;
        Ok(())
    }
}

/// Gives one end of a pipe, once.
#[derive(Debug)]
struct OnePipe(Mutex<Option<DuplexStream>>);

#[async_trait::async_trait]
impl RelayDialer for OnePipe {
    async fn dial(
        &self,
        _: &EgressPath,
        host: &str,
        port: u16,
        _: Instant,
        _: &AddressGuard,
    ) -> Result<NetStream, NetError> {
        let pipe = self.0.lock().unwrap().take();
        let source = std::io::ErrorKind::ConnectionRefused.into();
        pipe.map(NetStream::Pipe).ok_or(NetError::Connect { host: host.to_owned(), port, source })
    }
}

/// What a scripted relay saw.
#[derive(Debug, Default)]
struct Relayed {
    /// The replies that it gave, in order.
    given: Vec<Vec<u8>>,
    /// How many replies it had given when the dot came; the next one answers it.
    dot_after: Option<usize>,
}

/// Answers each command with the next reply, in pieces, until the script or the client ends.
async fn act(mut pipe: DuplexStream, replies: Vec<Vec<u8>>, bytewise: bool) -> Relayed {
    let mut relayed = Relayed::default();
    let mut input = Vec::new();
    // A line that has not ended yet: the next reply goes on with it.
    let mut unended = Vec::new();
    for reply in replies {
        let step = if bytewise { 1 } else { reply.len().max(1) };
        for piece in reply.chunks(step) {
            if pipe.write_all(piece).await.is_err() {
                return relayed;
            }
            if bytewise && reply.len() < 200 {
                tokio::task::yield_now().await;
            }
        }
        unended.extend_from_slice(&reply);
        let in_mail = reference::reply_codes(&unended).contains(&354);
        let ended = unended.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        unended.drain(..ended);
        relayed.given.push(reply);
        let end: &[u8] = if in_mail { b"\r\n.\r\n" } else { b"\r\n" };
        let at = loop {
            if let Some(at) = input.windows(end.len()).position(|window| window == end) {
                break at + end.len();
            }
            if pipe.read_buf(&mut input).await.unwrap_or(0) == 0 {
                return relayed;
            }
        };
        input.drain(..at);
        if in_mail {
            relayed.dot_after = Some(relayed.given.len());
        }
    }
    relayed
}

/// One conversation with a relay that follows a script: what the client made of it, and what was said.
async fn converse(replies: Vec<Vec<u8>>, bytewise: bool) -> (Option<DeliveryResult>, usize, Relayed) {
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let acting = tokio::spawn(act(theirs, replies, bytewise));
    let mut settings = SmtpSettings::new("relay.example", 25, RelayTlsMode::None);
    settings.dial = std::sync::Arc::new(OnePipe(Mutex::new(Some(ours))));
    settings.deadlines = SmtpDeadlines::uniform(Duration::from_secs(5));
    let mut gate = OpenGate::default();
    let delivery = match SmtpConnection::open(&settings, &TlsClient::new()).await {
        Err(_) => None,
        Ok(mut connection) => {
            let envelope = MailEnvelope {
                sender: "shop@example.com",
                recipients: &["ada@example.net", "bob@example.net"],
                size: 30,
                eight_bit: false,
                smtputf8: false,
                dsn: None,
                trace: None,
            };
            let body = b"Subject: x\r\n\r\n.dot\r\nHello\r\n";
            let delivery = connection.deliver(&envelope, body, &mut gate).await;
            connection.quit().await;
            Some(delivery)
        }
    };
    (delivery, gate.commits, acting.await.unwrap())
}

#[test]
fn no_relay_makes_the_client_believe_what_it_did_not_say() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let given = Cell::new(0);
    let scripts = try_seeds(|random| {
        let replies = relay::replies(random);
        let (delivery, commits, relayed) = runtime.block_on(converse(replies.clone(), false));
        let code = |at: usize| {
            relayed.given.get(at).and_then(|reply| reference::reply_codes(reply).first().copied())
        };
        // Whoever says more than it was asked may have it read as an answer to what comes next.
        let is_loose = |reply: &Vec<u8>| !reply.ends_with(b"\n") || reference::reply_codes(reply).len() > 1;
        let says_more = replies.iter().any(is_loose);
        let shown = || {
            replies
                .iter()
                .map(|reply| reply[..reply.len().min(80)].escape_ascii().to_string())
                .collect::<Vec<_>>()
        };
        let Some(delivery) = delivery else { return };
        assert_eq!(code(0), Some(220), "{:?}", shown());
        match &delivery.end {
            DeliveryEnd::Accepted { reply, .. } => {
                assert!((200..300).contains(&reply.code) && commits == 1, "{:?}", shown());
                let Some(dot_after) = relayed.dot_after else {
                    // A line that has not ended makes a 354 of two replies, and the script took the mail for
                    // commands.
                    assert!(says_more, "taken without a dot: {:?}", shown());
                    return;
                };
                match says_more {
                    // Where replies run into each other, only all of them together say what was said.
                    true => {
                        let said = reference::reply_codes(&relayed.given.concat());
                        assert!(said.contains(&reply.code), "{:?}", shown());
                    }
                    false => assert_eq!(code(dot_after), Some(reply.code), "{:?}", shown()),
                }
                assert!(delivery.recipients.iter().any(RecipientReply::is_accepted));
                given.set(given.get() + 1);
            }
            // The client reports doubt exactly if the dot may have been written.
            DeliveryEnd::InDoubt(_) => assert_eq!(commits, 1, "{:?}", shown()),
            DeliveryEnd::NoRecipients => assert_eq!(commits, 0, "{:?}", shown()),
            DeliveryEnd::Captured { .. } => panic!("a relay captures nothing"),
            DeliveryEnd::NotSent(_) | DeliveryEnd::GateRefused => {}
        }
        if relayed.dot_after.is_some() {
            assert_eq!(commits, 1, "no dot before the gate: {:?}", shown());
        }
        if says_more {
            return;
        }
        let (again, ..) = runtime.block_on(converse(replies.clone(), true));
        let end = |delivery: &DeliveryResult| std::mem::discriminant(&delivery.end);
        assert_eq!(again.as_ref().map(end), Some(end(&delivery)), "in single bytes: {:?}", shown());
    });
    println!("{scripts} conversations, {} mails given", given.get());
    assert!(scripts < ENOUGH || given.get() > 0, "no script came to where mail is given");
}
