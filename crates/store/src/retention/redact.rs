//! Removing an address from texts that others wrote.

use postway_domain::EmailAddress;

/// The replacement for an erased address. It parses as an address, and no mail can reach it (RFC 6761).
pub(crate) const ERASED_ADDRESS: &str = "erased@erased.invalid";

/// The text without the address, ignoring case and spelling, also as JSON writes it; `None` if the address is
/// not in it.
pub(crate) fn without(text: &str, address: &str) -> Option<String> {
    let mut redacted: Option<String> = None;
    for spelling in EmailAddress::spellings_of(address) {
        let in_json = serde_json::Value::from(spelling.as_str()).to_string();
        for form in [in_json.trim_matches('"'), &spelling] {
            redacted = replaced(redacted.as_deref().unwrap_or(text), form).or(redacted);
        }
    }
    redacted
}

fn replaced(text: &str, address: &str) -> Option<String> {
    if address.is_empty() {
        return None;
    }
    // ASCII letters have the same length in either case, so positions in one text are positions in the other.
    let (lower, wanted) = (text.to_ascii_lowercase(), address.to_ascii_lowercase());
    let mut redacted = String::new();
    let mut rest = 0;
    for (place, _) in lower.match_indices(&wanted) {
        redacted.push_str(&text[rest..place]);
        redacted.push_str(ERASED_ADDRESS);
        rest = place + wanted.len();
    }
    (rest > 0).then(|| redacted + &text[rest..])
}

/// Whether a text contains an address, ignoring case, and not as a part of another address.
pub(crate) fn is_addressed(text: &str, address: &str) -> bool {
    let (lower, wanted) = (text.to_lowercase(), address.to_lowercase());
    let of_local = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let of_domain = |c: char| c.is_alphanumeric() || c == '-';
    !wanted.is_empty()
        && lower.match_indices(&wanted).any(|(place, _)| {
            let mut after = lower[place + wanted.len()..].chars();
            let goes_on = match after.next() {
                Some('.') => after.next().is_some_and(of_domain),
                Some(next) => of_domain(next),
                None => false,
            };
            !goes_on && !lower[..place].chars().next_back().is_some_and(of_local)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_an_address() {
        assert_eq!(ERASED_ADDRESS.parse::<EmailAddress>().unwrap().as_str(), ERASED_ADDRESS);
    }

    #[test]
    fn an_address_is_taken_out_wherever_it_stands() {
        let reply = "550 5.1.1 <Ann@Example.org>: no ann@example.org here";
        let redacted = "550 5.1.1 <erased@erased.invalid>: no erased@erased.invalid here";
        assert_eq!(without(reply, "ann@example.org").as_deref(), Some(redacted));
        assert_eq!(without("250 ok", "ann@example.org"), None);
        assert_eq!(
            without("à ann@example.org", "ANN@example.org").as_deref(),
            Some("à erased@erased.invalid")
        );
        assert_eq!(without("anything", ""), None);
        let both = "no ada@müller.example, that is ada@xn--mller-kva.example";
        let redacted = "no erased@erased.invalid, that is erased@erased.invalid";
        assert_eq!(without(both, "ada@xn--mller-kva.example").as_deref(), Some(redacted));
    }

    #[test]
    fn an_address_is_told_from_a_longer_one() {
        for text in ["ann@example.org", "Ann <ANN@example.org>, bob@example.org", "to ann@Example.org."] {
            assert!(is_addressed(text, "Ann@example.org"), "{text}");
        }
        for text in
            ["joann@example.org", "ann@example.org.uk", "x.ann@example.org", "ann@example.organic", ""]
        {
            assert!(!is_addressed(text, "ann@example.org"), "{text}");
        }
        assert!(!is_addressed("anything", ""));
    }

    #[test]
    fn a_quoted_local_part_is_found_in_json() {
        let data = serde_json::json!({"to": "\"a.b\"@example.org"}).to_string();
        assert_eq!(
            without(&data, "\"a.b\"@example.org").as_deref(),
            Some(r#"{"to":"erased@erased.invalid"}"#)
        );
    }
}
