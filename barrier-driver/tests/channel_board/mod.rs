//! A board of barrier version 2 for tests of the driver: embedded-hal pins connected to the model or to the RTL.
//!
//! Each access to a line takes [`EDGES_PER_ACCESS`] edges of the board's clock; between accesses the clock stands still.

pub mod rtl;

use barrier_driver::channels::{LastLine, Programmer, ReleaseLine, ReplyLine, SerialPins};
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use fpga_model::CLOCK_HZ;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of nodes of a board.
pub const NODES: usize = 10;

/// Clock edges per access, 0.12 us: far less than on real ports, but enough for a release.
/// Serial bits need the driver's delays in addition.
const EDGES_PER_ACCESS: u64 = 3;

/// The levels that the nodes can read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The releases, bit `c` for channel `c`.
    pub release: u8,
    /// The level of each node's last status line, bit `n` for node `n`.
    pub last: u64,
}

/// Version 2 hardware with [`NODES`] nodes and five channels.
pub trait Machine: Send + 'static {
    /// Returns the hardware in its state after power-on.
    fn power_on() -> Self;

    /// Runs `edges` clock edges with the input levels `pins`; returns the output levels after them.
    fn run(&mut self, pins: &Pins, edges: u64) -> Seen;
}

impl Machine for ChannelMachine {
    fn power_on() -> Self {
        Self::new(NODES, MAX_CHANNELS).expect("a legal size")
    }

    fn run(&mut self, pins: &Pins, edges: u64) -> Seen {
        self.fast_forward(pins, edges);
        Seen {
            release: self.releases(),
            last: self.last_line(),
        }
    }
}

/// A fault of the wires between the ports and the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The reply line of every node is cut, and open inputs read high.
    CutReply,
    /// Serial data is always low.
    DataStuckLow,
    /// The next `n` data bits are inverted.
    Noise(u32),
}

pub struct State<M> {
    machine: M,
    pub pins: Pins,
    seen: Seen,
    releases: [u64; MAX_CHANNELS],
    pub fault: Fault,
    /// The samples recorded so far, one per access; `None` while nothing records.
    samples: Option<Vec<Sample>>,
}

/// The lines of all channels at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The arrival lines of each channel, bit `n` for node `n`.
    pub arrive: [u64; MAX_CHANNELS],
    /// The release lines, bit `c` for channel `c`.
    pub release: u8,
}

impl<M: Machine> State<M> {
    pub fn clock(&mut self, edges: u64) {
        let mut pins = self.pins;
        match &mut self.fault {
            Fault::DataStuckLow => pins.data = 0,
            Fault::Noise(left) if *left > 0 => {
                *left -= 1;
                pins.data = !pins.data & ((1 << NODES) - 1);
            }
            _ => {}
        }
        let seen = self.machine.run(&pins, edges);
        // A channel toggles at most once per access, because each access changes one line.
        for (channel, count) in self.releases.iter_mut().enumerate() {
            *count += u64::from((seen.release ^ self.seen.release) >> channel & 1);
        }
        self.seen = seen;
        if let Some(samples) = &mut self.samples {
            samples.push(Sample {
                arrive: self.pins.arrive,
                release: seen.release,
            });
        }
    }
}

pub struct Board<M>(Arc<Mutex<State<M>>>);

impl<M> Clone for Board<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Machine> Board<M> {
    pub fn power_on() -> Self {
        Self(Arc::new(Mutex::new(State {
            machine: M::power_on(),
            pins: Pins::default(),
            seen: Seen::default(),
            releases: [0; MAX_CHANNELS],
            fault: Fault::None,
            samples: None,
        })))
    }

    /// Records and returns the levels of all lines, one sample per access, while `body` runs.
    pub fn record(&self, body: impl FnOnce()) -> Vec<Sample> {
        self.state().samples = Some(Vec::new());
        body();
        self.state().samples.take().unwrap_or_default()
    }

