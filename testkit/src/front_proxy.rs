//! Real proxies in front of a server: nginx and HAProxy, each with the configuration that a test writes.
//!
//! Installed software, started in a temporary folder on a free port of loopback. A shell beside each stops it
//! when its input ends: when the value is dropped or the test process is gone. Where one is missing, tests
//! fail and say so.

use std::{
    io::Read,
    net::TcpStream,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::package::{free_port, program};

/// Ends the program when its own input ends.
const GUARD: &str = r#""$@" </dev/null & pid=$!; read -r _; kill $pid; wait $pid"#;
/// How long a proxy may take until it listens.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// A running proxy, stopped with this value.
pub struct FrontProxy {
    port: u16,
    guard: Child,
    _folder: TempDir,
}

impl FrontProxy {
    /// An nginx whose `http` block has this text, which is given the port to listen on.
    ///
    /// Panics where nginx is missing or does not start.
    pub fn nginx(http: impl FnOnce(u16) -> String) -> Self {
        Self::start("nginx", |folder, port| {
            let here = folder.display();
            let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|name| format!("{name}_temp_path {here}/{name};\n"))
                .concat();
            let text = format!(
                "daemon off; master_process off; pid {here}/pid; error_log stderr;\n\
                 events {{ worker_connections 128; }}\nhttp {{ access_log off;\n{paths}{}\n}}\n",
                http(port)
            );
            std::fs::write(folder.join("proxy.conf"), text).expect("the folder can be written to");
            let mut command = Command::new(program("nginx"));
            command.arg("-p").arg(folder).arg("-c").arg(folder.join("proxy.conf"));
            command
        })
    }

    /// A HAProxy with these sections after its global one, which are given the port to listen on.
    ///
    /// Panics where HAProxy is missing or does not start.
    pub fn haproxy(sections: impl FnOnce(u16) -> String) -> Self {
        Self::start("haproxy", |folder, port| {
            let text = format!(
                "global\n  maxconn 128\ndefaults\n  timeout connect 10s\n  timeout client 30s\n  timeout server 30s\n{}\n",
                sections(port)
            );
            std::fs::write(folder.join("proxy.conf"), text).expect("the folder can be written to");
            let mut command = Command::new(program("haproxy"));
            command.arg("-db").arg("-f").arg(folder.join("proxy.conf"));
            command
        })
    }

    fn start(name: &str, prepare: impl FnOnce(&Path, u16) -> Command) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a folder can be made"), free_port());
        let wanted = prepare(folder.path(), port);
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD, "guard"]).arg(wanted.get_program()).args(wanted.get_args());
        shell.process_group(0).current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let guard = shell.spawn().expect("a shell can be started");
        let mut proxy = Self { port, guard, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > STARTS_WITHIN {
                drop(proxy.guard.stdin.take());
                let mut said = String::new();
                if let Some(errors) = &mut proxy.guard.stderr {
                    errors.read_to_string(&mut said).expect("its errors can be read");
                }
                panic!("{name} does not start (its Debian package must be installed):\n{said}");
            }
            sleep(Duration::from_millis(20));
        }
        proxy
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for FrontProxy {
    fn drop(&mut self) {
        // The guard's input ends, so it stops the proxy; waiting leaves nothing running behind the test.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
