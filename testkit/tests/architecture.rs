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
        ["crates", "testkit", "e2e"].iter().map(|name| root().join(name)).collect();
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
