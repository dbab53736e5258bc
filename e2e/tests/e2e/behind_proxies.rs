//! Behind real proxies: the real client's address and scheme count, whoever forges what.
//!
//! All of 127.0.0.0/8 is this machine, so clients and proxies have addresses of their own: the proxies connect
//! from 127.0.0.9, which the gateway trusts, and clients from others.

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, text};
use postway_testkit::{FrontProxy, TestCert};
use serde_json::json;
use tokio::process::Command;

/// Where proxies connect from.
const PROXY: &str = "127.0.0.9";
/// The client that the key is bound to, and another one.
const FRIEND: &str = "127.0.0.5";
const STRANGER: &str = "127.0.0.6";

/// What curl prints: the status, then what was asked for.
async fn curl(from: &str, url: &str, args: &[&str]) -> anyhow::Result<(u16, String)> {
    let output = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "30",
            "--noproxy",
            "*",
            "--interface",
            from,
            "-i",
            "-w",
            "\n%{http_code}",
        ])
        .args(args)
        .arg(url)
        .output()
        .await?;
    let text = String::from_utf8(output.stdout)?;
    let (answer, status) = text.rsplit_once('\n').context("curl said nothing")?;
    Ok((status.parse()?, answer.to_owned()))
}

/// A gateway that trusts the proxy, and a key that only one client may use.
async fn gateway(env: &[(&str, &str)]) -> anyhow::Result<(Gateway, String)> {
    let gateway = Gateway::start_with(env).await?;
    let key = json!({"name": "bound", "scopes": ["read", "manage"], "allow_ips": [FRIEND]});
    let key = text(&gateway.post("/v1/tenants/default/keys", key).await?, "key").to_owned();
    Ok((gateway, format!("X-API-Key: {key}")))
}

fn port(gateway: &Gateway) -> String {
    gateway.url().rsplit(':').next().unwrap_or_default().to_owned()
}

/// The key opens for its own client through the proxy and for nobody else, whatever they claim.
async fn opens_for_the_friend_alone(
    url: &str,
    key: &str,
    forged: &[&str],
    args: &[&str],
) -> anyhow::Result<()> {
    let url = format!("{url}/v1/messages");
    let with = |more: &[&'static str]| -> Vec<String> {
        [args, &["-H", key], more].concat().into_iter().map(str::to_owned).collect()
    };
    let plain = with(&[]);
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let (status, answer) = curl(FRIEND, &url, &plain).await?;
    ensure!(status == 200, "the friend is {status}: {answer}");
    let (status, answer) = curl(STRANGER, &url, &plain).await?;
    ensure!(status == 403 && answer.contains("allow_ips"), "a stranger is {status}: {answer}");
    for header in forged {
        let args = [&plain[..], &["-H", header]].concat();
        let (status, _) = curl(STRANGER, &url, &args).await?;
        ensure!(status == 403, "with `{header}` a stranger is {status}");
    }
    Ok(())
}

const FORGED: &[&str] = &[
    "X-Forwarded-For: 127.0.0.5",
    "X-Forwarded-For: 127.0.0.5, 127.0.0.9",
    "Forwarded: for=127.0.0.5",
    "Forwarded: for=127.0.0.5;proto=https, for=\"",
    "X-Real-IP: 127.0.0.5",
];

#[tokio::test]
async fn nginx_names_the_client_and_nobody_else_can() -> anyhow::Result<()> {
    let (gateway, key) = gateway(&[("POSTWAY_HTTP_TRUSTED_PROXIES", PROXY)]).await?;
    let upstream = port(&gateway);
    let nginx = FrontProxy::nginx(|port| {
        format!(
            "server {{ listen 127.0.0.1:{port}; location / {{\n\
             proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; proxy_bind {PROXY};\n\
             proxy_set_header Host $host; proxy_set_header Connection \"\";\n\
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
             proxy_set_header X-Forwarded-Proto https; }} }}"
        )
    });
    let url = format!("http://127.0.0.1:{}", nginx.port());
    opens_for_the_friend_alone(&url, &key, FORGED, &[]).await?;
    // Past the proxy, no header counts.
    for header in FORGED {
        let (status, _) =
            curl(STRANGER, &format!("{}/v1/messages", gateway.url()), &["-H", &key, "-H", header]).await?;
        ensure!(status == 403, "past the proxy, `{header}` opens: {status}");
    }

    // The scheme of the client decides about the cookie; who connects directly cannot claim it.
    let sign_in = json!({"key": gateway.key()}).to_string();
    let sign_in = ["-H", "Content-Type: application/json", "-d", &sign_in];
    let (status, answer) = curl(FRIEND, &format!("{url}/v1/session"), &sign_in).await?;
    let cookie = answer.to_lowercase();
    ensure!(
        status == 200 && cookie.contains("__host-postway_session=") && cookie.contains("; secure"),
        "{answer}"
    );
    let claimed = [&sign_in[..], &["-H", "X-Forwarded-Proto: https"]].concat();
    let (status, answer) = curl(STRANGER, &format!("{}/v1/session", gateway.url()), &claimed).await?;
    ensure!(status == 200 && answer.contains("set-cookie: postway_session="), "{answer}");

    // The audit log says where a change came from.
    let stream = json!({"id": "news", "name": "News"}).to_string();
    let args = ["-H", &key, "-H", "Content-Type: application/json", "-d", &stream];
    let (status, answer) = curl(FRIEND, &format!("{url}/v1/streams"), &args).await?;
    ensure!(status == 201, "{answer}");
    let audit = gateway.get("/v1/audit?limit=5").await?;
    let entry =
        audit["data"].as_array().into_iter().flatten().find(|entry| entry["action"] == "stream.create");
    ensure!(entry.is_some_and(|entry| entry["detail"]["client"] == FRIEND), "{audit:#}");
    Ok(())
}

