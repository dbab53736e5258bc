//! The layers of a configuration: defaults, then the file, then the environment.
//!
//! A [`ConfigLayers`] is read one setting at a time by the section files. It gathers errors instead of
//! stopping at the first, and remembers each effective value with its [`SettingSource`] for `config print`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::settings::{self, ConfigSetting, SettingKind};
use super::value::{ResolvedSetting, SettingSource, masked, read_bounded, text_of};

struct FileValue {
    text: String,
    line: usize,
}

/// The file and the environment, read but not yet understood.
pub struct ConfigLayers {
    path: PathBuf,
    file: BTreeMap<String, FileValue>,
    env: BTreeMap<String, String>,
    /// The `[outbox.NAME]` that is being read, if it is one.
    pub scope: Option<String>,
    /// The errors so far.
    pub errors: Vec<ConfigError>,
    /// Warnings: likely mistakes that do no harm.
    pub warnings: Vec<String>,
    /// What was read so far.
    pub resolved: Vec<ResolvedSetting>,
}

impl ConfigLayers {
    /// Reads both layers; their errors are in `errors`.
    pub fn gather(file: Option<&Path>, env: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut layers = Self {
            path: file.map(Path::to_owned).unwrap_or_default(),
            file: BTreeMap::new(),
            env: BTreeMap::new(),
            scope: None,
            errors: Vec::new(),
            warnings: Vec::new(),
            resolved: Vec::new(),
        };
        if let Some(path) = file {
            match read_bounded(path) {
                Ok(text) => layers.gather_file(&text),
                Err(error) => layers.errors.push(error),
            }
        }
        layers.gather_env(env);
        layers
    }

    /// Reads one setting; on an error it is noted and nothing is returned.
    pub fn take<T>(
        &mut self,
        key: &'static str,
        default: T,
        default_shown: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        match self.look_up(key) {
            SettingLookup::Unset(setting) => {
                let shown = Some(default_shown.to_owned());
                self.resolve(setting, shown, SettingSource::Default);
                Some(default)
            }
            SettingLookup::Set(setting, text, source) => self.understand(setting, &text, source, parse),
            SettingLookup::Broken => None,
        }
    }

    /// Reads one setting that may stay unset: `Some(None)`. On an error it is noted and nothing is returned.
    pub fn take_optional<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Option<T>> {
        match self.look_up(key) {
            SettingLookup::Unset(setting) => {
                self.resolve(setting, None, SettingSource::Default);
                Some(None)
            }
            SettingLookup::Set(setting, text, source) => {
                self.understand(setting, &text, source, parse).map(Some)
            }
            SettingLookup::Broken => None,
        }
    }

    fn understand<T>(
        &mut self,
        setting: &'static ConfigSetting,
        text: &str,
        source: SettingSource,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(text) {
            Ok(value) => {
                let shown = Some(masked(setting.kind, text));
                self.resolve(setting, shown, source);
                Some(value)
            }
            Err(problem) => {
                self.errors.push(ConfigError::Invalid { key: setting.key, source_of_value: source, problem });
                None
            }
        }
    }

    fn resolve(&mut self, setting: &'static ConfigSetting, shown: Option<String>, source: SettingSource) {
        self.resolved.push(ResolvedSetting { setting, scope: self.scope.clone(), shown, source });
    }

    /// Notes that settings contradict each other.
    pub fn refuse(&mut self, key: &'static str, problem: String) {
        let source = self.resolved.iter().rev().find(|one| one.setting.key == key && one.scope == self.scope);
        let source_of_value = source.map_or(SettingSource::Default, |one| one.source.clone());
        self.errors.push(ConfigError::Invalid { key, source_of_value, problem });
    }

    /// The names of the sections `[outbox.NAME]`.
    pub fn outbox_names(&self) -> Vec<String> {
        let names = self.file.keys().filter_map(|key| key.strip_prefix("outbox.")?.split_once('.'));
        let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
        names.dedup();
        names
    }

    fn look_up(&mut self, key: &'static str) -> SettingLookup {
        let Some(setting) = settings::find(key) else {
            unreachable!("`{key}` is read but is not in the table of settings");
        };
        let scoped = |key: &str| match &self.scope {
            Some(scope) => key.replacen("outbox.", &format!("outbox.{scope}."), 1),
            None => key.to_owned(),
        };
        // Empty means unset: container set-ups pass variables through whether or not they have a value.
        let from_env = |name: &str| {
            if self.scope.is_some() {
                return None;
            }
            let value = self.env.get(name).filter(|value| !value.is_empty())?;
            Some((value.clone(), SettingSource::Env(name.to_owned())))
        };
        let from_file = |key: &str| {
            let value = self.file.get(&scoped(key))?;
            Some((value.text.clone(), SettingSource::File(self.path.clone(), value.line)))
        };
        let layers = [
            (from_env(setting.env), from_env(&format!("{}_FILE", setting.env))),
            (from_file(setting.key), from_file(&format!("{}_file", setting.key))),
        ];
        for (direct, indirect) in layers {
            match (direct, indirect) {
                (Some((text, source)), None) => return SettingLookup::Set(setting, text, source),
                (None, Some((path, source))) if setting.kind.may_come_from_file() => {
                    return match read_bounded(Path::new(&path)) {
                        Ok(text) => SettingLookup::Set(
                            setting,
                            text.trim_end_matches(['\r', '\n']).to_owned(),
                            source,
                        ),
                        Err(error) => {
                            self.errors.push(error);
                            SettingLookup::Broken
                        }
                    };
                }
                (Some((_, source)), Some(_)) if setting.kind.may_come_from_file() => {
                    let problem = "set both directly and by a file; keep one of the two".to_owned();
                    self.errors.push(ConfigError::Invalid {
                        key: setting.key,
                        source_of_value: source,
                        problem,
                    });
                    return SettingLookup::Broken;
                }
                (Some((text, source)), Some(_)) => return SettingLookup::Set(setting, text, source),
                (None, _) => {}
            }
        }
        match settings::usual_variable(setting.key).and_then(from_env) {
            Some((text, source)) => SettingLookup::Set(setting, text, source),
            None => SettingLookup::Unset(setting),
        }
    }

