//! `/bounces`: recipients that a mail did not reach, newest message first.
//!
//! A bounce here concerns one recipient: a report that came back, a complaint, or a relay that refused the
//! address. Bounces are not stored apart from the messages: they are read from messages with such an outcome,
//! messages that failed, and the newest 100,000 messages with several recipients, at most 10,000 in all.

use axum::{Json, extract::State, http::Uri};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{EventKind, MessageState, MessageStatus, MessageUid, RecipientStatus, TenantId, Time};
use postway_store::record::{DirectoryChange, MessageBrief, MessageFilter, MessageSummary, RecipientRecord};
use serde_json::{Value, json};

use super::{
    bounce_id::PostmarkBounceId,
    error::PostmarkFault,
    query::{LIST_MAX, PostmarkQuery},
    search::{PostmarkMessageFilter, briefs, stream_of, subject_of, walk},
    status::PostmarkBounceKind,
};
use crate::{
    admin::erase::digest,
    auth::{Manager, Reader},
    http::{error::ApiError, request_id::RequestId},
    message::{
        MessagePathId,
        view::{BounceView, of_message},
    },
    state::{AppState, SharedState},
};

/// How many messages one query reads, and how many such pages one call looks through.
const LOOK: u32 = 500;
const LOOKS_MAX: usize = 200;
const TOGETHER: usize = 16;

/// A recipient that a mail did not reach.
pub(super) struct PostmarkBounce {
    id: PostmarkBounceId,
    kind: PostmarkBounceKind,
    message: MessageSummary,
    address: String,
    at: Time,
    details: String,
}

impl PostmarkBounce {
    /// The bounce of this recipient, if there is one.
    fn from_recipient(message: &MessageSummary, place: usize, recipient: &RecipientRecord) -> Option<Self> {
        let (kind, report) = kind_of(recipient)?;
        let said = recipient.reply.as_ref().map(|reply| reply.text.clone());
        let (reason, at) = report.map_or((None, None), |bounce| (bounce.reason, bounce.at));
        Some(Self {
            id: PostmarkBounceId::new(message.created_at, message.uid, place),
            kind,
            address: recipient.address.clone(),
            at: at.or(message.failed_at).unwrap_or(message.updated_at),
            details: reason.or(said).unwrap_or_default(),
            message: message.clone(),
        })
    }

    fn all_of(MessageBrief { summary, recipients }: MessageBrief) -> impl Iterator<Item = Self> {
        let places = recipients.into_iter().enumerate();
        places.filter_map(move |(place, recipient)| Self::from_recipient(&summary, place, &recipient))
    }

    async fn shown(&self, app: &AppState, tenant: &TenantId) -> Result<Value, ApiError> {
        let now = app.clock.now();
        let suppressed = app.store.suppression(tenant, &self.address.to_lowercase()).await?;
        let inactive = suppressed.is_some_and(|one| one.expires_at.is_none_or(|until| until > now));
        Ok(json!({
            "RecordType": "Bounce",
            "ID": self.id.number(),
            "Type": self.kind.as_str(),
            "TypeCode": self.kind.code(),
            "Name": self.kind.name(),
            "Tag": self.message.tags.first(),
            "MessageID": self.message.uid,
            "ServerID": super::server::number_of(tenant),
            "MessageStream": stream_of(&self.message),
            "Description": self.kind.description(),
            "Details": self.details,
            "Email": self.address,
            "From": null,
            "BouncedAt": self.at,
            "DumpAvailable": false,
            "Inactive": inactive,
            "CanActivate": inactive,
            "Subject": subject_of(&self.message),
            "Content": null,
        }))
    }
}

