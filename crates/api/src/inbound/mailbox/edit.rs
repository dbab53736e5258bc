//! Mailboxes from request bodies. Every faulty field is reported, including unknown ones.

use postway_domain::{
    EmailAddress,
    egress::{PROXY_CHARS_MAX, PROXY_PASSWORD_BYTES_MAX},
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    message::OnDoubt,
};
use serde_json::{Map, Value};

use super::secret::{MailboxSecretsEdit, SecretChange};
use crate::{
    http::{error::FieldError, json_fields::JsonFieldReader},
    outgoing::account::value::ca_pem,
    setting::{
        oauth::{self, OAuthSecretsEdit},
        proxy::{names_user, wrong_proxy},
    },
};

const HOST_BYTES_MAX: usize = 253;
const USERNAME_CHARS_MAX: usize = 320;
const FOLDER_CHARS_MAX: usize = 255;
const DESCRIPTION_CHARS_MAX: usize = 500;
/// Tokens of large identity providers have several thousand bytes.
const SECRET_BYTES_MAX: usize = 16 * 1024;

/// The result of an edit.
#[derive(Debug)]
pub(super) struct MailboxEdit {
    pub(super) settings: MailboxSettings,
    pub(super) secrets: MailboxSecretsEdit,
    pub(super) version: Option<i64>,
}

/// Read-only fields: a client may send back what GET showed.
const SHOWN: [&str; 13] = [
    "id",
    "tenant",
    "password_set",
    "token_set",
    "last_scanned_at",
    "lag",
    "error",
    "error_since",
    "uid_validity",
    "last_seen_uid",
    "uid_next",
    "created_at",
    "updated_at",
];

/// The settings of a new mailbox.
fn defaults() -> MailboxSettings {
    MailboxSettings {
        host: String::new(),
        port: 0,
        tls: MailboxTls::default(),
        ca_pem: None,
        username: String::new(),
        auth: MailboxAuth::default(),
        oauth: None,
        folder: MailboxSettings::FOLDER_DEFAULT.to_owned(),
        roles: vec![MailboxRole::Forward],
        active: true,
        description: None,
        poll_seconds: MailboxSettings::POLL_SECONDS_DEFAULT,
        start: WatchStart::default(),
        proxy: None,
        all_tenants: false,
        attempts_max: MailboxSettings::ATTEMPTS_DEFAULT,
        on_doubt: None,
        mail_bytes_max: None,
        authserv_id: None,
        addresses: Vec::new(),
    }
}

/// The settings of `before`, or of a new mailbox, with the fields of a body.
pub(super) fn edit(
    before: Option<&MailboxSettings>,
    body: Map<String, Value>,
) -> Result<MailboxEdit, Vec<FieldError>> {
    let is_new = before.is_none();
    let mut settings = before.cloned().unwrap_or_else(defaults);
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    for shown in SHOWN {
        fields.take(shown);
    }
    read_addresses(&mut fields, &mut settings, before);
    match settings.is_received() {
        true => read_no_location(&mut fields, before.is_none()),
        false => read_location(&mut fields, &mut settings),
    }
    read_watch_settings(&mut fields, &mut settings);
    let given = fields.has("oauth").then(|| fields.take("oauth").unwrap_or(Value::Null));
    let (grant, wrong_grant) = grant(given, &mut settings);
    let loses_grant = before.is_some_and(|before| before.oauth.is_some()) && settings.oauth.is_none();
    let needs_login = (is_new || loses_grant) && wrong_grant.is_empty() && !settings.is_received();
    let login = login(&mut fields, &mut settings, needs_login);
    let proxy_password = proxy(&mut fields, &mut settings);
    let version = fields.read("version", "must be a whole number");
    fields.finish("is not a field of a mailbox");
    wrong.extend(wrong_grant);
    // A field that cannot be read is also missing; the first fault says why.
    wrong.dedup_by(|later, first| later.field == first.field);
    match wrong.is_empty() {
        true => Ok(MailboxEdit {
            settings,
            secrets: MailboxSecretsEdit { login, proxy_password, grant },
            version,
        }),
        false => Err(wrong),
    }
}

