//! Caches in front of the store. Each answer is trusted for a second, or until this process changes a
//! setting.

pub(crate) mod route_table;
pub(crate) mod settings_cache;
pub(crate) mod template_cache;
pub(crate) mod ttl_cache;
