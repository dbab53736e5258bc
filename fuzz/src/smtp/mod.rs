//! SMTP from both sides: clients that mean harm for the receiver, and relays that mean harm for the client.
//!
//! Inputs are made of whole commands and replies, mostly right ones, so that the states behind a login, an
//! envelope and a chunk are reached; what is wrong is put in between. [`reference`] says, independently of
//! the code under test, which mails may have been taken and which replies belong to what.

pub mod client;
pub mod reference;
pub mod relay;

use rand::{Rng, rngs::StdRng};

/// Cuts a stream into the pieces in which it is read: whole, byte by byte, after each CR, or anywhere.
pub fn cut(random: &mut StdRng, stream: &[u8]) -> Vec<Vec<u8>> {
    let ends: Vec<usize> = match random.random_range(0..5) {
        0 => Vec::new(),
        1 if stream.len() < 20_000 => (1..stream.len()).collect(),
        2 => (1..stream.len()).filter(|at| stream[at - 1] == b'\r').collect(),
        3 => (1..stream.len()).filter(|at| stream[at - 1] == b'\n').collect(),
        _ => {
            let count = random.random_range(0..12);
            let mut ends: Vec<usize> = (0..count).map(|_| random.random_range(0..=stream.len())).collect();
            ends.sort_unstable();
            ends
        }
    };
    let mut pieces = Vec::with_capacity(ends.len() + 1);
    let mut from = 0;
    for end in ends {
        pieces.push(stream[from..end].to_vec());
        from = end;
    }
    pieces.push(stream[from..].to_vec());
    pieces
}

/// One of these.
fn one_of<'a, T: ?Sized>(random: &mut StdRng, all: &[&'a T]) -> &'a T {
    all[random.random_range(0..all.len())]
}

/// Letters in capitals or not, as chance has it.
fn odd_case(random: &mut StdRng, text: &str) -> Vec<u8> {
    let flip = |byte: u8| if random.random_bool(0.3) { byte.to_ascii_lowercase() } else { byte };
    text.bytes().map(flip).collect()
}
