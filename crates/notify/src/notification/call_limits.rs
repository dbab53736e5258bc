//! How long a call may take and how much it may carry, for each kind of subscriber.

use std::time::Duration;

/// The longest call to a webhook.
pub(crate) const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest call to a callback.
pub(crate) const CALLBACK_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest call to a client sync.
pub(crate) const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest call of any kind.
pub(crate) const CALL_MAX: Duration = SYNC_TIMEOUT;
/// The most messages that one callback carries.
pub(crate) const CALLBACK_MESSAGES_MAX: usize = 50;
/// The most entries that one client sync carries.
pub(crate) const SYNC_ENTRIES_MAX: usize = 200;
