//! How fast one route accepts mail: the figures of each round, and their median.

use serde::Serialize;

use super::load::LoadResult;
use super::measure::{ResourceMeter, percentile};

/// The figures of one route: the medians of its rounds.
#[derive(Debug, Default, Serialize)]
pub struct AcceptanceFigures {
    pub accepted_per_second: f64,
    pub cpu_seconds_per_1000: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
    /// The figures of each round.
    rounds: Vec<f64>,
}

/// The figures of one round.
pub struct AcceptanceRound {
    rate: f64,
    /// CPU-seconds for 1,000 messages.
    pub cpu: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
}

impl AcceptanceRound {
    /// A load between two readings of the meter.
    pub fn of(loaded: &mut LoadResult, before: &ResourceMeter, after: &ResourceMeter) -> Self {
        let cpu = before.cpu_seconds.zip(after.cpu_seconds).map(|(before, after)| after - before);
        Self {
            rate: loaded.accepted as f64 / loaded.elapsed.as_secs_f64().max(0.001),
            cpu: cpu.map(|cpu| cpu * 1_000.0 / (loaded.accepted.max(1) as f64)),
            p50_ms: percentile(&mut loaded.latencies, 0.50) / 1e3,
            p99_ms: percentile(&mut loaded.latencies, 0.99) / 1e3,
        }
    }
}

impl AcceptanceFigures {
    /// The median of the rounds; of two middle values, the lower one.
    pub fn of(rounds: &[AcceptanceRound]) -> Self {
        let middle = |figure: &dyn Fn(&AcceptanceRound) -> Option<f64>| {
            let mut values = rounds.iter().map(figure).collect::<Option<Vec<f64>>>()?;
            values.sort_by(f64::total_cmp);
            values.get(values.len().saturating_sub(1) / 2).copied()
        };
        Self {
            accepted_per_second: middle(&|round| Some(round.rate)).unwrap_or_default(),
            cpu_seconds_per_1000: middle(&|round| round.cpu),
            p50_ms: middle(&|round| Some(round.p50_ms)).unwrap_or_default(),
            p99_ms: middle(&|round| Some(round.p99_ms)).unwrap_or_default(),
            rounds: rounds.iter().map(|round| round.rate.round()).collect(),
        }
    }

    /// The figures as a column.
    pub fn column(&self) -> [String; 5] {
        let each: Vec<String> = self.rounds.iter().map(|rate| format!("{rate:.0}")).collect();
        [
            format!("{:.0}", self.accepted_per_second),
            self.cpu_seconds_per_1000.map(|cpu| format!("{cpu:.3}")).unwrap_or_default(),
            format!("{:.1}", self.p50_ms),
            format!("{:.1}", self.p99_ms),
            each.join(" "),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_round_counts() {
        let round = |rate, cpu| AcceptanceRound { rate, cpu, p50_ms: 1.0, p99_ms: 2.0 };
        let side =
            AcceptanceFigures::of(&[round(10.0, Some(1.0)), round(30.0, Some(3.0)), round(20.0, Some(2.0))]);
        assert_eq!((side.accepted_per_second, side.cpu_seconds_per_1000), (20.0, Some(2.0)));
        assert_eq!(AcceptanceFigures::of(&[round(1.0, None)]).cpu_seconds_per_1000, None);
    }
}