/// Reads the addresses at the reception. A mailbox has a folder or addresses, as it was created.
fn read_addresses(
    fields: &mut JsonFieldReader<'_>,
    settings: &mut MailboxSettings,
    before: Option<&MailboxSettings>,
) {
    if !fields.has("addresses") {
        return;
    }
    let form = "must be a list of addresses: desk@example.com, *@example.com or @bounces.example.com";
    let given: Vec<String> = fields.read("addresses", form).unwrap_or_default();
    if given.len() > MailboxSettings::ADDRESSES_MAX {
        fields.refuse("addresses", format!("must be at most {}", MailboxSettings::ADDRESSES_MAX));
    }
    let mut addresses: Vec<String> = given.iter().map(|one| one.trim().to_lowercase()).collect();
    addresses.sort();
    addresses.dedup();
    for (place, address) in addresses.iter().enumerate() {
        // Everybody, and every signed envelope sender, of a domain: the domain must be one.
        let domain = address.strip_prefix("*@").or_else(|| address.strip_prefix('@'));
        let example = domain.map_or_else(|| address.clone(), |domain| format!("x@{domain}"));
        if example.parse::<EmailAddress>().is_err() || (domain.is_none() && address.contains('*')) {
            fields.refuse(&format!("addresses[{place}]"), form);
        }
    }
    if before.is_some_and(|before| before.is_received() == addresses.is_empty()) {
        fields.refuse("addresses", "cannot turn a mailbox into one of another kind: create another mailbox");
    }
    settings.addresses = addresses;
}

/// A mailbox with addresses has no server: nobody signs in.
fn read_no_location(fields: &mut JsonFieldReader<'_>, is_new: bool) {
    for name in ["host", "port", "tls", "ca_pem", "username", "folder"] {
        // A client may send back what GET showed.
        let is_given = fields.take(name).is_some_and(|value| !value.is_null());
        if is_given && is_new {
            fields.refuse(name, "does not go with `addresses`: the mail comes to the reception");
        }
    }
}

/// Reads the server, the user and the folder.
fn read_location(fields: &mut JsonFieldReader<'_>, settings: &mut MailboxSettings) {
    if fields.has("host") {
        let host = fields.text("host", HOST_BYTES_MAX).unwrap_or_default();
        settings.host = host.trim().to_ascii_lowercase();
    }
    let host = &settings.host;
    if host.is_empty() || host.len() > HOST_BYTES_MAX || host.bytes().any(|b| b <= b' ' || b"/@".contains(&b))
    {
        fields.refuse("host", "is needed: a host name or an address, such as imap.example.com");
    }
    if fields.has("tls") {
        settings.tls = fields.read("tls", "must be implicit, starttls or none").unwrap_or_default();
    }
    let port = fields.has("port").then(|| fields.read("port", "must be between 1 and 65535")).flatten();
    let usual = if settings.tls == MailboxTls::Implicit { 993 } else { 143 };
    match port {
        Some(0) => fields.refuse("port", "must be between 1 and 65535"),
        Some(port) => settings.port = port,
        None if settings.port == 0 => settings.port = usual,
        None => {}
    }
    if let Some(pem) = fields.has("ca_pem").then(|| fields.take("ca_pem")) {
        match ca_pem(&pem.unwrap_or(Value::Null)) {
            Ok(pem) => settings.ca_pem = pem,
            Err(message) => fields.refuse("ca_pem", message),
        }
    }
    if fields.has("username") {
        settings.username = fields.text("username", USERNAME_CHARS_MAX).unwrap_or_default();
    }
    if settings.username.is_empty() {
        fields.refuse("username", "is needed: who signs in");
    }
    if fields.has("folder") {
        let folder = fields.text("folder", FOLDER_CHARS_MAX).filter(|folder| !folder.is_empty());
        settings.folder = folder.unwrap_or_else(|| MailboxSettings::FOLDER_DEFAULT.to_owned());
    }
}

