//! What callers send, for the OpenAPI document; never filled. `edit` reads the bodies.

use serde::Serialize;
use serde_json::json;
use utoipa::{ToSchema, openapi::Type};

use crate::{
    http::schema_form::{Texts, When, forms, of_type, one_of, shown_as, text_or_list, words},
    setting::oauth::OAuthRequest,
};

/// A mailbox to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MailboxRequest {
    /// Its id, unique in your tenant; only when it is made. One is made when absent.
    #[schema(example = "bounces")]
    id: Option<String>,
    /// The IMAP server. Private ones can be set with the admin key alone.
    #[schema(example = "imap.example.com")]
    host: Option<String>,
    /// Its port; 993, or 143 where `tls` is not `implicit`, when absent.
    #[schema(example = 993)]
    port: Option<u16>,
    /// `implicit` (default), `starttls` or `none`.
    #[schema(example = "implicit")]
    tls: Option<String>,
    /// More certificate authorities to trust, in PEM form.
    ca_pem: Option<String>,
    /// Who signs in.
    #[schema(example = "bounces@example.com")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
    /// In the place of a password, an OAuth 2 bearer token (XOAUTH2): encrypted at rest, never shown again.
    #[schema(write_only)]
    token: Option<String>,
    /// In the place of either, how it comes by the tokens that it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it.
    oauth: Option<OAuthRequest>,
    /// `password` or `xoauth2`; goes by which of the two is given.
    auth: Option<String>,
    /// The folder that is watched.
    #[schema(default = "INBOX")]
    folder: Option<String>,
    /// What its mail is looked at for: `forward` (rules; the default), `bounces`, `pec`. A list, or one of them.
    #[schema(inline)]
    roles: Option<Roles>,
    /// Another name for `roles`; only one of them may be given.
    #[schema(inline)]
    role: Option<Texts>,
    /// Whether it is watched at all.
    #[schema(default = true)]
    active: Option<bool>,
    /// What it is for, at most 500 characters.
    description: Option<String>,
    /// Seconds between two looks where the server does not tell of new mail by itself, 5 to 86,400.
    #[schema(default = 60)]
    poll_seconds: Option<u32>,
    /// Where watching begins: `"now"` (default), `"beginning"`, `{"newest": 100}`, `{"since": "2026-01-31T00:00:00Z"}` or
    /// `{"after_uid": 4711}`, where another program left off.
    #[schema(inline)]
    start: Option<StartForm>,
    /// A proxy on the way: `socks5://user@host:port` or `http://user@host:port`.
    #[schema(example = "socks5://proxy.example.com:1080")]
    proxy: Option<String>,
    /// The proxy's password: encrypted at rest, never shown again.
    #[schema(write_only)]
    proxy_password: Option<String>,
    /// Whether reports in it may be about any tenant's messages. For the admin key.
    #[schema(default = false)]
    all_tenants: Option<bool>,
    /// How often a mail that could not be dealt with is tried before it is dead, 1 to 20.
    #[schema(default = 3)]
    attempts_max: Option<u32>,
    /// What becomes of forwarded mail in doubt, where the rule does not say it: `resend`, or `hold`, which never sends twice. As its
    /// account says when absent.
    #[schema(example = "hold")]
    on_doubt: Option<String>,
    /// The largest mail that is read, in bytes: 65,536 to 67,108,864.
    #[schema(default = 26_214_400)]
    mail_bytes_max: Option<u32>,
    /// With `PATCH`: only if the mailbox still has this version.
    version: Option<i64>,
}

forms! {
    /// What a mailbox's mail is looked at for.
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
