//! What the serial lines say: requests and replies, their check bits, and what their numbers mean.
//!
//! ```text
//! request   operation:4  channel:4  argument:64  check:16     88 bits, the highest bit of each first
//! reply     status:4     channel:4  value:64     check:16
//! ```
//!
//! The check is CRC-16/IBM-3740: polynomial 0x1021, first value 0xffff, nothing reflected, nothing inverted at the end.
//! Over 88 bits it finds every one, two or three wrong bits and every burst of up to 16,
//! and a frame shifted by a lost or doubled clock in all but one of 65,536 cases; the reply then still tells what was understood.
//! Neither all zeros nor all ones is a right frame, so a wire that is cut, stuck or another's is not an answer.
//!
//! The hardware and the driver both use this description; there is no other.

/// Bits of a frame before its check.
pub const BODY_BITS: u8 = 72;

/// Bits of a frame.
pub const FRAME_BITS: u8 = BODY_BITS + 16;

/// The check before the first bit.
pub const CHECK_START: u16 = 0xffff;

const BODY: u128 = (1 << BODY_BITS) - 1;

/// The check after one more bit.
pub const fn check_bit(check: u16, bit: bool) -> u16 {
    let feedback = (check >> 15 == 1) != bit;
    (check << 1) ^ if feedback { 0x1021 } else { 0 }
}

/// What a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The value is version, nodes and channels, see [`Identity`]; the channel is not looked at.
    Identify = 1,
    /// Makes the nodes of the argument members of a free channel, or with no nodes returns a channel.
    SetMask = 2,
    /// Sets how many edges a barrier may take before those that are missing are latched; 0 for no limit. Clears the latch.
    SetLimit = 3,
    /// The value is the members.
    ReadMask = 4,
    /// The value is the members that have arrived in the barrier in progress; none if the channel is idle.
    ReadArrived = 5,
    /// The value is the members that were missing when a time limit first ran out; none if it has not.
    ReadLate = 6,
    /// The nodes of the argument are members no more, in the middle of a barrier, which then releases the others.
    /// Granted to a member when the barrier has taken its limit, these nodes are those that it waits for, and the others are more.
    Drop = 7,
    /// The value is how often the limit has run out and how many releases were early, see [`Counts`].
    ReadCounts = 8,
}

impl Operation {
    /// The operation of that number.
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

/// How a request ended. Whatever is not [`Done`](Self::Done) has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The value is what was asked for, or what is set now.
    Done = 1,
    /// The check bits of the request were wrong.
    BadCheck = 2,
    /// There is no operation of this number.
    NoSuchOperation = 3,
    /// There is no channel of this number.
    NoSuchChannel = 4,
    /// A mask names nodes that do not exist, or a limit does not fit 32 bits; the value is the bits in question.
    BadValue = 5,
    /// The node is no member of the channel, or would not be one; the value is the members.
    NotMember = 6,
    /// The channel has other members already; the value is them.
    Taken = 7,
    /// Lines of members, old or new, are not at the channel's level; the value is those nodes.
    NotIdle = 8,
    /// Nodes to be dropped are not all those that a barrier awaits which has taken its limit; the value is those that have arrived.
    NotLate = 9,
    /// The members that have arrived are not more than those to be dropped; the value is them.
    Minority = 10,
}

impl Status {
    /// The status of that number.
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

/// What a frame carries besides its check; `code` is an operation or a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The operation of a request, the status of a reply: 4 bits.
    pub code: u8,
    /// The channel, which a reply repeats: 4 bits.
    pub channel: u8,
    /// The argument of a request, the value of a reply.
    pub value: u64,
}

impl Body {
    /// The [`BODY_BITS`] bits, right aligned.
    pub const fn bits(self) -> u128 {
        let head = ((self.code & 15) as u128) << 4 | (self.channel & 15) as u128;
        head << 64 | self.value as u128
    }

    /// The body of these bits; higher ones are not looked at.
    pub const fn from_bits(bits: u128) -> Self {
        Self {
            code: (bits >> 68) as u8 & 15,
            channel: (bits >> 64) as u8 & 15,
            value: bits as u64,
        }
    }

    /// The whole frame, right aligned: the body and its check.
    pub const fn frame(self) -> u128 {
        let bits = self.bits();
        let mut check = CHECK_START;
        let mut left = BODY_BITS;
        while left > 0 {
            left -= 1;
            check = check_bit(check, bits >> left & 1 == 1);
        }
        bits << 16 | check as u128
    }

    /// The body of a frame whose check is right.
    pub const fn from_frame(frame: u128) -> Option<Self> {
        let body = Self::from_bits(frame >> 16 & BODY);
        if body.frame() == frame {
            Some(body)
        } else {
            None
        }
    }
}

/// What the hardware says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// 2.
    pub version: u8,
    /// How many nodes have lines.
    pub nodes: u8,
    /// How many channels there are.
    pub channels: u8,
}

impl Identity {
    /// The value of the reply to [`Operation::Identify`].
    pub const fn value(self) -> u64 {
        (self.version as u64) << 16 | (self.nodes as u64) << 8 | self.channels as u64
    }

    /// The identity that a reply's value tells.
    pub const fn from_value(value: u64) -> Self {
        Self {
            version: (value >> 16) as u8,
            nodes: (value >> 8) as u8,
            channels: value as u8,
        }
    }
}

/// What a channel has counted since its members were set, each up to [`MOST_COUNTED`](super::MOST_COUNTED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// How often the time limit of a barrier has run out.
    pub expired: u8,
    /// How many releases were early.
    pub early: u8,
}

impl Counts {
    /// The value of the reply to [`Operation::ReadCounts`].
    pub const fn value(self) -> u64 {
        (self.early as u64) << 8 | self.expired as u64
    }

    /// The counts that a reply's value tells.
    pub const fn from_value(value: u64) -> Self {
        Self {
            expired: value as u8,
            early: (value >> 8) as u8,
        }
    }
}
