//! The page's texts, in the languages that it knows.

use axum::http::{HeaderMap, header};

/// The most languages of a request that are considered.
const WANTED_MAX: usize = 20;

/// The texts of one language. `{stream}` and `{reader}` are placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageWords {
    pub(super) language: &'static str,
    pub(super) title: &'static str,
    pub(super) asked: &'static str,
    pub(super) unsubscribe: &'static str,
    pub(super) left: &'static str,
    pub(super) undo: &'static str,
    pub(super) returned: &'static str,
    pub(super) unknown: &'static str,
}

/// Every language, the default first.
pub(super) static LANGUAGES: [PageWords; 9] = [
    PageWords {
        language: "en",
        title: "Unsubscribe",
        asked: "Do you want to stop receiving “{stream}” at {reader}?",
        unsubscribe: "Unsubscribe",
        left: "{reader} will receive no more mail of “{stream}”.",
        undo: "Undo",
        returned: "{reader} receives “{stream}” again.",
        unknown: "This link is not valid. Check that it is complete.",
    },
    PageWords {
        language: "de",
        title: "Abmelden",
        asked: "Möchten Sie „{stream}“ an {reader} nicht mehr erhalten?",
        unsubscribe: "Abmelden",
        left: "{reader} erhält keine weiteren E-Mails von „{stream}“.",
        undo: "Rückgängig machen",
        returned: "{reader} erhält „{stream}“ wieder.",
        unknown: "Dieser Link ist ungültig. Bitte prüfen Sie, ob er vollständig ist.",
    },
    PageWords {
        language: "fr",
        title: "Se désabonner",
        asked: "Voulez-vous ne plus recevoir « {stream} » à l’adresse {reader} ?",
        unsubscribe: "Se désabonner",
        left: "{reader} ne recevra plus de messages de « {stream} ».",
        undo: "Annuler",
        returned: "{reader} reçoit de nouveau « {stream} ».",
        unknown: "Ce lien n’est pas valide. Vérifiez qu’il est complet.",
    },
    PageWords {
        language: "es",
        title: "Darse de baja",
        asked: "¿Quiere dejar de recibir «{stream}» en {reader}?",
        unsubscribe: "Darse de baja",
        left: "{reader} no recibirá más mensajes de «{stream}».",
        undo: "Deshacer",
        returned: "{reader} vuelve a recibir «{stream}».",
        unknown: "Este enlace no es válido. Compruebe que esté completo.",
    },
    PageWords {
        language: "it",
        title: "Annulla l’iscrizione",
        asked: "Vuole smettere di ricevere «{stream}» all’indirizzo {reader}?",
        unsubscribe: "Annulla l’iscrizione",
        left: "{reader} non riceverà più messaggi di «{stream}».",
        undo: "Ripristina",
        returned: "{reader} riceve di nuovo «{stream}».",
        unknown: "Questo link non è valido. Verifichi che sia completo.",
    },
    PageWords {
        language: "pt",
        title: "Cancelar subscrição",
        asked: "Quer deixar de receber “{stream}” em {reader}?",
        unsubscribe: "Cancelar subscrição",
        left: "{reader} não receberá mais mensagens de “{stream}”.",
        undo: "Desfazer",
        returned: "{reader} volta a receber “{stream}”.",
        unknown: "Esta ligação não é válida. Verifique se está completa.",
    },
    PageWords {
        language: "nl",
        title: "Uitschrijven",
        asked: "Wilt u “{stream}” niet meer ontvangen op {reader}?",
        unsubscribe: "Uitschrijven",
        left: "{reader} ontvangt geen berichten van “{stream}” meer.",
        undo: "Ongedaan maken",
        returned: "{reader} ontvangt “{stream}” weer.",
        unknown: "Deze link is niet geldig. Controleer of hij volledig is.",
    },
    PageWords {
        language: "pl",
        title: "Rezygnacja z subskrypcji",
        asked: "Czy chcesz przestać otrzymywać „{stream}” na adres {reader}?",
        unsubscribe: "Zrezygnuj",
        left: "{reader} nie będzie już otrzymywać wiadomości „{stream}”.",
        undo: "Cofnij",
        returned: "{reader} znowu otrzymuje „{stream}”.",
        unknown: "Ten link jest nieprawidłowy. Sprawdź, czy jest kompletny.",
    },
    PageWords {
        language: "sv",
        title: "Avsluta prenumerationen",
        asked: "Vill du sluta få ”{stream}” till {reader}?",
        unsubscribe: "Avsluta prenumerationen",
        left: "{reader} får inga fler utskick från ”{stream}”.",
        undo: "Ångra",
        returned: "{reader} får ”{stream}” igen.",
        unknown: "Länken är inte giltig. Kontrollera att den är fullständig.",
    },
];

/// The texts in the language that a request prefers, by its `Accept-Language` (RFC 9110, 12.5.4).
pub(super) fn for_request(headers: &HeaderMap) -> &'static PageWords {
    let wanted =
        headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best: Option<(f32, &PageWords)> = None;
    for entry in wanted.split(',').take(WANTED_MAX) {
        let (range, weight) = entry.split_once(';').unwrap_or((entry, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |text| text.parse::<f32>().ok());
        let primary = range.trim().split('-').next().unwrap_or_default();
        let known = LANGUAGES.iter().find(|words| words.language.eq_ignore_ascii_case(primary));
        if let (Some(words), Some(weight)) = (known, weight.filter(|weight| *weight > 0.0))
            && best.is_none_or(|(most, _)| weight > most)
        {
            best = Some((weight, words));
        }
    }
    best.map_or(&LANGUAGES[0], |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_best_known_language_is_chosen() {
        let language = |wanted: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_str(wanted).unwrap());
            for_request(&headers).language
        };
        assert_eq!(language("de-CH, fr;q=0.9"), "de");
        assert_eq!(language("ja, it;q=0.5, PL;q=0.8"), "pl");
        assert_eq!(language("fr;q=0, sv;q=0.1"), "sv");
        assert_eq!(language("xx;q=nonsense"), "en");
        assert_eq!(language(&"ja,".repeat(10_000)), "en");
        assert_eq!(for_request(&HeaderMap::new()).language, "en");
    }

    #[test]
    fn every_sentence_names_what_it_is_about() {
        for words in &LANGUAGES {
            for sentence in [words.asked, words.left, words.returned] {
                assert!(sentence.contains("{stream}") && sentence.contains("{reader}"), "{sentence}");
            }
        }
    }
}
