//! Answers of the store that are remembered for a moment.

pub(crate) mod settings_cache;
pub(crate) mod template_cache;
pub(crate) mod ttl_cache;
