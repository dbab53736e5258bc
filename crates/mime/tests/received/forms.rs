//! Every fixture gives the expected report, with all line endings.

use postway_mime::received::{BounceType, FeatureFamily, ReportKind, THRESHOLD, inspect, inspect_weighed};

use crate::fixtures::{Fixture, all};

fn check(fixture: &Fixture) {
    let report = inspect(fixture.raw.as_bytes());
    assert_eq!(report.kind, fixture.kind, "{}: {report:#?}", fixture.name);
    let found: Vec<_> = report
        .recipients
        .iter()
        .map(|finding| {
            let hard = finding.kind == Some(BounceType::Hard);
            let status = finding.status.as_deref();
            (finding.address.as_str(), status, finding.smtp_code, hard, finding.reason.as_str())
        })
        .collect();
    let expected: Vec<_> = fixture.recipients.iter().map(|of| (of.0, of.1, of.2, of.3, of.4)).collect();
    assert_eq!(found, expected, "{}: {report:#?}", fixture.name);
    assert_eq!(report.original.message_id.as_deref(), fixture.message_id, "{}", fixture.name);
}

#[test]
fn every_form_is_read() {
    all().for_each(check);
}

#[test]
fn line_endings_do_not_matter() {
    for fixture in all() {
        let report = inspect(fixture.raw.as_bytes());
        for ending in ["\r\n", "\r"] {
            assert_eq!(inspect(fixture.raw.replace('\n', ending).as_bytes()), report, "{}", fixture.name);
        }
    }
}

#[test]
fn the_address_first_sent_to_and_the_ids_are_reported() {
    let fixture = all().next().unwrap();
    let report = inspect(fixture.raw.as_bytes());
    assert_eq!(report.recipients[1].original_address.as_deref(), Some("team@example.net"));
    assert_eq!(report.recipients[0].remote_mta.as_deref(), Some("in.example.org"));
    assert_eq!(report.original.postway_id.as_deref(), Some("0190"));
    assert_eq!(report.original.return_path.as_deref(), Some("b=1@shop.example"));
    assert_eq!(report.reporter.as_deref(), Some("mx.example.net"));
}

#[test]
fn the_json_has_the_names_of_the_api() {
    let fixture = all().next().unwrap();
    let json = inspect(fixture.raw.as_bytes()).to_json();
    assert_eq!(json["kind"], "bounce");
    assert_eq!(json["original"]["message_id"], "0190@shop.example");
    assert_eq!(json["original"]["postway_id"], "0190");
    assert_eq!(json["feedback_type"], serde_json::Value::Null);
    let names: Vec<_> = json["recipients"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["address", "action", "status", "smtp_code", "class", "type", "reason", "diagnostic"]);
    assert_eq!(json["recipients"][0]["class"], "permanent");
    assert_eq!(json["recipients"][0]["type"], "hard");
    assert_eq!(json["recipients"][1]["class"], "transient");
    assert_eq!(json["recipients"][1]["action"], "failed");
}

#[test]
fn what_is_weighed_says_the_same_as_what_is_inspected() {
    for fixture in all() {
        let run_heavy = inspect_weighed(fixture.raw.as_bytes());
        assert_eq!(run_heavy.report, inspect(fixture.raw.as_bytes()), "{}", fixture.name);
        let is_ordinary = run_heavy.report.kind == ReportKind::Ordinary;
        assert_eq!(run_heavy.read_by.is_none(), is_ordinary, "{}: {:?}", fixture.name, run_heavy.read_by);
        if run_heavy.read_by == Some("prose") {
            assert!(run_heavy.judgement.is_report(), "{}: {}", fixture.name, run_heavy.why());
            assert!(run_heavy.judgement.total() >= THRESHOLD, "{}: {}", fixture.name, run_heavy.why());
        }
    }
}

#[test]
fn the_guide_has_every_family_of_features() {
    let guide = include_str!("../../../../docs/guide/inbound.md");
    for family in FeatureFamily::ALL {
        assert!(guide.contains(&format!("| `{}` |", family.as_str())), "{}", family.as_str());
    }
    assert!(guide.contains(&format!("a sum of {THRESHOLD}")));
}
