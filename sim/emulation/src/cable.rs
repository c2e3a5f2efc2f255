//! The effect of a cable on a level.

use embedded_hal::digital::{InputPin, OutputPin, PinState};

/// The state of one wire of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cable {
    /// A correct wire.
    #[default]
    Straight,
    /// The wire has an inverter that the driver does not know of.
    Inverted,
    /// The wire is broken or not plugged in, and its far end is pulled to this level.
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

/// A board's end of a node's wires, type-erased, so registers are independent of the board.
pub trait CableEnd: Send {
    /// Sets the level of the wire to the barrier.
    fn drive(&mut self, high: bool);

    /// Returns the level of the wire from the barrier.
    fn level(&mut self) -> bool;
}

/// The two pins of a board. A failing pin, which no simulated one is, leaves the wire's level unchanged or reads high.
impl<O: OutputPin + Send, I: InputPin + Send> CableEnd for (O, I) {
    fn drive(&mut self, high: bool) {
        let _ = self.0.set_state(PinState::from(high));
    }

    fn level(&mut self) -> bool {
        self.1.is_high().unwrap_or(true)
    }
}
