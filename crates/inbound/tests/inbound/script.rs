//! A folder without a server: mail that tests put in, and faults that they ask for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{Time, WatchedMailbox};
use postway_inbound::{
    FolderSource, OpenFolder, SourceError,
    imap::{FetchedContent, FetchedMail, FolderPage, FolderStatus, ListedMail},
};
use tokio::sync::{mpsc, watch};

/// The folder on the "server", shared by all sessions.
#[derive(Clone, Default)]
pub struct ScriptedServer {
    state: Arc<Mutex<State>>,
    /// Counts the changes: a server also reports what happened before a client waits.
    news: Arc<watch::Sender<u64>>,
}

pub struct State {
    pub uid_validity: u32,
    pub next: u32,
    pub mails: BTreeMap<u32, (Bytes, Time)>,
    /// The error of opening.
    pub closed: Option<SourceError>,
    /// After this many more answers every session breaks.
    pub breaks_after: Option<u32>,
    /// Mails that are listed and gone when they are fetched.
    pub vanishing: Vec<u32>,
    /// Mails that are listed with this size.
    pub claims_size: BTreeMap<u32, u64>,
    pub opened: u32,
    pub seen: Vec<u32>,
    pub moved: Vec<(u32, String)>,
    /// The error of marking and moving, and how often it occurs.
    pub refuses: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            uid_validity: 1,
            next: 1,
            mails: BTreeMap::new(),
            closed: None,
            breaks_after: None,
            vanishing: Vec::new(),
            claims_size: BTreeMap::new(),
            opened: 0,
            seen: Vec::new(),
            moved: Vec::new(),
            refuses: 0,
        }
    }
}

impl ScriptedServer {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Puts a mail in; returns its UID.
    pub fn deliver(&self, raw: impl Into<Vec<u8>>, at: Time) -> u32 {
        let mut state = self.state();
        let uid = state.next;
        state.next += 1;
        state.mails.insert(uid, (Bytes::from(raw.into()), at));
        drop(state);
        self.news.send_modify(|count| *count += 1);
        uid
    }

    /// Assigns new UIDs to all mail.
    pub fn renumber(&self) {
        let mut state = self.state();
        state.uid_validity += 1;
        let mails = std::mem::take(&mut state.mails);
        state.next = 1;
        for (_, mail) in mails {
            let uid = state.next;
            state.next += 1;
            state.mails.insert(uid, mail);
        }
        drop(state);
        self.news.send_modify(|count| *count += 1);
    }

