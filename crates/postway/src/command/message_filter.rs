//! The filters that lists of messages and bulk actions share: those of `GET /v1/messages`.

use clap::{Args, builder::PossibleValuesParser};
use postway_domain::MessageStatus;

/// The words of all states, also for completion.
fn states() -> PossibleValuesParser {
    MessageStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Which messages are meant.
#[derive(Args, Debug, Default)]
pub struct MessageFilterArgs {
    /// An address or part of one, @domain, an id, an external id, a Message-ID, a failure's code, key=value of
    /// the metadata, #tag, words of the subject, or subject:, to:, status: … before a value
    #[arg(value_name = "SEARCH")]
    search: Vec<String>,
    /// Only messages with a recipient of this outcome after sending: bounced, complained, delivered, …
    #[arg(long)]
    outcome: Option<String>,
    /// Only messages that are blocked by this: any, tenant, batch:CODE, account:ID, limit:ID, circuit:ID, or
    /// doubt
    #[arg(long, value_name = "HOLDER")]
    held_by: Option<String>,
    /// Only messages that wait to be sent
    #[arg(long)]
    waiting: bool,
    /// Only messages whose subject contains this
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// Only messages whose latest failure has this code, such as smtp_550
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only messages in this state
    #[arg(long, value_parser = states())]
    status: Option<String>,
    /// Only messages of this account
    #[arg(long)]
    account: Option<String>,
    /// Only messages of this batch
    #[arg(long)]
    batch: Option<String>,
    /// Only messages to this address
    #[arg(long)]
    recipient: Option<String>,
    /// Only messages with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only messages with this field in their metadata
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Option<String>,
    /// Only messages that came with this request
    #[arg(long)]
    request_id: Option<String>,
    /// Only the message with this id of the provider
    #[arg(long)]
    provider_message_id: Option<String>,
    /// Only messages accepted at or after this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only messages accepted before this time (RFC 3339 or Unix seconds)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl MessageFilterArgs {
    /// The given filters, as the API names them.
    pub fn conditions(self) -> Vec<(&'static str, String)> {
        let search = Some(self.search.join(" ")).filter(|text| !text.is_empty());
        let filters = [
            ("q", search),
            ("outcome", self.outcome),
            ("held_by", self.held_by),
            ("waiting", self.waiting.then(|| "true".to_owned())),
            ("subject", self.subject),
            ("error_code", self.error_code),
            ("status", self.status),
            ("account", self.account),
            ("batch", self.batch),
            ("recipient", self.recipient),
            ("tag", self.tag),
            ("metadata", self.metadata),
            ("request_id", self.request_id),
            ("provider_message_id", self.provider_message_id),
            ("since", self.since),
            ("until", self.until),
        ];
        filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
