//! Templates in Mustachio render as they do at Postmark.

use super::*;

const HEAD: &str = "{#mustachio#}";

fn in_mustachio(html: &str) -> TemplateSource {
    TemplateSource { subject: HEAD.into(), text: Some("-".into()), ..source("t", html) }
}

fn shown(template: &str, model: Value) -> String {
    let set =
        TemplateSet::new([in_mustachio(template)]).unwrap_or_else(|error| panic!("{template}: {error}"));
    let rendered = set.render("t", &variables(model));
    rendered.unwrap_or_else(|error| panic!("{template}: {error}")).html.unwrap()
}

#[test]
fn values_and_sections_are_those_of_mustachio() {
    let model = json!({
        "name": "<Ada>", "n": 7, "zero": 0, "none": null, "empty": "", "yes": true, "list": ["a", "b"], "nil": [],
        "company": {"name": "Acme", "ceo": {"last": "Byron", "products": [{"name": "X"}, {"name": "Y"}]}},
    });
    for (template, expected) in [
        ("Hi {{ name }} {{{name}}} {{& name }}", "Hi &lt;Ada&gt; <Ada> <Ada>"),
        ("{{n}}{{yes}}[{{missing}}{{none}}{{a.b.c}}{{name.b}}]", "7True[]"),
        ("[{{list}}{{company}}{{{list}}}]", "[]"),
        ("{{#company}}{{name}} {{ceo.last}} {{../n}}{{/company}}", "Acme Byron 7"),
        ("{{#company.ceo}}{{last}} {{../name}} {{../../n}}{{/company.ceo}}", "Byron Acme 7"),
        (
            "{{#zero}}x{{/zero}}{{#none}}x{{/none}}{{#empty}}x{{/empty}}{{#nil}}x{{/nil}}{{#missing}}x{{/missing}}",
            "",
        ),
        ("{{^zero}}a{{/zero}}{{^missing}}b{{../n}}{{/missing}}{{^yes}}x{{/yes}}", "ab7"),
        ("{{#yes}}y{{^yes}}n{{/yes}} {{#zero}}y{{^zero}}n{{/zero}}", "y n"),
        ("{{#each list}}<{{.}}>{{/each}}", "<a><b>"),
        ("{{#list}}some: {{#each .}}{{.}}{{/each}}{{/list}}", "some: ab"),
        (
            "{{#each company.ceo.products}}{{name}} {{../../last}} {{../../../name}} {{../../../../n}};{{/each}}",
            "X Byron Acme 7;Y Byron Acme 7;",
        ),
        ("{{#each nil}}x{{/each}}{{#each missing}}x{{/each}}", ""),
        ("{{../../n}}{{! a comment }}{{ ../n }}", "77"),
        ("{{range}}{{#dict}}x{{/dict}}", ""),
    ] {
        assert_eq!(shown(template, model.clone()), expected, "{template}");
    }
}

#[test]
fn text_and_subject_are_not_escaped() {
    let template = TemplateSource {
        subject: format!("{HEAD}Hi {{{{name}}}}"),
        text: Some("Dear {{name}} & {{{name}}}".into()),
        ..source("t", "{{name}}")
    };
    let rendered =
        TemplateSet::new([template]).unwrap().render("t", &variables(json!({"name": "<A>"}))).unwrap();
    assert_eq!((rendered.subject.as_str(), rendered.text.as_deref()), ("Hi <A>", Some("Dear <A> & <A>")));
}

