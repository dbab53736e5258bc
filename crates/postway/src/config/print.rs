//! The effective configuration as TOML, secrets masked, each value with its source as a comment.
//!
//! What is printed loads again, except for masked secrets: those are printed as comments.

use super::settings::{Kind, SETTINGS};
use super::value::{Resolved, Source};

/// Renders every setting in the order of the table.
pub fn render(resolved: &[Resolved]) -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let (of, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
        if of != section {
            text.push_str(&format!("\n[{of}]\n"));
            section = of;
        }
        let Some(value) = resolved.iter().find(|value| value.setting.key == setting.key) else {
            continue;
        };
        let source = comment(&value.source);
        text.push_str(&match &value.shown {
            Some(shown) if setting.kind == Kind::Secret => format!("# {key} = \"{shown}\"  # {source}\n"),
            Some(shown) => format!("{key} = {}  # {source}\n", literal(setting.kind, shown)),
            None if setting.kind == Kind::Secret && !key.ends_with("_previous") => {
                format!("# {key}: made on first start\n")
            }
            None => format!("# {key}: off\n"),
        });
    }
    text
}

fn literal(kind: Kind, shown: &str) -> String {
    match kind {
        Kind::Integer => shown.to_owned(),
        Kind::List => {
            let items = shown.split(',').map(str::trim).filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect()).to_string()
        }
        Kind::Text | Kind::Secret | Kind::Url => toml::Value::String(shown.to_owned()).to_string(),
    }
}

/// A path may hold anything, a comment may not.
fn comment(source: &Source) -> String {
    source.to_string().replace(char::is_control, "?")
}
