use serde_json::{Map, json};

use super::*;

fn mjml(body: &str) -> TemplateSource {
    let mjml = format!("<mjml><mj-body>{body}</mj-body></mjml>");
    TemplateSource { html: None, mjml: Some(mjml), ..source("m", "") }
}

#[test]
fn mjml_becomes_clean_html_and_text() {
    let body = "<mj-section><mj-column><mj-text>Hello {{ name }}<br>there</mj-text>\
                <mj-button href=\"https://a.example\">Go</mj-button></mj-column></mj-section>";
    let set = TemplateSet::new([mjml(body)]).unwrap();
    let rendered = set.render("m", &variables(json!({"name": "<b>"}))).unwrap();
    let html = rendered.html.unwrap();
    assert!(html.contains("Hello &lt;b&gt;") && !html.contains("fonts.googleapis"), "{html}");
    assert_eq!(crate::html::check(&html), Ok(()));
    let text = rendered.text.unwrap();
    assert!(text.contains("Hello <b>\nthere") && text.contains("Go (https://a.example)"), "{text}");
}

#[test]
fn bad_mjml_is_reported() {
    for (body, kind) in [
        ("<mj-nosuch/>".to_owned(), ReportKind::Mjml),
        ("<mj-section>".to_owned(), ReportKind::Mjml),
        ("<mj-include path=\"/etc/passwd\" />".to_owned(), ReportKind::Mjml),
        ("<mj-wrapper>".repeat(10_000), ReportKind::TooDeep),
        ("<mj-raw>".to_owned() + &"<x:br>".repeat(10_000), ReportKind::TooDeep),
        ("<mj-raw>".to_owned() + &"<p></p>".repeat(20_000), ReportKind::TooLarge),
    ] {
        let error = TemplateSet::new([mjml(&body)]).unwrap().render("m", &Map::new()).unwrap_err();
        assert_eq!(error.kind, kind, "{body:.40}: {error}");
    }
}

#[test]
fn deep_mjml_that_is_allowed_fits_the_stack() {
    let levels = 40;
    let body = format!("<mj-raw>{}x{}</mj-raw>", "<div>".repeat(levels), "</div>".repeat(levels));
    assert!(TemplateSet::new([mjml(&body)]).unwrap().render("m", &Map::new()).is_ok());
}
