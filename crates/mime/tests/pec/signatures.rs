//! Signatures that are correct except for one detail each.

use postway_domain::Time;
use postway_mime::pec::{SignatureCheck, TrustError, TrustStore, read, verify};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use crate::{
    signing::{Authority, PKCS7, SHA1, Signing, attribute, tlv},
    support::{SIGNER, Sample, base, base64, sample, signed},
};

const EMAIL_ADDRESS: &[u64] = &[1, 2, 840, 113549, 1, 9, 1];

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn then() -> Time {
    at("2026-08-08T10:00:00Z")
}

#[track_caller]
fn assert_verified(judged: SignatureCheck) {
    assert_eq!(judged, SignatureCheck::Verified { signer: SIGNER.into() });
}

#[track_caller]
fn assert_unverified(judged: SignatureCheck, reason: &str) {
    let SignatureCheck::Unverified { why } = judged else { panic!("{judged:?} instead of: {reason}") };
    assert!(why.contains(reason), "{why} instead of: {reason}");
}

#[test]
fn a_signature_of_the_provider_is_verified() {
    let authority = Authority::new("CA", None);
    let raw = Signing::by(&authority, |_| ()).mail();
    assert_verified(verify(&raw, &authority.trust(), then()));
    let text = String::from_utf8(raw).unwrap();
    assert_verified(verify(text.replace("\r\n", "\n").as_bytes(), &authority.trust(), then()));
    let shouted =
        text.replace(&format!("From: {SIGNER}"), "From: \"P.C.\" <posta-certificata@PEC.Gestore.example>");
    assert_verified(verify(shouted.as_bytes(), &authority.trust(), then()));
    let named = text.replace("application/x-pkcs7-signature; name", "application/pkcs7-signature; name");
    assert_verified(verify(named.as_bytes(), &authority.trust(), then()));
}

#[test]
fn streams_and_opaque_signatures_are_verified_and_read() {
    let authority = Authority::new("CA", None);
    let mut signing = Signing::by(&authority, |_| ());
    signing.stream = true;
    assert_verified(verify(&signing.mail(), &authority.trust(), then()));
    for stream in [false, true] {
        (signing.opaque, signing.stream) = (true, stream);
        let packed = base64(&signing.sign(base().content().as_bytes()));
        let header = base().header();
        let raw = format!(
            "{header}Content-Type: application/pkcs7-mime; smime-type=signed-data\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n{packed}"
        );
        assert_verified(verify(raw.as_bytes(), &authority.trust(), then()));
        assert!(read(raw.as_bytes()).unwrap().is_confirmed());
    }
}

/// The mail with one more part behind its signature.
fn with_further_part(raw: &[u8], part: &str) -> Vec<u8> {
    String::from_utf8(raw.to_vec())
        .unwrap()
        .replace("--s--\r\n", &format!("--s\r\n{part}\r\n--s--\r\n"))
        .into_bytes()
}

#[test]
fn a_signature_proves_only_what_the_signed_part_says() {
    let authority = Authority::new("CA", None);
    let signing = Signing::by(&authority, |_| ());
    let delivered =
        sample("avvenuta-consegna", "nessuno", "<consegna>rossi@pec.altrove.example</consegna>\n");
    let judged = |content: &str, further: Option<&str>| {
        let mut raw = signed(&delivered.header(), content, &signing.sign(content.as_bytes()));
        if let Some(part) = further {
            raw = with_further_part(&raw, part);
        }
        assert_verified(verify(&raw, &authority.trust(), then()));
        read(&raw).unwrap().unconfirmed()
    };
    assert_eq!(judged(&delivered.content(), None), None);
    // A mail that the provider has signed for another purpose, under the header of a receipt.
    let letter = Sample { daticert: None, ..base() };
    assert!(judged(&letter.content(), None).unwrap().contains("no daticert.xml"));
    let refused = Sample { daticert: Some(b"<!DOCTYPE x><postacert/>".to_vec()), ..base() };
    assert!(judged(&refused.content(), None).unwrap().contains("cannot be read"));
    assert!(judged(&base().content(), None).unwrap().contains("contradict"));
    let nobody = sample("avvenuta-consegna", "nessuno", "");
    assert!(judged(&nobody.content(), None).unwrap().contains("the recipient"));
    // A part beside the signed one certifies nothing, even if it is further out.
    let beside = delivered.content();
    for content in [letter.content(), base().content()] {
        let part = beside.split("--m\r\n").find(|part| part.contains("daticert.xml")).unwrap();
        for further in [part, beside.as_str()] {
            assert!(judged(&content, Some(further)).is_some(), "{further}");
        }
    }
}

#[test]
fn changed_mail_is_not() {
    let authority = Authority::new("CA", None);
    let signing = Signing::by(&authority, |_| ());
    let text = String::from_utf8(signing.mail()).unwrap();
    assert_unverified(
        verify(text.replace("Ricevuta\r\n", "Altro\r\n").as_bytes(), &authority.trust(), then()),
        "changed",
    );
    let stranger = Signing { key: KeyPair::generate().unwrap(), ..Signing::by(&authority, |_| ()) };
    assert_unverified(verify(&stranger.mail(), &authority.trust(), then()), "does not fit");
    let broken = signed(&base().header(), &base().content(), &signing.sign(b"x")[..300]);
    assert_unverified(verify(&broken, &authority.trust(), then()), "not CMS");
}

