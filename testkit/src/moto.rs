//! A moto server for tests: a real HTTP service that speaks SES, S3 and other parts of AWS, written in
//! Python.
//!
//! Started once per test process on a port that the system chooses. Its packages live in a Python environment
//! of their own in the user's cache folder, made by the first test process that needs it; the others wait for
//! it. A shell watches over the server: when the test process ends, however it ends, the shell's input
//! closes, and it stops the server. Panics with a sentence where the server cannot be had: a test that needs
//! it must not pass without.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use crate::python::interpreter;

/// What names the environment: another version gets another folder.
const VERSION: &str = "5.2.5";
/// Pinned as far as it shapes answers; moto's paths follow botocore's models.
const PACKAGES: [&str; 6] = [
    "moto[s3]==5.2.5",
    "boto3==1.44.0",
    "botocore==1.44.0",
    "flask==3.1.3",
    "flask-cors==6.0.5",
    "werkzeug==3.1.9",
];
/// How long the server may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(120);
/// Where S3 and what has no region are asked.
const REGION: &str = "us-east-1";
/// How long an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Runs the server given as arguments until the input ends.
const WATCH: &str = r#""$@" & server=$!; read -r _; kill "$server"; wait "$server""#;

/// A running server.
pub struct Moto {
    address: SocketAddr,
    /// Its input is what keeps the server running.
    _watch: Child,
}

impl Moto {
    /// The server of this process, started by the first call. Blocks until it listens.
    pub fn shared() -> &'static Moto {
        static SERVER: OnceLock<Moto> = OnceLock::new();
        SERVER.get_or_init(Moto::start)
    }

    fn start() -> Self {
        let python = interpreter("moto", VERSION, &PACKAGES);
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, "sh"])
            .arg(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tests; the server ends after them.
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        let address = wait_until_listening(watch.stderr.take().expect("the server's log is piped"));
        Self { address, _watch: watch }
    }

    /// Its address, as an account's or a storage's endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets SES in this region send from an address or a domain.
    pub fn verify_identity(&self, region: &str, identity: &str) {
        let body = format!(r#"{{"EmailIdentity":"{identity}"}}"#);
        let answer = self.request("POST", "/v2/email/identities", &format!("{region}/ses"), &body);
        assert!(answer.contains("IdentityType"), "moto did not take the identity {identity}: {answer}");
    }

    /// What every service here holds, as moto's JSON; mails are under `ses`, `RawMessage`, with `id`,
    /// `source`, `destinations` and `raw_data`.
    pub fn data(&self) -> String {
        self.request("GET", "/moto-api/data.json", &format!("{REGION}/ses"), "")
    }

    /// Makes an empty S3 bucket. Names are shared by all tests of a process: each takes its own.
    pub fn create_bucket(&self, name: &str) {
        let answer = self.request("PUT", &format!("/{name}"), &format!("{REGION}/s3"), "");
        assert!(answer.is_empty(), "moto made no bucket {name}: {answer}");
    }

    /// The keys in a bucket, in order.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let list = self.request("GET", &format!("/{bucket}?list-type=2"), &format!("{REGION}/s3"), "");
        assert!(list.contains("<ListBucketResult"), "moto lists no bucket {bucket}: {list}");
        let keys = list.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        keys.map(|(key, _)| key.to_owned()).collect()
    }

    /// Asks and returns the body of the answer. moto closes the connection after each.
    fn request(&self, method: &str, path: &str, scope: &str, body: &str) -> String {
        // It finds region and service in the scope of a signature, and does not check it.
        let scope = format!("AKID/20260101/{scope}/aws4_request");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        let ask = || -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().unwrap_or_else(|error| panic!("moto did not answer {method} {path}: {error}"));
        let answer = String::from_utf8_lossy(&answer);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP answer: {answer}"));
        body.to_owned()
    }
}

/// Reads the server's log until it says where it listens, and goes on reading so that it can go on writing.
fn wait_until_listening(log: impl Read + Send + 'static) -> SocketAddr {
    let (found, is_found) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        let mut is_listening = false;
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if is_listening {
                continue;
            }
            if let Some((_, address)) = line.split_once("Running on http://") {
                is_listening = true;
                // Nobody waits any more if it came too late.
                let _ = found.send(address.trim().parse().map_err(|_| line.clone()));
            }
            said.push_str(&line);
            said.push('\n');
        }
        let _ = found.send(Err(said));
    });
    match is_found.recv_timeout(STARTS_WITHIN) {
        Ok(Ok(address)) => address,
        Ok(Err(said)) => panic!("moto did not start:\n{said}"),
        Err(_) => panic!("moto did not listen after {STARTS_WITHIN:?}"),
    }
}
