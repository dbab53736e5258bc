//! Texts that are addresses, and texts that are not.

use proptest::prelude::*;

use super::*;

fn address(text: &str) -> Result<EmailAddress, AddressError> {
    text.parse()
}

fn mailbox(text: &str) -> Result<NamedAddress, AddressError> {
    text.parse()
}

#[test]
fn ordinary_and_unusual_addresses_are_accepted() {
    for text in [
        "a@b",
        "user.name+tag@example.org",
        "!#$%&'*+-/=?^_`{|}~@example.org",
        r#""a@b"@example.org"#,
        r#""a\"b"@example.org"#,
        "user@[192.0.2.1]",
        "user@[IPv6:2001:db8::1]",
        "пример@xn--e1afmkfd.xn--p1ai",
        "user@xn--mnchen-3ya.de",
        "user@a--b.example",
    ] {
        assert_eq!(address(text).unwrap().as_str(), text);
    }
}

/// VERP, SRS and BATV write a complete address into a local part; only the bound of the path applies to them.
#[test]
fn a_local_part_may_be_as_long_as_the_address_lets_it() {
    let verp = "announce-bounces+some.long.user.name=some-long-company.example.net@lists.example.com";
    let srs = format!(
        "SRS0=HHH=TT={}={}@forwarder.example",
        "long-company.example.net".repeat(3),
        "ada".repeat(20)
    );
    let whole = format!("{}@b.example", "a".repeat(244));
    for text in [verp, &srs, &whole] {
        let parsed = address(text).unwrap();
        assert!(parsed.local().len() > 64 && parsed.as_str() == text, "{text}");
        assert_eq!(mailbox(&format!("<{text}>")).unwrap().address(), &parsed);
    }
}

