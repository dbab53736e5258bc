//! Each step alone.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use postway_domain::{DkimAlgorithm, NamedAddress};
use postway_mime::{
    MailAttachment, MailDraft, compose, dkim, html,
    template::{TemplateSet, TemplateSource},
};
use serde_json::json;

const TEXT: &str = "Dear Ada,\n\nyour order has left our house this morning and will be with you soon.\n";

fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort();
    times[runs / 2]
}

fn print_line(what: &str, aim: &str, took: Duration) {
    println!("{what:<44} {:>10.1} µs   {aim}", took.as_secs_f64() * 1e6);
}

pub fn print() -> anyhow::Result<()> {
    let [text, page] = [TEXT.repeat(12), page()];
    let from: NamedAddress = "Shop <shop@example.com>".parse()?;
    let to: [NamedAddress; 1] = ["Ada <ada@example.net>".parse()?];
    let draft = |attachments: &[MailAttachment]| {
        let composed = compose(&MailDraft {
            from: &from,
            sender: None,
            to: &to,
            cc: &[],
            reply_to: &[],
            subject: "Your order",
            text: Some(&text),
            html: Some(&page),
            alternatives: &[],
            headers: &[],
            attachments,
            message_id: "0199c0de-0000-7000-8000-000000000000@example.com",
            uid: "0199c0de-0000-7000-8000-000000000000",
            date_unix: 1_763_000_000,
        });
        composed.map(|composed| composed.bytes)
    };
    let mail = draft(&[])?;
    println!("a mail of {} bytes: {} of text, {} of html\n", mail.len(), text.len(), page.len());
    print_line("compose text and html", "aim: 50", median(20_000, || drop(black_box(draft(&[])))));
    let file = |bytes: usize| MailAttachment {
        filename: "a.pdf".to_owned(),
        content_type: "application/pdf".to_owned(),
        content: (0..bytes).map(|index| (index * 31) as u8).collect(),
        content_id: None,
        inline: false,
    };
    let megabyte = [file(1024 * 1024)];
    print_line(
        "compose with 1 MiB attached",
        "aim: 10,000",
        median(200, || drop(black_box(draft(&megabyte)))),
    );
    print_line("check the html", "", median(20_000, || drop(black_box(html::check(black_box(&page))))));
    let entity = page.replace("Hello", "&#72;ello");
    print_line("check html that must be parsed", "", median(5_000, || drop(black_box(html::check(&entity)))));

    let set = TemplateSet::new([TemplateSource {
        name: "order".to_owned(),
        subject: "Order {{ number }}".to_owned(),
        html: Some(page.replace("Hello", "Hello {{ name }}")),
        text: Some(text.replace("Ada", "{{ name }}")),
        mjml: None,
        layout: None,
    }])?;
    let variables = json!({ "name": "Ada", "number": 7 });
    let variables = variables.as_object().context("an object")?;
    print_line("render a template", "", median(5_000, || drop(black_box(set.render("order", variables)))));

    for algorithm in [DkimAlgorithm::Rsa, DkimAlgorithm::Ed25519] {
        let key = dkim::generate(algorithm)?;
        let private = secrecy::ExposeSecret::expose_secret(&key.private_pkcs8);
        let signer = dkim::DkimSigner::new("example.com", "bench", algorithm, private)?;
        let took = median(1_000, || drop(black_box(signer.sign(&mail, 1_763_000_000))));
        print_line(&format!("sign with {}", algorithm.as_str()), "", took);
    }
    Ok(())
}

/// About a kilobyte of html as applications send it.
fn page() -> String {
    let rows =
        "<tr><td style=\"padding:4px\">Item</td><td align=\"right\">12.00 &euro;</td></tr>\n".repeat(8);
    format!(
        "<!doctype html><html><body><p>Hello,</p><table>{rows}</table>\
         <p><a href=\"https://shop.example.com/orders/7?a=1&amp;b=2\">Your order</a></p></body></html>"
    )
}
