//! The master of a node's serial lines, which sends requests and receives replies;
//! `fpga_model::channels::frame` defines their format.
//!
//! # A session
//!
//! 1. Clock low, select high.
//! 2. Each bit of the request: data, clock high, clock low.
//! 3. Each bit of the reply: read it, clock high, clock low.
//! 4. Select low.
//!
//! After each write the driver holds the lines for [`HOLD_NS`], which the hardware's input filter needs;
//! a parallel port is slower anyway.
//!
//! # Why a request may be repeated
//!
//! A read changes nothing, and setting a value that is already set succeeds.
//! So if the reply is lost, the request can be sent again, whether or not it was executed.
//! Two nodes that program at the same time need no other rule: the one without the receiver gets no reply and repeats its request.

use super::{ProgramError, ReplyLine};
use crate::PinFault;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use fpga_model::CLOCK_HZ;
use fpga_model::channels::SETTLE_EDGES;
use fpga_model::channels::frame::{Body, Counts, FRAME_BITS, Identity, Operation, Status};

/// Time for which the driver holds each level, in ns: twice what the hardware needs,
/// to allow for cables and a slow clock.
pub const HOLD_NS: u32 = (2 * SETTLE_EDGES * 1_000_000_000 / CLOCK_HZ) as u32;

/// Maximum number of times that a request is sent.
const TRIES: u32 = 8;

/// Pause before the second try; it doubles for each further try.
/// A session at a parallel port takes about this time.
const PAUSE_US: u32 = 500;

const ALL_HIGH: u128 = (1 << FRAME_BITS) - 1;

/// The outgoing serial lines of a node.
#[derive(Debug)]
pub struct SerialPins<O> {
    /// The clock line, D5.
    pub clock: O,
    /// The data line, D6.
    pub data: O,
    /// The select line, D7.
    pub select: O,
}

/// Sends requests to the hardware for one node.
#[derive(Debug)]
pub struct Programmer<O, R, D> {
    pins: SerialPins<O>,
    reply: R,
    delay: D,
}

