//! What was read is believed for a moment.
//!
//! Thousands of messages a second ask for the same few things. Only what exists is remembered: what was made just now
//! is found at once. A change made through this process is noticed at once too, by the store's generation; one that another
//! node made may go unnoticed for that moment.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;

/// How long an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(1);

struct Answer<V> {
    read_at: Instant,
    generation: u64,
    value: V,
}

/// The memory of one kind of answer.
pub(crate) struct Memory<K, V> {
    known: RwLock<HashMap<K, Answer<V>>>,
    answers_max: usize,
}

impl<V> Answer<V> {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH_FOR
    }
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// A memory for this many answers. Beyond that those no longer believed are forgotten, and if that does not help,
    /// all of them.
    pub(crate) fn of(answers_max: usize) -> Self {
        Self { known: RwLock::default(), answers_max }
    }

    /// The answer, if it is fresh and of this generation.
    pub(crate) fn get(&self, key: &K, generation: u64) -> Option<V> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let answer = known.get(key).filter(|answer| answer.is_fresh() && answer.generation == generation)?;
        Some(answer.value.clone())
    }

    /// Remembers an answer that was asked for in this generation.
    pub(crate) fn put(&self, key: K, generation: u64, value: V) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.answers_max {
            known.retain(|_, answer| answer.is_fresh());
        }
        if known.len() >= self.answers_max {
            known.clear();
        }
        known.insert(key, Answer { read_at: Instant::now(), generation, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_generation_is_old() {
        let memory = Memory::of(10);
        memory.put(1, 7, "one");
        assert_eq!(memory.get(&1, 8), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_a_second() {
        let memory = Memory::of(10);
        memory.put(1, 7, "one");
        assert_eq!(memory.get(&1, 7), Some("one"));
        tokio::time::advance(FRESH_FOR).await;
        assert_eq!(memory.get(&1, 7), None);
    }

    #[test]
    fn its_size_is_bounded() {
        let memory = Memory::of(10);
        for key in 0..35 {
            memory.put(key, 0, ());
            assert!(memory.known.read().unwrap().len() <= 10);
        }
        assert_eq!(memory.get(&34, 0), Some(()));
    }
}
