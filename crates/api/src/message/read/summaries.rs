//! Messages as lists show them: with what holds them, what became of them, and since when everybody knows.
//!
//! All of it is read for a page together, by the ids of its messages and of their accounts, so a page costs a few statements
//! however many messages it has and however many there are.

use std::collections::HashMap;

use postway_domain::{Event, MessageUid, Subscriber, TenantId};
use postway_store::{
    Holds, Store, StoreError,
    record::{Fate, MessageSummary},
};

use crate::{
    http::error::ApiError,
    message::view::{Report, Summary, bounces_told_at, of_outcomes, since_when},
    state::App,
};

/// These messages, in their order.
pub(crate) async fn summaries(
    app: &App,
    tenant: &TenantId,
    messages: Vec<MessageSummary>,
) -> Result<Vec<Summary>, ApiError> {
    let holds = Holds::read(&*app.store, tenant, &messages, app.clock.now()).await?;
    let reports = Reports::read(&*app.store, tenant, &messages).await?;
    let view = |message: MessageSummary| {
        let (held_by, report) = (holds.of(&message), reports.of(&message));
        Summary::of(message, held_by, report)
    };
    Ok(messages.into_iter().map(view).collect())
}

/// What is known of the messages of a page beyond themselves.
#[derive(Default)]
struct Reports {
    fates: HashMap<MessageUid, Fate>,
    news: HashMap<MessageUid, Event>,
    refused: HashMap<MessageUid, i64>,
    subscribers: Vec<Subscriber>,
}

impl Reports {
    async fn read(
        store: &dyn Store,
        tenant: &TenantId,
        messages: &[MessageSummary],
    ) -> Result<Self, StoreError> {
        if messages.is_empty() {
            return Ok(Self::default());
        }
        let ended = messages.iter().filter(|message| message.state.status().is_final());
        let ended: Vec<MessageUid> = ended.map(|message| message.uid).collect();
        let subscribers = match ended.is_empty() {
            true => Vec::new(),
            false => store.subscribers(Some(tenant)).await?,
        };
        // What happened last matters to those only who may still be told.
        let news = match subscribers.iter().any(|subscriber| subscriber.active) {
            true => store.news(tenant, &ended).await?.into_iter().collect(),
            false => HashMap::new(),
        };
        // Last, so that what was made of the news meanwhile is among them.
        let uids: Vec<MessageUid> = messages.iter().map(|message| message.uid).collect();
        let fates = store.fates(tenant, &uids).await?;
        let several = messages.iter().filter(|message| message.recipient_count > 1);
        let several: Vec<MessageUid> = several.map(|message| message.uid).collect();
        let refused = match several.is_empty() {
            true => HashMap::new(),
            false => store.refused_recipients(tenant, &several).await?.into_iter().collect(),
        };
        Ok(Self {
            fates: fates.into_iter().map(|fate| (fate.uid, fate)).collect(),
            news,
            refused,
            subscribers,
        })
    }

    fn of(&self, message: &MessageSummary) -> Report {
        let fate = self.fates.get(&message.uid);
        let told = fate.map_or(&[][..], |fate| &fate.told);
        let outcomes = fate.map_or(&[][..], |fate| &fate.outcomes);
        let (outcome, bounce) = of_outcomes(outcomes, bounces_told_at(told));
        let latest = self.news.get(&message.uid);
        let refused = self.refused.get(&message.uid).copied().unwrap_or(0);
        Report {
            reported_at: since_when(message, |_| latest, told, &self.subscribers),
            outcome,
            bounce,
            refused,
        }
    }
}
