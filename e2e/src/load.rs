//! A load: clients that post mail through whichever gateway answers, and remember what was acknowledged.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{Client, mail, text};

/// Between two mails of one client: a load, not a flood, so that the checks at the end stay short.
const PACE: Duration = Duration::from_millis(20);

/// A mail that was acknowledged to a client.
#[derive(Debug)]
pub struct Acknowledged {
    /// The client's name for it.
    pub id: String,
    /// The gateway's uid.
    pub uid: String,
}

/// Clients that post mail until they are stopped.
pub struct Load {
    stop: watch::Sender<bool>,
    clients: JoinSet<anyhow::Result<Vec<Acknowledged>>>,
    refusals: Arc<AtomicUsize>,
    acknowledged: Arc<AtomicUsize>,
}

impl Load {
    /// How many there are; each has one mail under way.
    pub const CLIENTS: usize = 5;

    /// Starts clients that turn to another of these gateways when one is dead. A refusal is a fault, but for
    /// a 503 where one `may_refuse`: then the client turns to another, or comes back.
    pub fn start(gateways: &[Client], may_refuse: bool) -> Self {
        let endless = |name| (0..).map(move |n| mail(&format!("client{name}-{n}"), "ada@example.net"));
        Self::spawn(gateways, may_refuse, endless)
    }

    /// Starts clients that post these mails, each until it is acknowledged.
    pub fn of(gateways: &[Client], mails: &[Value]) -> Self {
        let share =
            |name| mails.iter().skip(name).step_by(Self::CLIENTS).cloned().collect::<Vec<_>>().into_iter();
        Self::spawn(gateways, false, share)
    }

    fn spawn<I>(gateways: &[Client], may_refuse: bool, mails_of: impl Fn(usize) -> I) -> Self
    where
        I: Iterator<Item = Value> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let (refusals, acknowledged) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut clients = JoinSet::new();
        for name in 0..Self::CLIENTS {
            let poster = Poster {
                gateways: gateways.to_vec(),
                turn: name,
                may_refuse,
                refusals: refusals.clone(),
                acknowledged: acknowledged.clone(),
            };
            clients.spawn(poster.run(mails_of(name), stopped.clone()));
        }
        Self { stop, clients, refusals, acknowledged }
    }

    /// How many posts were refused so far.
    pub fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// How many mails were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until `count` mails were acknowledged.
    pub async fn wait_for(&self, count: usize) -> anyhow::Result<()> {
        let left = async || Ok(count.saturating_sub(self.acknowledged()));
        crate::all_done(&format!("{count} mails to be acknowledged"), crate::PATIENCE, left).await
    }

    /// Lets each client finish its mail, and gives what was acknowledged to all of them.
    pub async fn stop(self) -> anyhow::Result<Vec<Acknowledged>> {
        self.stop.send_replace(true);
        self.finish().await
    }

    /// The same once each client has posted all its mails. One whose mails have no end is to be stopped.
    pub async fn finish(mut self) -> anyhow::Result<Vec<Acknowledged>> {
        let mut acknowledged = Vec::new();
        while let Some(posted) = self.clients.join_next().await {
            acknowledged.extend(posted??);
        }
        Ok(acknowledged)
    }
}

struct Poster {
    gateways: Vec<Client>,
    turn: usize,
    may_refuse: bool,
    refusals: Arc<AtomicUsize>,
    acknowledged: Arc<AtomicUsize>,
}

impl Poster {
    /// Posts one mail after the other, each until it is acknowledged.
    async fn run(
        mut self,
        mails: impl Iterator<Item = Value>,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<Vec<Acknowledged>> {
        let mut acknowledged = Vec::new();
        for mail in mails {
            if *stop.borrow() {
                break;
            }
            let uid = loop {
                match self.post(&mail).await? {
                    Some(uid) => break uid,
                    None => sleep(PACE).await,
                }
            };
            acknowledged.push(Acknowledged { id: text(&mail, "id").to_owned(), uid });
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            sleep(PACE).await;
        }
        Ok(acknowledged)
    }

    /// Posts a mail once; its uid, if it was acknowledged.
    async fn post(&mut self, mail: &Value) -> anyhow::Result<Option<String>> {
        let gateway = &self.gateways[self.turn % self.gateways.len()];
        match gateway.call(Method::POST, "/v1/messages", Some(mail.clone())).await {
            Ok((StatusCode::ACCEPTED, answer)) => {
                Ok(Some(answer["uid"].as_str().context("the answer has no uid")?.to_owned()))
            }
            Ok((StatusCode::SERVICE_UNAVAILABLE, answer)) if self.may_refuse => {
                let error = &answer["error"];
                let shaped = error["code"] == "unavailable" && error["request_id"].is_string();
                anyhow::ensure!(shaped, "an error of another shape: {answer}");
                self.refusals.fetch_add(1, Ordering::Relaxed);
                self.turn += 1;
                Ok(None)
            }
            Ok((status, answer)) => bail!("{status} {answer}\n{}", gateway.log()),
            // Dead just now; perhaps another is not.
            Err(error) if error.downcast_ref::<reqwest::Error>().is_some() => {
                self.turn += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A moment in which a load does its work.
pub async fn a_while(millis: Range<u64>) {
    sleep(Duration::from_millis(rand::random_range(millis))).await;
}
