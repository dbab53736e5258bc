//! Where watching a folder begins.
//!
//! The first cursor also stores the date before which mail is ignored: if the server assigns new UIDs, this
//! separates the mail from before the watch from mail that is new. Only dates of the server are compared,
//! never the local clock.

use std::time::Duration;

use postway_domain::{Time, inbound::FolderCursor, mailbox::WatchStart};

use crate::imap::{FolderStatus, ListedMail};
use crate::source::{OpenFolder, SourceError};

/// How many of the newest mails are asked for their dates: they need not be in order.
const NEWEST_LOOKED_AT: u32 = 100;
/// Dates of mail have a resolution of one second.
const SECOND: Duration = Duration::from_secs(1);

/// The first cursor of a folder.
pub(super) async fn first_cursor(
    folder: &mut dyn OpenFolder,
    folder_status: FolderStatus,
    start: WatchStart,
) -> Result<FolderCursor, SourceError> {
    let end = folder_status.uid_next.saturating_sub(1);
    let (last_uid, not_before) = match start {
        WatchStart::Beginning => (0, None),
        WatchStart::Now => {
            let newest = dates(folder, folder_status, NEWEST_LOOKED_AT).await?.into_iter().max();
            // Later than all mail in the folder.
            (end, newest.map(|newest| newest.plus(SECOND)))
        }
        WatchStart::Newest(count) => match folder.first_of_newest(count).await? {
            Some(_) if folder_status.exists <= count => (0, None),
            Some(first) => {
                let oldest =
                    dates(folder, folder_status, count.min(NEWEST_LOOKED_AT)).await?.into_iter().min();
                (first.saturating_sub(1), oldest)
            }
            None => (end, None),
        },
        WatchStart::Since(since) => match folder.first_since(since).await? {
            Some(first) => (first.saturating_sub(1), Some(since)),
            None => (end, Some(since)),
        },
        WatchStart::AfterUid(uid) => (uid, first_date_after(folder, uid.min(end), folder_status).await?),
    };
    let uid_validity = folder_status.uid_validity;
    Ok(FolderCursor { uid_validity, last_uid: last_uid.min(end), not_before, old_through: end })
}

/// The date of the first mails with a higher UID; if there are none, a time later than all mail in the
/// folder.
async fn first_date_after(
    folder: &mut dyn OpenFolder,
    uid: u32,
    folder_status: FolderStatus,
) -> Result<Option<Time>, SourceError> {
    let end = folder_status.uid_next.saturating_sub(1);
    if uid < end {
        let page = folder.list(uid + 1, end, NEWEST_LOOKED_AT as usize).await?;
        if let Some(oldest) = page.mails.iter().filter_map(arrived_at).min() {
            return Ok(Some(oldest));
        }
    }
    let newest = dates(folder, folder_status, NEWEST_LOOKED_AT).await?.into_iter().max();
    Ok(newest.map(|newest| newest.plus(SECOND)))
}

/// The dates of the newest mails.
async fn dates(
    folder: &mut dyn OpenFolder,
    folder_status: FolderStatus,
    count: u32,
) -> Result<Vec<Time>, SourceError> {
    let Some(first) = folder.first_of_newest(count).await? else { return Ok(Vec::new()) };
    let last = folder_status.uid_next.saturating_sub(1);
    let page = folder.list(first, last, count as usize).await?;
    Ok(page.mails.iter().filter_map(arrived_at).collect())
}

/// When the mail arrived on the server.
pub(super) fn arrived_at(mail: &ListedMail) -> Option<Time> {
    mail.internal_date.map(|date| Time::from_millis(date.as_millisecond()))
}
