//! The first step of a start: opens the listeners, then the database.
//!
//! The listeners are open before the database is, so that a client that calls meanwhile gets an answer that
//! says so. A database that does not answer is waited for; everything that only depends on the configuration
//! fails at once.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context as _;
use axum::Router;
use postway_domain::{Account, AccountId, AccountSettings, Clock, Tenant, TenantId, Time, secret::SecretKey};
use postway_inbound::TrustStore;
use postway_intake::smtp;
use postway_store::{Store, blob::BlobStorage, record::DirectoryChange};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    certificates::ListenerCertificates,
    database, inbound,
    keys::{self, AdminKeyText},
    reception::{self, ReceptionService},
    submission, suspend_all,
    web_listeners::WebListeners,
};
use crate::{
    cluster::{clock::NodeClock, membership::ClusterMembership},
    config::ServerConfig,
    housekeeping::HousekeepingDuties,
};

/// The open listeners, and what the configuration alone decides.
pub struct OpenListeners {
    /// The clock that this node shares with the others.
    pub node_clock: Arc<NodeClock>,
    /// The same clock, as the subsystems ask it.
    pub clock: Arc<dyn Clock>,
    /// The admin key, and whether it is new.
    pub admin_key: AdminKeyText,
    /// The key that encrypts stored secrets.
    pub secret_key: Arc<SecretKey>,
    /// The storage of large bodies.
    pub depot: Arc<BlobStorage>,
    /// The authorities that receipts of certified mail are verified against.
    pub trust: TrustStore,
    /// The address of the HTTP listener.
    pub address: SocketAddr,
    /// The lines about further listeners for the terminal.
    pub listener_announcement: String,
    /// Replaces the router that answers while the database is being opened.
    pub router: watch::Sender<Router>,
    /// Gives the SMTP listener its service; until then it refuses mail for now.
    pub smtp_service: watch::Sender<Option<smtp::SmtpService>>,
    /// Gives the reception its desk.
    pub reception_service: watch::Sender<ReceptionService>,
    /// Stops the listeners and everything else that takes in work.
    pub stop_intake: CancellationToken,
    /// The task of the HTTP listeners and of the certificates.
    pub http: JoinHandle<()>,
    /// The SMTP listener's task.
    pub submission: JoinHandle<()>,
    /// The reception's task.
    pub reception: JoinHandle<()>,
}

/// The opened database, and this node registered in it.
pub struct OpenedStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// This node among the others.
    pub membership: Arc<ClusterMembership>,
    /// Housekeeping, which has already taken back what an earlier run left unfinished.
    pub housekeeping: HousekeepingDuties,
}

/// Reads the keys and opens the listeners.
pub async fn open_listeners(config: &ServerConfig) -> anyhow::Result<OpenListeners> {
    make_private_folder(&config.data_dir)
        .with_context(|| format!("cannot make the data folder {}", config.data_dir.display()))?;
    let node_clock = Arc::new(NodeClock::default());
    let clock: Arc<dyn Clock> = node_clock.clone();
    let admin_key = keys::admin_key(config)?;
    let secret_key = Arc::new(keys::secret_key(config)?);
    let depot = Arc::new(
        BlobStorage::open(config.storage.url.expose()).context("storage.url (POSTWAY_STORAGE_URL)")?,
    );
    let trust = inbound::read_trust_store(config.pec.trust_file.as_deref())?;
    let certificates = ListenerCertificates::open(config, &*clock)?;
    let web = WebListeners::bind(config, certificates.http.as_ref(), certificates.http_is_own).await?;
    let (address, web_announcement) = (web.address, web.announcement.clone());
    tracing::info!(%address, "listening; the database is opened next");
    let (router, current_router) = watch::channel(postway_api::not_ready_router(clock.clone()));
    let stop_intake = CancellationToken::new();
    let (for_smtp, for_reception) = (certificates.smtp.clone(), certificates.reception.clone());
    let http = tokio::spawn({
        let (clock, stop) = (clock.clone(), stop_intake.clone());
        async move {
            tokio::join!(web.run(current_router, stop.clone()), certificates.watch(clock, stop));
        }
    });
    let (smtp_service, current_service) = watch::channel(None);
    let submission = submission::bind(&config.smtp, for_smtp).await?;
    let smtp_announcement = submission.as_ref().map(submission::announcement).unwrap_or_default();
    let submission = tokio::spawn(submission::run(submission, current_service, stop_intake.clone()));
    let (reception_service, current_desk) = watch::channel(None);
    let receiving = reception::bind(config, for_reception).await?;
    let reception_address = receiving.as_ref().and_then(smtp::SmtpListener::address);
    let smtp_announcement = match reception_address {
        Some(address) => format!("{smtp_announcement}  reception: {address}\n"),
        None => smtp_announcement,
    };
    let reception = tokio::spawn(reception::run(receiving, current_desk, stop_intake.clone()));
    Ok(OpenListeners {
        node_clock,
        clock,
        admin_key,
        secret_key,
        depot,
        trust,
        address,
        listener_announcement: web_announcement + &smtp_announcement,
        router,
        smtp_service,
        reception_service,
        stop_intake,
        http,
        submission,
        reception,
    })
}

/// Opens the database, registers this node, and takes back what an earlier run left unfinished. With
/// `suspends`, every tenant is suspended before anything else happens.
pub async fn open_store(
    config: &ServerConfig,
    listeners: &OpenListeners,
    suspends: bool,
) -> anyhow::Result<OpenedStore> {
    let OpenListeners { node_clock, clock, depot, address, .. } = listeners;
    let store = database::open(&config.database).await?;
    let membership = database::while_away(&config.database, async || {
        create_default_tenant(&*store, config.is_for_development, clock.now()).await?;
        if suspends {
            let tenants = suspend_all::suspend_all(&*store, suspend_all::ACTOR, clock.now()).await?;
            tracing::warn!(
                tenants,
                "tenants were suspended by --hold; their mail waits until they are activated"
            );
        }
        ClusterMembership::join(store.clone(), node_clock.clone(), &config.data_dir, *address, depot).await
    });
    let membership = Arc::new(membership.await?);
    let housekeeping = HousekeepingDuties {
        store: store.clone(),
        clock: clock.clone(),
        depot: depot.clone(),
        secret_key: listeners.secret_key.clone(),
        retention: config.retention.clone(),
        membership: membership.clone(),
    };
    let reclaimed =
        database::while_away(&config.database, async || Ok(housekeeping.reclaim().await?)).await?;
    if reclaimed > 0 {
        tracing::info!(messages = reclaimed, "took back what an earlier run had left unfinished");
    }
    Ok(OpenedStore { store, membership, housekeeping })
}

/// Makes the folder, if it is missing, for its owner only: it will contain mail and keys.
fn make_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(path)
}

/// Creates the tenant and the account that make a first run work, in one change. Nodes that start together
/// may all try. `is_test` makes it a test tenant.
async fn create_default_tenant(store: &dyn Store, is_test: bool, now: Time) -> anyhow::Result<()> {
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
    let mut tenant = Tenant { default_account: Some(sandbox), ..Tenant::new(id, "Default", now) };
    // Mail over SMTP is only taken where somebody has said that it is for tests.
    tenant.settings.test = is_test;
    store.change(DirectoryChange::CreateTenant(tenant, vec![account]), None).await?;
    Ok(())
}
