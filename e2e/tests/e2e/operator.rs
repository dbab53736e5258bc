//! The operator's commands: `doctor` beside a running and a dead server, `top` in a pipe and in a real
//! terminal.

use std::{net::SocketAddr, process::Stdio, sync::Arc};

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, PATIENCE, Ran, binary, text};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::UdpSocket,
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

/// A name server that knows no name: that is an answer too.
struct NameServer {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl NameServer {
    async fn start() -> anyhow::Result<Self> {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await?);
        let address = socket.local_addr()?;
        let serving = tokio::spawn(async move {
            let mut query = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut query).await {
                if length < 12 {
                    continue;
                }
                // The question comes back with "no such name" (RFC 1035, 4.1.1).
                let mut answer = query[..length].to_vec();
                answer[2..4].copy_from_slice(&[0x81, 0x83]);
                answer[6..12].fill(0);
                let question =
                    answer.iter().skip(12).position(|byte| *byte == 0).map_or(length, |end| 12 + end + 5);
                answer.truncate(question);
                socket.send_to(&answer, client).await.ok();
            }
        });
        Ok(Self { address, serving })
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The first finding of an area.
fn finding<'a>(report: &'a Value, area: &str, check: &str) -> anyhow::Result<&'a Value> {
    let areas = report["areas"].as_array().context("no areas")?;
    let area = areas.iter().find(|found| found["area"] == area).with_context(|| format!("no area {area}"))?;
    let findings = area["findings"].as_array().context("no findings")?;
    findings.iter().find(|found| found["check"] == check).with_context(|| format!("no {check} in {area}"))
}

async fn doctor(gateway: &Gateway, dns: &NameServer) -> anyhow::Result<(Ran, Value)> {
    let dns = dns.address.to_string();
    let ran = gateway.cli(&["doctor", "--json", "--dns", &dns]).await?;
    let report = serde_json::from_str(&ran.out).with_context(|| format!("{ran:?}"))?;
    Ok((ran, report))
}

#[tokio::test]
async fn a_fresh_gateway_is_sound_and_what_is_wrong_is_told_with_what_to_do() -> anyhow::Result<()> {
    let (mut gateway, dns) = (Gateway::start().await?, NameServer::start().await?);
    let (ran, report) = doctor(&gateway, &dns).await?;
    assert_eq!((ran.code, &report["sound"]), (Some(0), &json!(true)), "{report:#}");
    for (area, check) in [
        ("configuration", "admin.key"),
        ("database", "sqlite"),
        ("server", "server"),
        ("clock", "server's clock"),
        ("dns", "resolver"),
        ("queue", "queue"),
        ("accounts", "sandbox"),
        ("mailboxes", "mailboxes"),
    ] {
        assert_eq!(finding(&report, area, check)?["state"], "ok", "{report:#}");
    }

    // A port that nobody listens on.
    gateway.relay_to(1).await?;
    let env = [("POSTWAY_URL", gateway.url()), ("POSTWAY_HTTP_LISTNE", "127.0.0.1:1".to_owned())];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ran = gateway.run(&["doctor", "--dns", &dns.address.to_string()], &env, b"").await?;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("1 problem needs attention"), "{ran:?}");
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "no colours in a pipe: {ran:?}");
    let line = |word: &str| ran.out.lines().find(|line| line.contains(word)).unwrap_or_default();
    assert!(line("relay").trim_start().starts_with("problem"), "{}", ran.out);
    assert!(ran.out.contains("→ check host and port"), "{}", ran.out);
    assert!(line("POSTWAY_HTTP_LISTNE").trim_start().starts_with("warning"), "{}", ran.out);

    ensure!(gateway.terminate().await?.success());
    let (ran, report) = doctor(&gateway, &dns).await?;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let server = finding(&report, "server", "server")?;
    assert_eq!(server["state"], "problem", "{report:#}");
    assert!(text(server, "advice").contains("postway serve"), "{server}");
    assert_eq!(finding(&report, "database", "sqlite")?["state"], "ok", "it is looked at without a server");
    assert_eq!(finding(&report, "accounts", "accounts")?["state"], "skipped");
    Ok(())
}

