//! What mail that came in says about mail that went out.

use std::collections::HashSet;

use postway_domain::{EventKind, MessageUid, TenantId, Time, inbound::replaces_outcome};

use super::{stored_message::StoredMessage, tables::MemoryTables};
use crate::{
    inbound::{accepted_at, ends_waiting},
    record::{
        FindingOrigin, MessageFinding, NewReceipt, StoredBody, StoredReceipt, SuppressionOrigin,
        TracedMessage,
    },
};

impl MemoryTables {
    /// Writes what a mail or a reported event says.
    pub fn find(&mut self, source: MessageUid, origin: FindingOrigin, at: Time, findings: &[MessageFinding]) {
        let mut of_mail = HashSet::new();
        let is_told = |finding: &&MessageFinding| {
            let stored = self.messages.get(&finding.message);
            let mut events = stored.into_iter().flat_map(|stored| &stored.record.events);
            events.any(|event| finding.is_recorded(origin, source, event.kind, event.data.as_deref()))
        };
        // Its events from before this call: one report may name a recipient twice.
        let new: Vec<&MessageFinding> = findings.iter().filter(|finding| !is_told(finding)).collect();
        let mut suppressed = Vec::new();
        for finding in new {
            let uid = finding.message;
            if let Some(receipt) = &finding.receipt {
                let place = (uid, receipt.digest);
                let earlier = self.inbound.receipts.get(&place).map(|(view, _)| view.signature.as_str());
                if earlier.is_some_and(|kept| !receipt.improves_on(kept)) && !of_mail.contains(&place) {
                    continue;
                }
                of_mail.insert(place);
                if self.messages.contains_key(&uid) {
                    let view = kept(source, receipt);
                    let (there, _) = self
                        .inbound
                        .receipts
                        .entry(place)
                        .or_insert_with(|| (view.clone(), receipt.body.clone()));
                    (there.signature, there.detail) = (view.signature, view.detail);
                }
            }
            suppressed.extend(finding.suppress.clone());
            self.edit(uid, |stored| stored.hear(finding, (origin, source), at));
            if ends_waiting(finding.kind) && self.messages.contains_key(&uid) {
                self.inbound.waiting.remove(&uid);
            }
        }
        self.suppress(suppressed, SuppressionOrigin::Report, false);
    }

    pub fn traced(&self, uids: &[MessageUid]) -> Vec<TracedMessage> {
        let mut uids = uids.to_vec();
        uids.sort();
        uids.dedup();
        let of_message = |stored: &StoredMessage| TracedMessage {
            uid: stored.uid(),
            tenant: stored.record.summary.lane.tenant.clone(),
            created_at: stored.record.summary.created_at,
            recipients: stored.record.recipients.iter().map(|one| one.address.clone()).collect(),
            sender: stored.sender.clone(),
            gone: false,
        };
        let trace = |uid: MessageUid| {
            let (tenant, created_at) = (self.tombstones.get(&uid)?.tenant.clone(), accepted_at(uid));
            let (recipients, sender) = Default::default();
            Some(TracedMessage { uid, tenant, created_at, recipients, sender, gone: true })
        };
        uids.into_iter()
            .filter_map(|uid| self.messages.get(&uid).map(of_message).or_else(|| trace(uid)))
            .collect()
    }

    pub fn receipts(&self, tenant: &TenantId, uid: MessageUid) -> Vec<StoredReceipt> {
        let stored = self.messages.get(&uid).filter(|stored| stored.record.summary.lane.tenant == *tenant);
        let all =
            stored.into_iter().flat_map(|_| self.inbound.receipts.range((uid, [0; 32])..=(uid, [0xff; 32])));
        let mut receipts: Vec<StoredReceipt> = all.map(|(_, (receipt, _))| receipt.clone()).collect();
        receipts.sort_by_key(StoredReceipt::place);
        receipts
    }

    pub fn receipt_raw(&self, tenant: &TenantId, uid: MessageUid, digest: [u8; 32]) -> Option<StoredBody> {
        self.messages.get(&uid).filter(|stored| stored.record.summary.lane.tenant == *tenant)?;
        self.inbound.receipts.get(&(uid, digest)).map(|(_, body)| body.clone())
    }

    pub fn time_out_receipts(&mut self, now: Time, limit: u32) -> u32 {
        let due = self.inbound.waiting.iter().filter(|(_, until)| **until <= now);
        let mut due: Vec<(Time, MessageUid)> = due.map(|(uid, until)| (*until, *uid)).collect();
        due.sort();
        due.truncate(limit as usize);
        let mut late = 0;
        for (_, uid) in due {
            self.inbound.waiting.remove(&uid);
            late += u32::from(self.edit(uid, |stored| stored.time_out(now)) == Some(true));
        }
        late
    }
}

fn kept(inbound: MessageUid, receipt: &NewReceipt) -> StoredReceipt {
    StoredReceipt {
        digest: receipt.digest,
        inbound,
        kind: receipt.kind.clone(),
        address: receipt.address.clone(),
        at: receipt.at,
        signature: receipt.signature.to_owned(),
        detail: receipt.detail.clone(),
        size: receipt.body.len(),
    }
}

impl StoredMessage {
    fn hear(&mut self, finding: &MessageFinding, (origin, source): (FindingOrigin, MessageUid), at: Time) {
        self.happen(finding.kind, Some(finding.said_by(origin, source)), at);
        self.record.summary.updated_at = self.record.summary.updated_at.max(at);
        let position = finding.position.map(|position| position as usize);
        let Some(one) = position.and_then(|position| self.record.recipients.get_mut(position)) else {
            return;
        };
        if replaces_outcome(one.outcome, finding.kind) {
            one.outcome = Some(finding.kind);
            one.bounce = finding.bounce.clone().or(one.bounce.take());
        }
    }

    /// Notes that no receipt came in time; `false` where one did.
    fn time_out(&mut self, now: Time) -> bool {
        if self.record.events.iter().any(|event| ends_waiting(event.kind)) {
            return false;
        }
        self.happen(EventKind::PecTimeout, None, now);
        self.record.summary.updated_at = self.record.summary.updated_at.max(now);
        for one in &mut self.record.recipients {
            if replaces_outcome(one.outcome, EventKind::PecTimeout) {
                one.outcome = Some(EventKind::PecTimeout);
            }
        }
        true
    }
}
