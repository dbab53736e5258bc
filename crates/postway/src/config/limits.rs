//! `[limits]`: what each key and each client's address may ask for over HTTP.

use std::num::NonZeroU64;
use std::time::Duration;

use postway_api::{RequestLimits, SubjectLimits, WindowLimit};

use super::layers::ConfigLayers;

/// The largest number of a limit.
const QUOTA_MAX: u64 = 1 << 53;

/// Reads the limits; all are off by default.
pub(super) fn read(layers: &mut ConfigLayers) -> Option<RequestLimits> {
    let key = subject(layers, ["limits.key_requests", "limits.key_bytes", "limits.key_concurrent"]);
    let address =
        subject(layers, ["limits.address_requests", "limits.address_bytes", "limits.address_concurrent"]);
    Some(RequestLimits { key: key?, address: address? })
}

fn subject(layers: &mut ConfigLayers, keys: [&'static str; 3]) -> Option<SubjectLimits> {
    let [requests, bytes, concurrent] = keys;
    let requests = layers.take_optional(requests, window);
    let bytes = layers.take_optional(bytes, window);
    let concurrent = layers.take_optional(concurrent, |text| match text.trim().parse() {
        Ok(number) => Ok(number),
        Err(_) => Err(format!("`{text}` must be a whole number, at least 1")),
    });
    Some(SubjectLimits { requests: requests?, bytes: bytes?, concurrent: concurrent? })
}

/// A number in a window of time, such as `600/m`.
fn window(text: &str) -> Result<WindowLimit, String> {
    let form = || format!("`{text}` must be a number for each second, minute, hour or day, such as 600/m");
    let (quota, unit) = text.split_once('/').ok_or_else(form)?;
    let quota: NonZeroU64 = quota.trim().parse().map_err(|_| form())?;
    let seconds = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(form()),
    };
    if quota.get() > QUOTA_MAX {
        return Err(form());
    }
    Ok(WindowLimit { quota, window: Duration::from_secs(seconds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_in_a_window() {
        let read = |text: &str| window(text).map(|limit| (limit.quota.get(), limit.window.as_secs()));
        assert_eq!(read("600/m"), Ok((600, 60)));
        assert_eq!(read(" 5 / s "), Ok((5, 1)));
        assert_eq!(read("1000000/d"), Ok((1_000_000, 86_400)));
        for wrong in ["", "600", "0/m", "-1/m", "6/w", "6/", "/m", "1e3/m", "99999999999999999999/h"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_off_until_they_are_set() {
        let env = |pairs: &[(&str, &str)]| {
            let env = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            crate::config::load_from(None, env).map(|loaded| loaded.config.limits)
        };
        let off = env(&[]).unwrap();
        assert_eq!((off.key, off.address), (SubjectLimits::default(), SubjectLimits::default()));
        let on =
            env(&[("POSTWAY_LIMITS_KEY_REQUESTS", "100/s"), ("POSTWAY_LIMITS_ADDRESS_CONCURRENT", "20")])
                .unwrap();
        assert!(on.key.requests.is_some() && on.key.bytes.is_none());
        assert_eq!(on.address.concurrent.map(NonZeroU64::get), Some(20));
        let wrong = env(&[("POSTWAY_LIMITS_KEY_BYTES", "lots")]).unwrap_err().to_string();
        assert!(wrong.starts_with("`limits.key_bytes`"), "{wrong}");
    }
}