#[test]
fn our_own_language_is_text_in_mustachio() {
    for text in [
        "{% set x = 1 %}{# gone #} {%raw%}",
        "a{b} {c{d {",
        "p{#x{color:red}}@media{.a{b:c}}",
        "{{}} {{ {{",
        "}} %} #} -}}",
    ] {
        assert_eq!(shown(text, json!({})), text);
    }
    assert_eq!(shown("{{{a}} {{{{a}}}} {{#b}}{{{/b}}", json!({"a": "x", "b": 1})), "{x {x} {");
    // Values of variables are never parsed.
    assert_eq!(shown("{{{a}}}", json!({"a": "{{ n }}{% x %}"})), "{{ n }}{% x %}");
    for bad in [
        "{{ a|upper }}",
        "{{ a() }}",
        "{{ a[0] }}",
        "{{ 'a' }}",
        "{{ a\" }}",
        "{{ a b }}",
        "{{ a/b }}",
        "{{ .a }}",
    ] {
        let error = in_mustachio(bad).check().unwrap_err();
        assert_eq!(error.kind, ReportKind::Syntax, "{bad}: {error}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (bad, said) in [
        ("a\nb {{#x}}", "{{#x}} is opened and not closed"),
        ("a\n{{/x}}", "line 2: nothing is open here"),
        ("{{#a}}\n{{#each b}}\n{{/a}}", "line 3: {{#each b}} is open here"),
        ("{{#each}}{{/each}}", "line 1: {{#each}} needs the name of a list"),
        ("{{> part }}", "partials are not available"),
        ("{{=<% %>=}}", "other delimiters are not available"),
        ("{{{ @content }}}", "is for layouts"),
    ] {
        let error = in_mustachio(bad).check().unwrap_err().to_string();
        assert!(error.contains(said), "{bad}: {error}");
    }
    let set = TemplateSet::new([in_mustachio("{{#each a}}{{/each}}")]).unwrap();
    let error = set.render("t", &variables(json!({"a": {"b": 1}}))).unwrap_err().to_string();
    assert!(error.contains("is for lists"), "{error}");
}

#[test]
fn a_layout_has_one_place_for_the_template() {
    let head = |head: MustachioHead| head.to_string();
    let layout = |html: &str| TemplateSource {
        subject: head(MustachioHead { is_layout: true, ..MustachioHead::default() }),
        text: Some("{{{ @content }}}\n-- {{ shop }}".into()),
        ..source("base", html)
    };
    let inner = TemplateSource {
        subject: head(MustachioHead { layout: Some("base".into()), id: Some(7), ..MustachioHead::default() })
            + "Hi {{name}}",
        text: Some("Dear {{name}}".into()),
        ..source("t", "<p>{{name}}</p>{{#each items}}{{.}}{{/each}}")
    };
    assert_eq!(inner.references().unwrap().into_iter().collect::<Vec<_>>(), ["base"]);
    let set = TemplateSet::new([layout("<b>{{shop}}</b>{{{@content}}}<hr>"), inner]).unwrap();
    let model = json!({"shop": "S&Co", "name": "Ada", "items": [1, 2]});
    let rendered = set.render("t", &variables(model)).unwrap();
    assert_eq!(rendered.subject, "Hi Ada");
    assert_eq!(rendered.html.unwrap(), "<b>S&amp;Co</b><p>Ada</p>12<hr>");
    assert_eq!(rendered.text.unwrap(), "Dear Ada\n-- S&Co");
    for bad in ["none", "{{{@content}}}{{{@content}}}"] {
        let error = layout(bad).check().unwrap_err().to_string();
        assert!(error.contains("The layout content placeholder must be present"), "{error}");
    }
}

#[test]
fn a_head_reads_back_and_another_comment_is_not_a_head() {
    let heads = [
        MustachioHead::default(),
        MustachioHead { id: Some(12), layout: Some("a-b".into()), ..MustachioHead::default() },
        MustachioHead { is_layout: true, stands_for: Some("x.y".into()), ..MustachioHead::default() },
    ];
    for head in heads {
        let subject = format!("{head}Hi #}}");
        assert_eq!(MustachioHead::split(&subject), Some((head, "Hi #}")));
    }
    for other in [
        "Hi",
        "{# mustachio #}",
        "{#mustachios#}",
        "{#mustachio x=1#}",
        "{#mustachio layout=a\"b#}",
        "{#mustachio id=1",
    ] {
        assert_eq!(MustachioHead::split(other), None, "{other}");
    }
    let stands_for =
        TemplateSource { subject: "{#mustachio stands_for=welcome#}".into(), html: None, ..source("7", "") };
    assert!(stands_for.check().unwrap_err().to_string().contains("only stands for the template welcome"));
}

#[test]
fn what_is_written_in_mustachio_is_bounded_as_everything_is() {
    let deep = "{{#a}}".repeat(40) + &"{{/a}}".repeat(40);
    let long = format!("{{{{{}}}}}", vec!["a"; 40].join("."));
    for bad in [
        deep.replace("{{#a}}{{#a}}", "{{#a}}{{#b}}"),
        "{{#each a}}".repeat(33),
        long,
        "{{a}}".repeat(100_000),
    ] {
        assert!(in_mustachio(&bad).check().is_err(), "{bad:.60}");
    }
    let list: Vec<_> = (0..1_000).collect();
    let nested = "{{#each a}}{{#each ../../a}}{{#each ../../../../a}}{{.}}{{/each}}{{/each}}{{/each}}";
    let set = TemplateSet::new([in_mustachio(nested)]).unwrap();
    let error = set.render("t", &variables(json!({"a": list}))).unwrap_err();
    assert!(matches!(error.kind, ReportKind::TooLong | ReportKind::TooLarge), "{error}");
}
