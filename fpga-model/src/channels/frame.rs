//! The serial protocol: format of requests and replies ([`FRAME_BITS`]), their check bits, operations and status codes.
//!
//! The check is CRC-16/IBM-3740, not reflected, without a final inversion.
//! Over 88 bits it detects all errors of one, two or three bits and all bursts of up to 16 bits.
//! It detects all but one in 65,536 frames that are shifted by a lost or doubled clock.
//! For the remaining ones, the channel number that the reply repeats is a second check.
//! Neither all zeros nor all ones is a valid frame, so a wire that is cut,
//! stuck or connected to another signal gives no valid reply.
//!
//! The hardware model and the driver use this module.
//! `hdl/channels/frame.txt` describes the format,
//! and `cargo xtask gen` writes the marked regions here and in the RTL from that file.

// generated from hdl/channels/frame.txt: format
/// Bits of a frame, the highest bit of each field first:
///
/// ```text
/// request   operation:4  channel:4  argument:64  check:16
/// reply     status:4     channel:4  value:64     check:16
/// ```
pub const FRAME_BITS: u8 = 88;

/// Bits of a frame before its check.
pub const BODY_BITS: u8 = 72;

/// Bits of the check.
const CHECK_BITS: u8 = 16;
const CODE_BITS: u8 = 4;
const CHANNEL_BITS: u8 = 4;
const VALUE_BITS: u8 = 64;

/// The initial value of the check, CRC-16/IBM-3740.
pub const CHECK_START: u16 = 0xffff;
const POLYNOMIAL: u16 = 0x1021;
// end of the generated text

// generated from hdl/channels/frame.txt: version
/// The version that the hardware reports.
pub const VERSION: u8 = 2;
// end of the generated text

const BODY: u128 = (1 << BODY_BITS) - 1;

/// Returns a number whose lowest `bits` bits are ones.
const fn low(bits: u8) -> u8 {
    (1 << bits) - 1
}

/// Returns the CRC after one more bit of the frame.
pub const fn check_bit(check: u16, bit: bool) -> u16 {
    let feedback = (check >> (CHECK_BITS - 1) == 1) != bit;
    (check << 1) ^ if feedback { POLYNOMIAL } else { 0 }
}

// generated from hdl/channels/frame.txt: operations
/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Returns version, nodes and channels; the channel is ignored.
    Identify = 1,
    /// Makes the nodes of the argument the members of a free channel; without nodes, frees a channel.
    SetMask = 2,
    /// Sets the number of edges that a barrier may take before the missing members are latched; 0 for no limit.
    /// Clears the latch.
    SetLimit = 3,
    /// Returns the members.
    ReadMask = 4,
    /// Returns the members that have arrived in the barrier in progress; none if the channel is idle.
    ReadArrived = 5,
    /// Returns the members that were missing when a time limit first expired; none if it has not.
    ReadLate = 6,
    /// Removes the nodes of the argument from the members, in the middle of a barrier, which then releases the others.
    /// Granted to a member if the barrier's limit has expired, these nodes are exactly those that it waits for, and the others are more.
    Drop = 7,
    /// Returns the number of expired limits and of early releases.
    ReadCounts = 8,
}

impl Operation {
    /// The operation with this code.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Identify,
            2 => Self::SetMask,
            3 => Self::SetLimit,
            4 => Self::ReadMask,
            5 => Self::ReadArrived,
            6 => Self::ReadLate,
            7 => Self::Drop,
            8 => Self::ReadCounts,
            _ => return None,
        })
    }
}
// end of the generated text

