//! What the documents promise about the code, held against the code: the arrows between crates, the table of
//! states, the settings and metrics, and a few rules of style.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The longest file, its own unit tests aside.
const LINES_MAX: usize = 500;
/// The state machine's table, as its test prints it.
const SNAPSHOT: &str = "crates/domain/src/message/transition/snapshots/\
                        postway_domain__message__transition__tests__the_whole_table.snap";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A source without its own unit tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// The lines of the fenced block of that kind.
fn block<'d>(document: &'d str, kind: &str) -> Vec<&'d str> {
    let start = format!("```{kind}");
    let lines = document.lines().skip_while(|line| **line != start).skip(1);
    lines.take_while(|line| *line != "```").collect()
}

/// Every Rust file of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "testkit", "e2e", "benches", "fuzz"].iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 100, "the sources were not found");
    found
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches")
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// Our crates and what each uses of ours in the product, by their short names.
fn arrows_of_cargo() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let short = |name: &str| name.strip_prefix("postway-").unwrap_or(name).to_owned();
    let used = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        // Those of tests and build scripts have a kind.
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        let names = normal.map(|dependency| dependency["name"].as_str().unwrap());
        names.filter(|name| ours.contains(name)).map(short).collect()
    };
    packages.iter().map(|package| (short(package["name"].as_str().unwrap()), used(package))).collect()
}

#[test]
fn crates_use_only_what_their_arrows_allow() {
    let architecture = read("ARCHITECTURE.md");
    let allowed: BTreeMap<&str, BTreeSet<&str>> = block(&architecture, "arrows")
        .into_iter()
        .map(|line| {
            let (from, to) = line.split_once('→').unwrap();
            (from.trim(), to.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
        })
        .collect();
    for (from, used) in arrows_of_cargo() {
        // What only tests and benches use may use anything; nothing of the product may use it.
        if matches!(from.as_str(), "testkit" | "e2e" | "benches" | "fuzz") {
            continue;
        }
        let allowed = allowed.get(from.as_str()).unwrap_or_else(|| panic!("no arrows for {from}"));
        for to in used {
            assert!(allowed.contains(to.as_str()), "{from} → {to} is no arrow of ARCHITECTURE.md");
        }
    }
}

/// The snapshot as the table of ARCHITECTURE.md.
fn rendered(snapshot: &str) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for line in snapshot.lines() {
        let Some((from, rest)) = line.split_once(" + ") else { continue };
        let (input, rest) = rest.split_once(" -> ").unwrap();
        let (to, effects) = rest.rsplit_once(" [").unwrap();
        let to = match effects.split(',').next() {
            Some("-") | None => name(to),
            Some(event) => format!("{} ({event})", name(to)),
        };
        let from = name(from);
        if rows.last().is_none_or(|(last, _)| *last != from) {
            rows.push((from, Vec::new()));
        }
        rows.last_mut().unwrap().1.push(format!("{input} → {to}"));
    }
    let rows = rows.iter().map(|(from, moves)| format!("| {from} | {} |", moves.join(" · ")));
    let head = ["| state | input → next state (event) |".to_owned(), "|---|---|".to_owned()];
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn name(state: &str) -> String {
    let state = state.replace(" { wire_committed: false }", "");
    state.replace("Sending { wire_committed: true }", "**Sending, dot allowed**")
}

#[test]
fn the_table_of_states_is_that_of_the_code() {
    let table = rendered(&read(SNAPSHOT));
    assert!(table.lines().count() > 10, "{table}");
    assert!(read("ARCHITECTURE.md").contains(&table), "ARCHITECTURE.md should have:\n\n{table}\n");
}

/// Asserts that the document names every quoted text of the source that is wanted.
fn assert_documented(source: &str, document: &str, wanted: fn(&str) -> bool) {
    let (text, guide) = (read(source), read(document));
    let names: BTreeSet<&str> = without_tests(&text).split('"').filter(|text| wanted(text)).collect();
    assert!(names.len() > 5, "{source} has no such names");
    let missing: Vec<_> = names.into_iter().filter(|name| !guide.contains(name)).collect();
    assert!(missing.is_empty(), "{document} does not name {missing:?}");
}

#[test]
fn every_setting_is_in_the_guide() {
    let is_variable = |text: &str| text.starts_with("POSTWAY_") && !text.contains('{');
    assert_documented("crates/postway/src/config/settings.rs", "docs/guide/configuration.md", is_variable);
}

#[test]
fn every_metric_is_in_the_guide() {
    let is_metric = |text: &str| {
        text.starts_with("postway_") && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
    };
    assert_documented("crates/postway/src/server/telemetry.rs", "docs/guide/operations.md", is_metric);
}

#[test]
fn files_are_short_and_finished() {
    let unfinished = [concat!("#[", "ignore"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for word in unfinished {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
        let lines = without_tests(&text).lines().count();
        assert!(is_test(&path) || lines <= LINES_MAX, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn every_module_opens_with_its_page() {
    for path in sources().iter().filter(|path| !is_test(path)) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("//!"), "{} does not say what it is", path.display());
    }
}

/// Comments with a word or a turn of [`UNCLEAR`]. The number may only sink; it is to be zero.
const UNCLEAR_COMMENTS_MAX: usize = 22;
/// Turns of phrase that a comment must not have: they say nothing without the code beside them.
const UNCLEAR: [&str; 6] = ["told", "so many", "what became of", "is looked", "is none", "that is none"];
/// Documentation comments that name nothing.
const EMPTY_DOCS: [&str; 6] =
    ["/// Which.", "/// Whose.", "/// Who.", "/// What.", "/// The same.", "/// How many."];

/// Whether the text has these words, and not only as a part of others.
fn has_words(text: &str, words: &str) -> bool {
    let is_edge = |character: Option<char>| character.is_none_or(|one| !one.is_alphanumeric() && one != '_');
    text.match_indices(words).any(|(at, _)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + words.len()..].chars().next())
    })
}

/// The comment of a line that is nothing else.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_start()).filter(|line| line.starts_with("//"))
}

