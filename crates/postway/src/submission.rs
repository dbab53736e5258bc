//! The submission listener of this process: its settings, and whose keys open it.

use std::net::{IpAddr, SocketAddr};

use anyhow::Context as _;
use async_trait::async_trait;
use postway_api::{KeyCheck, KeyDenied};
use postway_domain::TenantId;
use postway_intake::smtp::{Denied, Gatekeeper, Listener, Service, SmtpConfig};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Smtp;

/// Opens the sockets; none where none are configured.
pub async fn bind(smtp: &Smtp) -> anyhow::Result<Option<Listener>> {
    if smtp.listen.is_none() && smtp.tls_listen.is_none() {
        return Ok(None);
    }
    let config = SmtpConfig {
        listen: smtp.listen,
        tls_listen: smtp.tls_listen,
        certificate: smtp.certificate.clone(),
        connections_max: smtp.max_connections,
        connections_per_client_max: smtp.max_connections_per_client,
        recipients_max: smtp.max_recipients,
        ..SmtpConfig::new(&smtp.ehlo_name)
    };
    let listener = Listener::bind(config).await;
    let listener =
        listener.context("cannot take mail over SMTP (smtp.listen, smtp.tls_listen and the files)")?;
    if let Some(address) = listener.address() {
        tracing::info!(%address, "taking mail over SMTP");
    }
    if let Some(address) = listener.tls_address() {
        tracing::info!(%address, "taking mail over SMTP under TLS");
    }
    Ok(Some(listener))
}

/// Where it listens, as lines for the person at the terminal.
pub fn announced(listener: &Listener) -> String {
    let line = |name: &str, address: Option<SocketAddr>| {
        address.map(|address| format!("  {name}: {address}\n")).unwrap_or_default()
    };
    line("smtp", listener.address()) + &line("smtps", listener.tls_address())
}

/// Serves it, if there is one, until it is stopped.
pub async fn run(
    listener: Option<Listener>,
    service: watch::Receiver<Option<Service>>,
    stop: CancellationToken,
) {
    if let Some(listener) = listener {
        listener.run(service, stop).await;
    }
}

/// Lets in whom the API would.
pub struct Keys(pub KeyCheck);

#[async_trait]
impl Gatekeeper for Keys {
    async fn admit(&self, username: &str, key: &[u8], peer: IpAddr) -> Result<TenantId, Denied> {
        self.0.sender(username, key, peer).await.map_err(|denied| match denied {
            KeyDenied::Refused(why) => Denied::Refused(why),
            KeyDenied::TooManyWrong(_) => Denied::Later(denied.to_string()),
            KeyDenied::Unavailable(error) => Denied::Unavailable(error),
        })
    }
}
