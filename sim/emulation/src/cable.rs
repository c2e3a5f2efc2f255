//! The cable of a wire, which may invert or replace the level.

use embedded_hal::digital::{InputPin, OutputPin, PinState};

/// The state of one wire of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cable {
    /// The wire is correct and carries its level unchanged.
    #[default]
    Straight,
    /// The wire has an inverter that the driver is not configured for.
    Inverted,
    /// The wire is broken or unplugged; a resistor pulls its far end to this level.
    Open(PinState),
}

impl Cable {
    /// Returns the level at the far end of the wire.
    pub fn carry(self, level: bool) -> bool {
        match self {
            Self::Straight => level,
            Self::Inverted => !level,
            Self::Open(pulled) => pulled == PinState::High,
        }
    }
}

/// The board's end of a node's wires; a trait, so that ports do not depend on the type of board.
pub trait CableEnd: Send {
    /// Sets the level of the wire to the barrier.
    fn drive(&mut self, high: bool);

    /// Returns the level of the wire from the barrier.
    fn level(&mut self) -> bool;
}

/// The two pins of a board. If writing a pin fails, the wire keeps its level; if reading fails, it
/// reads high. Pins of simulated boards never fail.
impl<O: OutputPin + Send, I: InputPin + Send> CableEnd for (O, I) {
    fn drive(&mut self, high: bool) {
        let _ = self.0.set_state(PinState::from(high));
    }

    fn level(&mut self) -> bool {
        self.1.is_high().unwrap_or(true)
    }
}
