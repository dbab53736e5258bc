//! The verdict on a row of the old database.

use serde_json::{Map, Value};

/// What a row becomes in Postway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CarriedKind {
    /// A tenant.
    Tenant,
    /// The suspension of a tenant that was not active.
    TenantSuspension,
    /// A sending account.
    Account,
    /// The suspension of a batch.
    BatchSuspension,
    /// A suppressed address.
    Suppression,
    /// An entry of a tenant's directory.
    Recipient,
    /// A watched mailbox.
    Mailbox,
    /// A waiting message.
    Message,
    /// A token whose mail is waiting.
    Token,
}

impl CarriedKind {
    /// The noun for a count: `1 account`, `2 accounts`.
    pub fn counted(self, count: u64) -> &'static str {
        match (count, self) {
            (1, Self::Tenant) => "tenant",
            (1, Self::TenantSuspension) => "suspended tenant",
            (1, Self::Account) => "account",
            (1, Self::BatchSuspension) => "suspended batch",
            (1, Self::Suppression) => "suppressed address",
            (1, Self::Recipient) => "recipient",
            (1, Self::Mailbox) => "mailbox",
            (1, Self::Message) => "waiting message",
            (1, Self::Token) => "waiting token",
            _ => self.plural(),
        }
    }

    /// The plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Tenant => "tenants",
            Self::TenantSuspension => "suspended tenants",
            Self::Account => "accounts",
            Self::BatchSuspension => "suspended batches",
            Self::Suppression => "suppressed addresses",
            Self::Recipient => "recipients",
            Self::Mailbox => "mailboxes",
            Self::Message => "waiting messages",
            Self::Token => "waiting tokens",
        }
    }
}

/// The format of a row's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Postway's own, as the API takes it.
    Ours,
    /// The old system's, as its compatibility API takes it.
    Theirs,
}

/// The location of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowLocation {
    /// Its table.
    pub table: String,
    /// Its key; empty for the table as a whole.
    pub key: String,
}

/// A row that can carry over.
#[derive(Clone, Debug, PartialEq)]
pub struct CarriedRow {
    /// What it becomes in Postway.
    pub kind: CarriedKind,
    /// Its location in the old database.
    pub place: RowLocation,
    /// Its tenant, if it names one.
    pub tenant: Option<String>,
    /// The format of `body`.
    pub form: RowFormat,
    /// Its content.
    pub body: Map<String, Value>,
}

/// A row that an operator must decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedRow {
    /// Its location.
    pub place: RowLocation,
    /// Why it does not carry over, and what to do.
    pub why: String,
}

/// Rows that need not carry over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRows {
    /// Their table.
    pub table: String,
    /// A description of the rows.
    pub what: String,
    /// Their number.
    pub count: u64,
    /// Why they need not carry over.
    pub why: String,
}

/// What is wrong with a row or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// Its location.
    pub place: RowLocation,
    /// The field or column; empty for the whole row or table.
    pub field: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl RowFault {
    /// A fault of a field of a row.
    pub fn new(place: &RowLocation, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.clone(), field: field.into(), message: message.into() }
    }
}

/// The verdict on a row of the old database.
#[derive(Clone, Debug, PartialEq)]
pub enum MovingVerdict {
    /// It can carry over.
    Carry(Box<CarriedRow>),
    /// An operator must decide.
    Leave(UndecidedRow),
    /// It stays as history.
    Stay(HistoryRows),
    /// It is wrong.
    Wrong(RowFault),
}
