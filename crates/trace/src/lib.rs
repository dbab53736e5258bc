//! Traces: what happened to one request or one mail, as spans that a collector puts together.
//!
//! A process traces only if a [`Tracer`] was installed. Otherwise [`Span::begin`] and [`Span::child`] look at
//! one static and return an empty span: nothing is allocated, formatted, timed or stored.
//!
//! A finished span goes into a queue of bounded size and is dropped, and counted, if the queue is full. Nobody
//! ever waits for it. Whoever exports takes batches from the queue ([`Tracer::take`]) and sends them as
//! [`otlp`] writes them; this crate opens no connection and knows no clock.
//!
//! Spans carry ids, names of tenants and accounts, hosts and codes. As in the log, they never have addresses,
//! subjects, bodies, credentials or paths.

pub mod context;
pub mod otlp;
mod span;
mod tracer;

pub use context::{SpanId, TraceContext, TraceId};
pub use span::{AttributeValue, FinishedSpan, Span, SpanKind};
pub use tracer::{Tracer, TracerCounts, install, is_on, tracer};
