//! Tests of dialogues without sockets: what is said, and how it is answered.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::BytesMut;
use proptest::prelude::*;
use std::sync::Arc;

use postway_domain::{
    KeyDigest,
    scram::{ITERATIONS, SALT_BYTES, ScramVerifier, client_proof},
};
use secrecy::ExposeSecret;

use super::{
    authenticator::{KeylessClient, SmtpCredentials, SmtpDenial},
    client_rules::ClientPrivileges,
    command::NamedClient,
    conversation::{SessionEnding, SessionRules, SessionStep, SmtpConversation},
    memory_budget::MailMemoryBudget,
    reply::SubmissionReply,
    scram::{ProvenKey, ScramCandidate, ScramOffer},
};

mod reception;

const MESSAGE_BYTES_MAX: usize = 1_000;
const RECIPIENTS_MAX: usize = 3;
const SALT: [u8; SALT_BYTES] = [3; SALT_BYTES];
const HELLO: &str = "EHLO me.example\r\n";
const MAIL: &str = "MAIL FROM:<shop@example.com>\r\nRCPT TO:<ada@example.net>\r\n";

/// The result of a dialogue.
#[derive(Debug, Default, PartialEq, Eq)]
struct DialogueResult {
    /// All replies, including the greeting.
    answers: String,
    /// The stored mails: number of recipients, and body.
    stored: Vec<(usize, String)>,
    ending: Option<SessionEnding>,
}

impl DialogueResult {
    /// The codes of the replies after the greeting, one for each reply.
    fn codes(&self) -> Vec<&str> {
        self.answers
            .lines()
            .skip(1)
            .filter(|line| line.as_bytes()[3] == b' ')
            .map(|line| &line[..3])
            .collect()
    }
}

fn login() -> String {
    format!("{HELLO}AUTH PLAIN {}\r\n", BASE64_STANDARD.encode("\0shop\0good"))
}

fn rules() -> SessionRules {
    SessionRules {
        name: "mx.example".to_owned(),
        message_bytes_max: MESSAGE_BYTES_MAX,
        recipients_max: RECIPIENTS_MAX,
        offers_tls: true,
        takes_xclient: false,
        privileges: ClientPrivileges { trusts_plain: true, keyless: None },
        is_reception: false,
    }
}

/// Sends all pieces, with a memory budget of `budget_bytes`. The key `good` is valid.
fn talk_with<'a>(
    rules: SessionRules,
    budget_bytes: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> DialogueResult {
    let mut conversation = SmtpConversation::new(rules, MailMemoryBudget::new(budget_bytes), false);
    let (mut result, mut input, mut pieces) =
        (DialogueResult::default(), BytesMut::new(), pieces.into_iter());
    loop {
        match conversation.advance(&mut input) {
            SessionStep::Read => match pieces.next() {
                Some(piece) => input.extend_from_slice(piece),
                None => break,
            },
            SessionStep::NewClient => {
                let is_near = conversation.named_client() == NamedClient::Address([192, 0, 2, 7].into());
                conversation.change_client(Some(ClientPrivileges { trusts_plain: is_near, keyless: None }));
            }
            SessionStep::StartTls => {
                input.clear();
                conversation.secured();
            }
            SessionStep::LookUp => {
                let candidates = match conversation.scram_name() {
                    Some("shop") => vec![ScramCandidate {
                        verifier: ScramVerifier::of("good", SALT),
                        key: ProvenKey::Tenant(KeyDigest::of(b"good")),
                    }],
                    _ => Vec::new(),
                };
                let offer = ScramOffer { salt: SALT.to_vec(), iterations: ITERATIONS, candidates };
                conversation.set_scram_offer(Ok(offer), "server");
            }
            SessionStep::CheckKey => {
                let opens = match conversation.credentials() {
                    Some(SmtpCredentials::Key { username, key }) => {
                        key.expose_secret() == "good" && username == "shop"
                    }
                    Some(SmtpCredentials::Proven(_)) => true,
                    _ => false,
                };
                conversation.key_checked(if opens {
                    Ok(())
                } else {
                    Err(SmtpDenial::Refused("no".to_owned()))
                });
            }
            SessionStep::AdmitRecipient => {
                let is_known =
                    conversation.asked_recipient().is_some_and(|to| to.as_str().starts_with("good"));
                let unknown = SubmissionReply::new(550, "5.1.1", "nobody");
                conversation.recipient_judged(if is_known { Ok(()) } else { Err(unknown) });
            }
            SessionStep::Store(mail) => {
                let body = String::from_utf8_lossy(&mail.body).into_owned();
                result.stored.push((mail.envelope.to.len(), body));
                conversation.stored(&SubmissionReply::with_text(
                    250,
                    "2.0.0",
                    &format!("Ok: queued as {}", mail.number),
                ));
            }
            SessionStep::Close(ending) => {
                result.ending = Some(ending);
                break;
            }
        }
    }
    result.answers = String::from_utf8(std::mem::take(conversation.output())).unwrap();
    result
}