/// Reads what the mailbox is for, and how it is watched.
fn read_watch_settings(fields: &mut JsonFieldReader<'_>, settings: &mut MailboxSettings) {
    if let Some(given) = roles(fields) {
        settings.roles = given;
    }
    if fields.has("active") {
        settings.active = fields.read("active", "must be true or false").unwrap_or(true);
    }
    if fields.has("description") {
        let description = fields.text("description", DESCRIPTION_CHARS_MAX);
        settings.description = description.filter(|description| !description.is_empty());
    }
    if fields.has("poll_seconds") {
        let seconds = fields.number("poll_seconds").unwrap_or(MailboxSettings::POLL_SECONDS_DEFAULT);
        let (min, max) = (MailboxSettings::POLL_SECONDS_MIN, MailboxSettings::POLL_SECONDS_MAX);
        if !(min..=max).contains(&seconds) {
            fields.refuse("poll_seconds", format!("must be between {min} and {max}"));
        }
        settings.poll_seconds = seconds;
    }
    if fields.has("attempts_max") {
        let attempts = fields.number("attempts_max").unwrap_or(MailboxSettings::ATTEMPTS_DEFAULT);
        let max = MailboxSettings::ATTEMPTS_MAX;
        if !(1..=max).contains(&attempts) {
            fields.refuse("attempts_max", format!("must be between 1 and {max}"));
        }
        settings.attempts_max = attempts;
    }
    if fields.has("on_doubt") {
        settings.on_doubt = fields.read("on_doubt", OnDoubt::WORDS);
    }
    if fields.has("mail_bytes_max") {
        let (min, max) = (MailboxSettings::MAIL_BYTES_LEAST, MailboxSettings::MAIL_BYTES_MOST);
        settings.mail_bytes_max = fields.number("mail_bytes_max");
        if settings.mail_bytes_max.is_some_and(|bytes| !(min..=max).contains(&bytes)) {
            fields.refuse("mail_bytes_max", format!("must be between {min} and {max}"));
        }
    }
    if fields.has("authserv_id") {
        let name = fields.text("authserv_id", HOST_BYTES_MAX).unwrap_or_default();
        let name = name.trim().to_ascii_lowercase();
        if name.contains(|c: char| !c.is_ascii_graphic() || ";()\"".contains(c)) {
            fields.refuse("authserv_id", "must be the name that the server gives in Authentication-Results");
        }
        settings.authserv_id = Some(name).filter(|name| !name.is_empty());
    }
    if fields.has("start") {
        let form = "must be \"now\", \"beginning\", {\"newest\": N}, {\"since\": \"2026-01-31T00:00:00Z\"} or {\"after_uid\": N}";
        settings.start = fields.read("start", form).unwrap_or_default();
        if settings.start == WatchStart::Newest(0) {
            fields.refuse("start", "the newest 0 are none: write \"now\"");
        }
    }
    if fields.has("all_tenants") {
        settings.all_tenants = fields.read("all_tenants", "must be true or false").unwrap_or(false);
    }
}

/// Reads the roles, by either name, as a list or a single one.
fn roles(fields: &mut JsonFieldReader<'_>) -> Option<Vec<MailboxRole>> {
    let (name, value) = match (fields.take("roles"), fields.take("role")) {
        (Some(_), Some(_)) => {
            fields.refuse("role", "is another name of `roles`: give one of them");
            return None;
        }
        (Some(value), None) => ("roles", value),
        (None, Some(value)) => ("role", value),
        (None, None) => return None,
    };
    let value = if value.is_string() { Value::Array(vec![value]) } else { value };
    match serde_json::from_value::<Vec<MailboxRole>>(value) {
        Ok(mut roles) if !roles.is_empty() => {
            roles.sort_unstable();
            roles.dedup();
            Some(roles)
        }
        _ => {
            fields.refuse(name, "must be one or several of forward, bounces, pec, events and domain_reports");
            None
        }
    }
}

