//! What the operator learns at a start: on the terminal, where the server listens and the first key; in the
//! log, which settings do not fit together.

use std::{io::Write, net::SocketAddr, sync::Arc};

use postway_domain::{AccountId, AccountKind, TenantId};
use postway_intake::AttachmentFolder;
use postway_net::AddressGuard;
use postway_store::Store;

use super::{keys::AdminKeyText, private_hosts};
use crate::config::ServerConfig;

/// How many tenants are asked whether the sandbox captures their mail.
const TENANTS_MAX: u32 = 20;

/// What the announcement says besides the configuration.
pub struct StartAnnouncement {
    /// The address of the HTTP listener.
    pub address: SocketAddr,
    /// The lines about further listeners.
    pub further: String,
    /// The admin key, and whether it is new.
    pub admin_key: AdminKeyText,
    /// Whether every tenant was suspended.
    pub suspended: bool,
    /// The tenants whose mail is captured.
    pub captured: Vec<TenantId>,
}

impl StartAnnouncement {
    /// Prints where the server listens and, the first time, the admin key.
    pub fn print(&self, config: &ServerConfig) {
        let (address, key) = (self.address, &self.admin_key);
        let mut out = std::io::stdout().lock();
        let mut lines = format!("postway listens on http://{address}\n  docs: http://{address}/docs\n");
        lines += &self.further;
        lines += &format!("  data: {}\n", config.data_dir.display());
        if self.suspended {
            lines += "  every tenant is suspended: `postway tenants activate` lets its mail go\n";
        }
        if let [first, others @ ..] = &self.captured[..] {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            lines += &format!(
                "  sandbox: mail of tenant {first}{more} is captured, not sent, until it has an account that sends\n"
            );
        }
        if key.fresh {
            lines += &format!("  admin key: {}\n", key.text);
            lines += &format!("  (shown this once; also in {})\n", config.admin_key_file().display());
        }
        // A closed standard output is no reason not to serve.
        let _ = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    }
}

/// The tenants, among the first few, whose mail the sandbox captures because nobody has chosen how it leaves.
/// A route that takes all mail stands before the default account.
pub async fn captured_tenants(store: &dyn Store) -> anyhow::Result<Vec<TenantId>> {
    let mut captured = Vec::new();
    for tenant in store.tenants(None, TENANTS_MAX).await? {
        if tenant.deleted_at.is_some() || tenant.settings.test {
            continue;
        }
        let accounts = store.accounts(Some(&tenant.id)).await?;
        let is_sandbox = |id: &AccountId| {
            let account = accounts.iter().find(|account| account.id == *id);
            account.map(|account| account.settings.kind == AccountKind::Sandbox)
        };
        let routes = store.routes(&tenant.id).await?;
        let bare =
            routes.iter().filter(|route| route.active && route.content.conditions.set().next().is_none());
        let routed =
            bare.map(|route| route.content.accounts.iter().filter_map(|one| is_sandbox(&one.account)));
        let routed = routed.map(Iterator::collect::<Vec<bool>>).find(|found| !found.is_empty());
        let is_captured = match routed {
            Some(sandboxes) => sandboxes.iter().all(|is_sandbox| *is_sandbox),
            None => tenant.default_account.as_ref().and_then(is_sandbox) == Some(true),
        };
        if is_captured {
            captured.push(tenant.id);
        }
    }
    Ok(captured)
}

/// Logs which stored settings the configuration does not allow.
pub async fn explain_settings(
    store: Arc<dyn Store>,
    guard: Arc<AddressGuard>,
    folders: Vec<AttachmentFolder>,
) {
    let unnamed: Vec<&str> = folders.iter().filter_map(AttachmentFolder::unnamed_path).collect();
    // Two are enough to know that there are others.
    if !unnamed.is_empty() && store.tenants(None, 2).await.is_ok_and(|tenants| tenants.len() > 1) {
        tracing::warn!(
            folders = unnamed.join(", "),
            "these attachments.folders name no tenant and are open to the tenant default alone; write TENANT:/path for \
             one tenant, or {{tenant}} in the path for each"
        );
    }
    private_hosts::report(store, guard).await;
}