    /// One more answer of the server, unless it has broken.
    async fn answer(&self) -> Result<(), SourceError> {
        // Answers come over a network: other tasks run meanwhile, and a crash may come.
        tokio::task::yield_now().await;
        match &mut self.state().breaks_after {
            Some(0) => Err(SourceError::passing("the connection broke")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl FolderSource for ScriptedServer {
    async fn open(&self, _: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError> {
        self.state().opened += 1;
        if let Some(error) = self.state().closed.clone() {
            return Err(error);
        }
        self.answer().await?;
        Ok(Box::new(Opened(self.clone(), self.news.subscribe())))
    }
}

struct Opened(ScriptedServer, watch::Receiver<u64>);

#[async_trait]
impl OpenFolder for Opened {
    async fn status(&mut self) -> Result<FolderStatus, SourceError> {
        self.0.answer().await?;
        self.1.mark_unchanged();
        let state = self.0.state();
        let exists = u32::try_from(state.mails.len()).unwrap();
        Ok(FolderStatus { uid_validity: state.uid_validity, uid_next: state.next, exists })
    }

    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<FolderPage, SourceError> {
        self.0.answer().await?;
        let state = self.0.state();
        let listed = |(uid, (raw, at)): (&u32, &(Bytes, Time))| ListedMail {
            uid: *uid,
            size: state.claims_size.get(uid).copied().unwrap_or(raw.len() as u64),
            internal_date: Some(jiff::Timestamp::from_second(at.as_seconds()).unwrap()),
        };
        let mails: Vec<ListedMail> = state.mails.range(first..=last).take(limit).map(listed).collect();
        let through = if mails.len() == limit { mails[limit - 1].uid } else { last };
        Ok(FolderPage { mails, through })
    }

    async fn fetch(
        &mut self,
        mails: &[ListedMail],
        mail_bytes_max: usize,
        out: mpsc::Sender<FetchedMail>,
    ) -> Result<(), SourceError> {
        for mail in mails {
            self.0.answer().await?;
            let content = {
                let state = self.0.state();
                match state.mails.get(&mail.uid) {
                    Some(_) if state.vanishing.contains(&mail.uid) => FetchedContent::Gone,
                    Some((raw, _)) if raw.len() > mail_bytes_max => {
                        FetchedContent::TooLarge { size: raw.len() as u64 }
                    }
                    Some(_) if mail.size > mail_bytes_max as u64 => {
                        FetchedContent::TooLarge { size: mail.size }
                    }
                    Some((raw, _)) => FetchedContent::Mail(raw.clone()),
                    None => FetchedContent::Gone,
                }
            };
            out.send(FetchedMail { uid: mail.uid, content })
                .await
                .map_err(|_| SourceError::passing("cut"))?;
        }
        Ok(())
    }

    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError> {
        self.0.answer().await?;
        Ok(self.0.state().mails.keys().rev().take(count as usize).last().copied())
    }

    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError> {
        self.0.answer().await?;
        Ok(self.0.state().mails.iter().find(|(_, (_, at))| *at >= since).map(|(uid, _)| *uid))
    }

    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError> {
        tokio::select! {
            _ = self.1.changed() => {}
            () = tokio::time::sleep(poll) => {}
        }
        self.0.answer().await
    }

    async fn mark_seen(&mut self, uid: u32) -> Result<(), SourceError> {
        self.refused()?;
        self.0.answer().await?;
        self.0.state().seen.push(uid);
        Ok(())
    }

    async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), SourceError> {
        self.refused()?;
        self.0.answer().await?;
        self.0.state().moved.push((uid, folder.to_owned()));
        Ok(())
    }

    async fn close(self: Box<Self>) {}
}

impl Opened {
    fn refused(&self) -> Result<(), SourceError> {
        let mut state = self.0.state();
        if state.refuses == 0 {
            return Ok(());
        }
        state.refuses -= 1;
        Err(SourceError { message: "the folder is not there".to_owned(), is_setup: true, is_usable: true })
    }
}

/// A server on which some mailboxes misbehave, by their names; the others are scripted.
#[derive(Clone)]
pub struct MixedSource {
    pub mail_server: ScriptedServer,
    /// How many mailboxes of misbehaving servers are open.
    open: Arc<watch::Sender<usize>>,
}

impl MixedSource {
    pub fn new(mail_server: ScriptedServer) -> Self {
        Self { mail_server, open: Arc::default() }
    }

    /// Waits until at least this many mailboxes of misbehaving servers are open.
    pub async fn opened(&self, count: usize) {
        self.open.subscribe().wait_for(|open| *open >= count).await.unwrap();
    }
}

#[async_trait]
impl FolderSource for MixedSource {
    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError> {
        let name = mailbox.id.as_str();
        let Some(kind) =
            ["endless", "silent", "chatty", "idle"].into_iter().find(|kind| name.starts_with(kind))
        else {
            return self.mail_server.open(mailbox).await;
        };
        self.open.send_modify(|open| *open += 1);
        Ok(Box::new(Misbehaving { kind, open: self.open.clone() }))
    }
}

/// `endless` always has one more page; `silent` never answers again; `chatty` has nothing and always reports
/// news; `idle` has nothing and never reports anything.
struct Misbehaving {
    kind: &'static str,
    open: Arc<watch::Sender<usize>>,
}

impl Drop for Misbehaving {
    fn drop(&mut self) {
        self.open.send_modify(|open| *open -= 1);
    }
}

impl Misbehaving {
    async fn answer(&self) {
        match self.kind {
            "silent" => std::future::pending().await,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

#[async_trait]
impl OpenFolder for Misbehaving {
    async fn status(&mut self) -> Result<FolderStatus, SourceError> {
        self.answer().await;
        let uid_next = if self.kind == "endless" { u32::MAX } else { 1 };
        Ok(FolderStatus { uid_validity: 1, uid_next, exists: 0 })
    }

    async fn list(&mut self, first: u32, _: u32, _: usize) -> Result<FolderPage, SourceError> {
        self.answer().await;
        Ok(FolderPage { mails: Vec::new(), through: first })
    }

    async fn fetch(
        &mut self,
        _: &[ListedMail],
        _: usize,
        _: mpsc::Sender<FetchedMail>,
    ) -> Result<(), SourceError> {
        self.answer().await;
        Ok(())
    }

    async fn first_of_newest(&mut self, _: u32) -> Result<Option<u32>, SourceError> {
        self.answer().await;
        Ok(None)
    }

    async fn first_since(&mut self, _: Time) -> Result<Option<u32>, SourceError> {
        self.answer().await;
        Ok(None)
    }

    async fn wait(&mut self, _: Duration) -> Result<(), SourceError> {
        if self.kind == "idle" {
            std::future::pending::<()>().await;
        }
        self.answer().await;
        Ok(())
    }

    async fn mark_seen(&mut self, _: u32) -> Result<(), SourceError> {
        std::future::pending().await
    }

    async fn move_to(&mut self, _: u32, _: &str) -> Result<(), SourceError> {
        std::future::pending().await
    }

    async fn close(self: Box<Self>) {}
}
