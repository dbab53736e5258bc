//! Bulk actions: one action on many messages, done slice by slice.

use postway_domain::{MessageUid, TenantId, Time, id::BulkActionId};

use super::{
    change::MessageChange,
    directory::{AuditEntry, SuppressionRecord},
};

/// The state of a bulk action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BulkActionState {
    /// It goes on, slice by slice.
    Running = 1,
    /// It has been to every message.
    Finished = 2,
    /// An operator ended it before that.
    Stopped = 3,
}

impl BulkActionState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Running, Self::Finished, Self::Stopped];

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }

    /// The code that is stored.
    pub(crate) fn code(self) -> i64 {
        self as i64
    }

    /// The state with this stored code.
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// An action on many messages, and how far it is. It goes from the newest message to the oldest; whatever it
/// has done to a message is one transaction with having been there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkAction {
    /// The tenant whose messages it is for.
    pub tenant: TenantId,
    /// Its id; later ones are greater.
    pub id: BulkActionId,
    /// Its state.
    pub state: BulkActionState,
    /// What to do, and to which messages, as a JSON object. The store does not read it.
    pub task: String,
    /// The messages, the newest first, if they were selected one by one; otherwise `task` has a filter.
    pub selected: Vec<MessageUid>,
    /// Who requested it, as in the audit log.
    pub actor: String,
    /// The message before which the next slice begins.
    pub reached: Option<MessageUid>,
    /// Messages of earlier slices that changed while they were decided about; they are tried once more.
    pub again: Vec<MessageUid>,
    /// The number of matching messages at the beginning.
    pub expected: i64,
    /// Whether there may have been more.
    pub expected_more: bool,
    /// The number of messages that it was done to.
    pub changed: i64,
    /// The number of messages that were left as they are, because their state does not admit it.
    pub skipped: i64,
    /// Its version.
    pub version: i64,
    /// When it was requested.
    pub created_at: Time,
    /// When its last slice was done.
    pub updated_at: Time,
    /// When it was finished or stopped.
    pub ended_at: Option<Time>,
}

impl BulkAction {
    /// The most bulk actions of a tenant that may be running.
    pub const RUNNING_MAX: u32 = 20;
    /// How long an ended one is listed.
    pub const KEPT_DAYS: u32 = 30;
}

/// A slice of a bulk action: all of it is one transaction.
#[derive(Clone, Debug)]
pub struct BulkStep {
    /// The tenant.
    pub tenant: TenantId,
    /// The bulk action.
    pub id: BulkActionId,
    /// The version that was read. If it is another by now, nothing is written.
    pub version: i64,
    /// The message before which the next slice begins.
    pub reached: Option<MessageUid>,
    /// The changes of messages. Those whose fence does not match are tried again in a later slice, or counted
    /// as skipped.
    pub changes: Vec<MessageChange>,
    /// Whether such messages are tried again.
    pub tries_again: bool,
    /// Addresses to suppress; a suppression that lasts longer stays.
    pub suppressed: Vec<SuppressionRecord>,
    /// The number of messages that are done without a change of their own.
    pub done: i64,
    /// The number of messages that the action does not apply to.
    pub skipped: i64,
    /// The audit entry of the end, if this is the last slice. It is not the last if messages are to be tried
    /// again.
    pub ends: Option<AuditEntry>,
    /// The current time.
    pub at: Time,
}
