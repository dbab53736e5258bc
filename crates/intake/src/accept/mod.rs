//! How mail is accepted: one pipeline of five steps, from a request to the store.
//!
//! | step | module | what it does |
//! |---|---|---|
//! | 1 parse | [`parse`] | reads the JSON of a request; decides its shape only |
//! | 2 look up | [`look_up`] | reads the tenant's settings, account, template, recipient and signing keys |
//! | 3 check | [`check`] | checks every field and collects every fault; pure |
//! | 4 compose | [`compose`] | makes the RFC 5322 bytes, the envelope and the first events; pure |
//! | 5 store | [`store`] | recognises repeats and writes the messages in one transaction |
//!
//! [`door`] holds the parts of the pipeline. The ways in drive it: [`single`] (one JSON message), [`batch`],
//! [`raw`] (finished mail) and [`forward`] (inbound mail that is sent on). [`dry_run`] stops before step 5.
//! [`choose`] finds the account. The steps do not know the door or the ways in.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod compose;
pub(crate) mod context;
pub(crate) mod crash_point;
pub(crate) mod door;
mod dry_run;
pub(crate) mod files;
pub(crate) mod forward;
pub(crate) mod look_up;
pub(crate) mod parse;
pub(crate) mod preview;
pub(crate) mod quota;
pub(crate) mod raw;
pub(crate) mod refused_mail;
pub(crate) mod route_trial;
mod single;
pub(crate) mod store;
pub(crate) mod virus_check;
