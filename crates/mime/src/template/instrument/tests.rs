use super::*;

#[test]
fn whatever_can_grow_is_wrapped() {
    for (written, compiled) in [
        ("{{ a ~ b ~ c }}", "{{ (a ~ b ~ c)|_within }}"),
        ("{{ 1+1+1+1+1+1+1+1+1+1 }}", "{{ ((1+1+1+1+1+1+1+1+1)|_within+1)|_within }}"),
        ("{{ (a ~ b) ~ c }}", "{{ ((a ~ b) ~ c)|_within }}"),
        ("{{ (a) * (b + 1) * c }}", "{{ _times(_times((a) , ((b + 1)|_within)) , c) }}"),
        ("{{ [a, b|upper][0] }}", "{{ ([a, b|_read |upper|_within]|_within)[0] }}"),
        ("{{ a|round * 2 }}", "{{ _times(a|_read |round , 2) }}"),
        ("{{ (a)  |  e }}", "{{ (a)  |_read |  e|_within }}"),
        (
            "{% filter upper|trim %}x{% endfilter %}",
            "{% filter upper|_within|_read |trim|_within %}x{% endfilter %}",
        ),
        ("{% set x = (a, b) %}", "{% set x = ((a, b)|_within) %}"),
        ("{% for a, b in x if a ~ b %}{% endfor %}", "{% for a, b in x if (a ~ b)|_within %}{% endfor %}"),
        ("{{ '*' * 3 }}", "{{ _times('*' , 3) }}"),
        ("{{ {'a': b} }}", "{{ ({'a': b}|_within) }}"),
        ("{{ a.b[1:2][0].c }}", "{{ (a.b[1:2]|_within)[0].c }}"),
        ("{{ a[1:][2:] }}", "{{ ((a[1:]|_within)[2:]|_within) }}"),
        ("{{ loop.changed(a, 1) }}", "{{ loop.changed(a|_read, 1) }}"),
        ("{{ a is not string }}", "{{ a |_read is not string }}"),
        ("{{ a == (b) and a not in b.c }}", "{{ a == (b)|_read and a not in b.c|_read }}"),
        (
            "{{ a.b - 1 if a is defined and a + 1 > 2 else [1, 2] }}",
            "{{ a.b - 1 if a |_read is defined and (a + 1)|_within > 2 else [1, 2] }}",
        ),
    ] {
        assert_eq!(instrument(written).unwrap().source, compiled, "{written}");
    }
}

#[test]
fn long_text_is_cut_without_changing_it() {
    let text = format!("{}{}", "word { % # ".repeat(100), "a".repeat(3_000));
    let cut = instrument(&format!("{{% if a -%}}\n  {text}  {{%- endif %}}")).unwrap().source;
    assert!(cut.matches("{##}").count() >= 6);
    assert_eq!(cut.replace("{##}", ""), format!("{{% if a -%}}\n  {text}  {{%- endif %}}"));
    assert!(instrument(&" ".repeat(10_000)).is_err());
}

#[test]
fn a_computed_name_is_refused() {
    for source in ["{% include name %}", "\n{% extends 'a' ~ b %}", "{% import [a] as b %}"] {
        let fault = instrument(source).unwrap_err();
        assert!(fault.message.contains("is computed"), "{}", fault.message);
    }
}
