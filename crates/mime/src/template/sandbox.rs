//! The engine with bounds: the weights of values, and the allowance of a render.
//!
//! Each render has an allowance. A value that can grow is weighed when it is made (`_within`, inserted by
//! `instrument`) and charged to the allowance, and so is every value that is written to the output or to a
//! captured block. So the memory of a render is a small multiple of the allowance, and its time is bounded by
//! fuel times the largest value.
//!
//! `namespace` is removed because it is the only mutable value: without it values cannot form cycles.
//! `debug`, `format` and `pprint` are removed because they make much output from little input.

use std::sync::LazyLock;

use minijinja::value::{StringInput, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter,
};

use super::instrument::InstrumentedSource;
use super::source::TemplatePart;
use super::{TemplateErrorKind as Kind, TemplateFault, builtin, filter, mustachio};

/// The maximum number of instructions of one part.
const FUEL: u64 = 150_000;
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
/// The maximum recursion in the engine's units: a block or loop takes one, a macro four, an include ten. A
/// unit may take 15 KB of stack.
const RECURSION_MAX: usize = 70;

pub(super) const REMOVED_FUNCTIONS: [&str; 2] = ["namespace", "debug"];
const REMOVED_FILTERS: [&str; 2] = ["format", "pprint"];

/// Filters whose result is a part of their input, or small.
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
    // Without this the engine does not know the name of an undefined value.
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

/// Checks that the engine compiles a part, without other templates.
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

/// `*`, for numbers only: repeating a text would make much output from little input.
fn times(state: &State, left: Value, right: Value) -> Result<Value, Error> {
    for side in [&left, &right] {
        if side.is_undefined() {
            // This fails with the name of the variable.
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
