//! Renders the page. All text comes from the OpenAPI document and is escaped.

use serde_json::Value;

use super::schema;
use crate::http::body::OCTETS;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const BASE: &str = "http://127.0.0.1:8520";

/// One call of the API.
struct DocumentedCall<'a> {
    method: &'static str,
    path: &'a str,
    operation: &'a Value,
}

impl DocumentedCall<'_> {
    fn anchor(&self) -> String {
        let path: String =
            self.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("{}{path}", self.method)
    }

    fn needs_key(&self) -> bool {
        !self
            .operation
            .get("security")
            .and_then(Value::as_array)
            .is_some_and(|ways| ways.iter().any(|way| way.as_object().is_some_and(|way| way.is_empty())))
    }

    /// The request body's media type and its description. Plain octets are skipped if there is another type.
    fn body(&self) -> Option<(&str, &Value)> {
        let content = self.operation.pointer("/requestBody/content")?.as_object()?;
        let (kind, content) = content.iter().find(|(kind, _)| *kind != OCTETS).or(content.iter().next())?;
        Some((kind.as_str(), content))
    }
}

/// The complete page.
pub(super) fn page(document: &Value) -> String {
    let calls = calls(document);
    let empty = Vec::new();
    let tags = document.get("tags").and_then(Value::as_array).unwrap_or(&empty);
    let mut nav = String::new();
    let mut main = String::new();
    for tag in tags {
        let name = text(tag, "name");
        let of_tag: Vec<&DocumentedCall<'_>> = calls.iter().filter(|call| has_tag(call, name)).collect();
        let links: String = of_tag.iter().map(|call| nav_link(call)).collect();
        nav += &format!("<h2>{}</h2><ul>{links}</ul>", escape(name));
        let articles: String = of_tag.iter().map(|call| article(document, call)).collect();
        let about = paragraphs(text(tag, "description"));
        main += &format!("<section><h2>{}</h2>{about}{articles}</section>", escape(name));
    }
    nav += "<h2>Objects</h2><ul><li><a href=\"#objects\">All objects</a></li></ul>";
    let info = &document["info"];
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title} API</title>\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"><script type=\"module\" src=\"/docs/script.js\"></script></head><body><div class=\"page\"><nav>{nav}</nav><main>\
         <h1>{title} <small>{version} · <a href=\"/openapi.json\">openapi.json</a></small></h1>{about}{main}\
         <section id=\"objects\"><h2>Objects</h2>{objects}</section></main></div></body></html>",
        title = escape(text(info, "title")),
        version = escape(text(info, "version")),
        about = paragraphs(text(info, "description")),
        objects = objects(document),
    )
}

fn calls(document: &Value) -> Vec<DocumentedCall<'_>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            let of = |method| {
                item.get(method).map(|operation| DocumentedCall { method, path: path.as_str(), operation })
            };
            METHODS.into_iter().filter_map(of)
        })
        .collect()
}

fn has_tag(call: &DocumentedCall<'_>, name: &str) -> bool {
    call.operation
        .get("tags")
        .and_then(Value::as_array)
        .is_some_and(|tags| tags.iter().any(|tag| tag == name))
}

fn nav_link(call: &DocumentedCall<'_>) -> String {
    format!("<li><a href=\"#{}\">{}</a></li>", call.anchor(), escape(text(call.operation, "summary")))
}

fn article(document: &Value, call: &DocumentedCall<'_>) -> String {
    let mut html = format!(
        "<article id=\"{}\"{}><h3>{}</h3><div class=\"call\"><span class=\"method {method}\">{}</span>\
         <code>{}</code></div>{}",
        call.anchor(),
        trial(call),
        escape(text(call.operation, "summary")),
        call.method.to_uppercase(),
        escape(call.path),
        paragraphs(text(call.operation, "description")),
        method = call.method,
    );
    html += &parameters(call);
    if let Some((kind, content)) = call.body() {
        let schema = content.get("schema").unwrap_or(&Value::Null);
        html +=
            &format!("<h4>Body <code>{}</code></h4>{}", escape(kind), schema::table(document, schema, true));
    }
    html += &responses(call);
    html += &format!("<h4>Example</h4><pre>{}</pre></article>", escape(&curl(call)));
    html
}

/// What a trial of the call needs to know. Files are not tried.
fn trial(call: &DocumentedCall<'_>) -> String {
    let mut data = format!(" data-method=\"{}\" data-path=\"{}\"", call.method, escape(call.path));
    if let Some((kind, content)) = call.body() {
        let example = content.get("example").unwrap_or(&Value::Null);
        let example = match example {
            Value::Null => String::new(),
            example => serde_json::to_string_pretty(example).unwrap_or_default(),
        };
        data += &format!(" data-type=\"{}\" data-body=\"{}\"", escape(kind), escape(&example));
    }
    data
}

