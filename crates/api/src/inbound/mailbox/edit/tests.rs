//! What is taken, what is refused, and by which name.

use postway_domain::Time;
use serde_json::json;

use super::*;

fn with(extra: Value) -> Map<String, Value> {
    let mut body = json!({"host": "imap.example.com", "username": "u", "password": "p"});
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.as_object().unwrap().clone()
}

fn wrong(body: Value) -> Vec<String> {
    let wrong = edit(None, body.as_object().unwrap().clone()).unwrap_err();
    wrong.into_iter().map(|wrong| wrong.field).collect()
}

#[test]
fn a_mailbox_needs_little() {
    let made = edit(None, with(json!({"host": "IMAP.Example.com"}))).unwrap();
    let settings = made.settings;
    assert_eq!((settings.host.as_str(), settings.port), ("imap.example.com", 993));
    assert_eq!((settings.folder.as_str(), settings.roles), ("INBOX", vec![MailboxRole::Forward]));
    assert_eq!((settings.start, settings.active), (WatchStart::Now, true));
    assert_eq!(edit(None, with(json!({"tls": "starttls"}))).unwrap().settings.port, 143);
}

#[test]
fn a_mailbox_of_the_reception_has_addresses_and_no_server() {
    let made = |body: Value| edit(None, body.as_object().unwrap().clone());
    let addresses =
        json!(["Desk@In.example.com", "*@all.example.com", "@b.example.com", "desk@in.example.com"]);
    let settings = made(json!({"addresses": addresses})).unwrap().settings;
    assert_eq!(settings.addresses, ["*@all.example.com", "@b.example.com", "desk@in.example.com"]);
    for wrong_one in ["", "desk", "*", "@", "*@", "a*@x.example", "@a b", "x@@y"] {
        assert_eq!(wrong(json!({"addresses": [wrong_one]})), ["addresses[0]"], "{wrong_one}");
    }
    assert_eq!(wrong(json!({"addresses": ["a@x.example"], "host": "imap.example.com"})), ["host"]);
    let folder = edit(None, with(json!({}))).unwrap().settings;
    for (before, body) in
        [(&folder, json!({"addresses": ["a@x.example"]})), (&settings, json!({"addresses": []}))]
    {
        let kind = edit(Some(before), body.as_object().unwrap().clone()).unwrap_err();
        assert!(kind.iter().any(|fault| fault.field == "addresses"), "{kind:?}");
    }
}

#[test]
fn every_wrong_field_is_named() {
    assert_eq!(wrong(json!({})), ["host", "username", "password"]);
    for (extra, fields) in [
        (json!({"host": "a b"}), &["host"][..]),
        (json!({"host": 7}), &["host"]),
        (json!({"port": 0}), &["port"]),
        (json!({"port": 70_000}), &["port"]),
        (json!({"tls": "opportunistic"}), &["tls"]),
        (json!({"ca_pem": "x"}), &["ca_pem"]),
        (json!({"folder": "a\nb"}), &["folder"]),
        (json!({"roles": []}), &["roles"]),
        (json!({"roles": ["bounces", "x"]}), &["roles"]),
        (json!({"roles": ["pec"], "role": "pec"}), &["role"]),
        (json!({"poll_seconds": 4}), &["poll_seconds"]),
        (json!({"attempts_max": 21}), &["attempts_max"]),
        (json!({"mail_bytes_max": 1_000, "on_doubt": "panic"}), &["on_doubt", "mail_bytes_max"]),
        (json!({"start": "yesterday"}), &["start"]),
        (json!({"start": {"newest": 0}}), &["start"]),
        (json!({"start": {"since": "never"}}), &["start"]),
        (json!({"token": "t"}), &["token"]),
        (json!({"auth": "xoauth2"}), &["auth"]),
        (json!({"password": "a\nb"}), &["password"]),
        (json!({"proxy": "ftp://p.example"}), &["proxy"]),
        (json!({"proxy": "socks5://u:p@p.example:1080"}), &["proxy"]),
        (json!({"proxy": "http://p.example/x"}), &["proxy"]),
        (json!({"proxy": "http://p.example", "proxy_password": "p"}), &["proxy_password"]),
        (json!({"guarded": false}), &["guarded"]),
    ] {
        assert_eq!(wrong(Value::Object(with(extra.clone()))), fields, "{extra}");
    }
}

#[test]
fn where_watching_begins_can_be_said_in_four_ways() {
    let start = |start: Value| edit(None, with(json!({"start": start}))).unwrap().settings.start;
    assert_eq!(start(json!("now")), WatchStart::Now);
    assert_eq!(start(json!("beginning")), WatchStart::Beginning);
    assert_eq!(start(json!({"newest": 100})), WatchStart::Newest(100));
    assert_eq!(start(json!({"since": "1970-01-01T00:00:01Z"})), WatchStart::Since(Time::from_millis(1_000)));
    assert_eq!(start(Value::Null), WatchStart::Now);
}

#[test]
fn roles_go_by_two_names_and_are_a_set() {
    let roles = |extra: Value| edit(None, with(extra)).unwrap().settings.roles;
    assert_eq!(roles(json!({"role": "pec"})), [MailboxRole::Pec]);
    let both = [MailboxRole::Forward, MailboxRole::Bounces];
    assert_eq!(roles(json!({"roles": ["bounces", "forward", "bounces"]})), both);
}

#[test]
fn a_change_leaves_what_is_not_given_and_another_way_to_sign_in_needs_its_secret() {
    let before = edit(None, with(json!({"port": 1143, "tls": "none", "description": "x"}))).unwrap().settings;
    let patch = |body: Value| edit(Some(&before), body.as_object().unwrap().clone());
    let edited = patch(json!({"folder": "Bounces", "description": null, "version": 3})).unwrap();
    assert_eq!((edited.settings.port, edited.settings.folder.as_str()), (1143, "Bounces"));
    assert_eq!((edited.settings.description, edited.version), (None, Some(3)));
    assert!(edited.secrets.login.is_none());
    assert_eq!(patch(json!({"auth": "xoauth2"})).unwrap_err()[0].field, "token");
    let edited = patch(json!({"token": "t"})).unwrap();
    assert_eq!(edited.settings.auth, MailboxAuth::Xoauth2);
    assert_eq!(edited.secrets.login, Some((MailboxAuth::Xoauth2, "t".to_owned())));
}

#[test]
fn a_proxys_password_is_kept_replaced_or_removed() {
    let proxied = json!({"proxy": "socks5://u@p.example:1080", "proxy_password": "s"});
    let made = edit(None, with(proxied)).unwrap();
    assert!(made.secrets.proxy_password == SecretChange::Set("s".to_owned()));
    let patch = |body: Value| {
        edit(Some(&made.settings), body.as_object().unwrap().clone()).unwrap().secrets.proxy_password
    };
    assert!(patch(json!({})) == SecretChange::Keep);
    assert!(patch(json!({"proxy_password": null})) == SecretChange::Remove);
    assert!(patch(json!({"proxy": null})) == SecretChange::Remove);
    assert!(patch(json!({"proxy": "http://p.example"})) == SecretChange::Remove);
}
