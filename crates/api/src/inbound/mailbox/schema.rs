//! Request bodies as the OpenAPI document describes them. The structs are never filled; `edit` reads the
//! bodies.

use serde::Serialize;
use serde_json::json;
use utoipa::{ToSchema, openapi::Type};

use crate::{
    http::schema_form::{Texts, When, forms, of_type, one_of, shown_as, text_or_list, words},
    setting::oauth::OAuthRequest,
};

/// A mailbox to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxRequest {
    /// The id, unique in your tenant; on creation only. Generated when absent.
    #[schema(example = "bounces")]
    id: Option<String>,
    /// The IMAP server. Private ones require the admin key.
    #[schema(example = "imap.example.com")]
    host: Option<String>,
    /// The port; 993, or 143 if `tls` is not `implicit`, when absent.
    #[schema(example = 993)]
    port: Option<u16>,
    /// `implicit` (default), `starttls` or `none`.
    #[schema(example = "implicit")]
    tls: Option<String>,
    /// More certificate authorities to trust, in PEM form.
    ca_pem: Option<String>,
    /// The user name.
    #[schema(example = "bounces@example.com")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
    /// Instead of a password, an OAuth 2 bearer token (XOAUTH2): encrypted at rest, never shown again.
    #[schema(write_only)]
    token: Option<String>,
    /// Instead of either, how it obtains the tokens it signs in with (XOAUTH2, OAUTHBEARER). `null` removes
    /// it.
    oauth: Option<OAuthRequest>,
    /// `password` or `xoauth2`; follows from which of the two is given.
    auth: Option<String>,
    /// The folder that is watched.
    #[schema(default = "INBOX")]
    folder: Option<String>,
    /// What its mail is processed for: `forward` (rules; the default), `bounces`, `pec`, `events` (every
    /// ordinary mail is reported as `email.received`), `domain_reports` (DMARC and TLS reports about your domains).
    /// A list or a single one.
    #[schema(inline)]
    roles: Option<Roles>,
    /// Another name for `roles`; only one of them may be given.
    #[schema(inline)]
    role: Option<Texts>,
    /// Whether it is watched at all.
    #[schema(default = true)]
    active: Option<bool>,
    /// The purpose, at most 500 characters.
    description: Option<String>,
    /// Seconds between two scans when the server does not announce new mail by itself, 5 to 86,400.
    #[schema(default = 60)]
    poll_seconds: Option<u32>,
    /// Where watching begins: `"now"` (default), `"beginning"`, `{"newest": 100}`, `{"since":
    /// "2026-01-31T00:00:00Z"}` or `{"after_uid": 4711}`, where another program left off.
    #[schema(inline)]
    start: Option<StartForm>,
    /// A proxy to connect through: `socks5://user@host:port` or `http://user@host:port`.
    #[schema(example = "socks5://proxy.example.com:1080")]
    proxy: Option<String>,
    /// The proxy's password: encrypted at rest, never shown again.
    #[schema(write_only)]
    proxy_password: Option<String>,
    /// Whether reports in it may be about any tenant's messages. For the admin key.
    #[schema(default = false)]
    all_tenants: Option<bool>,
    /// How often a mail that cannot be processed is tried before it is dead, 1 to 20.
    #[schema(default = 3)]
    attempts_max: Option<u32>,
    /// What to do with forwarded mail in doubt if the rule does not say: `resend`, or `hold`, which never
    /// sends twice. The account's setting applies when absent.
    #[schema(example = "hold")]
    on_doubt: Option<String>,
    /// The largest mail that is read, in bytes: 65,536 to 67,108,864.
    #[schema(default = 26_214_400)]
    mail_bytes_max: Option<u32>,
    /// Instead of a folder, the addresses whose mail the reception gives it: `desk@example.com` (with any
    /// `+detail`), `*@example.com`, or `@bounces.example.com` for the envelope senders that Postway signed. For the
    /// admin key.
    #[schema(example = json!(["desk@in.example.com"]))]
    addresses: Option<Vec<String>>,
    /// The name of the mail server in its `Authentication-Results`, so that they are believed. Without it, none
    /// are.
    #[schema(example = "mx.example.com")]
    authserv_id: Option<String>,
    /// With `PATCH`: change only if the mailbox still has this version.
    version: Option<i64>,
}

forms! {
    /// What a mailbox's mail is processed for.
    Roles => shown_as(text_or_list(), json!(["bounces"]));
    /// Where watching begins.
    StartForm => shown_as(
        one_of([
            words(&["now", "beginning"]),
            of_type(Type::Object).property("newest", of_type(Type::Integer).minimum(Some(1))).required("newest"),
            of_type(Type::Object).property("since", When::schema()).required("since"),
            of_type(Type::Object)
                .property("after_uid", of_type(Type::Integer).minimum(Some(0)))
                .required("after_uid"),
        ]),
        json!("now"),
    );
}
