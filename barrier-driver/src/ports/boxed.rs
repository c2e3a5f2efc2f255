//! The pins of whatever port was chosen at run time, behind one type.
//!
//! embedded-hal implements its traits for references and not for boxes, hence the two wrappers.

use super::WireError;
use core::fmt;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};

/// A claimed port: the two wires of this node.
#[derive(Debug)]
pub struct BoxedWires {
    /// The wire to the barrier.
    pub out: BoxedOut,
    /// The wire from the barrier.
    pub input: BoxedIn,
}

/// The wire to the barrier at a port chosen at run time; its `Debug` is the wire's name.
pub struct BoxedOut {
    name: String,
    pin: Box<dyn OutputPin<Error = WireError> + Send>,
}

/// The wire from the barrier at a port chosen at run time; its `Debug` is the wire's name.
pub struct BoxedIn {
    name: String,
    pin: Box<dyn InputPin<Error = WireError> + Send>,
}

impl BoxedOut {
    /// Boxes a pin that people know as `name`.
    pub fn new(name: String, pin: impl OutputPin<Error = WireError> + Send + 'static) -> Self {
        let pin = Box::new(pin);
        Self { name, pin }
    }
}

impl BoxedIn {
    /// Boxes a pin that people know as `name`.
    pub fn new(name: String, pin: impl InputPin<Error = WireError> + Send + 'static) -> Self {
        let pin = Box::new(pin);
        Self { name, pin }
    }
}

impl fmt::Debug for BoxedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for BoxedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ErrorType for BoxedOut {
    type Error = WireError;
}

impl ErrorType for BoxedIn {
    type Error = WireError;
}

impl OutputPin for BoxedOut {
    fn set_low(&mut self) -> Result<(), WireError> {
        self.pin.set_low()
    }

    fn set_high(&mut self) -> Result<(), WireError> {
        self.pin.set_high()
    }
}

impl InputPin for BoxedIn {
    fn is_high(&mut self) -> Result<bool, WireError> {
        self.pin.is_high()
    }

    fn is_low(&mut self) -> Result<bool, WireError> {
        self.pin.is_low()
    }
}
