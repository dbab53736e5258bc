//! The headers `RateLimit-Policy` and `RateLimit`, in the form of the IETF's draft
//! (draft-ietf-httpapi-ratelimit-headers): lists of names with parameters.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::LimitReading;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Writes both headers, if there is anything to say.
pub(super) fn write(headers: &mut HeaderMap, readings: &[LimitReading]) {
    if readings.is_empty() {
        return;
    }
    let policies = readings.iter().map(|reading| {
        let policy = reading.policy;
        let unit = policy.unit.map(|unit| format!(";qu=\"{unit}\"")).unwrap_or_default();
        let seconds = policy.limit.window.as_secs();
        format!("\"{}\";q={}{unit};w={seconds}", policy.name, policy.limit.quota)
    });
    let states = readings.iter().map(|reading| {
        let (name, resets_in) = (reading.policy.name, reading.resets_in);
        let seconds = resets_in.as_secs() + u64::from(resets_in.subsec_nanos() > 0);
        format!("\"{name}\";r={};t={seconds}", reading.left)
    });
    for (name, value) in
        [(POLICY, policies.collect::<Vec<_>>().join(", ")), (STATE, states.collect::<Vec<_>>().join(", "))]
    {
        // The values are made of digits and fixed words.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU64, time::Duration};

    use super::*;
    use crate::limit::{LimitPolicy, WindowLimit};

    #[test]
    fn the_headers_have_the_form_of_the_draft() {
        let limit =
            |quota| WindowLimit { quota: NonZeroU64::new(quota).unwrap(), window: Duration::from_secs(60) };
        let reading = |name, quota, unit, left| LimitReading {
            policy: LimitPolicy { name, limit: limit(quota), unit },
            left,
            resets_in: Duration::from_millis(12_001),
        };
        let mut headers = HeaderMap::new();
        write(&mut headers, &[]);
        assert!(headers.is_empty());
        let bytes = reading("key-bytes", 1_000_000, Some("content-bytes"), 0);
        write(&mut headers, &[reading("address", 600, None, 599), bytes]);
        assert_eq!(
            headers["ratelimit-policy"],
            "\"address\";q=600;w=60, \"key-bytes\";q=1000000;qu=\"content-bytes\";w=60"
        );
        assert_eq!(headers["ratelimit"], "\"address\";r=599;t=13, \"key-bytes\";r=0;t=13");
    }
}
