//! Parsers of numeric option values; the error describes the accepted values.

/// The maximum number of ranks of a job.
const RANKS_MAX: u32 = 16_384;

/// Parses a number of ranks.
pub fn ranks(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=RANKS_MAX).contains(number))
        .ok_or_else(|| format!("a number of ranks from 1 to {RANKS_MAX}, such as 4"))
}

/// Parses a number per host or per rank, such as the value of `-N`.
pub fn count(text: &str) -> Result<usize, String> {
    ranks(text)
        .map(|number| number as usize)
        .map_err(|_| format!("a number from 1 to {RANKS_MAX}, such as 2"))
}

/// Parses a mode of `--stream-buffering`: 0, 1 or 2.
pub fn buffering(text: &str) -> Result<u8, String> {
    let mode = text.parse().ok();
    mode.filter(|mode| *mode <= 2)
        .ok_or_else(|| "0 (none), 1 (by lines) or 2 (full)".to_owned())
}
