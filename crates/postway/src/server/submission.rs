//! The submission listener of this process: its settings, and the check of its clients' keys.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use postway_api::{KeyCheck, KeyDenied};
use postway_domain::Clock;
use postway_intake::smtp::{
    AdmittedSender, OpenNetwork, ProvenKey, ScramOffer, SmtpAuthenticator, SmtpConfig, SmtpDenial,
    SmtpListener, SmtpService,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::self_signed;
use crate::config::SmtpSection;

/// An open listener, and what its certificate's renewal needs.
pub struct SubmissionListener {
    listener: SmtpListener,
    /// The folder of a self-signed certificate.
    self_signed: Option<PathBuf>,
    name: String,
}

/// Opens the sockets; `None` if none is configured.
pub async fn bind(
    smtp: &SmtpSection,
    data_dir: &Path,
    clock: &dyn Clock,
) -> anyhow::Result<Option<SubmissionListener>> {
    if smtp.listen.is_none() && smtp.tls_listen.is_none() {
        return Ok(None);
    }
    let certificate = match smtp.makes_certificate {
        true => Some(self_signed::ensure(data_dir, &smtp.ehlo_name, clock.now())?),
        false => smtp.certificate.clone(),
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
    let self_signed = smtp.makes_certificate.then(|| data_dir.to_owned());
    Ok(Some(SubmissionListener { listener, self_signed, name: smtp.ehlo_name.clone() }))
}

/// The addresses it listens on, as lines for the terminal.
pub fn announcement(submission: &SubmissionListener) -> String {
    let line = |name: &str, address: Option<SocketAddr>| {
        address.map(|address| format!("  {name}: {address}\n")).unwrap_or_default()
    };
    let certificate = match &submission.self_signed {
        Some(_) => {
            "  smtp certificate: self-signed, as none is given (smtp.tls_certificate_file); clients must be configured to trust it\n"
        }
        None => "",
    };
    let listener = &submission.listener;
    line("smtp", listener.address()) + &line("smtps", listener.tls_address()) + certificate
}

/// Runs the listener, if there is one, until it is stopped.
pub async fn run(
    submission: Option<SubmissionListener>,
    clock: Arc<dyn Clock>,
    service: watch::Receiver<Option<SmtpService>>,
    stop: CancellationToken,
) {
    let Some(SubmissionListener { listener, self_signed, name }) = submission else { return };
    let renewing = async {
        if let Some(folder) = self_signed {
            self_signed::keep(&folder, &name, &*clock, stop.clone()).await;
        }
    };
    tokio::join!(listener.run(service, stop.clone()), renewing);
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

    async fn admit_network(&self, open: &OpenNetwork) -> Result<AdmittedSender, SmtpDenial> {
        self.0.tenant_without_key(&open.tenant).await.map_err(denied)
    }
}
