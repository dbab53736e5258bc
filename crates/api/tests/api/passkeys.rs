//! Passkeys, with a device made of software: added, used to sign in, refused whatever is forged about them.

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use axum::{body::Body, http::Request};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    support::{Answer, Api},
    users::Person,
};

const HOST: &str = "mail.example.org";
/// A person is there, and the device knows who.
const VERIFIED: u8 = 0x05;

/// A device with one passkey.
struct SoftDevice {
    id: [u8; 16],
    key: EcdsaKeyPair,
    uses: u32,
}

/// What a device does otherwise than it should.
struct DeviceAnswer<'a> {
    origin: &'a str,
    host: &'a str,
    kind: &'a str,
    flags: u8,
}

const HONEST: DeviceAnswer<'static> =
    DeviceAnswer { origin: "https://mail.example.org", host: HOST, kind: "webauthn.get", flags: VERIFIED };

fn text(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl SoftDevice {
    fn new(number: u8) -> Self {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        Self { id: [number; 16], key, uses: 0 }
    }

    fn client_data(challenge: &Value, answer: &DeviceAnswer<'_>) -> String {
        json!({"type": answer.kind, "challenge": challenge, "origin": answer.origin, "crossOrigin": false})
            .to_string()
    }

    fn data(&mut self, answer: &DeviceAnswer<'_>, is_new: bool) -> Vec<u8> {
        self.uses += 1;
        let mut data = digest(&SHA256, answer.host.as_bytes()).as_ref().to_vec();
        data.push(if is_new { answer.flags | 0x40 } else { answer.flags });
        data.extend(self.uses.to_be_bytes());
        if is_new {
            data.extend([0; 16]);
            data.extend((self.id.len() as u16).to_be_bytes());
            data.extend(self.id);
            // The key in COSE, which nobody reads.
            data.extend([0xa0; 77]);
        }
        data
    }

    /// Makes a passkey for this challenge.
    fn create(&mut self, challenge: &Value, name: &str) -> Value {
        let answer = DeviceAnswer { kind: "webauthn.create", ..HONEST };
        let public_key: PublicKeyX509Der<'_> = self.key.public_key().as_der().unwrap();
        json!({
            "name": name, "id": text(self.id), "algorithm": -7, "public_key": text(public_key.as_ref()),
            "client_data": text(Self::client_data(&challenge["challenge"], &answer)),
            "authenticator_data": text(self.data(&answer, true)),
        })
    }

    /// Signs this challenge.
    fn sign(&mut self, challenge: &Value, user_handle: &Value, answer: &DeviceAnswer<'_>) -> Value {
        let client_data = Self::client_data(&challenge["challenge"], answer);
        let data = self.data(answer, false);
        let signed = [&data[..], digest(&SHA256, client_data.as_bytes()).as_ref()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        json!({
            "id": text(self.id), "user_handle": user_handle, "client_data": text(client_data),
            "authenticator_data": text(data), "signature": text(signature),
        })
    }
}

/// Asks from a browser that is signed in nowhere.
async fn open(api: &Api, path: &str, body: Value) -> Answer {
    let request = Request::post(path).header("host", HOST).body(Body::from(body.to_string()));
    api.ask(request.unwrap()).await
}

async fn challenge(api: &Api) -> Value {
    open(api, "/v1/session/passkey/challenge", json!({})).await.ok(200)
}

async fn sign_in(api: &Api, challenge: &Value, passkey: Value) -> Answer {
    open(api, "/v1/session/passkey", json!({"ceremony": challenge["ceremony"], "passkey": passkey})).await
}

/// Adds a passkey in this session; the challenge it answered.
async fn add(api: &Api, person: &Person, device: &mut SoftDevice, name: &str) -> Value {
    let asked = person.ask(api, "POST", "/v1/passkeys/challenge", "").await.ok(200);
    let body = json!({"ceremony": asked["ceremony"], "passkey": device.create(&asked, name)});
    person.ask(api, "POST", "/v1/passkeys", &body.to_string()).await.ok(201);
    asked
}

#[tokio::test]
async fn a_passkey_opens_a_session_and_each_answer_opens_one() {
    let api = Api::start().await;
    let other_node = api.beside(None);
    let ada = Person::made(&api, "ada", "operator", json!(["default"])).await;
    let mut device = SoftDevice::new(7);
    let handle = add(&api, &ada, &mut device, "laptop").await["user_handle"].clone();
    let listed = ada.ask(&api, "GET", "/v1/passkeys", "").await.ok(200);
    let passkey = &listed["data"][0];
    assert_eq!((&passkey["name"], &passkey["host"]), (&json!("laptop"), &json!(HOST)));
    assert!(!listed.to_string().contains("public_key"), "{listed}");
    assert_eq!(api.get("/v1/users/ada").await.ok(200)["passkeys"], 1);

    let asked = challenge(&api).await;
    let answer = device.sign(&asked, &handle, &HONEST);
    let both =
        tokio::join!(sign_in(&api, &asked, answer.clone()), sign_in(&other_node, &asked, answer.clone()));
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401], "one answer, two nodes, one session");
    sign_in(&api, &asked, answer).await.refused(401, "unauthorized");
    api.clock.forward_ms(1_000);
    let asked = challenge(&api).await;
    let signed_in = sign_in(&api, &asked, device.sign(&asked, &handle, &HONEST)).await;
    let session = signed_in.ok(200);
    assert_eq!((&session["user"], &session["way"]), (&json!("ada"), &json!("passkey")));
    let cookies: Vec<&str> =
        signed_in.headers.get_all("set-cookie").iter().map(|set| set.to_str().unwrap()).collect();
    assert!(cookies.iter().any(|set| set.starts_with("__Host-postway_session=")), "{cookies:?}");
    // An answer to a challenge of before the last sign-in is too late, even to one that nobody answered.
    let (early, late) = (challenge(&api).await, {
        api.clock.forward_ms(1_000);
        challenge(&api).await
    });
    sign_in(&api, &late, device.sign(&late, &handle, &HONEST)).await.ok(200);
    sign_in(&api, &early, device.sign(&early, &handle, &HONEST)).await.refused(401, "unauthorized");
    let log = api.get("/v1/audit").await.ok(200).to_string();
    assert!(log.contains("passkey.create") && log.contains("laptop"), "{log}");
}