#[tokio::test]
async fn haproxy_names_the_client_by_the_proxy_protocol_and_the_standard_header() -> anyhow::Result<()> {
    let (folder, certificate) = (tempfile::tempdir()?, TestCert::localhost());
    let pem = folder.path().join("both.pem");
    std::fs::write(&pem, format!("{}{}", certificate.cert_pem, certificate.key_pem))?;
    let (gateway, key) = gateway(&[
        ("POSTWAY_HTTP_PROXY_NETWORKS", PROXY),
        ("POSTWAY_HTTP_TRUSTED_PROXIES", "127.0.0.8"),
        ("POSTWAY_HTTP_FORWARDED_HEADER", "forwarded"),
    ])
    .await?;
    let (upstream, pem) = (port(&gateway), pem.display().to_string());
    let tcp = |version: &str, bind: &str, port: u16| {
        format!(
            "listen tcp\n  mode tcp\n  bind 127.0.0.1:{port}{bind}\n\
             \x20 server gateway 127.0.0.1:{upstream} {version} source {PROXY}"
        )
    };
    for version in ["send-proxy", "send-proxy-v2"] {
        let haproxy = FrontProxy::haproxy(|port| tcp(version, "", port));
        let url = format!("http://127.0.0.1:{}", haproxy.port());
        opens_for_the_friend_alone(&url, &key, FORGED, &[]).await?;
    }

    // HAProxy ends TLS and says so in its header.
    let haproxy = FrontProxy::haproxy(|port| tcp("send-proxy-v2-ssl", &format!(" ssl crt {pem}"), port));
    let sign_in = json!({"key": gateway.key()}).to_string();
    let args = ["-k", "-H", "Content-Type: application/json", "-d", &sign_in];
    let url = format!("https://127.0.0.1:{}", haproxy.port());
    let (status, answer) = curl(FRIEND, &format!("{url}/v1/session"), &args).await?;
    ensure!(status == 200 && answer.contains("__Host-postway_session="), "{answer}");
    drop(haproxy);

    // As a proxy of HTTP it writes the standard header.
    let haproxy = FrontProxy::haproxy(|port| {
        format!(
            "listen web\n  mode http\n  bind 127.0.0.1:{port} ssl crt {pem} alpn h2,http/1.1\n\
             \x20 http-request set-header Forwarded \"for=%[src];proto=https\"\n\
             \x20 server gateway 127.0.0.1:{upstream} source 127.0.0.8"
        )
    });
    let url = format!("https://127.0.0.1:{}", haproxy.port());
    opens_for_the_friend_alone(&url, &key, FORGED, &["-k"]).await?;

    // A PROXY header from somewhere else is no request, and opens nothing.
    let forged = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{upstream}; \
         printf 'PROXY TCP4 {FRIEND} 127.0.0.1 5000 80\\r\\nGET /v1/messages HTTP/1.1\\r\\nHost: x\\r\\n{key}\\r\\n\\r\\n' >&3; \
         head -n 1 <&3"
    );
    let output = Command::new("bash").args(["-c", &forged]).output().await?;
    let answer = String::from_utf8(output.stdout)?;
    // The answer may be lost: what the client writes after its first line resets a connection that is closed.
    ensure!(answer.is_empty() || answer.contains(" 400 "), "{answer}");
    Ok(())
}
