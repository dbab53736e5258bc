use proptest::prelude::*;

use super::*;

fn kinds(html: &str) -> Vec<HtmlFaultKind> {
    check(html).err().unwrap_or_default().into_iter().map(|fault| fault.kind).collect()
}

#[test]
fn ordinary_mail_is_clean() {
    let html = "<!doctype html><html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\">\
                <style>p { color: red }</style></head><body><p title='on time'>Only once, online &amp; on&nbsp;time. \
                <a href=\"https://example.com/?a=1&b=2\">Description</a><img src=cid:logo alt=\"\"></p></body></html>";
    assert_eq!(check(html), Ok(()));
    assert_eq!(check_parsed(html), Ok(()));
}

#[test]
fn script_elements_are_found_wherever_they_hide() {
    for html in [
        "<script>alert(1)</script>",
        "<SCRIPT src=x>",
        "<svg><script>1</script></svg>",
        "<math><annotation-xml><script>",
        "<template><div><script></script></div></template>",
        "<table><script></script></table>",
        "<select><script></script></select>",
        "<noscript><script></script></noscript>",
        "<title><!--</title><script>--></script>",
    ] {
        assert_eq!(kinds(html), [HtmlFaultKind::Script], "{html}");
    }
}

#[test]
fn json_ld_is_data_and_passes() {
    for html in [
        r#"<script type="application/ld+json">{"@context":"http://schema.org","price":"a < b"}</script><p>x</p>"#,
        "<head><SCRIPT TYPE='Application/LD+JSON' id=order class=x data-n=1>\n[1, {\"a\": \"&lt;script>\"}]\n</SCRIPT></head>",
        "<table><script type=application/ld+json>{}</script></table>",
        "<svg><foreignObject><div><script type=application/ld+json>{}</script></div></foreignObject></svg>",
        r#"<script type="application/ld+json">{"a":"\u003cscript>"}</script>"#,
    ] {
        assert_eq!(check(html), Ok(()), "{html}");
        assert!(!to_text(html).unwrap().contains('{'), "{html}");
    }
}

#[test]
fn what_only_looks_like_json_ld_is_refused() {
    let data = "{\"a\":1}";
    for html in [
        format!("<script type='application/ld+json;x'>{data}</script>"),
        format!("<script type='application/ld+json '>{data}</script>"),
        format!("<script type='application/ld+json\0'>{data}</script>"),
        format!("<script type='application/ld+json' src=x>{data}</script>"),
        format!("<script type='application/ld+json' async>{data}</script>"),
        format!("<script type='application/ld+json' language=javascript>{data}</script>"),
        format!("<script type='application/ld+json' type='text/javascript'>{data}</script>"),
        format!("<script type='text/javascript' type='application/ld+json'>{data}</script>"),
        format!("<script type='module'>{data}</script>"),
        format!("<script type>{data}</script>"),
        format!("<script data-type='application/ld+json'>{data}</script>"),
        format!("<script type='application/ld&plus;jso'>{data}</script>"),
        format!("<script type='application/ld+json'/>{data}</script>"),
        format!("<svg><script type='application/ld+json'>{data}</script></svg>"),
        format!("<svg><title><script type='application/ld+json'>{data}</script></title></svg>"),
        format!("<math><mi><script type='application/ld+json'>{data}</script></mi></math>"),
    ] {
        assert_eq!(kinds(&html), [HtmlFaultKind::Script], "{html}");
    }
    for html in [
        format!("<script type='application/ld+json'>{data}"),
        "<script type='application/ld+json'></script>".to_owned(),
        "<script type='application/ld+json'>alert(1)</script>".to_owned(),
        "<script type='application/ld+json'>1</script>".to_owned(),
        format!("<script type='application/ld+json'>{data};alert(1)</script>"),
        "<script type='application/ld+json'>{\"a\":\"<img src=x onerror=alert(1)>\"}</script>".to_owned(),
        "<script type='application/ld+json'>{\"a\":\"<!--<script>\"}</script>".to_owned(),
        format!("<frameset><script type='application/ld+json'>{data}<frame></script></frameset>"),
        format!("<script type='application/ld+json'>{}</script>", "[".repeat(100_000)),
    ] {
        assert_eq!(kinds(&html), [HtmlFaultKind::Data], "{html:.90}");
    }
    // As in a browser, an entity is decoded in a type, but not in the content.
    assert_eq!(check("<script type='application/ld&#43;json'>{}</script>"), Ok(()));
    assert_eq!(kinds("<script type='application/ld+json'>&#123;}</script>"), [HtmlFaultKind::Data]);
    // It ends where a browser sees its end, and the rest is checked.
    let ended = format!("<script type='application/ld+json'>{data}</script><img src=x onerror=y>");
    assert_eq!(kinds(&ended), [HtmlFaultKind::EventHandler]);
    let early = "<script type='application/ld+json'>{\"a\":\"</script><script>alert(1)</script>\"}";
    assert_eq!(kinds(early), [HtmlFaultKind::Data, HtmlFaultKind::Script]);
    let within = format!("<script type='application/ld+json' onload=x>{data}</script>");
    assert_eq!(kinds(&within), [HtmlFaultKind::Script, HtmlFaultKind::EventHandler]);
}

