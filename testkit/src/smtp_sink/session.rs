//! One connection to the sink.
//!
//! Replies are held back while more commands wait in the buffer, as a pipelining server does. Anything the
//! client breaks ends the session; nothing here panics.

mod transaction;

use std::{io, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use tokio::{net::TcpStream, time::sleep};

use super::{
    Shared,
    pipe::{Pipe, ended},
    script::{SinkAction, SinkEvent, SinkVerb},
};
use crate::cert::TestCert;

/// The longest command line.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// What is said of a token that is refused, as Google says it.
const REFUSED_TOKEN: &str = r#"{"status":"400","schemes":"Bearer","scope":"https://mail.google.com/"}"#;

/// Whether a command took effect.
#[derive(PartialEq, Eq)]
enum Effect {
    Done,
    None,
}

struct Session {
    shared: Arc<Shared>,
    pipe: Pipe,
    input: Vec<u8>,
    output: Vec<u8>,
    connection: usize,
    transactions: usize,
    helo: String,
    /// The client greeted with LHLO: each recipient gets an answer of its own.
    is_lmtp: bool,
    user: Option<String>,
    sender: Option<(String, String)>,
    recipients: Vec<String>,
}

pub(super) async fn run(tcp: TcpStream, shared: Arc<Shared>) {
    // Tests look at replies one by one: delaying small packets would only slow them down.
    tcp.set_nodelay(true).ok();
    let connection = shared.note(|ledger| {
        ledger.connections += 1;
        ledger.connections
    });
    let mut session = Session {
        shared: shared.clone(),
        pipe: Pipe::Plain(tcp),
        input: Vec::new(),
        output: Vec::new(),
        connection,
        transactions: 0,
        helo: String::new(),
        is_lmtp: false,
        user: None,
        sender: None,
        recipients: Vec::new(),
    };
    // How a session ends is the client's affair; the ledger says what came of it.
    session.serve().await.ok();
    drop(session);
    shared.note(|ledger| ledger.closed += 1);
}

impl Session {
    async fn serve(&mut self) -> io::Result<()> {
        if let Some(cert) = self.shared.manner.implicit_tls.clone() {
            self.secure(&cert).await?;
        }
        if self.answer(SinkVerb::Connect, "", &[], "220 sink.example ESMTP").await? == Effect::None {
            // A server that has refused a client only waits for it to leave.
            while self.line().await.is_ok_and(|line| !line.eq_ignore_ascii_case("QUIT")) {}
            return Ok(());
        }
        loop {
            let line = self.line().await?;
            self.shared.note(|ledger| ledger.command(self.connection, &line));
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" | "HELO" | "LHLO" => self.hello(&line).await?,
                "STARTTLS" => self.starttls().await?,
                "AUTH" => self.auth(&line).await?,
                "MAIL" => self.mail(&line).await?,
                "RCPT" => self.rcpt(&line).await?,
                "DATA" => self.data().await?,
                "RSET" => {
                    self.reset();
                    self.answer(SinkVerb::Rset, &line, &[], "250 2.0.0 Ok").await?;
                }
                "NOOP" => {
                    self.answer(SinkVerb::Noop, &line, &[], "250 2.0.0 Ok").await?;
                }
                "QUIT" => {
                    self.answer(SinkVerb::Quit, &line, &[], "221 2.0.0 Bye").await?;
                    return self.flush().await;
                }
                _ => self.say("502 5.5.2 Error: command not recognized"),
            }
        }
    }

    async fn hello(&mut self, line: &str) -> io::Result<()> {
        let manner = self.shared.manner.clone();
        let mut lines = vec!["sink.example".to_owned()];
        self.is_lmtp = line.to_ascii_uppercase().starts_with("LHLO");
        if self.is_lmtp || line.to_ascii_uppercase().starts_with("EHLO") {
            lines.extend(manner.capabilities);
            if manner.starttls.is_some() && !self.pipe.is_tls() {
                lines.push("STARTTLS".to_owned());
            }
            if manner.auth.is_some() {
                lines.push(format!("AUTH {}", manner.auth_mechanisms));
            }
        }
        let last = lines.len() - 1;
        let reply: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| format!("250{}{line}", if at == last { ' ' } else { '-' }))
            .collect();
        self.reset();
        self.helo = line.get(5..).unwrap_or_default().trim().to_owned();
        self.answer(SinkVerb::Ehlo, line, &[], &reply.join("\r\n")).await?;
        Ok(())
    }

    async fn starttls(&mut self) -> io::Result<()> {
        let Some(cert) = self.shared.manner.starttls.clone() else {
            self.say("502 5.5.1 Error: command not implemented");
            return Ok(());
        };
        if self.answer(SinkVerb::StartTls, "STARTTLS", &[], "220 2.0.0 Ready to start TLS").await?
            == Effect::Done
        {
            self.flush().await?;
            self.input.clear();
            self.secure(&cert).await?;
            self.reset();
            self.user = None;
        }
        Ok(())
    }

    async fn secure(&mut self, cert: &TestCert) -> io::Result<()> {
        let event = self.event(SinkVerb::Tls, "", &[]);
        let cut = !matches!(self.shared.action(&event), SinkAction::Proceed);
        if cut {
            // In the middle: the client's first flight has come, ours will not.
            return self.pipe.wait_for_input().await.and(Err(ended()));
        }
        self.pipe.secure(cert).await
    }

    async fn auth(&mut self, line: &str) -> io::Result<()> {
        let Some((user, password)) = self.shared.manner.auth.clone() else {
            self.say("502 5.5.1 Error: authentication not enabled");
            return Ok(());
        };
        let mut words = line.split_whitespace().skip(1);
        let mechanism = words.next().unwrap_or_default().to_ascii_uppercase();
        let given = match mechanism.as_str() {
            "PLAIN" => {
                let response = match words.next() {
                    Some(response) => response.to_owned(),
                    None => self.challenge("").await?,
                };
                let plain = decode(&response);
                let mut parts = plain.split('\0').skip(1).map(str::to_owned);
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
            }
            "LOGIN" => {
                let user = self.challenge("VXNlcm5hbWU6").await?;
                let password = self.challenge("UGFzc3dvcmQ6").await?;
                (decode(&user), decode(&password))
            }
            "XOAUTH2" | "OAUTHBEARER" => {
                let response = match words.next() {
                    Some(response) => response.to_owned(),
                    None => self.challenge("").await?,
                };
                let given = bearer(&decode(&response));
                if given != (user.clone(), password.clone()) {
                    // Why comes as a challenge, in base64; the client consents, and is refused.
                    self.challenge(&BASE64_STANDARD.encode(REFUSED_TOKEN)).await?;
                }
                given
            }
            _ => {
                self.say("504 5.5.4 Unrecognized authentication type");
                return Ok(());
            }
        };
        if given != (user.clone(), password) {
            self.say("535 5.7.8 Error: authentication failed");
        } else if self.answer(SinkVerb::Auth, line, &[], "235 2.7.0 Authentication successful").await?
            == Effect::Done
        {
            self.user = Some(user);
        }
        Ok(())
    }

    async fn challenge(&mut self, text: &str) -> io::Result<String> {
        self.say(&format!("334 {text}"));
        self.line().await
    }

    fn event<'a>(&self, verb: SinkVerb, argument: &'a str, body: &'a [u8]) -> SinkEvent<'a> {
        let tries = match verb {
            SinkVerb::Rcpt => self.shared.ledger().offers.get(argument).copied().unwrap_or_default(),
            _ => 0,
        };
        SinkEvent { verb, argument, connection: self.connection, message: self.transactions, tries, body }
    }

    /// Asks the rules and does what they say.
    async fn answer(
        &mut self,
        verb: SinkVerb,
        argument: &str,
        body: &[u8],
        usual: &str,
    ) -> io::Result<Effect> {
        let action = self.shared.action(&self.event(verb, argument, body));
        self.perform(action, usual).await
    }

    async fn perform(&mut self, action: SinkAction, usual: &str) -> io::Result<Effect> {
        match action {
            SinkAction::Proceed => {}
            SinkAction::Hold(hold) => {
                self.flush().await?;
                hold.pass().await;
            }
            SinkAction::Delay(time) => {
                self.flush().await?;
                sleep(time).await;
            }
            SinkAction::Reply(text) => {
                self.say(&text);
                return Ok(effect(&text));
            }
            SinkAction::ReplyThenCut(text) => {
                self.say(&text);
                self.flush().await?;
                return Err(ended());
            }
            SinkAction::Raw(bytes) => {
                self.output.extend_from_slice(&bytes);
                self.flush().await?;
                return Ok(Effect::None);
            }
            SinkAction::Cut | SinkAction::Recorded(_) => {
                self.flush().await?;
                return Err(ended());
            }
            SinkAction::Silence => {
                self.flush().await?;
                let mut ignored = Vec::new();
                loop {
                    ignored.clear();
                    self.read(&mut ignored).await?;
                }
            }
            SinkAction::Drip(text, every) => {
                self.flush().await?;
                for byte in text.bytes().chain(*b"\r\n") {
                    self.output.push(byte);
                    self.flush().await?;
                    sleep(every).await;
                }
                return Ok(effect(&text));
            }
            SinkAction::Endless => {
                self.output.extend_from_slice(b"250-");
                loop {
                    self.output.extend_from_slice(&[b'x'; 4096]);
                    self.flush().await?;
                }
            }
        }
        if !usual.is_empty() {
            self.say(usual);
        }
        Ok(effect(usual))
    }

    fn say(&mut self, text: &str) {
        self.output.extend_from_slice(text.as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    fn reset(&mut self) {
        self.sender = None;
        self.recipients.clear();
    }

    /// The next command line, without its end.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.input.iter().position(|&b| b == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.input.len() > LINE_BYTES_MAX {
                return Err(ended());
            }
            self.flush().await?;
            let mut input = std::mem::take(&mut self.input);
            let read = self.read(&mut input).await;
            self.input = input;
            read?;
        }
    }

    async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.pipe.read(into).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.pipe.write(&self.output).await?;
        self.output.clear();
        Ok(())
    }
}

fn effect(reply: &str) -> Effect {
    if reply.starts_with(['2', '3']) { Effect::Done } else { Effect::None }
}

fn decode(text: &str) -> String {
    BASE64_STANDARD.decode(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Who signs in, and with which token: `user=…` of XOAUTH2, or `n,a=…,` of OAUTHBEARER.
fn bearer(response: &str) -> (String, String) {
    let mut parts = response.split('\x01');
    let head = parts.next().unwrap_or_default();
    let user = head.strip_prefix("user=").or_else(|| head.strip_prefix("n,a=")?.strip_suffix(','));
    let token = parts.next().and_then(|part| part.strip_prefix("auth=Bearer "));
    let is_whole = response.ends_with("\x01\x01");
    match (user, token) {
        (Some(user), Some(token)) if is_whole => {
            (user.replace("=2C", ",").replace("=3D", "="), token.to_owned())
        }
        _ => Default::default(),
    }
}
