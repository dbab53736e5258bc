//! Receipts in the format of the providers, with invented names.

use std::fmt::Write;

pub const UID: &str = "018f2f6e-7c1a-7b3c-9d4e-5f60718293a4";
pub const SIGNER: &str = "posta-certificata@pec.gestore.example";

/// The content of a receipt. `..base()` gives an acceptance.
#[derive(Clone)]
pub struct Sample {
    pub kind: &'static str,
    pub header: String,
    pub text: String,
    pub file_name: &'static str,
    pub daticert: Option<Vec<u8>>,
    pub original: Option<String>,
}

pub fn base() -> Sample {
    Sample {
        kind: "accettazione",
        header: format!("X-Riferimento-Message-ID: <{UID}@cliente.example>\r\n"),
        text: "Ricevuta".into(),
        file_name: "daticert.xml",
        daticert: Some(daticert("accettazione", "nessuno", "").into_bytes()),
        original: None,
    }
}

/// A receipt of this kind, with these further elements in its `dati`.
pub fn sample(kind: &'static str, error: &str, data: &str) -> Sample {
    Sample { kind, daticert: Some(daticert(kind, error, data).into_bytes()), ..base() }
}

pub fn daticert(kind: &str, error: &str, data: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<postacert tipo=\"{kind}\" errore=\"{error}\">\n<intestazione>\n\
         <mittente>ufficio@cliente.example</mittente>\n\
         <destinatari tipo=\"certificato\">rossi@pec.altrove.example</destinatari>\n\
         <destinatari tipo=\"esterno\">bianchi@posta.example</destinatari>\n\
         <risposte>ufficio@cliente.example</risposte>\n<oggetto>Bolletta &lt;7&gt; di t&#232;</oggetto>\n</intestazione>\n\
         <dati>\n<gestore-emittente>GESTORE DI PROVA S.P.A.</gestore-emittente>\n\
         <data zona=\"+0200\"><giorno>08/08/2026</giorno><ora>00:30:12</ora></data>\n\
         <identificativo>opec1.20260808003012.1.2.3@pec.gestore.example</identificativo>\n\
         <msgid>&lt;{UID}@cliente.example&gt;</msgid>\n{data}</dati>\n</postacert>\n"
    )
}

impl Sample {
    /// The part that a provider signs.
    pub fn content(&self) -> String {
        let mut out = String::from("Content-Type: multipart/mixed; boundary=\"m\"\r\n\r\n--m\r\n");
        write!(out, "Content-Type: text/plain; charset=\"utf-8\"\r\n\r\n{}\r\n", self.text).unwrap();
        if let Some(daticert) = &self.daticert {
            let packed = base64(daticert);
            write!(
                out,
                "--m\r\nContent-Type: application/xml; name=\"{0}\"\r\nContent-Transfer-Encoding: base64\r\n\
                 Content-Disposition: inline; filename=\"{0}\"\r\n\r\n{packed}",
                self.file_name
            )
            .unwrap();
        }
        if let Some(original) = &self.original {
            write!(out, "--m\r\nContent-Type: message/rfc822; name=\"postacert.eml\"\r\n\r\n{original}\r\n")
                .unwrap();
        }
        out + "--m--\r\n"
    }

    /// The header before the content or around the signature.
    pub fn header(&self) -> String {
        format!(
            "Return-Path: <ricevute@pec.gestore.example>\r\nX-Ricevuta: {}\r\n{}From: {SIGNER}\r\n\
             To: ufficio@cliente.example\r\nSubject: RICEVUTA: Bolletta\r\nMessage-ID: <r1@pec.gestore.example>\r\n\
             MIME-Version: 1.0\r\n",
            self.kind, self.header
        )
    }

    /// The mail, not signed.
    pub fn raw(&self) -> Vec<u8> {
        (self.header() + &self.content()).into_bytes()
    }
}

/// The mail around a content and its detached signature.
pub fn signed(header: &str, content: &str, signature: &[u8]) -> Vec<u8> {
    let packed = base64(signature);
    format!(
        "{header}Content-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; micalg=\"sha-256\";\r\n\
         \tboundary=\"s\"\r\n\r\nThis is an S/MIME signed message\r\n--s\r\n{content}\r\n--s\r\n\
         Content-Type: application/x-pkcs7-signature; name=\"smime.p7s\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{packed}--s--\r\n"
    )
    .into_bytes()
}

/// Base64 in lines of 76 characters.
pub fn base64(bytes: &[u8]) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let packed = BASE64_STANDARD.encode(bytes);
    packed.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned() + "\r\n").collect()
}
