//! Failpoints: named points at which a test can make the process die, as a power cut would.

/// Aborts the process when the failpoint `name` is set to `return`. Does nothing without the `failpoints`
/// feature.
pub(crate) fn crash_point(name: &'static str) {
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name, |_| std::process::abort());
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

/// Aborts the process when the failpoint `name` is set to `return(words)` and `text` contains these words: a
/// mail that kills every process that handles it. Does nothing without the `failpoints` feature.
pub(crate) fn crash_point_for(name: &'static str, text: &[u8]) {
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name, |words| {
        let words = words.unwrap_or_default();
        if !words.is_empty() && text.windows(words.len()).any(|part| part == words.as_bytes()) {
            std::process::abort();
        }
    });
    #[cfg(not(feature = "failpoints"))]
    let _ = (name, text);
}
