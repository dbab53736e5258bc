//! The actors outside: clients that send until a message is acknowledged, operators, and the faults that
//! strike nodes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use postway_api::{OperatorAction, operator_change};
use postway_domain::{
    EventKind, Lane, MessagePriority, MessageState, MessageUid, RecipientKind,
    destination_room::destination_group,
    message::{DoubtResolution, OnDoubt, ScheduleReason},
};
use postway_store::{
    Store,
    record::{
        Acceptance, DirectoryChange, MessageContent, MessageKey, NewEvent, NewMessage, NewRecipient,
        StoredBody, SuppressionReason, SuppressionRecord, SuspensionRecord, SuspensionScope,
    },
};
use tokio::time::{sleep, timeout};

use super::{
    life::LifePulse,
    world::{RECEIVING_DOMAIN, SimulatedWorld},
};

/// How long clients and operators wait for a node's answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest that a node is frozen: others have taken its work by then.
pub(super) const FATE_LASTS_MAX_MS: u64 = 25_000;

/// Sends all messages of the run, each until a node has said that it has it.
pub(super) async fn send_all(world: Arc<SimulatedWorld>) {
    let pace = world.plan.troubled.as_millis() as u64 / world.plan.messages as u64;
    for label in 0..world.plan.messages {
        let mut message = compose(&world, label);
        loop {
            let link = loop {
                match some_link(&world) {
                    Some(link) => break link,
                    None => sleep(Duration::from_millis(300)).await,
                }
            };
            // The intake makes a new uid for each request; the client's own id makes them one message.
            message.uid = world.chance.uid(world.now());
            let stored = match timeout(PATIENCE, link.accept(vec![message.clone()])).await {
                Ok(Ok(answers)) => match answers[..] {
                    [Acceptance::Accepted { .. } | Acceptance::Suppressed] => Some(message.uid),
                    [Acceptance::Repeat { uid }] => Some(uid),
                    _ => panic!("m{label}: {answers:?}"),
                },
                Ok(Err(_)) | Err(_) => None,
            };
            if let Some(uid) = stored {
                acknowledge(&world, uid, label);
                break;
            }
            sleep(world.chance.millis(100, 1_000)).await;
        }
        // Some alone, some together.
        if world.chance.hits(500) {
            sleep(world.chance.millis(0, pace * 2)).await;
        }
    }
}

fn acknowledge(world: &SimulatedWorld, uid: MessageUid, label: usize) {
    world.trace.note(format_args!("m{label} is acknowledged"));
    match world.ledger().fate(uid) {
        Some(fate) => fate.acknowledged = true,
        None => world.trace.violation(format_args!("m{label} is acknowledged, and nobody stored it")),
    }
}

fn compose(world: &SimulatedWorld, label: usize) -> NewMessage {
    let (chance, now) = (&world.chance, world.now());
    let send_at = chance.hits(200).then(|| now.plus(chance.millis(500, 15_000)));
    let state =
        if send_at.is_some() { MessageState::Scheduled(ScheduleReason::SendAt) } else { MessageState::Ready };
    let first = if send_at.is_some() { EventKind::Scheduled } else { EventKind::Ready };
    let address = |number| format!("r{number}.m{label}@{RECEIVING_DOMAIN}").parse().expect("an address");
    let recipients = (0..chance.between(1, 3))
        .map(|number| NewRecipient { address: address(number), kind: RecipientKind::To })
        .collect();
    // Some are too large to come with their claim.
    let lines = if chance.hits(50) { 2_000 } else { 1 };
    let body =
        format!("Subject: m{label}\r\n\r\n{}", ".a line that begins with a dot, of many\r\n".repeat(lines));
    let account = chance.between(0, 1) as usize;
    // Some come from a door that does not know of the limit.
    let domains = [RECEIVING_DOMAIN].into_iter().filter(|_| !chance.hits(200));
    let group = destination_group(&world.destinations(account), domains);
    NewMessage {
        uid: chance.uid(now),
        lane: Lane {
            tenant: SimulatedWorld::tenant(),
            account: SimulatedWorld::account_id(account),
            priority: *chance.pick(&[
                MessagePriority::Immediate,
                MessagePriority::Normal,
                MessagePriority::Normal,
            ]),
            batch: chance.hits(300).then(|| "b".parse().expect("a batch's name")),
            destination: None,
        }
        .to_destination(group),
        client_id: Some(format!("m{label}").parse().expect("a client's id")),
        idempotency: None,
        fingerprint: [label as u8; 32],
        batch_key: None,
        state,
        due_at: Some(send_at.unwrap_or(now)),
        created_at: now,
        expires_at: chance.hits(250).then(|| send_at.unwrap_or(now).plus(chance.millis(2_000, 60_000))),
        on_doubt: if chance.hits(250) { OnDoubt::Hold } else { OnDoubt::Resend },
        recipients,
        content: MessageContent {
            sender: format!("m{label}@from.example"),
            message_id: format!("m{label}@from.example"),
            subject: String::new(),
            request_id: None,
            external_id: None,
            tags: Vec::new(),
            metadata: None,
            eight_bit: false,
            smtputf8: false,
            raw: StoredBody::Inline(Bytes::from(body)),
            payload: None,
            sensitive: chance.hits(100),
            dsn: None,
        },
        events: [EventKind::Accepted, first].map(|kind| NewEvent { kind, data: None }).to_vec(),
        error: None,
        collapse_key: chance.hits(200).then(|| "k".to_owned()),
        recipient: None,
        settled: None,
    }
}