#[tokio::test]
async fn what_is_forged_about_a_passkey_opens_nothing() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "operator", json!(["default"])).await;
    let eve = Person::made(&api, "eve", "viewer", json!(["default"])).await;
    let (mut device, mut eves) = (SoftDevice::new(1), SoftDevice::new(2));
    let handle = add(&api, &ada, &mut device, "phone").await["user_handle"].clone();
    let eves_handle = add(&api, &eve, &mut eves, "phone").await["user_handle"].clone();
    let evil = "https://mail.example.org.evil.example";
    for (wrong, why) in [
        (DeviceAnswer { origin: evil, ..HONEST }, "another site asked"),
        (DeviceAnswer { host: "mail.example.org.evil.example", origin: evil, ..HONEST }, "for another site"),
        (DeviceAnswer { origin: "http://mail.example.org", ..HONEST }, "without TLS"),
        (DeviceAnswer { kind: "webauthn.create", ..HONEST }, "not a sign-in"),
        (DeviceAnswer { flags: 0x01, ..HONEST }, "nobody was recognised"),
    ] {
        let asked = challenge(&api).await;
        let answer = sign_in(&api, &asked, device.sign(&asked, &handle, &wrong)).await;
        assert_eq!(answer.status, 401, "{why}");
    }
    // Somebody else's challenge, user, key, signature or text.
    let (asked, other) = (challenge(&api).await, challenge(&api).await);
    let honest = device.sign(&asked, &handle, &HONEST);
    let changed = |name: &str, value: Value| {
        let mut changed = honest.clone();
        changed[name] = value;
        changed
    };
    let of_eve = eves.sign(&asked, &handle, &HONEST);
    for (ceremony, answer) in [
        (&other, honest.clone()),
        (&json!({"ceremony": "AAAA"}), honest.clone()),
        (&asked, changed("user_handle", eves_handle.clone())),
        (&asked, changed("user_handle", json!("AAAA"))),
        (&asked, changed("id", json!(text([9; 16])))),
        (&asked, changed("signature", of_eve["signature"].clone())),
        (&asked, changed("authenticator_data", json!("!"))),
        (&asked, of_eve.clone()),
    ] {
        let refused = sign_in(&api, ceremony, answer.clone()).await;
        refused.refused(401, "unauthorized");
    }
    assert_eq!(sign_in(&api, &asked, json!({"id": 1})).await.wrong_fields(), ["passkey"]);
    // A challenge for a new passkey signs nobody in.
    let adding = ada.ask(&api, "POST", "/v1/passkeys/challenge", "").await.ok(200);
    sign_in(&api, &adding, device.sign(&adding, &handle, &HONEST)).await.refused(401, "unauthorized");
    // A copy of the device, whose counter stands where it was.
    let asked = challenge(&api).await;
    sign_in(&api, &asked, device.sign(&asked, &handle, &HONEST)).await.ok(200);
    api.clock.forward_ms(1_000);
    device.uses -= 1;
    let asked = challenge(&api).await;
    sign_in(&api, &asked, device.sign(&asked, &handle, &HONEST)).await.refused(401, "unauthorized");
    // Too late, and by who is disabled.
    let asked = challenge(&api).await;
    let answer = device.sign(&asked, &handle, &HONEST);
    api.clock.forward_ms(5 * 60 * 1_000);
    sign_in(&api, &asked, answer).await.refused(401, "unauthorized");
    api.patch("/v1/users/ada", json!({"disabled": true})).await.ok(200);
    let asked = challenge(&api).await;
    sign_in(&api, &asked, device.sign(&asked, &handle, &HONEST)).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn an_invitation_is_accepted_with_a_passkey_alone_and_replaces_earlier_ones() {
    let api = Api::start().await;
    api.post("/v1/users", json!({"name": "ada", "role": "viewer", "tenants": ["default"]})).await.ok(201);
    let invite = async || {
        let made = api.post("/v1/users/ada/invitation", json!({})).await.ok(201);
        open(&api, "/v1/session/invitation", json!({"invitation": made["invitation"]})).await.ok(200)
    };
    let offered = invite().await;
    let (mut first, mut second) = (SoftDevice::new(1), SoftDevice::new(2));
    let mut wrong = first.create(&offered["passkey"], "phone");
    wrong["public_key"] = json!("AAAA");
    let accept = async |offered: &Value, passkey: Value| {
        let body = json!({"enrollment": offered["enrollment"], "passkey": passkey});
        open(&api, "/v1/session/invitation", body).await
    };
    assert_eq!(accept(&offered, wrong).await.wrong_fields(), ["passkey"]);
    let accepted = accept(&offered, first.create(&offered["passkey"], "phone")).await.ok(200);
    assert_eq!((&accepted["session"]["user"], &accepted["recovery_codes"]), (&json!("ada"), &json!(null)));
    accept(&offered, first.create(&offered["passkey"], "phone")).await.refused(403, "forbidden");
    let handle = offered["passkey"]["user_handle"].clone();
    let opens = async |device: &mut SoftDevice| {
        api.clock.forward_ms(1_000);
        let asked = challenge(&api).await;
        sign_in(&api, &asked, device.sign(&asked, &handle, &HONEST)).await.status.as_u16()
    };
    assert_eq!(opens(&mut first).await, 200);
    let again = invite().await;
    accept(&again, second.create(&again["passkey"], "new phone")).await.ok(200);
    assert_eq!((opens(&mut first).await, opens(&mut second).await), (401, 200));
}

