//! The HTTP listeners of this process: their sockets, and the tasks that serve them.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use axum::Router;
use postway_net::listen::ServerCertificate;
use tokio::{net::TcpListener, sync::watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    http::{self, HTTP1, HTTP2, HttpBounds, HttpListeners},
    port_owner,
};
use crate::config::ServerConfig;

/// The open sockets.
pub struct WebListeners {
    plain: TcpListener,
    tls: Option<(TcpListener, TlsAcceptor)>,
    redirect: Option<(TcpListener, Router)>,
    bounds: HttpBounds,
    /// The address for plain text.
    pub address: SocketAddr,
    /// The lines about the other addresses, for the terminal.
    pub announcement: String,
}

impl WebListeners {
    /// Opens the sockets. `certificate` is there if the configuration has an address for TLS.
    pub async fn bind(
        config: &ServerConfig,
        certificate: Option<&Arc<ServerCertificate>>,
        certificate_is_own: bool,
    ) -> anyhow::Result<Self> {
        let http = &config.http;
        let (plain, address) = bind(http.listen, "http.listen (POSTWAY_HTTP_LISTEN)").await?;
        let mut announcement = String::new();
        let mut tls = None;
        if let (Some(listen), Some(certificate)) = (http.tls_listen, certificate) {
            let (listener, address) = bind(listen, "http.tls_listen (POSTWAY_HTTP_TLS_LISTEN)").await?;
            let acceptor = certificate.acceptor(&[HTTP2, HTTP1]).context("http.tls_listen")?;
            announcement += &format!("  https: {address}\n");
            if certificate_is_own {
                announcement += "  https certificate: self-signed, as none is given (tls.certificate_file); clients must be \
                                 configured to trust it\n";
            }
            tracing::info!(%address, "listening under TLS");
            tls = Some((listener, acceptor, address));
        }
        let mut redirect = None;
        if let (Some(listen), Some((_, _, tls_address))) = (http.redirect_listen, &tls) {
            let (listener, address) =
                bind(listen, "http.redirect_listen (POSTWAY_HTTP_REDIRECT_LISTEN)").await?;
            announcement += &format!("  http to https: {address}\n");
            let router = http::redirect::router(config.public_url.as_deref(), tls_address.port());
            redirect = Some((listener, router));
        }
        let bounds = HttpBounds {
            trusted_proxies: http.trusted_proxies.clone(),
            forwarded_header: http.forwarded_header,
            proxy_networks: http.proxy_networks.clone(),
            ..HttpBounds::new(http.max_connections, http.max_connections_per_client)
        };
        let tls = tls.map(|(listener, acceptor, _)| (listener, acceptor));
        Ok(Self { plain, tls, redirect, bounds, address, announcement })
    }

    /// Serves the current router until it is stopped.
    pub async fn run(self, router: watch::Receiver<Router>, stop: CancellationToken) {
        let listeners = HttpListeners::new(self.bounds);
        let under_tls = async {
            if let Some((listener, acceptor)) = self.tls {
                listeners.serve(listener, Some(acceptor), router.clone(), stop.clone()).await;
            }
        };
        let redirecting = async {
            if let Some((listener, router)) = self.redirect {
                let (_fixed, router) = watch::channel(router);
                listeners.serve(listener, None, router, stop.clone()).await;
            }
        };
        let plain = listeners.serve(self.plain, None, router.clone(), stop.clone());
        tokio::join!(plain, under_tls, redirecting);
    }
}

async fn bind(listen: SocketAddr, setting: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        let advice = port_owner::advice(listen, &error, setting);
        anyhow::Error::new(error).context(advice)
    })?;
    let address = listener.local_addr().context("the listener has no address")?;
    Ok((listener, address))
}
