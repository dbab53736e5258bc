//! The dashboard at `/`: files that are part of the binary. Everything it shows and does goes through the
//! same `/v1/…` API that programs use, signed in by a cookie (`auth/session/`).
//!
//! Nothing is fetched from elsewhere, and the policy enforces that: scripts, styles and connections are this
//! server's own. The document names the other files in a folder that is called by the digest of them all: a
//! browser caches its files permanently, and a new version of the binary is a new folder, so a new page at
//! once. The files are compressed once, for browsers that support it.

use std::{collections::BTreeMap, sync::LazyLock};

use aws_lc_rs::digest;
use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;

use crate::http::{error::ApiError, path::PathText};

/// The folder of the other files.
const FOLDER: &str = "/assets/";
/// The placeholder for links to everything that each view needs, so that it is requested at once.
const PRELOAD: &str = "<!-- preload -->";
/// A high level, because each file is compressed once.
const COMPRESSION_LEVEL: i32 = 17;

/// The content security policy of the dashboard.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Every file, by its path under `/assets/`.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../asset/", $path)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "api.js",
    "app.css",
    "app.js",
    "favicon.svg",
    "index.html",
    "route.js",
    "page/account.js",
    "page/accounts.js",
    "page/audit.js",
    "page/batches.js",
    "page/bulk_actions.js",
    "page/contacts.js",
    "page/dead_letters.js",
    "page/domains.js",
    "page/door.js",
    "page/inbound.js",
    "page/inbound_mail.js",
    "page/inbox.js",
    "page/mailbox.js",
    "page/mailboxes.js",
    "page/message.js",
    "page/messages.js",
    "page/nodes.js",
    "page/outbox.js",
    "page/overview.js",
    "page/passkeys.js",
    "page/recipients.js",
    "page/routes.js",
    "page/rules.js",
    "page/send.js",
    "page/sessions.js",
    "page/signing_keys.js",
    "page/streams.js",
    "page/suppressions.js",
    "page/template.js",
    "page/templates.js",
    "page/tenant.js",
    "page/tenants.js",
    "page/users.js",
    "page/webhook.js",
    "page/webhooks.js",
    "part/account_fields.js",
    "part/badge.js",
    "part/bulk.js",
    "part/button.js",
    "part/chart.js",
    "part/conduct.js",
    "part/controls.js",
    "part/dialog.js",
    "part/filters.js",
    "part/first_mail.js",
    "part/form.js",
    "part/frame.js",
    "part/hook.js",
    "part/icon.js",
    "part/keyboard.js",
    "part/last_hour.js",
    "part/load.js",
    "part/mail.js",
    "part/mail_checks.js",
    "part/message_acts.js",
    "part/passkey.js",
    "part/past.js",
    "part/resource.js",
    "part/rule_rows.js",
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
struct WebAsset {
    bytes: Bytes,
    /// The compressed bytes, if they are smaller.
    packed: Option<Bytes>,
    kind: &'static str,
    tag: HeaderValue,
}

impl WebAsset {
    fn new(path: &str, bytes: Bytes) -> Option<Self> {
        let packed =
            zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).ok().filter(|packed| packed.len() < bytes.len());
        let tag = HeaderValue::from_str(&format!("\"{}\"", digest_of(&[&bytes]))).ok()?;
        Some(Self { packed: packed.map(Bytes::from), kind: kind(path), tag, bytes })
    }
}

/// A short digest of these bytes.
fn digest_of(parts: &[&[u8]]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut text = BASE64_URL_SAFE_NO_PAD.encode(context.finish());
    text.truncate(22);
    text
}

/// The name of the folder: the digest of all files.
static VERSION: LazyLock<String> =
    LazyLock::new(|| digest_of(&FILES.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>()));

static ASSETS: LazyLock<BTreeMap<&'static str, WebAsset>> = LazyLock::new(|| {
    let asset = |&(path, bytes): &(&'static str, &'static [u8])| {
        let bytes = if path == "index.html" { document(bytes) } else { Bytes::from_static(bytes) };
        Some((path, WebAsset::new(path, bytes)?))
    };
    FILES.iter().filter_map(asset).collect()
});

