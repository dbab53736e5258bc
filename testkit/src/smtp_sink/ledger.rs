//! What the sink has seen.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

/// The most commands that are remembered; older ones are forgotten first.
const COMMANDS_MAX: usize = 20_000;

/// One mail that the sink took responsibility for.
#[derive(Debug, Clone)]
pub struct ReceivedMail {
    /// The mail without dot-stuffing.
    pub raw: Vec<u8>,
    /// The reverse path.
    pub sender: String,
    /// The accepted forward paths.
    pub recipients: Vec<String>,
    /// What followed the path in MAIL.
    pub mail_parameters: String,
    /// The value of `X-Postway-ID`.
    pub postway_id: Option<String>,
    /// The value of `Message-ID`.
    pub message_id: Option<String>,
    /// When the final dot came.
    pub at: Instant,
    /// The connection was encrypted.
    pub tls: bool,
    /// Who had signed in.
    pub user: Option<String>,
    /// The name given in EHLO or HELO.
    pub helo: String,
    /// Which connection it came over, from 1.
    pub connection: usize,
}

impl ReceivedMail {
    /// The value of a header field, unfolded.
    pub fn header(&self, name: &str) -> Option<String> {
        header(&self.raw, name)
    }
}

/// Everything the sink has seen.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Mails taken, in order.
    pub mails: Vec<ReceivedMail>,
    /// Connections accepted.
    pub connections: usize,
    /// Connections that have ended.
    pub closed: usize,
    /// Final dots seen, whatever the answer.
    pub dots: usize,
    /// Bytes of bodies seen, as on the wire, final dots included.
    pub body_bytes: usize,
    /// How often each recipient was offered.
    pub offers: HashMap<String, usize>,
    /// Commands, with the number of their connection. Responses to AUTH are not among them.
    pub commands: VecDeque<(usize, String)>,
}

impl Ledger {
    pub(super) fn command(&mut self, connection: usize, line: &str) {
        if self.commands.len() == COMMANDS_MAX {
            self.commands.pop_front();
        }
        self.commands.push_back((connection, line.to_owned()));
    }

    /// The commands of all connections that start with `verb`.
    pub fn commands_of(&self, verb: &str) -> Vec<String> {
        self.commands.iter().map(|(_, line)| line).filter(|line| line.starts_with(verb)).cloned().collect()
    }
}

/// The value of a header field in `raw`, unfolded.
pub(super) fn header(raw: &[u8], name: &str) -> Option<String> {
    let end = raw.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(raw.len());
    let head = String::from_utf8_lossy(&raw[..end]).replace("\r\n ", " ").replace("\r\n\t", " ");
    head.split("\r\n").find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}
