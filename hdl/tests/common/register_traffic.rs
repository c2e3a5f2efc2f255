//! Stimulus of a register block of three nodes and two groups: a script, and the bus inputs for it.
//!
//! The script exercises each rule and each refusal; each round also has random accesses and resets.

use hdl::play::in_bits;
use hdl::random::Random;

pub const NODES: usize = 3;
pub const GROUPS: usize = 2;
/// Number of address bits, the smallest that is legal.
pub const ADDRESS: usize = 13;

const LINES: usize = NODES * GROUPS;
const CTRL: u32 = 0x18;
const INTR_STATE: u32 = 0x20;
const INTR_ENABLE: u32 = 0x24;
const PULSE: u32 = 0x38;
const START: u32 = 0x3c;
const ACTION: u32 = 0x58;
const LIMIT: u32 = 0x38;
const DROP_LATE: u32 = 0xA500_0001;

/// An event of the script; all events except bus accesses take one edge.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Write(u32, u32, u8),
    Read(u32),
    Idle,
    Reset,
    /// Pulses on these lines of `enter_i` (a bit mask).
    Enter(u64),
    /// Changes of these wires (a bit mask).
    Wire(u64),
}

const fn group(g: usize, offset: u32) -> u32 {
    0x100 + 0x80 * g as u32 + offset
}

const fn node(n: usize, offset: u32) -> u32 {
    0x1000 + 0x40 * n as u32 + offset
}

struct Script {
    steps: Vec<Step>,
    random: Random,
    /// The nodes' ARRIVE registers: node n of group g is bit `g * NODES + n`.
    arrive: u64,
    wires: u64,
    /// The members of group 1; all nodes are members of group 0.
    second: &'static [usize],
}

/// Returns the script: the events in order.
pub fn script() -> Vec<Step> {
    let mut script = Script {
        steps: Vec::new(),
        random: Random::default(),
        arrive: 0,
        wires: 0,
        second: &[],
    };
    for round in 0..12 {
        script.second = if round % 2 == 0 { &[1, 0] } else { &[1, 2, 0] };
        script.reset();
        script.every_address();
        script.reset();
        script.set_up();
        for g in [0, 1, 0, 0, 1, 1, 0, 1] {
            script.barrier(g);
        }
        script.limits();
        script.reset();
        script.set_up();
        script.pulses();
        if round == 0 {
            script.counters();
        }
        script.reset();
        script.set_up();
        script.anything(400);
    }
    script.steps
}

impl Script {
    fn write(&mut self, address: u32, value: u32) {
        self.steps.push(Step::Write(address, value, 15));
    }

    fn idle(&mut self, edges: usize) {
        self.steps.extend(std::iter::repeat_n(Step::Idle, edges));
    }

    /// Resets the block; the wires become low too, so that all lines are low.
    fn reset(&mut self) {
        self.steps.push(Step::Wire(self.wires));
        self.idle(3);
        self.steps.push(Step::Reset);
        (self.arrive, self.wires) = (0, 0);
    }

    /// Reads and writes every register and unused addresses, with all and with some bytes enabled.
    fn every_address(&mut self) {
        let blocks = [(0, 0x60), (0x100, 0x280), (0x1000, 0x10e0)];
        for address in blocks
            .into_iter()
            .flat_map(|(from, to)| (from..to).step_by(4))
        {
            self.steps.push(Step::Read(address));
            for strobes in [15, 0, self.random.below(15) as u8] {
                let value = self.random.next_u64() as u32;
                self.steps.push(Step::Write(address, value, strobes));
            }
            self.steps.push(Step::Read(address));
        }
    }

    fn set_up(&mut self) {
        self.write(INTR_ENABLE, 0x01ff_ffff);
        for n in 0..NODES {
            self.write(node(n, 0x14), 0xffff);
        }
        for g in 0..GROUPS {
            self.write(group(g, 0), self.mask(g));
        }
        self.write(CTRL, 1);
    }

