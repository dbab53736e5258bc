//! The effective configuration as TOML, secrets masked, each value with its source as a comment.
//!
//! What is printed loads again, except for masked secrets: those are printed as comments.

use super::settings::{SETTINGS, SettingKind};
use super::value::{ResolvedSetting, SettingSource};

/// Renders every setting in the order of the table, then the sections `[outbox.NAME]`.
pub fn render(resolved: &[ResolvedSetting]) -> String {
    let mut text = render_scope(resolved, None);
    let mut scopes: Vec<&String> = resolved.iter().filter_map(|value| value.scope.as_ref()).collect();
    scopes.dedup();
    for scope in scopes {
        text.push_str(&render_scope(resolved, Some(scope)));
    }
    text
}

fn render_scope(resolved: &[ResolvedSetting], scope: Option<&String>) -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let (of, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
        let is_it =
            |value: &&ResolvedSetting| value.setting.key == setting.key && value.scope.as_ref() == scope;
        let found = resolved.iter().find(is_it);
        if scope.is_some() && found.is_none() {
            continue;
        }
        if of != section {
            let name = scope.map(|name| format!(".{name}")).unwrap_or_default();
            text.push_str(&format!("\n[{of}{name}]\n"));
            section = of;
        }
        let Some(value) = found else { continue };
        let source = comment(&value.source);
        text.push_str(&match &value.shown {
            Some(shown) if setting.kind == SettingKind::Secret => {
                format!("# {key} = \"{shown}\"  # {source}\n")
            }
            Some(shown) => format!("{key} = {}  # {source}\n", literal(setting.kind, shown)),
            None if setting.kind == SettingKind::Secret && of.is_empty() && !key.ends_with("_previous") => {
                format!("# {key}: made on first start\n")
            }
            None => format!("# {key}: off\n"),
        });
    }
    text
}

fn literal(kind: SettingKind, shown: &str) -> String {
    match kind {
        SettingKind::Integer => shown.to_owned(),
        SettingKind::ListOrWord if !shown.contains(',') => toml::Value::String(shown.to_owned()).to_string(),
        SettingKind::List | SettingKind::ListOrWord => {
            let items = shown.split(',').map(str::trim).filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect()).to_string()
        }
        SettingKind::Text | SettingKind::Secret | SettingKind::Url => {
            toml::Value::String(shown.to_owned()).to_string()
        }
    }
}

/// A path may contain line breaks, a comment may not.
fn comment(source: &SettingSource) -> String {
    source.to_string().replace(char::is_control, "?")
}
