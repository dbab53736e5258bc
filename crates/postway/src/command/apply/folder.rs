//! A folder of settings, read as a whole before anything is done with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{kind::ResourceKind, reference::ResolvedFields};
use crate::cli::{failure::CommandFailure, input::read_input};

/// The file with a tenant's own settings.
pub const TENANT_FILE: &str = "tenant.toml";
/// The ending of every file.
pub const ENDING: &str = ".toml";
/// A folder with more files is refused as a mistake.
const FILES_MAX: usize = 100_000;

/// What a folder says.
#[derive(Debug)]
pub struct SettingsFolder {
    /// The tenants, by id.
    pub tenants: BTreeMap<String, TenantFolder>,
}

/// What a folder says about a tenant.
#[derive(Debug, Default)]
pub struct TenantFolder {
    /// Its own settings, if the folder has them.
    pub settings: Option<ResolvedFields>,
    /// Its things.
    pub things: Vec<WantedThing>,
}

/// A thing as a file wants it.
#[derive(Debug)]
pub struct WantedThing {
    /// The kind.
    pub kind: ResourceKind,
    /// What makes it the same as one on the server.
    pub identity: String,
    /// Its fields.
    pub fields: ResolvedFields,
    /// Where to write what a creation shows once.
    pub shown_once_file: Option<PathBuf>,
}

impl SettingsFolder {
    /// Reads a folder. Every mistake is one that names its file.
    pub fn read(folder: &Path) -> Result<Self, CommandFailure> {
        let variable = |name: &str| std::env::var(name).ok();
        let mut tenants = BTreeMap::new();
        let mut files = 0;
        for (tenant, path) in entries(folder)? {
            if !path.is_dir() {
                // Beside the folders of tenants there may be notes, and files with secrets.
                continue;
            }
            let mut found = TenantFolder::default();
            for (name, path) in entries(&path)? {
                if path.is_dir() {
                    let kind = ResourceKind::from_word(&name).ok_or_else(|| unknown_kind(&path))?;
                    for (name, path) in entries(&path)? {
                        let Some(stem) = name.strip_suffix(ENDING) else { continue };
                        files += 1;
                        found.things.push(read_thing(kind, stem, &path, &variable)?);
                    }
                } else if name == TENANT_FILE {
                    found.settings = Some(fields_of(&path, &variable)?);
                }
            }
            if files > FILES_MAX {
                return Err(CommandFailure::Usage(format!(
                    "{} has more than {FILES_MAX} files",
                    folder.display()
                )));
            }
            check_identities(&tenant, &found)?;
            // An account may fall back to another one, which must be there first.
            found.things.sort_by_key(|thing| (thing.kind, thing.fields.plain.contains_key("fallback")));
            tenants.insert(tenant, found);
        }
        match tenants.is_empty() {
            true => Err(CommandFailure::Usage(format!(
                "{} has no tenants: it needs folders like default/accounts with files like relay-1.toml",
                folder.display()
            ))),
            false => Ok(Self { tenants }),
        }
    }
}

fn unknown_kind(path: &Path) -> CommandFailure {
    let known: Vec<&str> = ResourceKind::ALL.into_iter().map(ResourceKind::word).collect();
    CommandFailure::Usage(format!(
        "{} is no kind of settings; there are {}",
        path.display(),
        known.join(", ")
    ))
}

/// The entries of a folder by name, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, CommandFailure> {
    let unreadable =
        |error: std::io::Error| CommandFailure::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn fields_of(
    path: &Path,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<ResolvedFields, CommandFailure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    ResolvedFields::read(&parse(path)?, folder, variable).map_err(|error| in_file(path, &error))
}

fn in_file(path: &Path, error: &CommandFailure) -> CommandFailure {
    CommandFailure::Usage(format!("{}: {error}", path.display()))
}

fn parse(path: &Path) -> Result<Map<String, Value>, CommandFailure> {
    let wrong = |error: &dyn std::fmt::Display| {
        CommandFailure::Usage(format!("{} is not TOML: {error}", path.display()))
    };
    let text = String::from_utf8(read_input(path)?).map_err(|error| wrong(&error))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(&error))?;
    table
        .into_iter()
        .map(|(name, value)| Ok((name, json_of(value).map_err(|error| wrong(&error))?)))
        .collect()
}