/// The document, with its files in the folder of this version.
fn document(source: &[u8]) -> Bytes {
    let is_shared = |path: &str| path.starts_with("part/") || path == "route.js";
    let shared = FILES.iter().map(|(path, _)| *path).filter(|path| is_shared(path));
    let preload: String =
        shared.map(|path| format!("<link rel=\"modulepreload\" href=\"{FOLDER}{path}\">\n")).collect();
    let text = String::from_utf8_lossy(source).replace(PRELOAD, preload.trim_end());
    text.replace(FOLDER, &format!("{FOLDER}{}/", *VERSION)).into()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// The dashboard. Every view is the same document: the view is named behind the `#`.
pub(crate) async fn home(headers: HeaderMap) -> Result<Response, ApiError> {
    serve("index.html", &headers)
}

/// A file of the dashboard.
pub(crate) async fn asset(
    PathText(path): PathText<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    serve(&path, &headers)
}

fn serve(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let in_version = path.strip_prefix(VERSION.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let asset = ASSETS
        .get(in_version.unwrap_or(path))
        .ok_or_else(|| ApiError::not_found("there is no such part of the page; read the page anew"))?;
    let keep = match in_version {
        Some(_) => "public, max-age=31536000, immutable",
        None => "no-cache",
    };
    let common = [
        (header::ETAG, asset.tag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static(keep)),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag == asset.tag) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    let kind = [(header::CONTENT_TYPE, asset.kind)];
    Ok(match asset.packed.as_ref().filter(|_| reads_zstd(headers)) {
        Some(packed) => (common, kind, [(header::CONTENT_ENCODING, "zstd")], packed.clone()).into_response(),
        None => (common, kind, asset.bytes.clone()).into_response(),
    })
}

/// Whether the browser accepts zstd.
fn reads_zstd(headers: &HeaderMap) -> bool {
    let offered = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = offered.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("zstd")
            && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size as transferred, with the chart library.
    const FIRST_PAINT_BYTES_MAX: usize = 100_000;

    #[test]
    fn whichever_view_is_the_first_is_small() {
        let is_view = |path: &str| path.starts_with("page/");
        let size =
            |(path, _): &(&str, &[u8])| ASSETS[path].packed.as_ref().unwrap_or(&ASSETS[path].bytes).len();
        let shared: usize = FILES.iter().filter(|(path, _)| !is_view(path)).map(size).sum();
        // The other views are loaded when they are opened.
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

    #[test]
    fn what_has_the_versions_name_is_kept_for_good_and_comes_compressed() {
        let path = format!("{}/app.js", *VERSION);
        let zstd = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd"))]);
        let kept = serve(&path, &zstd).unwrap();
        assert!(kept.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        assert_eq!(kept.headers()[header::CONTENT_ENCODING], "zstd");
        let plain = serve(&path, &HeaderMap::new()).unwrap();
        assert_eq!(plain.headers().get(header::CONTENT_ENCODING), None);
        let refused = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static("zstd;q=0"))]);
        assert_eq!(serve(&path, &refused).unwrap().headers().get(header::CONTENT_ENCODING), None);
        assert_eq!(serve("app.js", &zstd).unwrap().headers()[header::CACHE_CONTROL], "no-cache");
        assert!(serve("older-version/app.js", &zstd).is_err(), "another version's files are not these");
        let document = String::from_utf8_lossy(&ASSETS["index.html"].bytes);
        assert!(document.contains(&format!("/assets/{}/app.css", *VERSION)) && !document.contains(PRELOAD));
        assert!(document.contains("/part/table.js\">"), "{document}");
        let unpacked = zstd::bulk::decompress(ASSETS["app.js"].packed.as_ref().unwrap(), 1 << 20).unwrap();
        assert_eq!(unpacked, ASSETS["app.js"].bytes);
    }
}
