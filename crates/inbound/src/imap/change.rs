//! The changes that rules make in a mailbox: marking mail as seen and moving it.

use super::{
    command::ImapCommand,
    error::{ImapFault, MailboxError},
    response::StatusKind,
    session::ImapSession,
    utf7,
};

impl ImapSession {
    /// Marks a mail as seen. Does nothing if the mail is gone.
    pub async fn mark_seen(&mut self, uid: u32) -> Result<(), MailboxError> {
        let command = ImapCommand::new(&format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)"));
        self.must("marking a mail as seen", command, |_| {}).await.map_err(|fault| fault.at(&self.server))
    }

    /// Moves a mail to another folder, which must exist. Does nothing if the mail is gone.
    ///
    /// If the server has no MOVE, the mail is copied and then removed; a crash between the two leaves it in
    /// both folders. If the server cannot remove a single mail either, the mail stays behind marked as
    /// deleted: expunging the folder would remove every mail that somebody marked.
    pub async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), MailboxError> {
        self.try_move(uid, folder).await.map_err(|fault| fault.at(&self.server))
    }

    async fn try_move(&mut self, uid: u32, folder: &str) -> Result<(), ImapFault> {
        utf7::check(folder)?;
        let verb = if self.offered.moves { "MOVE" } else { "COPY" };
        let done = self.run(ImapCommand::new(&format!("UID {verb} {uid}")).folder(folder), |_| {}).await?;
        match done.kind {
            StatusKind::Ok => {}
            StatusKind::No if done.code.starts_with("TRYCREATE") || done.code.starts_with("NONEXISTENT") => {
                return Err(ImapFault::NoFolder { folder: folder.to_owned(), words: done.words });
            }
            StatusKind::No | StatusKind::Bad | StatusKind::Bye | StatusKind::Preauth => {
                return Err(done.refused("moving a mail"));
            }
        }
        if self.offered.moves {
            return Ok(());
        }
        let delete = ImapCommand::new(&format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)"));
        self.must("removing a moved mail", delete, |_| {}).await?;
        if self.offered.uidplus {
            let expunge = ImapCommand::new(&format!("UID EXPUNGE {uid}"));
            self.must("removing a moved mail", expunge, |_| {}).await?;
        }
        Ok(())
    }
}
