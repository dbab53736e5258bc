//! A span under way, and a finished one.
//!
//! A span ends when it is dropped, so one whose work is abandoned half-way is still recorded. What it carries
//! is bounded: the number of attributes and links, and the length of each text.

use std::{borrow::Cow, time::Instant};

use crate::{
    context::{SpanId, TraceContext, TraceId},
    tracer::{Tracer, tracer},
};

/// The most attributes of a span.
const ATTRIBUTES_MAX: usize = 24;
/// The most other traces that a span refers to.
const LINKS_MAX: usize = 32;
/// The longest text in a span.
const TEXT_BYTES_MAX: usize = 256;

/// What a span is to the programs on both sides of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside of this process.
    Internal = 1,
    /// A request that this process answers.
    Server = 2,
    /// A request that this process makes.
    Client = 3,
    /// Work that is handed to somebody who does it later.
    Producer = 4,
    /// Work that somebody handed over earlier.
    Consumer = 5,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for AttributeValue {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A finished span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedSpan {
    /// Its trace.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// The span that it belongs under; none: it is the first of its trace.
    pub parent: Option<SpanId>,
    /// What it is called.
    pub name: Cow<'static, str>,
    /// What it is to others.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// When it ended.
    pub ended_unix_ns: u64,
    /// What is known about it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Other spans that it did the work of.
    pub links: Vec<TraceContext>,
    /// Why it failed, if it did.
    pub failure: Option<Cow<'static, str>>,
}

/// A span under way. Dropping it ends it.
#[derive(Debug, Default)]
#[must_use = "a span ends when it is dropped"]
pub struct Span(SpanState);

#[derive(Debug, Default)]
enum SpanState {
    /// Nothing is traced.
    #[default]
    Off,
    /// The caller does not record its trace, so nobody does; its context is passed on.
    PassedOn(TraceContext),
    /// Recorded.
    Open(Box<OpenSpan>),
}

#[derive(Debug)]
struct OpenSpan {
    /// Where it goes when it ends.
    tracer: &'static Tracer,
    started: Instant,
    span: FinishedSpan,
}

impl Span {
    /// The first span of work that came from outside: under `parent` if the caller sent a context, which then
    /// decides whether the trace is recorded, and otherwise of a new trace, of which a share is recorded.
    pub fn begin(parent: Option<TraceContext>, kind: SpanKind, name: &'static str) -> Self {
        match tracer() {
            None => Self::default(),
            Some(tracer) => Self::begin_with(tracer, parent, kind, name),
        }
    }

    pub(crate) fn begin_with(
        tracer: &'static Tracer,
        parent: Option<TraceContext>,
        kind: SpanKind,
        name: &'static str,
    ) -> Self {
        match parent {
            Some(_) => Self::child_with(tracer, parent, kind, name),
            None => match tracer.sample() {
                Some(trace) => Self::open(tracer, trace, None, kind, name),
                None => Self::default(),
            },
        }
    }

    /// A span under this one. Work without a context is not traced, because its trace was not chosen.
    pub fn child(parent: Option<TraceContext>, kind: SpanKind, name: &'static str) -> Self {
        match (parent, tracer()) {
            (None, _) | (_, None) => Self::default(),
            (Some(_), Some(tracer)) => Self::child_with(tracer, parent, kind, name),
        }
    }

    fn child_with(
        tracer: &'static Tracer,
        parent: Option<TraceContext>,
        kind: SpanKind,
        name: &'static str,
    ) -> Self {
        match parent {
            None => Self::default(),
            Some(parent) if !parent.is_sampled => Self(SpanState::PassedOn(parent)),
            Some(parent) => Self::open(tracer, parent.trace, Some(parent.span), kind, name),
        }
    }

    fn open(
        tracer: &'static Tracer,
        trace: TraceId,
        parent: Option<SpanId>,
        kind: SpanKind,
        name: &'static str,
    ) -> Self {
        let started = Instant::now();
        let began_unix_ns = tracer.unix_ns(started);
        let span = FinishedSpan {
            trace,
            id: tracer.new_span_id(),
            parent,
            name: Cow::Borrowed(name),
            kind,
            began_unix_ns,
            ended_unix_ns: began_unix_ns,
            attributes: Vec::new(),
            links: Vec::new(),
            failure: None,
        };
        Self(SpanState::Open(Box::new(OpenSpan { tracer, started, span })))
    }

    /// The context for whatever belongs under this span: what is stored with a message or sent with a call.
    pub fn context(&self) -> Option<TraceContext> {
        match &self.0 {
            SpanState::Off => None,
            SpanState::PassedOn(context) => Some(*context),
            SpanState::Open(open) => {
                let FinishedSpan { trace, id: span, .. } = open.span;
                Some(TraceContext { trace, span, is_sampled: true })
            }
        }
    }

    /// Whether it is recorded: what is only made for it need not be made otherwise.
    pub fn is_recorded(&self) -> bool {
        matches!(self.0, SpanState::Open(_))
    }

    /// Gives it another name.
    pub fn rename(&mut self, name: impl FnOnce() -> String) {
        if let SpanState::Open(open) = &mut self.0 {
            open.span.name = clipped(Cow::Owned(name()));
        }
    }

    /// Adds what is known about it.
    pub fn set<V: Into<AttributeValue>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let SpanState::Open(open) = &mut self.0
            && open.span.attributes.len() < ATTRIBUTES_MAX
        {
            let value = match value().into() {
                AttributeValue::Text(text) => AttributeValue::Text(clipped(text)),
                number @ AttributeValue::Number(_) => number,
            };
            open.span.attributes.push((key, value));
        }
    }

    /// Refers to another span whose work this one did too.
    pub fn link(&mut self, other: TraceContext) {
        if let SpanState::Open(open) = &mut self.0
            && open.span.links.len() < LINKS_MAX
        {
            open.span.links.push(other);
        }
    }

    /// Says that it failed, with a code: no text of others, which may have addresses in it.
    pub fn fail(&mut self, code: impl Into<Cow<'static, str>>) {
        if let SpanState::Open(open) = &mut self.0 {
            open.span.failure = Some(clipped(code.into()));
        }
    }

    /// Has it begin when its work did, if that was known only later.
    pub fn begun_at(mut self, started: Instant) -> Self {
        if let SpanState::Open(open) = &mut self.0 {
            open.started = started;
            open.span.began_unix_ns = open.tracer.unix_ns(started);
        }
        self
    }

    /// Forgets it: it is not recorded.
    pub fn discard(mut self) {
        self.0 = SpanState::Off;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let SpanState::Open(open) = std::mem::take(&mut self.0) {
            let OpenSpan { tracer, started, mut span } = *open;
            let lasted = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            span.ended_unix_ns = span.began_unix_ns.saturating_add(lasted);
            tracer.keep(span);
        }
    }
}

