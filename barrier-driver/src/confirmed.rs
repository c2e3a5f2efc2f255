//! An input whose change counts when a given number of reads in a row agree on it: the port's half of a filter.
//!
//! A pulse on the wire from the barrier that a read samples while a node waits looks like its release.
//! Here a level that differs from the last is read again until `reads` reads have agreed; if one does not, nothing has changed.
//! So a pulse shorter than `reads - 1` accesses is nothing, and each release costs so many accesses more.
//! A read that finds the known level costs one access, as ever.

use embedded_hal::digital::{ErrorType, InputPin};

/// An input behind such a filter.
#[derive(Debug, Clone)]
pub struct Confirmed<I> {
    input: I,
    reads: u8,
    /// The level that so many reads have agreed on.
    known: Option<bool>,
}

impl<I: InputPin> Confirmed<I> {
    /// `reads` reads in a row have to agree; 1, or 0, is the input itself.
    pub const fn new(input: I, reads: u8) -> Self {
        Self {
            input,
            reads,
            known: None,
        }
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
                // With nothing known yet the count starts again at the new level; else this is the known one.
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

    /// Levels in turn, the last for ever, and how many were read.
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
        // Three reads make the first level known, then the pulse of two reads is looked at and dropped.
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
