//! `[outbox]` and `[outbox.NAME]`: application databases that mail is read from.
//!
//! `[outbox]` is one source, called `default`; it alone can also be given by variables. Others have sections
//! of their own.

use std::time::Duration;

use postway_domain::TenantId;
use postway_intake::outbox::{
    OutboxAccounts, OutboxSource, SourceUrl, TokenLinkKey, install::is_schema_name,
};

use super::{integer_between, layers::ConfigLayers};

/// What the source of `[outbox]` is called.
const DEFAULT_NAME: &str = "default";
const BATCH_LIMIT: u32 = 10;
const BATCH_TIMEOUT: Duration = Duration::from_secs(5);
const BATCH_TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// How often to poll a database with notifications, and one without.
const POLL_S: (u64, u64) = (5, 1);
/// More sources than this are a mistake.
const SOURCES_MAX: usize = 64;

/// Reads all sources; those without a URL are off.
pub(super) fn read(layers: &mut ConfigLayers) -> Option<Vec<OutboxSource>> {
    let mut sources = Vec::new();
    let mut is_good = true;
    for name in [None].into_iter().chain(layers.outbox_names().into_iter().map(Some)) {
        layers.scope = name.clone();
        match read_one(layers, name.as_deref().unwrap_or(DEFAULT_NAME)) {
            Some(source) => sources.extend(source),
            None => is_good = false,
        }
    }
    layers.scope = None;
    if sources.len() > SOURCES_MAX {
        layers.refuse("outbox.url", format!("there are more than {SOURCES_MAX} outboxes: use fewer"));
        return None;
    }
    is_good.then_some(sources)
}

fn read_one(layers: &mut ConfigLayers, name: &str) -> Option<Option<OutboxSource>> {
    let url =
        layers.take_optional("outbox.url", |text| SourceUrl::parse(text).map_err(|error| error.to_string()));
    let default: TenantId = "default".parse().ok()?;
    let tenant = layers.take("outbox.tenant", default, "default", |text| {
        text.parse::<TenantId>().map_err(|error| error.to_string())
    });
    let has_accounts = layers.take("outbox.kind", false, "generic", |text| match text {
        "generic" => Ok(false),
        "accounts" => Ok(true),
        _ => Err(format!("`{text}` is not a kind; use generic or accounts")),
    });
    let schema = read_schema(layers, "outbox.schema", "postway");
    let from = layers.take_optional("outbox.from", |text| {
        text.parse::<postway_domain::NamedAddress>()
            .map(|_| text.to_owned())
            .map_err(|error| error.to_string())
    });
    let account = layers.take_optional("outbox.account", |text| {
        let parsed = text.parse::<postway_domain::AccountId>();
        parsed.map(|id| id.to_string()).map_err(|error| error.to_string())
    });
    let batch_limit = layers.take("outbox.batch_limit", BATCH_LIMIT, &BATCH_LIMIT.to_string(), |text| {
        integer_between(text, 1, 10_000).map(|count| count as u32)
    });
    let batch_timeout = layers.take("outbox.batch_timeout", BATCH_TIMEOUT, "5s", duration);
    let is_notified = url.as_ref().is_none_or(|url| url.as_ref().is_none_or(SourceUrl::is_postgres));
    let poll_s = if is_notified { POLL_S.0 } else { POLL_S.1 };
    let poll = layers.take("outbox.poll_seconds", Duration::from_secs(poll_s), &poll_s.to_string(), |text| {
        integer_between(text, 1, 3_600).map(Duration::from_secs)
    });
    let accounts = read_accounts(layers);
    let (url, accounts, from) = (url?, accounts?, from?);
    let accounts = accounts.filter(|_| has_accounts == Some(true));
    if has_accounts? {
        let problem = match (&url, &accounts, &from) {
            (Some(url), _, _) if !url.is_postgres() => {
                Some("accounts need PostgreSQL; use kind = \"generic\"")
            }
            (_, None, _) => Some("accounts need outbox.link_base_url, which their links begin with"),
            (_, _, None) => Some("accounts need outbox.from, the author of their mail"),
            _ => None,
        };
        if let Some(problem) = problem {
            layers.refuse("outbox.kind", problem.to_owned());
            return None;
        }
    }
    let (tenant, schema, account) = (tenant?, schema?, account?);
    let (batch_limit, batch_timeout, poll) = (batch_limit?, batch_timeout?, poll?);
    Some(url.map(|url| OutboxSource {
        name: name.to_owned(),
        url,
        schema,
        tenant,
        from,
        account,
        batch_limit,
        batch_timeout,
        poll,
        accounts,
    }))
}

