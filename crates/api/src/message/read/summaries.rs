//! Messages as lists show them: with what blocks them, their outcomes, and when they were completely
//! reported.
//!
//! All of it is read for a page at once, by the ids of its messages and accounts, so a page costs a few
//! statements however many messages there are.

use std::collections::HashMap;

use postway_domain::{MessageEvent, MessageUid, Subscriber, TenantId};
use postway_store::{
    MessageBlockers, Store, StoreError,
    record::{MessageOutcomes, MessageSummary},
};

use crate::{
    http::error::ApiError,
    message::view::{MessageReport, MessageSummaryView, bounces_notified_at, of_outcomes, since_when},
    state::AppState,
};

/// The views of these messages, in their order.
pub(crate) async fn summaries(
    app: &AppState,
    tenant: &TenantId,
    messages: Vec<MessageSummary>,
) -> Result<Vec<MessageSummaryView>, ApiError> {
    let holds = MessageBlockers::read(&*app.store, tenant, &messages, app.clock.now()).await?;
    let reports = PageReports::read(&*app.store, tenant, &messages).await?;
    let view = |message: MessageSummary| {
        let (held_by, report) = (holds.of(&message), reports.report_for(&message));
        MessageSummaryView::new(message, held_by, report)
    };
    Ok(messages.into_iter().map(view).collect())
}

/// What is known about the messages of a page beyond their own rows.
#[derive(Default)]
struct PageReports {
    fates: HashMap<MessageUid, MessageOutcomes>,
    news: HashMap<MessageUid, MessageEvent>,
    refused: HashMap<MessageUid, i64>,
    subscribers: Vec<Subscriber>,
}

impl PageReports {
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
        // The latest events matter only if an active subscriber may still be notified of them.
        let news = match subscribers.iter().any(|subscriber| subscriber.active) {
            true => store.news(tenant, &ended).await?.into_iter().collect(),
            false => HashMap::new(),
        };
        // Read last, so that notifications created meanwhile are among them.
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

    fn report_for(&self, message: &MessageSummary) -> MessageReport {
        let fate = self.fates.get(&message.uid);
        let notified = fate.map_or(&[][..], |fate| &fate.told);
        let outcomes = fate.map_or(&[][..], |fate| &fate.outcomes);
        let (outcome, bounce) = of_outcomes(outcomes, bounces_notified_at(notified));
        let latest = self.news.get(&message.uid);
        let refused = self.refused.get(&message.uid).copied().unwrap_or(0);
        MessageReport {
            reported_at: since_when(message, |_| latest, notified, &self.subscribers),
            outcome,
            bounce,
            refused,
        }
    }
}
