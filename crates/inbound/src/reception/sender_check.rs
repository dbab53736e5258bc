//! Who sent a mail: SPF, DKIM and DMARC, checked by mail-auth ([ADR 36]).
//!
//! Work is bounded for each mail: signatures are counted before any is verified, the header has a maximum,
//! every look-up and the whole check have a deadline, and few checks run at once. What could not be checked is
//! `temperror` or `permerror`, and the mail is kept: a result never decides alone.
//!
//! [ADR 36]: ../../../../docs/adr/0036-reception.md

use std::{fmt::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use mail_auth::{
    AuthenticatedMessage, DkimResult, DmarcResult, MessageAuthenticator, SpfResult,
    dmarc::{Policy, verify::DmarcParameters},
    hickory_resolver::{
        config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts},
        system_conf::read_system_conf,
    },
    spf::verify::SpfParameters,
};
use postway_intake::smtp::ReceptionMail;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

/// How long the check of one mail may take, with all its look-ups.
const CHECK_MAX: Duration = Duration::from_secs(15);
/// How long one try of one look-up may take.
const LOOK_UP_MAX: Duration = Duration::from_secs(3);
/// The most checks at once.
const AT_ONCE_MAX: usize = 32;
/// The most fields of signatures; a mail with more is not verified.
const SIGNATURES_MAX: usize = 10;
/// The longest header that is verified.
const HEADER_BYTES_MAX: usize = 256 * 1024;

/// What was found out about the sender of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderVerdict {
    /// The results in the words of RFC 8601, such as `spf=pass smtp.mailfrom=example.org`; none if nothing was
    /// checked.
    pub results: Vec<String>,
    /// Whether the domain of the author asks to refuse the mail.
    pub is_to_be_refused: bool,
}

impl SenderVerdict {
    /// The Authentication-Results field of the server with this name.
    pub(super) fn field(&self, name: &str) -> String {
        let mut field = format!("Authentication-Results: {}", word(name));
        for result in &self.results {
            // Writing to a string cannot fail.
            let _ = write!(field, ";\r\n\t{result}");
        }
        if self.results.is_empty() {
            field += "; none";
        }
        field + "\r\n"
    }
}

/// Checks who sent a mail. It must end, and must not fail.
#[async_trait]
pub trait SenderCheck: Send + Sync {
    /// Checks a mail.
    async fn check(&self, mail: &ReceptionMail) -> SenderVerdict;
}

/// The check over DNS.
pub struct SystemSenderCheck {
    authenticator: MessageAuthenticator,
    name: String,
    places: Arc<Semaphore>,
}

impl SystemSenderCheck {
    /// Asks the name servers of this machine, or this one.
    pub fn new(name: &str, dns_server: Option<SocketAddr>) -> Result<Self, String> {
        let (config, mut options) = match dns_server {
            Some(server) => {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                    connection.port = server.port();
                    connection
                });
                let server = NameServerConfig::new(server.ip(), true, connections.into());
                (ResolverConfig::from_name_servers(vec![server]), ResolverOpts::default())
            }
            None => read_system_conf().map_err(|error| error.to_string())?,
        };
        (options.timeout, options.attempts) = (LOOK_UP_MAX, 2);
        let authenticator = MessageAuthenticator::new(config, options).map_err(|error| error.to_string())?;
        Ok(Self { authenticator, name: name.to_owned(), places: Arc::new(Semaphore::new(AT_ONCE_MAX)) })
    }

    async fn verify(authenticator: MessageAuthenticator, name: String, mail: SenderFacts) -> SenderVerdict {
        let SenderFacts { peer, helo, from, body } = mail;
        let spf = authenticator.verify_spf(SpfParameters::verify_mail_from(peer, &helo, &name, &from)).await;
        let mut verdict = SenderVerdict::default();
        let envelope_domain = from.rsplit_once('@').map_or(helo.as_str(), |(_, domain)| domain);
        let result = spf_word(spf.result());
        verdict.results.push(format!("spf={result} smtp.mailfrom={}", word(envelope_domain)));
        if let Err(why) = check_bounds(&body) {
            verdict.results.push(format!("dkim=permerror ({why})"));
            return verdict;
        }
        let Some(message) = AuthenticatedMessage::parse(&body) else {
            verdict.results.push("dkim=none".to_owned());
            return verdict;
        };
        let dkim = authenticator.verify_dkim(&message).await;
        for output in &dkim {
            let domain = output.signature().map_or("", |signature| signature.d.as_str());
            verdict.results.push(format!("dkim={} header.d={}", dkim_word(output.result()), word(domain)));
        }
        if dkim.is_empty() {
            verdict.results.push("dkim=none".to_owned());
        }
        let dmarc =
            authenticator.verify_dmarc(DmarcParameters::new(&message, &dkim, envelope_domain, &spf)).await;
        let author =
            message.from.first().and_then(|from| from.rsplit_once('@')).map_or("", |(_, domain)| domain);
        let result = dmarc_word(&dmarc.result());
        verdict.results.push(format!("dmarc={result} header.from={}", word(author)));
        verdict.is_to_be_refused = result == "fail" && dmarc.policy() == Policy::Reject;
        verdict
    }
}

/// What a check needs of a mail.
struct SenderFacts {
    peer: std::net::IpAddr,
    helo: String,
    from: String,
    body: bytes::Bytes,
}

