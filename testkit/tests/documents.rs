//! The guide and the files for operators, held against the code and against each other: links lead somewhere,
//! examples on a page are the files that tests run, and no panel or alert asks for a metric that nobody
//! counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a folder with one of these endings.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| endings.iter().any(|one| *one == ending)) {
                found.push(path);
            }
        }
    }
    found
}

/// The pages: the guide, and what stands at the root.
fn pages() -> Vec<PathBuf> {
    let at_root =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    let clients = ["python", "node", "rust"].map(|name| root().join("clients").join(name).join("README.md"));
    at_root.into_iter().chain(clients).chain(files("docs", &["md"])).collect()
}

/// A page outside its fenced blocks, and the blocks with what stands behind their fence.
fn parts(page: &str) -> (String, Vec<(&str, String)>) {
    let (mut text, mut blocks, mut block) = (String::new(), Vec::new(), None::<(&str, String)>);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut block) {
            (Some(info), None) => block = Some((info, String::new())),
            (Some(_), Some(_)) => blocks.extend(block.take()),
            (None, Some((_, code))) => code.extend([line, "\n"]),
            (None, None) => text.extend([line, "\n"]),
        }
    }
    assert!(block.is_none(), "a block without an end: {block:?}");
    (text, blocks)
}

#[test]
fn examples_on_a_page_are_the_files_that_are_run() {
    let mut shown = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (info, code) in parts(&text).1 {
            let Some((_, file)) = info.split_once("file=") else { continue };
            assert!(
                code == read(Path::new("docs/guide").join(file)),
                "{}: {file} is another",
                page.display()
            );
            shown.insert(root().join("docs/guide").join(file));
        }
    }
    let examples: BTreeSet<_> = files("docs/guide/examples", &["py", "mjs"]).into_iter().collect();
    assert!(examples.len() >= 10, "{examples:?}");
    assert_eq!(shown, examples, "each example is on a page");
}

/// The name under which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// The targets of a text's links: `](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Whether a link on a page leads to a file that is there, and to a heading of it.
fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let target = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    let is_heading = |heading: &str| {
        let text = fs::read_to_string(&target).unwrap();
        parts(&text).0.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
    };
    target.exists() && heading.is_none_or(is_heading)
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = parts(&fs::read_to_string(&page).unwrap()).0;
        let ours = links(&text).filter(|link| !link.contains("://"));
        broken.extend(
            ours.filter(|link| !leads_somewhere(&page, link))
                .map(|link| format!("{}: {link}", page.display())),
        );
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_of_the_guide_can_be_found() {
    let linked: BTreeSet<PathBuf> = pages()
        .iter()
        .flat_map(|page| {
            let (text, folder) = (fs::read_to_string(page).unwrap(), page.parent().unwrap());
            let (text, _) = parts(&text);
            let files = links(&text).filter_map(|link| link.split('#').next());
            let found = files.filter_map(|file| folder.join(file).canonicalize().ok());
            found.collect::<Vec<_>>()
        })
        .collect();
    for page in files("docs/guide", &["md"]) {
        assert!(linked.contains(&page.canonicalize().unwrap()), "nobody links to {}", page.display());
    }
}

#[test]
fn the_site_has_every_page_of_the_guide() {
    let contents = root().join("docs/guide/SUMMARY.md");
    let text = fs::read_to_string(&contents).unwrap();
    let listed: BTreeSet<PathBuf> = links(&text).map(|link| root().join("docs/guide").join(link)).collect();
    let pages = files("docs/guide", &["md"]).into_iter().filter(|page| *page != contents);
    assert_eq!(listed, pages.collect(), "docs/guide/SUMMARY.md lists each page once");
}

/// The metrics that a text names, without what a histogram adds to its name.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let named = words.filter(|word| word.starts_with("postway_") || word.starts_with("process_"));
    named
        .map(|word| {
            let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|ending| word.strip_suffix(ending));
            histogram.unwrap_or(word).to_owned()
        })
        .collect()
}

#[test]
fn alerts_and_panels_ask_for_metrics_that_there_are() {
    let sources = files("crates", &["rs"]);
    let counted: BTreeSet<String> = sources
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let is_metric = |text: &&str| text.starts_with("postway_") || text.starts_with("process_");
            let quoted = text.split('"').filter(is_metric).map(str::to_owned);
            quoted.collect::<Vec<_>>()
        })
        .collect();
    let guide = metrics(&read("docs/guide/operations.md"));
    for file in ["deploy/prometheus-alerts.yml", "deploy/grafana-dashboard.json"] {
        let asked = metrics(&read(file));
        assert!(asked.len() > 5, "{file} asks for {asked:?}");
        for metric in asked {
            assert!(counted.contains(&metric), "{file} asks for {metric}, which nobody counts");
            assert!(guide.contains(&metric), "docs/guide/operations.md does not name {metric}");
        }
    }
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana-dashboard.json")).unwrap();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36), "{}", dashboard["schemaVersion"]);
    assert!(dashboard["id"].is_null(), "an id of another server");
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{} asks for nothing", panel["title"]);
        assert!(panel["description"].is_string(), "{} says nothing of itself", panel["title"]);
    }
}