fn talk(said: &str) -> DialogueResult {
    talk_with(rules(), 1024 * 1024, [said.as_bytes()])
}

#[test]
fn the_extensions_are_those_that_hold_now() {
    let result = talk(HELLO);
    let expected = "220 mx.example ESMTP Postway\r\n250-mx.example\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250-8BITMIME\r\n\
        250-SMTPUTF8\r\n250-DSN\r\n250-ENHANCEDSTATUSCODES\r\n250-STARTTLS\r\n250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n250 CHUNKING\r\n";
    assert_eq!(result.answers, expected);
    let far =
        talk_with(SessionRules { privileges: ClientPrivileges::default(), ..rules() }, 0, [HELLO.as_bytes()]);
    assert!(!far.answers.contains("AUTH") && far.answers.contains("STARTTLS"), "{}", far.answers);
    let no_tls = talk_with(SessionRules { offers_tls: false, ..rules() }, 0, [HELLO.as_bytes()]);
    assert!(!no_tls.answers.contains("STARTTLS"));
}

#[test]
fn dialogues_are_answered_as_the_standards_say() {
    let login = login();
    let mail = format!("{login}{MAIL}");
    let (name, wrong) = (BASE64_STANDARD.encode("shop"), BASE64_STANDARD.encode("bad"));
    for (said, codes) in [
        ("QUIT\r\n".to_owned(), vec!["221"]),
        (format!("HELO me\r\n{MAIL}"), vec!["250", "530", "503"]),
        (MAIL.to_owned(), vec!["503", "503"]),
        (format!("{HELLO}AUTH LOGIN\r\n{name}\r\nZ29vZA==\r\n"), vec!["250", "334", "334", "235"]),
        (format!("{HELLO}AUTH LOGIN {name}\r\nZ29vZA==\r\n"), vec!["250", "334", "235"]),
        (format!("{HELLO}AUTH PLAIN\r\n*\r\n"), vec!["250", "334", "501"]),
        (format!("{login}AUTH PLAIN\r\n"), vec!["250", "235", "503"]),
        ("AUTH PLAIN\r\n".to_owned(), vec!["503"]),
        (format!("{HELLO}AUTH LOGIN {name}\r\n{wrong}\r\n{MAIL}"), vec!["250", "334", "535", "530", "503"]),
        (format!("{mail}DATA\r\nHi\r\n.\r\nQUIT\r\n"), vec!["250", "235", "250", "250", "354", "250", "221"]),
        (format!("{mail}{MAIL}"), vec!["250", "235", "250", "250", "503", "250"]),
        (format!("{mail}RSET\r\nDATA\r\n"), vec!["250", "235", "250", "250", "250", "503"]),
        (format!("{mail}EHLO again\r\nDATA\r\n"), vec!["250", "235", "250", "250", "250", "503"]),
        (format!("{login}MAIL FROM:<>\r\nDATA\r\n"), vec!["250", "235", "250", "554"]),
        (format!("{login}MAIL FROM:<> SIZE=1000\r\n"), vec!["250", "235", "250"]),
        (format!("{login}MAIL FROM:<> SIZE=1001\r\n"), vec!["250", "235", "552"]),
        (format!("{login}MAIL FROM:<> SIZE=99999999999999999999\r\n"), vec!["250", "235", "552"]),
        (format!("{login}MAIL FROM:<>\r\nRCPT TO:<é@example.net>\r\n"), vec!["250", "235", "250", "553"]),
        (
            format!("{login}MAIL FROM:<> SMTPUTF8\r\nRCPT TO:<é@example.net>\r\n"),
            vec!["250", "235", "250", "250"],
        ),
        (
            format!("{mail}{0}{0}{0}", "RCPT TO:<b@example.net>\r\n"),
            vec!["250", "235", "250", "250", "250", "250", "452"],
        ),
        (
            format!("{mail}BDAT 2\r\nHiBDAT 2 LAST\r\n\r\nNOOP\r\n"),
            vec!["250", "235", "250", "250", "250", "250", "250"],
        ),
        (format!("{mail}BDAT 0 LAST\r\n"), vec!["250", "235", "250", "250", "250"]),
        (
            format!("{mail}BDAT 2\r\nHiDATA\r\nRCPT TO:<b@example.net>\r\n"),
            vec!["250", "235", "250", "250", "250", "503", "503"],
        ),
        (format!("{login}BDAT 4\r\nQUITNOOP\r\n"), vec!["250", "235", "503", "250"]),
        (
            format!("{mail}BDAT 4 LAST\r\na\rb\rNOOP\r\nBDAT 1 LAST\r\nxRSET\r\n"),
            vec!["250", "235", "250", "250", "554", "250", "503", "250"],
        ),
        (format!("{mail}BDAT 4 LAST\r\na\nb\nNOOP\r\n"), vec!["250", "235", "250", "250", "250", "250"]),
        (format!("{mail}BDAT 2 LAST\r\na\r"), vec!["250", "235", "250", "250", "554"]),
        (
            format!("{mail}BDAT 2\r\n\r\rBDAT 1\r\nxBDAT 0 LAST\r\n{MAIL}BDAT 2 LAST\r\nHi"),
            vec!["250", "235", "250", "250", "554", "503", "503", "250", "250", "250"],
        ),
        (
            "VRFY ada\r\nEXPN all\r\nHELP\r\nNOOP\r\nTURN\r\n".to_owned(),
            vec!["252", "502", "214", "250", "500"],
        ),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nNOOP\r\n".to_owned(), vec!["554"]),
        (
            format!(
                "{login}MAIL FROM:shop@example.com\r\nRCPT TO: ada@example.net\r\nRCPT TO:<Postmaster>\r\n"
            ),
            vec!["250", "235", "250", "250", "250"],
        ),
        (
            format!(
                "{login}MAIL FROM:<> RET=HDRS ENVID=x\r\nRCPT TO:<a@example.net> NOTIFY=NEVER\r\nRCPT TO:<b@example.net> NOTIFY=SOON\r\n"
            ),
            vec!["250", "235", "250", "250", "501"],
        ),
        ("BDAT x\r\nNOOP\r\n".to_owned(), vec!["501"]),
        (format!("{}\r\nNOOP\r\n", "x".repeat(2_047)), vec!["500"]),
        (format!("NOOP {}\r\nNOOP\r\n", "x".repeat(2_041)), vec!["250", "250"]),
        (format!("{HELLO}AUTH PLAIN {}\r\n", "A".repeat(8_000)), vec!["250", "501"]),
    ] {
        let result = talk(&said);
        assert_eq!(result.codes(), codes, "{said}\n{}", result.answers);
    }
}

