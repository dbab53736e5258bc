//! Feeding parsers with broken input: seeds that are cut, spliced, repeated and sprinkled with words that parsers know.
//!
//! A target runs for `POSTWAY_FUZZ_SECONDS` (8 when absent). Every input follows from one number, which is printed when a
//! target fails: with it as `POSTWAY_FUZZ_SEED` the same input comes first.

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

/// Feeds `target` with what grows from these seeds and words until the time is over. Gives the number of inputs.
///
/// Panics where the target does, or takes too long, and says how to see it again.
pub fn feed(seeds: &[&[u8]], words: &[&[u8]], target: impl Fn(&[u8])) -> u64 {
    let seconds = number("POSTWAY_FUZZ_SECONDS").unwrap_or(8);
    let first = number("POSTWAY_FUZZ_SEED").unwrap_or_else(|| rand::rng().random());
    let ends_at = Instant::now() + Duration::from_secs(seconds);
    let mut inputs = 0;
    while Instant::now() < ends_at {
        let seed = first.wrapping_add(inputs);
        let input = grown(&mut StdRng::seed_from_u64(seed), seeds, words);
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

/// An input: a seed with some changes.
fn grown(random: &mut StdRng, seeds: &[&[u8]], words: &[&[u8]]) -> Vec<u8> {
    let mut input = pick(random, seeds).to_vec();
    for _ in 0..random.random_range(0..=CHANGES_MAX) {
        let at = random.random_range(0..=input.len());
        let length = random.random_range(0..=64_usize.min(input.len() - at));
        match random.random_range(0..9) {
            0 => drop(input.splice(at..at + length, pick(random, words).iter().copied())),
            1 => drop(input.splice(at..at, pick(random, words).iter().copied())),
            2 => drop(input.drain(at..at + length)),
            3 => input.truncate(at),
            4 => {
                let byte = random.random();
                input.insert(at, byte);
            }
            5 => {
                let other = pick(random, seeds);
                let from = random.random_range(0..=other.len());
                drop(input.splice(at..at, other[from..].iter().copied()));
            }
            6 => {
                let piece = input[at..at + length].to_vec();
                let times = random.random_range(1..=200);
                drop(input.splice(at..at, piece.repeat(times)));
            }
            7 => {
                let piece = pick(random, words).repeat(random.random_range(1..=500));
                drop(input.splice(at..at, piece));
            }
            _ => input[at..at + length].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1)),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

fn pick<'a>(random: &mut StdRng, of: &[&'a [u8]]) -> &'a [u8] {
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
        let grow = |seed| grown(&mut StdRng::seed_from_u64(seed), seeds, words);
        assert_eq!(grow(7), grow(7));
        assert!((0..50).any(|seed| grow(seed) != grow(seed + 1)));
    }

    #[test]
    fn a_target_that_fails_is_told_with_its_number() {
        let failed = catch_unwind(|| feed(&[b"x"], &[b"bad"], |input| assert!(input.len() < 40)));
        let told = failed.unwrap_err();
        assert!(told.downcast_ref::<String>().is_some_and(|text| text.contains("POSTWAY_FUZZ_SEED=")));
    }
}
