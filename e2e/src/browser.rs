//! A real browser, driven: Chromium by its WebDriver (Debian's `chromium` and `chromium-driver`), without a
//! window.
//!
//! A shell watches over it: when the test process ends, however it ends, the shell's input closes, and it
//! ends the driver with all its browsers and removes their folder.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::eventually;

/// Starts a driver on a free port, says which, and ends it when its input ends.
const GUARD: &str = r#"
command -v chromedriver >/dev/null || { echo "chromedriver is missing: install Debian's chromium-driver"; exit 1; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/postway-browser.XXXXXX") || exit 1
export HOME=$folder TMPDIR=$folder
: >"$folder/log"
# A driver may find its port taken, and takes its time on a busy machine.
for _ in 1 2 3; do
    setsid chromedriver --port=0 --log-level=SEVERE >"$folder/log" 2>&1 &
    driver=$!
    for _ in $(seq 600); do
        port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$folder/log")
        [ -n "$port" ] && break 2
        kill -0 "$driver" 2>/dev/null || break
        sleep 0.05
    done
    { kill -KILL -- -"$driver"; wait "$driver"; } 2>/dev/null
done
[ -n "$port" ] || echo "it said: $(tr '\n' ' ' <"$folder/log")"
echo "port $port"
read -r _
{ kill -KILL -- -"$driver"; wait "$driver"; } 2>/dev/null
rm -rf "$folder"
"#;

/// An element, as the driver names it.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one page. Ends with this value.
pub struct Browser {
    http: reqwest::Client,
    session: String,
    guard: Child,
}

impl Browser {
    /// Starts one, with a window of this size.
    pub async fn start(width: u32, height: u32) -> anyhow::Result<Self> {
        let mut guard = Command::new("bash")
            .args(["-c", GUARD])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(guard.stdout.take().context("its output is piped")?).read_line(&mut said)?;
        let port = said.trim().strip_prefix("port ").filter(|port| !port.is_empty());
        let driver = format!("http://127.0.0.1:{}", port.with_context(|| format!("no driver: {said}"))?);
        let http = reqwest::Client::builder().no_proxy().timeout(crate::PATIENCE).build()?;
        let options = json!({"args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            format!("--window-size={width},{height}"),
        ]});
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
        let made: Value = http.post(format!("{driver}/session")).json(&wanted).send().await?.json().await?;
        let id = made["value"]["sessionId"].as_str().with_context(|| format!("no browser: {made}"))?;
        Ok(Self { session: format!("{driver}/session/{id}"), http, guard })
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> anyhow::Result<Value> {
        let request = self.http.request(method.clone(), format!("{}{path}", self.session));
        let request = if method == Method::GET { request } else { request.json(&body) };
        let answer: Value = request.send().await?.json().await?;
        ensure!(answer["value"]["error"].is_null(), "{path}: {}", answer["value"]["message"]);
        Ok(answer["value"].clone())
    }

    /// Opens an address.
    pub async fn open(&self, url: &str) -> anyhow::Result<()> {
        self.call(Method::POST, "/url", json!({"url": url})).await.map(drop)
    }

    /// Runs a script in the page; its value. A promise is waited for.
    pub async fn run(&self, script: &str) -> anyhow::Result<Value> {
        self.call(Method::POST, "/execute/sync", json!({"script": script, "args": []})).await
    }

    /// Waits until a script's value is true.
    pub async fn wait_until(&self, what: &str, script: &str) -> anyhow::Result<()> {
        let waited = eventually(what, async || Ok((self.run(script).await? == true).then_some(()))).await;
        match waited {
            Ok(()) => Ok(()),
            Err(error) => {
                let shown = self.run("return document.body.innerText").await.unwrap_or_default();
                Err(error.context(format!("the page says: {shown}")))
            }
        }
    }

    /// Waits until the page shows a text.
    pub async fn wait_for_text(&self, text: &str) -> anyhow::Result<()> {
        let script = format!("return document.body.innerText.includes({})", json!(text));
        self.wait_until(&format!("`{text}` to be shown"), &script).await
    }

    /// Waits for an element and gives it.
    async fn element(&self, css: &str) -> anyhow::Result<String> {
        let what = format!("`{css}`");
        eventually(&what, async || {
            let found =
                self.call(Method::POST, "/element", json!({"using": "css selector", "value": css})).await;
            Ok(found.ok().and_then(|found| found[ELEMENT].as_str().map(str::to_owned)))
        })
        .await
    }

    /// Types into a field, after what is in it.
    pub async fn type_into(&self, css: &str, text: &str) -> anyhow::Result<()> {
        let element = self.element(css).await?;
        self.call(Method::POST, &format!("/element/{element}/value"), json!({"text": text})).await.map(drop)
    }

    /// Clicks on the button or link with this text.
    pub async fn click(&self, text: &str) -> anyhow::Result<()> {
        let script = format!(
            "const it = [...document.querySelectorAll('button, a, [role=tab]')]
                .find((one) => one.textContent.trim() === {} && !one.disabled && one.offsetParent !== null);
            if (!it) return false; it.click(); return true;",
            json!(text)
        );
        eventually(&format!("a button `{text}`"), async || {
            Ok((self.run(&script).await? == true).then_some(()))
        })
        .await
    }

    /// Gives it a device that makes passkeys and always recognises its owner.
    pub async fn give_authenticator(&self) -> anyhow::Result<()> {
        let device = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true, "isUserVerified": true, "isUserConsenting": true,
        });
        self.call(Method::POST, "/webauthn/authenticator", device).await.map(drop)
    }

    /// Keeps a picture of the page.
    pub async fn screenshot(&self, file: &Path) -> anyhow::Result<()> {
        let picture = self.call(Method::GET, "/screenshot", Value::Null).await?;
        let picture = BASE64_STANDARD.decode(picture.as_str().context("no picture")?)?;
        std::fs::create_dir_all(file.parent().context("no folder")?)?;
        Ok(std::fs::write(file, picture)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The guard ends the driver when its input does; to wait is to leave nothing running.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