#[test]
fn a_mail_is_stored_with_its_dots_and_its_recipients() {
    let result =
        talk(&format!("{}{MAIL}DATA\r\nSubject: x\r\n\r\n..a\r\n.\r\n{MAIL}BDAT 3 LAST\r\n.\r\n", login()));
    let mails = [(1, "Subject: x\r\n\r\n.a\r\n".to_owned()), (1, ".\r\n".to_owned())];
    assert_eq!(result.stored, mails, "{}", result.answers);
    assert!(result.answers.ends_with("250 2.0.0 Ok: queued as 2\r\n"));
}

#[test]
fn a_bare_ending_is_the_end_of_everything() {
    let tricks = [
        "\n.\n",
        "\n.\r\n",
        "\r.\r",
        "\r.\r\n",
        "\r\n.\n",
        "\r\n.\r",
        "\r\n.\r\r\n",
        "\r\r\n.\r\n",
        "\r\n\n.\r\n",
        "\n\n.\n",
        "\n.\r",
    ];
    for trick in tricks {
        let said = format!("{}{MAIL}DATA\r\nHi{trick}{MAIL}DATA\r\nsmuggled\r\n.\r\nQUIT\r\n", login());
        let result = talk(&said);
        assert_eq!(result.codes(), ["250", "235", "250", "250", "354", "554"], "{trick:?}");
        assert_eq!((result.stored, result.ending), (Vec::new(), Some(SessionEnding::Cut)), "{trick:?}");
    }
    for command in ["NOOP\nQUIT\r\n", "NOOP\rQUIT\r\n", "NOOP\r\r\n", "\nNOOP\r\n"] {
        let result = talk(command);
        assert_eq!((result.codes(), result.ending), (vec!["554"], Some(SessionEnding::Cut)), "{command:?}");
    }
}

