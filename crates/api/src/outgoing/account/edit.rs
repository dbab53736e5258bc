//! Account settings from JSON. Every faulty field is reported, including unknown ones.

use postway_domain::{
    AccountKind, AccountSettings, RelayTlsMode, Time, provider_account::AccountSecret, retry::RetryPolicy,
};
use serde_json::{Map, Value};

use super::{
    egress::{self, AccountProxyEdit},
    value::{
        ca_pem, destinations, dsn, fallback, flag, kind, limits, number, on_doubt, secret, text, warm_up,
    },
};
use crate::{
    http::error::FieldError,
    setting::oauth::{self, OAuthSecretsEdit},
};

/// The result of an edit.
#[derive(Debug)]
pub(super) struct AccountEdit {
    pub(super) settings: AccountSettings,
    pub(super) secret: AccountSecretEdit,
    pub(super) grant: OAuthSecretsEdit,
    pub(super) proxy: AccountProxyEdit,
}

/// The change to the stored secret: the password of a relay, the secret half of an AWS key, or the key of an
/// API.
#[derive(PartialEq)]
pub(super) enum AccountSecretEdit {
    Keep,
    Remove,
    Set(String),
}

impl std::fmt::Debug for AccountSecretEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AccountSecretEdit::Keep => "Keep",
            AccountSecretEdit::Remove => "Remove",
            AccountSecretEdit::Set(_) => "Set(***)",
        })
    }
}

/// The settings of a new account, of which at most the kind is given.
pub(super) fn defaults(body: &Map<String, Value>, current: Option<AccountKind>) -> AccountSettings {
    let said = body.get("kind").map(|value| kind(value).unwrap_or(AccountKind::Smtp));
    let kind = said.or(current).unwrap_or(AccountKind::Smtp);
    let sandbox = AccountSettings::sandbox();
    match kind {
        AccountKind::Sandbox => sandbox,
        AccountKind::Ses
        | AccountKind::Sendgrid
        | AccountKind::Mailgun
        | AccountKind::Postmark
        | AccountKind::Resend
        | AccountKind::Graph
        | AccountKind::Gmail
        | AccountKind::Http => AccountSettings { kind, ..sandbox },
        AccountKind::Smtp => {
            AccountSettings { kind, tls: RelayTlsMode::default(), retry: RetryPolicy::smtp(), ..sandbox }
        }
        // Such a server is near, and often offers no TLS.
        AccountKind::Lmtp => {
            AccountSettings { kind, tls: RelayTlsMode::Opportunistic, retry: RetryPolicy::smtp(), ..sandbox }
        }
    }
}

/// `base` with the fields of `body`. Read-only fields may come back unchanged from `shown`, and the account's
/// current state may come back as it was.
pub(super) fn edit(
    base: AccountSettings,
    body: &Map<String, Value>,
    shown: Option<&Value>,
    now: Time,
) -> Result<AccountEdit, Vec<FieldError>> {
    let mut edited = AccountEdit {
        settings: base,
        secret: AccountSecretEdit::Keep,
        grant: OAuthSecretsEdit::default(),
        proxy: AccountProxyEdit::default(),
    };
    let mut wrong = Vec::new();
    // First, because the defaults of other fields depend on it.
    if let Some(Ok(kind)) = body.get("kind").map(kind) {
        edited.settings.kind = kind;
    }
    for (name, value) in body {
        let done = match name.as_str() {
            "id"
            | "tenant"
            | "version"
            | "created_at"
            | "updated_at"
            | "password_set"
            | "secret_access_key_set"
            | "api_key_set"
            | "proxy_password_set"
            | "suspended" => match shown.and_then(|shown| shown.get(name)) == Some(value) {
                true => Ok(()),
                false => Err("cannot be set; leave it out".to_owned()),
            },
            "oauth" => {
                let before = edited.settings.oauth.take();
                (edited.settings.oauth, edited.grant) =
                    oauth::edit(before.as_ref(), value.clone(), &mut wrong);
                Ok(())
            }
            "circuit" | "used" if shown.is_some() => Ok(()),
            "limits" => {
                wrong.extend(limits(&mut edited.settings.limits, value));
                Ok(())
            }
            _ => set(&mut edited, name, value, now),
        };
        wrong.extend(done.err().map(|message| FieldError::new(name, message)));
    }
    if let Some(misfit) = fit_grant(&mut edited, body)
        && !wrong.iter().any(|known| known.field.starts_with("oauth"))
    {
        wrong.push(misfit);
    }
    if let Some(misfit) = fit_secret(&mut edited, shown)
        && !wrong.iter().any(|known| known.field == misfit.field || known.field.starts_with("oauth"))
    {
        wrong.push(misfit);
    }
    wrong.extend(egress::edit(&mut edited.settings, &mut edited.proxy, body));
    for (field, message) in edited.settings.check() {
        if !wrong.iter().any(|known| known.field == field) {
            wrong.push(FieldError::new(field, message));
        }
    }
    if wrong.is_empty() { Ok(edited) } else { Err(wrong) }
}