// generated from hdl/channels/frame.txt: statuses
/// The result of a request. Only [`Done`](Self::Done) changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Success; the value is what was requested, or what is set now.
    Done = 1,
    /// The check bits of the request were wrong.
    BadCheck = 2,
    /// The operation code is unknown.
    NoSuchOperation = 3,
    /// The channel does not exist.
    NoSuchChannel = 4,
    /// The mask names nodes that do not exist, or the limit does not fit 32 bits; the value is the offending bits.
    BadValue = 5,
    /// The node is not, or would not be, a member of the channel; the value is the members.
    NotMember = 6,
    /// The channel already has other members; the value is the present members.
    Taken = 7,
    /// Lines of old or new members are not at the channel's level; the value is the nodes of these lines.
    NotIdle = 8,
    /// The nodes to be dropped are not exactly the missing members of a barrier whose limit has expired; the value is the members that have arrived.
    NotLate = 9,
    /// The members that have arrived are not more than those to be dropped; the value is the members that have arrived.
    Minority = 10,
}

impl Status {
    /// The status with this code.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Done,
            2 => Self::BadCheck,
            3 => Self::NoSuchOperation,
            4 => Self::NoSuchChannel,
            5 => Self::BadValue,
            6 => Self::NotMember,
            7 => Self::Taken,
            8 => Self::NotIdle,
            9 => Self::NotLate,
            10 => Self::Minority,
            _ => return None,
        })
    }
}
// end of the generated text

/// The contents of a frame without its check bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The code of an operation or status, in the lowest bits; higher bits are ignored.
    pub code: u8,
    /// The channel, which a reply repeats; higher bits are ignored.
    pub channel: u8,
    /// The argument of a request, or the value of a reply.
    pub value: u64,
}

impl Body {
    /// Returns the body as [`BODY_BITS`] bits, right aligned.
    pub const fn bits(self) -> u128 {
        let code = (self.code & low(CODE_BITS)) as u128;
        let channel = (self.channel & low(CHANNEL_BITS)) as u128;
        (code << CHANNEL_BITS | channel) << VALUE_BITS | self.value as u128
    }

    /// Decodes the bits of a body; higher bits are ignored.
    pub const fn from_bits(bits: u128) -> Self {
        Self {
            code: (bits >> (VALUE_BITS + CHANNEL_BITS)) as u8 & low(CODE_BITS),
            channel: (bits >> VALUE_BITS) as u8 & low(CHANNEL_BITS),
            value: bits as u64,
        }
    }

    /// Returns the whole frame, right aligned: the body and its check.
    pub const fn frame(self) -> u128 {
        let bits = self.bits();
        let mut check = CHECK_START;
        let mut left = BODY_BITS;
        while left > 0 {
            left -= 1;
            check = check_bit(check, bits >> left & 1 == 1);
        }
        bits << CHECK_BITS | check as u128
    }

    /// Decodes a frame; `None` if its check is wrong.
    pub const fn from_frame(frame: u128) -> Option<Self> {
        let body = Self::from_bits(frame >> CHECK_BITS & BODY);
        if body.frame() == frame {
            Some(body)
        } else {
            None
        }
    }
}

/// The identity of the hardware: version and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The version, [`VERSION`].
    pub version: u8,
    /// The number of nodes that have lines.
    pub nodes: u8,
    /// The number of channels.
    pub channels: u8,
}

impl Identity {
    /// Returns the value of the reply to [`Operation::Identify`].
    pub const fn value(self) -> u64 {
        (self.version as u64) << 16 | (self.nodes as u64) << 8 | self.channels as u64
    }

    /// Decodes the value of a reply to [`Operation::Identify`].
    pub const fn from_value(value: u64) -> Self {
        Self {
            version: (value >> 16) as u8,
            nodes: (value >> 8) as u8,
            channels: value as u8,
        }
    }
}

/// The counters of a channel since its members were set, each up to [`MOST_COUNTED`](super::MOST_COUNTED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The number of barriers whose time limit has expired.
    pub expired: u8,
    /// The number of early releases.
    pub early: u8,
}

impl Counts {
    /// Returns the value of the reply to [`Operation::ReadCounts`].
    pub const fn value(self) -> u64 {
        (self.early as u64) << 8 | self.expired as u64
    }

    /// Decodes the value of a reply to [`Operation::ReadCounts`].
    pub const fn from_value(value: u64) -> Self {
        Self {
            expired: value as u8,
            early: (value >> 8) as u8,
        }
    }
}
