//! Makes the `DKIM-Signature` field.
//!
//! The field is written with an empty `b=`, hashed in relaxed form after the fields that it names, and then
//! completed. Lines are folded under 78 columns where a fold is allowed: a name is never broken.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};
use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{
    Algorithm, DkimError,
    canonical::{SignedField, check_breaks, fields, relax_body},
    key::{DkimKeyPair, signature_tag},
    record::check_names,
};

/// The column before which lines are folded.
const FOLD_AT: usize = 78;

/// The fields that are signed, and whether each is signed once more than it occurs.
const SIGNED: [(&str, ExtraFields); 18] = [
    ("From", ExtraFields::Guarded),
    ("To", ExtraFields::Guarded),
    ("Cc", ExtraFields::Guarded),
    ("Subject", ExtraFields::Guarded),
    ("Date", ExtraFields::Guarded),
    ("Reply-To", ExtraFields::Guarded),
    ("Content-Type", ExtraFields::Guarded),
    ("Message-ID", ExtraFields::Open),
    ("Sender", ExtraFields::Open),
    ("MIME-Version", ExtraFields::Open),
    ("Content-Transfer-Encoding", ExtraFields::Open),
    ("List-Unsubscribe", ExtraFields::Open),
    ("List-Unsubscribe-Post", ExtraFields::Open),
    ("In-Reply-To", ExtraFields::Open),
    ("References", ExtraFields::Open),
    ("Feedback-ID", ExtraFields::Open),
    ("Auto-Submitted", ExtraFields::Open),
    ("X-Postway-ID", ExtraFields::Open),
];

/// Whether somebody may add another field of the name after signing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExtraFields {
    /// The name is signed once more than it occurs, so an added field breaks the signature.
    Guarded,
    Open,
}

/// Signs messages with one key. Never printed.
pub struct DkimSigner {
    domain: String,
    selector: String,
    key: DkimKeyPair,
}

impl DkimSigner {
    /// A signer for the domain (in ASCII, `xn--…` where needed) whose key is published under the selector.
    pub fn new(
        domain: &str,
        selector: &str,
        algorithm: Algorithm,
        private_pkcs8: &[u8],
    ) -> Result<Self, DkimError> {
        check_names(selector, domain)?;
        let key = DkimKeyPair::read(algorithm, private_pkcs8)?;
        Ok(Self { domain: domain.to_ascii_lowercase(), selector: selector.to_owned(), key })
    }

    /// The domain that takes responsibility for the message.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the `DKIM-Signature` field with its CRLF, to be put in front of the message.
    pub fn sign(&self, message: &[u8], signed_at_unix: i64) -> Result<String, DkimError> {
        self.sign_except(message, signed_at_unix, &[])
    }

    /// Signs for a relay that rewrites the fields in `rewritten`, which are therefore not signed.
    pub fn sign_except(
        &self,
        message: &[u8],
        signed_at_unix: i64,
        rewritten: &[&str],
    ) -> Result<String, DkimError> {
        check_breaks(message)?;
        let (fields, body) = fields(message)?;
        let mut signed = select(&fields);
        signed.retain(|(name, _)| !rewritten.contains(name));
        if !signed.iter().any(|(name, field)| *name == "From" && field.is_some()) {
            return Err(DkimError::NoFrom);
        }
        let mut out = self.unsigned(&signed, &body_hash(body), signed_at_unix);
        let mut canonical = Vec::with_capacity(4096);
        for field in signed.iter().filter_map(|(_, field)| *field) {
            field.write_relaxed(&mut canonical);
            canonical.extend_from_slice(b"\r\n");
        }
        let own = SignedField::read(out.text.as_bytes()).ok_or(DkimError::Sign(self.key.algorithm()))?;
        own.write_relaxed(&mut canonical);
        let mut hash = Context::new(&SHA256);
        hash.update(&canonical);
        let signature = self.key.sign(&hash.finish())?;
        out.write_broken(&BASE64_STANDARD.encode(signature));
        out.text.push_str("\r\n");
        Ok(out.text)
    }

    /// The field up to and with an empty `b=`.
    fn unsigned(
        &self,
        signed: &[(&str, Option<&SignedField<'_>>)],
        body_hash: &str,
        at_unix: i64,
    ) -> FoldedField {
        let mut out = FoldedField::new("DKIM-Signature: v=1;");
        out.write_word(&format!("a={};", signature_tag(self.key.algorithm())));
        out.write_word("c=relaxed/relaxed;");
        out.write_word(&format!("d={};", self.domain));
        out.write_word(&format!("s={};", self.selector));
        // The tag cannot be negative; only a broken clock gives a time before 1970.
        out.write_word(&format!("t={};", at_unix.max(0)));
        let last = signed.len().saturating_sub(1);
        for (index, (name, _)) in signed.iter().enumerate() {
            let after = if index == last { ';' } else { ':' };
            let name = name.to_ascii_lowercase();
            match index {
                0 => out.write_word(&format!("h={name}{after}")),
                _ => out.write_joined(&format!("{name}{after}")),
            }
        }
        out.write_word(&format!("bh={body_hash};"));
        out.write_word("b=");
        out
    }
}

impl fmt::Debug for DkimSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Signer");
        out.field("domain", &self.domain).field("selector", &self.selector).finish_non_exhaustive()
    }
}

