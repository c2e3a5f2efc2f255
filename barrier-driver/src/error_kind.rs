//! A wrapper that gives pins of different drivers the same error type.
//!
//! The driver requires the same error type for both pins,
//! but an output of one chip and an input of another chip have different error types.
//! [`KindOfError`] reduces each to embedded-hal's [`ErrorKind`], which every pin's error has.

use embedded_hal::digital::{Error as _, ErrorKind, ErrorType, InputPin, OutputPin};

/// A pin whose errors are converted to embedded-hal error kinds.
#[derive(Debug, Clone)]
pub struct KindOfError<P>(
    /// The wrapped pin.
    pub P,
);

impl<P: ErrorType> ErrorType for KindOfError<P> {
    type Error = ErrorKind;
}

impl<P: OutputPin> OutputPin for KindOfError<P> {
    fn set_low(&mut self) -> Result<(), ErrorKind> {
        self.0.set_low().map_err(|error| error.kind())
    }

    fn set_high(&mut self) -> Result<(), ErrorKind> {
        self.0.set_high().map_err(|error| error.kind())
    }
}

impl<P: InputPin> InputPin for KindOfError<P> {
    fn is_high(&mut self) -> Result<bool, ErrorKind> {
        self.0.is_high().map_err(|error| error.kind())
    }

    fn is_low(&mut self) -> Result<bool, ErrorKind> {
        self.0.is_low().map_err(|error| error.kind())
    }
}

#[cfg(feature = "async")]
impl<P: embedded_hal_async::digital::Wait> embedded_hal_async::digital::Wait for KindOfError<P> {
    async fn wait_for_high(&mut self) -> Result<(), ErrorKind> {
        let waited = self.0.wait_for_high().await;
        waited.map_err(|error| error.kind())
    }

    async fn wait_for_low(&mut self) -> Result<(), ErrorKind> {
        let waited = self.0.wait_for_low().await;
        waited.map_err(|error| error.kind())
    }

    async fn wait_for_rising_edge(&mut self) -> Result<(), ErrorKind> {
        let waited = self.0.wait_for_rising_edge().await;
        waited.map_err(|error| error.kind())
    }

    async fn wait_for_falling_edge(&mut self) -> Result<(), ErrorKind> {
        let waited = self.0.wait_for_falling_edge().await;
        waited.map_err(|error| error.kind())
    }

    async fn wait_for_any_edge(&mut self) -> Result<(), ErrorKind> {
        let waited = self.0.wait_for_any_edge().await;
        waited.map_err(|error| error.kind())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::KindOfError;
    use crate::{OpenError, PinFault, ToggleBarrier};
    use core::convert::Infallible;
    use embedded_hal::digital::{Error, ErrorKind, ErrorType, InputPin, OutputPin};

    /// The error of a port expander on a bus.
    #[derive(Debug)]
    struct Bus;

    impl Error for Bus {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    struct Expander;

    impl ErrorType for Expander {
        type Error = Bus;
    }

    impl OutputPin for Expander {
        fn set_low(&mut self) -> Result<(), Bus> {
            Err(Bus)
        }

        fn set_high(&mut self) -> Result<(), Bus> {
            Ok(())
        }
    }

    struct Chip(bool);

    impl ErrorType for Chip {
        type Error = Infallible;
    }

    impl InputPin for Chip {
        fn is_high(&mut self) -> Result<bool, Infallible> {
            Ok(self.0)
        }

        fn is_low(&mut self) -> Result<bool, Infallible> {
            Ok(!self.0)
        }
    }

    #[test]
    fn a_barrier_has_pins_of_different_drivers_and_reports_the_kind_of_their_errors() {
        let open = |level| {
            let (out, input) = (KindOfError(Expander), KindOfError(Chip(level)));
            ToggleBarrier::open(out, input, || Ok::<(), Infallible>(())).map(drop)
        };
        assert_eq!(open(true), Ok(()));
        let fault = PinFault::Write(ErrorKind::Other);
        assert_eq!(open(false), Err(OpenError::Pin(fault)));
    }
}
