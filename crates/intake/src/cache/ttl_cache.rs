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
    bytes: usize,
    value: V,
}

/// The memory of one kind of answer.
pub(crate) struct Memory<K, V> {
    known: RwLock<RememberedAnswers<K, V>>,
    answers_max: usize,
    bytes_max: usize,
}

struct RememberedAnswers<K, V> {
    answers: HashMap<K, Answer<V>>,
    /// What they take together.
    bytes: usize,
}

impl<V> Answer<V> {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH_FOR
    }
}

impl<K: Eq + Hash, V> RememberedAnswers<K, V> {
    fn forget_all(&mut self) {
        self.answers.clear();
        self.bytes = 0;
    }

    fn forget_old(&mut self) {
        self.answers.retain(|_, answer| answer.is_fresh());
        self.bytes = self.answers.values().map(|answer| answer.bytes).sum();
    }
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// A memory for this many answers, all of them small. Beyond that those no longer believed are forgotten, and if that
    /// does not help, all of them.
    pub(crate) fn of(answers_max: usize) -> Self {
        Self::of_bytes(answers_max, usize::MAX)
    }

    /// The same for answers that take this many bytes together.
    pub(crate) fn of_bytes(answers_max: usize, bytes_max: usize) -> Self {
        let known = RememberedAnswers { answers: HashMap::new(), bytes: 0 };
        Self { known: RwLock::new(known), answers_max, bytes_max }
    }

    /// The answer, if it is fresh and of this generation.
    pub(crate) fn get(&self, key: &K, generation: u64) -> Option<V> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let answer = known.answers.get(key);
        let answer = answer.filter(|answer| answer.is_fresh() && answer.generation == generation)?;
        Some(answer.value.clone())
    }

    /// Remembers a small answer that was asked for in this generation.
    pub(crate) fn put(&self, key: K, generation: u64, value: V) {
        self.put_sized(key, generation, value, 0);
    }

    /// The same for an answer that takes this many bytes; one that takes more than there are is not remembered.
    pub(crate) fn put_sized(&self, key: K, generation: u64, value: V, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = |known: &RememberedAnswers<K, V>| {
            known.answers.len() >= self.answers_max || known.bytes > self.bytes_max - bytes
        };
        if is_full(&known) {
            known.forget_old();
        }
        if is_full(&known) {
            known.forget_all();
        }
        known.bytes += bytes;
        let answer = Answer { read_at: Instant::now(), generation, bytes, value };
        if let Some(before) = known.answers.insert(key, answer) {
            known.bytes -= before.bytes;
        }
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
            assert!(memory.known.read().unwrap().answers.len() <= 10);
        }
        assert_eq!(memory.get(&34, 0), Some(()));
    }

    #[test]
    fn large_answers_are_bounded_by_what_they_take() {
        let memory = Memory::of_bytes(10, 100);
        for key in 0..35 {
            memory.put_sized(key, 0, (), 40);
            memory.put_sized(key, 0, (), 30);
            let known = memory.known.read().unwrap();
            assert_eq!(known.bytes, known.answers.len() * 30);
            assert!(known.bytes <= 100);
        }
        assert_eq!(memory.get(&34, 0), Some(()));
        memory.put_sized(99, 0, (), 101);
        assert_eq!(memory.get(&99, 0), None, "it is larger than all of it");
    }
}
