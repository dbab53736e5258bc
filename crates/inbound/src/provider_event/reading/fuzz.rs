//! Whatever an event of a provider holds, it is read within bounds or refused, and it touches no address
//! that the message did not go to.

use postway_domain::TenantId;
use postway_fuzz::{feed, try_seeds};
use postway_store::record::TracedMessage;
use rand::{Rng, rngs::StdRng};
use serde_json::json;

use super::{tests::SHAPES, *};
use crate::correlate::{ReportProof, findings};

/// The recipients of the message that all events are about.
const RECIPIENTS: [&str; 3] = ["jane@example.com", "a@example.com", "b@example.com"];

const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"[[[[[[[[",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"1e999",
    b"-1",
    b",0",
    b",{}",
    b"\"emailAddress\":\"jane@example.com\",",
    b"\xff",
    b"a@example.com",
];

/// Reads an event, and looks at what was made of it.
fn check(provider: HookProvider, raw: &[u8]) {
    let reported = match read(provider, raw) {
        Ok(reported) => reported,
        Err(why) => return assert!(why.len() < 2_000, "{why}"),
    };
    let is_short = |text: &Option<String>| text.as_ref().is_none_or(|t| t.chars().count() <= TEXT_CHARS_MAX);
    assert!(reported.provider_ids.iter().all(|id| id.len() <= PROVIDER_ID_BYTES_MAX));
    match &reported.content {
        EventContent::Act(act) => {
            assert!(is_short(&act.recipient) && is_short(&act.url) && is_short(&act.user_agent));
        }
        EventContent::Report(report) => {
            assert!(report.recipients.len() <= RECIPIENTS_MAX && is_short(&report.feedback_type));
            assert!(report.recipients.iter().all(|one| one.address.chars().count() <= TEXT_CHARS_MAX));
            let traced = TracedMessage {
                uid: "0190a4c2-7b3e-7def-8123-456789abcdef".parse().unwrap(),
                tenant: "default".parse::<TenantId>().unwrap(),
                created_at: Time::from_millis(0),
                recipients: RECIPIENTS.map(str::to_owned).to_vec(),
                sender: String::new(),
                gone: false,
            };
            for found in findings(report, &traced, ReportProof::Provider, Time::from_millis(1_000)) {
                assert!(found.position.is_none_or(|at| (at as usize) < RECIPIENTS.len()));
                let suppressed = found.suppress.map(|record| record.address);
                assert!(suppressed.is_none_or(|address| RECIPIENTS.contains(&address.as_str())));
                assert!(found.data.is_none_or(|data| data.len() < 65_536));
            }
        }
        EventContent::Nothing(_) => {}
    }
}

#[test]
fn any_bytes_are_read_as_an_event_or_refused() {
    let seeds: Vec<&[u8]> = SHAPES.iter().map(|(_, event, ..)| event.as_bytes()).collect();
    feed(&seeds, WORDS, |raw| HookProvider::ALL.iter().for_each(|provider| check(*provider, raw)));
}

#[test]
fn an_event_with_any_values_is_read_within_bounds() {
    try_seeds(|random| {
        let (provider, event, ..) = SHAPES[random.random_range(0..SHAPES.len())];
        let mut event: Value = serde_json::from_str(event).unwrap();
        for _ in 0..random.random_range(1..=4) {
            change(random, &mut event);
        }
        check(provider, event.to_string().as_bytes());
    });
}

/// Puts something else in one place of a value.
fn change(random: &mut StdRng, value: &mut Value) {
    let goes_deeper = random.random_bool(0.8);
    match value {
        Value::Object(fields) if goes_deeper && !fields.is_empty() => {
            let at = random.random_range(0..fields.len());
            if let Some(inside) = fields.values_mut().nth(at) {
                change(random, inside);
            }
        }
        Value::Array(list) if goes_deeper && !list.is_empty() => {
            let at = random.random_range(0..list.len());
            match random.random_bool(0.3) {
                true => *list = vec![list[at].clone(); random.random_range(0..=1_500)],
                false => change(random, &mut list[at]),
            }
        }
        other => *other = odd_value(random),
    }
}

fn odd_value(random: &mut StdRng) -> Value {
    match random.random_range(0..11) {
        0 => Value::Null,
        1 => json!(random.random_bool(0.5)),
        2 => json!(random.random::<i64>()),
        3 => json!(random.random_range(-1e18..1e18)),
        4 => json!("x".repeat(random.random_range(0..200_000))),
        5 => json!("é\u{2028}\u{0}\"".repeat(random.random_range(0..2_000))),
        6 => json!(RECIPIENTS[random.random_range(0..RECIPIENTS.len())].to_uppercase()),
        7 => json!(vec![json!({"emailAddress": "victim@example.net", "status": "5.1.1"}); 1_200]),
        8 => json!(vec![0; random.random_range(0..40_000)]),
        9 => json!({"emailAddress": {"emailAddress": []}, "code": 999_999, "headers": [[]]}),
        _ => json!(
            ["bounce", "550 5.1.1", "0190a4c2-7b3e-7def-8123-456789abcdef", "<@>"][random.random_range(0..4)]
        ),
    }
}
