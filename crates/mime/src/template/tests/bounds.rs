//! What templates cannot do, and what they still can.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn loops_run_out_of_steps() {
    let nested = "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
    assert_eq!(fails(nested, json!({})).kind, ReportKind::TooLong);
}

#[test]
fn growth_is_stopped_whatever_its_way() {
    let doubled = |step: &str| format!("{{% set x = 'ab' %}}{}{{{{ x|length }}}}", step.repeat(40));
    for template in [
        doubled("{% set x = x ~ x %}"),
        doubled("{% set x = x + x %}"),
        doubled("{% set x = [x, x] %}") + "{{ x ~ '' }}",
        doubled("{% set x = {'a': x, 'b': x} %}") + "{{ x }}",
        doubled("{% set x = (x, x) %}"),
        doubled("{% set x = dict(a=x, b=x) %}"),
        doubled("{% set x %}{{ x }}{{ x }}{% endset %}"),
        doubled("{% set x = x|replace('', x) %}"),
        doubled("{% set x = [x, x, x]|join(x) %}"),
        doubled("{% set x = x|list|chain(x|list)|join %}"),
        "{% macro m(x, n) %}{% if n %}{{ m(x ~ x ~ x ~ x ~ x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('ab' ~ 'cd', 40) }}".into(),
        "{% set x %}{% for a in range(9000) %}".to_owned() + &"text ".repeat(2_000) + "{% endfor %}{% endset %}",
        "{% filter upper %}{% for a in range(9000) %}{{ big }}{% endfor %}{% endfilter %}".into(),
        "{% for a in range(9000) %}{{ big }}{% endfor %}".into(),
        "{{ range(1000000) }}".into(),
        "{{ 'a\n'|indent(1000000000) }}".into(),
        "{{ [1]|batch(1000000000, 2) }}".into(),
        "{{ [1]|slice(1000000000)|list }}".into(),
        "{% for a in range(9000) %}{% if 'y' in big %}{% endif %}{% endfor %}".into(),
        "{% for a in range(9000) %}{% if big == big ~ 'x' %}{% endif %}{% endfor %}".into(),
        "{% for a in range(9000) %}{% if big|title is lower %}{% endif %}{% endfor %}".into(),
        "{% for a in range(9000) %}{% if big[1:] %}{% endif %}{% endfor %}".into(),
        "{% for a in range(9000) %}{% if big|length %}{% endif %}{% endfor %}".into(),
        "{{ range(9000)|select('in', range(9000))|list }}".into(),
        "{{ range(9000)|zip(range(9000), range(9000), range(9000), range(9000), range(9000), range(9000)) }}".into(),
    ] {
        let error = fails(&template, json!({"big": "x".repeat(100_000)}));
        assert!(matches!(error.kind, ReportKind::TooLarge | ReportKind::TooLong | ReportKind::TooDeep), "{template:.80}: {error}");
    }
    assert_eq!(fails("{{ 'x' * 1000000000 }}", json!({})).kind, ReportKind::Value);
    assert_eq!(fails("{{ [1] * 1000000000 }}", json!({})).kind, ReportKind::Value);
    assert_eq!(fails("{{ [[1], [2]]|map('chain', big) }}", json!({"big": [1]})).kind, ReportKind::Value);
    assert_eq!(fails("x", json!({"big": "x".repeat(9_000_000)})).kind, ReportKind::TooLarge);
}

#[test]
fn depth_is_stopped_whatever_its_way() {
    let chains =
        ["1+", "1*", "1~", "not ", "-", "a.b.", "a|upper|", "a[0]", "1 if 1 else ", "(", "[", "1 and "];
    for link in chains {
        let error = source("t", &format!("{{{{ {}1 }}}}", link.repeat(5_000))).check().unwrap_err();
        assert!(matches!(error.kind, ReportKind::TooDeep | ReportKind::Syntax), "{link}: {error}");
    }
    for source_text in [
        format!("{}{}", "{% if 1 %}".repeat(5_000), "{% endif %}".repeat(5_000)),
        format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(5_000)),
    ] {
        assert!(source("t", &source_text).check().is_err());
    }
    let nested = format!("{{% set x = 1 %}}{}{{{{ x }}}}", "{% set x = [x] %}".repeat(5_000));
    assert_eq!(fails(&nested, json!({})).kind, ReportKind::TooDeep);
    let lazy = format!("{{% set x = [1, 2] %}}{}{{{{ x }}}}", "{% set x = x|reverse %}".repeat(5_000));
    assert_eq!(html(&lazy, json!({})).unwrap(), "[1, 2]");
    let slices = format!("{{% set x = [1, 2] %}}{}{{{{ x }}}}", "{% set x = x[0:] %}".repeat(5_000));
    assert_eq!(html(&slices, json!({})).unwrap(), "[1, 2]");
    let endless = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert_eq!(fails(endless, json!({})).kind, ReportKind::TooDeep);
    assert_eq!(fails("{% block a %}{{ self.a() }}{% endblock %}", json!({})).kind, ReportKind::TooDeep);
    let tree = "{% for a in x recursive %}{{ loop(x) }}{% endfor %}";
    assert_eq!(fails(tree, json!({"x": [1]})).kind, ReportKind::TooDeep);
}

