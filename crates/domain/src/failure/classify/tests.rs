//! Replies as servers in the field write them, and their classification.

use super::*;
use crate::failure::SendFailure;
use FailureSeverity::{Account, Permanent, Transient};

/// Replies as servers write them.
#[rustfmt::skip]
const REPLIES: &[(FailurePhase, &str, FailureCategory, FailureSeverity)] = &[
    // Any time
    (Mail, "421 4.3.2 Service shutting down", ServerBusy, Transient),
    (Rcpt, "421 4.4.2 mx.example.com Error: timeout exceeded", ServerBusy, Transient),
    (Mail, "421 try again", ServerBusy, Transient),
    (Dot, "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints", RateLimited, Transient),
    (Dot, "421-4.7.28 Gmail has detected an unusual rate of unsolicited mail", RateLimited, Transient),
    // Greeting, EHLO
    (Greeting, "554 5.7.1 No SMTP service here", Policy, Account),
    (Greeting, "554 mx.example.com", Policy, Account),
    (Greeting, "550 5.7.1 Access denied", Policy, Account),
    (Greeting, "421 4.7.0 mx Error: too many connections from 192.0.2.1", RateLimited, Transient),
    (Greeting, "450 busy", ServerBusy, Transient),
    // STARTTLS
    (FailurePhase::Tls, "454 4.7.0 TLS not available due to local problem", Tls, Transient),
    (FailurePhase::Tls, "502 5.5.1 Error: command not implemented", Tls, Account),
    // AUTH
    (Auth, "535 5.7.8 Error: authentication failed: UGFzc3dvcmQ6", Authentication, Account),
    (Auth, "535 Incorrect authentication data", Authentication, Account),
    (Auth, "535 Authentication Credentials Invalid", Authentication, Account),
    (Auth, "535-5.7.8 Username and Password not accepted", Authentication, Account),
    (Auth, "534 5.7.9 Application-specific password required", Authentication, Account),
    (Auth, "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant", Authentication, Account),
    (Auth, "525 5.7.13 User account disabled", AccountSuspended, Account),
    (Auth, "504 5.5.4 Unrecognized authentication type", Authentication, Account),
    (Auth, "454 4.7.0 Temporary authentication failure", Authentication, Transient),
    (Auth, "454 4.7.0 Too many login attempts, please try again later", RateLimited, Transient),
    (Auth, "432 4.7.12 A password transition is needed", Authentication, Account),
    (Auth, "432 4.3.2 Concurrent connections limit exceeded", RateLimited, Transient),
    (Auth, "421 4.3.0 Temporary System Problem", ServerBusy, Transient),
    // MAIL
    (Mail, "530 5.7.0 Must issue a STARTTLS command first", Authentication, Account),
    (Mail, "530 5.7.0 Authentication Required", Authentication, Account),
    (Mail, "530 5.7.57 Client not authenticated to send mail", Authentication, Account),
    (Mail, "503 5.5.4 Error: send AUTH first", Authentication, Account),
    (Mail, "550 5.7.1 Client was not authenticated", Authentication, Account),
    (Mail, "454 Throttling failure: Maximum sending rate exceeded.", RateLimited, Transient),
    (Mail, "454 Throttling failure: Daily message quota exceeded.", Quota, Account),
    (Mail, "550 5.4.5 Daily user sending limit exceeded. For more information", Quota, Account),
    (Mail, "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException", Quota, Account),
    (Mail, "451 4.7.1 Sender rate limit exceeded", RateLimited, Transient),
    (Mail, "450 4.7.1 Error: too much mail from 192.0.2.1", RateLimited, Transient),
    (Mail, "501 5.1.7 Bad sender address syntax", SenderRejected, Permanent),
    (Mail, "553 5.7.1 <a@example.org>: Sender address rejected: not owned by user bob", SenderRejected, Permanent),
    (Mail, "550 sender verify failed", SenderRejected, Permanent),
    (Mail, "450 4.1.8 <a@example.invalid>: Sender address rejected: Domain not found", SenderRejected, Transient),
    (Mail, "552 5.3.4 Message size exceeds fixed limit", MessageTooLarge, Permanent),
    (Mail, "552 message size exceeds fixed maximum message size", MessageTooLarge, Permanent),
    (Mail, "452 4.3.1 Insufficient system storage", ServerBusy, Transient),
    (Mail, "555 5.5.4 Unsupported option: BODY=8BITMIME", Protocol, Permanent),
    (Mail, "503 5.5.1 Error: nested MAIL command", Protocol, Permanent),
    (Mail, "550 5.1.8 Access denied, bad outbound sender", AccountSuspended, Account),
    (Mail, "599 what is this", Unknown, Permanent),
    (Mail, "499 what is this", Unknown, Transient),
    // RCPT: who
    (Rcpt, "550 5.1.1 <x@example.org>: Recipient address rejected: User unknown in local recipient table", UnknownRecipient, Permanent),
    (Rcpt, "550-5.1.1 The email account that you tried to reach does not exist.", UnknownRecipient, Permanent),
    (Rcpt, "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup", UnknownRecipient, Permanent),
    (Rcpt, "550 5.4.1 Recipient address rejected: Access denied.", UnknownRecipient, Permanent),
    (Rcpt, "550 No Such User Here", UnknownRecipient, Permanent),
    (Rcpt, "550 Unrouteable address", UnknownRecipient, Permanent),
    (Rcpt, "550 sorry, no mailbox here by that name (#5.1.1)", UnknownRecipient, Permanent),
    (Rcpt, "511 sorry, no mailbox here by that name (#5.1.1 - chkuser)", UnknownRecipient, Permanent),
    (Rcpt, "553 5.1.3 <x@>: bad address syntax", UnknownRecipient, Permanent),
    (Rcpt, "551 User not local; please try <y@example.net>", UnknownRecipient, Permanent),
    (Rcpt, "450 4.1.1 <x@example.org>: Recipient address rejected: unverified address", UnknownRecipient, Transient),
    (Rcpt, "550 Requested action not taken: mailbox unavailable", MailboxUnavailable, Permanent),
    (Rcpt, "550-5.2.1 The email account that you tried to reach is disabled.", MailboxUnavailable, Permanent),
    (Rcpt, "450 4.2.1 The user you are trying to contact is receiving mail too quickly.", RateLimited, Transient),
    (Rcpt, "450 mailbox busy", MailboxUnavailable, Transient),
    (Rcpt, "550 5.1.2 Host unknown (Name server: host not found)", UnknownDomain, Permanent),
    (Rcpt, "450 4.1.2 <x@example.invalid>: Recipient address rejected: Domain not found", UnknownDomain, Transient),
    (Rcpt, "556 5.1.10 Recipient domain has a null MX", UnknownDomain, Permanent),
    (Rcpt, "550 5.4.4 Invalid domain name", UnknownDomain, Permanent),
    // RCPT: full, grey, too many
    (Rcpt, "452 4.2.2 The email account that you tried to reach is over quota.", MailboxFull, Transient),
    (Rcpt, "552 5.2.2 <x@example.org>: user is over quota", MailboxFull, Transient),
    (Rcpt, "550 5.2.2 Mailbox full", MailboxFull, Transient),
    (Rcpt, "552 Quota exceeded (mailbox for user is full)", MailboxFull, Transient),
    (Rcpt, "552 Requested mail action aborted: exceeded storage allocation", MailboxFull, Transient),
    (Dot, "554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException", MailboxFull, Transient),
    (Rcpt, "450 4.2.0 <x@example.org>: Recipient address rejected: Greylisted, see the help page", Greylisted, Transient),
    (Rcpt, "450 4.2.0 please come back", Greylisted, Transient),
    (Rcpt, "451 4.7.1 Greylisting in action, please come back later", Greylisted, Transient),
    (Rcpt, "451 Temporary local problem - please try later", ServerBusy, Transient),
    (Rcpt, "451 4.3.0 <x@example.org>: Temporary lookup failure", ServerBusy, Transient),
    (Rcpt, "451 4.4.3 Temporary server error. Please try again later", ServerBusy, Transient),
    (Rcpt, "452 4.5.3 Error: too many recipients", TooManyRecipients, Transient),
    // RCPT: may not
    (Rcpt, "554 5.7.1 <x@example.org>: Relay access denied", RelayDenied, Permanent),
    (Rcpt, "454 4.7.1 <x@example.org>: Relay access denied", RelayDenied, Transient),
    (Rcpt, "550 5.7.1 Unable to relay", RelayDenied, Permanent),
    (Rcpt, "550 relay not permitted", RelayDenied, Permanent),
    (Rcpt, "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", RelayDenied, Permanent),
    (Rcpt, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.example.org", Policy, Account),
    (Rcpt, "554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied", Policy, Account),
    (Rcpt, "450 4.7.25 Client host rejected: cannot find your hostname", Policy, Transient),
    (Rcpt, "550 5.7.1 Recipient address rejected: message refused", Policy, Permanent),
    (Rcpt, "553 5.7.2 policy", Policy, Permanent),
    (Rcpt, "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup", Policy, Permanent),
    (Rcpt, "553 5.6.7 SMTPUTF8 is required, but was not offered by host", Smtputf8Unsupported, Permanent),
    // DATA and dot
    (Data, "554 5.5.1 Error: no valid recipients", Protocol, Permanent),
    (Data, "451 4.3.0 queue file write error", ServerBusy, Transient),
    (Dot, "554 Message rejected: Email address is not verified.", SenderRejected, Permanent),
    (Dot, "554 Transaction failed: Sending is paused for this account", AccountSuspended, Account),
    (Dot, "550 5.7.501 Access denied, spam abuse detected", AccountSuspended, Account),
    (Dot, "550-5.7.1 Our system has detected that this message is likely unsolicited mail.", Spam, Permanent),
    (Dot, "554 5.7.1 Spam message rejected", Spam, Permanent),
    (Dot, "550 5.7.26 Unauthenticated email from example.org is not accepted due to domain's DMARC policy", Policy, Permanent),
    (Dot, "552 5.7.0 This message was blocked because its content presents a potential virus", ContentRejected, Permanent),
    (Dot, "554 5.6.0 invalid MIME", ContentRejected, Permanent),
    (Dot, "554 Transaction failed", ContentRejected, Permanent),
    (Dot, "552 5.3.4 Message file too big", MessageTooLarge, Permanent),
    (Dot, "552 5.2.3 Message length exceeds administrative limit", MessageTooLarge, Permanent),
    (Dot, "554 5.4.14 Hop count exceeded - possible mail loop", Routing, Permanent),
    (Dot, "454 Throttling failure: Maximum sending rate exceeded.", RateLimited, Transient),
    (Dot, "554 qq permanent problem (#5.3.0)", ServerBusy, Permanent),
    (Dot, "451 qq temporary problem (#4.3.0)", ServerBusy, Transient),
    // Out of place
    (Mail, "250 fine, but not here", Protocol, Transient),
    (Data, "150 hm", Protocol, Transient),
    (Mail, "999 hm", Protocol, Transient),
];

#[test]
fn realistic_replies_are_classified() {
    let mut wrong = Vec::new();
    for &(phase, line, category, severity) in REPLIES {
        let (code, text) = line.split_at(3);
        let text = &text[1..];
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (enhanced, text) = match first.parse() {
            Ok(enhanced) => (Some(enhanced), rest),
            Err(_) => (None, text),
        };
        let failure = SendFailure::from_reply(phase, code.parse().unwrap(), enhanced, text);
        if (failure.category, failure.severity) != (category, severity) {
            wrong.push(format!("{phase} {line}: {} {}", failure.category, failure.severity));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_code_in_every_phase_has_the_severity_of_its_class_or_the_account() {
    for &phase in FailurePhase::ALL {
        for code in 0..1000 {
            let severity = SendFailure::from_reply(phase, code, None, "").severity;
            match code {
                500..=599 if severity == Transient => assert_eq!(code, 552, "{phase} {code}"),
                400..=599 => {}
                _ => assert_eq!(severity, Transient, "{phase} {code}"),
            }
            assert!(!(code / 100 == 4 && severity == Permanent), "{phase} {code}");
        }
    }
}

#[test]
fn too_many_recipients_differs_from_a_full_mailbox() {
    assert!(is_too_many_recipients(452, Some(EnhancedCode(4, 5, 3)), "slow down"));
    assert!(is_too_many_recipients(452, None, "Too many recipients"));
    assert!(is_too_many_recipients(552, None, "too many recipients"));
    assert!(!is_too_many_recipients(452, Some(EnhancedCode(4, 2, 2)), "mailbox full"));
    assert!(!is_too_many_recipients(452, None, "insufficient system storage"));
    assert!(!is_too_many_recipients(250, Some(EnhancedCode(2, 5, 3)), "ok"));
}

#[test]
fn qmail_codes_are_found_at_the_end_of_the_text() {
    assert_eq!(enhanced_in_text("sorry (#5.1.1)"), Some(EnhancedCode(5, 1, 1)));
    assert_eq!(enhanced_in_text("sorry (#5.1.1"), None);
    assert_eq!(enhanced_in_text("see ticket (#42)"), None);
}
