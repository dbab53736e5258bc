//! Templates in files: a folder of their parts, or a JSON file of complete templates.

use std::collections::BTreeMap;
use std::path::Path;

use postway_domain::MailLocale;
use serde_json::{Map, Value};

use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;

/// The part of a template that a file contains, by the ending of its name. Longer endings come first:
/// `a.subject.txt` also ends in `.txt`.
const PARTS: [(&str, &str); 7] = [
    (".subject.txt", "subject"),
    (".sample.json", "sample"),
    (".settings.json", SETTINGS),
    (".description.txt", "description"),
    (".html", "html"),
    (".txt", "text"),
    (".mjml", "mjml"),
];
/// The file with the fields of a template that are no text: `layout`, `inline_css`.
const SETTINGS: &str = "settings";
/// What a template in a language takes from the one without, unless it has its own.
const INHERITED: [&str; 5] = ["subject", "sample", "description", "layout", "inline_css"];
/// A folder with more templates than this is refused as a mistake.
const TEMPLATES_MAX: usize = 10_000;

/// A template and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateFile {
    /// The name.
    pub name: String,
    /// The other fields, as the API takes them.
    pub template: Map<String, Value>,
}

/// The templates of a folder or a JSON file, by name.
pub fn read(path: &Path) -> Result<Vec<TemplateFile>, CommandFailure> {
    let found = if path.is_dir() { from_folder(path)? } else { from_json(path)? };
    match found.is_empty() {
        true => Err(CommandFailure::Usage(format!(
            "{} has no templates: name them like welcome.subject.txt, welcome.html, welcome.txt, welcome.mjml",
            path.display()
        ))),
        false => Ok(found),
    }
}

/// One of the templates of a folder or a JSON file.
pub fn read_one(path: &Path, name: &str) -> Result<Map<String, Value>, CommandFailure> {
    let found = read(path)?.into_iter().find(|found| found.name == name);
    let missing = || CommandFailure::NotFound(format!("{} has no template {name}", path.display()));
    found.map(|found| found.template).ok_or_else(missing)
}

fn from_folder(folder: &Path) -> Result<Vec<TemplateFile>, CommandFailure> {
    let unreadable =
        |error: std::io::Error| CommandFailure::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut templates: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(file) = path.file_name().and_then(|file| file.to_str()) else { continue };
        let part = PARTS.iter().find_map(|(ending, part)| Some((file.strip_suffix(ending)?, *part)));
        let Some((name, part)) = part.filter(|(name, _)| !name.is_empty()) else { continue };
        let text = String::from_utf8(read_input(&path)?)
            .map_err(|_| CommandFailure::Usage(format!("{} is not UTF-8 text", path.display())))?;
        let value = match part {
            // An editor adds a line break at the end that does not belong to the text.
            "subject" | "description" => Value::from(text.trim_end_matches(['\r', '\n'])),
            "sample" | SETTINGS => serde_json::from_str(&text)
                .map_err(|error| CommandFailure::Usage(format!("{} is not JSON: {error}", path.display())))?,
            _ => Value::from(text),
        };
        let template = templates.entry(name.to_owned()).or_default();
        match (part, value) {
            (SETTINGS, Value::Object(settings)) => template.extend(settings),
            (SETTINGS, _) => {
                let message =
                    format!("{} must hold an object such as {{\"layout\": \"base\"}}", path.display());
                return Err(CommandFailure::Usage(message));
            }
            (part, value) => {
                template.insert(part.to_owned(), value);
            }
        }
        if templates.len() > TEMPLATES_MAX {
            let message = format!("{} has more than {TEMPLATES_MAX} templates", folder.display());
            return Err(CommandFailure::Usage(message));
        }
    }
    let bases = templates.clone();
    let in_language = |(name, template)| in_language(&bases, name, template);
    Ok(templates.into_iter().map(in_language).collect())
}

/// A template of a folder. `welcome.de_at` beside `welcome` is that template in Austrian German: it takes
/// from it what it lacks, and its name is written as the server looks it up.
fn in_language(
    bases: &BTreeMap<String, Map<String, Value>>,
    name: String,
    mut template: Map<String, Value>,
) -> TemplateFile {
    let localised = name.rsplit_once('.').and_then(|(base, ending)| {
        let locale: MailLocale = ending.parse().ok()?;
        Some((format!("{base}.{locale}"), bases.get(base)?))
    });
    let Some((name, base)) = localised else { return TemplateFile { name, template } };
    for field in INHERITED {
        if let Some(value) = base.get(field)
            && !template.contains_key(field)
        {
            template.insert(field.to_owned(), value.clone());
        }
    }
    TemplateFile { name, template }
}

