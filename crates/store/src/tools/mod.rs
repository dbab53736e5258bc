//! Tools around a store: migrating to another database, and views for readers of other systems' tables.

pub mod transfer;
pub mod views;