#[test]
fn what_is_allowed_is_deep_enough_for_people() {
    let operators = format!("{{{{ {}1 }}}}", "1 + ".repeat(150));
    assert_eq!(html(&operators, json!({})).unwrap(), "151");
    let mut blocks = "x".to_owned();
    for _ in 0..40 {
        blocks = format!("{{% if 1 %}}{{% for a in [1] %}}{blocks}{{% endfor %}}{{% endif %}}");
    }
    assert_eq!(html(&blocks, json!({})).unwrap(), "x");
    let rows = "<table>{% for row in rows %}<tr><td>{{ row.name }}<td>{{ row.price|money('EUR') }}</tr>{% endfor %}</table>";
    let given: Vec<_> = (0..2_000).map(|n| json!({"name": format!("Item {n}"), "price": n})).collect();
    assert!(html(rows, json!({"rows": given})).unwrap().len() > 60_000);
    let mut dictionary = String::from("{% set t = {");
    (0..500).for_each(|n| dictionary += &format!("'key{n}': 'word' ~ a.b|upper, "));
    assert_eq!(html(&(dictionary + "} %}{{ t.key7 }}"), json!({"a": {"b": "x"}})).unwrap(), "wordX");
}

#[test]
fn long_templates_come_out_unchanged() {
    let text = "Lorem ipsum {dolor} % sit # amet.\n".repeat(3_000);
    assert_eq!(html(&format!("{{% if 1 -%}} {text} {{%- endif %}}"), json!({})).unwrap(), text.trim());
    let raw = "{{ raw }} and {% more %} 是中文 ".repeat(500);
    assert_eq!(html(&format!("{{% raw %}}{raw}{{% endraw -%}} "), json!({})).unwrap(), raw);
}

#[test]
fn arithmetic_is_as_before() {
    assert_eq!(
        html("{{ 2 * 3 + 4 }} {{ 1.5 * 2 }} {{ 'a' + 'b' ~ 1 }} {{ [1] + [2] }}", json!({})).unwrap(),
        "10 3.0 ab1 [1, 2]"
    );
    assert_eq!(html("{{ (a|length) * 2 }}{{ -a[0] * 2 }}", json!({"a": [5]})).unwrap(), "2-10");
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "2.5",
        "'x*|y'",
        "n",
        "s",
        "list",
        "user.name",
        "true",
        "none",
        "list[0]",
        "s[1:]",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
        let operators = prop::sample::select(vec![
            "+", "-", "~", "*", "==", "<", "in", "and", "or", "//", "not in", "!=",
        ]);
        let tails = prop::sample::select(vec![
            "|upper",
            "|length",
            " is string",
            " is not none",
            "|default(1)|string",
            "|list",
            "|first",
        ]);
        prop_oneof![
            (inner.clone(), operators, inner.clone())
                .prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
            (inner.clone(), tails).prop_map(|(a, tail)| format!("({a}){tail}")),
            inner.clone().prop_map(|a| format!("({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// The rewritten template renders like the original, except for the multiplication of texts.
    #[test]
    fn instrumenting_changes_no_result(expression in expression()) {
        let written = format!("{{{{ {expression} }}}}");
        let given = json!({"n": 3, "s": "abc", "list": [1, 2], "user": {"name": "Ada"}});
        let mut plain = minijinja::Environment::new();
        plain.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        plain.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
        let expected = plain.render_str(&written, minijinja::value::Serde(&given));
        match (html(&written, given), expected) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
            (Err(error), Ok(_)) => prop_assert!(error.message.contains("only numbers can be multiplied"), "{}", error),
            (Ok(ours), Err(error)) => prop_assert!(false, "gave {} and not {}", ours, error),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn no_source_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(vec![
        "{{", "}}", "{%", "%}", "{#", "#}", "-%}", "{%-", " if ", " for ", " in ", " endfor ", " endif ", " else ", " set ",
        "=", "a", "b.c", "1", "'x'", "\"", "|", "upper", "+", "*", "~", "(", ")", "[", "]", ":", ",", "{", "}", " is ",
        " not ", "raw", "endraw", "\n", "é", " include ", " macro ", "text",
    ]), 0..40)) {
        let template = source("t", &pieces.concat());
        if template.check().is_ok()
            && let Ok(set) = TemplateSet::new([template])
        {
            drop(set.render("t", &variables(json!({"a": 1, "b": {"c": "x"}}))));
        }
    }
}
