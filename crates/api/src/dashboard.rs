//! The page at `/`: files that are part of the binary. All it shows and does goes through the same `/v1/…` that programs use,
//! signed in by a cookie (`session.rs`).
//!
//! Nothing is fetched from elsewhere, and the policy says so: scripts, styles and connections are this server's own. A file is
//! asked for again with its digest (`ETag`), so a new version of the binary is a new page at once.

use std::{collections::BTreeMap, sync::LazyLock};

use aws_lc_rs::digest;
use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{error::ApiError, path::InPath};

/// What the page may load, and where it may be shown.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Every file, by its path under `/assets/`.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../asset/", $path)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "api.js",
    "app.css",
    "app.js",
    "index.html",
    "route.js",
    "page/account.js",
    "page/accounts.js",
    "page/audit.js",
    "page/batches.js",
    "page/contacts.js",
    "page/dead_letters.js",
    "page/inbound.js",
    "page/inbound_mail.js",
    "page/inbox.js",
    "page/mailboxes.js",
    "page/message.js",
    "page/messages.js",
    "page/nodes.js",
    "page/outbox.js",
    "page/overview.js",
    "page/recipients.js",
    "page/rules.js",
    "page/send.js",
    "page/signing_keys.js",
    "page/suppressions.js",
    "page/template.js",
    "page/templates.js",
    "page/tenant.js",
    "page/tenants.js",
    "page/webhook.js",
    "page/webhooks.js",
    "part/account_fields.js",
    "part/badge.js",
    "part/bulk.js",
    "part/button.js",
    "part/chart.js",
    "part/conduct.js",
    "part/dialog.js",
    "part/filters.js",
    "part/first_mail.js",
    "part/form.js",
    "part/frame.js",
    "part/icon.js",
    "part/load.js",
    "part/mail.js",
    "part/message_acts.js",
    "part/resource.js",
    "part/spelling.js",
    "part/steps.js",
    "part/table.js",
    "part/tabs.js",
    "part/time.js",
    "part/timeline.js",
    "part/toast.js",
    "part/unsaved.js",
    "part/webhook_fields.js",
    "vendor/preact.js",
    "vendor/uplot.css",
    "vendor/uplot.js",
];

/// A file as it is served.
struct Asset {
    bytes: &'static [u8],
    kind: &'static str,
    tag: HeaderValue,
}

static ASSETS: LazyLock<BTreeMap<&'static str, Asset>> = LazyLock::new(|| {
    FILES
        .iter()
        .filter_map(|&(path, bytes)| {
            let digest = BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, bytes));
            let tag = HeaderValue::from_str(&format!("\"{}\"", &digest[..22])).ok()?;
            Some((path, Asset { bytes, kind: kind(path), tag }))
        })
        .collect()
});

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The page. Every path of it is the same document: what it shows is written behind the `#`.
pub(crate) async fn home(headers: HeaderMap) -> Result<Response, ApiError> {
    serve("index.html", &headers)
}

/// A part of the page.
pub(crate) async fn asset(InPath(path): InPath<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    serve(&path, &headers)
}

fn serve(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let asset = ASSETS.get(path).ok_or_else(|| ApiError::not_found("there is no such part of the page"))?;
    let common = [
        (header::ETAG, asset.tag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag == asset.tag);
    Ok(match known {
        true => (StatusCode::NOT_MODIFIED, common).into_response(),
        false => (common, [(header::CONTENT_TYPE, asset.kind)], asset.bytes).into_response(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uncompressed, with the chart library.
    const FIRST_PAINT_BYTES_MAX: usize = 200_000;

    #[test]
    fn whichever_view_is_the_first_is_small() {
        let is_view = |path: &str| path.starts_with("page/");
        let size = |(_, bytes): &(&str, &[u8])| bytes.len();
        let shared: usize = FILES.iter().filter(|(path, _)| !is_view(path)).map(size).sum();
        // The others are read when they are gone to.
        let view = FILES.iter().filter(|(path, _)| is_view(path)).map(size).max().unwrap_or_default();
        assert!(shared + view < FIRST_PAINT_BYTES_MAX, "{shared} and {view} bytes");
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("asset");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                assert!(FILES.iter().any(|(served, _)| *served == name), "{name} is not in the list");
            }
        }
    }

    #[test]
    fn a_part_that_the_browser_has_is_not_sent_again() {
        let first = serve("index.html", &HeaderMap::new()).unwrap();
        let tag = first.headers()[header::ETAG].clone();
        let again = serve("index.html", &HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)])).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(serve("../Cargo.toml", &HeaderMap::new()).is_err());
    }
}