fn clipped(text: Cow<'static, str>) -> Cow<'static, str> {
    match text.len() > TEXT_BYTES_MAX {
        true => Cow::Owned(text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer(share: f64) -> &'static Tracer {
        Box::leak(Box::new(Tracer::new(share, 1_700_000_000_000)))
    }

    fn sampled() -> TraceContext {
        TraceContext::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap()
    }

    #[test]
    fn nothing_is_made_while_no_tracer_is_installed() {
        let mut span = Span::begin(Some(sampled()), SpanKind::Server, "request");
        assert!(!span.is_recorded() && span.context().is_none());
        span.set("key", || -> &'static str { unreachable!("nobody asks for it") });
        span.rename(|| unreachable!("nor for that"));
        assert!(Span::child(Some(sampled()), SpanKind::Internal, "part").context().is_none());
        assert!(size_of::<Span>() <= 32, "it is passed by value");
    }

    #[test]
    fn a_child_is_under_its_parent_and_ends_when_it_is_dropped() {
        let tracer = tracer(0.0);
        let mut first = Span::begin_with(tracer, Some(sampled()), SpanKind::Server, "request");
        first.set("http.status", || 202u16);
        let under = first.context().unwrap();
        drop(Span::child_with(tracer, Some(under), SpanKind::Internal, "accept"));
        first.fail("late");
        drop(first);
        let spans = tracer.take(10);
        let [accept, request] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((accept.parent, accept.trace), (Some(request.id), sampled().trace));
        assert_eq!(request.parent, Some(sampled().span));
        assert!(
            request.began_unix_ns <= accept.began_unix_ns && accept.ended_unix_ns <= request.ended_unix_ns
        );
        assert_eq!(request.failure.as_deref(), Some("late"));
        assert_eq!(request.attributes, [("http.status", AttributeValue::Number(202))]);
    }

    #[test]
    fn a_caller_that_does_not_record_decides_for_everybody_after_it() {
        let tracer = tracer(1.0);
        let quiet = TraceContext { is_sampled: false, ..sampled() };
        let span = Span::begin_with(tracer, Some(quiet), SpanKind::Server, "request");
        assert_eq!(span.context(), Some(quiet), "passed on as it came");
        drop(span);
        assert!(tracer.take(10).is_empty());
    }

    #[test]
    fn what_a_span_carries_is_bounded() {
        let tracer = tracer(1.0);
        let mut span = Span::begin_with(tracer, None, SpanKind::Server, "request");
        for _ in 0..1_000 {
            span.set("key", || "é".repeat(10_000));
            span.link(sampled());
        }
        span.rename(|| "n".repeat(10_000));
        drop(span);
        let span = tracer.take(1).remove(0);
        assert_eq!((span.attributes.len(), span.links.len()), (ATTRIBUTES_MAX, LINKS_MAX));
        assert_eq!(span.name.len(), TEXT_BYTES_MAX);
        let AttributeValue::Text(text) = &span.attributes[0].1 else { panic!() };
        assert_eq!(text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_discarded_span_is_not_recorded() {
        let tracer = tracer(1.0);
        Span::begin_with(tracer, None, SpanKind::Server, "request").discard();
        assert!(tracer.take(10).is_empty());
    }
}