impl<O, R, D> Programmer<O, R, D>
where
    O: OutputPin,
    R: ReplyLine<Error = O::Error>,
    D: DelayNs,
{
    /// Creates the programmer, and ends any session that a dead job has left open.
    pub fn new(pins: SerialPins<O>, reply: R, delay: D) -> Result<Self, ProgramError<O::Error>> {
        let mut programmer = Self { pins, reply, delay };
        programmer.select(PinState::Low)?;
        programmer.clock(PinState::Low)?;
        Ok(programmer)
    }

    /// Reads the identity of the hardware.
    pub fn identify(&mut self) -> Result<Identity, ProgramError<O::Error>> {
        let value = self.request(Operation::Identify, 0, 0)?;
        Ok(Identity::from_value(value))
    }

    /// Makes `members`, including this node, the members of a free channel.
    ///
    /// All of these nodes must be at rest: their [`ToggleBarrier`](crate::ToggleBarrier)s are open,
    /// and no node has entered.
    pub fn take(&mut self, channel: u8, members: u64) -> Result<(), ProgramError<O::Error>> {
        self.request(Operation::SetMask, channel, members).map(drop)
    }

    /// Frees a channel that this node is a member of; the lines of all members must be at rest.
    pub fn give_back(&mut self, channel: u8) -> Result<(), ProgramError<O::Error>> {
        self.request(Operation::SetMask, channel, 0).map(drop)
    }

    /// Sets the channel's time limit, in clock edges, after which the hardware stores the missing members of a barrier;
    /// 0 disables the limit.
    pub fn set_limit(&mut self, channel: u8, edges: u32) -> Result<(), ProgramError<O::Error>> {
        self.request(Operation::SetLimit, channel, u64::from(edges))
            .map(drop)
    }

    /// Reads the members of a channel; 0 if it is free.
    pub fn members(&mut self, channel: u8) -> Result<u64, ProgramError<O::Error>> {
        self.request(Operation::ReadMask, channel, 0)
    }

    /// Reads the nodes that have arrived in the barrier in progress; 0 if the channel is idle.
    pub fn arrived(&mut self, channel: u8) -> Result<u64, ProgramError<O::Error>> {
        self.request(Operation::ReadArrived, channel, 0)
    }

    /// Reads the nodes that were missing when the time limit first expired;
    /// 0 if it has not expired.
    pub fn late(&mut self, channel: u8) -> Result<u64, ProgramError<O::Error>> {
        self.request(Operation::ReadLate, channel, 0)
    }

    /// Reads the channel's counters since its members were set: expired limits and early releases.
    pub fn counts(&mut self, channel: u8) -> Result<Counts, ProgramError<O::Error>> {
        let value = self.request(Operation::ReadCounts, channel, 0)?;
        Ok(Counts::from_value(value))
    }

    /// Removes the members `gone`, for which the others have waited longer than the channel's limit; returns the remaining members.
    ///
    /// The hardware then releases the remaining members from the barrier.
    /// It refuses unless `gone` are exactly the missing nodes of the present
    /// barrier, and are fewer than the nodes that have arrived.
    pub fn drop_members(&mut self, channel: u8, gone: u64) -> Result<u64, ProgramError<O::Error>> {
        let refused = match self.request(Operation::Drop, channel, gone) {
            Err(refused @ ProgramError::Refused { .. }) => refused,
            answer => return answer,
        };
        // If an earlier reply was lost, or another member has sent the same request,
        // the nodes `gone` are no longer members, which is a success.
        let members = self.members(channel)?;
        match members & gone {
            0 if members != 0 => Ok(members),
            _ => Err(refused),
        }
    }

    /// Sends a request until the hardware answers, at most 8 times, and returns the value of the reply.
    pub fn request(
        &mut self,
        operation: Operation,
        channel: u8,
        value: u64,
    ) -> Result<u64, ProgramError<O::Error>> {
        let code = operation as u8;
        let body = Body {
            code,
            channel,
            value,
        };
        let mut pause = PAUSE_US;
        let mut tries = 1;
        loop {
            let problem = match decode_reply(body, self.session(body.frame())?) {
                Ok(value) => return Ok(value),
                Err(ReplyError::Final(status, value)) => {
                    return Err(ProgramError::Refused {
                        channel,
                        status,
                        value,
                    });
                }
                Err(ReplyError::Silent(level)) => ProgramError::NoAnswer { level, tries },
                Err(ReplyError::Noisy) => ProgramError::Garbled { tries },
            };
            if tries == TRIES {
                return Err(problem);
            }
            self.delay.delay_us(pause);
            pause *= 2;
            tries += 1;
        }
    }

    /// Runs one session; returns the bits of the reply.
    fn session(&mut self, frame: u128) -> Result<u128, ProgramError<O::Error>> {
        // The line is cloned, so that it can stay locked while the other pins are written.
        let reply = self.reply.clone();
        reply.hold(|line| {
            let heard = self.exchange(frame, line);
            // Select is lowered also after an error.
            // Otherwise the hardware would reserve its receiver for this node until the lease expires.
            let hung_up = self.select(PinState::Low);
            let heard = heard?;
            hung_up?;
            Ok(heard)
        })
    }

    fn exchange(&mut self, frame: u128, line: &mut R::Pin) -> Result<u128, PinFault<O::Error>> {
        self.clock(PinState::Low)?;
        self.select(PinState::High)?;
        for bit in (0..FRAME_BITS).rev() {
            let level = PinState::from(frame >> bit & 1 == 1);
            self.pins.data.set_state(level).map_err(PinFault::Write)?;
            self.hold();
            self.pulse()?;
        }
        let mut heard = 0;
        for _ in 0..FRAME_BITS {
            let bit = line.is_high().map_err(PinFault::Read)?;
            heard = heard << 1 | u128::from(bit);
            self.pulse()?;
        }
        Ok(heard)
    }

    fn pulse(&mut self) -> Result<(), PinFault<O::Error>> {
        self.clock(PinState::High)?;
        self.clock(PinState::Low)
    }

    fn clock(&mut self, level: PinState) -> Result<(), PinFault<O::Error>> {
        self.pins.clock.set_state(level).map_err(PinFault::Write)?;
        self.hold();
        Ok(())
    }

    fn select(&mut self, level: PinState) -> Result<(), PinFault<O::Error>> {
        self.pins.select.set_state(level).map_err(PinFault::Write)?;
        self.hold();
        Ok(())
    }

    fn hold(&mut self) {
        self.delay.delay_ns(HOLD_NS);
    }
}

/// The reason why the received bits are not a successful reply.
enum ReplyError {
    /// The hardware has refused the request.
    Final(Status, u64),
    /// There was no reply: the line kept one level.
    Silent(PinState),
    /// The reply was damaged, or reports that the request was.
    Noisy,
}

/// Checks that these bits are the reply to this request; returns the reply's value.
fn decode_reply(request: Body, heard: u128) -> Result<u64, ReplyError> {
    match heard {
        0 => return Err(ReplyError::Silent(PinState::Low)),
        ALL_HIGH => return Err(ReplyError::Silent(PinState::High)),
        _ => {}
    }
    let reply = Body::from_frame(heard).ok_or(ReplyError::Noisy)?;
    let status = Status::from_code(reply.code).ok_or(ReplyError::Noisy)?;
    let sets =
        request.code == Operation::SetMask as u8 || request.code == Operation::SetLimit as u8;
    match status {
        Status::BadCheck => Err(ReplyError::Noisy),
        // A shifted frame has a correct checksum with probability 1/65,536; the request's channel in the reply is a second check.
        _ if reply.channel != request.channel => Err(ReplyError::Noisy),
        Status::Done if sets && reply.value != request.value => Err(ReplyError::Noisy),
        Status::Done => Ok(reply.value),
        refusal => Err(ReplyError::Final(refusal, reply.value)),
    }
}
