//! Filters for dates and amounts of money.
//!
//! They take JSON values, never guess, and fail with a message that names the expected form.

mod date;
mod decimal;
mod money;

use minijinja::value::{Kwargs, Rest, StringInput, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};

pub(super) fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("date", date::date);
    environment.add_filter("datetime", date::datetime);
    environment.add_filter("money", money::money);
    environment.add_filter("number", money::number);
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// The arguments of a filter besides its value, by position or by name.
struct FilterArguments<const N: usize>([Option<Value>; N]);

impl<const N: usize> FilterArguments<N> {
    /// Reads the arguments. `none` counts as absent; undefined is an error that names the variable.
    fn read(state: &State, given: Rest<ValueOrKwargs>, names: [&str; N]) -> Result<Self, Error> {
        let given = given.into_values();
        let (places, kwargs): (&[Value], Kwargs) = from_args(&given)?;
        if places.len() > N {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let mut arguments = [const { None }; N];
        for (at, name) in names.into_iter().enumerate() {
            let value = match places.get(at) {
                Some(value) => Some(value.clone()),
                None if kwargs.has(name) => Some(kwargs.get::<Value>(name)?),
                None => None,
            };
            if let Some(value) = &value {
                defined(state, value)?;
            }
            arguments[at] = value.filter(|value| !value.is_none());
        }
        kwargs.assert_all_used()?;
        Ok(Self(arguments))
    }

    fn take(&mut self, at: usize) -> Option<Value> {
        self.0[at].take()
    }

    fn text(&mut self, at: usize) -> Result<Option<String>, Error> {
        let as_text = |value: Value| value.as_str().map(str::to_owned).ok_or_else(|| not_text(&value));
        self.take(at).map(as_text).transpose()
    }
}

fn not_text(value: &Value) -> Error {
    refused(format!("expected a text, not {}", value.kind()))
}

fn defined(state: &State, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        // This fails with the name of the variable.
        StringInput::new(state, value)?;
    }
    Ok(())
}