/// Reads how it obtains its tokens.
fn grant(given: Option<Value>, settings: &mut MailboxSettings) -> (OAuthSecretsEdit, Vec<FieldError>) {
    let mut wrong = Vec::new();
    let Some(given) = given else { return (OAuthSecretsEdit::default(), wrong) };
    let before = settings.oauth.take();
    let secrets;
    (settings.oauth, secrets) = oauth::edit(before.as_ref(), given, &mut wrong);
    (secrets, wrong)
}

/// Reads the credentials. A new mailbox needs them, and so does one that loses its grant or changes its way
/// to sign in.
fn login(
    fields: &mut JsonFieldReader<'_>,
    settings: &mut MailboxSettings,
    needs_login: bool,
) -> Option<(MailboxAuth, String)> {
    let said: Option<MailboxAuth> = fields.read("auth", "must be password or xoauth2");
    let password = secret(fields, "password", SECRET_BYTES_MAX);
    let token = secret(fields, "token", SECRET_BYTES_MAX);
    let login = match (password, token) {
        (Some(_), Some(_)) => {
            fields.refuse("token", "stands in the place of a password: give one of them");
            return None;
        }
        (Some(password), None) => Some((MailboxAuth::Password, password)),
        (None, Some(token)) => Some((MailboxAuth::Xoauth2, token)),
        (None, None) => None,
    };
    if settings.oauth.is_some() {
        if login.is_some() {
            fields.refuse(
                "oauth",
                "stands in the place of a password or token: give one of them, or oauth as null",
            );
        }
        if said == Some(MailboxAuth::Password) {
            fields.refuse("auth", "does not fit: tokens sign in by xoauth2");
        }
        settings.auth = MailboxAuth::Xoauth2;
        return None;
    }
    let auth = said.or(login.as_ref().map(|(auth, _)| *auth)).unwrap_or(settings.auth);
    let name = if auth == MailboxAuth::Password { "password" } else { "token" };
    let is_needed = needs_login || auth != settings.auth;
    match &login {
        Some((given, _)) if *given != auth => {
            fields.refuse("auth", format!("does not fit: it asks for a {name}"));
        }
        None if is_needed => fields.refuse(name, "is needed: with what one signs in"),
        _ => {}
    }
    settings.auth = auth;
    login
}

fn secret(fields: &mut JsonFieldReader<'_>, name: &str, bytes_max: usize) -> Option<String> {
    let secret: String = fields.read(name, "must be a text")?;
    if !(1..=bytes_max).contains(&secret.len()) {
        fields.refuse(name, format!("must have 1 to {bytes_max} bytes"));
    } else if secret.contains(['\0', '\r', '\n']) {
        fields.refuse(name, "must not contain NUL, CR or LF");
    }
    Some(secret)
}

/// Reads the proxy. Its password belongs to a user name, and is removed with it.
fn proxy(fields: &mut JsonFieldReader<'_>, settings: &mut MailboxSettings) -> SecretChange {
    let removes = fields.has("proxy_password");
    let password = secret(fields, "proxy_password", PROXY_PASSWORD_BYTES_MAX);
    if fields.has("proxy") {
        settings.proxy = fields.text("proxy", PROXY_CHARS_MAX).filter(|proxy| !proxy.is_empty());
        if let Some(message) = settings.proxy.as_deref().and_then(wrong_proxy) {
            fields.refuse("proxy", message);
        }
    }
    let has_name = names_user(settings.proxy.as_deref());
    match password {
        Some(_) if !has_name => {
            fields.refuse("proxy_password", "needs a proxy with a user name: socks5://user@host:port");
            SecretChange::Keep
        }
        Some(password) => SecretChange::Set(password),
        None if removes || !has_name => SecretChange::Remove,
        None => SecretChange::Keep,
    }
}

#[cfg(test)]
mod tests;