#[async_trait]
impl SenderCheck for SystemSenderCheck {
    async fn check(&self, mail: &ReceptionMail) -> SenderVerdict {
        let facts = SenderFacts {
            peer: mail.client.peer,
            helo: word(&mail.client.greeted_as),
            from: mail.from.as_ref().map_or_else(String::new, |from| from.as_str().to_owned()),
            body: mail.body.clone(),
        };
        let late = || SenderVerdict {
            results: ["spf=temperror", "dkim=temperror", "dmarc=temperror"].map(str::to_owned).into(),
            is_to_be_refused: false,
        };
        let check = async {
            let place = self.places.clone().acquire_owned().await;
            let verify = Self::verify(self.authenticator.clone(), self.name.clone(), facts);
            // A task of its own, so that a fault in it costs this result and no session. It ends with its time:
            // the mail that it holds is counted by its session, which does not wait any longer.
            let task = tokio::spawn(async move {
                let _place = place;
                verify.await
            });
            AbortOnDropHandle::new(task).await
        };
        match tokio::time::timeout(CHECK_MAX, check).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                tracing::error!(%error, "the sender of a mail could not be checked");
                late()
            }
            Err(_) => late(),
        }
    }
}

/// Whether the signatures of a mail may be verified: what that costs grows with their number.
fn check_bounds(mail: &[u8]) -> Result<(), &'static str> {
    let (mut signatures, mut bytes) = (0, 0);
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        bytes += line.len();
        let begins =
            |name: &[u8]| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        signatures += usize::from(begins(b"dkim") || begins(b"message-instance"));
        if signatures > SIGNATURES_MAX {
            return Err("too many signatures");
        }
        if bytes > HEADER_BYTES_MAX {
            return Err("the header is too long");
        }
    }
    Ok(())
}

/// A name as it may stand in a field: whoever gave it cannot end the field or begin another result.
fn word(given: &str) -> String {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || ".-_:[]".contains(*c);
    let kept: String = given.chars().filter(is_name).take(255).collect();
    if kept.is_empty() { "unknown".to_owned() } else { kept }
}

fn spf_word(result: SpfResult) -> &'static str {
    match result {
        SpfResult::Pass => "pass",
        SpfResult::Fail => "fail",
        SpfResult::SoftFail => "softfail",
        SpfResult::Neutral => "neutral",
        SpfResult::TempError => "temperror",
        SpfResult::PermError => "permerror",
        SpfResult::None => "none",
    }
}

fn dkim_word(result: &DkimResult) -> &'static str {
    match result {
        DkimResult::Pass => "pass",
        DkimResult::Neutral(_) => "neutral",
        DkimResult::Fail(_) => "fail",
        DkimResult::PermError(_) => "permerror",
        DkimResult::TempError(_) => "temperror",
        DkimResult::None => "none",
    }
}

fn dmarc_word(result: &DmarcResult) -> &'static str {
    match result {
        DmarcResult::Pass => "pass",
        DmarcResult::Fail(_) => "fail",
        DmarcResult::TempError(_) => "temperror",
        DmarcResult::PermError(_) => "permerror",
        DmarcResult::None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_writes_a_result_of_his_own() {
        let results = vec![format!("spf=none smtp.mailfrom={}", word("a.example; dmarc=pass\r\nX: y"))];
        let field = SenderVerdict { results, is_to_be_refused: false }.field("mx.example.net");
        let expected =
            "Authentication-Results: mx.example.net;\r\n\tspf=none smtp.mailfrom=a.exampledmarcpassX:y\r\n";
        assert_eq!(field, expected);
        assert_eq!(SenderVerdict::default().field(""), "Authentication-Results: unknown; none\r\n");
    }

    /// Each signature needs a look-up. The session does not wait for all of them, and nothing of the mail is
    /// held beyond that.
    #[tokio::test(start_paused = true)]
    async fn a_name_server_that_never_answers_ends_the_check_and_gives_the_mail_back() {
        let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let check = SystemSenderCheck::new("mx.example.net", Some(silent.local_addr().unwrap())).unwrap();
        let signature = |nth: usize| {
            format!(
                "DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d=d{nth}.example; s=s; h=from;\r\n \
                 bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n"
            )
        };
        let head: String = (0..SIGNATURES_MAX).map(signature).collect();
        let body = bytes::Bytes::from(format!("{head}From: a@d.example\r\n\r\nHi.\r\n"));
        let mail = ReceptionMail {
            client: postway_intake::smtp::ReceptionClient {
                peer: "192.0.2.1".parse().unwrap(),
                greeted_as: "mx.example.org".to_owned(),
                secure: false,
                session: "s".to_owned(),
            },
            from: Some("a@d.example".parse().unwrap()),
            to: Vec::new(),
            smtputf8: false,
            body,
            number: 1,
        };
        let began = tokio::time::Instant::now();
        let verdict = check.check(&mail).await;
        assert_eq!(verdict.results, ["spf=temperror", "dkim=temperror", "dmarc=temperror"]);
        assert!(!verdict.is_to_be_refused && began.elapsed() <= CHECK_MAX);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(mail.body.is_unique(), "the mail is still held");
        assert_eq!(check.places.available_permits(), AT_ONCE_MAX);
    }

    #[test]
    fn a_mail_full_of_signatures_is_not_verified() {
        let signed =
            |count: usize| format!("{}From: a@b\r\n\r\nDKIM-x", "DKIM-Signature: v=1\r\n".repeat(count));
        assert_eq!(check_bounds(signed(SIGNATURES_MAX).as_bytes()), Ok(()));
        assert_eq!(check_bounds(signed(SIGNATURES_MAX + 1).as_bytes()), Err("too many signatures"));
        let long = format!("X: {}\r\n\r\n", "y".repeat(HEADER_BYTES_MAX));
        assert_eq!(check_bounds(long.as_bytes()), Err("the header is too long"));
        assert_eq!(check_bounds(b""), Ok(()));
    }
}
