//! The terms on which a transaction may lease: what is suspended, what is suppressed, what is left of limits.

use postway_domain::Lane;

use crate::{
    allowance::Allowances,
    directory::{Gates, Suppressed},
    handover::HandOver,
    record::{AccountKey, AccountWant, Claimed, Lease, NewMessage, Permit},
};

/// Read once per transaction, and used up by it.
#[derive(Default)]
pub(crate) struct Terms {
    pub gates: Gates,
    pub suppressed: Suppressed,
    pub allowances: Allowances,
}

impl Terms {
    /// A slot of a standing claim, with its permit, for a message that may go at once.
    pub fn take_slot(
        &mut self,
        handover: &HandOver,
        message: &NewMessage,
    ) -> Option<(Lease, Option<Permit>)> {
        let key = AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() };
        if !self.gates.pass(&message.lane) || self.allowances.left(&key) == 0 {
            return None;
        }
        let lease = handover.take(&key, message.created_at)?;
        // Something is left, so this cannot fail.
        let permit = self.allowances.take(&key).unwrap_or_default();
        Some((lease, permit))
    }

    /// Whether a lane may be claimed from.
    pub fn pass(&self, lane: &Lane) -> bool {
        self.gates.pass(lane)
    }

    /// Gives claimed messages their sender and their permits, as far as they go; the rest is over the limit.
    pub fn permit(&mut self, want: &AccountWant, claimed: &mut [Claimed]) {
        let sender = want.sender();
        for one in claimed {
            one.via = want.via.clone();
            match self.allowances.take(&sender) {
                Ok(permit) => one.permit = permit,
                Err(_) => one.over_limit = true,
            }
        }
    }

    /// Takes suppressed recipients out of what was claimed.
    pub fn suppress(&self, claimed: &mut [Claimed]) {
        for one in claimed {
            let is_suppressed = |address: &str| self.suppressed.contains(&one.lane.tenant, address);
            let out: Vec<u32> = one
                .recipients
                .iter()
                .filter(|recipient| is_suppressed(recipient.address.as_str()))
                .map(|recipient| recipient.position)
                .collect();
            one.recipients.retain(|recipient| !out.contains(&recipient.position));
            one.suppressed = out;
        }
    }
}
