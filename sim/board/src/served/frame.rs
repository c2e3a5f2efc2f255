//! The frames of the protocol: greetings, requests and replies of fixed sizes, each with one encoder and one decoder.
//!
//! Decoding is total: any bytes give a frame or [`Malformed`], and a decoded frame encodes to the same bytes.
//! Numbers are little-endian; bytes that a frame does not use are zero, so that a later version can use them.

use crate::live::{ChannelLook, Snapshot};
use fpga_model::MAX_NODES;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The protocol version of a board of version 1: one wire pair per node.
pub const VERSION: u8 = 1;
/// The protocol version of a board of version 2: five channels and serial lines per node.
pub const CHANNELS_VERSION: u8 = 2;
const MAGIC: [u8; 6] = *b"HWBARR";

/// Size of a greeting in bytes, the same in every protocol version.
pub const GREETING: usize = 8;
/// Size of a request in bytes.
pub const REQUEST: usize = 16;
/// Size of a reply in bytes.
pub const REPLY: usize = 48;

/// The error for bytes that are not a frame of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The first frame that the server or the client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// The sender's protocol version.
    pub version: u8,
    /// The server's number of nodes, or the client's [`Role`] as a byte.
    pub word: u8,
}

/// The requested role of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The driver of this node's wire.
    Node(u8),
    /// An observer, which only reads.
    BoardObserver,
}

/// A client's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Read the board.
    Look,
    /// Set the node's wire to this level.
    Write { high: bool },
    /// Set the node's wire to this level, unless the board has had more than `seen` releases.
    Withdraw { high: bool, seen: u64 },
    /// Set all lines of a node of version 2 to these levels.
    /// An arrival line keeps its level if its channel's release counter has changed since `seen`.
    Drive { levels: u8, seen: u64 },
    /// Set the node's wire to the eureka line to this level.
    Say { high: bool },
    /// Read the eureka line.
    Hear,
    /// Disconnect the node; its wire keeps its level.
    Disconnect,
    /// Read a channel of a board of version 2.
    ReadChannel { channel: u8 },
}

/// A reply of the server to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Accepts the client after its greeting; contains the state of the board.
    Welcome(View),
    /// Answers a request with the state of the board.
    Answer(View),
    /// Sent without a request: all nodes have entered, and the barrier has released them.
    Released(View),
    /// Answers a request about the eureka line.
    Eureka(Eureka),
    /// Answers a request about a channel; a channel that does not exist has no members.
    Channel(ChannelLook),
    /// Answers a disconnect message.
    Disconnected,
    /// Rejects a greeting or a request; this is the last reply of the connection.
    Refused(Refusal),
}

/// The board at one instant, with the mask of connected nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// The levels of the wires, and the number of releases.
    pub board: Snapshot,
    /// The nodes that a process drives, bit `n` for node `n`.
    pub connected: u64,
}

/// The eureka line at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Eureka {
    /// True if a node has raised the line.
    pub found: bool,
    /// Bit `n` is set if the line reports to node `n` that this node raised the line first.
    pub first: u64,
}

impl Eureka {
    /// Returns true if this node raised the line first.
    pub(super) fn is_first(&self, node: u8) -> bool {
        usize::from(node) < MAX_NODES && self.first >> node & 1 == 1
    }
}

/// The reason why the server rejects a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The board has no such node.
    NoSuchNode {
        /// The board's number of nodes.
        nodes: u8,
    },
    /// The node is connected already.
    NodeTaken {
        /// The address of the connected process.
        by: SocketAddr,
    },
    /// The maximum number of observers is connected.
    Crowded {
        /// The maximum number of observers.
        observers: u8,
    },
    /// An observer sent a write, but may only read.
    OnlyLooks,
    /// The request violates this version of the protocol.
    Malformed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchNode { nodes } => {
                write!(
                    f,
                    "its {nodes} nodes count from 0, and this is none of them"
                )
            }
            Self::NodeTaken { by } => write!(f, "that node is connected from {by}"),
            Self::Crowded { observers } => {
                write!(f, "{observers} observers are connected, which is its limit")
            }
            Self::OnlyLooks => f.write_str("an observer has no wire to write"),
            Self::Malformed => f.write_str("the request means nothing in its version"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node {node}"),
            Self::BoardObserver => f.write_str("an observer"),
        }
    }
}

/// The byte that encodes the role of an observer.
const OBSERVER: u8 = u8::MAX;

impl Role {
    /// Encodes the role: a node's number, which is below 64, or 255 for an observer.
    pub fn to_word(self) -> u8 {
        match self {
            Self::Node(node) => node,
            Self::BoardObserver => OBSERVER,
        }
    }

    /// Decodes any byte as a role; the server checks whether the board has the node.
    pub fn from_word(word: u8) -> Self {
        match word {
            OBSERVER => Self::BoardObserver,
            node => Self::Node(node),
        }
    }
}

