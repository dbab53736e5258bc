//! Exact decimal numbers.
//!
//! Amounts are never converted to binary fractions. A float is read in its shortest decimal form, which is
//! what its author wrote.

use minijinja::value::StringInput;
use minijinja::{Error, State, Value};

use super::refused;

const DIGITS_MAX: usize = 30;

/// A decimal number as its digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecimalAmount {
    pub(super) negative: bool,
    /// All digits, those after the point included.
    units: u128,
    /// The number of digits after the point.
    pub(super) places: usize,
}

impl DecimalAmount {
    pub(super) fn read(state: &State, value: &Value) -> Result<Self, Error> {
        let bad = || refused("an amount must be a number, or a text like \"-1234.50\"");
        if !value.is_number() && !value.is_undefined() && value.as_str().is_none() {
            return Err(bad());
        }
        let written = StringInput::new(state, value)?;
        Self::parse(written.as_str()).ok_or_else(bad)
    }

    pub(super) fn parse(written: &str) -> Option<Self> {
        let written = written.trim();
        let (negative, digits) = written.strip_prefix('-').map_or((false, written), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let readable = !whole.is_empty() && are_digits(whole) && are_digits(fraction);
        if !readable || whole.len() + fraction.len() > DIGITS_MAX {
            return None;
        }
        let units = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { negative, units, places: fraction.len() })
    }

    /// Rounds to `places` digits after the point, half away from zero.
    pub(super) fn round(self, places: usize) -> Option<Self> {
        let units = if places >= self.places {
            let factor = 10u128.checked_pow(u32::try_from(places - self.places).ok()?)?;
            self.units.checked_mul(factor)?
        } else {
            let divisor = 10u128.checked_pow(u32::try_from(self.places - places).ok()?)?;
            (self.units + divisor / 2) / divisor
        };
        Some(Self { negative: self.negative && units != 0, units, places })
    }

    /// The digits before and after the point.
    pub(super) fn digits(&self) -> (String, String) {
        let all = format!("{:0>width$}", self.units, width = self.places + 1);
        let (whole, fraction) = all.split_at(all.len() - self.places);
        (whole.to_owned(), fraction.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(written: &str, places: usize) -> String {
        let decimal = DecimalAmount::parse(written).unwrap().round(places).unwrap();
        let (whole, fraction) = decimal.digits();
        format!("{}{whole}.{fraction}", if decimal.negative { "-" } else { "" })
    }

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!(rounded("1.005", 2), "1.01", "as a float this would be 1.00");
        assert_eq!(rounded("-1.005", 2), "-1.01");
        assert_eq!(rounded("0.004", 2), "0.00");
        assert_eq!(rounded("-0.004", 2), "0.00");
        assert_eq!(rounded("7", 2), "7.00");
        assert_eq!(rounded("99999999999999999999.999", 2), "100000000000000000000.00");
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for written in ["", "-", ".5", "1e3", "1,5", "0x1", "NaN", "inf", "--1", "1.2.3", &"1".repeat(31)] {
            assert_eq!(DecimalAmount::parse(written), None, "{written}");
        }
    }
}
