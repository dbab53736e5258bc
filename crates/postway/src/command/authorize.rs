//! `postway accounts authorize` and `postway mailboxes authorize`: a person consents, and the grant gets its
//! refresh token.
//!
//! The consent is asked for from here, not from the server: a browser is redirected to the machine on which
//! it was opened. Only the refresh token goes to the server.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, anyhow};
use clap::Args;
use postway_domain::oauth::{OAuthGrant, OAuthPreset, OAuthSettings};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_oauth::flow::{CodeConsent, ConsentClient};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::secret_input::ask_password;

/// How long the person may take to consent.
const CONSENT_MAX: Duration = Duration::from_secs(15 * 60);
/// How long a browser may take to send its request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;

#[derive(Args, Debug)]
pub struct AuthorizeArgs {
    /// The id of the account or mailbox; its grant must be refresh_token
    id: String,
    /// Consent by a code that is typed in on any device [default where the provider has it]
    #[arg(long, conflicts_with = "browser")]
    device: bool,
    /// Consent in a browser on this machine
    #[arg(long)]
    browser: bool,
    /// Where a device asks for its code [default: the preset's]
    #[arg(long, value_name = "URL")]
    device_url: Option<String>,
    /// The page on which a person consents [default: the preset's]
    #[arg(long, value_name = "URL")]
    authorize_url: Option<String>,
    /// The port that the browser is redirected to, if the client is registered with one [default: any]
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    redirect_port: u16,
    /// A file with the client's secret (`-`: standard input); also POSTWAY_OAUTH_CLIENT_SECRET, else it is
    /// asked for if the grant has one
    #[arg(long, value_name = "FILE")]
    client_secret_file: Option<PathBuf>,
}

/// Guides a person through the consent for `v1/{kind}/{id}`, and returns the account or mailbox afterwards.
pub async fn authorize(client: &ApiClient, kind: &str, args: AuthorizeArgs) -> Result<Value, CommandFailure> {
    let path = ["v1", kind, &args.id];
    let shown = client.get(&path, &[]).await?;
    let grant = grant_of(&shown).ok_or_else(|| {
        let body = r#"{"oauth": {"preset": "microsoft", "grant": "refresh_token", "client_id": "…"}}"#;
        CommandFailure::Usage(format!(
            "`{}` has no grant of the kind refresh_token: give it one first, such as {body}",
            args.id
        ))
    })?;
    let consent = ConsentClient {
        token_url: grant
            .token_url()
            .ok_or_else(|| CommandFailure::Usage("the grant has no token_url".to_owned()))?,
        client_id: grant.client_id.clone(),
        client_secret: client_secret(&args, &grant)?.map(Into::into),
        scope: grant.scope.clone(),
    };
    let extra_roots_pem = shown["ca_pem"].as_str().map(str::to_owned);
    // The person who runs this may connect to everything that this machine can reach.
    let everywhere = [("0.0.0.0", 0), ("::", 0)].map(|(address, bits)| (address.parse().ok(), bits));
    let everywhere = everywhere.into_iter().filter_map(|(address, bits)| Some((address?, bits))).collect();
    let http_settings = HttpSettings { extra_roots_pem, ..HttpSettings::default() };
    let http = HttpClient::new(AddressGuard::new(everywhere).into(), http_settings);
    let device_url = args.device_url.clone().or_else(|| grant.device_url());
    let authorize_url = args.authorize_url.clone().or_else(|| grant.authorize_url());
    let refresh_token = match (device_url, authorize_url) {
        (Some(url), _) if !args.browser => by_device(&http, &consent, &url).await?,
        (_, Some(url)) if !args.device => by_browser(&http, &consent, &url, args.redirect_port).await?,
        _ => {
            let message = "the provider's address is not known: give --device-url or --authorize-url";
            return Err(CommandFailure::Usage(message.to_owned()));
        }
    };
    let body = json!({"oauth": {"refresh_token": refresh_token}});
    client.call(Method::PATCH, &path, &[], RequestBody::Json(&body)).await
}