#[test]
fn words_that_begin_as_handlers_do_pass_and_no_handler_is_among_them() {
    for html in ["<p online='yes'>", "<p ONLINE=yes>", "<ul only=1><li once=x one=y onsite=z>"] {
        assert_eq!(check(html), Ok(()), "{html}");
    }
    for name in
        ["ononline", "onlines", "online2", "on-line", "onl\u{131}ne", "onone", "ontoggle", "onx", "on\0click"]
    {
        assert_eq!(kinds(&format!("<p {name}=x>")), [HtmlFaultKind::EventHandler], "{name:?}");
    }
    assert_eq!(kinds("<p online=javascript:x>"), [HtmlFaultKind::ScriptUrl]);
}

#[test]
fn script_that_is_only_text_is_no_fault() {
    for html in [
        "<p>&lt;script&gt;</p>",
        "<!-- <script>alert(1)</script> -->",
        "<title><script></title>",
        "<p>Read our description of javascript: the good parts</p>",
        "<img alt='javascript:x'>",
        "<a href='https://example.com/javascript:x'>x</a>",
    ] {
        assert_eq!(check(html), Ok(()), "{html}");
    }
}

#[test]
fn script_urls_are_found_however_they_are_written() {
    for html in [
        "<a href=javascript:alert(1)>x</a>",
        "<a href='&#106;avascript:x'>x</a>",
        "<a href='java&#x0A;script:x'>x</a>",
        "<a href='java&Tab;script&colon;x'>x</a>",
        "<a href='java\tscr\nipt:x'>x</a>",
        "<a href=' \u{1} JaVaScRiPt:x'>x</a>",
        "<img src=vbscript:x>",
        "<form action='javascript:x'><button formaction=javascript:y>",
        "<svg><a xlink:href='javascript:x'><animate attributeName=href to=javascript:y>",
        "<table background=javascript:x>",
        "<video poster=javascript:x>",
        "<img srcset='a.png 1x, javascript:x 2x'>",
        "<object data=data:text/html;base64,x>",
        "<a href='data: text/html,x'>x</a>",
        "<embed src=data:image/svg+xml,x>",
        "<meta http-equiv=refresh content='0; url=javascript:x'>",
        "<base href=javascript:x>",
    ] {
        assert!(kinds(html).contains(&HtmlFaultKind::ScriptUrl), "{html}: {:?}", kinds(html));
    }
}

#[test]
fn images_in_data_urls_are_allowed() {
    assert_eq!(check("<img src='data:image/png;base64,AAAA'><img src='data:image/svg+xml,x'>"), Ok(()));
}

#[test]
fn event_handlers_are_found_even_on_tags_without_a_place() {
    for html in [
        "<p onclick=x>",
        "<P ONCLICK = 'x'>",
        "<body><body onload=x>",
        "<img/onerror=x src=y>",
        "<img src=\"y\"onerror=x>",
        "<svg onload=x>",
        "<p><frame onload=x>",
        "<noscript><p title='</noscript><img src=x onerror=y>'></noscript>",
    ] {
        assert!(kinds(html).contains(&HtmlFaultKind::EventHandler), "{html}: {:?}", kinds(html));
    }
    assert_eq!(check("<p onclick>on a = b</p><p title=\"a onclick=b\">"), Ok(()));
}

#[test]
fn a_document_in_an_attribute_is_refused() {
    assert_eq!(kinds("<iframe srcdoc='<p>hi'></iframe>"), [HtmlFaultKind::EmbeddedDocument]);
}

