//! Message addressing: contexts and their planes (message classes), the envelope of a message, and its communication mode.

use crate::btl::ProcId;

/// The envelope of a message: the communicator's context, the sender's and the receiver's rank in the communicator, and the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub context: Context,
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Rank of the receiver in the communicator; used only in error texts.
    pub dest: i32,
    /// The receiver's rank in the job.
    pub proc: ProcId,
    pub tag: i32,
}

/// A context ID: the communicator's ID (`number`), which is equal at all its members, and a [`Plane`].
///
/// Within one job, the communicator's ID consists of the job rank of the process that chose the ID
/// and a serial number of that process.
/// So no agreement between processes is needed, and IDs do not run out in practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(pub u64);

/// The class of a message within its communicator. Messages of different planes never match each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// The user's messages.
    User = 0,
    /// The messages of collective algorithms.
    Collective = 1,
    /// Internal messages of components: selection, plugins, setup.
    Hidden = 2,
    /// The announcement of a partitioned send by its sender.
    Announce = 3,
    Partition = 4,
    /// The reply of a partitioned receiver to the announcement.
    Answer = 5,
}

impl Plane {
    /// All planes, in the order of their values in a [`Context`].
    pub const ALL: [Plane; 6] = [
        Plane::User,
        Plane::Collective,
        Plane::Hidden,
        Plane::Announce,
        Plane::Partition,
        Plane::Answer,
    ];
}

const PLANE_BITS: u32 = 3;
const SERIAL_BITS: u32 = 29;

impl Context {
    /// Creates the context of a communicator, in the plane [`Plane::User`].
    /// `serial` is at most [`Context::LAST_SERIAL`].
    pub fn new(chooser: ProcId, serial: u32) -> Context {
        debug_assert!(serial >> SERIAL_BITS == 0);
        Context(u64::from(chooser) << 32 | u64::from(serial) << PLANE_BITS)
    }

    /// Creates the context of the communicator with the ID `number`, in the plane [`Plane::User`].
    pub fn numbered(number: u64) -> Context {
        Context(number << PLANE_BITS)
    }

    /// The lowest ID of a communicator with members of several jobs.
    /// Lower IDs belong to communicators within one job.
    ///
    /// Job ranks are not unique among several jobs. So these IDs do not contain the rank of the
    /// process that chose them; they are drawn at random from 2^60 values.
    pub const FIRST_RANDOM: u64 = 1 << (63 - PLANE_BITS);

    /// Returns true for the context of a communicator with members of several jobs.
    pub fn is_random(self) -> bool {
        self.number() >= Context::FIRST_RANDOM
    }

    /// Returns this communicator's context in one plane.
    pub fn plane(self, plane: Plane) -> Context {
        Context(self.0 & !((1 << PLANE_BITS) - 1) | plane as u64)
    }

    /// Returns the job rank of the process that chose the communicator's ID.
    pub fn chooser(self) -> ProcId {
        (self.0 >> 32) as ProcId
    }

    /// Returns the communicator's ID (the context without the plane), for reports.
    pub fn number(self) -> u64 {
        self.0 >> PLANE_BITS
    }

    /// Splits a communicator's ID into the job rank of the process that chose it and that process's
    /// serial number, for reports.
    pub fn chosen(number: u64) -> (ProcId, u32) {
        let serial = number & ((1 << SERIAL_BITS) - 1);
        ((number >> SERIAL_BITS) as ProcId, serial as u32)
    }

    /// The highest serial number. A process that has used this number cannot create communicators.
    pub const LAST_SERIAL: u32 = (1 << SERIAL_BITS) - 1;
}

/// The communication modes (MPI 5.0, section 3.4) that differ in the protocol.
///
/// A buffered send is a standard send of a private copy, and a ready send is sent like a standard send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Standard,
    /// The send completes only after the receive has started.
    Synchronous,
}
