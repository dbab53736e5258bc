//! Calls of providers, proven and forged: what is not signed is refused, and what is taken is of the call and
//! within bounds.

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_fuzz::{Grown, InputGenerator, feed, try_seeds};
use rand::{Rng, rngs::StdRng};
use serde::de::IgnoredAny;

use super::{certificate::allowed, split::SplitEvent, *};

const NOW_S: i64 = 1_700_000_000;
const SECRET: &[u8] = b"a secret of some length";

const BODIES: &[&[u8]] = &[
    br#"[{"sg_event_id":"a","email":"x@example.com","event":"bounce"},{"event":"open"}]"#,
    br#"{"events":[{"id":"1","type":"delivered"},{"id":"2","type":"opened","url":"https://x"}]}"#,
    br#"{"id":"3","type":"bounced","recipient":"a@example.com"}"#,
    br#"{"RecordType":"Bounce","Email":"a@example.com","Details":"550 5.1.1"}"#,
    br#"{"type":"email.bounced","data":{"to":["a@example.com"]}}"#,
];
const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"{},",
    b"[[[[[[[[[[[[[[[[",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\"events\":",
    b"\"id\":\"1\",",
    b"\"event-data\":{},",
    b"null",
    b"1e99999",
    b" ",
    b"\xff",
];

/// The keys with which calls are signed.
struct SigningKeys {
    sendgrid: EcdsaKeyPair,
    public_key: String,
}

impl SigningKeys {
    fn make() -> Self {
        let sendgrid = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let head = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
            0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ];
        let public_key = BASE64_STANDARD.encode([&head[..], sendgrid.public_key().as_ref()].concat());
        Self { sendgrid, public_key }
    }
}

fn mac(text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), text).as_ref().to_vec()
}