/// A value as the API reads it: a time of TOML is a text there.
fn json_of(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::Datetime(time)
            if time.date.is_some() && time.time.is_some() && time.offset.is_some() =>
        {
            Value::String(time.to_string().replacen(' ', "T", 1))
        }
        toml::Value::Datetime(time) => {
            return Err(format!(
                "{time} is no moment: write date, time and zone, as in 2030-01-31T09:00:00Z"
            ));
        }
        toml::Value::String(text) => Value::String(text),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number} is no number that the API knows")),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect::<Result<_, _>>()?,
        toml::Value::Table(fields) => {
            let fields = fields.into_iter().map(|(name, value)| Ok((name, json_of(value)?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
    })
}

fn read_thing(
    kind: ResourceKind,
    stem: &str,
    path: &Path,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<WantedThing, CommandFailure> {
    let mut parsed = parse(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    // What a creation shows once is written to this file, not read from it.
    let shown_once = kind.shown_once().and_then(|(_, reference)| parsed.remove(reference));
    let shown_once_file = shown_once.as_ref().and_then(Value::as_str).map(|name| folder.join(name));
    let mut fields =
        ResolvedFields::read(&parsed, folder, variable).map_err(|error| in_file(path, &error))?;
    let field = kind.identity();
    let given = fields.plain.get(field).and_then(Value::as_str).map(str::to_owned);
    let identity = match (kind.is_named_by_file(), given) {
        (true, None) => stem.to_owned(),
        (true, Some(given)) if kind == ResourceKind::Keys || given == stem => given,
        (true, Some(given)) => {
            let why = format!("its {field} is {given}, and its name must be the same");
            return Err(in_file(path, &CommandFailure::Usage(why)));
        }
        (false, Some(given)) => given,
        (false, None) => return Err(in_file(path, &CommandFailure::Usage(format!("it needs {field}")))),
    };
    fields.set(field, Value::String(identity.clone()));
    Ok(WantedThing { kind, identity, fields, shown_once_file })
}

fn check_identities(tenant: &str, found: &TenantFolder) -> Result<(), CommandFailure> {
    let mut seen = BTreeSet::new();
    for thing in &found.things {
        if !seen.insert((thing.kind, &thing.identity)) {
            let (kind, identity) = (thing.kind.word(), &thing.identity);
            return Err(CommandFailure::Usage(format!("{tenant}/{kind} has {identity} twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_is_read_in_the_order_in_which_things_are_made() {
        let folder = folder(&[
            ("README.md", "notes"),
            ("acme/tenant.toml", "name = \"Acme\"\nweight = 50\n"),
            ("acme/rules/orders.toml", "mailbox = \"support\"\n"),
            (
                "acme/accounts/a.toml",
                "host = \"a.example\"\nfallback = \"b\"\npassword_file = \"../../pw\"\n",
            ),
            ("acme/accounts/b.toml", "host = \"b.example\"\n[limits]\nper_minute = 6\n"),
            ("acme/keys/app.toml", "scopes = [\"send\"]\nkey_file = \"../../app.key\"\n"),
            ("acme/webhooks/crm.toml", "url = \"https://crm.example/hook\"\n"),
            ("pw", "secret\n"),
        ]);
        let read = SettingsFolder::read(folder.path()).unwrap();
        let acme = &read.tenants["acme"];
        assert_eq!(acme.settings.as_ref().unwrap().plain["weight"], 50);
        let things: Vec<_> =
            acme.things.iter().map(|thing| (thing.kind.word(), thing.identity.as_str())).collect();
        let expected = [
            ("accounts", "b"),
            ("accounts", "a"),
            ("webhooks", "https://crm.example/hook"),
            ("rules", "orders"),
            ("keys", "app"),
        ];
        assert_eq!(things, expected);
        assert_eq!(acme.things[1].fields.secrets, ["password"]);
        assert!(acme.things[4].shown_once_file.is_some() && acme.things[4].fields.secrets.is_empty());
    }

    #[test]
    fn a_time_of_toml_is_a_text_and_what_is_unset_is_null() {
        let folder = folder(&[
            ("acme/keys/app.toml", "expires_at = 2030-01-31 09:00:00+01:00\nallow_ips = []\n"),
            (
                "acme/accounts/a.toml",
                "unset = [\"fallback\", \"limits.per_day\"]\n[limits]\nper_minute = 6\n",
            ),
        ]);
        let read = SettingsFolder::read(folder.path()).unwrap();
        let things = &read.tenants["acme"].things;
        let account = Value::Object(things[0].fields.body(true));
        let expected = json!({"id": "a", "fallback": null, "limits": {"per_minute": 6, "per_day": null}});
        assert_eq!(account, expected);
        assert_eq!(things[1].fields.plain["expires_at"], "2030-01-31T09:00:00+01:00");
    }

    #[test]
    fn mistakes_name_their_file() {
        for (files, named) in [
            (&[("acme/acounts/a.toml", "")][..], "acounts is no kind"),
            (&[("acme/accounts/a.toml", "host = ")], "a.toml is not TOML"),
            (&[("acme/accounts/a.toml", "id = \"b\"")], "its id is b"),
            (&[("acme/webhooks/a.toml", "events = []")], "it needs url"),
            (
                &[("acme/keys/a.toml", "expires_at = 2030-01-31")],
                "a.toml is not TOML: 2030-01-31 is no moment",
            ),
            (&[("acme/accounts/a.toml", "max_connections = nan")], "NaN is no number"),
            (&[("acme/accounts/a.toml", "unset = \"fallback\"")], "unset must be a list of names"),
            (&[("acme/accounts/a.toml", "unset = [\"host\"]\nhost = \"a\"")], "host is both given and unset"),
            (&[("acme/accounts/a.toml", "password_env = \"POSTWAY_NOT_SET\"")], "POSTWAY_NOT_SET is not set"),
            (
                &[("acme/webhooks/a.toml", "url = \"u\""), ("acme/webhooks/b.toml", "url = \"u\"")],
                "has u twice",
            ),
            (&[("notes.md", "")], "has no tenants"),
        ] {
            let folder = folder(files);
            let error = SettingsFolder::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains(named), "{error} should say `{named}`");
        }
    }
}
