//! Rules and forwards without a mailbox, a store or an intake, for tests from outside: given a mail, they
//! return what a rule says or what would be sent. They run the same code as the processing of mail.

use postway_domain::{
    NamedAddress,
    id::RuleId,
    rule::{ForwardForm, RuleContent},
};
use postway_intake::ForwardNames;

use crate::{
    forward::ForwardShape,
    mail::ParsedMail,
    rules::{PlannedForward, ReadyRule, WorkStopSignal},
};

/// The ids of the mail that is sent.
const UID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const MESSAGE_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057@example.com";

/// A rule that can be tried on mails.
pub struct OfflineRule(ReadyRule);

impl OfflineRule {
    /// Prepares a rule.
    pub fn new(id: RuleId, content: RuleContent) -> Self {
        Self(ReadyRule::new(id, content))
    }

    /// For each condition, whether it holds and why; or why the conditions cannot be checked.
    pub fn ask(&self, raw: &[u8]) -> Result<Vec<(bool, String)>, String> {
        self.0.judge(&ParsedMail::new(raw), &WorkStopSignal::default()).map(|judged| judged.conditions)
    }
}

/// The mail that is sent if this one is forwarded to `to` in `form`; or why it is not.
pub fn forward(
    raw: &[u8],
    form: ForwardForm,
    from: &NamedAddress,
    to: &[NamedAddress],
) -> Result<Vec<u8>, String> {
    let planned = PlannedForward { to: to.to_vec(), form, from: None, account: None, on_doubt: None };
    let mail = ParsedMail::new(raw);
    let shape = ForwardShape { mail: &mail, planned: &planned, mark: "0123456789abcdef", reminder: None };
    let given = ForwardNames { message_id: MESSAGE_ID, uid: UID, date_unix: 1_800_000_000 };
    shape.make(from, &given).map(|made| made.composed.bytes)
}