/// The headers and the body of a call that the provider would make.
fn signed(
    keys: &SigningKeys,
    provider: HookProvider,
    body: Vec<u8>,
) -> (Vec<(&'static str, String)>, Vec<u8>) {
    let at = NOW_S.to_string();
    match provider {
        HookProvider::Sendgrid => {
            let made = keys.sendgrid.sign(&SystemRandom::new(), &[at.as_bytes(), &body].concat()).unwrap();
            let headers = vec![
                ("x-twilio-email-event-webhook-signature", BASE64_STANDARD.encode(made.as_ref())),
                ("x-twilio-email-event-webhook-timestamp", at),
            ];
            (headers, body)
        }
        HookProvider::Mailgun => {
            let hex: String = mac(format!("{at}t").as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
            let head = format!(
                r#"{{"signature":{{"timestamp":"{at}","token":"t","signature":"{hex}"}},"event-data":"#
            );
            (Vec::new(), [head.as_bytes(), &body, b"}"].concat())
        }
        HookProvider::Postmark => {
            let pair = [&b"postway:"[..], SECRET].concat();
            (vec![("authorization", format!("Basic {}", BASE64_STANDARD.encode(pair)))], body)
        }
        HookProvider::Resend | HookProvider::Http | HookProvider::Ses => {
            let made = mac(&[format!("m.{at}.").as_bytes(), &body].concat());
            let headers = vec![
                ("webhook-id", "m".to_owned()),
                ("webhook-timestamp", at),
                ("webhook-signature", format!("v1,{}", BASE64_STANDARD.encode(made))),
            ];
            (headers, body)
        }
    }
}

/// What the door makes of a call, for all providers but SES.
fn read(
    keys: &SigningKeys,
    provider: HookProvider,
    headers: &[(&'static str, String)],
    body: &[u8],
) -> Result<SplitCall, HookRefusal> {
    let headers = headers.to_vec();
    let header = move |name: &str| {
        let found = headers.iter().find(|(given, _)| *given == name);
        found.map(|(_, value)| value.clone())
    };
    let call = HookCall { header: &header, body };
    let (now, secret) = (Time::from_millis(NOW_S * 1_000), BASE64_STANDARD.encode(SECRET));
    let plain = String::from_utf8_lossy(SECRET);
    match provider {
        HookProvider::Sendgrid => {
            proof::check_sendgrid(Some(&keys.public_key), &call, now)?;
            split::sendgrid(body)
        }
        HookProvider::Mailgun => split::mailgun(body, proof::check_mailgun(&plain, body, now)?),
        HookProvider::Postmark => {
            proof::check_basic(Some("postway"), &plain, &call)?;
            split::whole(body)
        }
        HookProvider::Resend => split::named(body, proof::check_standard(&secret, &call, now)?),
        HookProvider::Http | HookProvider::Ses => {
            proof::check_standard(&secret, &call, now)?;
            split::list(body)
        }
    }
}

fn spoil(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let at = random.random_range(0..=bytes.len());
    match random.random_range(0..3) {
        0 => bytes.insert(at, b' '),
        1 => bytes.truncate(at),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.random_range(0..7)),
    }
}

/// A header without what may mean nothing: whitespace, and the case of a scheme.
fn bare(value: &str) -> String {
    let scheme = value.len() - value.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
    let bare = value[..scheme].to_ascii_lowercase() + &value[scheme..];
    bare.split_whitespace().collect()
}

#[test]
fn a_call_is_taken_only_as_it_was_signed_and_within_bounds() {
    let keys = SigningKeys::make();
    let bodies = Grown { seeds: BODIES, words: WORDS };
    try_seeds(|random| {
        let provider = [
            HookProvider::Sendgrid,
            HookProvider::Mailgun,
            HookProvider::Postmark,
            HookProvider::Resend,
            HookProvider::Http,
        ][random.random_range(0..5)];
        let (mut headers, genuine) = signed(&keys, provider, bodies.input(random));
        let mut body = genuine.clone();
        let is_body_signed = !matches!(provider, HookProvider::Mailgun | HookProvider::Postmark);
        let mut is_forged = false;
        if is_body_signed && random.random_bool(0.4) {
            spoil(random, &mut body);
            is_forged = body != genuine;
        } else if !headers.is_empty() && random.random_bool(0.3) {
            let at = random.random_range(0..headers.len());
            let mut value = headers[at].1.clone().into_bytes();
            spoil(random, &mut value);
            let value = String::from_utf8_lossy(&value).into_owned();
            is_forged = value != headers[at].1;
            if is_forged && bare(&value) == bare(&headers[at].1) {
                // Whether it is accepted is a matter of taste.
                return;
            }
            headers[at].1 = value;
        }
        let told = || format!("{}: {headers:?} {}", provider.as_str(), body.escape_ascii());
        match read(&keys, provider, &headers, &body) {
            Err(HookRefusal::Forged(_)) => assert!(is_forged, "{}", told()),
            Err(_) => assert!(!is_forged, "{}", told()),
            Ok(split) => {
                assert!(!is_forged, "{}", told());
                assert_within_bounds(&split.events, &body);
            }
        }
    });
}

fn assert_within_bounds(events: &[SplitEvent], body: &[u8]) {
    assert!(events.len() <= EVENTS_MAX);
    assert!(events.iter().map(|event| event.raw.len()).sum::<usize>() <= body.len());
    for event in events {
        let is_json = serde_json::from_str::<IgnoredAny>(&event.raw).is_ok();
        assert!(is_json && event.raw.starts_with('{') && !event.identity.is_empty(), "{}", event.raw);
    }
}

#[test]
fn nobody_but_amazon_is_asked_for_a_certificate() {
    let seeds: &[&[u8]] = &[
        b"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0.pem",
        b"https://sns.cn-north-1.amazonaws.com.cn/x.pem",
        b"https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
    ];
    let words: &[&[u8]] =
        &[b"@", b":8443", b"/", b"\\", b"#", b"?", b".", b"%2e", b"evil.example", b"\t", b"xn--", b"http://"];
    feed(seeds, words, |url| {
        let Some(url) = allowed(&String::from_utf8_lossy(url), None) else { return };
        let host = url.host_str().unwrap();
        let is_amazon = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
        assert!(host.starts_with("sns.") && is_amazon && url.scheme() == "https", "{url}");
        assert!(url.port().is_none() && url.username().is_empty() && url.password().is_none(), "{url}");
    });
}

#[test]
fn the_text_of_a_notification_is_an_event_or_none() {
    feed(BODIES, WORDS, |text| {
        let text = String::from_utf8_lossy(text);
        let split = sns::event(&text);
        assert!(split.events.len() <= 1 && split.events.iter().all(|event| event.raw == text));
    });
}
