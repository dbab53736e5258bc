//! Deletes copies whose time is over: first the object, then the row that names it.
//!
//! A crash in between deletes the object once more, which is nothing. A copy that was stored again meanwhile
//! keeps its row.

use postway_store::{Store, StoreError, blob::BlobStorage, record::DirectoryChange};

use postway_domain::Time;

/// The most copies of one round.
const ROUND_COPIES: u32 = 200;

/// Deletes some; whether there may be more.
pub(crate) async fn delete_expired(
    store: &dyn Store,
    depot: &BlobStorage,
    now: Time,
) -> Result<bool, StoreError> {
    let expired = store.expired_archive(now, ROUND_COPIES).await?;
    let is_full = expired.len() == ROUND_COPIES as usize;
    for mail in expired {
        depot.delete_object(&mail.path).await?;
        store.change(DirectoryChange::ForgetArchived(mail), None).await?;
    }
    Ok(is_full)
}