    fn members(&self, g: usize) -> &'static [usize] {
        if g == 0 { &[2, 0, 1] } else { self.second }
    }

    fn mask(&self, g: usize) -> u32 {
        self.members(g).iter().map(|n| 1 << n).sum()
    }

    /// Lets node `n` enter group `g` in a random way: a write of ARRIVE or of TOGGLE,
    /// a pulse on `enter_i`, or a change of the wire.
    fn enter(&mut self, g: usize, n: usize) {
        let line = 1 << (g * NODES + n);
        let way = self.random.below(4);
        if way == 3 {
            self.wires ^= line;
            self.steps.push(Step::Wire(line));
            return self.idle(4);
        }
        self.arrive ^= line;
        let levels = (0..GROUPS).map(|g| (self.arrive >> (g * NODES + n) & 1) << g);
        match way {
            0 => self.write(node(n, 0), levels.sum::<u64>() as u32),
            1 => self.write(node(n, 0x2c), 1 << g),
            _ => self.steps.push(Step::Enter(line)),
        }
    }

    fn barrier(&mut self, g: usize) {
        for &n in self.members(g) {
            self.enter(g, n);
            self.steps.push(Step::Read(group(g, 0x10)));
            self.steps.push(Step::Read(group(g, 0x30)));
        }
        self.idle(2);
        for n in 0..NODES {
            self.steps.push(Step::Read(node(n, 0x08)));
            self.write(node(n, 0x10), 0xffff);
        }
        for offset in [0x34, 0x40, 0x48] {
            self.steps.push(Step::Read(group(g, offset)));
        }
        self.write(INTR_STATE, 0x01ff_ffff);
    }

    /// Adds barriers whose time limit expires: the block refuses a write of MASK and a wrong value of ACTION,
    /// a longer limit extends the barrier, and after this limit `DROP_LATE` ends it.
    fn limits(&mut self) {
        for (turn, g) in [0, 1, 0, 1].into_iter().enumerate() {
            let members = self.members(g);
            let first = members[turn / 2];
            self.write(group(g, LIMIT), 3);
            self.enter(g, first);
            self.write(group(g, 0), 1);
            self.write(group(g, ACTION), DROP_LATE ^ 2);
            self.idle(6);
            for offset in [0x20, 0x30, 0x3c, LIMIT] {
                self.steps.push(Step::Read(group(g, offset)));
            }
            self.write(group(g, LIMIT), 5);
            self.idle(8);
            self.write(group(g, ACTION), DROP_LATE);
            self.idle(3);
            // The dropped members change their lines to the level; then all are members again.
            for &n in members.iter().filter(|n| **n != first) {
                self.enter(g, n);
            }
            self.write(group(g, 0), self.mask(g));
            self.barrier(g);
        }
        self.write(group(1, 0x04), 0);
        self.write(CTRL, 0);
        self.enter(0, 0);
        self.enter(0, 0);
        self.write(CTRL, 1);
    }

    /// Adds start pulses of both polarities and several widths, from each group,
    /// with releases and a reset during a pulse.
    fn pulses(&mut self) {
        for (turn, width) in [1, 2, 7, 0x5555, 0xffff].into_iter().enumerate() {
            let inverted = u32::from(turn % 2 == 1) << 16;
            for groups in [1, 2, 3] {
                self.write(PULSE, groups << 24 | inverted | width);
                for g in [0, 1, 0] {
                    let members = self.members(g).iter().map(|n| 1 << (g * NODES + n));
                    self.steps.push(Step::Enter(members.sum()));
                    self.idle(turn % 3);
                    self.steps.push(Step::Read(START));
                }
                self.steps.push(Step::Read(PULSE));
            }
            self.idle(9);
            if width > 9 {
                self.reset();
                self.set_up();
            }
        }
    }

    /// Lets the counters of group 0 count expired limits and early arrivals up to their maximum.
    fn counters(&mut self) {
        self.write(group(0, LIMIT), 1);
        for _ in 0..260 {
            self.steps.push(Step::Enter(0b001));
            self.idle(4);
            self.steps.push(Step::Enter(0b110));
            self.idle(2);
        }
        for _ in 0..260 {
            self.steps.push(Step::Enter(0b111));
            self.steps.push(Step::Enter(0b001));
            self.steps.push(Step::Enter(0b001));
            self.idle(2);
        }
        self.steps.push(Step::Read(group(0, 0x3c)));
    }

    fn anything(&mut self, steps: usize) {
        for _ in 0..steps {
            let random = &mut self.random;
            let value = random.next_u64() as u32;
            let address = match random.below(4) {
                0 => random.below(24) as u32 * 4,
                1 => group(random.below(2) as usize, random.below(24) as u32 * 4),
                2 => node(random.below(3) as usize, random.below(13) as u32 * 4),
                _ => random.below(1 << ADDRESS) as u32,
            };
            let step = match random.below(8) {
                0..3 => Step::Write(
                    address,
                    value,
                    if random.one_in(4) {
                        value as u8 & 15
                    } else {
                        15
                    },
                ),
                3..6 => Step::Read(address),
                6 => Step::Enter(u64::from(value) & ((1 << LINES) - 1)),
                _ if random.one_in(3) => Step::Wire(1 << random.below(LINES as u64)),
                _ => Step::Idle,
            };
            if let Step::Wire(lines) = step {
                self.wires ^= lines;
            }
            self.steps.push(step);
        }
    }
}

/// A bus; it generates the bus inputs of each edge, without reset, wires and pulses.
trait Bus {
    fn idle(&mut self) -> String;
    /// Appends the inputs of an access.
    fn access(
        &mut self,
        write: bool,
        address: u32,
        value: u32,
        strobes: u8,
        edges: &mut Vec<String>,
    );
}