/// As Python's smtplib sends bytes: dots doubled, and CR LF before the last one.
#[test]
fn a_bare_lf_inside_a_mail_is_written_as_cr_lf() {
    let said = format!(
        "{}{MAIL}DATA\r\nSubject: x\n\n..\nHi\n\r\n.\r\n{MAIL}BDAT 4 LAST\r\na\nb\nQUIT\r\n",
        login()
    );
    let result = talk(&said);
    let mails = [(1, "Subject: x\r\n\r\n.\r\nHi\r\n\r\n".to_owned()), (1, "a\r\nb\r\n".to_owned())];
    assert_eq!(
        (&result.stored[..], result.ending),
        (&mails[..], Some(SessionEnding::Quit)),
        "{}",
        result.answers
    );
    let bytewise = talk_with(rules(), 1024 * 1024, said.as_bytes().chunks(1));
    assert_eq!(bytewise, result);
    let large = format!("{}{MAIL}DATA\r\n{}\r\n.\r\n", login(), "\n".repeat(MESSAGE_BYTES_MAX / 2));
    assert_eq!(talk(&large).codes().last(), Some(&"552"), "what is written counts");
}

/// A SCRAM login under this user name with this key: the messages of the client.
fn scram(username: &str, key: &str) -> [String; 3] {
    let bare = format!("n={username},r=client");
    let first = format!("r=clientserver,s={},i={ITERATIONS}", BASE64_STANDARD.encode(SALT));
    let last = "c=biws,r=clientserver";
    let proof = client_proof(key, &SALT, ITERATIONS, format!("{bare},{first},{last}").as_bytes());
    let last = format!("{last},p={}", BASE64_STANDARD.encode(proof));
    [format!("n,,{bare}"), last, String::new()].map(|text| BASE64_STANDARD.encode(text))
}

#[test]
fn a_key_may_be_proven_instead_of_shown() {
    let [hello, proof, _] = scram("shop", "good");
    for begins in [format!("AUTH SCRAM-SHA-256 {hello}\r\n"), format!("AUTH scram-sha-256\r\n{hello}\r\n")] {
        let result = talk(&format!("{HELLO}{begins}{proof}\r\n\r\n{MAIL}DATA\r\nHi\r\n.\r\n"));
        let codes = result.codes();
        let begun = codes.iter().filter(|code| **code == "334").count();
        assert!(begun >= 2 && codes.ends_with(&["235", "250", "250", "354", "250"]), "{}", result.answers);
        let verified =
            result.answers.lines().filter_map(|line| line.strip_prefix("334 ")).next_back().unwrap();
        assert!(BASE64_STANDARD.decode(verified).unwrap().starts_with(b"v="), "{}", result.answers);
    }
    // The client is not admitted before it has received the server's proof.
    for (more, code) in [("*\r\n", "501"), ("AAAA\r\n", "501")] {
        let result = talk(&format!("{HELLO}AUTH SCRAM-SHA-256 {hello}\r\n{proof}\r\n{more}{MAIL}"));
        assert_eq!(result.codes(), ["250", "334", "334", code, "530", "503"], "{}", result.answers);
    }
}

#[test]
fn a_proof_that_does_not_hold_is_a_wrong_key_whoever_it_is_for() {
    let asked = |username: &str, key: &str| {
        let [hello, proof, _] = scram(username, key);
        talk(&format!("{HELLO}AUTH SCRAM-SHA-256 {hello}\r\n{proof}\r\n{MAIL}"))
    };
    let (wrong, nobody) = (asked("shop", "bad"), asked("nobody", "good"));
    assert_eq!(wrong.codes(), ["250", "334", "535", "530", "503"]);
    assert_eq!(wrong.answers, nobody.answers, "nobody learns who there is");
    let [hello, proof, _] = scram("shop", "bad");
    let thrice = format!("AUTH SCRAM-SHA-256 {hello}\r\n{proof}\r\n").repeat(3);
    let result = talk(&format!("{HELLO}{thrice}NOOP\r\n"));
    assert_eq!(result.ending, Some(SessionEnding::Cut));
    let garbled = talk(&format!("{HELLO}AUTH SCRAM-SHA-256 {hello}\r\nAAAA\r\n{MAIL}"));
    assert_eq!(garbled.codes(), ["250", "334", "501", "530", "503"]);
    // A proof of one exchange proves nothing in another.
    let [_, other, _] = scram("shop", "good");
    let replayed = other.replace(&BASE64_STANDARD.encode("clientserver"), "");
    let result = talk(&format!(
        "{HELLO}AUTH SCRAM-SHA-256 {}\r\n{replayed}\r\n",
        BASE64_STANDARD.encode("n,,n=shop,r=other")
    ));
    assert_eq!(result.codes(), ["250", "334", "535"]);
}