/// The name with the `locale` of a template, which a JSON file may give beside its name.
fn localised_name(name: String, template: &Map<String, Value>) -> String {
    let locale =
        template.get("locale").and_then(Value::as_str).and_then(|locale| locale.parse::<MailLocale>().ok());
    match locale.map(|locale| format!(".{locale}")) {
        Some(ending) if !name.ends_with(&ending) => name + &ending,
        _ => name,
    }
}

fn from_json(path: &Path) -> Result<Vec<TemplateFile>, CommandFailure> {
    let wrong = |reason: String| CommandFailure::Usage(format!("{} {reason}", path.display()));
    let parsed = serde_json::from_slice(&read_input(path)?)
        .map_err(|error| wrong(format!("is neither a folder nor a JSON file of templates: {error}")))?;
    let templates = match parsed {
        Value::Array(templates) => templates,
        one => vec![one],
    };
    let named = |template: Value| match template {
        Value::Object(mut template) => match template.remove("name") {
            Some(Value::String(name)) => Ok(TemplateFile { name: localised_name(name, &template), template }),
            _ => Err(wrong("has a template without a name".to_owned())),
        },
        _ => Err(wrong("must hold a template as a JSON object, or a list of them".to_owned())),
    };
    templates.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_files_of_a_folder_become_templates() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("welcome.subject.txt", "Hello {{ name }}\n"),
            ("welcome.html", "<p>Hello</p>\n"),
            ("welcome.txt", "Hello"),
            ("welcome.sample.json", r#"{"name": "Ada"}"#),
            ("news.2024.mjml", "<mjml></mjml>"),
            ("README.md", "not a template"),
            (".html", "nor this"),
        ] {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let found = read(folder.path()).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        let template = Map::from_iter([("mjml".into(), "<mjml></mjml>".into())]);
        assert_eq!(found[0], TemplateFile { name: "news.2024".to_owned(), template });
        let expected = json!({
            "subject": "Hello {{ name }}", "html": "<p>Hello</p>\n", "text": "Hello", "sample": {"name": "Ada"},
        });
        assert_eq!(Value::Object(read_one(folder.path(), "welcome").unwrap()), expected);
        assert!(matches!(read_one(folder.path(), "other"), Err(CommandFailure::NotFound(_))));
    }

    #[test]
    fn languages_stand_beside_their_template_and_take_from_it_what_they_lack() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("welcome.subject.txt", "Welcome"),
            ("welcome.html", "<p>Hello</p>"),
            ("welcome.settings.json", r#"{"layout": "base", "inline_css": true}"#),
            ("welcome.de_at.html", "<p>Servus</p>"),
            ("welcome.de.subject.txt", "Willkommen"),
            ("welcome.de.txt", "Hallo"),
            ("invoice.IT.html", "<p>Fattura</p>"),
        ] {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let found = read(folder.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["invoice.IT", "welcome", "welcome.de", "welcome.de-AT"]);
        let shown = |at: usize| Value::Object(found[at].template.clone());
        let settings = json!({"layout": "base", "inline_css": true});
        assert_eq!(shown(2)["subject"], "Willkommen");
        assert_eq!(shown(2)["html"], Value::Null, "a part is never of another language");
        assert_eq!((&shown(3)["subject"], &shown(3)["layout"]), (&json!("Welcome"), &settings["layout"]));
        assert_eq!(shown(0), json!({"html": "<p>Fattura</p>"}), "without a template beside it, it is a name");
        std::fs::write(folder.path().join("welcome.settings.json"), "7").unwrap();
        assert!(matches!(read(folder.path()), Err(CommandFailure::Usage(_))));
    }

    #[test]
    fn a_json_file_holds_one_template_or_several() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("templates.json");
        for (text, names) in [
            (r#"{"name": "a", "text": "x"}"#, &["a"][..]),
            (r#"[{"name": "a", "text": "x"}, {"name": "b", "text": "y"}]"#, &["a", "b"]),
            (r#"{"name": "a", "locale": "de_at", "text": "x"}"#, &["a.de-AT"]),
        ] {
            std::fs::write(&path, text).unwrap();
            let found: Vec<String> = read(&path).unwrap().into_iter().map(|found| found.name).collect();
            assert_eq!(found, names);
        }
        for wrong in ["[]", "{}", "7", "<p>"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(matches!(read(&path), Err(CommandFailure::Usage(_))), "{wrong}");
        }
    }
}