    pub fn state(&self) -> MutexGuard<'_, State<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn releases(&self, channel: usize) -> u64 {
        self.state().releases[channel]
    }

    /// Returns the port of node number `node`, with all its lines.
    pub fn node(&self, node: usize) -> Node<M> {
        Node {
            last: LastLine::new(self.wire(node, Line::Status(MAX_CHANNELS - 1))),
            board: self.clone(),
            node,
        }
    }

    fn wire(&self, node: usize, line: Line) -> Wire<M> {
        Wire {
            board: self.clone(),
            node,
            line,
        }
    }
}

/// The port of one node.
pub struct Node<M: Machine> {
    board: Board<M>,
    node: usize,
    last: LastLine<Wire<M>>,
}

impl<M: Machine> Node<M> {
    pub fn programmer(&self) -> Programmer<Wire<M>, LastLine<Wire<M>>, Clock<M>> {
        self.programmer_over(self.last.clone())
    }

    /// Returns a programmer of this node that reads its replies from `reply`.
    pub fn programmer_over<R>(&self, reply: R) -> Programmer<Wire<M>, R, Clock<M>>
    where
        R: ReplyLine<Pin = Wire<M>, Error = Infallible>,
    {
        let wire = |line| self.board.wire(self.node, line);
        let pins = SerialPins {
            clock: wire(Line::Clock),
            data: wire(Line::Data),
            select: wire(Line::Select),
        };
        Programmer::new(pins, reply, Clock(self.board.clone())).expect("infallible")
    }

    /// Returns the pin of the line that the last channel shares with the replies.
    pub fn last_pin(&self) -> Wire<M> {
        self.board.wire(self.node, Line::Status(MAX_CHANNELS - 1))
    }

    pub fn channel(&self, channel: usize) -> (Wire<M>, ReleaseLine<Wire<M>>) {
        let status = match channel + 1 == MAX_CHANNELS {
            true => ReleaseLine::Shared(self.last.clone()),
            false => ReleaseLine::Own(self.board.wire(self.node, Line::Status(channel))),
        };
        (self.board.wire(self.node, Line::Arrive(channel)), status)
    }
}

#[derive(Clone, Copy)]
enum Line {
    Arrive(usize),
    Clock,
    Data,
    Select,
    Status(usize),
}

/// A pin of one line of one node.
pub struct Wire<M: Machine> {
    board: Board<M>,
    node: usize,
    line: Line,
}

impl<M: Machine> Wire<M> {
    fn set(&self, level: bool) {
        let mut state = self.board.state();
        let pins = &mut state.pins;
        let lines = match self.line {
            Line::Arrive(channel) => &mut pins.arrive[channel],
            Line::Clock => &mut pins.clock,
            Line::Data => &mut pins.data,
            Line::Select => &mut pins.select,
            Line::Status(_) => panic!("a status line is read only"),
        };
        *lines = *lines & !(1 << self.node) | u64::from(level) << self.node;
        state.clock(EDGES_PER_ACCESS);
    }

    fn get(&self) -> bool {
        let mut state = self.board.state();
        state.clock(EDGES_PER_ACCESS);
        match self.line {
            Line::Status(line) if line + 1 == MAX_CHANNELS => {
                state.fault == Fault::CutReply || state.seen.last >> self.node & 1 == 1
            }
            Line::Status(line) => state.seen.release >> line & 1 == 1,
            _ => panic!("an outgoing line is written only"),
        }
    }
}

impl<M: Machine> ErrorType for Wire<M> {
    type Error = Infallible;
}

impl<M: Machine> OutputPin for Wire<M> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.set(true);
        Ok(())
    }
}

impl<M: Machine> InputPin for Wire<M> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.get())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.get())
    }
}

/// embedded-hal's delay, counted in edges of the board's clock.
pub struct Clock<M>(Board<M>);

impl<M: Machine> DelayNs for Clock<M> {
    fn delay_ns(&mut self, ns: u32) {
        let edges = u64::from(ns) * CLOCK_HZ / 1_000_000_000 + 1;
        // Delays are cut to 100 edges: no board operation takes longer, and the simulator computes every edge.
        self.0.state().clock(edges.min(100));
    }
}