#[tokio::test]
async fn top_in_a_pipe_prints_once_and_as_json_line_by_line() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let mail = json!({"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi"});
    let uid = gateway.send(mail).await?;
    gateway.wait_for(&uid, "sent").await?;

    let plain = gateway.cli(&["top"]).await?;
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(!plain.out.contains('\u{1b}') && plain.out.contains("1 node"), "{plain:?}");
    let sent = plain.out.lines().find(|line| line.starts_with("sent ")).unwrap_or_default();
    assert_eq!(sent.split_whitespace().last(), Some("1"), "{plain:?}");

    let once = gateway.cli(&["top", "--once", "--json"]).await?;
    let overview: Value = serde_json::from_str(&once.out)?;
    assert_eq!((&overview["by_status"]["sent"], once.out.lines().count()), (&json!(1), 1));

    let mut child = Command::new(binary()?)
        .args(["top", "--json", "--url", &gateway.url(), "--key", &gateway.key()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    for _ in 0..2 {
        let line = timeout(PATIENCE, lines.next_line()).await??.context("it ended")?;
        assert!(serde_json::from_str::<Value>(&line)?["rates"].is_object(), "{line}");
    }
    child.kill().await?;

    let away = gateway.cli(&["--url", "http://127.0.0.1:1", "top", "--once"]).await?;
    assert_eq!(away.code, Some(3), "{away:?}");
    let refused = gateway.cli(&["--key", "nobody-knows-this-key", "top"]).await?;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    Ok(())
}

/// A terminal in memory: `expect WORD`, `expect-not WORD`, `size ROWS COLUMNS`, `type TEXT`, `end`; each line
/// is answered by one.
const TERMINAL: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios, time
wait_for_go, go = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.read(wait_for_go, 1)
    os.execvp(sys.argv[1], sys.argv[1:])
def size(rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.kill(pid, signal.SIGWINCH)
def read(wait):
    if not select.select([fd], [], [], wait)[0]:
        return b""
    try:
        return os.read(fd, 65536)
    except OSError:
        return None
seen = b""
# Looked at before the program may change it.
before = termios.tcgetattr(fd)
os.write(go, b".")
for line in sys.stdin:
    verb, _, rest = line.rstrip("\n").partition(" ")
    answer = "ok"
    if verb == "expect":
        word, until = rest.encode().decode("unicode_escape").encode("latin-1"), time.time() + 60
        while word not in seen:
            more = read(1)
            if more is None or time.time() > until:
                answer = "not seen: %r" % seen[-2000:]
                break
            seen += more
    elif verb == "expect-not":
        answer = "seen" if rest.encode() in seen else "ok"
    elif verb == "size":
        size(*map(int, rest.split()))
        seen = b""
    elif verb == "type":
        os.write(fd, rest.encode().decode("unicode_escape").encode("latin-1"))
    elif verb == "end":
        until = time.time() + 60
        while time.time() < until:
            more = read(1)
            if more is None:
                break
            seen += more
        same = termios.tcgetattr(fd)[:4] == before[:4]
        status = os.waitpid(pid, 0)[1]
        answer = "exit %d screen %s modes %s" % (
            os.waitstatus_to_exitcode(status), b"\x1b[?1049l" in seen, same)
    print(answer, flush=True)
"#;

struct Terminal {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Terminal {
    /// Runs `top` against the gateway, on 80×24.
    async fn top(gateway: &Gateway, env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut child = Command::new("python3")
            .args(["-c", TERMINAL])
            .arg(binary()?)
            .args(["top", "--url", &gateway.url(), "--key", &gateway.key()])
            .env("TERM", "xterm-256color")
            .env("COLUMNS", "80")
            .env("LINES", "24")
            .env_remove("NO_COLOR")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut terminal = Self { input, output, _child: child };
        terminal.ask("size 24 80").await?;
        Ok(terminal)
    }

    async fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        let answer =
            timeout(PATIENCE * 2, self.output.next_line()).await.with_context(|| line.to_owned())??;
        answer.context("the terminal is gone")
    }

    async fn expect(&mut self, word: &str) -> anyhow::Result<()> {
        let answer = self.ask(&format!("expect {word}")).await?;
        ensure!(answer == "ok", "{word}: {answer}");
        Ok(())
    }
}

#[tokio::test]
async fn top_in_a_terminal_redraws_survives_an_absent_server_and_gives_the_terminal_back()
-> anyhow::Result<()> {
    let mut gateway = Gateway::start().await?;
    let mut terminal = Terminal::top(&gateway, &[]).await?;
    for word in [r"\x1b[?1049h", "scheduled", "in_doubt", "leaves"] {
        terminal.expect(word).await?;
    }
    // A new size is drawn anew, whole.
    terminal.ask("size 40 120").await?;
    for word in ["queue", "suppressed", "leaves"] {
        terminal.expect(word).await?;
    }
    gateway.kill().await?;
    for word in ["away", "refused"] {
        terminal.expect(word).await?;
    }
    terminal.ask("type q").await?;
    assert_eq!(terminal.ask("end").await?, "exit 0 screen True modes True");
    Ok(())
}

#[tokio::test]
async fn control_c_leaves_and_no_color_is_honoured() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let mut coloured = Terminal::top(&gateway, &[]).await?;
    // Quiet figures are dark grey.
    coloured.expect("38;5;8").await?;
    coloured.ask(r"type \x03").await?;
    assert_eq!(coloured.ask("end").await?, "exit 0 screen True modes True");

    let mut plain = Terminal::top(&gateway, &[("NO_COLOR", "1")]).await?;
    plain.expect("in_doubt").await?;
    assert!(plain.ask("expect-not 38;5").await? == "ok", "a colour was drawn");
    plain.ask(r"type \x1b").await?;
    assert_eq!(plain.ask("end").await?, "exit 0 screen True modes True");
    Ok(())
}
