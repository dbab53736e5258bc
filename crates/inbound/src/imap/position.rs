//! Places in a folder: where to begin reading.
//!
//! Found by the mails' order, one at a time, never by a search over all of them. Places stay what they are between these
//! commands: a server may not remove mails from a session's view while it answers FETCH (RFC 3501 7.4.1).

use jiff::Timestamp;

use super::{
    command::Command,
    error::{Fault, MailboxError},
    response::{Mail, Response},
    session::Session,
};

/// How many neighbours are asked where a mail was removed meanwhile.
const NEIGHBOURS_MAX: u32 = 8;

/// Where the first mail of some kind is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It has this UID.
    At(u32),
    /// There is none.
    Nowhere,
    /// The server did not tell of a mail that was asked for on the way.
    Unknown,
}

impl Session {
    /// The UID of the first of the newest `count` mails; `None` where there is none.
    pub async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, MailboxError> {
        self.try_newest(count).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_newest(&mut self, count: u32) -> Result<Option<u32>, Fault> {
        if count == 0 || self.exists == 0 {
            return Ok(None);
        }
        let place = self.exists.saturating_sub(count - 1).max(1);
        match self.probe_near(place).await? {
            Some(mail) => Ok(mail.uid),
            None => Err(untold()),
        }
    }

    /// The UID of the first mail that came at `since` or later; `None` where there is none.
    ///
    /// Takes the mails for ordered by their dates, as they are unless somebody moved old ones in: then some from before may
    /// be behind the place found, and some from after it in front of it.
    pub async fn first_since(&mut self, since: Timestamp) -> Result<Option<u32>, MailboxError> {
        let found = self.halve(|mail| mail.date.is_some_and(|date| date >= since)).await;
        let found = found.and_then(|place| match place {
            Place::At(uid) => Ok(Some(uid)),
            Place::Nowhere => Ok(None),
            Place::Unknown => Err(untold()),
        });
        found.map_err(|fault| fault.at(&self.server))
    }

    /// Where the first mail of this UID or a higher one is.
    pub(super) async fn first_from(&mut self, uid: u32) -> Result<Place, Fault> {
        self.halve(|mail| mail.uid.is_some_and(|found| found >= uid)).await
    }

    /// Where the first mail is that is late, all behind it being late too.
    async fn halve(&mut self, is_late: impl Fn(&Mail) -> bool) -> Result<Place, Fault> {
        let (mut low, mut high) = (1, self.exists);
        let mut found = Place::Nowhere;
        while low <= high {
            let middle = low + (high - low) / 2;
            match self.probe_near(middle).await? {
                Some(mail) if is_late(&mail) => {
                    found = mail.uid.map_or(Place::Unknown, Place::At);
                    high = middle - 1;
                }
                Some(_) => low = middle + 1,
                None => return Ok(Place::Unknown),
            }
        }
        Ok(found)
    }

    /// UID and date of the mail at this place, or of one close behind it.
    async fn probe_near(&mut self, place: u32) -> Result<Option<Mail>, Fault> {
        for neighbour in place..=self.exists.min(place.saturating_add(NEIGHBOURS_MAX)) {
            if let Some(mail) = self.probe(neighbour).await? {
                return Ok(Some(mail));
            }
        }
        Ok(None)
    }

    /// UID and date of the mail at this place; `None` where the server tells of none.
    pub(super) async fn probe(&mut self, place: u32) -> Result<Option<Mail>, Fault> {
        let mut found = None;
        let command = Command::new(&format!("FETCH {place} (UID INTERNALDATE)"));
        self.run(command, |response| {
            if let Response::Mail(mail) = response
                && mail.place == u64::from(place)
                && mail.uid.is_some()
            {
                found = Some(Mail { place: mail.place, uid: mail.uid, date: mail.date, ..Mail::default() });
            }
        })
        .await?;
        Ok(found)
    }
}

fn untold() -> Fault {
    Fault::Refused {
        what: "a look at one mail",
        words: "it tells nothing of mails that it says are there".to_owned(),
    }
}
