//! What was read is believed for a moment.
//!
//! Thousands of messages a second ask for the same few things. Only what exists is remembered: what was made just now
//! is found at once. A change or a deletion may go unnoticed for that moment.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;

/// How long an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The memory of one kind of answer.
pub(crate) struct Memory<K, V> {
    known: RwLock<HashMap<K, (Instant, V)>>,
    answers_max: usize,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// A memory for this many answers. Beyond that those no longer believed are forgotten, and if that does not help,
    /// all of them.
    pub(crate) fn of(answers_max: usize) -> Self {
        Self { known: RwLock::default(), answers_max }
    }

    /// The answer, if it is fresh.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(read_at, _)| read_at.elapsed() < FRESH_FOR).map(|(_, value)| value.clone())
    }

    /// Remembers an answer.
    pub(crate) fn put(&self, key: K, value: V) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.answers_max {
            known.retain(|_, (read_at, _)| read_at.elapsed() < FRESH_FOR);
        }
        if known.len() >= self.answers_max {
            known.clear();
        }
        known.insert(key, (Instant::now(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_a_second() {
        let memory = Memory::of(10);
        memory.put(1, "one");
        assert_eq!(memory.get(&1), Some("one"));
        tokio::time::advance(FRESH_FOR).await;
        assert_eq!(memory.get(&1), None);
    }

    #[test]
    fn its_size_is_bounded() {
        let memory = Memory::of(10);
        for key in 0..35 {
            memory.put(key, ());
            assert!(memory.known.read().unwrap().len() <= 10);
        }
        assert_eq!(memory.get(&34), Some(()));
    }
}
