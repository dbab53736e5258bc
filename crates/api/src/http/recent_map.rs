//! A map that keeps the most recent entries only.
//!
//! Strangers choose the keys of these maps, so they must not choose the size. Entries are written into one
//! half; when it is full, the older half is dropped. So an entry survives at least `half_max` later ones, and
//! no write searches for what to remove.

use std::{collections::HashMap, hash::Hash};

/// The most recent entries, at most twice `half_max`.
pub(crate) struct RecentMap<K, V> {
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
    half_max: usize,
}

impl<K: Eq + Hash, V: Copy> RecentMap<K, V> {
    pub(crate) fn new(half_max: usize) -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), half_max }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.newer.get(key).or_else(|| self.older.get(key)).copied()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.newer.len() >= self.half_max && !self.newer.contains_key(&key) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, value);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.newer.len() + self.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_and_the_size_is_bounded() {
        let mut recent = RecentMap::new(100);
        for number in 0..300_000_u32 {
            recent.insert(number, number);
            assert!(recent.len() <= 200);
        }
        assert!((299_900..300_000).all(|number| recent.get(&number) == Some(number)));
        assert_eq!(recent.get(&0), None);
        recent.insert(299_999, 7);
        assert_eq!(recent.get(&299_999), Some(7));
    }
}