struct Apb;

impl Bus for Apb {
    fn idle(&mut self) -> String {
        "0".repeat(3 + ADDRESS + 36)
    }

    fn access(
        &mut self,
        write: bool,
        address: u32,
        value: u32,
        strobes: u8,
        edges: &mut Vec<String>,
    ) {
        let strobes = if write { strobes } else { 0 };
        let rest = in_bits(u64::from(write), 1) + &payload(address, value, strobes);
        edges.extend(["10", "11"].map(|phase| format!("{phase}{rest}")));
    }
}

struct Wishbone;

impl Bus for Wishbone {
    fn idle(&mut self) -> String {
        "0".repeat(3 + ADDRESS + 36)
    }

    fn access(
        &mut self,
        write: bool,
        address: u32,
        value: u32,
        strobes: u8,
        edges: &mut Vec<String>,
    ) {
        let strobes = if write { strobes } else { 15 };
        let asks = format!("11{}{}", u8::from(write), payload(address, value, strobes));
        edges.extend([asks.clone(), asks]);
        // Some requests are withdrawn after one cycle, while CYC stays high.
        if value % 16 == 1 {
            edges.push(format!("110{}", payload(address, value, strobes)));
            edges.push(format!("100{}", payload(address, value, strobes)));
        }
    }
}

/// The master of AXI4-Lite, which accepts responses at random times.
struct Axi {
    random: Random,
    written: bool,
    read: bool,
}

impl Axi {
    fn edge(&mut self, write: Option<(u32, u32, u8)>, read: Option<u32>) -> (String, bool) {
        let [takes_b, takes_r] = [(); 2].map(|()| !self.random.one_in(4));
        // Sometimes only the address or only the data of a write is valid.
        let halves = (write.is_some() && self.random.one_in(8)).then(|| self.random.one_in(2));
        let (address, value, strobes) = write.unwrap_or((0, 0, 0));
        let (aw, w) = (
            write.is_some() && halves != Some(true),
            write.is_some() && halves != Some(false),
        );
        let writes = aw && w && (!self.written || takes_b);
        let reads = read.is_some() && (!self.read || takes_r);
        self.written = writes || (self.written && !takes_b);
        self.read = reads || (self.read && !takes_r);
        let bit = |level: bool| if level { "1" } else { "0" };
        let line = [
            bit(aw).to_owned(),
            in_bits(u64::from(address), ADDRESS),
            bit(w).to_owned(),
            in_bits(u64::from(value), 32),
            in_bits(u64::from(strobes), 4),
            bit(takes_b).to_owned(),
            bit(read.is_some()).to_owned(),
            in_bits(u64::from(read.unwrap_or(0)), ADDRESS),
            bit(takes_r).to_owned(),
        ];
        (line.concat(), writes || reads)
    }
}

impl Bus for Axi {
    fn idle(&mut self) -> String {
        self.edge(None, None).0
    }

    fn access(
        &mut self,
        write: bool,
        address: u32,
        value: u32,
        strobes: u8,
        edges: &mut Vec<String>,
    ) {
        loop {
            let (line, taken) = match write {
                true => self.edge(Some((address, value, strobes)), None),
                false => self.edge(None, Some(address)),
            };
            edges.push(line);
            if taken {
                break;
            }
        }
    }
}

fn payload(address: u32, value: u32, strobes: u8) -> String {
    in_bits(u64::from(address), ADDRESS)
        + &in_bits(u64::from(value), 32)
        + &in_bits(u64::from(strobes), 4)
}

/// Returns the script as inputs of the design with this bus: reset, the bus, `node_i`, `enter_i`.
pub fn inputs(bus: &str) -> String {
    let mut front: Box<dyn Bus> = match bus {
        "barrier_apb" => Box::new(Apb),
        "barrier_wishbone" => Box::new(Wishbone),
        _ => Box::new(Axi {
            random: Random::default(),
            written: false,
            read: false,
        }),
    };
    let mut text = String::new();
    let mut wires = 0;
    for step in script() {
        let mut edges = Vec::new();
        let (mut reset, mut enter) = (false, 0);
        match step {
            Step::Write(address, value, strobes) => {
                front.access(true, address, value, strobes, &mut edges)
            }
            Step::Read(address) => front.access(false, address, 0, 0, &mut edges),
            Step::Idle => edges.push(front.idle()),
            Step::Reset => {
                reset = true;
                edges.push(front.idle());
            }
            Step::Enter(lines) => {
                enter = lines;
                edges.push(front.idle());
            }
            Step::Wire(lines) => {
                wires ^= lines;
                edges.push(front.idle());
            }
        }
        for edge in edges {
            let lines = in_bits(wires, LINES) + &in_bits(enter, LINES);
            text += &format!("{}{edge}{lines}\n", u8::from(reset));
        }
    }
    text
}
