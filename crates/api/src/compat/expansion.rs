//! Calls of which each becomes several messages: their memory, and that all of them are accepted or none.

use axum::http::request::Parts;
use bytes::Bytes;
use postway_intake::{AcceptReceipt, BatchReceipt, RequestContext};

use crate::{
    http::{
        body_budget::RequestShare,
        error::{ApiError, FieldError},
    },
    message::submit::batch,
    state::AppState,
};

/// The most faults that are collected of one call.
const FAULTS_MAX: usize = 100;

/// The memory for the messages that one call becomes. What they have in common is written once for each of
/// them, so a small call may become much.
pub(super) struct ExpansionBudget<'a> {
    share: Option<&'a RequestShare>,
    /// The bytes of the call itself.
    body: usize,
    used: usize,
    bytes_max: usize,
}

impl<'a> ExpansionBudget<'a> {
    /// The budget of a call with a body of this many bytes: as much again as any body may have.
    pub(super) fn new(app: &AppState, parts: &'a Parts, body: usize) -> Self {
        let share = parts.extensions.get::<RequestShare>();
        Self { share, body, used: 0, bytes_max: app.door.limits().request_bytes_max }
    }

    /// A budget without a share of the memory, for tests.
    #[cfg(test)]
    pub(super) fn of(bytes_max: usize) -> Self {
        Self { share: None, body: 0, used: 0, bytes_max }
    }

    /// How many bytes more there may be.
    pub(super) fn left(&self) -> usize {
        self.bytes_max - self.used
    }

    /// Takes this many bytes, before they are written.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        if bytes > self.left() {
            return Err(self.too_large());
        }
        self.used += bytes;
        match self.share.is_none_or(|share| share.cover(self.body + self.used)) {
            true => Ok(()),
            false => {
                Err(ApiError::busy("too much is being handed over at once; nothing was done, try again"))
            }
        }
    }

    /// The refusal of a call that becomes too much.
    pub(super) fn too_large(&self) -> ApiError {
        let max = self.bytes_max;
        ApiError::too_large(format!(
            "the mails that this call becomes have more than {max} bytes together (http.max_request_bytes): \
             name fewer recipients in one call"
        ))
    }
}

/// Accepts all messages or none of them; under a trial all are only checked. `name` says how this API names a
/// field of ours, given the message's index.
pub(super) async fn take_all(
    app: &AppState,
    context: &RequestContext,
    messages: Vec<Bytes>,
    name: impl Fn(usize, &str) -> String,
) -> Result<Vec<AcceptReceipt>, ApiError> {
    let taken = match context.dry_run {
        true => batch::take_each(app, context, messages).await,
        false => batch::take_whole(app, context, messages).await,
    };
    let BatchReceipt { results, .. } = taken.map_err(|error| error.renamed(|path| name(0, path)))?;
    let (mut receipts, mut faults) = (Vec::with_capacity(results.len()), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(receipt) => receipts.push(receipt),
            Err(rejected) => {
                let error = ApiError::from(rejected.refusal).renamed(|path| name(index, path));
                if error.details().is_empty() {
                    // Too large, or the store does not answer: that is not a fault of a field.
                    return Err(error);
                }
                let left = FAULTS_MAX - faults.len();
                faults.extend(error.details().iter().take(left).cloned());
            }
        }
    }
    match faults.is_empty() {
        true => Ok(receipts),
        false => Err(ApiError::invalid(without_repeats(faults))),
    }
}

/// What all messages of a call have in common is faulty in each of them, and is named once.
fn without_repeats(faults: Vec<FieldError>) -> Vec<FieldError> {
    let mut unique: Vec<FieldError> = Vec::with_capacity(faults.len());
    for fault in faults {
        if !unique.contains(&fault) {
            unique.push(fault);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_once() {
        let mut budget = ExpansionBudget::of(10);
        assert!(
            budget.take(6).is_ok() && budget.take(5).is_err() && budget.left() == 4 && budget.take(4).is_ok()
        );
        assert_eq!(budget.take(1).err().map(|error| error.status().as_u16()), Some(413));
    }

    #[test]
    fn a_fault_of_all_is_told_once() {
        let fault = |field: &str| FieldError::new(field, "no");
        let told = without_repeats(vec![fault("from"), fault("to.0"), fault("from")]);
        assert_eq!(told, [fault("from"), fault("to.0")]);
    }
}
