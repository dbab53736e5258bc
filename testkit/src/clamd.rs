//! A real clamd for tests, with one signature of our own: that of the harmless test file of the antivirus makers
//! (EICAR). Nothing is downloaded.
//!
//! Installed software, started in a temporary folder, and stopped when the value is dropped. Where it is missing,
//! tests fail and say so.

use std::{
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long it may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// The harmless file that virus scanners agree to find, in two halves: scanners on developers' machines look into
/// sources too.
const EICAR: [&str; 2] = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"];
/// The name under which it is found.
pub const EICAR_NAME: &str = "Postway.Test.Eicar.UNOFFICIAL";

/// The content of the harmless test file.
pub fn eicar() -> String {
    EICAR.concat()
}

/// A running clamd.
pub struct Clamd {
    folder: TempDir,
    process: Child,
}

impl Clamd {
    /// Starts one.
    ///
    /// Panics where clamd is missing or does not start.
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a folder can be made");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("db")).expect("a folder can be made");
        let signature: String = eicar().bytes().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(at("db").join("test.ndb"), format!("Postway.Test.Eicar:0:*:{signature}\n"))
            .expect("the signature can be written");
        let config = format!(
            "Foreground yes\nLocalSocket {}\nDatabaseDirectory {}\nTemporaryDirectory {}\nLogFile {}\nOfficialDatabaseOnly no\n",
            at("clamd.sock").display(),
            at("db").display(),
            folder.path().display(),
            at("log").display(),
        );
        std::fs::write(at("clamd.conf"), config).expect("the configuration can be written");
        let program = ["/usr/sbin/clamd", "clamd"].into_iter().find(|path| PathBuf::from(path).exists());
        let process = Command::new(program.unwrap_or("clamd"))
            .arg(format!("--config-file={}", at("clamd.conf").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Debian's package clamav-daemon must be installed");
        let clamd = Self { folder, process };
        let started = Instant::now();
        while UnixStream::connect(clamd.socket()).is_err() {
            let log = || std::fs::read_to_string(clamd.folder.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < STARTS_WITHIN, "clamd does not start:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        clamd
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("clamd.sock")
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
