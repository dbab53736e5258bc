//! Limits at the door: how many requests and bytes a key and a client's address may send in a window of time,
//! and how many requests they may have in progress.
//!
//! They are off until they are configured. An address is counted before anything is read; a key once it is
//! known to be valid, so that a stranger cannot use up somebody else's. Programs on this machine, proxies that
//! name no client, and the admin key are not counted: the operator's way in stays open.
//!
//! Each node allows an equal share of a limit: the limit divided by the number of living nodes, rounded up. So
//! all of them together allow the whole, whichever node a client reaches, and no request asks the store. The
//! limit on requests in progress is shared in the same way.
//!
//! A window begins with its first request and lasts its whole length. Bytes are counted as they are read: a
//! request that begins while some are left is read to its end. Answers carry `RateLimit-Policy` and
//! `RateLimit`, in the form of the IETF's draft; a refused request is answered 429 with `Retry-After`.

mod header;
mod window;

use std::{
    collections::HashMap,
    hash::Hash,
    num::NonZeroU64,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use futures::TryStreamExt;
use postway_domain::client::ClientAddress;
use postway_store::LivenessRoster;

use self::window::WindowCounts;
use crate::http::{error::ApiError, origin::RequestOrigin};

/// The limits of each key, and of each address.
#[derive(Clone, Debug, Default)]
pub struct RequestLimits {
    /// Of each key.
    pub key: SubjectLimits,
    /// Of each client's address: one of IPv4, or a /64 of IPv6.
    pub address: SubjectLimits,
}

/// The limits of one key or address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubjectLimits {
    /// Requests in a window.
    pub requests: Option<WindowLimit>,
    /// Bytes of bodies in a window.
    pub bytes: Option<WindowLimit>,
    /// Requests in progress.
    pub concurrent: Option<NonZeroU64>,
}

/// A number in a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// The number.
    pub quota: NonZeroU64,
    /// The length of the window.
    pub window: Duration,
}

impl SubjectLimits {
    fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits of this node, and what has been used of them.
pub(crate) struct DoorLimits {
    roster: Arc<LivenessRoster>,
    keys: SubjectUse<String>,
    addresses: SubjectUse<ClientAddress>,
}

/// What keys, or addresses, have used.
struct SubjectUse<K> {
    /// The word in policies and messages.
    name: &'static str,
    limits: SubjectLimits,
    requests: WindowCounts<K>,
    bytes: WindowCounts<K>,
    in_progress: Mutex<HashMap<K, u64>>,
}

/// How a limit stands, for the headers of an answer.
#[derive(Clone, Copy, Debug)]
struct LimitReading {
    policy: LimitPolicy,
    left: u64,
    /// The time until the window ends.
    resets_in: Duration,
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LimitPolicy {
    name: &'static str,
    limit: WindowLimit,
    /// The unit, if it is not requests.
    unit: Option<&'static str>,
}

impl DoorLimits {
    pub(crate) fn new(limits: RequestLimits, roster: Arc<LivenessRoster>) -> Self {
        Self {
            roster,
            keys: SubjectUse::new("key", limits.key),
            addresses: SubjectUse::new("address", limits.address),
        }
    }

    /// Counts a request for its address, and prepares to count it for its key. `None` if nothing is limited.
    pub(crate) fn begin(self: &Arc<Self>, parts: &mut Parts) -> Result<Option<RequestTicket>, Box<Response>> {
        if self.keys.limits.is_unlimited() && self.addresses.limits.is_unlimited() {
            return Ok(None);
        }
        let client = RequestOrigin::from_parts(parts).and_then(|origin| origin.client());
        let client = client.filter(|_| !self.addresses.limits.is_unlimited());
        let ticket = RequestTicket(Arc::new(TicketState {
            limits: self.clone(),
            client,
            key: OnceLock::new(),
            slots: Mutex::default(),
        }));
        parts.extensions.insert(ticket.clone());
        if let Some(client) = client
            && let Err(error) = ticket.take(&self.addresses, client, SubjectSlot::Address)
        {
            return Err(Box::new(ticket.report(error.into_response())));
        }
        Ok(Some(ticket))
    }

    /// The number of nodes that share the limits.
    fn nodes(&self) -> u64 {
        (self.roster.alive().len() as u64).max(1)
    }
}

/// Counts a request for its key. A request without limits is not counted, and none twice.
pub(crate) fn count_key(parts: &Parts, key: &str) -> Result<(), ApiError> {
    let Some(RequestTicket(ticket)) = parts.extensions.get::<RequestTicket>() else { return Ok(()) };
    let keys = &ticket.limits.keys;
    if keys.limits.is_unlimited() || ticket.key.set(key.to_owned()).is_err() {
        return Ok(());
    }
    RequestTicket(ticket.clone()).take(keys, key.to_owned(), SubjectSlot::Key)
}

/// A request that is counted.
#[derive(Clone)]
pub(crate) struct RequestTicket(Arc<TicketState>);

struct TicketState {
    limits: Arc<DoorLimits>,
    client: Option<ClientAddress>,
    key: OnceLock<String>,
    /// What counts the request as one in progress.
    slots: Mutex<Vec<SubjectSlot>>,
}

/// For whom a request is in progress.
enum SubjectSlot {
    Address(ClientAddress),
    Key(String),
}

impl RequestTicket {
    fn take<K: Eq + Hash + Clone>(
        &self,
        subject: &SubjectUse<K>,
        who: K,
        slot: impl FnOnce(K) -> SubjectSlot,
    ) -> Result<(), ApiError> {
        subject.take(&who, self.0.limits.nodes(), Instant::now())?;
        lock(&self.0.slots).push(slot(who));
        Ok(())
    }

