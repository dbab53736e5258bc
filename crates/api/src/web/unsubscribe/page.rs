//! The page that a reader sees: plain, without script, and loading nothing.

use axum::{
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::words::PageWords;

/// The state that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// The reader is asked for confirmation.
    Asked,
    /// The reader has unsubscribed.
    Left,
    /// The reader has resubscribed.
    Returned,
    /// The link is unknown.
    Unknown,
}

/// A page to show.
pub(super) struct ReaderPage<'a> {
    pub(super) state: ReaderState,
    /// The stream's name.
    pub(super) stream: &'a str,
    /// The reader's address.
    pub(super) reader: &'a str,
}

impl ReaderPage<'_> {
    /// Renders the page in this language.
    pub(super) fn respond(&self, status: StatusCode, words: &PageWords) -> Response {
        let headers: [(HeaderName, &str); 8] = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_LANGUAGE, words.language),
            (header::VARY, "Accept-Language"),
            // Names come from the tenant: they must not run as script, and the page must not be framed.
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            ),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // The link is a permission, so it must not leak through the Referer header or a search engine.
            (header::REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
            (header::CACHE_CONTROL, "private, no-store"),
        ];
        (status, headers, self.html(words)).into_response()
    }

    fn html(&self, words: &PageWords) -> String {
        let (sentence, button) = match self.state {
            ReaderState::Asked => (words.asked, Some(("unsubscribe", words.unsubscribe))),
            ReaderState::Left => (words.left, Some(("undo", words.undo))),
            ReaderState::Returned => (words.returned, Some(("unsubscribe", words.unsubscribe))),
            ReaderState::Unknown => (words.unknown, None),
        };
        let sentence = sentence
            .replace("{stream}", &escaped(self.stream))
            .replace("{reader}", &escaped(&masked(self.reader)));
        let form = button.map_or_else(String::new, |(name, label)| {
            format!(
                "<form method=\"post\"><button type=\"submit\" name=\"{name}\" value=\"1\">{label}</button></form>"
            )
        });
        format!(
            "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title></head>\
             <body><main><h1>{}</h1><p>{sentence}</p>{form}</main></body></html>",
            words.language, words.title, words.title
        )
    }
}

/// The address, recognisable to its owner only.
fn masked(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => {
            let first: String = local.chars().take(1).collect();
            format!("{first}…@{domain}")
        }
        None => String::new(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '{' => out.push_str("&#123;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::unsubscribe::words::LANGUAGES;

    #[test]
    fn names_cannot_break_out_of_the_page_and_the_address_is_masked() {
        for words in &LANGUAGES {
            for state in [ReaderState::Asked, ReaderState::Left, ReaderState::Returned, ReaderState::Unknown]
            {
                let page =
                    ReaderPage { state, stream: "<script>{reader}\"'&", reader: "ada.lovelace@example.net" };
                let html = page.html(words);
                assert!(!html.contains("<script>") && !html.contains("lovelace"), "{html}");
                assert!(!html.contains("{stream}") && !html.contains("{reader}"), "{html}");
                if state != ReaderState::Unknown {
                    assert!(html.contains("&lt;script&gt;&#123;reader}"), "{html}");
                    assert!(
                        html.contains("a…@example.net") && html.contains("<form method=\"post\">"),
                        "{html}"
                    );
                }
            }
        }
    }
}
