//! Feeds parsers with input that is made to break them.
//!
//! Two ways to make inputs: [`Grown`] cuts, splices and repeats seeds and sprinkles them with words that a
//! parser knows, and a generator that knows the structure, such as [`mail::HostileMail`], builds what a
//! stranger with bad intentions would.
//!
//! A target runs for `POSTWAY_FUZZ_SECONDS` (5 when absent; any number for a run by hand). Every input
//! follows from one number, its seed, which is printed when a target fails: with it as `POSTWAY_FUZZ_SEED`
//! the same input comes first. A target that ends the process (a stack that overflows) cannot be caught:
//! `POSTWAY_FUZZ_TRACE=1` prints each seed before its input.

pub mod imap;
pub mod mail;
pub mod smtp;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use rustix::time::{ClockId, clock_gettime};

/// How long a target runs when `POSTWAY_FUZZ_SECONDS` does not say.
const SECONDS_DEFAULT: u64 = 5;
/// The longest input that is made.
const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Changes to one input, at most.
const CHANGES_MAX: usize = 24;
/// An input of this size may take no more of a processor: what is not linear takes minutes. Time on the clock
/// would say how busy the machine is.
const PROCESSOR_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest time that a trial may take on the clock, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Makes inputs of one kind, each from a source of chance.
pub trait InputGenerator {
    /// One input.
    fn input(&self, random: &mut StdRng) -> Vec<u8>;
}

/// Inputs that grow from seeds by changes.
pub struct Grown<'a> {
    /// The seeds.
    pub seeds: &'a [&'a [u8]],
    /// The words that are inserted.
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

/// Feeds `target` with what grows from these seeds and words until the time is over. Gives the number of
/// inputs.
pub fn feed(seeds: &[&[u8]], words: &[&[u8]], target: impl Fn(&[u8])) -> u64 {
    feed_from(&Grown { seeds, words }, target)
}

/// Feeds `target` from a generator until the time is over. Gives the number of inputs.
pub fn feed_from(generator: &impl InputGenerator, target: impl Fn(&[u8])) -> u64 {
    try_seeds(|random| {
        let mut input = generator.input(random);
        input.truncate(INPUT_BYTES_MAX);
        target(&input);
    })
}

/// Tries one seed after the other until the time is over. Gives the number of trials.
///
/// Panics where a trial does, or takes too long, and says how to see it again. Without a time of its own it
/// begins with the same seed each time: what is fed in `./test` changes with the code, not from run to run.
pub fn try_seeds(trial: impl Fn(&mut StdRng)) -> u64 {
    let seconds = number("POSTWAY_FUZZ_SECONDS");
    let by_hand = || seconds.map_or(0, |_| rand::rng().random());
    let first = number("POSTWAY_FUZZ_SEED").unwrap_or_else(by_hand);
    let traced = number("POSTWAY_FUZZ_TRACE").is_some();
    let ends_at = Instant::now() + Duration::from_secs(seconds.unwrap_or(SECONDS_DEFAULT));
    let (mut trials, began) = (0, processor_time());
    while Instant::now() < ends_at {
        let seed = first.wrapping_add(trials);
        if traced {
            eprintln!("POSTWAY_FUZZ_SEED={seed}");
        }
        let (started, worked) = (Instant::now(), processor_time());
        let tried = catch_unwind(AssertUnwindSafe(|| trial(&mut StdRng::seed_from_u64(seed))));
        let (took, worked) = (started.elapsed(), processor_time() - worked);
        assert!(
            tried.is_ok() && worked < PROCESSOR_TIME_MAX && took < PATIENCE,
            "trial {trials} failed after {took:?}, {worked:?} of them at work; again with POSTWAY_FUZZ_SEED={seed}"
        );
        trials += 1;
    }
    let worked = (processor_time() - began).as_secs();
    println!(
        "{trials} inputs in {worked} s of a processor, the first of them from POSTWAY_FUZZ_SEED={first}"
    );
    trials
}

/// What this thread has had of a processor: all that a trial does is done in its thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
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

/// One of the items; an empty slice if there are none.
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
