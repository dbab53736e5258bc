//! The filters `money` and `number`, which format amounts for a language.
//!
//! There are five languages, with the separators and the symbol position of CLDR. Other locales are an error
//! rather than a guess.

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Error, State, Value};

use super::decimal::DecimalAmount;
use super::{FilterArguments, refused};

const NO_BREAK: char = '\u{a0}';
const NARROW_NO_BREAK: char = '\u{202f}';
const DECIMALS_MAX: usize = 10;

struct NumberLocale {
    group: char,
    point: char,
    symbol_first: bool,
    /// The minimum number of digits before the point for the first separator.
    grouped_from: usize,
}

impl NumberLocale {
    /// Finds a locale; the default is English. Of `de-AT` only the language counts.
    fn find(name: Option<String>) -> Result<Self, Error> {
        let name = name.unwrap_or_else(|| "en".to_owned());
        let language = name.split(['-', '_']).next().unwrap_or_default();
        let (group, point, symbol_first, grouped_from) = match language.to_ascii_lowercase().as_str() {
            "en" => (',', '.', true, 4),
            "de" | "it" => ('.', ',', false, 4),
            "es" => ('.', ',', false, 5),
            "fr" => (NARROW_NO_BREAK, ',', false, 4),
            _ => return Err(refused(format!("there is no locale \"{name}\": use en, de, fr, it or es"))),
        };
        Ok(Self { group, point, symbol_first, grouped_from })
    }

    fn show(&self, amount: &DecimalAmount) -> String {
        let (whole, fraction) = amount.digits();
        let mut shown = String::new();
        for (at, digit) in whole.chars().enumerate() {
            let left = whole.len() - at;
            if at > 0 && left % 3 == 0 && whole.len() >= self.grouped_from {
                shown.push(self.group);
            }
            shown.push(digit);
        }
        if !fraction.is_empty() {
            shown.push(self.point);
            shown.push_str(&fraction);
        }
        shown
    }
}

/// `{{ total|money("EUR", "de") }}`: rounded to the decimals of the currency.
pub(super) fn money(state: &State, value: Value, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let mut arguments = FilterArguments::read(state, given, ["currency", "locale"])?;
    let currency =
        arguments.text(0)?.ok_or_else(|| refused("money needs a currency: write money(\"EUR\")"))?;
    let locale = NumberLocale::find(arguments.text(1)?)?;
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(refused(format!("\"{currency}\" is no currency: write three capitals like EUR")));
    }
    let amount = round(DecimalAmount::read(state, &value)?, decimals(&currency))?;
    let sign = if amount.negative { "-" } else { "" };
    let number = locale.show(&amount);
    let symbol = symbol(&currency);
    Ok(match (locale.symbol_first, symbol.len() == 3 && symbol == currency) {
        (true, true) => format!("{sign}{symbol}{NO_BREAK}{number}"),
        (true, false) => format!("{sign}{symbol}{number}"),
        (false, _) => format!("{sign}{number}{NO_BREAK}{symbol}"),
    })
}

/// `{{ count|number }}`, `{{ share|number(1, "fr") }}`: with the given number of decimals, or those that the
/// number has.
pub(super) fn number(state: &State, value: Value, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let mut arguments = FilterArguments::read(state, given, ["decimals", "locale"])?;
    let (decimals, locale) = (arguments.take(0), NumberLocale::find(arguments.text(1)?)?);
    let mut amount = DecimalAmount::read(state, &value)?;
    if let Some(decimals) = decimals {
        let places = usize::try_from(decimals).ok().filter(|&places| places <= DECIMALS_MAX);
        let places = places.ok_or_else(|| refused(format!("decimals must be 0 to {DECIMALS_MAX}")))?;
        amount = round(amount, places)?;
    }
    let sign = if amount.negative { "-" } else { "" };
    Ok(format!("{sign}{}", locale.show(&amount)))
}

fn round(amount: DecimalAmount, places: usize) -> Result<DecimalAmount, Error> {
    amount.round(places).ok_or_else(|| refused("an amount has too many digits"))
}

/// The digits after the point that a currency has (ISO 4217).
fn decimals(currency: &str) -> usize {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "UYI"
        | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

fn symbol(currency: &str) -> &str {
    match currency {
        "EUR" => "€",
        "USD" => "$",
        "GBP" => "£",
        "JPY" => "¥",
        "INR" => "₹",
        code => code,
    }
}
