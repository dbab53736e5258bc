//! Failpoints: named points at which a test can make the process die, as a power cut would.

/// Aborts the process when the failpoint `name` is set to `return`. Does nothing without the `failpoints`
/// feature.
pub(crate) fn crash_point(name: &'static str) {
    #[cfg(feature = "failpoints")]
    fail::fail_point!(name, |_| std::process::abort());
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}
