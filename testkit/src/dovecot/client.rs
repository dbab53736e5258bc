//! What a test does to a mailbox from the other side: a blocking session that panics at the first refusal.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use super::PASSWORD;

/// A session with the server, signed in.
pub struct ImapClient {
    tcp: BufReader<TcpStream>,
    tags: u32,
}

impl ImapClient {
    pub(super) fn sign_in(port: u16, user: &str) -> Self {
        let tcp = TcpStream::connect(("127.0.0.1", port)).expect("Dovecot takes connections");
        tcp.set_nodelay(true).expect("a socket can be set");
        let mut client = Self { tcp: BufReader::new(tcp), tags: 0 };
        client.line();
        client.run(&format!("LOGIN \"{user}\" \"{PASSWORD}\""));
        client
    }

    /// Runs a command and gives all lines of its answer. Literals in them are lines too.
    ///
    /// Panics where it is refused.
    pub fn run(&mut self, command: &str) -> Vec<String> {
        self.send(command.as_bytes(), command)
    }

    /// Puts mails into a folder, which is made if it is not there, as of `date` (`17-Jul-1996 02:44:25
    /// -0700`) or of now.
    pub fn append(&mut self, folder: &str, date: Option<&str>, mails: &[impl AsRef<[u8]>]) {
        if !folder.eq_ignore_ascii_case("INBOX") && !self.has(folder) {
            self.run(&format!("CREATE \"{folder}\""));
        }
        let date = date.map(|date| format!("\"{date}\" ")).unwrap_or_default();
        // All in one transaction (RFC 3502), without waiting to be asked for each (RFC 7888).
        let mut command = format!("APPEND \"{folder}\"").into_bytes();
        for mail in mails {
            let mail = mail.as_ref();
            command.extend_from_slice(format!(" {date}{{{}+}}\r\n", mail.len()).as_bytes());
            command.extend_from_slice(mail);
        }
        self.send(&command, "APPEND");
    }

    fn has(&mut self, folder: &str) -> bool {
        self.run(&format!("LIST \"\" \"{folder}\"")).iter().any(|line| line.starts_with("* LIST"))
    }

    fn send(&mut self, command: &[u8], what: &str) -> Vec<String> {
        self.tags += 1;
        let tag = format!("T{}", self.tags);
        let stream = self.tcp.get_mut();
        let octets = [tag.as_bytes(), b" ", command, b"\r\n"].concat();
        stream.write_all(&octets).expect("Dovecot listens");
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            if let Some(verdict) = line.strip_prefix(&format!("{tag} ")) {
                assert!(verdict.starts_with("OK"), "{what}: {verdict}");
                return lines;
            }
            lines.push(line);
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let read = self.tcp.read_until(b'\n', &mut line).expect("Dovecot answers");
        assert_ne!(read, 0, "Dovecot closed the connection");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }
}
