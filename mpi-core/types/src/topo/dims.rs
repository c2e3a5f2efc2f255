//! `MPI_Dims_create`: factorisation of a number of processes
//! into the extents of a grid (MPI 5.0, section 8.5.2).
//!
//! The standard requires extents "as close to each other as possible". Here the difference between
//! the largest and the smallest extent is minimal.
//! Among all choices with this difference, the surface of the process
//! grid is minimal: the sum of n/extent over all dimensions.

/// Returns `k` factors of `n` that are as close to each other as possible, the largest first.
pub fn balanced(n: u32, k: usize) -> Vec<u32> {
    if k == 0 {
        return Vec::new();
    }
    let divisors = divisors(n);
    let mut search = Search {
        divisors: &divisors,
        n,
        taken: Vec::with_capacity(k),
        best: [vec![n], vec![1; k - 1]].concat(),
    };
    search.go_on(n, n, k);
    search.best
}

/// Depth-first search of nonincreasing sequences of factors.
/// The smallest possible first factor is tried first.
struct Search<'a> {
    /// The divisors of `n`, ascending.
    divisors: &'a [u32],
    n: u32,
    taken: Vec<u32>,
    best: Vec<u32>,
}

impl Search<'_> {
    /// Tries all extensions of `taken` by `k` factors
    /// with the product `rest`, none larger than `most`.
    fn go_on(&mut self, rest: u32, most: u32, k: usize) {
        if k == 1 {
            if rest <= most {
                self.taken.push(rest);
                self.judge();
                self.taken.pop();
            }
            return;
        }
        let from = self.divisors.partition_point(|d| !reaches(*d, k, rest));
        let divisors = self.divisors;
        for &factor in divisors[from..].iter().take_while(|d| **d <= most) {
            if !rest.is_multiple_of(factor) {
                continue;
            }
            let largest = self.taken.first().copied().unwrap_or(factor);
            // A factor below `least` would make the difference
            // larger than that of the best sequence so far.
            let least = largest.saturating_sub(spread(&self.best)).max(1);
            if exceeds(least, k - 1, rest / factor) {
                // With this factor or a larger one, the product left
                // is too small for factors of at least `least`.
                break;
            }
            if factor < least {
                continue;
            }
            self.taken.push(factor);
            self.go_on(rest / factor, factor, k - 1);
            self.taken.pop();
        }
    }

    fn judge(&mut self) {
        let key = |f: &[u32]| -> (u32, u64) {
            let surface = f.iter().map(|f| u64::from(self.n / f)).sum();
            (spread(f), surface)
        };
        if key(&self.taken) < key(&self.best) {
            self.best.clone_from(&self.taken);
        }
    }
}

/// Returns the difference between the largest factor, which is the first, and the smallest.
fn spread(factors: &[u32]) -> u32 {
    match factors {
        [first, .., last] => first - last,
        _ => 0,
    }
}

/// Returns true if `factor` to the power of `k` is at least `n`.
fn reaches(factor: u32, k: usize, n: u32) -> bool {
    factor.checked_pow(k as u32).is_none_or(|all| all >= n)
}

/// Returns true if `factor` to the power of `k` is greater than `n`.
fn exceeds(factor: u32, k: usize, n: u32) -> bool {
    factor.checked_pow(k as u32).is_none_or(|all| all > n)
}

/// Returns the divisors of `n` in ascending order. They are computed from the prime factors,
/// because trying all numbers is slow if `n` has few divisors.
fn divisors(n: u32) -> Vec<u32> {
    let mut all = vec![1];
    let (mut left, mut prime) = (n, 2);
    while left > 1 {
        if prime > left / prime {
            prime = left;
        }
        let mut power = 1;
        let so_far = all.len();
        while left.is_multiple_of(prime) {
            left /= prime;
            power *= prime;
            all.extend_from_within(..so_far);
            let new = all.len() - so_far..;
            all[new].iter_mut().for_each(|d| *d *= power);
        }
        prime += 1;
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dimensions_are_balanced_and_the_largest_comes_first() {
        for (n, k, expected) in [
            (6, 2, vec![3, 2]),
            (60, 3, vec![5, 4, 3]),
            (64, 3, vec![4, 4, 4]),
            (7, 3, vec![7, 1, 1]),
            (1, 2, vec![1, 1]),
            (72, 3, vec![6, 4, 3]),
            (1024, 2, vec![32, 32]),
            (12, 1, vec![12]),
            (5, 0, vec![]),
            // (20, 18, 14) has the same difference, but a larger surface.
            (5040, 3, vec![21, 16, 15]),
            (218_736, 5, vec![31, 14, 9, 8, 7]),
            // A number with many divisors, and the largest prime number that fits in an int.
            (2_095_133_040, 6, vec![39, 38, 36, 35, 34, 33]),
            (2_147_483_647, 3, vec![2_147_483_647, 1, 1]),
        ] {
            assert_eq!(balanced(n, k), expected, "{n} in {k}");
        }
    }

    /// Returns all nonincreasing sequences of `k` factors of `n`, none larger than `most`.
    fn all(n: u32, most: u32, k: usize) -> Vec<Vec<u32>> {
        if k == 0 {
            return if n == 1 { vec![vec![]] } else { vec![] };
        }
        let factors = (1..=most.min(n)).filter(|d| n.is_multiple_of(*d));
        factors
            .flat_map(|d| {
                all(n / d, d, k - 1)
                    .into_iter()
                    .map(move |f| [vec![d], f].concat())
            })
            .collect()
    }

    proptest! {
        #[test]
        fn nothing_is_closer(n in 1..3000u32, k in 1..5usize) {
            let found = balanced(n, k);
            let key = |f: &Vec<u32>| (spread(f), f.iter().map(|f| n / f).sum::<u32>());
            let best = all(n, n, k).iter().map(key).min();
            prop_assert_eq!(found.iter().product::<u32>(), n);
            prop_assert!(found.is_sorted_by(|a, b| a >= b));
            prop_assert_eq!(Some(key(&found)), best);
        }

        #[test]
        fn divisors_divide(n in 1..100_000u32) {
            let tried: Vec<u32> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
            prop_assert_eq!(divisors(n), tried);
        }
    }
}
