//! The certificates of this process's listeners: one for HTTP and SMTP, unless SMTP has its own, which the
//! reception shows as well.
//!
//! A listener that needs a certificate and is given none shares a self-signed one (`self_signed.rs`). Each
//! pair of files is watched once, whoever uses it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::future::join_all;
use postway_domain::Clock;
use postway_net::listen::{CertificateFiles, ServerCertificate};
use tokio_util::sync::CancellationToken;

use super::self_signed;
use crate::config::ServerConfig;

/// How often to check whether files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The open certificates.
pub struct ListenerCertificates {
    /// The certificate of HTTP, if it speaks TLS.
    pub http: Option<Arc<ServerCertificate>>,
    /// The certificate of SMTP, if it has one.
    pub smtp: Option<Arc<ServerCertificate>>,
    /// The certificate of the reception, if it is open: that of SMTP, or a self-signed one.
    pub reception: Option<Arc<ServerCertificate>>,
    /// Whether HTTP shows a self-signed one.
    pub http_is_own: bool,
    /// Each of them once.
    opened: Vec<Arc<ServerCertificate>>,
    /// The folder and the name of the self-signed one, if it is used.
    self_signed: Option<(PathBuf, String)>,
}

impl ListenerCertificates {
    /// Reads the files that the configuration names, and makes a certificate where one is missing.
    pub fn open(config: &ServerConfig, clock: &dyn Clock) -> anyhow::Result<Self> {
        let (smtp, shared) = (&config.smtp, &config.tls.certificate);
        let http_is_own = config.http.tls_listen.is_some() && shared.is_none();
        // Servers that deliver mail take any certificate; without one the mail would come in plain text.
        let is_reception_open = config.reception.listen.is_some();
        let own_for_reception = is_reception_open && smtp.certificate.is_none();
        let own = match http_is_own || smtp.makes_certificate || own_for_reception {
            true => Some(self_signed::ensure(&config.data_dir, &smtp.ehlo_name, clock.now())?),
            false => None,
        };
        let is_smtp_open = smtp.listen.is_some() || smtp.tls_listen.is_some();
        let for_http = config.http.tls_listen.and_then(|_| shared.as_ref().or(own.as_ref()));
        let own_for_smtp = own.as_ref().filter(|_| smtp.makes_certificate);
        let for_smtp = smtp.certificate.as_ref().or(own_for_smtp).filter(|_| is_smtp_open);
        let read = |files: &CertificateFiles| -> anyhow::Result<Arc<ServerCertificate>> {
            let setting = "the certificate of a listener (tls.certificate_file, smtp.tls_certificate_file)";
            Ok(Arc::new(ServerCertificate::open(files.clone()).context(setting)?))
        };
        let for_reception = smtp.certificate.as_ref().or(own.as_ref()).filter(|_| is_reception_open);
        let mut opened: Vec<Arc<ServerCertificate>> = Vec::new();
        let mut open = |files: Option<&CertificateFiles>| -> anyhow::Result<Option<Arc<ServerCertificate>>> {
            let Some(files) = files else { return Ok(None) };
            if let Some(shared) = opened.iter().find(|one| one.files() == files) {
                return Ok(Some(shared.clone()));
            }
            let certificate = read(files)?;
            opened.push(certificate.clone());
            Ok(Some(certificate))
        };
        let (http, smtp_certificate, reception) = (open(for_http)?, open(for_smtp)?, open(for_reception)?);
        let self_signed = own.map(|_| (config.data_dir.clone(), smtp.ehlo_name.clone()));
        Ok(Self { http, smtp: smtp_certificate, reception, opened, http_is_own, self_signed })
    }

    /// Watches the files, and renews the self-signed certificate in time, until it is stopped.
    pub async fn watch(self, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let renewing = async {
            if let Some((folder, name)) = self.self_signed {
                self_signed::keep(&folder, &name, &*clock, stop.clone()).await;
            }
        };
        let watching = self.opened.into_iter().map(|one| one.watch_files(LOOK_EVERY, stop.clone()));
        tokio::join!(join_all(watching), renewing);
    }
}
