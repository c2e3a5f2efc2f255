//! `--soft`: the acceptable numbers of ranks if the requested number does not fit.
//!
//! The format is that of the reserved info key `soft` (MPI 5.0, 11.9.3): a comma-separated list of numbers, ranges `a:b`
//! and ranges with a stride `a:b:c`; numbers above the requested one are ignored.

/// Returns the allowed numbers from one up to `most`, largest first; `None` if the list is malformed or allows none.
pub fn allowed(list: &str, most: usize) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in list.split(',') {
        let numbers: Vec<i64> = part
            .split(':')
            .map(|word| word.trim().parse().ok())
            .collect::<Option<_>>()?;
        let (first, last, stride) = match *numbers.as_slice() {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, stride] if stride != 0 => (first, last, stride),
            _ => return None,
        };
        // Both directions end after at most `most` numbers that can matter.
        let (low, high) = (first.min(last).max(1), first.max(last).min(most as i64));
        let in_steps = |number: &i64| {
            number
                .checked_sub(first)
                .is_some_and(|distance| distance % stride == 0)
        };
        let runs = if stride > 0 {
            first <= last
        } else {
            first >= last
        };
        found.extend((low..=high).filter(|number| runs && in_steps(number)));
    }
    found.sort_unstable();
    found.dedup();
    found.reverse();
    let found: Vec<usize> = found.into_iter().map(|number| number as usize).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_strides_are_allowed_up_to_what_was_asked_for() {
        assert_eq!(allowed("3", 4), Some(vec![3]));
        assert_eq!(allowed("2:9", 4), Some(vec![4, 3, 2]));
        assert_eq!(allowed("1, 2:10:4", 8), Some(vec![6, 2, 1]));
        assert_eq!(allowed("10:2:-4", 8), Some(vec![6, 2]));
    }

    #[test]
    fn a_list_that_allows_nothing_is_no_list() {
        for list in ["", "x", "1:2:0", "1:2:3:4", "9", "-1", "4:2"] {
            assert_eq!(allowed(list, 8), None, "{list}");
        }
    }
}