#[tokio::test]
async fn passkeys_are_added_soon_after_signing_in_up_to_ten_and_the_only_way_in_stays() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "operator", json!(["default"])).await;
    let eve = Person::made(&api, "eve", "operator", json!(["default"])).await;
    for number in 0..10 {
        add(&api, &ada, &mut SoftDevice::new(number), &format!("key {number}")).await;
    }
    ada.ask(&api, "POST", "/v1/passkeys/challenge", "").await.refused(409, "conflict");
    let path = format!("/v1/passkeys/{}", text([3_u8; 16]));
    eve.ask(&api, "DELETE", &path, "").await.refused(404, "not_found");
    assert_eq!(ada.ask(&api, "DELETE", &path, "").await.status, 204);
    ada.ask(&api, "DELETE", &path, "").await.refused(404, "not_found");
    let asked = ada.ask(&api, "POST", "/v1/passkeys/challenge", "").await.ok(200);
    assert_eq!(asked["known"].as_array().unwrap().len(), 9);
    // The challenge is hers, and the passkey is new.
    let of_ada = json!({"ceremony": asked["ceremony"], "passkey": SoftDevice::new(20).create(&asked, "x")});
    assert_eq!(eve.ask(&api, "POST", "/v1/passkeys", &of_ada.to_string()).await.wrong_fields(), ["ceremony"]);
    let known = json!({"ceremony": asked["ceremony"], "passkey": SoftDevice::new(1).create(&asked, "x")});
    ada.ask(&api, "POST", "/v1/passkeys", &known.to_string()).await.refused(409, "conflict");
    for name in ["", "  ", &"x".repeat(61)] {
        let body =
            json!({"ceremony": asked["ceremony"], "passkey": SoftDevice::new(21).create(&asked, name)});
        let answer = ada.ask(&api, "POST", "/v1/passkeys", &body.to_string()).await;
        assert_eq!(answer.wrong_fields(), ["passkey"], "{name}");
    }
    // A session that somebody left open adds none, and nothing without its token does.
    api.clock.forward_ms(15 * 60 * 1_000 + 1);
    eve.ask(&api, "POST", "/v1/passkeys/challenge", "").await.refused(403, "forbidden");
    let forged = Request::post("/v1/passkeys/challenge").header("cookie", &ada.cookie).body(Body::empty());
    api.ask(forged.unwrap()).await.refused(403, "forbidden");
    api.get("/v1/passkeys").await.refused(403, "forbidden");
    // Who has only one passkey keeps it.
    api.post("/v1/users", json!({"name": "joe", "role": "viewer", "tenants": ["default"]})).await.ok(201);
    let made = api.post("/v1/users/joe/invitation", json!({})).await.ok(201);
    let offered =
        open(&api, "/v1/session/invitation", json!({"invitation": made["invitation"]})).await.ok(200);
    let mut device = SoftDevice::new(1);
    let body =
        json!({"enrollment": offered["enrollment"], "passkey": device.create(&offered["passkey"], "p")});
    let answer = open(&api, "/v1/session/invitation", body).await;
    let csrf = answer.ok(200)["session"]["csrf_token"].as_str().unwrap().to_owned();
    let set = answer.headers.get_all("set-cookie").iter();
    let cookie: Vec<&str> = set.map(|set| set.to_str().unwrap().split(';').next().unwrap()).collect();
    let joe = Person { cookie: cookie.join("; "), csrf, secret: String::new(), recovery_codes: Vec::new() };
    let only = format!("/v1/passkeys/{}", text([1_u8; 16]));
    joe.ask(&api, "DELETE", &only, "").await.refused(409, "conflict");
}