/// A grant replaces a relay's password, and some providers accept nothing else.
fn fit_grant(
    AccountEdit { settings, secret, .. }: &mut AccountEdit,
    body: &Map<String, Value>,
) -> Option<FieldError> {
    if settings.oauth.is_none() {
        let message = "is needed: accounts of this kind sign in with tokens";
        let is_needed = settings.kind.secret() == AccountSecret::Grant;
        return is_needed.then(|| FieldError::new("oauth", message));
    }
    if settings.kind.oauth_use().is_none() {
        let is_given = body.get("oauth").is_some_and(|value| !value.is_null());
        settings.oauth = None;
        return is_given
            .then(|| FieldError::new("oauth", "is for accounts of the kinds smtp, graph and gmail"));
    }
    if settings.username.is_none() {
        return Some(FieldError::new("username", "is needed: who signs in with the tokens"));
    }
    match secret {
        AccountSecretEdit::Set(_) => {
            let message =
                "an account with oauth signs in with tokens: leave the password out, or set oauth to null";
            Some(FieldError::new("password", message))
        }
        AccountSecretEdit::Keep | AccountSecretEdit::Remove => None,
    }
}

/// A secret belongs to a user name and one kind of account: without them it is removed. An account that signs
/// in needs one.
fn fit_secret(
    AccountEdit { settings, secret, .. }: &mut AccountEdit,
    shown: Option<&Value>,
) -> Option<FieldError> {
    if settings.oauth.is_some() {
        return None;
    }
    let same_kind = shown.is_none_or(|shown| shown["kind"] == settings.kind.as_str());
    if *secret == AccountSecretEdit::Keep && !same_kind {
        *secret = AccountSecretEdit::Remove;
    }
    let field = settings.kind.secret().field();
    let (name, missing) = match settings.kind.secret() {
        AccountSecret::Password => (&settings.username, "a password needs a username"),
        AccountSecret::SecretAccessKey => {
            (&settings.ses.access_key_id, "a secret_access_key needs an access_key_id")
        }
        AccountSecret::Nothing | AccountSecret::Grant => (&None, "a sandbox signs in nowhere"),
        AccountSecret::OptionalApiKey => return None,
        AccountSecret::ApiKey => {
            let is_there = shown.is_some_and(|shown| shown["api_key_set"] == true);
            let has_one = match secret {
                AccountSecretEdit::Set(_) => true,
                AccountSecretEdit::Keep => is_there,
                AccountSecretEdit::Remove => false,
            };
            return (!has_one).then(|| FieldError::new(field, "is needed: the key of the provider's API"));
        }
    };
    match (name, &secret) {
        (None, AccountSecretEdit::Set(_)) => return Some(FieldError::new(field, missing)),
        (None, AccountSecretEdit::Keep | AccountSecretEdit::Remove) => *secret = AccountSecretEdit::Remove,
        (Some(_), AccountSecretEdit::Set(_)) => {}
        (Some(name), AccountSecretEdit::Keep | AccountSecretEdit::Remove)
            if settings.kind.secret() == AccountSecret::Password =>
        {
            let before =
                |field: &str| shown.filter(|_| same_kind).map_or(&Value::Null, |shown| &shown[field]);
            let keeps = *secret == AccountSecretEdit::Keep && before("password_set") == true;
            // Accounts from before this was required can still be changed otherwise.
            let was_so = before("password_set") == false
                && before("oauth").is_null()
                && before("username") == name.as_str();
            if !keeps && !was_so {
                let message = "is needed to sign in: give it, or leave the username out";
                return Some(FieldError::new(field, message));
            }
        }
        (Some(_), AccountSecretEdit::Keep | AccountSecretEdit::Remove) => {}
    }
    None
}

