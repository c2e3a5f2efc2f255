//! The value of `--soft`: acceptable numbers of ranks if the requested number does not fit.
//!
//! The format is that of the reserved info key `soft` (MPI 5.0, 11.9.3): a comma-separated list.
//! Its items are numbers, ranges `a:b`, and ranges with a stride `a:b:c`.
//! Numbers above the value of `-n` are ignored.

use super::value_error::ValueError;

/// The accepted values, for error messages.
pub const WANTED: &str =
    "numbers up to that of -n, such as 4, 2:8 or 2:8:2, with commas between them";

/// A parsed list of numbers and ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soft {
    /// The list as the user wrote it, for error messages.
    pub text: String,
    ranges: Vec<Range>,
}

/// The numbers `first`, `first + stride`, ... up to `last`; a negative stride counts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
    stride: i64,
}

impl Soft {
    /// Parses a list of numbers and ranges.
    pub fn parse(text: &str) -> Result<Soft, ValueError> {
        let ranges: Option<_> = text.split(',').map(Range::parse).collect();
        Ok(Soft {
            text: text.to_owned(),
            ranges: ranges.ok_or(ValueError::unknown(WANTED))?,
        })
    }

    /// Returns the allowed numbers in 1..=`most`, largest first.
    /// The result is empty if the list has no number in that interval.
    pub fn allowed(&self, most: usize) -> Vec<usize> {
        let ranges = self.ranges.iter();
        let mut found: Vec<usize> = ranges.flat_map(|range| range.up_to(most)).collect();
        found.sort_unstable();
        found.dedup();
        found.reverse();
        found
    }
}

impl Range {
    fn parse(text: &str) -> Option<Range> {
        let numbers = text.split(':').map(|word| word.trim().parse().ok());
        let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
        let (first, last, stride) = match *numbers.as_slice() {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, stride] if stride != 0 => (first, last, stride),
            _ => return None,
        };
        Some(Range {
            first,
            last,
            stride,
        })
    }

    /// Returns the numbers of this range in 1..=`most`, in ascending order.
    fn up_to(self, most: usize) -> impl Iterator<Item = usize> {
        let Range {
            first,
            last,
            stride,
        } = self;
        let (low, high) = (first.min(last).max(1), first.max(last).min(most as i64));
        // The difference of two `i64` needs 65 bits, so steps are computed in `i128`.
        let in_steps =
            move |number: &i64| (i128::from(*number) - i128::from(first)) % i128::from(stride) == 0;
        let runs = match stride > 0 {
            true => first <= last,
            false => first >= last,
        };
        let numbers = (low..=high).filter(move |number| runs && in_steps(number));
        numbers.map(|number| number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &str, most: usize) -> Vec<usize> {
        Soft::parse(list).unwrap().allowed(most)
    }

    #[test]
    fn numbers_ranges_and_strides_are_allowed_up_to_what_was_asked_for() {
        assert_eq!(allowed("3", 4), [3]);
        assert_eq!(allowed("2:9", 4), [4, 3, 2]);
        assert_eq!(allowed("1, 2:10:4", 8), [6, 2, 1]);
        assert_eq!(allowed("10:2:-4", 8), [6, 2]);
        // Strides count from a range's first number, even if that number is not allowed.
        assert_eq!(allowed("1:6:2", 8), [5, 3, 1]);
        assert_eq!(allowed("0:6:2", 8), [6, 4, 2]);
        assert_eq!(allowed("-1:6:3", 8), [5, 2]);
        assert_eq!(allowed(&format!("{}:3", i64::MIN), 8), [3, 2, 1]);
        assert_eq!(allowed(&format!("3:{}:-1", i64::MIN), 8), [3, 2, 1]);
    }

    #[test]
    fn a_number_that_is_listed_twice_counts_once_and_the_largest_is_first() {
        assert_eq!(allowed("2,1,4,2:3", 8), [4, 3, 2, 1]);
        let soft = Soft::parse("2,1").unwrap();
        assert_eq!(soft.text, "2,1");
    }

    #[test]
    fn a_list_that_allows_nothing_is_empty_and_a_malformed_one_an_error() {
        for list in ["9", "-1", "0", "4:2", "2:4:-1"] {
            assert_eq!(allowed(list, 8), [0; 0], "{list}");
        }
        for list in ["", "x", "1:2:0", "1:2:3:4"] {
            let error = Soft::parse(list).unwrap_err().to_string();
            assert!(error.contains("such as 4, 2:8 or 2:8:2"), "{list}: {error}");
        }
    }
}