/// Why a mail did not reach a recipient, and the report; `None` if it did, or nothing is known.
fn kind_of(recipient: &RecipientRecord) -> Option<(PostmarkBounceKind, Option<BounceView>)> {
    let (_, report) = of_message(std::slice::from_ref(recipient), None);
    let kind = match (recipient.outcome, recipient.status) {
        (Some(EventKind::Complained), _) => PostmarkBounceKind::SpamComplaint,
        (Some(EventKind::Bounced | EventKind::PecFailed), _) => {
            let is_hard = report.as_ref().is_some_and(|bounce| bounce.kind.as_deref() == Some("hard"));
            if is_hard { PostmarkBounceKind::HardBounce } else { PostmarkBounceKind::SoftBounce }
        }
        (_, RecipientStatus::Failed) => {
            let enhanced = recipient.reply.as_ref().and_then(|reply| reply.enhanced.as_deref());
            let is_of_address = enhanced.is_some_and(|code| code.starts_with("5.1."));
            if is_of_address { PostmarkBounceKind::HardBounce } else { PostmarkBounceKind::Blocked }
        }
        _ => return None,
    };
    Some((kind, report))
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let asked = PostmarkQuery::from_uri(&uri)?;
    let (window, tenant) = (asked.window()?, &caller.tenant);
    let kind = asked.text("type")?.map(|text| {
        PostmarkBounceKind::named(text)
            .ok_or_else(|| PostmarkFault::Query.error("type", "is no type of a bounce here"))
    });
    let kind = kind.transpose()?;
    let email = asked.text("emailfilter")?.map(str::to_lowercase);
    let id = asked.text("messageid")?.map(str::parse::<MessageUid>);
    let inactive = match asked.text("inactive")? {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(PostmarkFault::Query.error("inactive", "must be true or false")),
    };
    let mut found: Vec<PostmarkBounce> = match (id, PostmarkMessageFilter::read(&asked)?) {
        (Some(Ok(uid)), _) => {
            briefs(&app, tenant, &[uid]).await?.into_iter().flat_map(PostmarkBounce::all_of).collect()
        }
        (None, Some(wanted)) => all(&app, tenant, &wanted).await?,
        (Some(Err(_)), _) | (None, None) => Vec::new(),
    };
    found.retain(|bounce| {
        kind.is_none_or(|kind| bounce.kind == kind)
            && email.as_ref().is_none_or(|part| bounce.address.to_lowercase().contains(part.as_str()))
    });
    // The suppression list is read for one page; for a filter, for all remaining bounces.
    let (shown, total) = match inactive {
        None => {
            let total = found.len();
            (shown(&app, tenant, window.slice(found)).await?, total)
        }
        Some(inactive) => {
            let mut all = shown(&app, tenant, found).await?;
            all.retain(|bounce| bounce["Inactive"] == inactive);
            let total = all.len();
            (window.slice(all), total)
        }
    };
    Ok(Json(json!({"TotalCount": total, "Bounces": shown})))
}

async fn shown(
    app: &AppState,
    tenant: &TenantId,
    bounces: Vec<PostmarkBounce>,
) -> Result<Vec<Value>, ApiError> {
    let shown = futures::stream::iter(bounces).map(|bounce| async move { bounce.shown(app, tenant).await });
    shown.buffered(TOGETHER).try_collect().await
}

/// The newest bounces of the matching messages. Reports and failures have indexes, so they are found however
/// much was sent since. What a relay refused of a mail that it took for others has none: for that the newest
/// messages are looked through.
async fn all(
    app: &AppState,
    tenant: &TenantId,
    wanted: &PostmarkMessageFilter,
) -> Result<Vec<PostmarkBounce>, ApiError> {
    let mut uids = Vec::new();
    for outcome in [EventKind::Bounced, EventKind::Complained, EventKind::PecFailed] {
        let filter = MessageFilter { outcome: Some(outcome), ..wanted.filter.clone() };
        uids.extend(newest(app, tenant, wanted, filter, |_| true).await?);
    }
    if wanted.filter.status.is_none_or(|status| status == MessageStatus::Failed) {
        let filter = MessageFilter { status: Some(MessageStatus::Failed), ..wanted.filter.clone() };
        uids.extend(newest(app, tenant, wanted, filter, |_| true).await?);
    }
    let in_part =
        |message: &MessageSummary| message.recipient_count > 1 && message.state != MessageState::Failed;
    uids.extend(newest(app, tenant, wanted, wanted.filter.clone(), in_part).await?);
    uids.sort_unstable_by_key(|uid| std::cmp::Reverse(*uid));
    uids.dedup();
    let mut bounces = Vec::new();
    for some in uids.chunks(LOOK as usize) {
        let mut briefs = briefs(app, tenant, some).await?;
        briefs.sort_unstable_by_key(|brief| std::cmp::Reverse(brief.summary.uid));
        bounces.extend(briefs.into_iter().flat_map(PostmarkBounce::all_of));
        if bounces.len() >= LIST_MAX {
            break;
        }
    }
    bounces.truncate(LIST_MAX);
    Ok(bounces)
}

/// The newest messages that match this filter, what else was asked for, and `is`.
async fn newest(
    app: &AppState,
    tenant: &TenantId,
    wanted: &PostmarkMessageFilter,
    filter: MessageFilter,
    is: impl Fn(&MessageSummary) -> bool,
) -> Result<Vec<MessageUid>, ApiError> {
    let (mut uids, mut before) = (Vec::new(), None);
    for _ in 0..LOOKS_MAX {
        let page = app.store.search(tenant, &filter, before, LOOK).await?;
        let some = page.messages.iter().filter(|message| wanted.is(message) && is(message));
        uids.extend(some.map(|message| message.uid));
        before = page.next;
        if uids.len() >= LIST_MAX || before.is_none() {
            break;
        }
    }
    Ok(uids)
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let bounce = find(&app, &caller.tenant, &id).await?;
    bounce.shown(&app, &caller.tenant).await.map(Json)
}

