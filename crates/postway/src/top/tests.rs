//! The board as it is drawn, on a screen in memory.

use ratatui::{Terminal, backend::TestBackend};
use serde_json::{Value, json};

use super::draw::draw;
use super::source::ServerSnapshot;
use super::*;

fn overview() -> Value {
    let minutes: Vec<Value> =
        (0..60).map(|n| json!({"at": null, "accepted": n * 3, "sent": (n * 7) % 50, "failed": 0})).collect();
    json!({
        "at": "2026-11-15T21:30:02.000Z",
        "by_status": {"accepted": 0, "validating": 0, "ready": 1204, "scheduled": 12, "sending": 31, "sent": 1_204_332,
            "failed": 17, "invalid": 2, "in_doubt": 1, "suppressed": 0, "cancelled": 0, "expired": 0},
        "held": 120,
        "oldest_due_seconds": 75,
        "rates": {"accepted": 12.5, "sent": 118.4, "failed": 0.1},
        "time_in_queue": {"p50_ms": 120, "p95_ms": 2400, "sample": 500},
        "failures": [{"code": "user_unknown", "count": 14}, {"code": "exhausted", "count": 3}],
        "circuits": [{"account": "relay-2", "code": "auth", "reason": "535 5.7.8 \u{1b}[31mno\nnot you",
            "open_until": "2026-11-15T21:32:02.000Z"}],
        "mailboxes": [{"mailbox": "bounces", "lag": 5000, "error": null}],
        "subscribers": [{"id": "wh_1", "url": "https://app.example.com/hooks", "due": true, "disabled_reason": null},
            {"id": "wh_2", "url": "https://old.example.com/", "due": false, "disabled_reason": "it answered 410"}],
        "nodes": [{"id": "a", "name": "mail-1/77", "address": "10.0.0.1:8520", "version": "0.1.0", "status": "alive",
            "is_self": true, "started_at": "2026-11-12T17:00:00.000Z"},
            {"id": "b", "name": "mail-2/12", "address": "10.0.0.2:8520", "version": "0.1.0", "status": "dead",
            "is_self": false, "started_at": "2026-11-12T17:00:00.000Z"}],
        "last_hour": minutes,
    })
}

fn news() -> ServerSnapshot {
    ServerSnapshot {
        overview: overview(),
        accounts: vec![
            json!({"id": "relay-1", "suspended": false, "limits": {"per_minute": 0, "per_hour": 0,
            "per_day": 5000}, "used": {"minute": null, "hour": null, "day": 4_900}}),
        ],
        tenants: vec![json!({"tenant": "acme", "waiting": 1_200, "oldest_due_seconds": 75})],
    }
}

fn station() -> WatchedServer {
    WatchedServer { server: "http://127.0.0.1:8520/".to_owned(), tenant: None }
}

fn drawn(columns: u16, rows: u16, board: Option<&StatusBoard>, away: Option<&str>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, board, away, true)).unwrap();
    let screen = terminal.backend().to_string();
    screen.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn everything_has_its_place_on_80_by_24() {
    insta::assert_snapshot!(drawn(80, 24, Some(&StatusBoard::new(&station(), &news())), None));
}

#[test]
fn the_snapshot_for_a_pipe_says_the_same() {
    insta::assert_snapshot!(plain(&StatusBoard::new(&station(), &news())));
}

#[test]
fn a_server_that_is_away_is_told_above_the_last_figures() {
    let board = StatusBoard::new(&station(), &news());
    let screen = drawn(80, 24, Some(&board), Some("away for 3 s: connection refused"));
    assert!(screen.contains("away for 3 s: connection refused") && screen.contains("1,204,332"), "{screen}");
    let empty = drawn(80, 24, None, Some("away for 1 s: connection refused"));
    assert!(empty.contains("connection refused") && empty.contains("q leaves"), "{empty}");
}

#[test]
fn no_screen_is_too_small_or_too_large() {
    let board = StatusBoard::new(&station(), &news());
    for (columns, rows) in [(1, 1), (10, 3), (40, 12), (79, 21), (200, 60)] {
        let screen = drawn(columns, rows, Some(&board), None);
        assert!(screen.lines().count() <= usize::from(rows), "{screen}");
    }
}

#[test]
fn a_quiet_gateway_has_a_quiet_screen() {
    let quiet = json!({"at": "2026-11-15T21:30:02.000Z", "by_status": {"sent": 0}, "nodes": []});
    let board =
        StatusBoard::new(&station(), &ServerSnapshot { overview: quiet, ..ServerSnapshot::default() });
    assert!(board.sections.is_empty());
    assert!(drawn(80, 24, Some(&board), None).contains("nothing"));
}

#[test]
fn texts_of_strangers_reach_no_terminal_with_their_control_characters() {
    let board = StatusBoard::new(&station(), &news());
    let text = plain(&board);
    assert!(!text.contains('\u{1b}') && text.contains("no not you"), "{text}");
}

#[test]
fn a_line_of_json_is_the_overview_with_accounts_and_tenants() {
    let line = news().json();
    assert_eq!((&line["held"], &line["tenants"][0]["tenant"]), (&120.into(), &"acme".into()));
    assert_eq!(line["accounts"][0]["id"], "relay-1");
}
