//! The notifications of one delivery, and what the delivery says about their subscriber.

use std::sync::Arc;

use postway_domain::Time;
use postway_store::record::DueSubscriber;

use super::{
    outcome::{LeasedNotification, SubscriberConduct},
    target::SubscriberTarget,
};

/// Notifications that are delivered to one subscriber together.
pub(crate) struct NotificationBatch {
    /// The subscriber's key.
    pub key: DueSubscriber,
    /// The subscriber, and how to reach it.
    pub target: Arc<SubscriberTarget>,
    /// The notifications; empty if a client asked to be called again.
    pub leased: Vec<LeasedNotification>,
    /// Whether the call takes one of the slots of subscribers that are not proven.
    pub is_unproven: bool,
    /// When the delivery began.
    pub begun_at: Time,
}

/// What a delivery says about its subscriber.
pub(crate) struct FinishedBatch {
    pub key: DueSubscriber,
    pub conduct: SubscriberConduct,
    pub quiet_until: Option<Time>,
    pub comes_again: bool,
    pub is_unproven: bool,
    pub begun_at: Time,
}

impl NotificationBatch {
    /// Ends the delivery.
    pub(crate) fn finished(
        self,
        conduct: SubscriberConduct,
        quiet_until: Option<Time>,
        comes_again: bool,
    ) -> FinishedBatch {
        let Self { key, is_unproven, begun_at, .. } = self;
        FinishedBatch { key, conduct, quiet_until, comes_again, is_unproven, begun_at }
    }
}