/// The names for `h=`, each with the field that it refers to. Of several fields with one name the last is
/// first (RFC 6376, 5.4.2). A name without a field signs the absence of a further field.
fn select<'f, 'm>(fields: &'f [SignedField<'m>]) -> Vec<(&'static str, Option<&'f SignedField<'m>>)> {
    let mut signed = Vec::with_capacity(32);
    for (name, extra) in SIGNED {
        let found = fields.iter().rev().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes()));
        signed.extend(found.map(|field| (name, Some(field))));
        if extra == ExtraFields::Guarded {
            signed.push((name, None));
        }
    }
    signed
}

fn body_hash(body: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    relax_body(body, |piece| hash.update(piece));
    BASE64_STANDARD.encode(hash.finish())
}

/// A header field that is folded while it is written.
struct FoldedField {
    text: String,
    column: usize,
}

impl FoldedField {
    fn new(start: &str) -> Self {
        Self { text: start.to_owned(), column: start.len() }
    }

    /// Writes a word after a space, or on a new line if it does not fit.
    fn write_word(&mut self, word: &str) {
        if self.column + 1 + word.len() < FOLD_AT {
            self.text.push(' ');
            self.column += 1;
        } else {
            self.fold();
        }
        self.push(word);
    }

    /// Writes a word right after the last, or on a new line if it does not fit.
    fn write_joined(&mut self, word: &str) {
        if self.column + word.len() >= FOLD_AT {
            self.fold();
        }
        self.push(word);
    }

    /// Writes ASCII that may be broken anywhere.
    fn write_broken(&mut self, mut ascii: &str) {
        while !ascii.is_empty() {
            if self.column + 1 >= FOLD_AT {
                self.fold();
            }
            let (piece, rest) = ascii.split_at(ascii.len().min(FOLD_AT - 1 - self.column));
            self.push(piece);
            ascii = rest;
        }
    }

    fn fold(&mut self) {
        self.text.push_str("\r\n ");
        self.column = 1;
    }

    fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.column += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::dkim::generate;

    fn signer(domain: &str) -> DkimSigner {
        let key = generate(Algorithm::Ed25519).unwrap();
        DkimSigner::new(domain, "s1", Algorithm::Ed25519, key.private_pkcs8.expose_secret()).unwrap()
    }

    #[test]
    fn body_hashes_are_those_of_the_rfcs() {
        // RFC 6376, A.2 and RFC 8463, A.3: the same body.
        let body = b"Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n";
        assert_eq!(body_hash(body), "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=");
        // RFC 6376, 3.4.4.
        assert_eq!(body_hash(b""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(body_hash(b" \r\n\r\n"), body_hash(b""));
    }

    #[test]
    fn fields_are_named_as_often_as_they_occur_and_guarded_ones_once_more() {
        let message = b"References: 1\r\nFrom: a\r\nX-Other: x\r\nreferences: 2\r\nSubject: s\r\n\r\n";
        let field = signer("example.com").sign(message, 7).unwrap().replace("\r\n ", "");
        let names = "h=from:from:to:cc:subject:subject:date:reply-to:content-type:references:references;";
        assert!(field.contains(names), "{field}");
        let (fields, _) = fields(message).unwrap();
        let references: Vec<_> =
            select(&fields).into_iter().filter(|(name, _)| *name == "References").collect();
        assert_eq!(references, [("References", Some(&fields[3])), ("References", Some(&fields[0]))]);
    }

    #[test]
    fn the_field_is_folded_and_the_same_each_time() {
        let signer = signer("Example.COM");
        let message = b"From: a@example.com\r\n\r\nbody\r\n";
        let field = signer.sign(message, 1_760_000_000).unwrap();
        let start = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; d=example.com;\r\n \
                     s=s1; t=1760000000; h=from:from:to:cc:subject:date:reply-to:content-type;\r\n bh=";
        assert!(field.starts_with(start), "{field}");
        assert!(field.ends_with("\r\n") && field.lines().all(|line| line.len() < FOLD_AT), "{field}");
        assert_eq!(signer.sign(message, 1_760_000_000).unwrap(), field);
    }

    #[test]
    fn a_signer_is_shared_and_does_not_show_its_key() {
        fn shared<T: Send + Sync>(value: T) -> T {
            value
        }
        let shown = format!("{:?}", shared(signer("example.com")));
        assert_eq!(shown, "Signer { domain: \"example.com\", selector: \"s1\", .. }");
    }
}
