//! The second step of a start: builds the subsystems, none of which runs yet.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::Router;
use postway_api::{AdminKey, ApiState, DomainChecker, KeyCheck, MetricsAccess, MetricsKey, UnopenedSecrets};
use postway_archive::{Archiver, ArchiverParts};
use postway_dispatch::probe::AccountProber;
use postway_inbound::ImapSource;
use postway_intake::{Door, DoorParts, FetchConfig, IntakeLimits, MessagePreparer, SpoolFolder};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_notify::{Notifier, NotifierParts};
use postway_oauth::OAuthTokens;

use super::{
    domains::DnsProbe,
    inbound::{InboundLoops, InboundParts},
    open::{OpenListeners, OpenedStore},
    outboxes::OutboxSources,
    probes::{IncomingProbe, OutgoingProbe},
    process_stats, received_mail,
    reception::{self, ReceptionService},
    sign_in_provider,
    telemetry::MetricsHandles,
};
use crate::{
    cluster::{duties::NodeDuties, shared_storage_check::SharedStorageCheck},
    config::ServerConfig,
};

/// How long a subscriber may take to accept a connection: one that is away must not keep its slot for long.
const NOTIFY_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The subsystems, ready to start.
pub struct BuiltServer {
    /// The one way in.
    pub door: Arc<Door>,
    /// Prepares accepted messages whose files are still to be fetched.
    pub preparer: MessagePreparer,
    /// Reads mail from a folder, if one is configured.
    pub spool: Option<SpoolFolder>,
    /// The loops that read outbox sources.
    pub outboxes: OutboxSources,
    /// Notifies subscribers.
    pub notifier: Notifier,
    /// Makes copies of what was sent.
    pub archiver: Archiver,
    /// Watches mailboxes and processes their mail.
    pub inbound: InboundLoops,
    /// The desk for mail from other servers, if it is received.
    pub desk: ReceptionService,
    /// The HTTP API.
    pub router: Router,
    /// Checks the keys of SMTP clients, as the API checks those of its own.
    pub sender_keys: KeyCheck,
    /// Refreshes the OAuth tokens of accounts and mailboxes.
    pub tokens: OAuthTokens,
    /// Refuses connections to private networks.
    pub guard: Arc<AddressGuard>,
    /// Counts stored secrets that the secret key does not open.
    pub unopened_secrets: Arc<UnopenedSecrets>,
    /// Checks the DNS of domains.
    pub domains: DomainChecker,
    /// Compares this node's storage with that of the others.
    pub storage_check: SharedStorageCheck,
}