/// The store of some node that takes work.
fn some_link(world: &SimulatedWorld) -> Option<Arc<dyn Store>> {
    let links: Vec<_> = world.nodes.iter().filter_map(|node| node.link()).collect();
    (!links.is_empty()).then(|| world.chance.pick(&links).clone())
}

/// Acts as operators do, until the faults end.
pub(super) async fn operate(world: Arc<SimulatedWorld>) {
    while world.plan.operator && !world.is_healed() {
        sleep(world.chance.millis(100, 4_000)).await;
        let Some(link) = some_link(&world) else { continue };
        // After a timeout it is unknown whether it was done.
        timeout(PATIENCE, operate_once(&world, &*link)).await.ok();
    }
}

async fn operate_once(world: &SimulatedWorld, link: &dyn Store) {
    let (chance, tenant, now) = (&world.chance, SimulatedWorld::tenant(), world.now());
    let scopes = [
        SuspensionScope::Tenant,
        SuspensionScope::Batch("b".parse().expect("a batch's name")),
        SuspensionScope::Account(SimulatedWorld::account_id(0)),
    ];
    let scope = chance.pick(&scopes);
    let change = match chance.between(0, 9) {
        0 => DirectoryChange::Suspend(SuspensionRecord { tenant, scope: scope.clone(), since: now }),
        1 => DirectoryChange::Activate(tenant, scope.clone()),
        2 if chance.hits(300) => {
            let label = chance.between(0, world.plan.messages as u64);
            DirectoryChange::Suppress(vec![SuppressionRecord {
                tenant,
                address: format!("r0.m{label}@to.example"),
                reason: SuppressionReason::Manual,
                note: None,
                created_at: now,
                expires_at: None,
            }])
        }
        3 => return renew(link).await,
        _ => {
            let uids: Vec<MessageUid> = world.ledger().iter().map(|(uid, _)| uid).collect();
            let resolutions = [DoubtResolution::Sent, DoubtResolution::Failed, DoubtResolution::Resend];
            let asked = match chance.between(0, 3) {
                0 => OperatorAction::Cancel,
                1 => OperatorAction::Replay,
                2 => OperatorAction::Reschedule(now.plus(chance.millis(0, 5_000))),
                _ => OperatorAction::Resolve(*chance.pick(&resolutions)),
            };
            if !uids.is_empty() {
                ask(world, link, *chance.pick(&uids), asked).await;
            }
            return;
        }
    };
    world.trace.note(format_args!("an operator: {change:?}"));
    // Whether it was done shows later.
    link.change(change, None).await.ok();
}

