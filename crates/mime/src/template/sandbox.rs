//! The engine, set up so that every render is bounded.
//!
//! Each render has an allowance (see `allowance`). A value that can grow is run_heavy when it is made
//! (`_within`, inserted by `instrument`) and charged to the allowance, and so is every value that is written
//! to the output or to a captured block. So the memory of a render is a small multiple of the allowance, and
//! its time is bounded by fuel times the largest value.
//!
//! `namespace` is removed because it is the only mutable value: without it values cannot form cycles.
//! `debug`, `format` and `pprint` are removed because they make much output from little input.

use std::sync::LazyLock;

use minijinja::value::{StringInput, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter,
};

use super::allowance::{NODE, VALUE_MAX, charge, read, weigh, within};
use super::part::TemplatePart;
use super::{TemplateFault, builtin, filter, mustachio};

/// The maximum number of instructions of one part.
const FUEL: u64 = 150_000;
/// The maximum recursion in the engine's units: a block or loop takes one, a macro four, an include ten. A
/// unit may take 15 KB of stack.
const RECURSION_MAX: usize = 70;

pub(super) const REMOVED_FUNCTIONS: [&str; 2] = ["namespace", "debug"];
const REMOVED_FILTERS: [&str; 2] = ["format", "pprint"];

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
pub(super) fn check_compiles(source: &str) -> Result<(), TemplateFault> {
    ENVIRONMENT.template_from_str(source).map(drop).map_err(|error| TemplateFault::from_engine(&error))
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
