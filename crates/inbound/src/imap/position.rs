//! Finds the mail at which reading begins.
//!
//! Mails are found by bisection over their order, never by a SEARCH over the whole folder. Sequence numbers
//! do not change between these commands: a server may not remove mails from a session's view while it answers
//! FETCH (RFC 3501 7.4.1).

use jiff::Timestamp;

use super::{
    command::ImapCommand,
    error::{ImapFault, MailboxError},
    response::{FetchResponse, ImapResponse},
    session::ImapSession,
};

/// How many neighbours are tried if a mail was removed meanwhile.
const NEIGHBOURS_MAX: u32 = 8;

/// The first mail that meets a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstMailSearch {
    /// It has this UID.
    At(u32),
    /// No mail meets the condition.
    Absent,
    /// The server did not answer for a mail that the bisection needed.
    Unknown,
}

impl ImapSession {
    /// The UID of the first of the newest `count` mails; `None` if the folder is empty.
    pub async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, MailboxError> {
        self.try_newest(count).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_newest(&mut self, count: u32) -> Result<Option<u32>, ImapFault> {
        if count == 0 || self.exists == 0 {
            return Ok(None);
        }
        let sequence_number = self.exists.saturating_sub(count - 1).max(1);
        match self.probe_near(sequence_number).await? {
            Some(mail) => Ok(mail.uid),
            None => Err(not_answered()),
        }
    }

    /// The UID of the first mail that arrived at `since` or later; `None` if there is no such mail.
    ///
    /// Assumes that mails are ordered by their dates. If somebody moved old mails into the folder, some older
    /// ones may follow the result, and some newer ones may precede it.
    pub async fn first_since(&mut self, since: Timestamp) -> Result<Option<u32>, MailboxError> {
        let found = self.bisect(|mail| mail.date.is_some_and(|date| date >= since)).await;
        let found = found.and_then(|sequence_number| match sequence_number {
            FirstMailSearch::At(uid) => Ok(Some(uid)),
            FirstMailSearch::Absent => Ok(None),
            FirstMailSearch::Unknown => Err(not_answered()),
        });
        found.map_err(|fault| fault.at(&self.server))
    }

    /// The first mail with this UID or a higher one.
    pub(super) async fn first_from(&mut self, uid: u32) -> Result<FirstMailSearch, ImapFault> {
        self.bisect(|mail| mail.uid.is_some_and(|found| found >= uid)).await
    }

    /// The first mail that is late, given that all mails behind it are late too.
    async fn bisect(
        &mut self,
        is_late: impl Fn(&FetchResponse) -> bool,
    ) -> Result<FirstMailSearch, ImapFault> {
        let (mut low, mut high) = (1, self.exists);
        let mut found = FirstMailSearch::Absent;
        while low <= high {
            let middle = low + (high - low) / 2;
            match self.probe_near(middle).await? {
                Some(mail) if is_late(&mail) => {
                    found = mail.uid.map_or(FirstMailSearch::Unknown, FirstMailSearch::At);
                    high = middle - 1;
                }
                Some(_) => low = middle + 1,
                None => return Ok(FirstMailSearch::Unknown),
            }
        }
        Ok(found)
    }

    /// UID and date of the mail with this sequence number, or of one close behind it.
    async fn probe_near(&mut self, sequence_number: u32) -> Result<Option<FetchResponse>, ImapFault> {
        for neighbour in sequence_number..=self.exists.min(sequence_number.saturating_add(NEIGHBOURS_MAX)) {
            if let Some(mail) = self.probe(neighbour).await? {
                return Ok(Some(mail));
            }
        }
        Ok(None)
    }

    /// UID and date of the mail with this sequence number; `None` if the server does not answer for it.
    pub(super) async fn probe(&mut self, sequence_number: u32) -> Result<Option<FetchResponse>, ImapFault> {
        let mut found = None;
        let command = ImapCommand::new(&format!("FETCH {sequence_number} (UID INTERNALDATE)"));
        self.run(command, |response| {
            if let ImapResponse::Mail(mail) = response
                && mail.sequence_number == u64::from(sequence_number)
                && mail.uid.is_some()
            {
                found = Some(FetchResponse {
                    sequence_number: mail.sequence_number,
                    uid: mail.uid,
                    date: mail.date,
                    ..FetchResponse::default()
                });
            }
        })
        .await?;
        Ok(found)
    }
}

fn not_answered() -> ImapFault {
    ImapFault::Refused {
        what: "a check of one mail",
        words: "it does not answer for mails that it lists".to_owned(),
    }
}
