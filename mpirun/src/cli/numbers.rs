//! Values of options that are numbers, and what is expected in place of one that is none.

/// More ranks than this no job has.
const RANKS_MAX: u32 = 16_384;

/// A number of ranks.
pub fn ranks(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=RANKS_MAX).contains(number))
        .ok_or_else(|| format!("a number of ranks from 1 to {RANKS_MAX}, such as 4"))
}

/// How many of something each host or each rank gets.
pub fn count(text: &str) -> Result<usize, String> {
    ranks(text)
        .map(|number| number as usize)
        .map_err(|_| format!("a number from 1 to {RANKS_MAX}, such as 2"))
}

/// A mode of `--stream-buffering`.
pub fn buffering(text: &str) -> Result<u8, String> {
    let mode = text.parse().ok();
    mode.filter(|mode| *mode <= 2)
        .ok_or_else(|| "0 (none), 1 (by lines) or 2 (full)".to_owned())
}
