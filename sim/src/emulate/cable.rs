//! What a cable makes of the level at its other end.

use embedded_hal::digital::{InputPin, OutputPin, PinState};

/// The state of one wire of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cable {
    /// As it should be.
    #[default]
    Straight,
    /// The wire has an inverter that the driver does not know of.
    Inverted,
    /// The wire is broken or not plugged in, and its far end is pulled to this level.
    Open(PinState),
}

impl Cable {
    /// What the far end of the wire sees of the near end's level.
    pub fn carry(self, level: bool) -> bool {
        match self {
            Self::Straight => level,
            Self::Inverted => !level,
            Self::Open(pulled) => pulled == PinState::High,
        }
    }
}

/// A board's end of a node's wires, erased so that registers need not know which board it is.
pub trait Far: Send {
    /// The level on the wire to the barrier.
    fn drive(&mut self, high: bool);

    /// The level on the wire from the barrier.
    fn level(&mut self) -> bool;
}

/// The two pins of a board; a pin that fails, which no simulated one does, is a wire that keeps its level or reads high.
impl<O: OutputPin + Send, I: InputPin + Send> Far for (O, I) {
    fn drive(&mut self, high: bool) {
        let _ = self.0.set_state(PinState::from(high));
    }

    fn level(&mut self) -> bool {
        self.1.is_high().unwrap_or(true)
    }
}