#[test]
fn faults_say_what_to_remove_and_quote_no_value() {
    let faults = check("<script></script><a href=javascript:secret onclick=secret>x</a>").unwrap_err();
    let reported: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        [
            "contains a <script> element: remove it",
            "contains a script URL, javascript: in href of <a>: remove it",
            "contains an event handler, onclick of <a>: remove it",
        ]
    );
}

#[test]
fn only_a_few_of_many_faults_are_reported() {
    let html: String = (0..1_000).map(|n| format!("<x{n} onclick=a>")).collect();
    assert!(check(&html).unwrap_err().len() <= 17);
}

#[test]
fn ten_thousand_levels_end_in_a_fault() {
    for open in
        ["<div>", "<b>", "<b x=1><div>", "<template>", "<svg>", "<table><td>", "<blockquote><a>", "<select>"]
    {
        let html = open.repeat(10_000);
        let found = kinds(&html);
        let stacked = open != "<select>" && open != "<blockquote><a>";
        assert!(!stacked || found == [HtmlFaultKind::TooDeep], "{open}: {found:?}");
        assert!(to_text(&html).is_err() || !stacked, "{open}");
    }
}

#[test]
fn elements_a_browser_would_add_are_counted() {
    let formatting: String = (0..300).map(|n| format!("<b n={n}>")).collect();
    let html = format!("<p>{formatting}{}", "</p><p>x".repeat(20_000));
    assert_eq!(kinds(&html), [HtmlFaultKind::TooManyElements]);
}

#[test]
fn a_tag_with_endless_attributes_ends_in_a_fault() {
    let attributes: String = (0..100_000).map(|n| format!(" a{n}")).collect();
    let hidden: String = (0..100_000).map(|n| format!(" <a{n}")).collect();
    for html in [
        format!("<p{attributes}>"),
        format!("<p ={attributes}>"),
        format!("<!-- <p q=\" --><p{attributes}>"),
        format!("&amp<p{hidden}>"),
        format!("<style><p q=\"</style><p{hidden}>"),
    ] {
        assert_eq!(kinds(&html), [HtmlFaultKind::TooManyAttributes], "{}", &html[..30]);
    }
}

#[test]
fn text_reads_like_a_mail() {
    let html = "<html><head><title>T</title><style>x</style></head><body><h1>Hello Ada</h1>\
        <p>Welcome to <b>Acme</b>. <a href='https://a.example/x'>Confirm</a> or visit \
        <a href='https://a.example'>https://a.example</a> or write to <a href='mailto:a@b.example'>a@b.example</a>.</p>\
        <ul><li>one<li>two</ul><table><tr><th>Item<th>Price<tr><td>Book<td>12.00</table><img src=x alt=Logo></body></html>";
    assert_eq!(
        to_text(html).unwrap(),
        "Hello Ada\n\nWelcome to Acme. Confirm (https://a.example/x) or visit https://a.example or write to\n\
         a@b.example.\n* one\n* two\n\nItem Price\nBook 12.00\nLogo\n"
    );
}

#[test]
fn text_has_nothing_that_a_reader_does_not_see() {
    let html = "<head><title>T</title><style>p{color:red}</style></head><body>\
        <div style='display:none;font-size:1px'>Your order is here &zwnj;&nbsp;&#847;&zwnj;&nbsp;</div>\
        <span hidden>x</span><div style=\"max-height:0;overflow:hidden\">pad&#8203;</div>\
        <script type='application/ld+json'>{\"a\":1}</script><!-- note -->\
        <div class=preheader>Seen&nbsp;&zwnj;&nbsp;&zwnj;</div>\
        <table style='font-size:0'><tr><td style='font-size:14px'>Total</td></tr></table></body>";
    assert_eq!(to_text(html).unwrap(), "Seen\n\nTotal\n");
    assert_eq!(to_text("<p style='display:none'>x</p>").unwrap().trim(), "");
}

