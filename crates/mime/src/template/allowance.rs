//! The allowance of a render, and the weights of values that are charged to it.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// The bytes that one part may make and write.
const ALLOWANCE: u64 = 16 * 1024 * 1024;
/// The maximum weight of one value that is made, written or read.
pub(super) const VALUE_MAX: u64 = 2 * 1024 * 1024;
/// The maximum weight of all variables together.
const VARIABLES_MAX: u64 = 8 * 1024 * 1024;
/// Reading a value costs this fraction of making it.
const READ_SHARE: u64 = 8;
/// The weight of a number, or of an entry of a list.
pub(super) const NODE: u64 = 32;
const VALUE_DEPTH_MAX: u32 = 150;

/// Filters whose result is a part of their input, or small, so that it is not charged.
pub(super) const SCALAR_FILTERS: [&str; 19] = [
    "abs", "attr", "bool", "count", "d", "date", "datetime", "default", "first", "float", "int", "last",
    "length", "max", "min", "money", "number", "round", "safe",
];

/// Why a render was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RenderBound {
    #[error("a value is too large: make lists and texts shorter")]
    Value,
    #[error("makes and writes too much: make lists, texts and loops shorter")]
    Allowance,
    #[error("a value is nested too deeply: use fewer levels")]
    Depth,
}

impl From<RenderBound> for Error {
    fn from(bound: RenderBound) -> Self {
        Error::new(ErrorKind::InvalidOperation, bound.to_string()).with_source(bound)
    }
}

/// The remaining allowance of a render.
struct RenderAllowance(u64);

/// Charges an amount to the allowance of the render.
pub(super) fn charge(state: &mut State, amount: u64) -> Result<(), Error> {
    let allowance = state.get_or_insert_extension_with(|| RenderAllowance(ALLOWANCE));
    allowance.0 = allowance.0.checked_sub(amount).ok_or(RenderBound::Allowance)?;
    Ok(())
}

/// The weight of a value in bytes, with everything in it counted as often as it appears. Stops at `most`.
pub(super) fn weigh(value: &Value, most: u64) -> Result<u64, RenderBound> {
    let mut weight = 0;
    let mut waiting = vec![(value.clone(), 1)];
    while let Some((value, depth)) = waiting.pop() {
        weight += NODE + value.as_str().map_or(0, |text| text.len() as u64);
        if depth > VALUE_DEPTH_MAX {
            return Err(RenderBound::Depth);
        }
        let is_map = value.kind() == ValueKind::Map;
        if is_map || matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
            for item in value.try_iter().into_iter().flatten() {
                if is_map && let Ok(under) = value.get_item(&item) {
                    waiting.push((under, depth + 1));
                }
                waiting.push((item, depth + 1));
                if weight + waiting.len() as u64 * NODE > most {
                    return Err(RenderBound::Value);
                }
            }
        }
        if weight > most {
            return Err(RenderBound::Value);
        }
    }
    Ok(weight)
}

/// Refuses variables that are too large for a render.
pub(super) fn check_variables(variables: &Value) -> Result<(), RenderBound> {
    weigh(variables, VARIABLES_MAX).map(drop)
}

/// Charges a value to the allowance. A lazy value is evaluated now, so that lazy values cannot nest.
pub(super) fn within(state: &mut State, value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Bool | ValueKind::Number => Ok(value),
        kind => {
            charge(state, weigh(&value, VALUE_MAX)?)?;
            let lazy = kind == ValueKind::Iterable;
            Ok(if lazy { value.try_iter()?.collect::<Vec<_>>().into() } else { value })
        }
    }
}

/// Charges the cost of reading a value once.
pub(super) fn read(state: &mut State, value: Value) -> Result<Value, Error> {
    if !matches!(value.kind(), ValueKind::Undefined | ValueKind::None | ValueKind::Bool | ValueKind::Number) {
        charge(state, weigh(&value, VALUE_MAX)? / READ_SHARE)?;
    }
    Ok(value)
}