/// The grant as the API shows it, if it needs a person's consent.
fn grant_of(shown: &Value) -> Option<OAuthSettings> {
    let oauth = &shown["oauth"];
    let grant: OAuthGrant = serde_json::from_value(oauth["grant"].clone()).ok()?;
    let text = |name: &str| oauth[name].as_str().map(str::to_owned);
    let preset: Option<OAuthPreset> = serde_json::from_value(oauth["preset"].clone()).ok().flatten();
    (grant == OAuthGrant::RefreshToken).then(|| OAuthSettings {
        preset,
        grant,
        token_url: text("token_url"),
        client_id: text("client_id").unwrap_or_default(),
        scope: text("scope"),
        directory: text("directory"),
        subject: None,
        client_secret_set: oauth["client_secret_set"] == true,
        refresh_token_set: oauth["refresh_token_set"] == true,
        private_key_set: false,
    })
}

fn client_secret(args: &AuthorizeArgs, grant: &OAuthSettings) -> Result<Option<String>, CommandFailure> {
    if let Some(path) = &args.client_secret_file {
        let text = String::from_utf8(read_input(path)?)
            .map_err(|_| CommandFailure::Usage(format!("{} is not UTF-8 text", path.display())))?;
        return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
    }
    if let Some(secret) = std::env::var("POSTWAY_OAUTH_CLIENT_SECRET").ok().filter(|text| !text.is_empty()) {
        return Ok(Some(secret));
    }
    if !grant.client_secret_set {
        return Ok(None);
    }
    eprintln!("the server never shows the client's secret: it is needed once more");
    ask_password().map(Some)
}

async fn by_device(http: &HttpClient, client: &ConsentClient, url: &str) -> Result<String, CommandFailure> {
    let consent = client.begin_device(http, url).await.map_err(failed)?;
    eprintln!("open {} and type in {}", consent.verification_uri, consent.user_code);
    eprintln!("waiting for your consent…");
    client.finish_device(http, &consent).await.map_err(failed)
}

async fn by_browser(
    http: &HttpClient,
    client: &ConsentClient,
    url: &str,
    port: u16,
) -> Result<String, CommandFailure> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{port} for the browser to come back to"))?;
    let port = listener.local_addr().context("the listener has no address")?.port();
    let consent = client.begin_code(url, &format!("http://localhost:{port}/")).map_err(failed)?;
    eprintln!("open this address in a browser on this machine:\n\n{}\n", consent.url);
    eprintln!("waiting for your consent…");
    let code = timeout(CONSENT_MAX, returned(&listener, &consent))
        .await
        .map_err(|_| anyhow!("nobody consented in time: begin again"))??;
    client.finish_code(http, &consent, code).await.map_err(failed)
}

/// The code that the browser brings back. Other requests to this port are refused.
async fn returned(listener: &TcpListener, consent: &CodeConsent) -> Result<String, CommandFailure> {
    loop {
        let (mut browser, _) = listener.accept().await.context("cannot take the browser's connection")?;
        let Ok(Some(query)) = timeout(REQUEST_MAX, query_of(&mut browser)).await else { continue };
        let code = consent.code_of(&query);
        let (status, text) = match &code {
            Ok(_) => ("200 OK", "Postway has your consent. You can close this page."),
            Err(_) => ("400 Bad Request", "This did not work. The terminal says why."),
        };
        let length = text.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
        // It does not matter whether the browser reads the answer.
        timeout(REQUEST_MAX, browser.write_all(answer.as_bytes())).await.ok();
        return code.map_err(failed);
    }
}

/// The query of a request for `/` that has one with a state; other requests are ignored.
async fn query_of(browser: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|part| part == b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX || browser.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("GET /?")?.split(' ').next()?;
    target.contains("state=").then(|| target.to_owned())
}

fn failed(error: postway_oauth::TokenError) -> CommandFailure {
    CommandFailure::Failed(anyhow!("{error}"))
}
