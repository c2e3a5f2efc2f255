//! A debounced input: a change of level is accepted only if a given number of consecutive reads agree.
//!
//! Without this filter, a waiting node mistakes a pulse on the wire from the barrier for a release if it reads during the
//! pulse.
//! This filter reads a changed level again until `reads` reads agree;
//! if a read does not agree, the change is discarded.
//! So a pulse shorter than `reads - 1` accesses has no effect, and each release costs `reads - 1` more accesses.
//! A read that returns the known level costs one access, as without the filter.

use embedded_hal::digital::{ErrorType, InputPin};

/// An input with a debouncing filter.
#[derive(Debug, Clone)]
pub struct Confirmed<I> {
    input: I,
    reads: u8,
    /// The last accepted level; `None` before the first read.
    known: Option<bool>,
}

impl<I: InputPin> Confirmed<I> {
    /// Returns a filter that requires `reads` agreeing reads;
    /// with 1 or 0 the input is not filtered.
    pub const fn new(input: I, reads: u8) -> Self {
        Self {
            input,
            reads,
            known: None,
        }
    }

    /// Returns the unfiltered input for another use.
    pub fn free(self) -> I {
        self.input
    }
}

impl<I: ErrorType> ErrorType for Confirmed<I> {
    type Error = I::Error;
}

impl<I: InputPin> InputPin for Confirmed<I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        let mut level = self.input.is_high()?;
        let mut agreed = 1;
        while self.known != Some(level) && agreed < self.reads {
            let next = self.input.is_high()?;
            if next == level {
                agreed += 1;
            } else {
                // The reads disagree: the count restarts, or `next` is the accepted level and ends the loop.
                (level, agreed) = (next, 1);
            }
        }
        self.known = Some(level);
        Ok(level)
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.is_high().map(|high| !high)
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use core::convert::Infallible;

    /// A scripted input: the levels of successive reads, the last of which repeats; and the number of reads so far.
    struct Script(&'static [u8], usize);

    impl ErrorType for Script {
        type Error = Infallible;
    }

    impl InputPin for Script {
        fn is_high(&mut self) -> Result<bool, Infallible> {
            let at = self.1.min(self.0.len() - 1);
            self.1 += 1;
            Ok(self.0[at] == b'1')
        }

        fn is_low(&mut self) -> Result<bool, Infallible> {
            self.is_high().map(|high| !high)
        }
    }

    fn levels(script: &'static [u8], reads: u8, times: usize) -> (Vec<bool>, usize) {
        let mut pin = Confirmed::new(Script(script, 0), reads);
        let read = (0..times).map(|_| pin.is_high().unwrap_or_default());
        (read.collect(), pin.input.1)
    }

    #[test]
    fn one_read_is_the_input_itself() {
        assert_eq!(levels(b"0110", 1, 4), (vec![false, true, true, false], 4));
    }

    #[test]
    fn a_pulse_that_too_few_reads_see_is_nothing() {
        // Three reads accept the first level; then the pulse of two reads is read and discarded.
        assert_eq!(levels(b"0001100", 3, 3), (vec![false; 3], 7));
    }

    #[test]
    fn a_change_counts_when_all_reads_agree_and_a_known_level_costs_one() {
        assert_eq!(
            levels(b"000111111", 3, 4),
            (vec![false, true, true, true], 8)
        );
    }

    #[test]
    fn an_input_that_never_rests_is_read_until_it_does() {
        assert_eq!(levels(b"0101011", 2, 1), (vec![true], 7));
    }
}
