//! What operators apply as it is: Compose files, manifests of Kubernetes, and the files of hosted CI, held
//! against the schemas of those who read them, and against the settings that there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use postway_testkit::SchemaTools;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn manifests_are_what_kubernetes_takes() {
    let manifests = ["sqlite.yaml", "postgres.yaml"].map(|name| root().join("deploy/kubernetes").join(name));
    SchemaTools::installed().check_kubernetes(&manifests);
}

#[test]
fn files_have_the_forms_that_their_readers_know() {
    let tools = SchemaTools::installed();
    for (schema, files) in [
        ("compose-spec", &["deploy/compose.yml", "deploy/compose-postgres.yml"][..]),
        ("github-workflows", &[".github/workflows/test.yml", ".github/workflows/release.yml"]),
        ("dependabot", &[".github/dependabot.yml"]),
        ("github-issue-forms", &[".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"]),
        ("github-issue-config", &[".github/ISSUE_TEMPLATE/config.yml"]),
    ] {
        let files: Vec<_> = files.iter().map(|file| root().join(file)).collect();
        tools.check_form(&format!("vendor.{schema}"), &files);
    }
}

#[test]
fn compose_reads_its_files_and_the_network_is_the_one_that_is_trusted() {
    let tools = SchemaTools::installed();
    let read = |name: &str, variables: &[(&str, &str)]| {
        tools.read_compose(&root().join("deploy").join(name), variables)
    };
    let example = read("compose.yml", &[("POSTWAY_SEND_KEY", "pw_one_two")]);
    assert!(example.contains("SMTP_PASSWORD: pw_one_two"), "{example}");
    assert!(example.contains("condition: service_healthy"), "{example}");
    let network = example.lines().find_map(|line| line.trim().strip_prefix("- subnet: ")).unwrap();
    assert!(example.contains(&format!("POSTWAY_SMTP_PLAINTEXT_NETWORKS: {network}")), "{example}");
    let secrets = [
        ("POSTWAY_ADMIN_KEY", "an-admin-key"),
        ("POSTWAY_SECRET_KEY", "a-secret-key"),
        ("POSTGRES_PASSWORD", "a-password"),
    ];
    let nodes = read("compose-postgres.yml", &secrets);
    let url = "POSTWAY_DATABASE_URL: postgres://postway:a-password@postgres/postway";
    // The common part is printed once more by itself.
    assert_eq!(nodes.matches(url).count(), 3, "both nodes have one database: {nodes}");
    assert_eq!(nodes.matches("POSTWAY_SECRET_KEY: a-secret-key").count(), 3, "{nodes}");
}

#[test]
fn files_for_operators_set_what_can_be_set() {
    let guide = fs::read_to_string(root().join("docs/guide/configuration.md")).unwrap();
    let mut checked = 0;
    for file in [
        "deploy/Containerfile",
        "deploy/compose.yml",
        "deploy/compose-postgres.yml",
        "deploy/image",
        "deploy/kubernetes/sqlite.yaml",
        "deploy/kubernetes/postgres.yaml",
        "deploy/helm/postway/templates/workload.yaml",
        "deploy/postway.service",
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
        for name in words.filter(|word| word.starts_with("POSTWAY_")) {
            // The key of the example's application, which is its own.
            if name == "POSTWAY_SEND_KEY" {
                continue;
            }
            let is_named = guide.contains(&format!("`{}`", name.strip_suffix("_FILE").unwrap_or(name)));
            assert!(is_named, "{file} sets {name}, and the guide does not know it");
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}

#[test]
fn every_file_names_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, words) in [
        ("deploy/kubernetes/sqlite.yaml", format!("image: postway:{version}\n")),
        ("deploy/kubernetes/postgres.yaml", format!("image: postway:{version}\n")),
        ("deploy/helm/postway/Chart.yaml", format!("appVersion: {version}\n")),
        ("clients/python/pyproject.toml", format!("version = \"{version}\"\n")),
        ("clients/python/src/postway/client.py", format!("VERSION = \"{version}\"\n")),
        ("clients/node/package.json", format!("\"version\": \"{version}\",\n")),
        ("clients/node/src/client.js", format!("VERSION = \"{version}\";\n")),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&words), "{file} does not say {words}");
    }
}
