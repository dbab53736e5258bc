//! The table of attacks in docs/guide/security.md, held against the code: every attack has a test, and every
//! test that is named is there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// How many attacks there are.
const ATTACKS: usize = 65;
/// How far above a function its mark as a test may stand: other attributes come between them.
const MARK_LINES_MAX: usize = 6;

/// How the mark of a test begins that is left out of a run; another test looks for it in all sources.
const IGNORED: &str = concat!("#[", "ignore");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rows of the table: number and tests, each as its file and its name.
fn rows() -> Vec<(usize, Vec<(String, String)>)> {
    let page = fs::read_to_string(root().join("docs/guide/security.md")).unwrap();
    let section = page.lines().skip_while(|line| *line != "## Attacks").skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let cells = section.filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let numbered = cells.filter_map(|(number, rest)| Some((number.parse().ok()?, rest)));
    numbered
        .map(|(number, rest)| (number, tests(rest.trim_end_matches(" |").rsplit(" | ").next().unwrap())))
        .collect()
}

/// The tests of a cell: names of tests, each after the file that it is in.
fn tests(cell: &str) -> Vec<(String, String)> {
    let mut file = None;
    let mut found = Vec::new();
    for quoted in cell.split('`').skip(1).step_by(2) {
        match quoted.ends_with(".rs") {
            true => file = Some(quoted.to_owned()),
            false => found.push((file.clone().unwrap(), quoted.to_owned())),
        }
    }
    found
}

/// Whether a file has a test of this name that runs. The rules that every database must keep are run by a
/// list of their own.
fn has_test(file: &str, name: &str) -> bool {
    let Ok(source) = fs::read_to_string(root().join(file)) else { return false };
    match file.contains("/conformance/") {
        true => source.contains(&format!("pub async fn {name}(")) && is_listed_rule(name),
        false => tests_in(&source, name),
    }
}

/// Whether a rule is in the list that makes tests of them.
fn is_listed_rule(name: &str) -> bool {
    let list = ["rules.rs", "inbound_rules.rs"]
        .map(|file| fs::read_to_string(root().join("crates/store/src/conformance").join(file)).unwrap());
    let list = list.concat();
    list.lines().any(|line| line.trim() == name)
}

/// Whether a source has a test of this name that is not left out of a run.
fn tests_in(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let declared = format!("fn {name}(");
    let is_test = |place: usize| {
        let above = &lines[place.saturating_sub(MARK_LINES_MAX)..place];
        let marks: Vec<&str> =
            above.iter().rev().take_while(|line| !line.starts_with('}')).map(|line| line.trim()).collect();
        let has = |mark: &str| marks.iter().any(|line| line.starts_with(mark));
        (has("#[test]") || has("#[tokio::test")) && !has(IGNORED)
    };
    let mut places =
        lines.iter().enumerate().filter(|(_, line)| line.contains(&declared)).map(|(place, _)| place);
    places.any(is_test)
}

#[test]
fn every_attack_has_tests_that_are_there() {
    let rows = rows();
    let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=ATTACKS).collect::<Vec<_>>(), "docs/guide/security.md#attacks");
    let mut missing = Vec::new();
    for (number, tests) in rows {
        assert!(!tests.is_empty(), "attack {number} has no test");
        let gone = tests.into_iter().filter(|(file, name)| !has_test(file, name));
        missing.extend(gone.map(|(file, name)| format!("attack {number}: {file} has no test `{name}`")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_name_that_is_no_test_is_not_taken_for_one() {
    let here = "testkit/tests/attacks.rs";
    assert!(has_test(here, "a_name_that_is_no_test_is_not_taken_for_one"));
    for name in ["has_test", "tests", "a_name_that_is_no_test"] {
        assert!(!has_test(here, name), "{name}");
    }
    assert!(!has_test("testkit/tests/nowhere.rs", "a_name_that_is_no_test_is_not_taken_for_one"));
    // Nor is one that does not run: it is left out, or no list has it.
    assert!(tests_in("#[test]\nfn a() {", "a"));
    assert!(!tests_in(&format!("#[test]\n{IGNORED} = \"slow\"]\nfn a() {{"), "a"));
    let stage = "crates/store/src/conformance/stage.rs";
    assert!(fs::read_to_string(root().join(stage)).unwrap().contains("pub async fn claim("));
    assert!(!has_test(stage, "claim"));
    assert!(has_test("crates/store/src/conformance/audit.rs", "an_entry_reads_back_whole"));
}
