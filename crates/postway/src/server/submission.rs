//! The submission listener of this process: its settings, and the check of its clients' keys.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use postway_api::{KeyCheck, KeyDenied};
use postway_intake::smtp::{
    AdmittedSender, KeylessClient, ProvenKey, ScramOffer, SmtpAuthenticator, SmtpConfig, SmtpDenial,
    SmtpListener, SmtpService,
};
use postway_net::listen::{ClientAuthorities, ServerCertificate};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::SmtpSection;

/// An open listener.
pub struct SubmissionListener {
    listener: SmtpListener,
    certificate_is_own: bool,
}

/// Opens the sockets; `None` if none is configured.
pub async fn bind(
    smtp: &SmtpSection,
    certificate: Option<Arc<ServerCertificate>>,
) -> anyhow::Result<Option<SubmissionListener>> {
    if smtp.listen.is_none() && smtp.tls_listen.is_none() {
        return Ok(None);
    }
    let client_authorities = match &smtp.client_ca_file {
        None => None,
        Some(file) => Some(read_authorities(file).context("smtp.client_ca_file")?),
    };
    let config = SmtpConfig {
        listen: smtp.listen,
        tls_listen: smtp.tls_listen,
        certificate,
        certificate_is_own: smtp.makes_certificate,
        connections_max: smtp.max_connections,
        connections_per_client_max: smtp.max_connections_per_client,
        recipients_max: smtp.max_recipients,
        plaintext_networks: smtp.plaintext_networks.clone(),
        open_networks: smtp.open_networks.clone(),
        proxy_networks: smtp.proxy_networks.clone(),
        xclient_networks: smtp.xclient_networks.clone(),
        client_certificates: smtp.client_certificates.clone(),
        client_authorities,
        ..SmtpConfig::new(&smtp.ehlo_name)
    };
    let listener = SmtpListener::bind(config).await;
    let listener =
        listener.context("cannot take mail over SMTP (smtp.listen, smtp.tls_listen and the files)")?;
    if let Some(address) = listener.address() {
        tracing::info!(%address, "taking mail over SMTP");
    }
    if let Some(address) = listener.tls_address() {
        tracing::info!(%address, "taking mail over SMTP under TLS");
    }
    for open in &smtp.open_networks {
        let (network, tenant) = (&open.network, &open.tenant);
        tracing::info!(%network, %tenant, "mail is taken over SMTP without a key from this network");
    }
    Ok(Some(SubmissionListener { listener, certificate_is_own: smtp.makes_certificate }))
}

/// The authorities in a PEM file.
fn read_authorities(file: &Path) -> anyhow::Result<ClientAuthorities> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} holds no certificates in PEM", file.display()))?;
    ClientAuthorities::new(certificates).map_err(anyhow::Error::msg)
}

/// The addresses it listens on, as lines for the terminal.
pub fn announcement(submission: &SubmissionListener) -> String {
    let line = |name: &str, address: Option<SocketAddr>| {
        address.map(|address| format!("  {name}: {address}\n")).unwrap_or_default()
    };
    let certificate = match submission.certificate_is_own {
        true => {
            "  smtp certificate: self-signed, as none is given (tls.certificate_file); clients must be configured to trust it\n"
        }
        false => "",
    };
    let listener = &submission.listener;
    line("smtp", listener.address()) + &line("smtps", listener.tls_address()) + certificate
}

/// Runs the listener, if there is one, until it is stopped.
pub async fn run(
    submission: Option<SubmissionListener>,
    service: watch::Receiver<Option<SmtpService>>,
    stop: CancellationToken,
) {
    if let Some(submission) = submission {
        submission.listener.run(service, stop).await;
    }
}

/// Accepts the keys that the API accepts.
pub struct SubmissionKeys(pub KeyCheck);

/// The refusal of a key, as the listener reports it.
fn denied(denied: KeyDenied) -> SmtpDenial {
    match denied {
        KeyDenied::Refused(why) => SmtpDenial::Refused(why),
        KeyDenied::TooManyWrong(_) => SmtpDenial::Later(denied.to_string()),
        KeyDenied::Unavailable(error) => SmtpDenial::Unavailable(error),
    }
}

#[async_trait]
impl SmtpAuthenticator for SubmissionKeys {
    async fn admit(&self, username: &str, key: &[u8], peer: IpAddr) -> Result<AdmittedSender, SmtpDenial> {
        self.0.sender(username, key, peer).await.map_err(denied)
    }

    async fn scram_offer(&self, username: &str, peer: IpAddr) -> Result<ScramOffer, SmtpDenial> {
        self.0.scram_offer(username, peer).await.map_err(denied)
    }

    async fn admit_proven(&self, key: &ProvenKey, peer: IpAddr) -> Result<AdmittedSender, SmtpDenial> {
        self.0.sender_proven(key, peer).await.map_err(denied)
    }

    async fn refuse_proof(&self, peer: IpAddr) -> SmtpDenial {
        denied(self.0.refuse_proof(peer))
    }

    async fn admit_keyless(&self, client: &KeylessClient) -> Result<AdmittedSender, SmtpDenial> {
        self.0.tenant_without_key(&client.tenant).await.map_err(denied)
    }
}