/// Builds every subsystem on the opened store.
pub fn build(
    config: &ServerConfig,
    listeners: &OpenListeners,
    opened: &OpenedStore,
    metrics: &MetricsHandles,
) -> anyhow::Result<BuiltServer> {
    let OpenListeners { clock, secret_key, depot, .. } = listeners;
    let OpenedStore { store, membership, .. } = opened;
    let allowed = config.allow_private_targets.iter().map(|cidr| (cidr.address, cidr.prefix));
    let guard = Arc::new(config.egress.guard(AddressGuard::new(allowed.collect())));
    let tokens = OAuthTokens::new(store.clone(), clock.clone(), secret_key.clone(), guard.clone());
    let imap = || ImapSource::new(secret_key.clone(), guard.clone()).with_tokens(tokens.clone());
    let door = Door::new(DoorParts {
        store: store.clone(),
        depot: depot.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        http: HttpClient::new(guard.clone(), HttpSettings::default()),
        fetch: fetch_config(config),
        limits: limits(config),
        mail_domain: config.smtp.ehlo_name.clone(),
        public_url: config.public_url.clone(),
    });
    let door = Arc::new(door.with_virus_scanner(config.clamd.scanner()));
    let notifier = Notifier::new(NotifierParts {
        store: store.clone(),
        depot: depot.clone(),
        http: subscriber_http(config, &guard),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        node: Arc::new(NodeDuties(membership.clone())),
        incarnation: membership.roster().me(),
        poll: NotifierParts::POLL,
        patience: NotifierParts::PATIENCE,
        received: received_mail::reader(),
        public_url: config.public_url.clone(),
    });
    let archiver = Archiver::new(ArchiverParts {
        store: store.clone(),
        depot: depot.clone(),
        door: door.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        node: Arc::new(NodeDuties(membership.clone())),
        incarnation: membership.roster().me(),
        poll: ArchiverParts::POLL,
    });
    let inbound = InboundLoops::new(InboundParts {
        store: store.clone(),
        depot: depot.clone(),
        door: door.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        source: Arc::new(imap()),
        trust: listeners.trust.clone(),
        membership: membership.clone(),
    });
    let outboxes = OutboxSources::new(&config.outbox, &door, membership, secret_key)?;
    let prober = AccountProber::new(
        secret_key.clone(),
        clock.clone(),
        guard.clone(),
        tokens.clone(),
        &config.smtp.ehlo_name,
    );
    let unopened_secrets = Arc::new(UnopenedSecrets::default());
    let dns = Arc::new(DnsProbe::new(config.dns_server));
    let domains = DomainChecker::new(store.clone(), clock.clone(), dns);
    let (router, sender_keys) = postway_api::surface(ApiState {
        store: store.clone(),
        door: door.clone(),
        clock: clock.clone(),
        admin_key: AdminKey::with_scram(&listeners.admin_key.text, secret_key),
        secret_key: secret_key.clone(),
        unopened_secrets: unopened_secrets.clone(),
        metrics: MetricsAccess {
            process: process_stats::render,
            recorders: metrics.recorders(),
            key: config.telemetry.metrics_key.as_ref().map(|key| MetricsKey::new(key.expose())),
        },
        roster: membership.roster(),
        domains: domains.clone(),
        outbox: outboxes.status_api(secret_key)?,
        probe: Arc::new(OutgoingProbe {
            prober,
            guard: guard.clone(),
            http: subscriber_http(config, &guard),
            clock: clock.clone(),
            secret_key: secret_key.clone(),
        }),
        inbound: Arc::new(IncomingProbe { store: store.clone(), source: imap() }),
        provider: config
            .oidc
            .as_ref()
            .map(|section| Arc::new(sign_in_provider::build(section, &guard, clock.clone()))),
        report_retention: config.retention.reported,
        opens_to_this_machine: config.is_for_development,
        compat: config.compat.clone(),
        limits: config.limits.clone(),
    });
    Ok(BuiltServer {
        preparer: MessagePreparer::new(door.clone(), membership.roster().me()),
        spool: open_spool(config, &door)?,
        outboxes,
        notifier,
        archiver,
        inbound,
        desk: reception::desk(config, store, depot, clock, secret_key)?,
        router,
        sender_keys,
        tokens,
        unopened_secrets,
        domains,
        storage_check: SharedStorageCheck {
            store: store.clone(),
            depot: depot.clone(),
            roster: membership.roster(),
            identity: membership.identity(),
        },
        guard,
        door,
    })
}

fn open_spool(config: &ServerConfig, door: &Arc<Door>) -> anyhow::Result<Option<SpoolFolder>> {
    let Some(folder) = &config.spool.folder else { return Ok(None) };
    let spool = SpoolFolder::open(door.clone(), folder.clone(), config.spool.tenant.clone());
    Ok(Some(spool.with_context(|| format!("cannot use the spool folder {}", folder.display()))?))
}

/// The HTTP client that calls subscribers.
fn subscriber_http(config: &ServerConfig, guard: &Arc<AddressGuard>) -> HttpClient {
    let settings = HttpSettings {
        connect_timeout: NOTIFY_CONNECT_TIMEOUT,
        egress: config.egress.notification_path(),
        ..HttpSettings::default()
    };
    HttpClient::new(guard.clone(), settings)
}

fn limits(config: &ServerConfig) -> IntakeLimits {
    IntakeLimits {
        message_bytes_max: config.http.max_message_bytes,
        request_bytes_max: config.http.max_request_bytes,
        inline_bytes_max: config.storage.max_inline_bytes,
        ..IntakeLimits::default()
    }
}

/// The bounds of fetched files. A file that is mailed is bounded by its message, one that is linked to by
/// itself.
fn fetch_config(config: &ServerConfig) -> FetchConfig {
    let attachments = &config.attachments;
    FetchConfig {
        folders: attachments.folders.clone(),
        file_bytes_max: attachments.max_file_bytes.min(config.http.max_message_bytes),
        message_bytes_max: config.http.max_message_bytes,
        linked_bytes_max: attachments.max_file_bytes,
        cache_folder: (attachments.cache_bytes > 0).then(|| config.data_dir.join("cache")),
        cache_bytes_max: attachments.cache_bytes,
        ..FetchConfig::default()
    }
}
