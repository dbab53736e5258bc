//! What the workspace depends on: nothing that is not used, nothing that `deny.toml` bans, and only licences
//! that it allows.
//!
//! `cargo deny check` says more (advisories, sources, versions) and needs the network and a program of its
//! own; hosted CI runs it. This holds the same lists wherever the tests run. It looks at the crates that this
//! platform builds, since others may not have been downloaded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Dependencies that are there for what they link or switch on, not for names that sources use.
const NEVER_NAMED: [(&str, &str); 1] = [("postway-store", "libsqlite3-sys")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All packages that are built on this platform, as cargo describes them.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The names and licences of what is built with the features in use: `cargo metadata` lists more. A package that
/// was listed before is marked by `(*)`.
fn linked_packages() -> BTreeSet<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none"])
        .args(["--edges", "normal,build,dev", "--format", "{p}|{l}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let packages = lines.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|'));
    packages
        .map(|(package, licence)| (package.split(' ').next().unwrap().to_owned(), licence.to_owned()))
        .collect()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// All of a package's Rust files: those of the product, or with those of its tests and benches.
fn sources(package: &Value, with_tests: bool) -> String {
    let mut folders = vec![Path::new(text(package, "manifest_path")).parent().unwrap().to_owned()];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_test = path.file_name().is_some_and(|name| name == "tests" || name == "benches");
            if path.is_dir() && (with_tests || !is_test) {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

/// Whether a source names that crate.
fn names_crate(source: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    source
        .match_indices(name)
        .any(|(at, _)| !source[..at].ends_with(is_part) && !source[at + name.len()..].starts_with(is_part))
}

/// The name by which sources know a dependency: what it is renamed to, or the name of its library.
fn library_name(dependency: &Value, packages: &[Value]) -> String {
    if let Some(renamed) = dependency["rename"].as_str() {
        return renamed.replace('-', "_");
    }
    let name = text(dependency, "name");
    let package = packages.iter().find(|package| text(package, "name") == name);
    let targets = package.and_then(|package| package["targets"].as_array());
    let is_library = |target: &&Value| {
        let kinds = target["kind"].as_array().unwrap();
        kinds.iter().any(|kind| matches!(kind.as_str(), Some("lib" | "rlib" | "proc-macro" | "cdylib")))
    };
    let library = targets.and_then(|targets| targets.iter().find(is_library));
    library.map_or(name, |library| text(library, "name")).replace('-', "_")
}

#[test]
fn every_dependency_is_used() {
    let packages = packages();
    let mut unused = Vec::new();
    for package in packages.iter().filter(|package| package["source"].is_null()) {
        let owner = text(package, "name");
        let (product, all) = (sources(package, false), sources(package, true));
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = text(dependency, "name");
            let source = if dependency["kind"].is_null() { &product } else { &all };
            if !names_crate(source, &library_name(dependency, &packages))
                && !NEVER_NAMED.contains(&(owner, name))
            {
                unused.push(format!("{owner}: {name}"));
            }
        }
    }
    assert!(unused.is_empty(), "declared in Cargo.toml and named in no source: {unused:?}");
}

/// Whether a licence expression can be met with the licences that are allowed.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let Ok(expression) = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX) else { return false };
    expression.evaluate(|wanted| wanted.license.id().is_some_and(|licence| allowed.contains(licence.name)))
}

#[test]
fn nothing_is_linked_that_deny_toml_bans() {
    let deny: toml::Table = fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let list = |section: &str, key: &str| deny[section][key].as_array().unwrap().clone();
    let allowed: BTreeSet<String> =
        list("licenses", "allow").iter().map(|licence| licence.as_str().unwrap().to_owned()).collect();
    let banned: BTreeSet<String> =
        list("bans", "deny").iter().map(|entry| entry["crate"].as_str().unwrap().to_owned()).collect();
    assert!(!allowed.is_empty() && !banned.is_empty());
    let mut faults = Vec::new();
    for (name, licence) in linked_packages() {
        if banned.contains(&name) {
            faults.push(format!("{name} is banned"));
        }
        if !is_allowed(&licence, &allowed) {
            faults.push(format!("{name} has the licence {licence:?}"));
        }
    }
    let of_elsewhere = |package: &Value| {
        let source = text(package, "source");
        !source.is_empty() && !source.starts_with("registry+")
    };
    let packages = packages();
    let elsewhere = packages.iter().filter(|package| of_elsewhere(package));
    faults.extend(elsewhere.map(|package| format!("{} is from no registry", text(package, "name"))));
    assert!(faults.is_empty(), "not what deny.toml allows: {faults:#?}");
}
