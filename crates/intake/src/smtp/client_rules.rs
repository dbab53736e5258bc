//! What a client may do without a key, and without TLS, by where it is and by the certificate that it shows.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use postway_domain::key::IpNetwork;
use postway_net::listen::{ClientAuthorities, ShownCertificate};

use super::{
    SmtpConfig,
    authenticator::{CertificateName, KeylessClient, KnownCertificate},
};

/// The rules of a listener.
#[derive(Debug)]
pub(super) struct ClientRules {
    plaintext_networks: Vec<IpNetwork>,
    open_networks: Vec<(IpNetwork, Arc<KeylessClient>)>,
    xclient_networks: Vec<IpNetwork>,
    certificates: Vec<KnownCertificate>,
    authorities: Option<ClientAuthorities>,
}

/// The origin of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientOrigin {
    pub(super) peer: SocketAddr,
    pub(super) kind: OriginKind,
}

/// How the address of the client is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum OriginKind {
    /// It is the peer of the socket.
    Direct,
    /// A proxy named it.
    Proxied,
    /// It is the address of a proxy that does not name its client: it has no privileges.
    Unnamed,
}

/// What a client may do because of where it is.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientPrivileges {
    /// Whether a key may be shown without TLS.
    pub(super) trusts_plain: bool,
    /// The rule by which it needs no key.
    pub(super) keyless: Option<Arc<KeylessClient>>,
}

impl ClientOrigin {
    pub(super) fn direct(peer: SocketAddr) -> Self {
        Self { peer, kind: OriginKind::Direct }
    }
}

impl ClientRules {
    /// The rules of this configuration.
    pub(super) fn new(config: &SmtpConfig) -> Self {
        let open = config.open_networks.iter().map(|open| (open.network, Arc::new(open.into())));
        Self {
            plaintext_networks: config.plaintext_networks.clone(),
            open_networks: open.collect(),
            xclient_networks: config.xclient_networks.clone(),
            certificates: config.client_certificates.clone(),
            authorities: config.client_authorities.clone(),
        }
    }

    /// What a client may do. A connection through a proxy has crossed a network, whatever its address.
    pub(super) fn privileges(&self, origin: &ClientOrigin) -> ClientPrivileges {
        let address = origin.peer.ip().to_canonical();
        let is_near = match origin.kind {
            OriginKind::Unnamed => return ClientPrivileges::default(),
            OriginKind::Direct => address.is_loopback(),
            OriginKind::Proxied => false,
        };
        let open = self.open_networks.iter().find(|(network, _)| network.contains(address));
        ClientPrivileges {
            trusts_plain: is_near || self.plaintext_networks.iter().any(|network| network.contains(address)),
            keyless: open.map(|(_, client)| client.clone()),
        }
    }

    /// Whether the server at the other end of a connection may name its client by XCLIENT.
    pub(super) fn takes_xclient(&self, peer: IpAddr) -> bool {
        self.xclient_networks.iter().any(|network| network.contains(peer))
    }

    /// The rule by which a client with this certificate needs no key.
    pub(super) fn recognize(&self, shown: &ShownCertificate, now_s: u64) -> Option<Arc<KeylessClient>> {
        let is_issued = || self.authorities.as_ref().is_some_and(|known| shown.is_issued_by(known, now_s));
        let fingerprint = shown.fingerprint();
        let mut issued = None;
        let known = self.certificates.iter().find(|known| match &known.certificate {
            CertificateName::Fingerprint(known) => *known == fingerprint,
            CertificateName::Name(name) => shown.is_for(name) && *issued.get_or_insert_with(is_issued),
        });
        known.map(|known| Arc::new(known.into()))
    }
}
