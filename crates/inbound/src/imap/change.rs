//! What we change in a mailbox: marking and moving, because a rule says so.

use super::{
    command::Command,
    error::{Fault, MailboxError},
    response::Kind,
    session::Session,
    utf7,
};

impl Session {
    /// Marks a mail as seen. One that is gone stays gone.
    pub async fn mark_seen(&mut self, uid: u32) -> Result<(), MailboxError> {
        let command = Command::new(&format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)"));
        self.must("marking a mail as seen", command, |_| {}).await.map_err(|fault| fault.at(&self.server))
    }

    /// Moves a mail to another folder, which must be there. One that is gone stays gone.
    ///
    /// Where the server has no MOVE the mail is copied and then removed; a crash between the two leaves it in both. Where
    /// it cannot remove one mail alone either, the mail stays behind marked as deleted: to remove it would remove
    /// whatever else somebody marked.
    pub async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), MailboxError> {
        self.try_move(uid, folder).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_move(&mut self, uid: u32, folder: &str) -> Result<(), Fault> {
        utf7::check(folder)?;
        let verb = if self.offered.moves { "MOVE" } else { "COPY" };
        let done = self.run(Command::new(&format!("UID {verb} {uid}")).folder(folder), |_| {}).await?;
        match done.kind {
            Kind::Ok => {}
            Kind::No if done.code.starts_with("TRYCREATE") || done.code.starts_with("NONEXISTENT") => {
                return Err(Fault::NoFolder { folder: folder.to_owned(), words: done.words });
            }
            Kind::No | Kind::Bad | Kind::Bye | Kind::Preauth => return Err(done.refused("moving a mail")),
        }
        if self.offered.moves {
            return Ok(());
        }
        let delete = Command::new(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)"));
        self.must("removing a moved mail", delete, |_| {}).await?;
        if self.offered.uidplus {
            let expunge = Command::new(&format!("UID EXPUNGE {uid}"));
            self.must("removing a moved mail", expunge, |_| {}).await?;
        }
        Ok(())
    }
}
