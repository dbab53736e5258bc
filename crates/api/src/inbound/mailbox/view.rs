//! A mailbox as JSON, without its secrets.

use postway_domain::{
    Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxRole, MailboxTls, WatchStart},
    message::OnDoubt,
    oauth::OAuthUse,
};
use postway_store::record::MailboxState;
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::schema::StartForm;
use crate::{http::schema_form, setting::oauth::OAuthView};

/// A mailbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Mailbox)]
pub(crate) struct MailboxView {
    /// Its id.
    #[schema(example = "bounces")]
    id: String,
    /// The tenant it belongs to.
    tenant: String,
    /// The IMAP server.
    #[schema(example = "imap.example.com")]
    host: String,
    /// Its port.
    #[schema(example = 993)]
    port: u16,
    /// `implicit`, `starttls` or `none`.
    #[schema(value_type = String, example = "implicit")]
    tls: MailboxTls,
    /// More certificate authorities to trust.
    ca_pem: Option<String>,
    /// The user name.
    #[schema(example = "bounces@example.com")]
    username: String,
    /// `password` or `xoauth2`.
    #[schema(value_type = String, example = "password")]
    auth: MailboxAuth,
    /// Whether a password is set; it is never shown.
    password_set: bool,
    /// Whether a token is set; it is never shown.
    token_set: bool,
    /// How it obtains the tokens it signs in with; without the secrets.
    oauth: Option<OAuthView>,
    /// The folder that is watched.
    #[schema(example = "INBOX")]
    folder: String,
    /// What its mail is processed for: `forward`, `bounces`, `pec`, `events`,
    /// `domain_reports`.
    #[schema(value_type = Vec<String>, example = json!(["bounces"]))]
    roles: Vec<MailboxRole>,
    /// Whether it is watched at all.
    active: bool,
    /// The purpose.
    description: Option<String>,
    /// Seconds between two scans when the server does not announce new mail by itself.
    poll_seconds: u32,
    #[schema(schema_with = start_shown)]
    start: WatchStart,
    /// The proxy to connect through, without its password.
    proxy: Option<String>,
    /// Whether reports in it may be about any tenant's messages.
    all_tenants: bool,
    /// How often a mail that cannot be processed is tried before it is dead.
    attempts_max: u32,
    /// What to do with forwarded mail in doubt if the rule does not say; null if the account decides.
    #[schema(value_type = Option<String>, example = "hold")]
    on_doubt: Option<OnDoubt>,
    /// The largest mail that is read, in bytes.
    mail_bytes_max: usize,
    /// The addresses whose mail the reception gives it; empty for a watched folder.
    addresses: Vec<String>,
    /// The name of the mail server whose `Authentication-Results` are believed.
    #[schema(example = "mx.example.com")]
    authserv_id: Option<String>,
    /// When it was last read to its end without a failure; null before the first time.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_scanned_at: Option<Time>,
    /// How many UIDs it is behind: `uid_next` − 1 − `last_seen_uid`.
    #[schema(value_type = Option<i64>, example = 0)]
    lag: Option<u32>,
    /// The failure of the last scan; null if it succeeded.
    error: Option<String>,
    /// When the failure first occurred.
    #[schema(value_type = Option<String>, format = DateTime)]
    error_since: Option<Time>,
    /// The folder's UIDVALIDITY. If it changes, the folder is read again, and known mail is skipped.
    #[schema(value_type = Option<i64>)]
    uid_validity: Option<u32>,
    /// The last UID that was read.
    #[schema(value_type = Option<i64>)]
    last_seen_uid: Option<u32>,
    /// The UID that the next mail will get, as the server last said.
    #[schema(value_type = Option<i64>)]
    uid_next: Option<u32>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

fn start_shown() -> RefOr<Schema> {
    schema_form::described::<StartForm>("Where watching began.", None)
}

/// A tenant's mailboxes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxList {
    /// The mailboxes, by id.
    pub(super) data: Vec<MailboxView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl MailboxView {
    /// The view of a mailbox and its last scan.
    pub(super) fn new(mailbox: WatchedMailbox, state: Option<&MailboxState>) -> Self {
        let (settings, has_secret) = (mailbox.settings, mailbox.secret.is_some());
        let cursor = state.and_then(|state| state.cursor);
        Self {
            mail_bytes_max: settings.mail_bytes_max(),
            id: mailbox.id.to_string(),
            tenant: mailbox.tenant.to_string(),
            host: settings.host,
            port: settings.port,
            tls: settings.tls,
            ca_pem: settings.ca_pem,
            username: settings.username,
            auth: settings.auth,
            password_set: has_secret && settings.auth == MailboxAuth::Password,
            token_set: has_secret && settings.auth == MailboxAuth::Xoauth2 && settings.oauth.is_none(),
            oauth: settings.oauth.as_ref().map(|oauth| OAuthView::new(oauth, OAuthUse::Imap)),
            folder: settings.folder,
            roles: settings.roles,
            active: settings.active,
            description: settings.description,
            poll_seconds: settings.poll_seconds,
            start: settings.start,
            proxy: settings.proxy,
            all_tenants: settings.all_tenants,
            attempts_max: settings.attempts_max,
            on_doubt: settings.on_doubt,
            addresses: settings.addresses,
            authserv_id: settings.authserv_id,
            last_scanned_at: state.and_then(|state| state.scanned_at),
            lag: state.and_then(MailboxState::lag),
            error: state.and_then(|state| state.error.clone()),
            error_since: state.and_then(|state| state.error_since),
            uid_validity: cursor.map(|cursor| cursor.uid_validity),
            last_seen_uid: cursor.map(|cursor| cursor.last_uid),
            uid_next: state.and_then(|state| state.uid_next),
            version: mailbox.version,
            created_at: mailbox.created_at,
            updated_at: mailbox.updated_at,
        }
    }
}
