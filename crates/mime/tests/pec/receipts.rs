//! Every kind of receipt, and mail that is not a receipt.

use postway_mime::pec::{
    CertifiedReceipt, DaticertState, DelayNotice, PecEvent, PecMail, ReceiptContradiction, ReceiptForm,
    ReceiptKind, inspect, read,
};

use crate::support::{Sample, UID, base, daticert, sample};

fn receipt(sample: &Sample) -> CertifiedReceipt {
    read(&sample.raw()).expect("a receipt")
}

#[test]
fn an_acceptance_is_about_all_recipients() {
    let read = receipt(&base());
    assert_eq!(read.kind, ReceiptKind::Acceptance);
    assert_eq!(read.kind_text, "accettazione");
    assert_eq!(read.event(), PecEvent::Accepted);
    assert_eq!(read.reference.as_deref(), Some(&*format!("{UID}@cliente.example")));
    assert_eq!(read.postway_uid.map(|uid| uid.to_string()).as_deref(), Some(UID));
    assert_eq!(read.message_id.as_deref(), Some("r1@pec.gestore.example"));
    assert_eq!(read.identifier.as_deref(), Some("opec1.20260808003012.1.2.3@pec.gestore.example"));
    assert_eq!(read.sender.as_deref(), Some("ufficio@cliente.example"));
    assert_eq!(read.provider.as_deref(), Some("GESTORE DI PROVA S.P.A."));
    assert_eq!(read.subject.as_deref(), Some("Bolletta <7> di t\u{e8}"));
    assert_eq!(read.at.unwrap().to_string(), "2026-08-07T22:30:12.000Z");
    assert_eq!(read.error.as_deref(), Some("nessuno"));
    let kinds: Vec<_> = read.recipients.iter().map(|one| one.kind.as_deref().unwrap()).collect();
    assert_eq!(kinds, ["certificato", "esterno"]);
    assert_eq!(read.concerned(), ["rossi@pec.altrove.example", "bianchi@posta.example"]);
    assert!(read.is_confirmed());
}

#[test]
fn a_delivery_is_about_the_mailbox_it_names_and_not_about_to() {
    for (form, expected) in [
        ("completa", ReceiptForm::Complete),
        ("breve", ReceiptForm::Short),
        ("sintetica", ReceiptForm::Synthetic),
        ("Nuova", ReceiptForm::Unknown("nuova".into())),
    ] {
        let data = format!("<ricevuta tipo=\"{form}\" /><consegna>rossi@pec.altrove.example</consegna>");
        let read = receipt(&sample("avvenuta-consegna", "nessuno", &data));
        assert_eq!(read.event(), PecEvent::Delivered);
        assert_eq!(read.form, Some(expected));
        assert_eq!(read.concerned(), ["rossi@pec.altrove.example"]);
    }
}

#[test]
fn the_header_gives_the_form_before_daticert() {
    let mut short = sample("avvenuta-consegna", "nessuno", "<ricevuta tipo=\"completa\"/>");
    short.header.push_str("X-TipoRicevuta: breve\r\nX-VerificaSicurezza: nessuno\r\n");
    let read = receipt(&short);
    assert_eq!(read.form, Some(ReceiptForm::Short));
    assert_eq!(read.security_check.as_deref(), Some("nessuno"));
}

#[test]
fn what_was_taken_over_is_named_by_ricezione() {
    let data =
        "<ricezione>rossi@pec.altrove.example</ricezione><ricezione>verdi@pec.altrove.example</ricezione>";
    let read = receipt(&sample("presa-in-carico", "nessuno", data));
    assert_eq!(read.event(), PecEvent::TakenOver);
    assert_eq!(read.concerned(), ["rossi@pec.altrove.example", "verdi@pec.altrove.example"]);
}

#[test]
fn failures_keep_their_errors() {
    for (kind, error, expected) in [
        ("non-accettazione", "altro", ReceiptKind::NonAcceptance),
        ("errore-consegna", "no-dest", ReceiptKind::DeliveryError),
        ("rilevazione-virus", "virus", ReceiptKind::VirusDetected),
        ("errore-consegna", "mai-visto", ReceiptKind::DeliveryError),
    ] {
        let data = "<consegna>rossi@pec.altrove.example</consegna><errore-esteso>5.1.1 - <![CDATA[<ignoto>]]></errore-esteso>";
        let read = receipt(&sample(kind, error, data));
        assert_eq!(read.kind, expected);
        assert_eq!(read.event(), PecEvent::Failed);
        assert_eq!(read.error.as_deref(), Some(error));
        assert_eq!(read.error_text.as_deref(), Some("5.1.1 - <ignoto>"));
        assert_eq!(read.notice, None);
    }
}

#[test]
fn the_same_header_warns_at_12_hours_and_fails_at_24() {
    let say = |text: &str, data: &str| {
        let notice = Sample { text: text.into(), ..sample("preavviso-errore-consegna", "altro", data) };
        let read = receipt(&notice);
        (read.notice.unwrap(), read.event())
    };
    let first = "non e' stato consegnato nelle prime\r\ndodici ore dal suo invio.";
    let last = "non e' stato consegnato nelle ventiquattro ore successive al suo invio.";
    assert_eq!(say(first, ""), (DelayNotice::First, PecEvent::Warning));
    assert_eq!(say(last, ""), (DelayNotice::Final, PecEvent::Failed));
    assert_eq!(
        say("?", "<errore-esteso>5.4.1 - tempo massimo</errore-esteso>"),
        (DelayNotice::Final, PecEvent::Failed)
    );
    assert_eq!(
        say("?", "<errore-esteso>4.4.1 - attesa</errore-esteso>"),
        (DelayNotice::First, PecEvent::Warning)
    );
    assert_eq!(say("?", ""), (DelayNotice::Undecided, PecEvent::Warning));
}

