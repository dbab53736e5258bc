//! The listener for mail from other servers. It has the certificate, the name and the proxies of the submission
//! listener.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use postway_domain::{Clock, secret::SecretKey};
use postway_inbound::{Reception, ReceptionParts, SenderCheck, SenderVerdict, SystemSenderCheck};
use postway_intake::smtp::{ReceptionDesk, ReceptionMail, SmtpConfig, SmtpListener};
use postway_net::listen::ServerCertificate;
use postway_store::{Store, blob::BlobStorage};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::ServerConfig;

/// The desk that the listener is given once there is a store.
pub type ReceptionService = Option<Arc<dyn ReceptionDesk>>;

/// Opens the socket; `None` if none is configured.
pub async fn bind(
    config: &ServerConfig,
    certificate: Option<Arc<ServerCertificate>>,
) -> anyhow::Result<Option<SmtpListener>> {
    let (reception, smtp) = (&config.reception, &config.smtp);
    if reception.listen.is_none() {
        return Ok(None);
    }
    let smtp_defaults = SmtpConfig::new(&smtp.ehlo_name);
    let listener = SmtpListener::bind(SmtpConfig {
        listen: reception.listen,
        certificate,
        certificate_is_own: smtp.certificate.is_none(),
        connections_max: reception.max_connections,
        connections_per_client_max: reception.max_connections_per_client,
        recipients_max: reception.max_recipients,
        proxy_networks: smtp.proxy_networks.clone(),
        greeting_delay: reception.greeting_delay,
        // A mail counts twice while it is stored, and the largest must not have to wait until it is alone.
        in_flight_bytes_max: reception
            .max_mail_bytes
            .saturating_mul(4)
            .max(smtp_defaults.in_flight_bytes_max),
        ..smtp_defaults
    });
    let listener = listener.await.context("cannot receive mail from other servers (reception.listen)")?;
    if let Some(address) = listener.address() {
        tracing::info!(%address, "receiving mail from other servers");
    }
    Ok(Some(listener))
}

/// Runs the listener, if there is one, until it is stopped.
pub async fn run(
    listener: Option<SmtpListener>,
    service: watch::Receiver<ReceptionService>,
    stop: CancellationToken,
) {
    if let Some(listener) = listener {
        listener.run(service, stop).await;
    }
}

/// The desk, for a server that receives mail.
pub fn desk(
    config: &ServerConfig,
    store: &Arc<dyn Store>,
    depot: &Arc<BlobStorage>,
    clock: &Arc<dyn Clock>,
    secret_key: &Arc<SecretKey>,
) -> anyhow::Result<ReceptionService> {
    let reception = &config.reception;
    if reception.listen.is_none() {
        return Ok(None);
    }
    let name = config.smtp.ehlo_name.clone();
    let sender_check: Arc<dyn SenderCheck> = match reception.checks_senders {
        true => {
            let check = SystemSenderCheck::new(&name, reception.dns_server).map_err(anyhow::Error::msg);
            Arc::new(check.context("senders cannot be checked: no name server (reception.dns_server)")?)
        }
        false => Arc::new(NoSenderCheck),
    };
    Ok(Some(Arc::new(Reception::new(ReceptionParts {
        store: store.clone(),
        depot: depot.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        sender_check,
        name,
        mail_bytes_max: reception.max_mail_bytes,
        mails_per_minute_max: reception.max_per_minute,
        refuses_by_dmarc: reception.refuses_by_dmarc,
    }))))
}

/// Checks nothing.
struct NoSenderCheck;

#[async_trait]
impl SenderCheck for NoSenderCheck {
    async fn check(&self, _: &ReceptionMail) -> SenderVerdict {
        SenderVerdict::default()
    }
}
