use serde_json::json;

use super::*;

#[test]
fn dates_are_shown_as_asked() {
    let given = json!({"at": "2024-03-31T23:30:00-05:00", "seconds": 1_714_557_000});
    for (template, shown) in [
        ("{{ at|date }}", "2024-03-31"),
        ("{{ at|datetime }}", "2024-03-31 23:30"),
        ("{{ at|date('%d.%m.%Y', 'Europe/Rome') }}", "01.04.2024"),
        ("{{ at|datetime(tz='Europe/Rome') }}", "2024-04-01 06:30"),
        ("{{ at|date(format='%A, %B %-d') }}", "Sunday, March 31"),
        ("{{ seconds|datetime('%Y-%m-%dT%H:%M:%S%:z') }}", "2024-05-01T09:50:00+00:00"),
        ("{{ '2024-02-29'|date('%-d %b') }}", "29 Feb"),
    ] {
        assert_eq!(html(template, given.clone()).unwrap(), shown, "{template}");
    }
    for template in ["{{ 'soon'|date }}", "{{ at|date('%!') }}", "{{ at|date(tz='Mars') }}", "{{ [1]|date }}"]
    {
        assert_eq!(fails(template, given.clone()).kind, ReportKind::Value, "{template}");
    }
}

#[test]
fn money_is_exact_and_in_the_readers_form() {
    for (template, shown) in [
        ("{{ 1234567.5|money('EUR') }}", "€1,234,567.50"),
        ("{{ '1.005'|money('USD') }}", "$1.01"),
        ("{{ 1.005|money('USD') }}", "$1.01"),
        ("{{ -1234|money('EUR', 'de') }}", "-1.234,00\u{a0}€"),
        ("{{ 1234|money('EUR', 'es') }} {{ 12345|money('EUR', 'es') }}", "1234,00\u{a0}€ 12.345,00\u{a0}€"),
        ("{{ 1234.5|money('EUR', locale='fr-FR') }}", "1\u{202f}234,50\u{a0}€"),
        (
            "{{ 1234.5|money('CHF') }} {{ 1234.5|money('CHF', 'it_IT') }}",
            "CHF\u{a0}1,234.50 1.234,50\u{a0}CHF",
        ),
        ("{{ 1234.5|money('JPY') }} {{ 1|money('KWD') }}", "¥1,235 KWD\u{a0}1.000"),
        (
            "{{ 1234567.891|number }} {{ 1234.5|number(2, 'de') }} {{ 0.125|number(decimals=2) }}",
            "1,234,567.891 1.234,50 0.13",
        ),
        ("{{ 9007199254740993|number }}", "9,007,199,254,740,993"),
    ] {
        assert_eq!(html(template, json!({})).unwrap(), shown, "{template}");
    }
    for template in [
        "{{ 'x'|money('EUR') }}",
        "{{ 1|money }}",
        "{{ 1|money('eur') }}",
        "{{ 1|money('EUR', 'xx') }}",
        "{{ 1e30|number }}",
    ] {
        assert_eq!(fails(template, json!({})).kind, ReportKind::Value, "{template}");
    }
}
