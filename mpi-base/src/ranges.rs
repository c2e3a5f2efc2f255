//! Formatting and parsing of lists of numbers in the kernel's syntax, such as `0-3,8`.

/// Formats ascending numbers as a list of ranges.
pub fn write(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let texts = runs.filter_map(|run| {
        let (first, last) = (run.first()?, run.last()?);
        Some(match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
    });
    texts.collect::<Vec<_>>().join(",")
}

/// Parses an ascending list of ranges.
/// Returns `None` if the text is malformed or a number is not less than `end`.
pub fn read(text: &str, end: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        let ascends = numbers.last().is_none_or(|before| *before < first);
        if !ascends || first > last || last >= end {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ranges() {
        assert_eq!(write(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(write(&[]), "");
    }

    #[test]
    fn ranges_are_read_as_written_and_malformed_text_is_none() {
        assert_eq!(read("0-2,5", 6), Some(vec![0, 1, 2, 5]));
        let bad = ["", "x", "3-9", "6", "4,1", "1,1", "0-2,2", "3-1", "1-", "-"];
        for bad in bad {
            assert_eq!(read(bad, 6), None, "{bad}");
        }
    }
}
