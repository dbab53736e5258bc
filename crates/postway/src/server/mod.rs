//! Wiring: opens the store, starts the rooms, and stops them in order.

mod database;
mod http;
mod inbound;
mod keys;
mod outboxes;
mod port_owner;
mod private_hosts;
mod probes;
mod process_stats;
mod secret_check;
mod self_signed;
pub mod shutdown;
mod submission;
mod suspend_all;
pub mod telemetry;

use std::{io::Write, sync::Arc, time::Duration};

use anyhow::Context as _;
use postway_api::{AdminKey, ApiState, MetricsAccess, MetricsKey, UnopenedSecrets};
use postway_dispatch::{
    DispatchConfig, Dispatcher,
    probe::Prober,
    transport::{Deadlines, Tcp},
};
use postway_domain::{Account, AccountId, AccountKind, AccountSettings, Clock, Tenant, TenantId, Time};
use postway_inbound::ImapSource;
use postway_intake::{AttachmentFolder, Door, DoorParts, FetchConfig, Limits, Preparer, Spool, smtp};
use postway_net::{
    Guard,
    http::{HttpClient, HttpSettings},
};
use postway_notify::{Notifier, NotifierParts};
use postway_oauth::OAuthTokens;
use postway_store::{Store, blob::Depot, record::DirectoryChange};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use self::{
    http::HttpBounds,
    inbound::{InboundParts, InboundRoom},
    outboxes::Outboxes,
    probes::{InboundTrials, Probe},
    shutdown::Signals,
    telemetry::MetricsHandles,
};
use crate::{
    cluster::{clock::NodeClock, duties::Reporter, membership::Membership, shared_storage_check::Sharing},
    config::Config,
    housekeeping::Housekeeping,
};

/// How long a receiver of reports may take to accept a connection: one that is away must not hold its place for long.
const REPORT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to look for metrics that nothing touches any more.
const IDLE_METRICS_LOOK: Duration = Duration::from_secs(60);
/// How long open HTTP requests may take once the server stops.
const HTTP_DRAIN: Duration = Duration::from_secs(10);

