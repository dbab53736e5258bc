//! Feeding parsers with input that is made to break them.
//!
//! Two ways to make inputs: [`Grown`] cuts, splices and repeats seeds and sprinkles them with words that a parser knows, and
//! a generator that knows the structure, such as [`mail::HostileMail`], builds what a stranger with bad intentions would.
//!
//! A target runs for `POSTWAY_FUZZ_SECONDS` (8 when absent; any number for a run by hand). Every input follows from one
//! number, which is printed when a target fails: with it as `POSTWAY_FUZZ_SEED` the same input comes first. A target that
//! ends the process (a stack that overflows) cannot be caught: `POSTWAY_FUZZ_TRACE=1` prints each number before its input.

pub mod mail;

pub mod imap;

pub mod smtp;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

/// The longest input that is made.
const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Changes to one input, at most.
const CHANGES_MAX: usize = 24;
/// An input of this size may take no longer, on a busy machine: what is not linear takes minutes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes inputs of one kind, each from a source of chance.
pub trait InputGenerator {
    /// One input.
    fn input(&self, random: &mut StdRng) -> Vec<u8>;
}

/// Inputs that grow from seeds by changes.
pub struct Grown<'a> {
    /// What they begin as.
    pub seeds: &'a [&'a [u8]],
    /// What is strewn into them.
    pub words: &'a [&'a [u8]],
}

impl InputGenerator for Grown<'_> {
    fn input(&self, random: &mut StdRng) -> Vec<u8> {
        let mut input = pick(random, self.seeds).to_vec();
        let changes = random.random_range(0..=CHANGES_MAX);
        self.change(random, &mut input, changes);
        input
    }
}

/// Feeds `target` with what grows from these seeds and words until the time is over. Gives the number of inputs.
pub fn feed(seeds: &[&[u8]], words: &[&[u8]], target: impl Fn(&[u8])) -> u64 {
    feed_from(&Grown { seeds, words }, target)
}

/// Feeds `target` from a generator until the time is over. Gives the number of inputs.
///
/// Panics where the target does, or takes too long, and says how to see it again.
pub fn feed_from(generator: &impl InputGenerator, target: impl Fn(&[u8])) -> u64 {
    let seconds = number("POSTWAY_FUZZ_SECONDS").unwrap_or(8);
    let first = number("POSTWAY_FUZZ_SEED").unwrap_or_else(|| rand::rng().random());
    let traced = number("POSTWAY_FUZZ_TRACE").is_some();
    let ends_at = Instant::now() + Duration::from_secs(seconds);
    let mut inputs = 0;
    while Instant::now() < ends_at {
        let seed = first.wrapping_add(inputs);
        if traced {
            eprintln!("POSTWAY_FUZZ_SEED={seed}");
        }
        let mut input = generator.input(&mut StdRng::seed_from_u64(seed));
        input.truncate(INPUT_BYTES_MAX);
        let started = Instant::now();
        let fed = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = started.elapsed();
        assert!(
            fed.is_ok() && took < PATIENCE,
            "input {inputs} of {} bytes failed after {took:?}; again with POSTWAY_FUZZ_SEED={seed}",
            input.len()
        );
        inputs += 1;
    }
    inputs
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

impl Grown<'_> {
    /// Changes an input here and there.
    pub(crate) fn change(&self, random: &mut StdRng, input: &mut Vec<u8>, changes: usize) {
        for _ in 0..changes {
            let at = random.random_range(0..=input.len());
            let length = random.random_range(0..=64_usize.min(input.len() - at));
            match random.random_range(0..9) {
                0 => drop(input.splice(at..at + length, pick(random, self.words).iter().copied())),
                1 => drop(input.splice(at..at, pick(random, self.words).iter().copied())),
                2 => drop(input.drain(at..at + length)),
                3 => input.truncate(at),
                4 => {
                    let byte = random.random();
                    input.insert(at, byte);
                }
                5 => {
                    let other = pick(random, self.seeds);
                    let from = random.random_range(0..=other.len());
                    drop(input.splice(at..at, other[from..].iter().copied()));
                }
                6 => {
                    let piece = input[at..at + length].to_vec();
                    let times = random.random_range(1..=200);
                    drop(input.splice(at..at, piece.repeat(times)));
                }
                7 => {
                    let piece = pick(random, self.words).repeat(random.random_range(1..=500));
                    drop(input.splice(at..at, piece));
                }
                _ => input[at..at + length].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1)),
            }
            input.truncate(INPUT_BYTES_MAX);
        }
    }
}

/// One of them; nothing where there is none.
pub(crate) fn pick<'a>(random: &mut StdRng, of: &[&'a [u8]]) -> &'a [u8] {
    match of.len() {
        0 => &[],
        count => of[random.random_range(0..count)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_grows_the_same_input() {
        let (seeds, words): (&[&[u8]], &[&[u8]]) = (&[b"one two", b"three"], &[b"word"]);
        let grow = |seed| Grown { seeds, words }.input(&mut StdRng::seed_from_u64(seed));
        assert_eq!(grow(7), grow(7));
        assert!((0..50).any(|seed| grow(seed) != grow(seed + 1)));
        let build = |seed| mail::HostileMail.input(&mut StdRng::seed_from_u64(seed));
        assert_eq!(build(7), build(7));
        assert!((0..50).any(|seed| build(seed) != build(seed + 1)));
    }

    #[test]
    fn a_target_that_fails_is_told_with_its_number() {
        let failed = catch_unwind(|| feed(&[b"x"], &[b"bad"], |input| assert!(input.len() < 40)));
        let told = failed.unwrap_err();
        assert!(told.downcast_ref::<String>().is_some_and(|text| text.contains("POSTWAY_FUZZ_SEED=")));
    }
}