impl Greeting {
    pub fn encode(self) -> [u8; GREETING] {
        let [a, b, c, d, e, f] = MAGIC;
        [a, b, c, d, e, f, self.version, self.word]
    }

    pub fn decode(bytes: &[u8; GREETING]) -> Result<Self, Malformed> {
        let [magic @ .., version, word] = *bytes;
        match magic == MAGIC {
            true => Ok(Self { version, word }),
            false => Err(Malformed),
        }
    }
}

impl Request {
    pub fn encode(self) -> [u8; REQUEST] {
        let (kind, levels, seen) = match self {
            Self::Look => (1, 0, 0),
            Self::Write { high } => (2, high.into(), 0),
            Self::Withdraw { high, seen } => (3, high.into(), seen),
            Self::Disconnect => (4, 0, 0),
            Self::Drive { levels, seen } => (5, levels, seen),
            Self::Say { high } => (6, high.into(), 0),
            Self::Hear => (7, 0, 0),
            Self::ReadChannel { channel } => (8, channel, 0),
        };
        let mut bytes = [0; REQUEST];
        bytes[0] = kind;
        bytes[1] = levels;
        bytes[8..].copy_from_slice(&seen.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; REQUEST]) -> Result<Self, Malformed> {
        let [kind, levels, ..] = *bytes;
        let high = levels != 0;
        let request = match kind {
            1 => Self::Look,
            2 => Self::Write { high },
            3 => Self::Withdraw {
                high,
                seen: number(bytes, 1),
            },
            4 => Self::Disconnect,
            5 => Self::Drive {
                levels,
                seen: number(bytes, 1),
            },
            6 => Self::Say { high },
            7 => Self::Hear,
            8 => Self::ReadChannel { channel: levels },
            _ => return Err(Malformed),
        };
        // Valid frames have zeros in unused bytes, and 0 or 1 as a level.
        (request.encode() == *bytes)
            .then_some(request)
            .ok_or(Malformed)
    }
}

impl Reply {
    pub fn encode(self) -> [u8; REPLY] {
        let mut bytes = [0; REPLY];
        let (kind, detail) = match self {
            Self::Welcome(_) => (1, [0; 2]),
            Self::Answer(_) => (2, [0; 2]),
            Self::Released(_) => (3, [0; 2]),
            Self::Disconnected => (4, [0; 2]),
            Self::Refused(refusal) => (5, refusal.code()),
            Self::Eureka(eureka) => (6, [eureka.found.into(), 0]),
            Self::Channel(_) => (7, [0; 2]),
        };
        bytes[0] = kind;
        bytes[1..3].copy_from_slice(&detail);
        let words = match self {
            Self::Welcome(view) | Self::Answer(view) | Self::Released(view) => view.to_words(),
            Self::Refused(Refusal::NodeTaken { by }) => address_to_words(by),
            Self::Eureka(Eureka { first, .. }) => [first, 0, 0, 0, 0],
            Self::Channel(look) => look.to_words(),
            Self::Disconnected | Self::Refused(_) => [0; 5],
        };
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8; REPLY]) -> Result<Self, Malformed> {
        let [kind, code, count, ..] = *bytes;
        let words: [u64; 5] = std::array::from_fn(|word| number(bytes, word + 1));
        let view = View::from_words(words);
        let reply = match (kind, code) {
            (1, 0) => Self::Welcome(view),
            (2, 0) => Self::Answer(view),
            (3, 0) => Self::Released(view),
            (4, 0) => Self::Disconnected,
            (5, 1) => Self::Refused(Refusal::NoSuchNode { nodes: count }),
            (5, 2) => Self::Refused(Refusal::NodeTaken {
                by: address_from_words(words),
            }),
            (5, 3) => Self::Refused(Refusal::Crowded { observers: count }),
            (5, 4) => Self::Refused(Refusal::OnlyLooks),
            (5, 5) => Self::Refused(Refusal::Malformed),
            (6, found @ 0..=1) => Self::Eureka(Eureka {
                found: found == 1,
                first: words[0],
            }),
            (7, 0) => Self::Channel(ChannelLook::from_words(words)),
            _ => return Err(Malformed),
        };
        (reply.encode() == *bytes).then_some(reply).ok_or(Malformed)
    }
}

impl Refusal {
    /// Returns the code of the reason, and the number that the reason carries.
    fn code(self) -> [u8; 2] {
        match self {
            Self::NoSuchNode { nodes } => [1, nodes],
            Self::NodeTaken { .. } => [2, 0],
            Self::Crowded { observers } => [3, observers],
            Self::OnlyLooks => [4, 0],
            Self::Malformed => [5, 0],
        }
    }
}

impl View {
    fn to_words(self) -> [u64; 5] {
        let Snapshot {
            at_ns,
            inputs,
            outputs,
            releases,
        } = self.board;
        [at_ns, inputs, outputs, releases, self.connected]
    }

    fn from_words([at_ns, inputs, outputs, releases, connected]: [u64; 5]) -> Self {
        let board = Snapshot {
            at_ns,
            inputs,
            outputs,
            releases,
        };
        Self { board, connected }
    }

