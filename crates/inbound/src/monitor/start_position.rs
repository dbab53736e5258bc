//! Where watching a folder begins.
//!
//! The first cursor also remembers before when mail is not ours: where the server gives all UIDs anew, that tells the mail
//! that nobody asked for from the mail that nobody has seen. It is the server's own clock that is compared, never ours.

use std::time::Duration;

use postway_domain::{Time, inbound::Cursor, mailbox::Start};

use crate::imap::{Folder, Listed};
use crate::source::{OpenFolder, SourceError};

/// How many of the newest mails are asked for the date of the newest: they need not be in order.
const NEWEST_LOOKED_AT: u32 = 100;
/// Dates of mail have whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// The first cursor of a folder.
pub(super) async fn first_cursor(
    folder: &mut dyn OpenFolder,
    standing: Folder,
    start: Start,
) -> Result<Cursor, SourceError> {
    let end = standing.uid_next.saturating_sub(1);
    let (last_uid, not_before) = match start {
        Start::Beginning => (0, None),
        Start::Now => {
            let newest = dates(folder, standing, NEWEST_LOOKED_AT).await?.into_iter().max();
            // Later than all that is there, in whole seconds.
            (end, newest.map(|newest| newest.plus(SECOND)))
        }
        Start::Newest(count) => match folder.first_of_newest(count).await? {
            Some(_) if standing.exists <= count => (0, None),
            Some(first) => {
                let oldest = dates(folder, standing, count.min(NEWEST_LOOKED_AT)).await?.into_iter().min();
                (first.saturating_sub(1), oldest)
            }
            None => (end, None),
        },
        Start::Since(since) => match folder.first_since(since).await? {
            Some(first) => (first.saturating_sub(1), Some(since)),
            None => (end, Some(since)),
        },
        Start::AfterUid(uid) => (uid, first_date_after(folder, uid.min(end), standing).await?),
    };
    let uid_validity = standing.uid_validity;
    Ok(Cursor { uid_validity, last_uid: last_uid.min(end), not_before, old_through: end })
}

/// When the first mails with a higher UID came; where there are none, later than all that is there.
async fn first_date_after(
    folder: &mut dyn OpenFolder,
    uid: u32,
    standing: Folder,
) -> Result<Option<Time>, SourceError> {
    let end = standing.uid_next.saturating_sub(1);
    if uid < end {
        let page = folder.list(uid + 1, end, NEWEST_LOOKED_AT as usize).await?;
        if let Some(oldest) = page.mails.iter().filter_map(arrived_at).min() {
            return Ok(Some(oldest));
        }
    }
    let newest = dates(folder, standing, NEWEST_LOOKED_AT).await?.into_iter().max();
    Ok(newest.map(|newest| newest.plus(SECOND)))
}

/// When the newest mails came.
async fn dates(folder: &mut dyn OpenFolder, standing: Folder, count: u32) -> Result<Vec<Time>, SourceError> {
    let Some(first) = folder.first_of_newest(count).await? else { return Ok(Vec::new()) };
    let last = standing.uid_next.saturating_sub(1);
    let page = folder.list(first, last, count as usize).await?;
    Ok(page.mails.iter().filter_map(arrived_at).collect())
}

/// When the server took a mail.
pub(super) fn arrived_at(mail: &Listed) -> Option<Time> {
    mail.internal_date.map(|date| Time::from_millis(date.as_millisecond()))
}