#[test]
fn malformed_addresses_are_refused_with_the_reason() {
    let long_local = format!("{}@b.example", "a".repeat(245));
    let long_label = format!("a@{}.org", "b".repeat(64));
    let long = format!("a@{}", vec!["b".repeat(60); 5].join("."));
    for (text, words) in [
        ("", "empty"),
        ("plain", "no @"),
        ("@b", "before the @ is empty"),
        ("a@", "domain is empty"),
        ("a b@c", "U+0020"),
        ("a@b\r\nRCPT TO:<x@y>", "U+000D"),
        ("a\0@b", "U+0000"),
        ("\"a b\"@c", "U+0020"),
        ("a@b\u{202E}c", "U+202E"),
        (".a@b", "dot"),
        ("a..b@c", "dot"),
        ("a,b@c", "must be quoted"),
        ("<a@b>", "must be quoted"),
        ("\"a@b", "closing quote"),
        ("\"a\"b@c", "closing quote"),
        ("\"\"@c", "empty quoted"),
        ("a@b..c", "empty label"),
        ("a@b.", "empty label"),
        ("a@-b.c", "hyphen"),
        ("a@b_c.d", "other than letters"),
        ("a@b。c", "other than letters"),
        ("a@[300.1.1.1]", "literal"),
        ("a@[IPv6:zz]", "literal"),
        ("a@[192.0.2.1", "closing bracket"),
        (&long_local, "254 octets"),
        (&long_label, "63 octets"),
        (&long, "254 octets"),
    ] {
        let error = address(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn domains_are_equal_in_any_case_and_local_parts_are_not() {
    assert_eq!(address("u@EXAMPLE.org"), address("u@example.ORG"));
    assert_eq!(address("u@[ipv6:2001:DB8:0::1]"), address("u@[IPv6:2001:db8::1]"));
    assert_ne!(address("U@example.org"), address("u@example.org"));
    let parsed = address("Ab@EXAMPLE.org").unwrap();
    assert_eq!((parsed.local(), parsed.domain()), ("Ab", "example.org"));
}

#[test]
fn only_a_local_part_outside_ascii_needs_smtputf8() {
    assert!(!address("a@b").unwrap().needs_smtputf8());
    assert!(address("ä@b").unwrap().needs_smtputf8());
    assert!(!address("a@ä").unwrap().needs_smtputf8());
}

#[test]
fn both_spellings_of_a_domain_are_one_address() {
    for (text, ascii) in [
        ("ada@müller.example", "ada@xn--mller-kva.example"),
        ("ada@MÜLLER.Example", "ada@xn--mller-kva.example"),
        ("ada@mu\u{308}ller.example", "ada@xn--mller-kva.example"),
        ("ada@XN--MLLER-KVA.example", "ada@xn--mller-kva.example"),
        ("ada@straße.example", "ada@xn--strae-oqa.example"),
        ("ada@пример.рф", "ada@xn--e1afmkfd.xn--p1ai"),
        ("ada@例え.テスト", "ada@xn--r8jz45g.xn--zckzah"),
    ] {
        assert_eq!(address(text).unwrap().as_str(), ascii, "{text}");
        assert_eq!(EmailAddress::key_of(text), ascii);
    }
    let unicode = |text: &str| address(text).unwrap().to_unicode();
    assert_eq!(unicode("Ada@xn--mller-kva.example").as_deref(), Some("Ada@müller.example"));
    assert_eq!(unicode("ada@example.org"), None);
    assert_eq!(unicode("ada@[192.0.2.1]"), None);
    assert_eq!(domain_to_unicode("xn--mller-kva.example").as_deref(), Some("müller.example"));
    assert_eq!(domain_to_unicode("xn--\u{fffd}"), None);
    let (ascii, unicode) = ("a@xn--mller-kva.example", "a@müller.example");
    assert_eq!(EmailAddress::spellings_of(ascii).collect::<Vec<_>>(), [ascii, unicode]);
    assert_eq!(EmailAddress::spellings_of(unicode).collect::<Vec<_>>(), [unicode, ascii]);
    assert_eq!(EmailAddress::spellings_of("a@b").collect::<Vec<_>>(), ["a@b"]);
    assert_eq!(EmailAddress::key_of(" Nobody Ä "), "nobody ä");
}

#[test]
fn labels_that_idna_refuses_are_named() {
    for (text, label) in [
        ("a@xn--ä.de", "xn--ä"),
        ("a@good.xn--a.de", "xn--a"),
        ("a@xn--.de", "hyphen"),
        ("a@\u{301}ä.de", "\u{301}ä"),
        ("a@xn--mnchen-3ya\u{430}.de", "xn--mnchen-3ya\u{430}"),
        ("a@xn--example-.de", "hyphen"),
        ("a@äא.de", "äא"),
        ("a@ä_b.de", "other than letters"),
    ] {
        let error = address(text).expect_err(text).to_string();
        assert!(error.contains(label), "{text:?}: {error}");
    }
    let long = "ä".repeat(40);
    assert!(address(&format!("a@{long}.de")).is_ok(), "80 octets, and fewer than 63 as an A-label");
    let too_long: String = (0..120).map(|n| char::from_u32(0x4e00 + n * 7).unwrap()).collect();
    assert!(address(&format!("a@{too_long}.de")).is_err(), "its A-label has more than 63 octets");
}

#[test]
fn what_was_kept_under_older_rules_stays_readable() {
    assert_eq!(EmailAddress::read_back("a@müller.example").unwrap().as_str(), "a@xn--mller-kva.example");
    assert_eq!(EmailAddress::read_back("a@xn--ä.de").unwrap().as_str(), "a@xn--ä.de");
    assert!(EmailAddress::read_back("a b@c").is_err());
}

#[test]
fn mailboxes_are_read_in_their_three_forms() {
    for (text, name) in [
        ("a@b", None),
        ("<a@b>", None),
        ("\"\" <a@b>", None),
        (" Jane Doe <a@b> ", Some("Jane Doe")),
        ("Acme Inc. (Sales) <a@b>", Some("Acme Inc. (Sales)")),
        (r#""Doe, \"J\" \\" <a@b>"#, Some(r#"Doe, "J" \"#)),
        ("Zoë <a@b>", Some("Zoë")),
    ] {
        let parsed = mailbox(text).unwrap();
        assert_eq!((parsed.name(), parsed.address().as_str()), (name, "a@b"), "{text}");
    }
    assert_eq!(mailbox(r#""<"@b"#).unwrap().address().as_str(), r#""<"@b"#);
}

#[test]
fn lists_groups_and_broken_mailboxes_are_refused() {
    for text in [
        "a@b, c@d",
        "A <a@b>, C <c@d>",
        "Doe, Jane <a@b>",
        "group: a@b;",
        "x@y <a@b>",
        "A <a@b",
        "a@b>",
        "\"A <a@b>",
        "\"A\" x <a@b>",
        "A <a@b> c",
        "A <>",
        "A\r\nBcc: x <a@b>",
        "A\t<a@b>",
        "A\r\n <a@b>",
        "\n<a@b>",
        "\"A\u{1}\" <a@b>",
    ] {
        assert!(mailbox(text).is_err(), "{text:?}");
    }
    assert!(mailbox(&format!("{} <a@b>", "n".repeat(513))).is_err());
}

#[test]
fn serde_speaks_strings_and_refuses_what_parsing_refuses() {
    let parsed: NamedAddress = serde_json::from_str(r#""Jane <jane@example.org>""#).unwrap();
    assert_eq!(serde_json::to_string(&parsed).unwrap(), r#""Jane <jane@example.org>""#);
    let error = serde_json::from_str::<EmailAddress>(r#""nobody""#).unwrap_err();
    assert!(error.to_string().contains("no @"), "{error}");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>(), near in r#"["<>\\a-c@., \[\]:;é]{0,40}"#) {
        for text in [text, near] {
            if let Ok(parsed) = address(&text) {
                prop_assert!(!parsed.as_str().contains(is_unseen));
                prop_assert_eq!(address(parsed.as_str()), Ok(parsed));
            }
            if let Ok(parsed) = mailbox(&text) {
                prop_assert_eq!(mailbox(&parsed.to_string()), Ok(parsed));
            }
        }
    }

    #[test]
    fn a_displayed_mailbox_parses_to_itself(name in any::<String>(), local in r#"[a-zé"\\<>,@!.]{1,12}"#) {
        let quoted = format!("\"{}\"@Example.org", local.replace('\\', "\\\\").replace('"', "\\\""));
        let Ok(built) = NamedAddress::new(Some(&name), address(&quoted).unwrap()) else { return Ok(()) };
        prop_assert_eq!(mailbox(&built.to_string()), Ok(built));
    }
}