    /// Returns the level of this node's own wire.
    pub(super) fn wire(&self, node: u8) -> bool {
        // A node's number is below 64; any other number has no wire.
        usize::from(node) < MAX_NODES && self.board.inputs >> node & 1 == 1
    }

    /// Returns the level of the barrier's wires.
    pub(super) fn output(&self) -> bool {
        self.board.outputs != 0
    }
}

/// Encodes an address as IPv6 (an IPv4 address is mapped), and its port.
fn address_to_words(address: SocketAddr) -> [u64; 5] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let ip = u128::from(ip);
    [(ip >> 64) as u64, ip as u64, address.port().into(), 0, 0]
}

fn address_from_words([high, low, port, ..]: [u64; 5]) -> SocketAddr {
    let ip = Ipv6Addr::from(u128::from(high) << 64 | u128::from(low));
    // A port above 65535 is truncated; the frame then differs from its own encoding and is
    // rejected.
    SocketAddr::new(IpAddr::V6(ip).to_canonical(), port as u16)
}

/// Returns the little-endian 64-bit number at index `word` (bytes `8 * word` and following).
fn number(bytes: &[u8], word: usize) -> u64 {
    let mut number = [0; 8];
    for (to, from) in number.iter_mut().zip(bytes.iter().skip(word * 8)) {
        *to = *from;
    }
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view() -> impl Strategy<Value = View> {
        any::<[u64; 5]>().prop_map(View::from_words)
    }

    fn reply() -> impl Strategy<Value = Reply> {
        let by = (any::<u128>(), any::<u32>(), any::<bool>(), any::<u16>());
        let by = by.prop_map(|(six, four, is_six, port)| {
            let ip = match is_six {
                true => IpAddr::V6(six.into()),
                false => IpAddr::V4(four.into()),
            };
            SocketAddr::new(ip.to_canonical(), port)
        });
        prop_oneof![
            view().prop_map(Reply::Welcome),
            view().prop_map(Reply::Answer),
            view().prop_map(Reply::Released),
            Just(Reply::Disconnected),
            (any::<bool>(), any::<u64>())
                .prop_map(|(found, first)| Reply::Eureka(Eureka { found, first })),
            any::<([u64; 4], bool, u8, u8)>().prop_map(|([a, b, c, d], level, expired, early)| {
                let flags = u64::from(level) | u64::from(expired) << 8 | u64::from(early) << 16;
                Reply::Channel(ChannelLook::from_words([a, b, c, d, flags]))
            }),
            any::<u8>().prop_map(|nodes| Reply::Refused(Refusal::NoSuchNode { nodes })),
            by.prop_map(|by| Reply::Refused(Refusal::NodeTaken { by })),
            any::<u8>().prop_map(|observers| Reply::Refused(Refusal::Crowded { observers })),
            Just(Reply::Refused(Refusal::OnlyLooks)),
            Just(Reply::Refused(Refusal::Malformed)),
        ]
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            Just(Request::Look),
            any::<bool>().prop_map(|high| Request::Write { high }),
            (any::<bool>(), any::<u64>()).prop_map(|(high, seen)| Request::Withdraw { high, seen }),
            (any::<u8>(), any::<u64>()).prop_map(|(levels, seen)| Request::Drive { levels, seen }),
            any::<bool>().prop_map(|high| Request::Say { high }),
            Just(Request::Hear),
            any::<u8>().prop_map(|channel| Request::ReadChannel { channel }),
            Just(Request::Disconnect),
        ]
    }

    /// Generates bytes close to a frame: most of them zero, the first ones small.
    fn nearly<const N: usize>() -> impl Strategy<Value = [u8; N]> {
        (
            0..9u8,
            0..9u8,
            proptest::collection::vec((0..N, any::<u8>()), 0..4),
        )
            .prop_map(|(first, second, others)| {
                let mut bytes = [0; N];
                (bytes[0], bytes[1]) = (first, second);
                for (place, byte) in others {
                    bytes[place] = byte;
                }
                bytes
            })
    }

    proptest! {
        #[test]
        fn every_frame_survives_its_bytes(request in request(), reply in reply(), version: u8, word: u8) {
            prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
            prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
            let greeting = Greeting { version, word };
            prop_assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
            prop_assert_eq!(Role::from_word(word).to_word(), word);
        }

        #[test]
        fn any_bytes_are_a_frame_or_malformed(near in nearly::<REQUEST>(), far in nearly::<REPLY>(), any: [u8; GREETING]) {
            if let Ok(request) = Request::decode(&near) {
                prop_assert_eq!(request.encode(), near);
            }
            if let Ok(reply) = Reply::decode(&far) {
                prop_assert_eq!(reply.encode(), far);
            }
            if let Ok(greeting) = Greeting::decode(&any) {
                prop_assert_eq!(greeting.encode(), any);
            }
        }
    }
}
