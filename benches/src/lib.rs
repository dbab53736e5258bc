//! Benches live in `benches/`; their latest figures in `README.md`.
