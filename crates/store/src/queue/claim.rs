//! Claiming, the same for every database: which lanes, how many of each, and for which recipients.
//!
//! Each database provides [`DueWork`]: finding due lanes, leasing from one, and reading what belongs to the
//! leased messages.

use std::collections::HashMap;

use async_trait::async_trait;
use postway_domain::{
    DestinationGroup, DestinationRoom, Lane, LaneId, MessageUid, RecipientStatus, Time,
    fairness::{self, DueLane},
    id::BatchCode,
};

use crate::{
    admin::suspended_batches,
    error::StoreError,
    queue::{
        lease_conditions::{LeaseConditions, remainder},
        transaction::{StandingCapacity, WriteTransaction},
    },
    record::{AccountKey, AccountWant, ClaimRequest, ClaimedMessage, ClaimedRecipient},
};

/// The number of lanes whose batches are looked up at once: mostly the first few fill the capacity.
const LANES_ASKED: usize = 128;

/// A lane of an account with work due now, and the words of it that are its own.
pub(crate) struct DueLaneWords {
    pub due: DueLane,
    pub batch: Option<BatchCode>,
    pub destination: Option<DestinationGroup>,
}

/// A recipient that is sent, pending or in doubt.
pub(crate) struct OpenRecipient {
    pub uid: MessageUid,
    pub status: RecipientStatus,
    pub recipient: ClaimedRecipient,
}

/// The tables of due work, inside the claim's transaction.
#[async_trait]
pub(crate) trait DueWork: Send {
    /// The account's lanes with work due now.
    async fn due_lanes(&mut self, key: &AccountKey, now: Time) -> Result<Vec<DueLaneWords>, StoreError>;

    /// Finds and locks up to `limit` due messages of a lane, as they will be once [`DueWork::parts`] has
    /// leased them; their recipients come with that.
    async fn find_in(
        &mut self,
        request: &ClaimRequest,
        id: LaneId,
        lane: &Lane,
        limit: u32,
    ) -> Result<Vec<ClaimedMessage>, StoreError>;

    /// Whether the next message of an ordered lane may be taken: none of it is leased. Locks the lane until
    /// the transaction ends, so that only one of two nodes finds it free.
    async fn is_free(&mut self, id: LaneId, lane: &Lane) -> Result<bool, StoreError>;

    /// Leases the messages found, with events, and reads what belongs to them: recipients in order, and
    /// whatever else is missing.
    async fn parts(
        &mut self,
        request: &ClaimRequest,
        claimed: &mut [ClaimedMessage],
    ) -> Result<Vec<OpenRecipient>, StoreError>;
}

pub(crate) async fn claim(
    work: &mut (impl DueWork + WriteTransaction),
    request: &ClaimRequest,
    terms: &mut LeaseConditions,
) -> Result<Vec<ClaimedMessage>, StoreError> {
    let mut claimed = Vec::new();
    for want in &request.wants {
        let room = terms.room(want);
        let mut destinations = want.destinations.clone();
        let mut taken = claim_for(work, request, want, room, &mut destinations, terms).await?;
        if want.park {
            let want = AccountWant { destinations, ..remainder(want, room, taken.len()) };
            work.after().parked.push(StandingCapacity { want, lease: request.lease, now: request.now });
        }
        terms.permit(want, &mut taken);
        claimed.extend(taken);
    }
    if !claimed.is_empty() {
        work.after().wrote = true;
        let recipients = work.parts(request, &mut claimed).await?;
        assign(&mut claimed, recipients);
    }
    Ok(claimed)
}

/// Leases for one account, as far as its capacity and limits allow, and those of the receiving domains.
async fn claim_for(
    work: &mut (impl DueWork + WriteTransaction),
    request: &ClaimRequest,
    want: &AccountWant,
    room: u32,
    destinations: &mut DestinationRoom,
    terms: &mut LeaseConditions,
) -> Result<Vec<ClaimedMessage>, StoreError> {
    if room == 0 {
        return Ok(Vec::new());
    }
    let mut words: HashMap<LaneId, DueLaneWords> = HashMap::new();
    let mut due = Vec::new();
    for lane in work.due_lanes(&want.key, request.now).await? {
        due.push(lane.due);
        words.insert(lane.due.lane, lane);
    }
    fairness::order(&mut due, request.now);
    let mut claimed: Vec<ClaimedMessage> = Vec::new();
    for (index, DueLane { lane: id, priority, .. }) in due.iter().enumerate() {
        let (id, priority) = (*id, *priority);
        let left = room - claimed.len() as u32;
        if left == 0 {
            break;
        }
        if index % LANES_ASKED == 0 {
            let next =
                due[index..].iter().take(LANES_ASKED).filter_map(|due| words.get(&due.lane)?.batch.as_ref());
            suspended_batches(&mut *work.session()?, &want.key.tenant, next, &mut terms.gates).await?;
        }
        let (batch, destination) =
            words.remove(&id).map(|words| (words.batch, words.destination)).unwrap_or_default();
        let lane = Lane {
            tenant: want.key.tenant.clone(),
            account: want.key.account.clone(),
            priority,
            batch,
            destination,
        };
        if !terms.pass(&lane) {
            continue;
        }
        let destination = lane.destination.as_ref();
        let left_there = destinations.of(destination);
        if left_there == 0 {
            continue;
        }
        let limit = match lane.is_ordered() {
            true if !work.is_free(id, &lane).await? => continue,
            true => 1,
            false => left.min(left_there),
        };
        let found = work.find_in(request, id, &lane, limit).await?;
        match found.len() as u32 {
            // What is left in the lane comes before newer mail.
            taken if taken >= left_there => destinations.close(destination),
            taken => destinations.take(destination, taken),
        }
        claimed.extend(found);
    }
    Ok(claimed)
}

/// An attempt is for the recipients still pending; when none is, for those in doubt.
fn assign(claimed: &mut [ClaimedMessage], recipients: Vec<OpenRecipient>) {
    #[derive(Default)]
    struct Parts {
        pending: Vec<ClaimedRecipient>,
        doubtful: Vec<ClaimedRecipient>,
        sent: u32,
    }
    let mut parts: HashMap<MessageUid, Parts> = HashMap::with_capacity(claimed.len());
    for OpenRecipient { uid, status, recipient } in recipients {
        let of_message = parts.entry(uid).or_default();
        match status {
            RecipientStatus::Pending => of_message.pending.push(recipient),
            RecipientStatus::InDoubt => of_message.doubtful.push(recipient),
            RecipientStatus::Sent => of_message.sent += 1,
            RecipientStatus::Failed
            | RecipientStatus::Suppressed
            | RecipientStatus::Cancelled
            | RecipientStatus::Expired
            | RecipientStatus::Captured => {}
        }
    }
    for one in claimed {
        let Parts { pending, doubtful, sent } = parts.remove(&one.uid).unwrap_or_default();
        one.sent_before = sent;
        if pending.is_empty() {
            one.resend = !doubtful.is_empty();
            one.recipients = doubtful;
        } else {
            one.doubtful_before = doubtful.len() as u32;
            one.recipients = pending;
        }
    }
}
