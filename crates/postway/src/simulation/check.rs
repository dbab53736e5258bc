//! What every run must show, whatever went wrong in it.

use std::{collections::BTreeSet, time::Duration};

use postway_api::OperatorAction;
use postway_domain::{EventKind, MessageState, RecipientStatus, message::DoubtResolution};
use postway_store::{
    DirectoryStore as _, WorkStore as _,
    record::{DirectoryChange, MessageRecord},
};
use tokio::time::{Instant, sleep};

use super::{actors, history, relay::FIRST_PORT, world::SimulatedWorld};

/// How long everything may take to end once the faults are over: longer than the longest open circuit and the
/// longest wait for a limit.
const ENDS_WITHIN: Duration = Duration::from_secs(2 * 60 * 60);

/// After the faults: activates everything that was suspended, waits until only messages on hold are left, and
/// resolves them.
pub(super) async fn see_to_the_end(world: &SimulatedWorld) {
    let tenant = SimulatedWorld::tenant();
    let paused = world.store.suspensions(&tenant).await.expect("the store itself has no faults");
    for suspension in paused {
        let change = DirectoryChange::Activate(tenant.clone(), suspension.scope);
        world.store.change(change, None).await.expect("the store itself has no faults");
    }
    // A message that is sent again may come into doubt and on hold once more: then an operator resolves it.
    for words in [
        &[DoubtResolution::Sent, DoubtResolution::Failed, DoubtResolution::Resend][..],
        &[DoubtResolution::Sent, DoubtResolution::Failed],
    ] {
        wait_until(world, "rests", |record| {
            record.summary.state.status().is_final() || waits_for_a_word(record)
        })
        .await;
        for record in world.records().await.iter().filter(|record| waits_for_a_word(record)) {
            actors::ask(
                world,
                &world.store,
                record.summary.uid,
                OperatorAction::Resolve(*world.chance.pick(words)),
            )
            .await;
        }
    }
    wait_until(world, "ends", |record| record.summary.state.status().is_final()).await;
}

/// A doubt that is not settled by sending it again: `explain` says that it waits to be resolved.
fn waits_for_a_word(record: &MessageRecord) -> bool {
    record.summary.state == MessageState::InDoubt && record.summary.due_at.is_none()
}

async fn wait_until(world: &SimulatedWorld, what: &str, is_so: impl Fn(&MessageRecord) -> bool) {
    let deadline = Instant::now() + ENDS_WITHIN;
    loop {
        let records = world.records().await;
        let left: Vec<&MessageRecord> = records.iter().filter(|record| !is_so(record)).collect();
        if left.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            for record in left {
                let label = world.ledger().label(record.summary.uid);
                let (state, due_at) = (record.summary.state, record.summary.due_at);
                world.trace.violation(format_args!("{label} never {what}: {state:?}, due {due_at:?}"));
            }
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Stops every node, and checks the messages.
pub(super) async fn judge(world: &SimulatedWorld) {
    for node in &world.nodes {
        if !node.stop(world).await {
            world.trace.violation(format_args!("a node did not finish, and nothing was in its way"));
        }
    }
    let held = world.store.stalled(&[], world.now(), 1_000).await.expect("the store itself has no faults");
    for one in held {
        let label = world.ledger().label(one.uid);
        world.trace.violation(format_args!("{label} is still leased when everybody has gone"));
    }
    nothing_is_lost(world).await;
    for record in world.records().await {
        let label = world.ledger().label(record.summary.uid);
        if !history::is_possible(&record) {
            let (state, events) = (record.summary.state, history::event_names(&record));
            world.trace.violation(format_args!("{label} is {state:?}, which no path gives: {events}"));
        }
        if record.summary.error.as_deref().is_some_and(|error| error.contains("internal error")) {
            world.trace.violation(format_args!("{label} broke its courier"));
        }
        if world.plan.calm && record.events.iter().any(|event| event.kind == EventKind::InDoubt) {
            world.trace.violation(format_args!("{label} is doubted, and no answer was lost"));
        }
        recipients_are_what_the_relay_says(world, &label, &record);
    }
    limits_hold(world);
}

/// What was acknowledged is there, once.
async fn nothing_is_lost(world: &SimulatedWorld) {
    let known: Vec<_> = world.ledger().iter().map(|(uid, fate)| (uid, fate.clone())).collect();
    let mut labels = BTreeSet::new();
    for (uid, fate) in known {
        if !labels.insert(fate.label) {
            world.trace.violation(format_args!("m{} is stored twice", fate.label));
        }
        if world.record(uid).await.is_none() {
            world.trace.violation(format_args!("m{} is lost", fate.label));
        }
        if !fate.acknowledged {
            world.trace.violation(format_args!("m{} was never acknowledged", fate.label));
        }
    }
    if labels.len() != world.plan.messages {
        world.trace.violation(format_args!("{} of {} messages are there", labels.len(), world.plan.messages));
    }
}

/// `sent` means that the relay took it, and what it took is not called otherwise unless it was doubted.
fn recipients_are_what_the_relay_says(world: &SimulatedWorld, label: &str, record: &MessageRecord) {
    let uid = record.summary.uid;
    let doubted = record.events.iter().any(|event| event.kind == EventKind::InDoubt);
    let called_sent = world.ledger().fate(uid).is_some_and(|fate| fate.called_sent);
    for one in &record.recipients {
        let taken = world.seen().taken.contains_key(&(uid, one.address.clone()));
        let is_sent = one.status == RecipientStatus::Sent;
        if is_sent && !taken && !called_sent {
            world.trace.violation(format_args!("{label} is sent to {}, whom no relay took", one.address));
        }
        if taken && !is_sent && !doubted {
            let status = one.status;
            world.trace.violation(format_args!("{label} reached {} and says {status:?}", one.address));
        }
        if matches!(one.status, RecipientStatus::Pending | RecipientStatus::InDoubt) {
            world.trace.violation(format_args!("{label} has ended and {} is {:?}", one.address, one.status));
        }
    }
    let some_sent = record.recipients.iter().any(|one| one.status == RecipientStatus::Sent);
    if (record.summary.state == MessageState::Sent) != some_sent {
        let state = record.summary.state;
        world.trace.violation(format_args!("{label} is {state:?}, and some recipient sent: {some_sent}"));
    }
}

/// In no minute a relay saw more transactions than the account may begin, whatever the time of day was.
fn limits_hold(world: &SimulatedWorld) {
    if world.is_time_lost() {
        return;
    }
    let seen = world.seen();
    for (port, begun) in &seen.begun {
        let limit = world.account(*port).per_minute as usize;
        if limit == 0 {
            continue;
        }
        let mut begun = begun.clone();
        begun.sort_unstable();
        for (first, from) in begun.iter().enumerate() {
            let minute = *from + Duration::from_secs(60);
            let within = begun[first..].iter().take_while(|at| **at < minute).count();
            if within > limit {
                let account = port - FIRST_PORT;
                world.trace.violation(format_args!("a{account} began {within} in a minute, of {limit}"));
                return;
            }
        }
    }
}