#[test]
fn the_author_must_be_the_signer() {
    let authority = Authority::new("CA", None);
    let signing = Signing::by(&authority, |_| ());
    let text = String::from_utf8(signing.mail()).unwrap();
    for from in ["From: altro@pec.gestore.example", "From: Posta-certificata@pec.gestore.example"] {
        let other = text.replace(&format!("From: {SIGNER}"), from);
        assert_unverified(verify(other.as_bytes(), &authority.trust(), then()), "does not name");
    }
    let two = text.replace("From: ", "From: altro@x.example\r\nFrom: ");
    assert_unverified(verify(two.as_bytes(), &authority.trust(), then()), "exactly one");
    let subject = Signing::by(&authority, |params| {
        params.subject_alt_names.clear();
        params.distinguished_name.push(DnType::CustomDnType(EMAIL_ADDRESS.to_vec()), SIGNER);
    });
    assert_verified(verify(&subject.mail(), &authority.trust(), then()));
}

#[test]
fn the_chain_must_lead_to_the_trust_store() {
    let root = Authority::new("Root", None);
    let between = Authority::new("Between", Some(&root));
    let mut signing = Signing::by(&between, |_| ());
    assert_unverified(verify(&signing.mail(), &root.trust(), then()), "not in the trust store");
    signing.further = vec![between.der.clone()];
    assert_verified(verify(&signing.mail(), &root.trust(), then()));
    assert_unverified(verify(&signing.mail(), &Authority::new("Root", None).trust(), then()), "");
    assert_unverified(verify(&signing.mail(), &TrustStore::default(), then()), "no trust store");
}

#[test]
fn a_certificate_is_judged_when_the_mail_was_signed() {
    let authority = Authority::new("CA", None);
    let mut signing = Signing::by(&authority, |_| ());
    let mut judge = |signed_at, received| {
        signing.signed_at = signed_at;
        verify(&signing.mail(), &authority.trust(), at(received))
    };
    let inside = Some("260808003012Z");
    assert_verified(judge(inside, "2030-01-01T00:00:00Z"));
    assert_verified(judge(None, "2026-08-08T00:00:00Z"));
    assert_unverified(judge(None, "2030-01-01T00:00:00Z"), "not valid when");
    assert_unverified(judge(Some("280101000000Z"), "2028-01-02T00:00:00Z"), "not valid when");
    // An implausible signing time: the time of receipt is used.
    assert_unverified(judge(inside, "2025-01-01T00:00:00Z"), "not valid when");
    assert_unverified(judge(inside, "2038-01-01T00:00:00Z"), "not valid when");
}

#[test]
fn keys_meant_for_something_else_do_not_sign() {
    let authority = Authority::new("CA", None);
    let judge = |adjust: fn(&mut CertificateParams)| {
        verify(&Signing::by(&authority, adjust).mail(), &authority.trust(), then())
    };
    assert_unverified(
        judge(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment]),
        "not meant",
    );
    assert_unverified(
        judge(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
        "RequiredEkuNotFound",
    );
    assert_verified(judge(|params| {
        params.key_usages.clear();
        params.extended_key_usages.clear();
    }));
}

#[test]
fn weak_and_misleading_signatures_are_not_believed() {
    let authority = Authority::new("CA", None);
    let judge = |spoil: fn(&mut Signing)| {
        let mut signing = Signing::by(&authority, |_| ());
        spoil(&mut signing);
        verify(&signing.mail(), &authority.trust(), then())
    };
    assert_unverified(judge(|signing| signing.digest = SHA1), "SHA-1 is too weak");
    assert_unverified(judge(|signing| signing.attributes = false), "no signed attributes");
    // A second digest; and a content type that is not the content's.
    assert_unverified(
        judge(|signing| signing.further_attribute = attribute(4, &tlv(4, &[7; 32]))),
        "not CMS",
    );
    assert_unverified(judge(|signing| signing.further_attribute = attribute(3, &tlv(6, &PKCS7))), "not CMS");
    assert_verified(judge(|signing| signing.further = vec![tlv(0x30, b"not a certificate")]));
}

#[test]
fn mail_without_a_signature_has_none() {
    let trust = TrustStore::default();
    assert_eq!(verify(&base().raw(), &trust, then()), SignatureCheck::Absent);
    assert_eq!(verify(b"", &trust, then()), SignatureCheck::Absent);
    let openpgp = b"Content-Type: multipart/signed; boundary=s\r\n\r\n--s\r\n\r\nx\r\n--s\r\n\
                    Content-Type: application/pgp-signature\r\n\r\ny\r\n--s--\r\n";
    assert_eq!(verify(openpgp, &trust, then()), SignatureCheck::Absent);
    let enveloped = format!(
        "Content-Type: application/pkcs7-mime\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
        base64(&tlv(0x30, &tlv(6, &[&PKCS7[..], &[7, 3]].concat())))
    );
    assert_eq!(verify(enveloped.as_bytes(), &trust, then()), SignatureCheck::Absent);
}

#[test]
fn a_bundle_that_is_no_trust_store_is_refused() {
    assert!(matches!(TrustStore::from_pem(b"nothing"), Err(TrustError::Empty)));
    let broken = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert!(matches!(TrustStore::from_pem(broken), Err(TrustError::NotUsable { number: 1 })));
    let two = [Authority::new("A", None).pem, Authority::new("B", None).pem].join("text between\n");
    assert_eq!(TrustStore::from_pem(two.as_bytes()).unwrap().len(), 2);
}
