//! Bounded versions of the engine's filters and functions whose output can be much larger than their input:
//! the size is checked first.
//!
//! The others return at most a small multiple of their input, which `_read` and `_within` charge.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Rest, StringInput, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions};

use super::allowance::{NODE, RenderBound, SCALAR_FILTERS, VALUE_MAX, charge, weigh, within};

const RANGE_MAX: usize = 10_000;
const GROUPS_MAX: usize = 1_000;
const TOGETHER_MAX: usize = 8;
const INDENT_MAX: usize = 100;
/// Filters that `map` may apply to each item, besides the scalar ones.
const MAPPED_FILTERS: [&str; 9] =
    ["capitalize", "e", "escape", "lower", "string", "title", "trim", "upper", "urlencode"];

pub(super) fn add_bounded(environment: &mut Environment<'static>) {
    environment.add_function("range", range);
    environment.add_function("dict", dict);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("chain", chain);
    environment.add_filter("zip", zip);
    environment.add_filter("indent", indent);
    environment.add_filter("join", join);
    environment.add_filter("map", map);
    environment.add_filter("replace", replace);
    environment.add_filter("select", select);
    environment.add_filter("reject", reject);
    environment.add_filter("selectattr", selectattr);
    environment.add_filter("rejectattr", rejectattr);
    environment.add_filter("tojson", tojson);
}

fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    let (first, last) = upper.map_or((0, lower), |upper| (lower, upper));
    let step_size = step.unwrap_or(1).unsigned_abs().max(1);
    if first.abs_diff(last) / step_size > RANGE_MAX {
        let message = format!("a range can have {RANGE_MAX} numbers at most");
        return Err(Error::new(ErrorKind::InvalidOperation, message).with_source(RenderBound::Value));
    }
    functions::range(lower, upper, step)
}

fn dict(state: &mut State, value: Option<Value>, update: Kwargs) -> Result<Value, Error> {
    within(state, functions::dict(value, update)?)
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), Error> {
    if count > most {
        let message = format!("{what} takes {most} at most, not {count}");
        return Err(Error::new(ErrorKind::InvalidOperation, message).with_source(RenderBound::Value));
    }
    Ok(())
}

fn batch(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    at_most("batch", count, GROUPS_MAX)?;
    filters::batch(state, value, count, fill)
}

fn slice(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    at_most("slice", count, GROUPS_MAX)?;
    filters::slice(state, value, count, fill)
}

fn chain(state: &State, value: Value, others: Rest<Value>) -> Result<Value, Error> {
    at_most("chain", others.len(), TOGETHER_MAX)?;
    filters::chain(state, value, others)
}

fn zip(state: &State, value: Value, others: Rest<Value>) -> Result<Value, Error> {
    at_most("zip", others.len(), TOGETHER_MAX)?;
    filters::zip(state, value, others)
}

fn indent(
    state: &mut State,
    value: Value,
    width: Option<usize>,
    first: Option<bool>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let columns = match width {
        Some(width) => width,
        None => kwargs.get::<Option<usize>>("width")?.unwrap_or(0),
    };
    at_most("indent", columns, INDENT_MAX)?;
    let text = StringInput::new(state, &value)?;
    let lines = text.as_str().matches('\n').count() as u64 + 1;
    charge(state, lines * columns as u64)?;
    filters::indent(text, width, first, None, kwargs)
}

fn join(
    state: &mut State,
    value: &Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let between = match &joiner {
        Some(joiner) => joiner.as_str().len(),
        None => kwargs.get::<Option<&str>>("d")?.map_or(0, str::len),
    };
    let items = value.try_iter().map_or(0, |items| items.count());
    charge(state, weigh(value, VALUE_MAX)? + items as u64 * between as u64)?;
    filters::join(state, value, joiner, attribute, kwargs)
}

fn map(state: &mut State, value: Value, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let named = arguments.first().map(|first| Value::from(first.clone()));
    if let Some(name) = named.as_ref().and_then(Value::as_str)
        && !SCALAR_FILTERS.contains(&name)
        && !MAPPED_FILTERS.contains(&name)
    {
        let message = format!("map cannot apply {name}: use a loop");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    filters::map(state, value, arguments).map(Value::from)
}

fn replace(state: &mut State, value: Value, from: Value, to: Value) -> Result<Value, Error> {
    let inputs =
        (StringInput::new(state, &value)?, StringInput::new(state, &from)?, StringInput::new(state, &to)?);
    let (value, from, to) = inputs;
    let found = value.as_str().matches(from.as_str()).count();
    charge(state, (value.as_str().len() + found * to.as_str().len()) as u64)?;
    filters::replace(state, value, from, to)
}

fn tojson(value: &Value) -> Result<Value, Error> {
    filters::tojson(value, None, Kwargs::from_iter(std::iter::empty::<(&str, Value)>()))
}

/// Charges the arguments of a test, which may be read once for each item.
fn charge_each(state: &mut State, value: &Value, arguments: &[ValueOrKwargs]) -> Result<(), Error> {
    let items = value.try_iter().map_or(0, |items| items.count()) as u64;
    for argument in arguments {
        let weight = weigh(&Value::from(argument.clone()), VALUE_MAX)?;
        charge(state, items.saturating_mul(weight / NODE))?;
    }
    Ok(())
}

type Test<'a> = Option<Cow<'a, str>>;
type Selected = Result<Vec<Value>, Error>;

fn select(state: &mut State, value: Value, test: Test<'_>, arguments: Rest<ValueOrKwargs>) -> Selected {
    charge_each(state, &value, &arguments)?;
    filters::select(state, value, test, arguments)
}

fn reject(state: &mut State, value: Value, test: Test<'_>, arguments: Rest<ValueOrKwargs>) -> Selected {
    charge_each(state, &value, &arguments)?;
    filters::reject(state, value, test, arguments)
}

fn selectattr(
    state: &mut State,
    value: Value,
    attribute: Cow<'_, str>,
    test: Test<'_>,
    arguments: Rest<ValueOrKwargs>,
) -> Selected {
    charge_each(state, &value, &arguments)?;
    filters::selectattr(state, value, attribute, test, arguments)
}

fn rejectattr(
    state: &mut State,
    value: Value,
    attribute: Cow<'_, str>,
    test: Test<'_>,
    arguments: Rest<ValueOrKwargs>,
) -> Selected {
    charge_each(state, &value, &arguments)?;
    filters::rejectattr(state, value, attribute, test, arguments)
}
