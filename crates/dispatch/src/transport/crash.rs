//! Failpoints: named lines at which a test can abort the process, as a power cut would.

/// Aborts the process if the failpoint `$name` is set to `return`. Costs nothing without the `failpoints`
/// feature.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::transport::crash::reach($name);
    };
}
pub(crate) use crash_point;

#[cfg(feature = "failpoints")]
pub(crate) fn reach(name: &'static str) {
    fail::fail_point!(name, |_| std::process::abort());
}
