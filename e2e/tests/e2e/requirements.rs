//! The five references, requirement by requirement: `requirements/NNN.md` lists each under its number with
//! the tests that show it. This holds the lists against the sources: no number is left out, and each test
//! that is named is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

/// A list, and how many requirements its reference has.
const LISTS: [(&str, &str, usize); 5] = [
    ("000", include_str!("requirements/000.md"), 45),
    ("001", include_str!("requirements/001.md"), 69),
    ("002", include_str!("requirements/002.md"), 51),
    ("003", include_str!("requirements/003.md"), 46),
    ("004", include_str!("requirements/004.md"), 69),
];

/// The names of all functions that stand right below an attribute of a test, and of the rules that every
/// store is held to.
fn tests() -> anyhow::Result<BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?.to_owned();
    let mut folders: Vec<PathBuf> = ["crates", "e2e", "testkit"].iter().map(|name| root.join(name)).collect();
    let mut names = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let is_rules = path.components().any(|part| part.as_os_str() == "conformance");
                let is_views =
                    path.ends_with("views/tests/words.rs") || path.ends_with("views/tests/install.rs");
                collect(&fs::read_to_string(&path)?, is_rules || is_views, &mut names);
            }
        }
    }
    Ok(names)
}

fn collect(source: &str, is_rules: bool, names: &mut BTreeSet<String>) {
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[tokio::test") || line.starts_with("#[test]");
        let declared = line.split_once("fn ").filter(|(before, _)| !before.contains(['"', '/']));
        if let Some((_, rest)) = declared {
            let name: String =
                rest.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
            if is_test || is_rules {
                names.insert(name);
            }
            is_test = false;
        }
    }
}

#[test]
fn every_requirement_is_listed_with_tests_that_are_there() -> anyhow::Result<()> {
    let known = tests()?;
    ensure!(known.len() > 500, "the tests were not found");
    let mut wrong = Vec::new();
    for (reference, list, count) in LISTS {
        let rows = list.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).skip(1);
        let mut numbers = Vec::new();
        for row in rows {
            ensure!(row.len() == 3, "{reference}: {row:?}");
            numbers.push(row[0].parse::<usize>()?);
            for name in row[2].split(", ").map(|name| name.trim_matches('`')) {
                if !known.contains(name) {
                    wrong.push(format!("{reference} {}: there is no test `{name}`", row[0]));
                }
            }
        }
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{reference}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
