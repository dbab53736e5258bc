//! Bounds on memory and on work that all tenants share.

mod fair;
mod heavy_work;

pub use fair::{FairBudget, FairShare};
pub use heavy_work::run_heavy;
pub(crate) use heavy_work::{HEAVY_BYTES, HeavyWork, catch_panic};