/// The settings of accounts; `None` without a base URL for their links.
fn read_accounts(layers: &mut ConfigLayers) -> Option<Option<OutboxAccounts>> {
    let schema = read_schema(layers, "outbox.accounts_schema", "public");
    let base = layers.take_optional("outbox.link_base_url", |text| {
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        match is_web && !text.contains(|c: char| c.is_whitespace() || c == '?' || c == '#') {
            true => Ok(text.trim_end_matches('/').to_owned()),
            false => {
                Err("must be an http(s) address without ? and #, such as https://app.example.com".to_owned())
            }
        }
    });
    let activation_path = read_path(layers, "outbox.activation_path", "/activate");
    let recovery_path = read_path(layers, "outbox.recovery_path", "/recover");
    let link_key = layers.take_optional("outbox.link_key", |text| {
        TokenLinkKey::from_base64(text).ok_or_else(|| {
            "must be 32 or more bytes in standard base64; make one with: openssl rand -base64 32".to_owned()
        })
    });
    let (schema, activation_path, recovery_path, link_key) =
        (schema?, activation_path?, recovery_path?, link_key?);
    Some(base?.map(|link_base_url| OutboxAccounts {
        schema,
        link_base_url,
        activation_path,
        recovery_path,
        link_key,
    }))
}

fn read_schema(layers: &mut ConfigLayers, key: &'static str, default: &str) -> Option<String> {
    layers.take(key, default.to_owned(), default, |text| match is_schema_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` cannot name a schema: use small letters, digits and _")),
    })
}

fn read_path(layers: &mut ConfigLayers, key: &'static str, default: &str) -> Option<String> {
    layers.take(key, default.to_owned(), default, |text| {
        let is_path =
            text.starts_with('/') && !text.contains(|c: char| c.is_whitespace() || "?#".contains(c));
        match is_path {
            true => Ok(text.to_owned()),
            false => Err(format!("`{text}` must be a path that begins with /, without ? and #")),
        }
    })
}

/// A time such as `5s`, `250ms` or `2m`; `0` needs no unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let parsed = number.parse::<u64>().ok().and_then(|number| match unit.trim() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "" if number == 0 => Some(Duration::ZERO),
        _ => None,
    });
    parsed
        .filter(|time| *time <= BATCH_TIMEOUT_MAX)
        .ok_or_else(|| format!("`{text}` must be a time of at most 10m, such as 5s, 250ms or 0"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::config::{LoadedConfig, load_from};

    fn load_with(file: &str, env: &[(&str, &str)]) -> Result<LoadedConfig, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postway.toml");
        std::fs::write(&path, file).unwrap();
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load_from(Some(&path), env).map_err(|errors| errors.to_string())
    }

    const SHOP: &str =
        "[outbox.shop]\nurl = 'postgres://app:hunter2@db/shop'\ntenant = 'shop'\nbatch_timeout = '0'\n";

    #[test]
    fn there_is_no_source_unless_one_is_named() {
        assert!(load_from(None, []).unwrap().config.outbox.is_empty());
    }

    #[test]
    fn sources_have_sections_and_one_may_come_from_variables() {
        let env = [("POSTWAY_OUTBOX_URL", "mysql://db/app"), ("POSTWAY_OUTBOX_BATCH_LIMIT", "50")];
        let sources = load_with(SHOP, &env).unwrap().config.outbox;
        let [first, second] = &sources[..] else { panic!("{sources:?}") };
        assert_eq!((first.name.as_str(), first.batch_limit, first.poll.as_secs()), ("default", 50, 1));
        assert_eq!((second.name.as_str(), second.tenant.as_str()), ("shop", "shop"));
        assert_eq!(
            (second.batch_limit, second.batch_timeout, second.poll.as_secs()),
            (10, Duration::ZERO, 5)
        );
        assert!(!format!("{sources:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_printed_has_every_source_and_no_password() {
        let printed = load_with(SHOP, &[]).unwrap().to_toml();
        assert!(printed.contains("\n[outbox.shop]\nurl = \"postgres://app:***@db/shop\""), "{printed}");
        assert!(!printed.contains("hunter2"), "{printed}");
    }

    #[test]
    fn wrong_sources_are_told_with_their_lines() {
        for (file, said) in [
            ("[outbox.shop]\nurl = 'redis://h'", "`outbox.url` from"),
            ("[outbox.shop]\nuri = 'x'", "line 2: unknown key `outbox.uri`; did you mean `outbox.url`?"),
            ("[outbox.'a b']\nurl = 'x'", "line 1: unknown key `outbox.a b`"),
            ("[outbox]\nurl = 'mysql://h/d'\nkind = 'accounts'", "line 3: accounts need PostgreSQL"),
            (
                "[outbox]\nurl = 'postgres://h/d'\nkind = 'accounts'\nfrom = 'a@b.example'",
                "accounts need outbox.link_base_url",
            ),
        ] {
            let error = load_with(file, &[]).unwrap_err();
            assert!(error.contains(said), "{file}: {error}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("5s", 5_000), ("250ms", 250), ("0", 0), ("0s", 0), ("2m", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "5", "s", "-1s", "11m", "5h", "1.5s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