/// Runs the server until a signal has been obeyed. With `is_held`, every tenant is suspended first.
pub async fn serve(config: &Config, metrics: MetricsHandles, is_held: bool) -> anyhow::Result<()> {
    // A panic's text may quote what it choked on: only its place is told.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a task panicked");
    }));
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    make_private_folder(&config.data_dir)
        .with_context(|| format!("cannot make the data folder {}", config.data_dir.display()))?;
    let node_clock = Arc::new(NodeClock::default());
    let clock: Arc<dyn Clock> = node_clock.clone();
    let admin_key = keys::admin_key(config)?;
    let secret_key = Arc::new(keys::secret_key(config)?);
    let depot =
        Arc::new(Depot::open(config.storage.url.expose()).context("storage.url (POSTWAY_STORAGE_URL)")?);
    let trust = inbound::trust(config.pec.trust_file.as_deref())?;
    let listener = TcpListener::bind(config.http.listen).await.map_err(|error| {
        let said = port_owner::advice(config.http.listen, &error, "http.listen (POSTWAY_HTTP_LISTEN)");
        anyhow::Error::new(error).context(said)
    })?;
    let address = listener.local_addr().context("the listener has no address")?;
    tracing::info!(%address, "listening; the database is opened next");
    // Whoever asks while the database is away is told so.
    let (serve_router, router) = watch::channel(postway_api::waiting_router(clock.clone()));
    let stop_http = CancellationToken::new();
    let http = tokio::spawn(http::serve(listener, http_bounds(config), router, stop_http.clone()));
    let (serve_smtp, smtp_service) = watch::channel(None);
    let submission = submission::bind(&config.smtp, &config.data_dir, &*clock).await?;
    let smtp_announced = submission.as_ref().map(submission::announced).unwrap_or_default();
    let submission =
        tokio::spawn(submission::run(submission, clock.clone(), smtp_service, stop_http.clone()));

    let started = async {
        let store = database::open(&config.database).await?;
        let membership = database::while_away(&config.database, async || {
            lay_ground(&*store, clock.now()).await?;
            if is_held {
                let tenants = suspend_all::suspend_all(&*store, clock.now()).await?;
                tracing::warn!(
                    tenants,
                    "tenants were suspended by --hold; their mail waits until they are activated"
                );
            }
            Membership::join(store.clone(), node_clock.clone(), &config.data_dir, address, &depot).await
        });
        let membership = Arc::new(membership.await?);
        let housekeeping = Housekeeping {
            store: store.clone(),
            clock: clock.clone(),
            depot: depot.clone(),
            secret_key: secret_key.clone(),
            kept: config.retention.clone(),
            membership: membership.clone(),
        };
        let reclaimed =
            database::while_away(&config.database, async || Ok(housekeeping.reclaim().await?)).await?;
        if reclaimed > 0 {
            tracing::info!(messages = reclaimed, "took back what an earlier run had left unfinished");
        }
        anyhow::Ok((store, membership, housekeeping))
    };
    let (store, membership, housekeeping) = tokio::select! {
        started = started => started?,
        () = signals.next() => return Ok(()),
    };

    let upkeep = metrics.clone();
    let allowed = config.allow_private_targets.iter().map(|cidr| (cidr.address, cidr.prefix));
    let guard = Arc::new(Guard::new(allowed.collect()));
    let looked_at = guard.clone();
    let tokens = OAuthTokens::new(store.clone(), clock.clone(), secret_key.clone(), guard.clone());
    let door = Arc::new(Door::new(DoorParts {
        store: store.clone(),
        depot: depot.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        http: HttpClient::new(guard.clone(), HttpSettings::default()),
        fetch: fetch_config(config),
        limits: limits(config),
        mail_domain: config.smtp.ehlo_name.clone(),
        public_url: config.public_url.clone(),
    }));
    let preparer = Preparer::new(door.clone(), membership.roster().me());
    let notifier = Notifier::new(NotifierParts {
        store: store.clone(),
        depot: depot.clone(),
        http: report_http(&guard),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        node: Arc::new(Reporter(membership.clone())),
        incarnation: membership.roster().me(),
        poll: NotifierParts::POLL,
        patience: NotifierParts::PATIENCE,
    });
    let spool = match &config.spool.folder {
        Some(folder) => {
            let spool = Spool::open(door.clone(), folder.clone(), config.spool.tenant.clone());
            Some(spool.with_context(|| format!("cannot use the spool folder {}", folder.display()))?)
        }
        None => None,
    };
    let room = InboundRoom::new(InboundParts {
        store: store.clone(),
        depot: depot.clone(),
        door: door.clone(),
        clock: clock.clone(),
        secret_key: secret_key.clone(),
        source: Arc::new(ImapSource::new(secret_key.clone(), guard.clone()).with_tokens(tokens.clone())),
        trust,
        membership: membership.clone(),
    });
    let outboxes = Outboxes::new(&config.outbox, &door, &membership, &secret_key)?;
    let prober =
        Prober::new(secret_key.clone(), clock.clone(), guard.clone(), tokens.clone(), &config.smtp.ehlo_name);
    let unopened_secrets = Arc::new(UnopenedSecrets::default());
    let (router, keys_of_senders) = postway_api::surface(ApiState {
        store: store.clone(),
        door: door.clone(),
        clock: clock.clone(),
        admin_key: AdminKey::with_scram(&admin_key.text, &secret_key),
        secret_key: secret_key.clone(),
        unopened_secrets: unopened_secrets.clone(),
        metrics: MetricsAccess {
            process: process_stats::render,
            recorders: metrics.recorders(),
            key: config.telemetry.metrics_key.as_ref().map(|key| MetricsKey::new(key.expose())),
        },
        roster: membership.roster(),
        outbox: outboxes.desk(&secret_key)?,
        probe: Arc::new(Probe {
            prober,
            guard: guard.clone(),
            http: report_http(&guard),
            clock: clock.clone(),
            secret_key: secret_key.clone(),
        }),
        inbound: Arc::new(InboundTrials {
            store: store.clone(),
            source: ImapSource::new(secret_key.clone(), guard.clone()).with_tokens(tokens.clone()),
        }),
        report_retention: config.retention.reported,
        compat: config.compat.clone(),
    });

    let stop = CancellationToken::new();
    let sharing = Sharing {
        store: store.clone(),
        depot: depot.clone(),
        roster: membership.roster(),
        identity: membership.identity(),
    };
    let sharing = tokio::spawn(sharing.run(stop.clone()));
    let secret_check =
        tokio::spawn(secret_check::run(unopened_secrets, store.clone(), secret_key.clone(), stop.clone()));
    let dispatcher = Dispatcher::start(
        DispatchConfig {
            roster: membership.roster(),
            ehlo_name: config.smtp.ehlo_name.clone(),
            in_flight_max: config.dispatch.max_in_flight,
            deadlines: Deadlines::default(),
            drain: config.dispatch.drain,
            guard,
            dial: Arc::new(Tcp),
        },
        store.clone(),
        depot,
        clock,
        secret_key,
    );
    let housekeeping =
        tokio::spawn(housekeeping.run(dispatcher.in_hand(), preparer.preparing(), stop.clone()));
    let ways_in = tokio::spawn({
        let stop = stop_http.clone();
        async move {
            let spooling = async {
                if let Some(spool) = spool {
                    spool.run(stop.clone()).await;
                }
            };
            tokio::join!(preparer.run(stop.clone()), spooling, outboxes.run(stop.clone()))
        }
    });
    let reporting = tokio::spawn(notifier.run(stop_http.clone()));
    let receiving = tokio::spawn(room.run(stop_http.clone()));
    let upkeep = tokio::spawn(keep_metrics(upkeep, config.telemetry.upkeep, stop.clone()));
    let leave = CancellationToken::new();
    let beating = tokio::spawn(membership.run(leave.clone()));
    drop(serve_router.send_replace(router));
    let gatekeeper = Arc::new(submission::Keys(keys_of_senders));
    drop(serve_smtp.send_replace(Some(smtp::Service { door, gatekeeper })));

    if admin_key.fresh {
        keys::write_admin_key(config, &admin_key)?;
    }
    // What cannot be read now is no reason not to serve.
    let captured = captured_unasked(&*store).await.unwrap_or_default();
    announce(config, address, &smtp_announced, &admin_key, is_held, &captured);
    let looking =
        tokio::spawn(explain_settings(store.clone(), looked_at, config.attachments.folders.clone()));

    signals.next().await;
    looking.abort();
    tracing::info!("stopping: finishing what is on the wire");
    stop_http.cancel();
    let drained = async {
        // Together, so that the whole stop keeps to the bound of the longer one.
        let (finished, http, smtp) =
            tokio::join!(dispatcher.drain(), tokio::time::timeout(HTTP_DRAIN, http), submission);
        if let Err(error) = smtp {
            tracing::warn!(%error, "the SMTP listener ended badly");
        }
        match http {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the HTTP server ended badly"),
            Err(_) => tracing::warn!("some HTTP requests were cut off"),
        }
        stop.cancel();
        let (.., sharing) =
            tokio::join!(ways_in, reporting, receiving, housekeeping, upkeep, secret_check, sharing);
        // What a provider has just given must be stored.
        tokens.finish().await;
        leave.cancel();
        if let Err(error) = beating.await {
            tracing::warn!(%error, "this node could not leave in order; the others will notice");
        }
        if let Ok(sharing) = sharing {
            sharing.leave().await;
        }
        store.close().await;
        finished
    };
    tokio::select! {
        finished = drained => {
            if finished {
                tracing::info!("stopped");
            } else {
                tracing::warn!("stopped; some messages were still on the wire and will be settled at the next start");
            }
        }
        () = signals.next() => tracing::warn!("stopped at once by a second signal; leases will be taken back at the next start"),
    }
    Ok(())
}

