//! A version 2 board under test, and a node's side of the serial protocol.

use fpga_model::LATENCY_EDGES;
use fpga_model::channels::frame::{Body, FRAME_BITS, Operation, Status};
use fpga_model::channels::{ChannelMachine, Pins, SETTLE_EDGES};

/// A board and its lines. After each write to a line it runs the clock edges of one port access.
#[derive(Clone)]
pub struct Board {
    pub machine: ChannelMachine,
    pub pins: Pins,
    /// The levels of select, clock, data and status line 4 of the node, recorded at each write.
    pub seen: Vec<[bool; 4]>,
}

impl Board {
    pub fn new(nodes: usize, channels: usize) -> Self {
        let machine = ChannelMachine::new(nodes, channels).expect("a legal size");
        Self {
            machine,
            pins: Pins::default(),
            seen: Vec::new(),
        }
    }

    pub fn write(&mut self, node: usize, line: fn(&mut Pins) -> &mut u64, level: bool) {
        let lines = line(&mut self.pins);
        *lines = *lines & !(1 << node) | u64::from(level) << node;
        self.machine.fast_forward(&self.pins, SETTLE_EDGES);
        let Pins {
            select,
            clock,
            data,
            ..
        } = self.pins;
        let [select, clock, data] = [select, clock, data].map(|lines| lines >> node & 1 == 1);
        self.seen
            .push([select, clock, data, self.machine.reads(node, 4)]);
    }

    /// Raises select, sends the highest `bits` bits of a frame, and leaves select high.
    pub fn send(&mut self, node: usize, frame: u128, bits: u8) {
        self.write(node, |p| &mut p.clock, false);
        self.write(node, |p| &mut p.select, true);
        for bit in 0..bits {
            self.write(
                node,
                |p| &mut p.data,
                frame >> (FRAME_BITS - 1 - bit) & 1 == 1,
            );
            self.write(node, |p| &mut p.clock, true);
            self.write(node, |p| &mut p.clock, false);
        }
    }

    pub fn receive(&mut self, node: usize) -> Option<Body> {
        let frame = (0..FRAME_BITS).fold(0, |frame, _| {
            let bit = self.machine.reads(node, 4);
            self.write(node, |p| &mut p.clock, true);
            self.write(node, |p| &mut p.clock, false);
            frame << 1 | u128::from(bit)
        });
        Body::from_frame(frame)
    }

    pub fn hang_up(&mut self, node: usize) {
        self.write(node, |p| &mut p.select, false);
    }

    pub fn raw(&mut self, node: usize, request: Body) -> (Status, u64) {
        self.send(node, request.frame(), FRAME_BITS);
        let reply = self.receive(node).expect("a reply with a right check");
        self.hang_up(node);
        assert_eq!(reply.channel, request.channel);
        let status = Status::from_code(reply.code).expect("a status");
        (status, reply.value)
    }

    pub fn ask(&mut self, node: usize, op: Operation, channel: u8, value: u64) -> (Status, u64) {
        let code = op as u8;
        self.raw(
            node,
            Body {
                code,
                channel,
                value,
            },
        )
    }

    pub fn arrive(&mut self, channel: usize, lines: u64) {
        self.pins.arrive[channel] = lines;
        self.machine.fast_forward(&self.pins, LATENCY_EDGES);
    }

    pub fn mask(&self, channel: usize) -> u64 {
        self.machine.channel(channel).expect("a channel").mask
    }

    pub fn count(&self, channel: usize) -> u64 {
        self.machine.channel(channel).expect("a channel").releases
    }
}