    /// Counts bytes of the body.
    fn count_bytes(&self, bytes: u64) {
        let (state, now) = (&self.0, Instant::now());
        if let Some(client) = &state.client {
            state.limits.addresses.count_bytes(client, bytes, now);
        }
        if let Some(key) = state.key.get() {
            state.limits.keys.count_bytes(key, bytes, now);
        }
    }

    /// The body, whose bytes are counted as they are read.
    pub(crate) fn count_body(&self, body: Body) -> Body {
        let limits = &self.0.limits;
        match limits.keys.limits.bytes.or(limits.addresses.limits.bytes) {
            Some(_) => {
                let ticket = self.clone();
                let pieces = body.into_data_stream();
                Body::from_stream(pieces.inspect_ok(move |piece| ticket.count_bytes(piece.len() as u64)))
            }
            None => body,
        }
    }

    /// Adds how the limits stand to an answer. The request is in progress until then.
    pub(crate) fn report(&self, mut response: Response) -> Response {
        let (state, now) = (&self.0, Instant::now());
        let nodes = state.limits.nodes();
        let mut readings = Vec::new();
        if let Some(client) = &state.client {
            readings.extend(state.limits.addresses.readings(client, nodes, now));
        }
        if let Some(key) = state.key.get() {
            readings.extend(state.limits.keys.readings(key, nodes, now));
        }
        header::write(response.headers_mut(), &readings);
        response
    }
}

impl Drop for TicketState {
    fn drop(&mut self) {
        for slot in lock(&self.slots).drain(..) {
            match slot {
                SubjectSlot::Address(client) => self.limits.addresses.end(&client),
                SubjectSlot::Key(key) => self.limits.keys.end(&key),
            }
        }
    }
}

impl<K: Eq + Hash + Clone> SubjectUse<K> {
    fn new(name: &'static str, limits: SubjectLimits) -> Self {
        Self {
            name,
            limits,
            requests: WindowCounts::default(),
            bytes: WindowCounts::default(),
            in_progress: Mutex::default(),
        }
    }

    /// Counts a request as begun, if every limit has room for it.
    fn take(&self, who: &K, nodes: u64, now: Instant) -> Result<(), ApiError> {
        let mut in_progress = lock(&self.in_progress);
        let running = in_progress.get(who).copied().unwrap_or_default();
        if self.limits.concurrent.is_some_and(|limit| running >= share(limit, nodes)) {
            return Err(self.refuse("requests in progress", Duration::from_secs(1)));
        }
        if let Some(limit) = self.limits.bytes
            && let Some(wait) = self.bytes.wait(who, share(limit.quota, nodes), limit.window, now)
        {
            return Err(self.refuse("bytes", wait));
        }
        if let Some(limit) = self.limits.requests {
            let quota = share(limit.quota, nodes);
            if let Some(wait) = self.requests.wait(who, quota, limit.window, now) {
                return Err(self.refuse("requests", wait));
            }
            self.requests.add(who, 1, limit.window, now);
        }
        in_progress.insert(who.clone(), running + 1);
        Ok(())
    }

    fn count_bytes(&self, who: &K, bytes: u64, now: Instant) {
        if let Some(limit) = self.limits.bytes {
            self.bytes.add(who, bytes, limit.window, now);
        }
    }

    fn end(&self, who: &K) {
        let mut in_progress = lock(&self.in_progress);
        if let Some(running) = in_progress.get_mut(who) {
            *running -= 1;
            if *running == 0 {
                in_progress.remove(who);
            }
        }
    }

    fn refuse(&self, what: &str, wait: Duration) -> ApiError {
        metrics::counter!("postway_http_limited_total", "by" => self.name).increment(1);
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let whose = if self.name == "key" { "with this key" } else { "from your address" };
        let message =
            format!("too many {what} {whose} (the limits of this gateway): try again in {seconds} s");
        ApiError::too_many_until(message, seconds)
    }

    fn readings(&self, who: &K, nodes: u64, now: Instant) -> Vec<LimitReading> {
        let (name, bytes_name) =
            if self.name == "key" { ("key", "key-bytes") } else { ("address", "address-bytes") };
        let policies = [
            self.limits.requests.map(|limit| (LimitPolicy { name, limit, unit: None }, &self.requests)),
            self.limits.bytes.map(|limit| {
                (LimitPolicy { name: bytes_name, limit, unit: Some("content-bytes") }, &self.bytes)
            }),
        ];
        let reading = |(policy, counts): (LimitPolicy, &WindowCounts<K>)| {
            let (used, resets_in) = counts.read(who, policy.limit.window, now);
            let left = share(policy.limit.quota, nodes).saturating_sub(used);
            LimitReading { policy, left, resets_in }
        };
        policies.into_iter().flatten().map(reading).collect()
    }
}

/// This node's share of a limit.
fn share(limit: NonZeroU64, nodes: u64) -> u64 {
    limit.get().div_ceil(nodes)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