/// Tells in the log what stored settings and configured ones do not allow together.
async fn explain_settings(store: Arc<dyn Store>, guard: Arc<Guard>, folders: Vec<AttachmentFolder>) {
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

/// The way out for reports.
fn report_http(guard: &Arc<Guard>) -> HttpClient {
    let settings = HttpSettings { connect_timeout: REPORT_CONNECT_TIMEOUT, ..HttpSettings::default() };
    HttpClient::new(guard.clone(), settings)
}

fn http_bounds(config: &Config) -> HttpBounds {
    let http = &config.http;
    HttpBounds::new(http.max_connections, http.max_connections_per_client, http.trusted_proxies.clone())
}

fn limits(config: &Config) -> Limits {
    Limits {
        message_bytes_max: config.http.max_message_bytes,
        request_bytes_max: config.http.max_request_bytes,
        inline_bytes_max: config.storage.max_inline_bytes,
        ..Limits::default()
    }
}

/// A file that is mailed is bounded by its message, one that is linked to by itself.
fn fetch_config(config: &Config) -> FetchConfig {
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

/// Makes the folder, if it is missing, for its owner only: it will hold mail and keys.
fn make_private_folder(path: &std::path::Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(path)
}

/// The tenant and the account that make a first run work, in one change. Nodes that start together may all try.
async fn lay_ground(store: &dyn Store, now: Time) -> anyhow::Result<()> {
    let id: TenantId = "default".parse()?;
    if store.tenant(&id).await?.is_some() {
        return Ok(());
    }
    let sandbox: AccountId = "sandbox".parse()?;
    let account = Account {
        tenant: id.clone(),
        id: sandbox.clone(),
        settings: AccountSettings::sandbox(),
        secret: None,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let tenant = Tenant { default_account: Some(sandbox), ..Tenant::new(id, "Default", now) };
    store.change(DirectoryChange::CreateTenant(tenant, vec![account]), None).await?;
    Ok(())
}

async fn keep_metrics(handles: MetricsHandles, every: Duration, stop: CancellationToken) {
    let mut since_forgotten = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => handles.upkeep(),
        }
        since_forgotten += every;
        if since_forgotten >= IDLE_METRICS_LOOK {
            handles.forget_idle();
            since_forgotten = Duration::ZERO;
        }
    }
}

/// Tenants, of the first, whose mail the sandbox captures because nobody has chosen how it leaves.
async fn captured_unasked(store: &dyn Store) -> anyhow::Result<Vec<TenantId>> {
    const LOOKED_MAX: u32 = 20;
    let mut found = Vec::new();
    for tenant in store.tenants(None, LOOKED_MAX).await? {
        let Some(id) = tenant.default_account.filter(|_| tenant.deleted_at.is_none()) else { continue };
        let account = store.account(&tenant.id, &id).await?;
        let captures = account.is_some_and(|account| account.settings.kind == AccountKind::Sandbox);
        if captures && !tenant.settings.test {
            found.push(tenant.id);
        }
    }
    Ok(found)
}

/// Tells the person at the terminal where it listens and, the first time, the key.
fn announce(
    config: &Config,
    address: std::net::SocketAddr,
    smtp: &str,
    key: &keys::AdminKeyText,
    is_held: bool,
    captured: &[TenantId],
) {
    let mut out = std::io::stdout().lock();
    let mut lines = format!("postway listens on http://{address}\n  docs: http://{address}/docs\n");
    lines += smtp;
    lines += &format!("  data: {}\n", config.data_dir.display());
    if is_held {
        lines += "  every tenant is suspended: `postway tenants activate` lets its mail go\n";
    }
    if let [first, others @ ..] = captured {
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
