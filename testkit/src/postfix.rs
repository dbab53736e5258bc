//! A real Postfix for tests: a relay that takes any mail and gives it to the next server. What that refuses,
//! it bounces, as mail servers do; mail for one domain, bounces among it, goes to a mailbox over LMTP.
//!
//! Installed software, started in a temporary folder on a free port of loopback; a guard beside it stops it
//! and removes the folder when the value is dropped or the test process ends. Postfix starts as root only:
//! elsewhere `sudo` must work without a password. Where it is missing, tests fail and say so.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use crate::package::free_port;

/// Makes a server in a new folder, says `ready`, and ends it when its input ends.
const GUARD: &str = include_str!("postfix.sh");

/// A running Postfix, stopped with this value.
pub struct Postfix {
    port: u16,
    guard: Child,
}

impl Postfix {
    /// One that hands what is for `domain` to the LMTP server on this port, all of it for its user `mailbox`,
    /// and everything else to the SMTP server on `next_port`.
    ///
    /// Panics where Postfix is missing or does not start.
    pub fn start(domain: &str, mailbox: &str, lmtp_port: u16, next_port: u16) -> Self {
        Self::start_with(domain, mailbox, lmtp_port, next_port)
    }

    /// One that hands what is for `domain` to the SMTP server on this port, and everything else to that on
    /// `next_port`.
    ///
    /// Panics where Postfix is missing or does not start.
    pub fn start_delivering(domain: &str, smtp_port: u16, next_port: u16) -> Self {
        Self::start_with(domain, "", smtp_port, next_port)
    }

    fn start_with(domain: &str, mailbox: &str, domain_port: u16, next_port: u16) -> Self {
        let port = free_port();
        let id = Command::new("id").arg("-u").output().expect("id can be started");
        let mut command = match id.stdout.trim_ascii() {
            b"0" => Command::new("bash"),
            _ => {
                let mut command = Command::new("sudo");
                command.args(["-n", "bash"]);
                command
            }
        };
        command
            .args(["-c", GUARD, "guard"])
            .args([port, domain_port, next_port].map(|port| port.to_string()));
        command.args([domain, mailbox]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().expect("a shell can be started");
        let mut said = String::new();
        let output = guard.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut said).expect("the guard's output can be read");
        if said.trim() != "ready" {
            let mut failure = String::new();
            let mut errors = guard.stderr.take().expect("its errors are piped");
            errors.read_to_string(&mut failure).expect("the guard's errors can be read");
            guard.wait().expect("the guard ends");
            panic!("Postfix does not start (Debian's package postfix must be installed):\n{failure}");
        }
        Self { port, guard }
    }

    /// Where it takes mail.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // The guard's input ends, so it stops the server; waiting leaves nothing running behind the test.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