#[test]
fn an_unknown_kind_is_kept() {
    let read = receipt(&sample("Ricevuta-Nuova", "nessuno", ""));
    assert_eq!(read.kind, ReceiptKind::Unknown("ricevuta-nuova".into()));
    assert_eq!(read.kind_text, "Ricevuta-Nuova");
    assert_eq!(read.event(), PecEvent::Unknown);
    assert!(read.is_confirmed());
}

#[test]
fn an_envelope_is_not_a_receipt() {
    let mut transport = base();
    transport.header.push_str("X-Trasporto: posta-certificata\r\n");
    assert_eq!(read(&transport.raw()), None);
    let Some(PecMail::Transport(envelope)) = inspect(&transport.raw()) else {
        panic!("a transport envelope")
    };
    assert_eq!(envelope.reference.as_deref(), Some(&*format!("{UID}@cliente.example")));
    let anomaly = b"X-Trasporto: errore\r\nFrom: x@y.example\r\n\r\ntext";
    assert!(matches!(inspect(anomaly), Some(PecMail::Anomaly(_))));
    assert_eq!(read(anomaly), None);
}

#[test]
fn a_forwarded_receipt_is_not_a_receipt() {
    let inner = String::from_utf8(base().raw()).unwrap();
    let forward = format!("From: a@b.example\r\nContent-Type: message/rfc822\r\n\r\n{inner}");
    assert_eq!(inspect(forward.as_bytes()), None);
    assert_eq!(inspect(b"Subject: X-Ricevuta: accettazione\r\n\r\nX-Ricevuta: accettazione"), None);
    assert_eq!(inspect(b"X-Ricevuta:\r\n\r\n"), None);
}

#[test]
fn a_daticert_inside_the_original_is_never_used() {
    let nested = String::from_utf8(sample("avvenuta-consegna", "altro", "").raw()).unwrap();
    let nested = nested.replace("--m", "--n").replace("\"m\"", "\"n\"");
    let without = Sample { daticert: None, original: Some(nested.clone()), ..base() };
    let read = receipt(&without);
    assert_eq!(read.daticert, DaticertState::Absent);
    assert_eq!((read.sender, read.error), (None, None));
    assert_eq!(read.subject.as_deref(), Some("RICEVUTA: Bolletta"));
    assert_eq!(read.postway_uid.map(|uid| uid.to_string()).as_deref(), Some(UID));
    let with = Sample { original: Some(nested), ..base() };
    assert_eq!(receipt(&with).error.as_deref(), Some("nessuno"));
}

#[test]
fn the_reference_comes_from_daticert_where_the_header_has_none() {
    let read = receipt(&Sample { header: String::new(), file_name: "CertData.XML", ..base() });
    assert_eq!(read.postway_uid.map(|uid| uid.to_string()).as_deref(), Some(UID));
    assert!(read.is_confirmed());
}

#[test]
fn a_reference_of_somebody_else_has_no_uid() {
    for id in
        ["<opec1.2@pec.gestore.example>", "<018f2f6e7c1a7b3c9d4e5f60718293a4@x.example>", "<@>", "plain"]
    {
        let read = receipt(&Sample { header: format!("X-Riferimento-Message-ID: {id}\r\n"), ..base() });
        assert_eq!(read.postway_uid, None, "{id}");
        assert_eq!(read.contradictions, [ReceiptContradiction::Reference]);
    }
}

#[test]
fn a_header_before_the_body_of_another_receipt_is_not_confirmed() {
    let swapped = Sample { kind: "avvenuta-consegna", ..base() };
    let read = receipt(&swapped);
    assert_eq!(read.kind, ReceiptKind::Delivered);
    assert_eq!(read.contradictions, [ReceiptContradiction::Kind]);
    assert!(!read.is_confirmed());
}

#[test]
fn latin_1_is_read() {
    let text = daticert("accettazione", "nessuno", "<errore-esteso>gi\u{e0}</errore-esteso>")
        .replace("UTF-8", "ISO-8859-1");
    let bytes: Vec<u8> = text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    let read = receipt(&Sample { daticert: Some(bytes), ..base() });
    assert_eq!(read.error_text.as_deref(), Some("gi\u{e0}"));
}

#[test]
fn line_endings_do_not_matter() {
    let text = String::from_utf8(sample("errore-consegna", "no-dest", "").raw()).unwrap();
    let expected = read(text.as_bytes()).unwrap();
    assert_eq!(read(text.replace("\r\n", "\n").as_bytes()).unwrap(), expected);
    assert_eq!(read(text.replace("\r\n", "\r").as_bytes()).unwrap(), expected);
}

#[test]
fn a_moment_without_a_zone_is_not_known() {
    for (from, to) in
        [("+0200", ""), ("+0200", "CEST"), ("08/08/2026", "31/02/2026"), ("00:30:12", "25:00:00")]
    {
        let text = daticert("accettazione", "nessuno", "").replace(from, to);
        assert_eq!(receipt(&Sample { daticert: Some(text.into_bytes()), ..base() }).at, None, "{to}");
    }
    let text = daticert("accettazione", "nessuno", "").replace("+0200", "-01:30");
    let read = receipt(&Sample { daticert: Some(text.into_bytes()), ..base() });
    assert_eq!(read.at.unwrap().to_string(), "2026-08-08T02:00:12.000Z");
}