/// The text of the report: its source is not stored with the message.
pub(super) async fn dump(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let bounce = find(&app, &caller.tenant, &id).await?;
    Ok(Json(json!({"Body": bounce.details})))
}

/// Removes the address from the suppression list.
pub(super) async fn activate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let tenant = &caller.tenant;
    let bounce = find(&app, tenant, &id).await?;
    let address = bounce.address.to_lowercase();
    let target = digest(&app.secret_key, tenant, &address);
    let entry = app.audit(&caller.actor, Some(tenant), "suppression.delete", target, &request_id, None);
    let change = DirectoryChange::Unsuppress(tenant.clone(), vec![address], app.clock.now());
    // If it is not on the list, or no longer, that is the requested result.
    app.store.change(change, Some(entry)).await?;
    Ok(Json(json!({"Message": "OK", "Bounce": bounce.shown(&app, tenant).await?})))
}

/// The bounce with this number: one of the recipients of the messages accepted in its second.
async fn find(app: &AppState, tenant: &TenantId, given: &str) -> Result<PostmarkBounce, ApiError> {
    let none = || {
        let shown: String = given.chars().take(40).collect();
        PostmarkFault::NoBounce
            .error("", format!("The bounce was not found: there is none with the id `{shown}`"))
    };
    let id = PostmarkBounceId::parse(given).ok_or_else(none)?;
    let (since, until) = id.second();
    let mut wanted = PostmarkMessageFilter::default();
    (wanted.filter.since, wanted.filter.until) = (Some(since), Some(until));
    let messages = walk(app, tenant, &wanted, LIST_MAX).await?;
    let may_be = |message: &&MessageSummary| {
        (0..usize::try_from(message.recipient_count).unwrap_or(0)).any(|place| id.is_of(message.uid, place))
    };
    let uids: Vec<MessageUid> = messages.iter().filter(may_be).map(|message| message.uid).collect();
    let bounces = briefs(app, tenant, &uids).await?.into_iter().flat_map(PostmarkBounce::all_of);
    let mut bounces = bounces.filter(|bounce| bounce.id == id);
    match (bounces.next(), bounces.next()) {
        (Some(bounce), None) => Ok(bounce),
        (Some(_), Some(_)) => {
            let message = "two bounces have this id: find them by address in GET /bounces";
            Err(PostmarkFault::NoBounce.error("", message))
        }
        (None, _) => Err(none()),
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::RecipientKind;
    use postway_store::record::SmtpReply;

    use super::*;

    #[test]
    fn what_became_of_a_recipient_has_a_word_there() {
        let recipient = |status, outcome, bounce: Option<&str>, enhanced: Option<&str>| RecipientRecord {
            address: "ada@example.net".to_owned(),
            kind: RecipientKind::To,
            status,
            reply: enhanced.map(|code| SmtpReply {
                code: Some(550),
                enhanced: Some(code.to_owned()),
                text: "no".to_owned(),
            }),
            outcome,
            bounce: bounce.map(str::to_owned),
        };
        let (sent, failed) = (RecipientStatus::Sent, RecipientStatus::Failed);
        let (hard, soft) = (Some(r#"{"type":"hard","reason":"user_unknown"}"#), Some(r#"{"type":"soft"}"#));
        for (recipient, kind) in [
            (recipient(sent, Some(EventKind::Bounced), hard, None), Some(PostmarkBounceKind::HardBounce)),
            (recipient(sent, Some(EventKind::Bounced), soft, None), Some(PostmarkBounceKind::SoftBounce)),
            (
                recipient(sent, Some(EventKind::Complained), None, None),
                Some(PostmarkBounceKind::SpamComplaint),
            ),
            (recipient(failed, None, None, Some("5.1.1")), Some(PostmarkBounceKind::HardBounce)),
            (recipient(failed, None, None, Some("5.7.1")), Some(PostmarkBounceKind::Blocked)),
            (recipient(sent, Some(EventKind::Delivered), None, None), None),
            (recipient(RecipientStatus::Pending, None, None, None), None),
        ] {
            assert_eq!(kind_of(&recipient).map(|(kind, _)| kind), kind, "{recipient:?}");
        }
    }
}
