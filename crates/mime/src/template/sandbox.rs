//! The engine with everything bounded: what values weigh, and what a render may use up.
//!
//! Each render has an allowance. Whatever grows is weighed when it is made (`_within`, put there by `instrument`) and
//! taken off it, and so is every value that is written, into the output or into a captured block. So the memory of a
//! render is a small multiple of the allowance, and its time is bounded by fuel times the largest value.
//!
//! `namespace` is gone, as the only value that can be changed: without it values form no circles. `debug`, `format` and
//! `pprint` are gone, as ways to much output from little.

use std::sync::LazyLock;

use minijinja::value::{StringInput, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter,
};

use super::instrument::InstrumentedSource;
use super::source::TemplatePart;
use super::{TemplateErrorKind as Kind, TemplateFault, builtin, filter, mustachio};

/// Instructions of one part.
const FUEL: u64 = 150_000;
/// What one part may make and write, in bytes.
const ALLOWANCE: u64 = 16 * 1024 * 1024;
/// What one value may weigh that is made, written or read as a whole.
pub(super) const VALUE_MAX: u64 = 2 * 1024 * 1024;
/// What all variables together may weigh.
const VARIABLES_MAX: u64 = 8 * 1024 * 1024;
/// Reading a value costs less than making it.
const READ_SHARE: u64 = 8;
/// What a number, or the place in a list, counts for.
pub(super) const NODE: u64 = 32;
const VALUE_DEPTH_MAX: u32 = 150;
/// Of the engine's units: a block or loop takes one, a macro four, an include ten. A unit may take 15 KB of stack.
const RECURSION_MAX: usize = 70;

pub(super) const REMOVED_FUNCTIONS: [&str; 2] = ["namespace", "debug"];
const REMOVED_FILTERS: [&str; 2] = ["format", "pprint"];

/// Filters whose result is a part of what went in, or small.
pub(super) const SCALAR_FILTERS: [&str; 19] = [
    "abs", "attr", "bool", "count", "d", "date", "datetime", "default", "first", "float", "int", "last",
    "length", "max", "min", "money", "number", "round", "safe",
];
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(build);

/// An environment without templates.
pub(super) fn environment() -> Environment<'static> {
    ENVIRONMENT.clone()
}

fn build() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Only with this does the engine know the name of an undefined value.
    environment.set_debug(true);
    environment.set_formatter(write);
    environment.set_auto_escape_callback(|name| {
        match name.rsplit_once('.').and_then(|(_, part)| TemplatePart::named(part)) {
            Some(TemplatePart::Subject | TemplatePart::Text) => AutoEscape::None,
            Some(TemplatePart::Html | TemplatePart::Mjml) | None => AutoEscape::Html,
        }
    });
    environment.set_path_join_callback(|name, parent| {
        let part = parent.rsplit_once('.').map_or(parent, |(_, part)| part);
        format!("{name}.{part}").into()
    });
    REMOVED_FUNCTIONS.iter().for_each(|name| environment.remove_global(name));
    REMOVED_FILTERS.iter().for_each(|name| environment.remove_filter(name));
    environment.add_filter("_within", within);
    environment.add_filter("_read", read);
    environment.add_function("_times", times);
    builtin::add_bounded(&mut environment);
    filter::add_filters(&mut environment);
    mustachio::add_functions(&mut environment);
    environment
}

pub(super) fn has_filter(name: &str) -> bool {
    let applied = ENVIRONMENT.empty_state().apply_filter(name, &[]);
    !matches!(applied, Err(error) if error.kind() == ErrorKind::UnknownFilter)
}

pub(super) fn has_test(name: &str) -> bool {
    let performed = ENVIRONMENT.empty_state().perform_test(name, &[]);
    !matches!(performed, Err(error) if error.kind() == ErrorKind::UnknownTest)
}

/// Whether the engine takes a part, other templates aside.
pub(super) fn compiles(part: &InstrumentedSource) -> Result<(), TemplateFault> {
    ENVIRONMENT.template_from_str(&part.source).map(drop).map_err(|error| TemplateFault::from_engine(&error))
}

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

impl RenderBound {
    pub(super) fn kind(self) -> Kind {
        match self {
            RenderBound::Value | RenderBound::Allowance => Kind::TooLarge,
            RenderBound::Depth => Kind::TooDeep,
        }
    }
}

impl From<RenderBound> for Error {
    fn from(bound: RenderBound) -> Self {
        Error::new(ErrorKind::InvalidOperation, bound.to_string()).with_source(bound)
    }
}

/// What a render has left.
struct RenderAllowance(u64);

/// Takes an amount off what the render has left.
pub(super) fn charge(state: &mut State, amount: u64) -> Result<(), Error> {
    let allowance = state.get_or_insert_extension_with(|| RenderAllowance(ALLOWANCE));
    allowance.0 = allowance.0.checked_sub(amount).ok_or(RenderBound::Allowance)?;
    Ok(())
}

/// The bytes a value would fill, everything in it counted as often as it appears. Reads no further than the bound.
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

/// Refuses more variables than a render can take.
pub(super) fn check_variables(variables: &Value) -> Result<(), RenderBound> {
    weigh(variables, VARIABLES_MAX).map(drop)
}

/// Takes a value off the allowance; what is lazy is made now, so that it cannot stack up.
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

/// Takes off what it costs to go through a value once.
fn read(state: &mut State, value: Value) -> Result<Value, Error> {
    if !matches!(value.kind(), ValueKind::Undefined | ValueKind::None | ValueKind::Bool | ValueKind::Number) {
        charge(state, weigh(&value, VALUE_MAX)? / READ_SHARE)?;
    }
    Ok(value)
}

fn write(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let weight = match value.as_str() {
        Some(text) => text.len() as u64,
        None if value.kind() == ValueKind::Number => NODE,
        None => weigh(value, VALUE_MAX)?,
    };
    charge(state, weight)?;
    escape_formatter(out, state, value)
}

/// `*`, for numbers only: repeating a text is a way to much from little.
fn times(state: &State, left: Value, right: Value) -> Result<Value, Error> {
    for side in [&left, &right] {
        if side.is_undefined() {
            // Fails, with the name of the variable.
            StringInput::new(state, side)?;
        }
    }
    if !left.is_number() || !right.is_number() {
        let message = format!("only numbers can be multiplied, not {} and {}", left.kind(), right.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    if left.is_integer() && right.is_integer() {
        let product = i128::try_from(left)?.checked_mul(i128::try_from(right)?);
        let product =
            product.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "a product is too large"))?;
        return Ok(i64::try_from(product).map_or_else(|_| Value::from(product), Value::from));
    }
    Ok(Value::from(f64::try_from(left)? * f64::try_from(right)?))
}