#[test]
fn text_of_a_newsletter_reads_like_one() {
    let text = to_text(
        r#"<!doctype html><html><head><style>p{color:red}</style><title>Not shown</title></head><body>
        <div style="display:none;max-height:0">Preview in the inbox&nbsp;&zwnj;&nbsp;&zwnj;</div>
        <!--[if mso]><table><tr><td><![endif]-->
        <table role="presentation" width="600" align="center"><tr><td>
          <a href="https://example.com/"><img src="logo.png" alt="Acme"></a>
          <h1>November at Acme</h1>
          <p>Dear Ada, these are <b>three</b> things that we made for you this month, and the first of them is a mug.</p>
          <table><tr><th>Item</th><th>Price</th></tr>
            <tr><td>Blue mug</td><td>12.50</td></tr><tr><td>Red tray</td><td>7.00</td></tr></table>
          <table><tr><td bgcolor="green"><a href="https://example.com/shop?a=1&amp;b=2">Shop now</a></td></tr></table>
          <ul><li>Free shipping</li><li>Until <i>Friday</i></li></ul>
          <p>See <a href="https://example.com/">https://example.com/</a> or <a href="mailto:shop@example.com">write</a>.</p>
          <img src="https://example.com/pixel.gif" width="1" height="1" alt="">
        </td></tr><tr><td><p>Acme Ltd, 1 Road. <a href="%unsubscribe_url%">Unsubscribe</a></p></td></tr></table>
        </body></html>"#,
    )
    .unwrap();
    for part in [
        "November at Acme",
        "Acme (https://example.com/)",
        "Shop now (https://example.com/shop?a=1&b=2)",
        "* Free shipping",
        "See https://example.com/ or write",
        "Unsubscribe (%unsubscribe_url%)",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let row = text.lines().find(|line| line.contains("Blue mug")).unwrap();
    assert!(row.contains("12.50"), "a row of a table is a line: {text}");
    for hidden in ["Preview in the inbox", "color:red", "Not shown", "mso", "pixel"] {
        assert!(!text.contains(hidden), "{hidden}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 78 || line.contains("://")), "{text}");
    assert!(!text.contains("\n\n\n"), "{text}");
}

#[test]
fn text_of_absurd_tables_is_refused() {
    let rows = "<tr><td rowspan=999>a</td></tr>".repeat(1_000);
    for html in
        ["<table><tr><td colspan=18446744073709551615>a</table>".to_owned(), format!("<table>{rows}</table>")]
    {
        assert!(matches!(to_text(&html), Err(HtmlTextError::TooMuch(_))), "{}", &html[..40]);
    }
}

fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<",
        ">",
        "/",
        "=",
        "\"",
        "'",
        " ",
        "\t",
        "\n",
        "&",
        ";",
        ":",
        "&#106;",
        "&#x3a;",
        "&Tab;",
        "&colon;",
        "&NewLine;",
        "java",
        "script",
        "scr",
        "ipt",
        "javascript:",
        "vbscript:",
        "data:",
        "text/html",
        "srcdoc",
        "on",
        "onclick",
        "ON",
        "click",
        "a",
        "p",
        "b",
        "table",
        "td",
        "svg",
        "math",
        "template",
        "style",
        "title",
        "textarea",
        "select",
        "iframe",
        "noscript",
        "href",
        "src",
        "xlink:href",
        "<a ",
        "<p>",
        "</p>",
        "<svg>",
        "</svg>",
        "<b>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "</style>",
        "\0",
        "\u{c}",
        "\u{1}",
        "é",
        "content",
        "<meta http-equiv=refresh content=",
        "0;url=",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_clean_look_means_a_clean_parse(html in soup()) {
        if prefilter::is_certainly_clean(&html) {
            prop_assert_eq!(check_parsed(&html), Ok(()));
        }
    }

    #[test]
    fn inlined_styles_never_panic_through_and_add_no_script(html in soup(), css in "[a-z .#>~+:()\\[\\]{};@,*\"'/\\\\-]{0,80}") {
        let page = format!("<style>p{{color:red}} {css}</style>{html}");
        if let Ok(inlined) = inline_css(&page) {
            prop_assert!(check(&page).is_err() || check(&inlined).is_ok(), "{}", inlined);
        }
    }

    #[test]
    fn text_never_panics_through(html in soup()) {
        if let Ok(text) = to_text(&html) {
            prop_assert!(!text.contains("\n\n\n"));
        }
    }
}

#[test]
fn few_tags_pass_the_fast_look_only_where_the_parser_agrees_on_depth() {
    for open in ["<b>", "<table><td>", "<div>", "<template>", "<b n=1><div>"] {
        for count in [10, 80, 159, 170, 400] {
            let html = open.repeat(count);
            assert!(!prefilter::is_certainly_clean(&html) || check_parsed(&html).is_ok(), "{count} {open}");
        }
    }
}