#[test]
fn comments_are_in_plain_words() {
    let mut unclear = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment(line) else { continue };
            let lower = comment.to_lowercase();
            let is_unclear = UNCLEAR.iter().any(|words| has_words(&lower, words));
            if is_unclear || EMPTY_DOCS.contains(&comment.trim_end()) {
                unclear.push(format!("{}:{}: {comment}", path.display(), number + 1));
            }
        }
    }
    assert!(
        unclear.len() <= UNCLEAR_COMMENTS_MAX,
        "{} comments are unclear, {UNCLEAR_COMMENTS_MAX} are allowed:\n{}",
        unclear.len(),
        unclear.join("\n")
    );
}

/// Names that more than one type of `crates/*/src` has. The number may only sink.
const SHARED_NAMES_MAX: usize = 10;

/// The name of the type that a line of Rust defines.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let name = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = name.find(|one: char| !one.is_alphanumeric()).unwrap_or(name.len());
    Some(&name[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[test]
fn a_name_belongs_to_one_type() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let relative = path.strip_prefix(root()).unwrap().to_owned();
        let mut parts = relative.components().map(|part| part.as_os_str());
        if parts.next().is_none_or(|first| first != "crates") || parts.nth(1).is_none_or(|part| part != "src")
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for name in text.lines().filter_map(defined_type) {
            files.entry(name.to_owned()).or_default().push(relative.display().to_string());
        }
    }
    let shared: Vec<String> = files
        .iter()
        .filter(|(_, files)| files.len() > 1)
        .map(|(name, files)| format!("{name}: {}", files.join(" ")))
        .collect();
    assert!(files.len() > 500, "the types were not found");
    assert!(
        shared.len() <= SHARED_NAMES_MAX,
        "{} names belong to several types, {SHARED_NAMES_MAX} are allowed:\n{}",
        shared.len(),
        shared.join("\n")
    );
}

