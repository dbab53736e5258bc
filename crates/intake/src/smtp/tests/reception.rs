//! Dialogues of the reception: no login, and recipients that the reception knows.

use super::{ClientPrivileges, DialogueResult, rules, talk_with};
use crate::smtp::conversation::{SessionEnding, SessionRules};

fn receive(said: &str) -> DialogueResult {
    let privileges = ClientPrivileges { trusts_plain: false, keyless: None };
    let rules = SessionRules { privileges, is_reception: true, ..rules() };
    talk_with(rules, 1024 * 1024, [said.as_bytes()])
}

#[test]
fn the_reception_takes_mail_without_a_login_for_those_it_knows() {
    let result = receive(
        "EHLO mx.example.org\r\nMAIL FROM:<> SIZE=10\r\nRCPT TO:<bad@x.example>\r\nRCPT TO:<good@x.example>\r\nDATA\r\nhi\r\n.\r\nQUIT\r\n",
    );
    assert_eq!(result.codes(), ["250", "250", "550", "250", "354", "250", "221"]);
    assert_eq!(result.stored, [(1, "hi\r\n".to_owned())]);
    assert!(!result.answers.contains("AUTH") && !result.answers.contains("DSN"), "{}", result.answers);
    assert!(result.answers.contains("250-STARTTLS"));
}

#[test]
fn the_reception_relays_nothing_and_offers_nothing_that_it_does_not_do() {
    let result = receive(
        "EHLO x\r\nAUTH PLAIN AGEAYg==\r\nMAIL FROM:<a@b.example> RET=HDRS\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<good@x.example> NOTIFY=SUCCESS\r\n\
         RCPT TO:<other@relay.example>\r\nDATA\r\nBDAT 2 LAST\r\nhiRSET\r\nQUIT\r\n",
    );
    assert_eq!(result.codes(), ["250", "502", "555", "250", "555", "550", "554", "554", "250", "221"]);
    assert!(result.stored.is_empty());
}

#[test]
fn guessing_addresses_ends_the_session() {
    let guesses = "RCPT TO:<guess@x.example>\r\n".repeat(50);
    let result = receive(&format!("EHLO x\r\nMAIL FROM:<>\r\n{guesses}"));
    assert_eq!(result.ending, Some(SessionEnding::Cut));
    assert!(result.answers.matches("550 5.1.1").count() <= 20);
}
