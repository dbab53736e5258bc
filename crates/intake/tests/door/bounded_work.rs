//! The work of the door is bounded by sizes: text and html of the greatest size, of the kinds that are worst
//! for a parser, are checked, composed and signed in seconds. Work that is not linear would take minutes or
//! hours here.

use std::time::{Duration, Instant};

use postway_domain::{TenantSettings, tenant::ContentLimits};
use postway_intake::IntakeLimits;
use serde_json::json;

use crate::{GatewayPlan, message};

/// For one message, on a slow and busy machine, without optimization.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest html that is checked at all.
const HTML_BYTES: usize = 4 * 1024 * 1024;
const TEXT_BYTES: usize = 6 * 1024 * 1024;

fn filled(part: &str, bytes: usize) -> String {
    part.repeat(bytes / part.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_text_and_html_of_the_greatest_size_are_dealt_with_in_seconds() {
    let content = ContentLimits { html_bytes: Some(HTML_BYTES as u32), ..ContentLimits::default() };
    let settings = TenantSettings { content, ..TenantSettings::default() };
    let gateway =
        GatewayPlan { limits: IntakeLimits::default(), settings, ..GatewayPlan::default() }.build().await;
    let texts = ["\n", "\r", ".\r\n", "é", "x", " ", "=?utf-8?q?x?= ", "From \n"]
        .map(|part| ("text", filled(part, TEXT_BYTES)));
    let htmls = [
        "<",
        "<!--",
        "<a href=",
        "<a x='",
        "&amp",
        "<b>",
        "<svg><script",
        "<table><tr><td rowspan=2>",
        "<p>x</p>",
    ]
    .map(|part| ("html", filled(part, HTML_BYTES)));
    for (field, body) in texts.into_iter().chain(htmls) {
        let start: String = body.chars().take(20).collect();
        let request = message(json!({ field: body }));
        let began = Instant::now();
        // Accepted or refused, there must be an answer.
        let _ = gateway.send(&request).await;
        assert!(began.elapsed() < PATIENCE, "{field} of {start:?} took {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_the_largest_html_is_made_in_seconds() {
    let content = ContentLimits { html_bytes: Some(HTML_BYTES as u32), ..ContentLimits::default() };
    let settings = TenantSettings { content, ..TenantSettings::default() };
    let gateway =
        GatewayPlan { limits: IntakeLimits::default(), settings, ..GatewayPlan::default() }.build().await;
    for part in ["<p>x</p>", "<a href=https://a.example/>y</a> ", "<p style=display:none>z</p>"] {
        let request = message(json!({"html": filled(part, 1024 * 1024), "text": null, "auto_text": true}));
        let began = Instant::now();
        let _ = gateway.send(&request).await;
        assert!(began.elapsed() < PATIENCE, "{part:?} took {:?}", began.elapsed());
    }
}