/// The top-level modules that the code of a file uses, as `crate::NAME` and in `use crate::{…}`.
fn used_modules(text: &str) -> BTreeSet<String> {
    let code: String =
        without_tests(text).lines().filter(|line| comment(line).is_none()).collect::<Vec<_>>().join("\n");
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|one| one.is_ascii_lowercase() || *one == '_').collect()
    };
    let mut used = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            used.insert(word(rest));
            continue;
        };
        // The names of a group stand at its first level.
        let (mut depth, mut begins) = (1, true);
        for (at, one) in group.char_indices() {
            if begins && depth == 1 && !one.is_whitespace() {
                used.insert(word(&group[at..]));
                begins = false;
            }
            match one {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => begins = true,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    used.retain(|name| !name.is_empty());
    used
}

/// The files of modules that are compiled for tests only, and the conformance suite.
fn test_modules() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let folder = match path.file_name().is_some_and(|name| name == "mod.rs" || name == "lib.rs") {
            true => path.parent().unwrap().to_owned(),
            false => path.with_extension(""),
        };
        for declared in text.split("#[cfg(test)]\n").skip(1) {
            let line = declared.trim_start().lines().next().unwrap_or_default();
            let name = line.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';'));
            found.extend(name.map(|name| folder.join(format!("{name}.rs"))));
        }
        if path.components().any(|part| part.as_os_str() == "conformance") {
            found.insert(path);
        }
    }
    found
}

/// The arrows between the folders of a crate, by their `use` lines. Files beside the folders belong to the root, which
/// ties the folders together.
fn arrows_of_folders(source: &Path) -> BTreeSet<(String, String)> {
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let test_modules = test_modules();
    let is_product = |path: &PathBuf| !is_test(path) && !test_modules.contains(path);
    for path in sources().into_iter().filter(|path| path.starts_with(source) && is_product(path)) {
        let first = path.strip_prefix(source).unwrap().components().next().unwrap();
        if !source.join(first).is_dir() {
            continue;
        }
        let name = first.as_os_str().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        modules.entry(name).or_default().extend(used_modules(without_tests(&text)));
    }
    let mut arrows = BTreeSet::new();
    for (from, used) in &modules {
        let known = used.iter().filter(|to| *to != from && modules.contains_key(*to));
        arrows.extend(known.map(|to| (from.clone(), to.clone())));
    }
    arrows
}

#[test]
fn folders_use_only_what_the_arrows_of_their_crate_allow() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(readme) = fs::read_to_string(folder.join("README.md")) else { continue };
        let lines = block(&readme, "arrows");
        if lines.is_empty() {
            continue;
        }
        checked += 1;
        let mut listed = BTreeSet::new();
        for line in lines {
            let (from, to) = line.split_once('→').unwrap_or_else(|| panic!("{line} is no arrow"));
            let targets = to.split(',').map(str::trim).filter(|name| !name.is_empty());
            listed.extend(targets.map(|to| (from.trim().to_owned(), to.to_owned())));
        }
        // A README may also list the files beside its folders; the code is asked about folders only.
        let is_folder = |name: &String| folder.join("src").join(name).is_dir();
        listed.retain(|(from, to)| is_folder(from) && is_folder(to));
        let used = arrows_of_folders(&folder.join("src"));
        let readme = folder.join("README.md");
        let readme = readme.display();
        let missing: Vec<_> = used.difference(&listed).collect();
        assert!(missing.is_empty(), "used and not listed in {readme}: {missing:?}");
        let unused: Vec<_> = listed.difference(&used).collect();
        assert!(unused.is_empty(), "listed in {readme} and not used: {unused:?}");
        for (from, to) in &listed {
            assert!(
                !listed.contains(&(to.clone(), from.clone())),
                "{from} and {to} use each other: {readme}"
            );
        }
    }
    assert!(checked > 0, "no crate lists the arrows between its folders");
}

#[test]
fn the_readers_of_these_rules_read_rust() {
    assert_eq!(defined_type("    pub(super) struct Lease<'a> {"), Some("Lease"));
    assert_eq!(defined_type("pub enum State {"), Some("State"));
    assert_eq!(defined_type("// a struct Lease"), None);
    let text = "use crate::{\n    config::{self, Config},\n    server,\n};\n//! crate::cli\nfn a() { crate::top::b() }";
    assert_eq!(used_modules(text).into_iter().collect::<Vec<_>>(), ["config", "server", "top"]);
    assert!(has_words("/// it is none.", "is none") && !has_words("/// untold", "told"));
}