fn parameters(call: &DocumentedCall<'_>) -> String {
    let Some(parameters) = call.operation.get("parameters").and_then(Value::as_array) else {
        return String::new();
    };
    let row = |parameter: &Value| {
        format!(
            "<tr data-name=\"{name}\" data-in=\"{place}\"><td><code>{name}</code></td><td>{place}</td><td>{}</td><td>{}</td></tr>",
            parameter.get("schema").map_or_else(String::new, schema::type_of).replace(" or null", ""),
            prose(text(parameter, "description")),
            name = escape(text(parameter, "name")),
            place = escape(text(parameter, "in")),
        )
    };
    let rows: String = parameters.iter().map(row).collect();
    format!(
        "<h4>Parameters</h4><div class=\"scroll\"><table class=\"parameters\"><tr><th>Name</th><th>In</th><th>Type</th><th>Meaning</th></tr>\
         {rows}</table></div>"
    )
}

fn responses(call: &DocumentedCall<'_>) -> String {
    let responses = call.operation.get("responses").and_then(Value::as_object).into_iter().flatten();
    let row = |(status, response): (&String, &Value)| {
        let content =
            response.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        let body = content.map_or_else(String::new, |(kind, content)| match content.get("schema") {
            Some(schema) if kind == "application/json" => schema::type_of(schema),
            _ => format!("<code>{}</code>", escape(kind)),
        });
        let status = if status == "default" { "4xx, 5xx" } else { status };
        format!(
            "<tr><td>{}</td><td>{body}</td><td>{}</td></tr>",
            escape(status),
            prose(text(response, "description"))
        )
    };
    let rows: String = responses.map(row).collect();
    format!(
        "<h4>Answers</h4><div class=\"scroll\"><table><tr><th>Status</th><th>Body</th><th>Meaning</th></tr>\
         {rows}</table></div>"
    )
}

/// A curl command for the call.
fn curl(call: &DocumentedCall<'_>) -> String {
    let id = if call.path.starts_with("/v1/accounts") { "relay-1" } else { "order-1" };
    let mut command = match call.method {
        "get" => "curl".to_owned(),
        method => format!("curl -X {}", method.to_uppercase()),
    };
    command += &format!(" {BASE}{}", call.path.replace("{id}", id));
    if call.needs_key() {
        command += " \\\n  -H \"Authorization: Bearer $POSTWAY_KEY\"";
    }
    match call.body() {
        Some(("application/json", content)) => {
            let body = content.get("example").unwrap_or(&Value::Null);
            let body = body.to_string().replace('\'', "'\\''");
            command += &format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'");
        }
        Some((kind, _)) => {
            let file = if kind == "message/rfc822" { "mail.eml" } else { "list.jsonl" };
            command += &format!(" \\\n  -H 'Content-Type: {kind}' \\\n  --data-binary @{file}")
        }
        None => {}
    }
    command
}

fn objects(document: &Value) -> String {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten();
    let object = |(name, schema): (&String, &Value)| {
        let name = escape(name);
        let about = paragraphs(text(schema, "description"));
        format!(
            "<article id=\"object-{name}\"><h3>{name}</h3>{about}{}</article>",
            schema::table(document, schema, false)
        )
    };
    schemas.map(object).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Text as HTML: blank lines separate paragraphs, backquotes mark code.
fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").filter(|part| !part.trim().is_empty());
    parts.map(|part| format!("<p>{}</p>", prose(part))).collect()
}

/// A line of text, with code marked.
pub(super) fn prose(text: &str) -> String {
    let mark = |(index, part): (usize, &str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    text.split('`').enumerate().map(mark).collect()
}

/// Escapes text for an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(prose("say `a<b` now"), "say <code>a&lt;b</code> now");
    }

    #[test]
    fn every_call_has_its_article_and_every_link_its_target() {
        let document = serde_json::to_value(crate::openapi::document()).unwrap();
        let page = page(&document);
        for call in calls(&document) {
            assert!(
                page.contains(&format!("<article id=\"{}\" data-method=", call.anchor())),
                "{} {}",
                call.method,
                call.path
            );
        }
        for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("id=\"{link}\"")), "#{link} leads nowhere");
        }
        assert_eq!(page.matches("<script").count(), 1, "its own, and none in the text");
    }
}
