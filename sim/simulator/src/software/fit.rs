//! Fit of a network's LogGP parameters to measurements of `mpi-bench`.
//!
//! Two measurements between two ranks are enough: `latency` (one way of a ping-pong, by size) and
//! `rate` (messages per second of a sender, by size).
//!
//! * A ping-pong of m bytes takes `T(m) = L + 2 o + (m-1) G` one way.
//!   A straight line is fitted to the measured points by least squares of relative errors,
//!   so that short messages count as much as long ones.
//!   `G` is the slope of the line, and `T(1)` its value at one byte.
//! * A rank that only sends starts one message every `g`.
//! * A ping-pong does not separate `L` and `o`. A sender is busy for `o` of each `g`, so `o <= g`.
//!   The fit sets `o = g`, and `L` to the remaining part of `T(1)`.

use super::Network;
use crate::virtual_time::Time;
use std::fmt;

/// One measurement:
/// the time in us or the rate in thousands of messages per second at a message size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The message size in bytes.
    pub bytes: u64,
    /// The measured time or rate.
    pub figure: f64,
}

/// The reason why no network can be fitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadFit {
    /// The points have fewer than two sizes, which a straight line needs.
    TooFewSizes {
        /// The number of distinct sizes given.
        sizes: usize,
    },
    /// No positive message rate was measured.
    NoRate,
    /// A measured time or rate is not positive.
    NotPositive {
        /// The message size of that measurement.
        bytes: u64,
    },
}

impl fmt::Display for BadFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewSizes { sizes } => write!(
                f,
                "the latency of {sizes} sizes was measured, and at least two are needed for L, o and G"
            ),
            Self::NoRate => f.write_str("no rate of messages was measured, which is needed for g"),
            Self::NotPositive { bytes } => write!(
                f,
                "the latency of {bytes} bytes is given as zero or less, which is no measurement"
            ),
        }
    }
}

impl std::error::Error for BadFit {}

/// Fits a network to ping-pong times and message rates; only the rate of the shortest messages
/// is used.
pub fn fit(latency: &[Point], rate: &[Point]) -> Result<Network, BadFit> {
    if let Some(bad) = latency
        .iter()
        .find(|p| p.figure.is_nan() || p.figure <= 0.0)
    {
        return Err(BadFit::NotPositive { bytes: bad.bytes });
    }
    let (at_one, slope) = line(latency)?;
    let shortest = rate.iter().min_by_key(|point| point.bytes);
    let rate = shortest
        .map(|point| point.figure)
        .filter(|rate| *rate > 0.0);
    let gap = 1000.0 / rate.ok_or(BadFit::NoRate)?;
    let overhead = gap.min(at_one / 2.0);
    let time = |us: f64| Time::from_ps((us.max(0.0) * 1e6).round() as u64);
    Ok(Network {
        latency: time(at_one - 2.0 * overhead),
        overhead: time(overhead),
        gap: time(gap),
        byte_gap: time(slope),
        bytes: 1,
    })
}

/// Fits a line by least squares of relative errors; returns its value at one byte, and its slope.
fn line(points: &[Point]) -> Result<(f64, f64), BadFit> {
    let mut sums = [0.0; 5];
    for point in points {
        let (x, y) = (point.bytes.saturating_sub(1) as f64, point.figure);
        let weight = 1.0 / (y * y);
        let terms = [1.0, x, x * x, y, x * y];
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += weight * term;
        }
    }
    let [w, x, xx, y, xy] = sums;
    let determinant = w * xx - x * x;
    // With fewer than two distinct sizes the determinant is zero up to rounding.
    if determinant <= 1e-9 * w * xx || !determinant.is_finite() {
        return Err(BadFit::TooFewSizes {
            sizes: points.len().min(1),
        });
    }
    let slope = ((w * xy - x * y) / determinant).max(0.0);
    Ok(((y - slope * x) / w, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(figures: impl Fn(u64) -> f64) -> Vec<Point> {
        let sizes = (0..=20).map(|bits| 1 << bits);
        sizes
            .map(|bytes| Point {
                bytes,
                figure: figures(bytes),
            })
            .collect()
    }

    #[test]
    fn what_a_network_of_the_model_measures_gives_its_parameters() {
        let latency = points(|bytes| 5.5 + (bytes - 1) as f64 * 0.006);
        let fitted = fit(&latency, &points(|_| 1000.0)).expect("a line");
        assert_eq!(fitted.gap, Time::from_ns(1000));
        assert_eq!(fitted.overhead, Time::from_ns(1000));
        assert_eq!(fitted.latency, Time::from_ns(3500));
        assert_eq!(fitted.byte_gap, Time::from_ns(6));
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let one = &points(|_| 1.0)[..1];
        assert_eq!(fit(one, one), Err(BadFit::TooFewSizes { sizes: 1 }));
        assert_eq!(fit(&points(|_| 1.0), &[]), Err(BadFit::NoRate));
        let zero = points(|_| 0.0);
        assert_eq!(fit(&zero, one), Err(BadFit::NotPositive { bytes: 1 }));
    }
}
