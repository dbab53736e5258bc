//! A rule that is written but not listed would never run.

use std::{fs, path::Path};

/// What rules are made of.
const STAGE: &str = "stage.rs";

#[test]
fn every_rule_is_listed() {
    let lists = [include_str!("rules.rs"), include_str!("inbound_rules.rs"), include_str!("again.rs")];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let mut themes = 0;
    for theme in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if theme.file_name() == STAGE {
            continue;
        }
        let source = fs::read_to_string(theme.path()).unwrap();
        for line in source.lines() {
            let Some(rule) = line.strip_prefix("pub async fn ") else {
                continue;
            };
            let name = rule.split('(').next().unwrap();
            let listed = lists.iter().flat_map(|list| list.lines()).any(|line| line.trim() == name);
            assert!(listed, "{name} of {} is in no list of tests", theme.path().display());
        }
        themes += 1;
    }
    assert!(themes > 40, "the rules are not where they were looked for");
}
