//! Proxies in settings: a URL without password, and the password beside it, which is stored encrypted.

use url::{Host, Url};

const FORM: &str =
    "must be socks5://host:port or http://host:port, with user@ before the host where it is needed";

/// What a request says about the password of a proxy with this URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyPasswordEdit<'a> {
    Keep,
    Remove,
    Set(&'a str),
}

/// The fault of a proxy's URL.
pub(crate) fn wrong_proxy(proxy: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(proxy) else { return Some(FORM) };
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    if !matches!(url.scheme(), "socks5" | "socks5h" | "http") || !is_bare || !has_host {
        return Some(FORM);
    }
    url.password().map(|_| "must not hold a password: give it as proxy_password, which is stored encrypted")
}

/// Whether a proxy has a user name, so that it can have a password.
pub(crate) fn names_user(proxy: Option<&str>) -> bool {
    let url = proxy.and_then(|proxy| Url::parse(proxy).ok());
    url.is_some_and(|url| !url.username().is_empty())
}

/// Decides about the password: it belongs to a user name, and is removed with it. `given` is what the request
/// has in its field: nothing, null, or a password.
pub(crate) fn fit_password<'a>(
    proxy: Option<&str>,
    given: Option<Option<&'a str>>,
) -> Result<ProxyPasswordEdit<'a>, &'static str> {
    match (given, names_user(proxy)) {
        (Some(Some(_)), false) => Err("needs a proxy with a user name: socks5://user@host:port"),
        (Some(Some(password)), true) => Ok(ProxyPasswordEdit::Set(password)),
        (Some(None), _) | (None, false) => Ok(ProxyPasswordEdit::Remove),
        (None, true) => Ok(ProxyPasswordEdit::Keep),
    }
}

/// The host of a proxy's URL, in whatever spelling. `url` itself normalises only hosts of web URLs.
pub(crate) fn proxy_host(proxy: &str) -> Option<String> {
    let url = Url::parse(proxy).ok()?;
    let host = url.host_str()?;
    Host::parse(host).map_or_else(|_| Some(host.to_owned()), |host| Some(host.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_url_without_its_password() {
        for good in ["socks5://proxy.example:1080", "http://user@10.0.0.1:3128", "socks5h://[::1]/"] {
            assert_eq!(wrong_proxy(good), None, "{good}");
        }
        for bad in ["", "proxy:1080", "https://proxy", "http://proxy/x", "http://proxy?x", "socks5://"] {
            assert!(wrong_proxy(bad).is_some(), "{bad}");
        }
        assert!(wrong_proxy("socks5://user:hunter2@proxy").is_some_and(|why| why.contains("proxy_password")));
        assert_eq!(proxy_host("socks5://0x7f000001:1").as_deref(), Some("127.0.0.1"));
    }

    #[test]
    fn a_password_comes_and_goes_with_its_user() {
        let (with, without) = (Some("socks5://user@proxy"), Some("socks5://proxy"));
        assert_eq!(fit_password(with, Some(Some("x"))), Ok(ProxyPasswordEdit::Set("x")));
        assert_eq!(fit_password(with, None), Ok(ProxyPasswordEdit::Keep));
        assert_eq!(fit_password(with, Some(None)), Ok(ProxyPasswordEdit::Remove));
        assert_eq!(fit_password(without, None), Ok(ProxyPasswordEdit::Remove));
        assert_eq!(fit_password(None, None), Ok(ProxyPasswordEdit::Remove));
        assert!(fit_password(without, Some(Some("x"))).is_err());
    }
}
