//! `[egress]`: the way of connections out of this machine, as far as the operator decides it for all tenants.
//! Accounts and mailboxes have proxies of their own.

use postway_net::{AddressGuard, EgressPath, OutboundProxy};

use super::layers::ConfigLayers;

/// The settings of the way out.
#[derive(Clone, Debug)]
pub struct EgressSection {
    /// The proxy of webhooks, callbacks and client syncs; none: they are called directly.
    pub notification_proxy: Option<OutboundProxy>,
    /// Whether proxies inside private networks are given names to resolve.
    pub proxies_resolve_names: bool,
}

impl EgressSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let notification_proxy = layers.take_optional("egress.notification_proxy", |text| {
            text.parse::<OutboundProxy>().map_err(|error| error.to_string())
        });
        let proxies_resolve_names =
            layers.take("egress.names_resolved_by", false, "postway", |text| match text {
                "postway" => Ok(false),
                "proxy" => Ok(true),
                _ => Err(format!("`{text}` is neither postway nor proxy")),
            });
        Some(Self { notification_proxy: notification_proxy?, proxies_resolve_names: proxies_resolve_names? })
    }

    /// The path of webhooks, callbacks and client syncs.
    pub fn notification_path(&self) -> EgressPath {
        EgressPath::through(self.notification_proxy.clone())
    }

    /// The guard, which knows who resolves names for proxies.
    pub fn guard(&self, guard: AddressGuard) -> AddressGuard {
        if self.proxies_resolve_names { guard.leaving_names_to_proxies() } else { guard }
    }
}

#[cfg(test)]
mod tests {
    use super::EgressSection;

    fn read(name: &str, value: &str) -> Result<EgressSection, String> {
        crate::config::load_from(None, [(name.into(), value.into())])
            .map(|loaded| loaded.config.egress)
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_proxy_of_notifications_is_read_and_its_password_is_never_shown() {
        let name = "POSTWAY_EGRESS_NOTIFICATION_PROXY";
        let section = read(name, "socks5://bob:hunter2@proxy.example:1080").unwrap();
        assert_eq!(section.notification_path().to_string(), " through the SOCKS5 proxy proxy.example:1080");
        assert!(!format!("{section:?}").contains("hunter2"));
        let refused = read(name, "ftp://bob:hunter2@proxy.example").unwrap_err();
        assert!(
            refused.starts_with("`egress.notification_proxy`") && !refused.contains("hunter2"),
            "{refused}"
        );
    }

    #[test]
    fn names_are_resolved_here_unless_the_operator_leaves_them_to_proxies() {
        let beside = "10.0.0.1".parse().unwrap();
        let leaves = |section: EgressSection| section.guard(Default::default()).leaves_names_to(beside);
        let name = "POSTWAY_EGRESS_NAMES_RESOLVED_BY";
        assert!(leaves(read(name, "proxy").unwrap()) && !leaves(read(name, "postway").unwrap()));
        assert!(read(name, "yes").is_err());
    }
}