/// Sets one field.
fn set(edited: &mut AccountEdit, name: &str, value: &Value, now: Time) -> Result<(), String> {
    let settings = &mut edited.settings;
    match name {
        "kind" => settings.kind = kind(value)?,
        "host" => settings.host = text(value)?,
        "port" => {
            settings.port = match value {
                Value::Null => None,
                value => Some(number(value).ok_or("must be between 1 and 65535")?),
            }
        }
        "tls" => {
            settings.tls = match value {
                Value::Null if settings.kind == AccountKind::Lmtp => RelayTlsMode::Opportunistic,
                Value::Null => RelayTlsMode::default(),
                value => serde_json::from_value(value.clone())
                    .map_err(|_| "must be starttls, implicit, none or opportunistic")?,
            }
        }
        "username" => settings.username = text(value)?,
        "password" | "secret_access_key" | "api_key" => match settings.kind.secret().field() {
            field if field == name => edited.secret = secret(value)?,
            _ if value.is_null() => {}
            field => {
                let kind = settings.kind.as_str();
                return Err(format!("is not for accounts of the kind {kind}, which take `{field}`"));
            }
        },
        "allow_plaintext_auth" => settings.allow_plaintext_auth = flag(value)?,
        "ca_pem" => settings.ca_pem = ca_pem(value)?,
        "max_connections" => {
            settings.max_connections = match value {
                Value::Null => AccountSettings::CONNECTIONS_DEFAULT,
                value => number(value).ok_or("must be a whole number")?,
            }
        }
        "return_path" => settings.return_path = text(value)?,
        "retry" => {
            settings.retry = match value {
                Value::Null if settings.kind.secret() == AccountSecret::Password => RetryPolicy::smtp(),
                Value::Null => RetryPolicy::api(),
                value => serde_json::from_value(value.clone()).map_err(|error| {
                    format!("must be like {{\"delays_s\":[1,5,30],\"jitter\":0.25}}: {error}")
                })?,
            }
        }
        "warm_up" => settings.warm_up = warm_up(value, now)?,
        "fallback" => settings.fallback = fallback(value)?,
        "destinations" => settings.destinations = destinations(value)?,
        "region" => settings.ses.region = text(value)?,
        "access_key_id" => settings.ses.access_key_id = text(value)?,
        "configuration_set" => settings.ses.configuration_set = text(value)?,
        "endpoint" => settings.ses.endpoint = text(value)?,
        "base_url" => settings.provider.base_url = text(value)?,
        "domain" => settings.provider.domain = text(value)?,
        "message_stream" => settings.provider.message_stream = text(value)?,
        "pec" => settings.pec = flag(value)?,
        "on_doubt" => settings.on_doubt = on_doubt(value)?,
        "dsn" => settings.dsn = dsn(value)?,
        // They depend on each other, and are read together.
        "proxy" | "proxy_password" | "source_address" => {}
        _ => return Err("is not a field of an account".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Time {
        Time::from_millis(1_700_000_000_000)
    }

    fn create(body: Value) -> Result<AccountEdit, Vec<FieldError>> {
        let body = body.as_object().unwrap();
        edit(defaults(body, None), body, None, now())
    }

    #[track_caller]
    fn wrong_fields(body: Value) -> Vec<String> {
        create(body).unwrap_err().into_iter().map(|wrong| wrong.field).collect()
    }

    #[test]
    fn a_relay_needs_little_and_gets_the_smtp_schedule() {
        let made = create(json!({"host": "smtp.example.com"})).unwrap();
        assert_eq!(made.settings.retry, RetryPolicy::smtp());
        assert_eq!((made.settings.tls, made.settings.max_connections), (RelayTlsMode::Starttls, 10));
        assert_eq!(create(json!({"kind": "sandbox"})).unwrap().settings, AccountSettings::sandbox());
    }

    #[test]
    fn every_wrong_field_is_named() {
        assert_eq!(wrong_fields(json!({})), ["host"]);
        assert_eq!(wrong_fields(json!({"kind": "pigeon", "host": "h"})), ["kind"]);
        assert_eq!(wrong_fields(json!({"host": 1})), ["host"]);
        assert_eq!(wrong_fields(json!({"host": "h", "port": 0})), ["port"]);
        assert_eq!(wrong_fields(json!({"host": "h", "port": 70000})), ["port"]);
        assert_eq!(wrong_fields(json!({"host": "h", "tls": "ssl"})), ["tls"]);
        assert_eq!(wrong_fields(json!({"host": "h", "password": "x"})), ["password"]);
        assert_eq!(wrong_fields(json!({"host": "h", "username": "u", "password": "a\u{0}b"})), ["password"]);
        assert_eq!(wrong_fields(json!({"host": "h", "max_connections": 501})), ["max_connections"]);
        assert_eq!(wrong_fields(json!({"host": "h", "retry": {"delays_s": [0]}})), ["retry.delays_s"]);
        assert_eq!(wrong_fields(json!({"host": "h", "retry": {"delays_s": [1], "x": 1}})), ["retry"]);
        assert_eq!(wrong_fields(json!({"host": "h", "ca_pem": "x"})), ["ca_pem"]);
        assert_eq!(wrong_fields(json!({"host": "h", "colour": "red"})), ["colour"]);
        assert_eq!(wrong_fields(json!({"host": "h", "version": 3})), ["version"]);
        assert_eq!(wrong_fields(json!({"host": "h", "suspended": true})), ["suspended"]);
        assert_eq!(wrong_fields(json!({"host": "h", "circuit": null})), ["circuit"]);
        assert_eq!(wrong_fields(json!({"host": "h", "guarded": false})), ["guarded"]);
    }

    #[test]
    fn limits_and_plans_are_read_and_what_contradicts_itself_is_named() {
        let made =
            create(json!({"host": "h", "limits": {"per_minute": 5, "per_day": null, "behavior": "reject"},
            "warm_up": {"per_day": [50, 100]}, "fallback": "b", "pec": true,
            "destinations": {"example.com": {"connections": 2}, "*": {"per_second": 9}}}));
        let settings = made.unwrap().settings;
        assert_eq!((settings.limits.per_minute, settings.limits.per_day), (5, 0));
        assert_eq!(settings.warm_up.unwrap().from, now(), "it begins when it is made");
        assert_eq!(settings.destinations["*"].per_second, 9);
        for (body, wrong) in [
            (json!({"limits": {"per_day": -1}}), "limits.per_day"),
            (json!({"limits": {"per_day": 1.5}}), "limits.per_day"),
            (json!({"limits": {"per_week": 5}}), "limits.per_week"),
            (json!({"limits": {"behavior": "drop"}}), "limits.behavior"),
            (json!({"limits": 5}), "limits"),
            (json!({"limits": {"per_hour": 10, "per_day": 5}}), "limits.per_day"),
            (json!({"warm_up": {"per_day": []}}), "warm_up.per_day"),
            (json!({"warm_up": {"per_day": [1], "x": 1}}), "warm_up"),
            (json!({"warm_up": 5}), "warm_up"),
            (json!({"fallback": "a b"}), "fallback"),
            (json!({"destinations": {"A B": {}}}), "destinations"),
            (json!({"destinations": {"a.example": {"connections": -1}}}), "destinations"),
            (json!({"pec": "yes"}), "pec"),
        ] {
            let mut body = body;
            body["host"] = json!("h");
            assert_eq!(wrong_fields(body.clone()), [wrong], "{body}");
        }
    }

    #[test]
    fn a_limit_that_is_not_given_stays() {
        let base =
            create(json!({"host": "h", "limits": {"per_minute": 5, "per_hour": 50}})).unwrap().settings;
        let patch = json!({"limits": {"per_hour": 60}});
        let limits = edit(base.clone(), patch.as_object().unwrap(), None, now()).unwrap().settings.limits;
        assert_eq!((limits.per_minute, limits.per_hour), (5, 60));
        let none = json!({"limits": null});
        let limits = edit(base, none.as_object().unwrap(), None, now()).unwrap().settings.limits;
        assert!(limits.is_unlimited());
    }

    #[test]
    fn an_ses_account_has_a_region_and_its_own_secret() {
        let made = create(json!({"kind": "ses", "region": "eu-west-1", "access_key_id": "AKID",
            "secret_access_key": "s", "endpoint": "http://localhost:5000", "configuration_set": "c"}));
        let made = made.unwrap();
        assert_eq!(
            (made.settings.kind, made.secret),
            (AccountKind::Ses, AccountSecretEdit::Set("s".to_owned()))
        );
        assert_eq!(made.settings.retry, RetryPolicy::api());
        assert_eq!(wrong_fields(json!({"kind": "ses"})), ["region"]);
        let region = "eu-west-1";
        assert_eq!(
            wrong_fields(json!({"kind": "ses", "region": region, "secret_access_key": "s"})),
            ["secret_access_key"]
        );
        assert_eq!(wrong_fields(json!({"kind": "ses", "region": region, "password": "s"})), ["password"]);
        assert_eq!(wrong_fields(json!({"host": "h", "secret_access_key": "s"})), ["secret_access_key"]);
    }

    #[test]
    fn a_provider_has_its_key_or_its_grant_and_nothing_else() {
        let made = create(json!({"kind": "mailgun", "domain": "mg.example.com", "api_key": "k"})).unwrap();
        assert_eq!(
            (made.settings.kind, made.secret),
            (AccountKind::Mailgun, AccountSecretEdit::Set("k".to_owned()))
        );
        assert_eq!(made.settings.retry, RetryPolicy::api());
        assert!(create(json!({"kind": "http", "base_url": "https://mail.example.com/in"})).is_ok());
        let grant = json!({"grant": "client_credentials", "client_id": "c", "token_url": "https://x.example/t",
            "client_secret": "s"});
        let graph = json!({"kind": "graph", "username": "shop@contoso.com", "oauth": grant});
        assert!(create(graph).unwrap().settings.oauth.is_some());
        for (body, wrong) in [
            (json!({"kind": "sendgrid"}), &["api_key"][..]),
            (json!({"kind": "sendgrid", "password": "p", "api_key": "k"}), &["password"]),
            (json!({"kind": "sendgrid", "api_key": "k", "oauth": grant}), &["oauth"]),
            (json!({"kind": "mailgun", "api_key": "k"}), &["domain"]),
            (json!({"kind": "postmark", "api_key": "k", "base_url": "http://x.example"}), &["base_url"]),
            (json!({"kind": "gmail", "username": "u@x.example"}), &["oauth"]),
            (json!({"kind": "graph", "oauth": grant}), &["username"]),
            (json!({"kind": "graph", "username": "u", "oauth": grant, "api_key": "k"}), &["api_key"]),
            (json!({"host": "h", "api_key": "k"}), &["api_key"]),
            (json!({"kind": "http"}), &["base_url"]),
        ] {
            assert_eq!(wrong_fields(body.clone()), wrong, "{body}");
        }
        let base = create(json!({"kind": "resend", "api_key": "k"})).unwrap().settings;
        let shown = json!({"kind": "resend", "api_key_set": true});
        let change = |body: Value| edit(base.clone(), body.as_object().unwrap(), Some(&shown), now());
        assert_eq!(change(json!({"max_connections": 2})).unwrap().secret, AccountSecretEdit::Keep);
        assert_eq!(change(json!({"api_key": null})).unwrap_err()[0].field, "api_key");
        assert_eq!(
            change(json!({"kind": "postmark"})).unwrap_err()[0].field,
            "api_key",
            "a key is of one provider"
        );
    }

    #[test]
    fn a_secret_is_kept_replaced_or_removed() {
        let base = || create(json!({"host": "h", "username": "u", "password": "p"})).unwrap().settings;
        let shown = json!({"kind": "smtp", "username": "u", "password_set": true});
        let change = |body: Value| edit(base(), body.as_object().unwrap(), Some(&shown), now());
        let secret = |body: Value| change(body).unwrap().secret;
        assert_eq!(secret(json!({})), AccountSecretEdit::Keep);
        assert_eq!(secret(json!({"username": "other"})), AccountSecretEdit::Keep);
        assert_eq!(secret(json!({"password": "p"})), AccountSecretEdit::Set("p".to_owned()));
        assert_eq!(secret(json!({"username": null})), AccountSecretEdit::Remove);
        assert_eq!(secret(json!({"username": null, "password": null})), AccountSecretEdit::Remove);
        let other_kind = json!({"kind": "ses", "region": "eu-west-1", "access_key_id": "AKID"});
        assert_eq!(secret(other_kind), AccountSecretEdit::Remove, "a password is no AWS key");
        assert_eq!(change(json!({"password": null})).unwrap_err()[0].field, "password");
    }

    #[test]
    fn who_signs_in_needs_a_password() {
        let wrong = create(json!({"host": "h", "username": "u"})).unwrap_err();
        assert_eq!((wrong.len(), wrong[0].field.as_str()), (1, "password"));
        assert!(wrong[0].message.contains("leave the username out"), "{:?}", wrong[0].message);
        assert_eq!(wrong_fields(json!({"host": "h", "username": "u", "password": ""})), ["password"]);

        let open = create(json!({"host": "h"})).unwrap().settings;
        let shown = json!({"kind": "smtp", "username": null, "password_set": false});
        let named = json!({"username": "u"});
        assert!(edit(open, named.as_object().unwrap(), Some(&shown), now()).is_err());

        let ses = json!({"kind": "ses", "username": null, "password_set": false});
        let relay = json!({"kind": "smtp", "host": "h", "username": "u"});
        let relay = relay.as_object().unwrap();
        assert!(edit(defaults(relay, None), relay, Some(&ses), now()).is_err(), "an AWS key is no password");

        // An account from before this was required.
        let old =
            AccountSettings { username: Some("u".into()), ..create(json!({"host": "h"})).unwrap().settings };
        let shown = json!({"kind": "smtp", "username": "u", "password_set": false});
        let slower = json!({"max_connections": 1});
        assert!(edit(old, slower.as_object().unwrap(), Some(&shown), now()).is_ok());
    }
}