#[test]
fn a_network_may_need_no_key_and_may_still_show_one() {
    let client = KeylessClient { tenant: "default".parse().unwrap(), account: None, by: "a test".to_owned() };
    let privileges = ClientPrivileges { trusts_plain: true, keyless: Some(Arc::new(client)) };
    let rules = || SessionRules { privileges: privileges.clone(), ..rules() };
    let said = format!("{HELLO}{MAIL}DATA\r\nHi\r\n.\r\n");
    let result = talk_with(rules(), 1024 * 1024, [said.as_bytes()]);
    assert_eq!(result.codes(), ["250", "250", "250", "354", "250"], "{}", result.answers);
    let said = format!("{}{MAIL}DATA\r\nHi\r\n.\r\n", login());
    let result = talk_with(rules(), 1024 * 1024, [said.as_bytes()]);
    assert_eq!(result.codes(), ["250", "235", "250", "250", "354", "250"], "{}", result.answers);
    let result = talk_with(rules(), 0, [MAIL.as_bytes()]);
    assert_eq!(result.codes(), ["503", "503"], "EHLO comes first all the same");
}

#[test]
fn what_was_said_before_tls_is_forgotten() {
    let result = talk(&format!("{}STARTTLS\r\nMAIL FROM:<evil@example.com>\r\n", login()));
    assert_eq!(result.codes(), ["250", "235", "220"], "the command behind STARTTLS is not obeyed");
    let said = [format!("{}STARTTLS\r\n", login()), format!("{MAIL}EHLO x\r\n{MAIL}STARTTLS\r\n")];
    let result = talk_with(rules(), 0, said.iter().map(String::as_bytes));
    assert_eq!(
        result.codes(),
        ["250", "235", "220", "503", "503", "250", "530", "503", "503"],
        "{}",
        result.answers
    );
    assert_eq!(result.answers.matches("STARTTLS").count(), 1, "it is not offered twice");
}

#[test]
fn a_key_is_not_asked_for_in_the_clear() {
    let result = talk_with(
        SessionRules { privileges: ClientPrivileges::default(), ..rules() },
        0,
        [login().as_bytes()],
    );
    assert_eq!(result.codes(), ["250", "538"]);
}

#[test]
fn three_wrong_keys_are_enough() {
    let wrong = format!("AUTH PLAIN {}\r\n", BASE64_STANDARD.encode("\0shop\0bad"));
    let result = talk(&format!("{HELLO}{wrong}{wrong}{wrong}NOOP\r\n"));
    assert_eq!((result.codes(), result.ending), (vec!["250", "535", "535", "535"], Some(SessionEnding::Cut)));
}

#[test]
fn mistakes_have_an_end() {
    let result = talk(&"X\r\n".repeat(30));
    assert_eq!((result.codes().len(), result.ending), (21, Some(SessionEnding::Cut)));
    assert!(result.answers.ends_with("421 4.7.0 too many mistakes\r\n"));
    let many = talk(&format!("{}MAIL FROM:<>\r\n{}", login(), "RCPT TO:<bad>\r\n".repeat(100)));
    assert_eq!(
        (many.codes().len(), many.ending),
        (103, None),
        "addresses that are none are no such mistakes"
    );
}

#[test]
fn a_mail_that_is_too_large_or_has_no_room_is_read_and_dropped() {
    let large = "x\r\n".repeat(334);
    let data = format!("{}{MAIL}DATA\r\n{large}.\r\n{MAIL}DATA\r\nHi\r\n.\r\n", login());
    let result = talk(&data);
    assert_eq!(result.codes()[4..], ["354", "552", "250", "250", "354", "250"]);
    assert_eq!(result.stored, [(1, "Hi\r\n".to_owned())]);
    let chunk = format!("{}{MAIL}BDAT {}\r\n{large}BDAT 2 LAST\r\nHiRSET\r\n", login(), large.len());
    assert_eq!(talk(&chunk).codes()[4..], ["552", "503", "250"]);
    let result = talk_with(rules(), 0, [data.as_bytes()]);
    assert_eq!(result.codes()[4..], ["354", "552", "250", "250", "354", "452"]);
}

