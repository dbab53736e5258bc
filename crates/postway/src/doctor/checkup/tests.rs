//! The complete checkup without a server, and its text.

use std::cell::Cell;
use std::sync::Arc;

use tokio::net::UdpSocket;

use super::*;
use crate::config::load_from;
use crate::doctor::tests::{TestZone, serve};

/// A machine with these variables, a name server that knows no name, and no server to ask.
async fn subject(env: &[(&str, &str)]) -> CheckupSubject {
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let dns = socket.local_addr().unwrap();
    tokio::spawn(serve(socket, TestZone::default()));
    CheckupSubject {
        loaded: Some(load_from(None, env.iter().map(|(name, value)| (name.into(), value.into())))),
        config_file: None,
        client: ApiClient::new("http://127.0.0.1:1", None, None),
        tenant: None,
        dns: Some(dns),
    }
}

fn state(checkup: &DoctorCheckup, area: &str) -> CheckupState {
    let area = checkup.areas.iter().find(|found| found.area == area).unwrap();
    area.findings[0].state
}

#[tokio::test]
async fn without_a_server_what_can_be_checked_here_is() {
    postway_net::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let ended = Cell::new(0);
    let checkup = examine(&subject(&[("POSTWAY_DATA_DIR", folder.path().to_str().unwrap())]).await, &|_| {
        ended.set(ended.get() + 1);
    })
    .await;
    assert_eq!((ended.get(), checkup.areas.len() as u64), (AREAS, AREAS));
    assert_eq!(state(&checkup, "configuration"), CheckupState::Ok);
    assert_eq!(state(&checkup, "database"), CheckupState::Skipped);
    assert_eq!(state(&checkup, "server"), CheckupState::Problem);
    assert_eq!(state(&checkup, "dns"), CheckupState::Ok);
    assert_eq!(state(&checkup, "accounts"), CheckupState::Skipped);
    let text = checkup.text(false);
    assert!(text.contains("→ start it: `postway serve`"), "{text}");
    assert!(text.trim_end().ends_with("skipped") && !text.contains('\u{1b}'), "{text}");
    assert!(checkup.text(true).contains("\u{1b}[1;31mproblem "));
}

#[tokio::test]
async fn a_wrong_configuration_is_told_and_ends_nothing() {
    postway_net::install_crypto_provider();
    let checkup = examine(&subject(&[("POSTWAY_HTTP_LISTEN", "here")]).await, &|_| {}).await;
    assert_eq!(state(&checkup, "configuration"), CheckupState::Problem);
    assert_eq!(state(&checkup, "database"), CheckupState::Skipped);
}

#[test]
fn strangers_texts_are_one_line_and_short() {
    let finding = CheckupFinding::new("x", CheckupState::Problem)
        .found(format!("a\u{1b}[31m\nb {}", "c".repeat(1_000)));
    let found = finding.found.unwrap();
    assert!(!found.contains('\u{1b}') && !found.contains('\n') && found.ends_with('…'), "{found}");
}
