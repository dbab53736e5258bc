//! The listener that sends browsers from plain HTTP to HTTPS.
//!
//! Only reading without a key is redirected. A request with a key, or one that changes something, is refused
//! and told why: its key has just crossed the network in the clear, and would again with each request if a
//! redirect made it work.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};

/// The longest host that is put into an answer.
const HOST_BYTES_MAX: usize = 255;
/// The port that a URL need not name.
const HTTPS_PORT: u16 = 443;

/// Answers every request of the listener. `public_url` is where readers reach the gateway, if it is known;
/// otherwise they are sent to the host that they asked for, at the port of the TLS listener.
pub fn router(public_url: Option<&str>, tls_port: u16) -> Router {
    let origin = public_url.filter(|url| url.starts_with("https://")).and_then(origin_of);
    Router::new().fallback(move |request: Request| {
        let answer = answer(&request, origin.as_deref(), tls_port);
        async move { answer }
    })
}

fn answer(request: &Request, origin: Option<&str>, tls_port: u16) -> Response {
    let headers = request.headers();
    let has_key = [header::AUTHORIZATION, header::COOKIE].iter().any(|name| headers.contains_key(name))
        || headers.contains_key("x-api-key");
    if has_key || !(request.method() == "GET" || request.method() == "HEAD") {
        return refusal(
            StatusCode::FORBIDDEN,
            "this port only leads to HTTPS: use the https:// address, and replace a key that was sent here",
        );
    }
    let origin = match origin {
        Some(origin) => Some(origin.to_owned()),
        None => host_of(headers).map(|host| match tls_port {
            HTTPS_PORT => format!("https://{host}"),
            port => format!("https://{host}:{port}"),
        }),
    };
    let Some(origin) = origin else {
        return refusal(StatusCode::BAD_REQUEST, "the request names no host to be sent to over HTTPS");
    };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let location = [(header::LOCATION, format!("{origin}{path}")), (header::CONNECTION, "close".to_owned())];
    (StatusCode::PERMANENT_REDIRECT, location).into_response()
}

fn refusal(status: StatusCode, message: &str) -> Response {
    let code = if status == StatusCode::FORBIDDEN { "forbidden" } else { "malformed_request" };
    let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}","details":[]}}}}"#);
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CONNECTION, "close")];
    (status, headers, body).into_response()
}

/// The host that was asked for, without its port, if it is a name or an address and nothing else.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let host = headers.get(header::HOST)?.to_str().ok().filter(|host| host.len() <= HOST_BYTES_MAX)?;
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => host,
    };
    let inside = match bare.strip_prefix('[') {
        Some(rest) => {
            rest.strip_suffix(']').filter(|address| address.parse::<std::net::Ipv6Addr>().is_ok())?
        }
        None => bare,
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_host = bare.starts_with('[') || inside.bytes().all(is_name);
    (is_host && !inside.is_empty()).then_some(bare)
}

/// The scheme, host and port of a URL.
fn origin_of(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    Some(format!("https://{host}"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn asked(method: &str, path: &str, headers: &[(&str, &str)], public_url: Option<&str>) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let origin = public_url.and_then(origin_of);
        answer(&request.body(Body::empty()).unwrap(), origin.as_deref(), 8443)
    }

    fn location(response: &Response) -> (u16, Option<&str>) {
        let location = response.headers().get(header::LOCATION).map(|value| value.to_str().unwrap());
        (response.status().as_u16(), location)
    }

    #[test]
    fn a_reader_is_sent_to_the_same_place_over_https() {
        for (host, led) in [
            ("mail.example.org", "https://mail.example.org:8443/docs?q=1"),
            ("mail.example.org:8080", "https://mail.example.org:8443/docs?q=1"),
            ("[2001:db8::1]:80", "https://[2001:db8::1]:8443/docs?q=1"),
        ] {
            let response = asked("GET", "/docs?q=1", &[("host", host)], None);
            assert_eq!(location(&response), (308, Some(led)));
        }
        let response = asked("HEAD", "/", &[("host", "anything")], Some("https://mail.example.org/base"));
        assert_eq!(location(&response), (308, Some("https://mail.example.org/")));
    }

    #[test]
    fn what_carries_a_key_or_changes_something_is_refused() {
        let host = ("host", "mail.example.org");
        for (method, header) in [
            ("GET", ("authorization", "Bearer x")),
            ("GET", ("x-api-key", "x")),
            ("GET", ("cookie", "a=b")),
            ("POST", ("accept", "*/*")),
        ] {
            assert_eq!(location(&asked(method, "/v1/messages", &[host, header], None)), (403, None));
        }
    }

    #[test]
    fn a_host_that_is_none_leads_nowhere() {
        for host in ["", ":80", "a b", "evil.example/..", "x@evil.example", "[::1", "[junk]", "a:b:80"] {
            let response = asked("GET", "/", &[("host", host)], None);
            assert_eq!(location(&response), (400, None), "{host}");
        }
        assert_eq!(location(&asked("GET", "/", &[], None)), (400, None));
    }
}
