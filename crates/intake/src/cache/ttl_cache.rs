//! A cache whose answers are trusted for a short time.
//!
//! Thousands of messages a second ask for the same few settings. Only existing rows are cached, so a new one
//! is found at once. A change made through this process takes effect at once too, by the store's generation;
//! a change made by another node may go unnoticed for [`FRESH_FOR`].

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use tokio::time::Instant;

/// How long an answer is trusted.
const FRESH_FOR: Duration = Duration::from_secs(1);

struct CachedAnswer<V> {
    read_at: Instant,
    generation: u64,
    bytes: usize,
    value: V,
}

/// A cache for one kind of answer.
pub(crate) struct TtlCache<K, V> {
    known: RwLock<CachedAnswers<K, V>>,
    answers_max: usize,
    bytes_max: usize,
}

struct CachedAnswers<K, V> {
    answers: HashMap<K, CachedAnswer<V>>,
    /// The memory of all answers together.
    bytes: usize,
}

impl<V> CachedAnswer<V> {
    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH_FOR
    }
}

impl<K: Eq + Hash, V> CachedAnswers<K, V> {
    fn remove_all(&mut self) {
        self.answers.clear();
        self.bytes = 0;
    }

    fn remove_stale(&mut self) {
        self.answers.retain(|_, answer| answer.is_fresh());
        self.bytes = self.answers.values().map(|answer| answer.bytes).sum();
    }
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    /// A cache for `answers_max` small answers. When it is full, stale answers are removed, and if that does
    /// not help, all of them.
    pub(crate) fn with_capacity(answers_max: usize) -> Self {
        Self::with_byte_limit(answers_max, usize::MAX)
    }

    /// A cache for answers that may occupy `bytes_max` together.
    pub(crate) fn with_byte_limit(answers_max: usize, bytes_max: usize) -> Self {
        let known = CachedAnswers { answers: HashMap::new(), bytes: 0 };
        Self { known: RwLock::new(known), answers_max, bytes_max }
    }

    /// The answer, if it is fresh and of this generation.
    pub(crate) fn get(&self, key: &K, generation: u64) -> Option<V> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let answer = known.answers.get(key);
        let answer = answer.filter(|answer| answer.is_fresh() && answer.generation == generation)?;
        Some(answer.value.clone())
    }

    /// Adds a small answer that was read in this generation.
    pub(crate) fn put(&self, key: K, generation: u64, value: V) {
        self.put_sized(key, generation, value, 0);
    }

    /// Adds an answer that occupies `bytes`; an answer that alone exceeds the limit is not cached.
    pub(crate) fn put_sized(&self, key: K, generation: u64, value: V, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = |known: &CachedAnswers<K, V>| {
            known.answers.len() >= self.answers_max || known.bytes > self.bytes_max - bytes
        };
        if is_full(&known) {
            known.remove_stale();
        }
        if is_full(&known) {
            known.remove_all();
        }
        known.bytes += bytes;
        let answer = CachedAnswer { read_at: Instant::now(), generation, bytes, value };
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
        let cache = TtlCache::with_capacity(10);
        cache.put(1, 7, "one");
        assert_eq!(cache.get(&1, 8), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_a_second() {
        let cache = TtlCache::with_capacity(10);
        cache.put(1, 7, "one");
        assert_eq!(cache.get(&1, 7), Some("one"));
        tokio::time::advance(FRESH_FOR).await;
        assert_eq!(cache.get(&1, 7), None);
    }

    #[test]
    fn its_size_is_bounded() {
        let cache = TtlCache::with_capacity(10);
        for key in 0..35 {
            cache.put(key, 0, ());
            assert!(cache.known.read().unwrap().answers.len() <= 10);
        }
        assert_eq!(cache.get(&34, 0), Some(()));
    }

    #[test]
    fn large_answers_are_bounded_by_what_they_take() {
        let cache = TtlCache::with_byte_limit(10, 100);
        for key in 0..35 {
            cache.put_sized(key, 0, (), 40);
            cache.put_sized(key, 0, (), 30);
            let known = cache.known.read().unwrap();
            assert_eq!(known.bytes, known.answers.len() * 30);
            assert!(known.bytes <= 100);
        }
        assert_eq!(cache.get(&34, 0), Some(()));
        cache.put_sized(99, 0, (), 101);
        assert_eq!(cache.get(&99, 0), None, "it is larger than all of it");
    }
}
