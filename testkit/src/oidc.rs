//! A real OAuth 2 server for tests: npm's `oidc-provider`, with a person who consents on its pages.
//!
//! Installed once into the user's cache folder, like other [packages](crate::node); started once per test
//! process, on a port that the system chooses. A shell watches over it: when the test process ends, however
//! it ends, the shell's input closes, and it stops the server. Panics with a sentence where the server cannot
//! be had: a test that needs it must not pass without.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use crate::node::NodeJs;

/// Names the folder of the packages: change it with them.
const VERSION: &str = "1";
const PACKAGES: [&str; 1] = ["oidc-provider@9.13.3"];
/// Runs the server given as arguments until the input ends.
const WATCH: &str = r#""$@" & server=$!; read -r _; kill "$server"; wait "$server""#;
const SERVER: &str = include_str!("oidc/server.mjs");
const PERSON: &str = include_str!("oidc/person.mjs");

/// A running server. Its clients are `machine` (client credentials, its secret as a password), `person`
/// (consent, its secret in the form, also for a gateway on `localhost`) and `imap`, which may ask whether a token is good; the secret of each is
/// its name with `-secret`.
pub struct OidcServer {
    port: u16,
    node: NodeJs,
    /// Its input is what keeps the server running.
    _watch: Child,
}

impl OidcServer {
    /// The server of this process, started by the first call. Blocks until it listens.
    pub fn shared() -> &'static OidcServer {
        static RUNNING: OnceLock<OidcServer> = OnceLock::new();
        RUNNING.get_or_init(OidcServer::start)
    }

    fn start() -> Self {
        let node = NodeJs::with_packages("oidc-provider", VERSION, &PACKAGES);
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, "sh"])
            .arg(node.program())
            .args(["--input-type=module", "--eval", SERVER])
            .current_dir(node.packages())
            .env_remove("NODE_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is for the tests; the server ends after them.
            .process_group(0)
            .spawn()
            .expect("a shell can be started");
        let lines = BufReader::new(watch.stdout.take().expect("what the server says is piped")).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on ")?.parse().ok())
            .expect("oidc-provider does not start");
        Self { port, node, _watch: watch }
    }

    /// The URL of a path: `/token`, `/device/auth`, `/auth`, `/token/introspection`; `/withdraw`, which ends
    /// the access token that is posted to it; and `/sign-out`, which takes a login and an address, and sends that
    /// address a logout token for the login.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Where Dovecot asks whether a token is good.
    pub fn introspection_url(&self) -> String {
        format!("http://imap:imap-secret@127.0.0.1:{}/token/introspection", self.port)
    }

    /// Has this person consent, beginning on this page, with the code of a device if there is one; what the
    /// last page says.
    pub async fn consent(&self, login: &str, page: &str, user_code: &str) -> String {
        self.node.say(PERSON, &[("LOGIN", login), ("START", page), ("USER_CODE", user_code)]).await
    }
}
