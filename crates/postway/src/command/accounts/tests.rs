//! Tests how flags and files become the settings of an account.

use super::*;
use crate::cli::secret_input::missing_secret;

#[test]
fn flags_win_over_the_json_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("account.json");
    std::fs::write(&path, r#"{"host": "old.example", "pec": true}"#).unwrap();
    let settings =
        AccountSettingsArgs { host: Some("new.example".into()), json_file: Some(path), ..Default::default() };
    let body = settings.into_body(|| Ok(None)).unwrap();
    assert_eq!(Value::Object(body), json!({"host": "new.example", "pec": true}));
}

#[test]
fn a_password_file_is_read_without_its_line_break_and_nobody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "secret word\n").unwrap();
    let settings =
        AccountSettingsArgs { username: Some("u".into()), password_file: Some(path), ..Default::default() };
    let body = settings.into_body(|| panic!("the password is known")).unwrap();
    assert_eq!(body["password"], "secret word");
}

#[test]
fn a_grant_stands_in_the_place_of_a_password_and_nobody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grant.json");
    std::fs::write(&path, r#"{"preset": "google", "grant": "refresh_token", "client_id": "c"}"#).unwrap();
    let settings = AccountSettingsArgs {
        username: Some("u".into()),
        oauth_file: Some(path.clone()),
        ..Default::default()
    };
    let body = settings.into_body(|| panic!("tokens sign in")).unwrap();
    assert_eq!((&body["oauth"]["preset"], body.get("password")), (&json!("google"), None));
    std::fs::write(&path, "[]").unwrap();
    assert!(matches!(read_grant(&path), Err(CommandFailure::Usage(_))));
}

#[test]
fn limits_and_the_secret_of_an_aws_key_have_their_places() {
    let settings = AccountSettingsArgs {
        access_key_id: Some("AKID".into()),
        password: Some("s".into()),
        per_day: Some(100),
        warm_up: Some(vec![10, 20]),
        ..Default::default()
    };
    let body = Value::Object(settings.into_body(|| panic!("the secret is known")).unwrap());
    assert_eq!(
        body,
        json!({"secret_access_key": "s", "access_key_id": "AKID", "limits": {"per_day": 100},
               "warm_up": {"per_day": [10, 20]}})
    );
}

#[test]
fn a_key_of_an_api_goes_by_its_own_name_whichever_way_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "SG.secret\n").unwrap();
    let by_kind = AccountSettingsArgs {
        kind: Some("sendgrid".into()),
        password_file: Some(path.clone()),
        ..Default::default()
    };
    let by_file = AccountSettingsArgs { api_key_file: Some(path), ..Default::default() };
    for settings in [by_kind, by_file] {
        let body = settings.into_body(|| panic!("the key is known")).unwrap();
        assert_eq!((&body["api_key"], body.get("password")), (&json!("SG.secret"), None));
    }
    let asked = AccountSettingsArgs { kind: Some("resend".into()), ..Default::default() };
    assert_eq!(asked.into_body(|| Ok(Some("re_1".to_owned()))).unwrap()["api_key"], "re_1");
}

#[test]
fn a_list_shows_which_account_is_at_fault() {
    let open = json!({"id": "a", "circuit": {"state": "open", "code": "smtp_535"}});
    assert_eq!(listed(&open).last().map(String::as_str), Some("open (smtp_535)"));
    let closed = json!({"id": "b", "circuit": {"state": "closed", "code": null}});
    assert_eq!(listed(&closed).last().map(String::as_str), Some(""));
}

#[test]
fn a_secret_is_asked_for_again_only_where_its_way_changes() {
    let shown = json!({"kind": "smtp", "host": "a.example", "port": 587, "password_set": true,
        "secret_access_key_set": false});
    let missing =
        |body: Value| missing_secret(&shown, body.as_object().unwrap(), &DESTINATION_FIELDS, &SECRETS);
    assert_eq!(missing(json!({"host": "b.example"})), Some("password"));
    assert_eq!(missing(json!({"host": "a.example", "port": 587, "fallback": "c"})), None);
    assert_eq!(missing(json!({"host": "b.example", "password": "p"})), None);
    assert_eq!(missing(json!({"kind": "ses", "region": "eu-west-1"})), None, "it has a secret of its own");
}

#[test]
fn a_file_that_is_no_json_object_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("account.json");
    std::fs::write(&path, "[1]").unwrap();
    let settings = AccountSettingsArgs { json_file: Some(path), ..Default::default() };
    assert!(matches!(settings.into_body(|| Ok(None)), Err(CommandFailure::Usage(_))));
}