fn fragment() -> impl Strategy<Value = String> {
    let fragments = [
        HELLO,
        MAIL,
        "DATA\r\n",
        ".\r\n",
        "Hi\r\n",
        "..x\r\n",
        "BDAT 3\r\nabc",
        "BDAT 2 LAST\r\n\r\n",
        "RSET\r\n",
        "NOOP\r\n",
        "RCPT TO:<b@example.net>\r\n",
        "MAIL FROM:<>\r\n",
        "AUTH LOGIN\r\n",
        "AUTH SCRAM-SHA-256 biwsbj1zaG9wLHI9eA==\r\n",
        "*\r\n",
        "\n.\n",
        "\n.\r\n",
        "\n\r\n.\r\n",
        "\n..\n",
        "X\r\n",
        "a\r",
        "\n",
        ".",
        "BDAT 9 LAST\r\n",
    ];
    prop_oneof![
        4 => proptest::sample::select(fragments.map(str::to_owned).to_vec()),
        2 => Just(login()),
        1 => Just("x".repeat(900)),
        1 => "[ -~]{0,20}(\r\n)?",
    ]
}

proptest! {
    #[test]
    fn the_pieces_in_which_bytes_come_change_nothing(
        fragments in proptest::collection::vec(fragment(), 0..24),
        cuts in proptest::collection::vec(1_usize..40, 0..200),
    ) {
        let said = login() + &fragments.concat();
        let whole = talk(&said);
        let (mut pieces, mut rest) = (Vec::new(), said.as_bytes());
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        prop_assert_eq!(&talk_with(rules(), 1024 * 1024, pieces), &whole);
        prop_assert_eq!(&talk_with(rules(), 1024 * 1024, said.as_bytes().chunks(1)), &whole);
    }
}

#[test]
fn a_chunk_that_is_read_only_to_be_refused_must_end_in_time_too() {
    let mut conversation = SmtpConversation::new(rules(), MailMemoryBudget::new(1024), false);
    let mut input = BytesMut::from("EHLO me.example\r\nBDAT 1000 LAST\r\nabc");
    assert!(matches!(conversation.advance(&mut input), SessionStep::Read));
    assert!(conversation.is_receiving(), "so that the deadline of a mail holds");
    input.extend_from_slice(&[b'x'; 997]);
    assert!(matches!(conversation.advance(&mut input), SessionStep::Read));
    assert!(!conversation.is_receiving());
}

#[test]
fn a_named_server_speaks_for_its_client_and_the_session_begins_anew() {
    let rules = || SessionRules { takes_xclient: true, privileges: ClientPrivileges::default(), ..rules() };
    let near = "XCLIENT NAME=spike.example ADDR=192.0.2.7 PORT=25 PROTO=ESMTP HELO=spike\r\n";
    let result = talk_with(rules(), 1024 * 1024, [format!("{HELLO}{near}{HELLO}").as_bytes()]);
    assert_eq!(result.codes(), ["250", "220", "250"], "{}", result.answers);
    let (before, after) = result.answers.rsplit_once("220 ").unwrap();
    assert!(before.contains("XCLIENT NAME ADDR") && !before.contains("AUTH"), "{before}");
    assert!(after.contains("AUTH PLAIN"), "the client is where keys may be shown: {after}");
    // What was said before the client changed is forgotten.
    let said = format!("{near}{}{near}{MAIL}", login());
    let result = talk_with(rules(), 1024 * 1024, [said.as_bytes()]);
    assert_eq!(result.codes(), ["220", "250", "235", "220", "503", "503"], "{}", result.answers);
    for (attributes, code) in [
        ("ADDR=[UNAVAILABLE]", "220"),
        ("addr=ipv6:2001:db8::1", "220"),
        ("HELO=x", "220"),
        ("", "501"),
        ("ADDR=nowhere", "501"),
        ("ADDR=IPV6:", "501"),
        ("LOGIN=admin", "501"),
        ("192.0.2.7", "501"),
    ] {
        let result = talk_with(rules(), 0, [format!("XCLIENT {attributes}\r\n").as_bytes()]);
        assert_eq!(result.codes(), [code], "{attributes}");
    }
    let result = talk(&format!("{HELLO}{near}"));
    assert_eq!(result.codes(), ["250", "550"], "nobody else may");
    assert!(!result.answers.contains("250-XCLIENT"), "{}", result.answers);
    let said = format!("{near}{}{MAIL}{near}", login());
    let result = talk_with(rules(), 1024 * 1024, [said.as_bytes()]);
    assert_eq!(result.codes().last(), Some(&"503"), "not in a mail: {}", result.answers);
}