/// Asks something of a message, as the API does.
pub(super) async fn ask(world: &SimulatedWorld, link: &dyn Store, uid: MessageUid, asked: OperatorAction) {
    let Ok(Some(record)) = link.message(&SimulatedWorld::tenant(), &MessageKey::Uid(uid)).await else {
        return;
    };
    let Ok(change) = operator_change(&record, asked, world.now(), "simulated", "admin") else { return };
    if let OperatorAction::Resolve(DoubtResolution::Sent) = asked
        && let Some(fate) = world.ledger().fate(uid)
    {
        fate.called_sent = true;
    }
    let label = world.ledger().label(uid);
    world
        .trace
        .note(format_args!("an operator asks {asked:?} of {label}, which is {:?}", record.summary.state));
    link.apply(vec![change]).await.ok();
}

/// Writes an account's settings anew: connections are opened again, and its circuit closes.
async fn renew(link: &dyn Store) {
    let found = link.account(&SimulatedWorld::tenant(), &SimulatedWorld::account_id(0)).await;
    if let Ok(Some(mut account)) = found {
        let version = account.version;
        account.version += 1;
        link.update_account(account, version).await.ok();
    }
}

/// Strikes nodes, the clock and the store, for as long as the plan says.
pub(super) async fn strike(world: &Arc<SimulatedWorld>) {
    let ends = tokio::time::Instant::now() + world.plan.troubled;
    while tokio::time::Instant::now() < ends {
        sleep(world.chance.millis(50, 5_000)).await;
        let fates = &world.plan.fates;
        let weights =
            [fates.crash, fates.freeze, fates.stop, fates.leap, fates.outage, fates.failover, fates.silence];
        let mut drawn = world.chance.between(0, weights.iter().sum::<u64>().max(1) - 1);
        let node = world.chance.between(0, world.plan.nodes as u64 - 1) as usize;
        for (fate, weight) in weights.into_iter().enumerate() {
            if drawn < weight {
                befall(world, PlannedFault::ALL[fate], node);
                break;
            }
            drawn -= weight;
        }
    }
}

/// A fault of a node, or of all of them.
#[derive(Clone, Copy)]
pub(super) enum PlannedFault {
    Crash,
    Freeze,
    Stop,
    Leap,
    Outage,
    Failover,
    Silence,
}

impl PlannedFault {
    /// In the order of the plan's weights.
    const ALL: [PlannedFault; 7] = [
        PlannedFault::Crash,
        PlannedFault::Freeze,
        PlannedFault::Stop,
        PlannedFault::Leap,
        PlannedFault::Outage,
        PlannedFault::Failover,
        PlannedFault::Silence,
    ];
}

/// Applies a fault to this node, and its recovery.
pub(super) fn befall(world: &Arc<SimulatedWorld>, fate: PlannedFault, number: usize) {
    let (chance, after) = (&world.chance, world.clone());
    let (soon, long) = (chance.millis(50, 15_000), chance.millis(100, FATE_LASTS_MAX_MS));
    match fate {
        PlannedFault::Crash => {
            world.nodes[number].crash(world);
            tokio::spawn(async move {
                sleep(soon).await;
                after.nodes[number].start(&after);
            });
        }
        PlannedFault::Freeze => {
            let Some(life) = world.nodes[number].life().filter(|life| life.pulse() == LifePulse::Beating)
            else {
                return;
            };
            world.trace.note(format_args!("{} is frozen for {long:?}", life.name));
            life.set(LifePulse::Frozen);
            tokio::spawn(async move {
                sleep(long).await;
                after.trace.note(format_args!("{} thaws", life.name));
                life.set(LifePulse::Beating);
            });
        }
        PlannedFault::Stop => {
            tokio::spawn(async move {
                after.nodes[number].stop(&after).await;
                sleep(soon).await;
                after.nodes[number].start(&after);
            });
        }
        PlannedFault::Leap => {
            let leaps = [5_000, 90_000, 3_600_000, -5_000, -90_000, -3_600_000];
            world.leap(*chance.pick(&leaps));
        }
        PlannedFault::Outage => world.lose_store(soon),
        PlannedFault::Failover => world.fail_over(chance.millis(0, 5_000)),
        PlannedFault::Silence => {
            if let Some(life) = world.nodes[number].life() {
                world.trace.note(format_args!("{} falls silent to the store for {soon:?}", life.name));
                life.hush(tokio::time::Instant::now() + soon);
            }
        }
    }
}