    fn gather_env(&mut self, env: impl IntoIterator<Item = (OsString, OsString)>) {
        for (name, value) in env {
            let Some(name) = name.to_str() else { continue };
            let is_known = settings::is_known_variable(name);
            if !is_known && !name.starts_with("POSTWAY_") {
                continue;
            }
            if !is_known {
                self.warnings.push(match settings::nearest_variable(name) {
                    Some(nearest) => format!("unknown variable {name} is ignored; did you mean {nearest}?"),
                    None => format!("unknown variable {name} is ignored"),
                });
                continue;
            }
            match value.into_string() {
                Ok(value) => {
                    self.env.insert(name.to_owned(), value);
                }
                Err(_) => self.warnings.push(format!("variable {name} is not UTF-8 and is ignored")),
            }
        }
    }

    fn gather_file(&mut self, text: &str) {
        let line_at = |offset: usize| {
            let before = &text.as_bytes()[..offset.min(text.len())];
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        };
        let (table, problems) = DeTable::parse_recoverable(text);
        if !problems.is_empty() {
            for problem in problems {
                let line = problem.span().map_or(1, |span| line_at(span.start));
                let problem = problem.message().to_owned();
                self.errors.push(ConfigError::Syntax { path: self.path.clone(), line, problem });
            }
            return;
        }
        for (key, value) in table.get_ref() {
            let (name, line) = (key.get_ref().as_ref(), line_at(key.span().start));
            match value.get_ref() {
                DeValue::Table(section) if settings::is_section(name) => {
                    for (inner, value) in section {
                        let line = line_at(inner.span().start);
                        match value.get_ref() {
                            DeValue::Table(source) if name == "outbox" => {
                                self.keep_source(inner.get_ref(), source, line, line_at);
                            }
                            _ => self.keep(format!("{name}.{}", inner.get_ref()), None, value, line),
                        }
                    }
                }
                _ => self.keep(name.to_owned(), None, value, line),
            }
        }
    }

    /// Adds a section `[outbox.NAME]`, whose keys are those of `[outbox]`.
    fn keep_source(
        &mut self,
        name: &str,
        source: &DeTable<'_>,
        line: usize,
        line_at: impl Fn(usize) -> usize,
    ) {
        if !postway_intake::outbox::is_source_name(name) || name == "default" {
            let (path, key) = (self.path.clone(), format!("outbox.{name}"));
            let advice =
                "call it something else: letters, digits, - and _, and not `default`, which is [outbox]";
            self.errors.push(ConfigError::UnknownKey { path, line, key, advice: advice.to_owned() });
            return;
        }
        for (key, value) in source {
            let line = line_at(key.span().start);
            self.keep(format!("outbox.{}", key.get_ref()), Some(name), value, line);
        }
    }

    fn keep(&mut self, key: String, scope: Option<&str>, value: &Spanned<DeValue<'_>>, line: usize) {
        if !settings::is_known_key(&key) {
            let advice = match settings::nearest_key(&key) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if settings::is_section(&key) => format!("write a section: [{key}]"),
                None => "remove it; `postway config print` lists every key".to_owned(),
            };
            self.errors.push(ConfigError::UnknownKey { path: self.path.clone(), line, key, advice });
            return;
        }
        // A known key that is not in the table is the `…_file` of a secret: a path, so a string.
        let (known_key, kind) = settings::find(&key)
            .map_or(("…_file", SettingKind::Text), |setting| (setting.key, setting.kind));
        match text_of(kind, value.get_ref()) {
            Some(text) => {
                let key = match scope {
                    Some(scope) => key.replacen("outbox.", &format!("outbox.{scope}."), 1),
                    None => key,
                };
                self.file.insert(key, FileValue { text, line });
            }
            None => self.errors.push(ConfigError::Invalid {
                key: known_key,
                source_of_value: SettingSource::File(self.path.clone(), line),
                problem: format!("must be {}, not {}", kind.expected(), value.get_ref().type_str()),
            }),
        }
    }
}

enum SettingLookup {
    Unset(&'static ConfigSetting),
    Set(&'static ConfigSetting, String, SettingSource),
    Broken,
}
