//! The third step of a start: runs the subsystems as tasks, and lets requests through to the API and to SMTP.

use std::{sync::Arc, time::Duration};

use postway_dispatch::{
    DispatchConfig, Dispatcher,
    transport::{SmtpDeadlines, TcpDialer},
};
use postway_intake::smtp;
use postway_oauth::OAuthTokens;
use postway_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    build::BuiltServer,
    domains,
    open::{OpenListeners, OpenedStore},
    secret_check,
    submission::SubmissionKeys,
    telemetry::MetricsHandles,
    trace_export,
};
use crate::{cluster::shared_storage_check::SharedStorageCheck, config::ServerConfig};

/// How often metrics that nothing has touched for long are dropped.
const IDLE_METRICS_EVERY: Duration = Duration::from_secs(60);

/// The tasks of a running server, and the tokens that stop them: first those that take in work, then those
/// that see to the database, then the heartbeat.
pub struct RunningServer {
    pub(super) store: Arc<dyn Store>,
    pub(super) dispatcher: Dispatcher,
    pub(super) tokens: OAuthTokens,
    pub(super) stop_intake: CancellationToken,
    pub(super) http: JoinHandle<()>,
    pub(super) submission: JoinHandle<()>,
    pub(super) reception: JoinHandle<()>,
    pub(super) intake: JoinHandle<()>,
    pub(super) notifier: JoinHandle<()>,
    pub(super) archiver: JoinHandle<()>,
    pub(super) inbound: JoinHandle<()>,
    pub(super) stop_upkeep: CancellationToken,
    pub(super) housekeeping: JoinHandle<()>,
    pub(super) metrics: JoinHandle<()>,
    pub(super) secret_check: JoinHandle<()>,
    pub(super) domain_checks: JoinHandle<()>,
    pub(super) storage_check: JoinHandle<SharedStorageCheck>,
    pub(super) stop_heartbeat: CancellationToken,
    pub(super) heartbeat: JoinHandle<()>,
    pub(super) stop_traces: CancellationToken,
    pub(super) traces: Option<JoinHandle<()>>,
}

/// Starts every task.
pub fn start(
    config: &ServerConfig,
    listeners: OpenListeners,
    opened: OpenedStore,
    built: BuiltServer,
    metrics: MetricsHandles,
) -> RunningServer {
    let OpenListeners {
        clock,
        secret_key,
        depot,
        router,
        smtp_service,
        reception_service,
        stop_intake,
        http,
        submission,
        reception,
        ..
    } = listeners;
    let OpenedStore { store, membership, housekeeping } = opened;
    let BuiltServer { door, preparer, spool, outboxes, notifier, archiver, inbound, guard, tokens, .. } =
        built;
    let (stop_upkeep, stop_heartbeat) = (CancellationToken::new(), CancellationToken::new());
    let stop_traces = CancellationToken::new();
    let exporter = trace_export::start(&config.tracing, clock.clone(), membership.roster().me().to_string());
    let traces = exporter.map(|exporter| tokio::spawn(exporter.run(stop_traces.clone())));
    let storage_check = tokio::spawn(built.storage_check.run(stop_upkeep.clone()));
    let secret_check = tokio::spawn(secret_check::run(
        built.unopened_secrets,
        store.clone(),
        secret_key.clone(),
        stop_upkeep.clone(),
    ));
    let domain_checks =
        tokio::spawn(domains::keep_checking(built.domains, membership.clone(), stop_upkeep.clone()));
    let dispatcher = Dispatcher::start(
        DispatchConfig {
            roster: membership.roster(),
            ehlo_name: config.smtp.ehlo_name.clone(),
            in_flight_max: config.dispatch.max_in_flight,
            deadlines: SmtpDeadlines::default(),
            drain: config.dispatch.drain,
            guard,
            dial: Arc::new(TcpDialer),
        },
        store.clone(),
        depot,
        clock,
        secret_key,
    );
    let housekeeping =
        tokio::spawn(housekeeping.run(dispatcher.in_hand(), preparer.preparing(), stop_upkeep.clone()));
    let intake = tokio::spawn({
        let stop = stop_intake.clone();
        async move {
            let spooling = async {
                if let Some(spool) = spool {
                    spool.run(stop.clone()).await;
                }
            };
            tokio::join!(preparer.run(stop.clone()), spooling, outboxes.run(stop.clone()));
        }
    });
    let notifier = tokio::spawn(notifier.run(stop_intake.clone()));
    let archiver = tokio::spawn(archiver.run(stop_intake.clone()));
    let inbound = tokio::spawn(inbound.run(stop_intake.clone()));
    let metrics = tokio::spawn(keep_metrics(metrics, config.telemetry.upkeep, stop_upkeep.clone()));
    let heartbeat = tokio::spawn(membership.run(stop_heartbeat.clone()));
    drop(router.send_replace(built.router));
    let gatekeeper = Arc::new(SubmissionKeys(built.sender_keys));
    drop(reception_service.send_replace(built.desk));
    drop(smtp_service.send_replace(Some(smtp::SmtpService { door, gatekeeper })));
    RunningServer {
        store,
        dispatcher,
        tokens,
        stop_intake,
        http,
        submission,
        reception,
        intake,
        notifier,
        archiver,
        inbound,
        stop_upkeep,
        housekeeping,
        metrics,
        secret_check,
        domain_checks,
        storage_check,
        stop_heartbeat,
        heartbeat,
        stop_traces,
        traces,
    }
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
        if since_forgotten >= IDLE_METRICS_EVERY {
            handles.forget_idle();
            since_forgotten = Duration::ZERO;
        }
    }
}
