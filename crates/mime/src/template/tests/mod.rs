mod bounds;
mod filters;
mod mjml;
mod mustachio;

use serde_json::{Map, Value, json};

use super::*;
use TemplateErrorKind as ReportKind;

fn source(name: &str, html: &str) -> TemplateSource {
    TemplateSource {
        name: name.into(),
        subject: String::new(),
        html: Some(html.into()),
        text: None,
        mjml: None,
        layout: None,
    }
}

fn variables(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The html of a lone template.
fn html(template: &str, given: Value) -> Result<String, TemplateError> {
    let rendered = TemplateSet::new([TemplateSource { text: Some(String::new()), ..source("t", template) }])?
        .render("t", &variables(given))?;
    Ok(rendered.html.unwrap())
}

fn fails(template: &str, given: Value) -> TemplateError {
    match html(template, given) {
        Ok(html) => panic!("{template:.200} gave {html:.200}"),
        Err(error) => error,
    }
}

#[test]
fn variables_are_escaped_in_html_and_plain_in_text_and_subject() {
    let template = TemplateSource {
        subject: "Hi {{ name }} ".into(),
        text: Some("Dear {{ name }}".into()),
        ..source("welcome", "<p>{{ name }}</p>")
    };
    let set = TemplateSet::new([template]).unwrap();
    let rendered = set.render("welcome", &variables(json!({"name": "<script>&"}))).unwrap();
    assert_eq!(rendered.subject, "Hi <script>&");
    assert_eq!(rendered.html.unwrap(), "<p>&lt;script&gt;&amp;</p>");
    assert_eq!(rendered.text.unwrap(), "Dear <script>&");
}

#[test]
fn text_is_made_of_html_if_there_is_no_text_part() {
    let set = TemplateSet::new([source("t", "<h1>Hello {{ name }}</h1><p>Bye</p>")]).unwrap();
    let rendered = set.render("t", &variables(json!({"name": "Ada & Co"}))).unwrap();
    assert_eq!(rendered.text.unwrap(), "Hello Ada & Co\n\nBye\n");
}

#[test]
fn a_missing_variable_is_named_with_its_path_and_line() {
    let error = fails("<p>\n\n{{ user.name }}", json!({"user": {}}));
    assert_eq!(
        error.to_string(),
        "template t, html, line 3: variable \"user.name\" is not given: add it to the variables"
    );
    for (template, name) in [
        ("{{ who }}", "who"),
        ("{{ who.name }}", "who"),
        ("{{ a ~ who }}", "who"),
        ("{{ a + who }}", "who"),
        ("{{ 2 * who }}", "who"),
        ("{{ who|upper }}", "who"),
        ("{{ who|date }}", "who"),
        ("{{ 1|date(tz=user.tz) }}", "user.tz"),
        ("{{ user.total|money('EUR') }}", "user.total"),
        ("{{ list[7] }}", "list[7]"),
        ("{% for x in who %}{% endfor %}", "who"),
        ("{% if who %}{% endif %}", "who"),
        ("{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m(user) }}", "x.y"),
    ] {
        let error = fails(template, json!({"a": "x", "user": {}, "list": [1]}));
        assert_eq!(error.kind, ReportKind::MissingVariable, "{template}: {error}");
        assert!(error.message.contains(&format!("\"{name}\"")), "{template}: {error}");
    }
    assert_eq!(
        html("{{ who|default('you') }}{% if who is defined %}!{% endif %}", json!({})).unwrap(),
        "you"
    );
}

#[test]
fn templates_inherit_include_and_import_the_same_part() {
    let base = TemplateSource {
        subject: "[Acme] {% block subject %}{% endblock %}".into(),
        text: Some("{% block body %}{% endblock %}\n-- \nAcme".into()),
        ..source("base", "<main>{% block body %}none{% endblock %}</main>{% include \"footer\" %}")
    };
    let footer = source("footer", "<i>{{ company }}</i>");
    let macros = source("macros", "{% macro button(url) %}<a href=\"{{ url }}\">Go</a>{% endmacro %}");
    let child = TemplateSource {
        subject: "{% extends 'base' %}{% block subject %}Hi{% endblock %}".into(),
        text: Some("{% extends 'base' %}{% block body %}Hello{% endblock %}".into()),
        ..source(
            "child",
            "{% extends 'base' %}{% from 'macros' import button %}\
             {% block body %}{{ super() }} {{ button('https://x/?a&b') }}{% endblock %}",
        )
    };
    assert_eq!(Vec::from_iter(child.references().unwrap()), ["base", "macros"]);
    let set = TemplateSet::new([child, base, footer, macros]).unwrap();
    let rendered = set.render("child", &variables(json!({"company": "A<B"}))).unwrap();
    assert_eq!(rendered.subject, "[Acme] Hi");
    assert_eq!(rendered.text.unwrap(), "Hello\n-- \nAcme");
    assert_eq!(
        rendered.html.unwrap(),
        "<main>none <a href=\"https:&#x2f;&#x2f;x&#x2f;?a&amp;b\">Go</a></main><i>A&lt;B</i>"
    );
}

#[test]
fn a_layout_wraps_each_body_and_not_the_subject() {
    let base = TemplateSource {
        text: Some("{% block content %}{% endblock %}\n-- \n{{ shop }}".into()),
        ..source("base", "<main>{% block content %}{% endblock %}</main>")
    };
    let template = TemplateSource {
        subject: "Hi {{ name }}".into(),
        text: Some("Dear {{ name }}".into()),
        layout: Some("base".into()),
        ..source("t", "{% set greeting = 'Hi' %}<p>{{ greeting }} {{ name }}</p>")
    };
    assert_eq!(Vec::from_iter(template.references().unwrap()), ["base"]);
    let set = TemplateSet::new([base.clone(), template.clone()]).unwrap();
    let rendered = set.render("t", &variables(json!({"name": "Ada", "shop": "Acme"}))).unwrap();
    assert_eq!(rendered.subject, "Hi Ada");
    assert_eq!(rendered.html.unwrap(), "<main><p>Hi Ada</p></main>");
    assert_eq!(rendered.text.unwrap(), "Dear Ada\n-- \nAcme");
    let set =
        TemplateSet::new([base, TemplateSource { html: Some("\n{{ gone }}".into()), ..template }]).unwrap();
    let error = set.render("t", &variables(json!({"name": "Ada", "shop": "Acme"}))).unwrap_err();
    assert_eq!((error.template.as_str(), error.line), ("t", Some(2)));
}

#[test]
fn a_layout_that_would_lose_the_content_is_refused() {
    let template = |html: &str| TemplateSource { layout: Some("base".into()), ..source("t", html) };
    let refused = |sources: Vec<TemplateSource>| TemplateSet::new(sources).unwrap_err();
    let no_place = refused(vec![source("base", "<main></main>"), template("x")]);
    assert!(no_place.message.contains("has no place for the content"), "{no_place}");
    assert_eq!(refused(vec![template("x")]).kind, ReportKind::UnknownTemplate);
    let text_only = TemplateSource {
        text: Some("{% block content %}{% endblock %}".into()),
        html: None,
        ..source("base", "")
    };
    assert!(refused(vec![text_only, template("x")]).message.contains("has no html part"));
    assert!(template("{% extends 'base' %}").check().unwrap_err().message.contains("leave one of them out"));
    assert!(template("{% endblock %}{% block x %}").check().is_err(), "it cannot leave its block");
    assert!(TemplateSource { layout: Some("a\" %}".into()), ..source("t", "x") }.check().is_err());
    let around = TemplateSource { layout: Some("t".into()), ..source("base", "x") };
    assert_eq!(refused(vec![around, template("x")]).kind, ReportKind::Cyclic);
    let frame = source("frame", "<html>{% block content %}{% endblock %}</html>");
    let base = source("base", "{% extends 'frame' %}");
    let set = TemplateSet::new([frame, base, template("x")]).unwrap();
    assert_eq!(set.render("t", &Map::new()).unwrap().html.unwrap(), "<html>x</html>");
}

#[test]
fn errors_name_the_template_they_happened_in() {
    let set = TemplateSet::new([source("a", "{% include 'b' %}"), source("b", "\n{{ gone }}")]).unwrap();
    let error = set.render("a", &Map::new()).unwrap_err();
    assert_eq!((error.template.as_str(), error.part, error.line), ("b", Some("html"), Some(2)));
    assert_eq!(error.kind, ReportKind::MissingVariable);
}

#[test]
fn unknown_templates_and_parts_are_reported() {
    let unknown = TemplateSet::new([source("a", "\n{% include 'b' %}")]).unwrap_err();
    assert_eq!(unknown.kind, ReportKind::UnknownTemplate);
    assert_eq!(
        unknown.to_string(),
        "template a, html, line 2: template \"b\" does not exist: create it, or correct the name"
    );
    let text_only = TemplateSource { text: Some("x".into()), html: None, ..source("b", "") };
    let no_part = TemplateSet::new([source("a", "{% extends 'b' %}"), text_only]).unwrap_err();
    assert!(no_part.message.contains("has no html part"), "{no_part}");
    assert!(
        TemplateSet::new([
            source("a", "{% include 'b' ignore missing %}{% include ['c', 'a2'] %}"),
            source("a2", "x")
        ])
        .is_ok()
    );
    let set = TemplateSet::new([]).unwrap();
    assert_eq!(set.render("x", &Map::new()).unwrap_err().kind, ReportKind::UnknownTemplate);
}

#[test]
fn circles_are_found_before_anything_runs() {
    for sources in [
        vec![source("a", "{% include 'a' %}")],
        vec![source("a", "{% extends 'b' %}"), source("b", "{% extends 'a' %}")],
        vec![
            source("a", "{% include 'b' %}"),
            source("b", "{% import 'c' as c %}"),
            source("c", "{% extends 'a' %}"),
        ],
    ] {
        let error = TemplateSet::new(sources).unwrap_err();
        assert_eq!(error.kind, ReportKind::Cyclic, "{error}");
    }
    let twice = vec![
        source("a", "{% include 'c' %}{% include 'b' %}"),
        source("b", "{% include 'c' %}"),
        source("c", ""),
    ];
    assert!(TemplateSet::new(twice).is_ok());
}

#[test]
fn bad_sources_are_reported_with_their_line() {
    for (template, line) in [
        ("\n{% if %}", 2),
        ("{{ a ", 1),
        ("\n\n{{ a|nosuch }}", 3),
        ("{{ a is nosuch }}", 1),
        ("\n{{ namespace(a=1) }}", 2),
        ("{% set a = 1, 2 %}", 1),
        ("{{ a|format(1) }}", 1),
        ("{{ a is in b }}", 1),
        ("{{ dict(**a) }}{{ range(*a) }}", 1),
        ("{{ (a|list)[1:] }}", 1),
        ("\n{% include a %}", 2),
    ] {
        let error = source("t", template).check().unwrap_err();
        assert_eq!((error.kind, error.line), (ReportKind::Syntax, Some(line)), "{template}: {error}");
    }
    let both = TemplateSource { mjml: Some(String::new()), ..source("t", "") };
    let none = TemplateSource { html: None, ..source("t", "") };
    let name = source("../t", "");
    let long = source("t", &"x".repeat(BODY_BYTES_MAX + 1));
    for bad in [both, none, name, long] {
        assert!(bad.check().is_err());
    }
}

#[test]
fn a_line_break_from_a_variable_does_not_reach_the_subject() {
    let template = TemplateSource { subject: "\n Hi {{ name }} \n".into(), ..source("t", "x") };
    let set = TemplateSet::new([template]).unwrap();
    assert_eq!(set.render("t", &variables(json!({"name": "Ada"}))).unwrap().subject, "Hi Ada");
    let error = set.render("t", &variables(json!({"name": "a\r\nBcc: x@y.example"}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "template t, subject: the subject contains a line break (from a variable?): remove it"
    );
}

#[test]
fn a_set_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<TemplateSet>();
}
