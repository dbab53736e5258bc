use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};

use super::*;

fn now() -> Time {
    Time::from_millis(1_700_000_000_000)
}

/// Seconds around now.
fn at(seconds: i64) -> String {
    (1_700_000_000 + seconds).to_string()
}

fn outcome<T>(given: Result<T, HookRefusal>) -> &'static str {
    match given {
        Ok(_) => "proven",
        Err(HookRefusal::Forged(_)) => "forged",
        Err(HookRefusal::Malformed(_)) => "malformed",
        Err(_) => "other",
    }
}

/// The SubjectPublicKeyInfo of a P-256 key, as SendGrid shows it.
fn spki(point: &[u8]) -> String {
    let head = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
        0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];
    BASE64_STANDARD.encode([&head[..], point].concat())
}

#[test]
fn sendgrids_signature_covers_time_and_body() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
    let key = spki(pair.public_key().as_ref());
    assert!(is_sendgrid_key(&key) && !is_sendgrid_key("MFkw") && !is_sendgrid_key(""));
    let sign = |text: &str| {
        let signed = pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        BASE64_STANDARD.encode(signed.as_ref())
    };
    let check = |key: &str, timestamp: String, signed: String, body: &str| {
        let header = move |name: &str| match name {
            "x-twilio-email-event-webhook-signature" => Some(signed.clone()),
            "x-twilio-email-event-webhook-timestamp" => Some(timestamp.clone()),
            _ => None,
        };
        outcome(check_sendgrid(Some(key), &HookCall { header: &header, body: body.as_bytes() }, now()))
    };
    let signed = |seconds: i64, body: &str| sign(&format!("{}{body}", at(seconds)));
    assert_eq!(check(&key, at(0), signed(0, "[]"), "[]"), "proven");
    assert_eq!(check(&key, at(-86_400), signed(-86_400, "[]"), "[]"), "proven", "it repeats for a day");
    assert_eq!(check(&key, at(0), signed(0, "[]"), "[{}]"), "forged", "another body");
    assert_eq!(check(&key, at(1), signed(0, "[]"), "[]"), "forged", "another time");
    assert_eq!(check(&key, at(-300_000), signed(-300_000, "[]"), "[]"), "forged", "too old");
    assert_eq!(check(&key, at(3_600), signed(3_600, "[]"), "[]"), "forged", "of the future");
    assert_eq!(check("", at(0), signed(0, "[]"), "[]"), "forged", "no key");
    assert_eq!(check(&key, at(0), "!".to_owned(), "[]"), "forged");
    let other = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
    assert_eq!(check(&spki(other.public_key().as_ref()), at(0), signed(0, "[]"), "[]"), "forged");
    let nothing = |_: &str| None;
    assert_eq!(
        outcome(check_sendgrid(Some(&key), &HookCall { header: &nothing, body: b"[]" }, now())),
        "forged"
    );
}

#[test]
fn mailguns_signature_is_recent_and_gives_its_token() {
    let body = |seconds: i64, token: &str, key: &str| {
        let timestamp = at(seconds);
        let signed = hmac::sign(&hmac_key(key.as_bytes()).unwrap(), format!("{timestamp}{token}").as_bytes());
        let hex: String = signed.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            r#"{{"signature":{{"timestamp":"{timestamp}","token":"{token}","signature":"{hex}"}},"event-data":{{}}}}"#
        )
    };
    let check = |body: &str| check_mailgun("key-1", body.as_bytes(), now());
    assert_eq!(check(&body(0, "t", "key-1")).unwrap(), "t");
    assert_eq!(outcome(check(&body(-8 * 3_600, "t", "key-1"))), "proven", "it repeats for eight hours");
    assert_eq!(outcome(check(&body(-13 * 3_600, "t", "key-1"))), "forged");
    assert_eq!(outcome(check(&body(0, "t", "key-2"))), "forged");
    assert_eq!(outcome(check(&body(0, "t", "key-1").replace("\"t\"", "\"u\""))), "forged");
    assert_eq!(outcome(check("{}")), "malformed");
    assert_eq!(outcome(check_mailgun("", body(0, "t", "x").as_bytes(), now())), "forged");
}

#[test]
fn postmark_signs_in() {
    let check = |given: Option<&str>, password: &str| {
        let given = given.map(|text| format!("Basic {}", BASE64_STANDARD.encode(text)));
        let header = move |name: &str| given.clone().filter(|_| name == "authorization");
        outcome(check_basic(Some("postway"), password, &HookCall { header: &header, body: b"{}" }))
    };
    assert_eq!(check(Some("postway:s3cret"), "s3cret"), "proven");
    for wrong in [Some("postway:s3cre"), Some("postmark:s3cret"), Some(""), None] {
        assert_eq!(check(wrong, "s3cret"), "forged", "{wrong:?}");
    }
    assert_eq!(check(Some("postway:"), ""), "forged", "an empty password proves nothing");
}

#[test]
fn standard_webhooks_are_read_under_either_name() {
    // The vector of the specification.
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = br#"{"test": 2432232314}"#;
    let known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let check = |prefix: &str, signed: &str, at_s: i64, body: &[u8]| {
        let (prefix, signed) = (prefix.to_owned(), signed.to_owned());
        let header = move |name: &str| match name.strip_prefix(prefix.as_str())? {
            "-id" => Some("msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()),
            "-timestamp" => Some("1614265330".to_owned()),
            "-signature" => Some(signed.clone()),
            _ => None,
        };
        let now = Time::from_millis(at_s * 1_000);
        check_standard(secret, &HookCall { header: &header, body }, now)
    };
    let at_s = 1_614_265_330;
    assert_eq!(check("svix", known, at_s, body).unwrap(), "msg_p5jXN8AQM9LWM0D4loKWxJek");
    assert!(check("webhook", &format!("v1,AAAA {known}"), at_s, body).is_ok(), "one of several");
    assert_eq!(outcome(check("svix", known, at_s + 301, body)), "forged", "too old");
    assert_eq!(outcome(check("svix", known, at_s - 301, body)), "forged", "of the future");
    assert_eq!(outcome(check("svix", known, at_s, b"{}")), "forged");
    assert_eq!(outcome(check("other", known, at_s, body)), "forged");
    assert!(is_standard_secret(secret) && !is_standard_secret("whsec_") && !is_standard_secret("x"));
}
