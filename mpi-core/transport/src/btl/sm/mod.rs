//! `sm`, the shared-memory transport between the processes of one node, over the rings of [`mpi_base::node`].
//!
//! A small payload is inside a cell of a ring, a medium one in the ring's byte area,
//! and a longer one in a fragment from a pool.
//! All three have a cell in the same ring, so messages keep their order.
//! The fast path has no system call and no lock: a send stores to the receiver's ring, and the receiver polls the ring.
//! Up to [`SCAN`] senders, the receiver polls all rings.
//! With more senders, it requests marks and polls only marked rings.
//!
//! A sender without space requests a doorbell only when it is about to sleep ([`Btl::pending`]),
//! because an awake sender polls.
//! The protocols in shared memory are in `mpi_base::ring`, `doorbell`, `bitmap` and `inbox`; this module adds no shared state.
//!
//! For a process of another job on the same node, a two-process segment is created ([`other_jobs`]).

mod device_copy;
mod incoming;
mod other_jobs;
mod outgoing;
mod single_copy;
mod span;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;

use mpi_base::node::{FragPool, Node};
use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_base::ring::Shape;

use super::{
    Am, Btl, Capabilities, Component, Connections, Endpoint, Header, Info, Limits, OpenContext,
    OpenError, Payload, Pipeline, ProcId, Reach, SendError, Sink, Traffic, Transport,
};
use device_copy::DeviceCopies;
use incoming::Incoming;
use outgoing::{Outgoing, Refused};
use single_copy::Cma;

static EAGER_LIMIT: Param<usize> = Param::new(
    "btl",
    "sm",
    "eager_limit",
    "8k",
    Level::TUNER,
    "Maximum size of a message within a node that is sent eagerly",
);

static MAX_SEND_SIZE: Param<usize> = Param::new(
    "btl",
    "sm",
    "max_send_size",
    "64k",
    Level::TUNER,
    "Maximum fragment size of a message through shared memory, from 64 to 64k; less if a node has many ranks",
);

/// Minimum of `max_send_size` in bytes, so that the library's own messages fit into one fragment.
const SHORTEST_PIECE: usize = 64;

static FOLLOW_MAX: Param<usize> = Param::new(
    "btl",
    "sm",
    "eager_pipeline_max",
    "128k",
    Level::TUNER,
    "Maximum size of messages that are sent in fragments without a rendezvous, if the receiver has measured that fragments are faster than a single copy",
);

static SINGLE_COPY: Param<bool> = Param::new(
    "btl",
    "sm",
    "single_copy",
    "true",
    Level::TUNER,
    "Whether large messages may be read from the peer's memory in a single copy, if the system allows it",
);

/// Returns true if the parameters permit direct reads of other processes' memory for long messages.
pub fn may_copy_once(params: &Params) -> Result<bool, ParamError> {
    params.get(&SINGLE_COPY)
}

/// The exclusivity of `sm`: higher than that of any other transport except `self`,
/// so shared memory is used for every other process that it reaches.
const EXCLUSIVITY: u32 = 1 << 10;

/// Maximum number of senders whose rings are all polled. A poll of a ring costs 0.7 ns (measured); marks cost an atomic operation per message.
const SCAN: usize = 32;

/// Number of consecutive polls without a message after which a process counts as waiting and uses the time to populate pages.
const IDLE: u32 = 256;

/// Minimum and maximum fragment length in bytes for contiguous data.
const FRAGMENT: RangeInclusive<usize> = 16 << 10..=32 << 10;
const LONG_FRAGMENT: RangeInclusive<usize> = 32 << 10..=64 << 10;
/// Fragment length in bytes for a single contiguous message between cores that share only their last-level cache.
/// Sender and receiver work on consecutive fragments, and on these cores each access to a cache line of the other core is slow.
/// So the fragments are shorter than [`FRAGMENT`]: the receiver starts earlier.
const SHORT_FRAGMENT: RangeInclusive<usize> = 8 << 10..=16 << 10;
const PACKED_FRAGMENT: RangeInclusive<usize> = 8 << 10..=16 << 10;

/// Number of bytes of each ring that are populated at the start: the first message in fragments then causes no page fault.
const FIRST_PAGES: usize = 64 << 10;
/// Maximum number of ranks on a node whose rings are populated at the start: twelve rings, 768 KiB.
const FIRST_PAGES_RANKS: u32 = 4;

pub(super) use other_jobs::open_to_other_jobs;

pub(super) const COMPONENT: Component = Component {
    name: "sm",
    params: &[
        EAGER_LIMIT.about(),
        MAX_SEND_SIZE.about(),
        FOLLOW_MAX.about(),
        SINGLE_COPY.about(),
    ],
    open,
    posts: super::component::never,
};

fn open(around: &OpenContext<'_>) -> Result<Vec<Transport>, OpenError> {
    let Some((node, procs)) = &around.node else {
        return Err(OpenError::Alone);
    };
    let me = around.me;
    if procs.get(node.rank() as usize) != Some(&me) {
        return Err(OpenError::NotHere { me });
    }
    let single_copy = around.params.get(&SINGLE_COPY).map_err(OpenError::Param)?;
    let sm = Sm::of(node.clone(), procs.clone(), around.params, single_copy)?;
    node.map_rings_ahead();
    sm.populate_first_pages();
    Ok(vec![Box::new(sm)])
}

struct Sm {
    node: Node,
    /// The job ranks of the node's processes, by local rank.
    procs: Vec<ProcId>,
    info: Info,
    /// True if the node's cores share only their last-level cache, so senders use the whole span of a ring cyclically.
    is_cycled: bool,
    /// Maximum length in bytes of a message that may use the eager pipeline.
    follow_max: usize,
    outgoing: Vec<RefCell<Outgoing>>,
    frags: RefCell<FragPool>,
    incoming: RefCell<Incoming>,
    /// True if an element of `outgoing` may have refused a send since this process last slept.
    wants_space: Cell<bool>,
    single_copy: Option<Cma>,
    device_copies: DeviceCopies,
    /// Number of polls so far. Two sends without a poll between them belong to a stream;
    /// in a ping-pong, a poll is between two sends.
    looks: Cell<u32>,
    /// Number of consecutive polls that found no message, modulo [`IDLE`] ([`Sm::count_idle_poll`]).
    idle: Cell<u32>,
    /// A local rank that has written an invalid position into a ring, until its loss is reported.
    broken: Cell<Option<u32>>,
}

fn info(limits: Limits) -> Info {
    Info::of_memory("sm", EXCLUSIVITY, limits)
}

/// Returns the payload limits in bytes for rings of this shape and pooled fragments of `frag_len` bytes.
fn limits(params: &Params, rings: Shape, frag_len: usize) -> Result<Limits, ParamError> {
    let longest = rings.longest().min(*LONG_FRAGMENT.end()).max(frag_len);
    let max_send = params.get(&MAX_SEND_SIZE)?.clamp(SHORTEST_PIECE, longest);
    let eager = params.get(&EAGER_LIMIT)?.min(max_send);
    Ok(Limits { eager, max_send })
}

/// Returns `bytes / parts`, limited to the range `lens` and rounded up to whole cache lines.
fn part(limits: Limits, bytes: u64, parts: u64, lens: RangeInclusive<usize>) -> usize {
    let part = usize::try_from(bytes / parts).unwrap_or(usize::MAX);
    let len = part.clamp(*lens.start(), *lens.end());
    len.next_multiple_of(64).min(limits.max_send)
}

/// Returns the fragment length in bytes for a rendezvous message of `bytes` bytes.
///
/// Sender and receiver work at the same time on consecutive fragments.
///
/// Packed data use shorter fragments, a quarter of the message,
/// because only one side works on the first and on the last fragment.
/// The minimum is 8 KiB ([`PACKED_FRAGMENT`]): a message of 16 KiB in segments of 64 bytes
/// took 1.89, 1.54 and 1.31 us with fragments of 2, 4 and 8 KiB.
/// Contiguous data use longer fragments,
/// because the notification of a short fragment costs as much as its copy:
/// if both cores share a cache, streams of 1 MiB messages reached 36 GB/s with fragments of 8 KiB and 48 GB/s with 32 KiB.
/// The longest fragments are for streams, and for messages
/// so long that the first and the last fragment do not matter.
/// Streams of 4 MiB messages reached the following bandwidths in GB/s,
/// with fragments of at most 32 KiB and of at most 64 KiB:
/// one direction 51.3 and 51.7, both directions 51.8 and 54.2;
/// when the machine was slower, one direction 30.6 and 32.2, both directions 31.1 and 32.6.
/// Fragments of 128 KiB were no faster.
fn fragment(limits: Limits, bytes: u64, packed: bool, alone: bool) -> usize {
    match (packed, alone) {
        (true, _) => part(limits, bytes, 4, PACKED_FRAGMENT),
        (false, true) if bytes < 16 * *LONG_FRAGMENT.start() as u64 => {
            part(limits, bytes, 2, FRAGMENT)
        }
        (false, true) => part(limits, bytes, 16, LONG_FRAGMENT),
        (false, false) => part(limits, bytes, 2, *FRAGMENT.start()..=*LONG_FRAGMENT.end()),
    }
}

impl Sm {
    /// Creates the transport with the sizes that the parameters specify, limited by the sizes of the segment.
    fn of(
        node: Node,
        procs: Vec<ProcId>,
        params: &Params,
        single_copy: bool,
    ) -> Result<Sm, OpenError> {
        let frags = node.frags().map_err(OpenError::Node)?;
        let limits = limits(params, node.ring_shape(), frags.frag_len());
        let limits = limits.map_err(OpenError::Param)?;
        let follow_max = params.get(&FOLLOW_MAX).map_err(OpenError::Param)?;
        let sm = Sm::new(node, procs, frags, limits, single_copy)?;
        Ok(Sm { follow_max, ..sm })
    }

    fn new(
        node: Node,
        procs: Vec<ProcId>,
        frags: FragPool,
        limits: Limits,
        single_copy: bool,
    ) -> Result<Sm, OpenError> {
        let outgoing = (0..node.nlocal())
            .map(|to| Outgoing::new(&node, to).map(RefCell::new))
            .collect::<Result<_, _>>()
            .map_err(OpenError::Node)?;
        let single_copy = match single_copy {
            true => Some(Cma::new(node.clone()).map_err(OpenError::Node)?),
            false => None,
        };
        let is_cycled = node.ring_span() > span::SHORT;
        Ok(Sm {
            outgoing,
            frags: RefCell::new(frags),
            incoming: RefCell::new(Incoming::new(node.clone(), procs.clone())),
            wants_space: Cell::new(false),
            single_copy,
            device_copies: DeviceCopies::default(),
            looks: Cell::new(0),
            idle: Cell::new(0),
            broken: Cell::new(None),
            node,
            procs,
            info: info(limits),
            is_cycled,
            follow_max: 0,
        })
    }

    /// Populates the first pages of the rings to all peers, if the node has few ranks.
    fn populate_first_pages(&self) {
        if self.node.nlocal() > FIRST_PAGES_RANKS {
            return;
        }
        let me = self.node.rank();
        for out in self.outgoing.iter().filter(|out| out.borrow().to() != me) {
            out.borrow_mut().populate_first(FIRST_PAGES);
        }
    }

    /// Called after a refused send.
    /// Records the receiver as broken if it has written an invalid position into the ring.
    #[cold]
    fn note_broken(&self, to: Endpoint) {
        let out = self.outgoing.get(to.0 as usize).map(RefCell::try_borrow);
        if out.is_some_and(|out| out.is_ok_and(|out| out.is_broken())) {
            self.broken.set(Some(to.0));
        }
    }

    /// Disconnects from peers whose rings are invalid, and reports these peers as lost.
    #[cold]
    fn lose_broken(&self, mut condemned: Vec<u32>, sink: &dyn Sink) {
        condemned.extend(self.broken.take());
        condemned.dedup();
        for local in condemned {
            self.cut(Endpoint(local));
            if let Some(&proc) = self.procs.get(local as usize) {
                let why = format!(
                    "rank {proc} wrote bytes into the memory that it shares with rank {} that no transport of this library writes",
                    self.procs
                        .get(self.node.rank() as usize)
                        .copied()
                        .unwrap_or(proc)
                );
                sink.lost(proc, &why);
            }
        }
    }

    /// Counts a poll that found no message. Every [`IDLE`]th consecutive one populates pages for later messages.
    #[inline]
    fn count_idle_poll(&self) {
        let idle = self.idle.get() + 1;
        self.idle.set(idle % IDLE);
        if idle == IDLE {
            self.populate_ahead();
        }
    }

    /// Populates the next pages of one of the used rings to peers.
    #[cold]
    fn populate_ahead(&self) {
        let ahead = |out: &RefCell<Outgoing>| {
            out.try_borrow_mut()
                .is_ok_and(|mut out| out.populate_ahead())
        };
        self.outgoing.iter().any(ahead);
    }

    #[inline]
    fn put(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), Refused> {
        // If `fill` itself sends to the same peer, that send returns `WouldBlock`.
        let out = self.outgoing.get(to.0 as usize).ok_or(Refused::Gone)?;
        let mut out = out.try_borrow_mut().map_err(|_| Refused::Full)?;
        if out.is_condemned() {
            return Err(Refused::Gone);
        }
        let sent = match payload {
            Payload::Bytes(bytes) => match <[u8; 8]>::try_from(bytes) {
                Ok(word) => out.put_word(am, header, u64::from_ne_bytes(word)),
                Err(_) => out.put_bytes(&self.frags, am, header, bytes),
            },
            Payload::Fill { len, fill } => out.put(&self.frags, am, header, len, fill),
            mut joined @ Payload::Joined(..) => {
                let len = joined.len();
                out.put(&self.frags, am, header, len, |place| joined.put(place))
            }
        };
        out.go_on(self.looks.get());
        sent
    }
}

impl Btl for Sm {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        match self.procs.iter().position(|&proc| proc == peer) {
            Some(local) if local == self.node.rank() as usize => {
                Reach::No("it is this process itself".into())
            }
            Some(local) => Reach::Yes(Endpoint(local as u32)),
            None => Reach::No("it runs on another node".into()),
        }
    }

    #[inline]
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        self.put(to, am, header, payload).map_err(|why| match why {
            Refused::Gone => SendError::PeerGone,
            Refused::Full => {
                self.wants_space.set(true);
                self.note_broken(to);
                SendError::WouldBlock
            }
        })
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        self.looks.set(self.looks.get().wrapping_add(1));
        let (delivered, has_condemned) = match self.incoming.try_borrow_mut() {
            Ok(mut incoming) => (incoming.progress(sink), incoming.has_condemned()),
            // The sink of a running `progress` has called this function; the running call delivers all messages.
            Err(_) => return 0,
        };
        if has_condemned || self.broken.get().is_some() {
            let condemned = self.incoming.borrow_mut().take_condemned();
            self.lose_broken(condemned, sink);
        }
        match delivered {
            0 => self.count_idle_poll(),
            _ => self.idle.set(0),
        }
        delivered
    }

    #[inline]
    fn has_work(&self) -> bool {
        let incoming = self.incoming.try_borrow();
        self.broken.get().is_some() || incoming.map_or(true, |incoming| incoming.has_work())
    }

    fn pending(&self) -> bool {
        let Ok(incoming) = self.incoming.try_borrow() else {
            return true;
        };
        if incoming.has_news() || self.device_copies.are_active() {
            return true;
        }
        if !self.wants_space.get() {
            return false;
        }
        // The process is about to sleep. So a receiver whose ring is full must ring this process's doorbell
        // when it has released space. Space that is already released is used immediately.
        let mut wants_space = false;
        let mut room = false;
        for out in &self.outgoing {
            if let (Ok(mut out), Ok(mut frags)) =
                (out.try_borrow_mut(), self.frags.try_borrow_mut())
                && out.wants_space()
            {
                wants_space = true;
                room |= out.call_for_room(&self.outgoing, &mut frags);
                if out.is_broken() {
                    self.broken.set(Some(out.to()));
                    room = true;
                }
            }
        }
        self.wants_space.set(wants_space);
        room
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            single_copy: self.single_copy.as_ref().map(|cma| cma as _),
            pipeline: Some(self),
            connections: Some(self),
            traffic: Traffic::InMemory,
            remote_memory: mpi_base::accelerator::are_in_use().then_some(&self.device_copies as _),
            ..Capabilities::default()
        }
    }
}

impl Pipeline for Sm {
    fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
        match self.is_cycled && alone && !packed && bytes < 16 * *LONG_FRAGMENT.start() as u64 {
            true => part(self.info.limits, bytes, 8, SHORT_FRAGMENT),
            false => fragment(self.info.limits, bytes, packed, alone),
        }
    }

    /// A single message uses four fragments: it arrives sooner than with two,
    /// because the copies of sender and receiver overlap more
    /// (see [`fragment`]). A message of 64 KiB took 1.48 us in four fragments and 1.62 us in two.
    /// A stream uses two fragments per message: with a separate buffer for each message,
    /// messages of 64 KiB reached 42 GB/s in two fragments and 39 GB/s in four.
    fn eager_fragment(&self, to: Endpoint, bytes: u64, packed: bool) -> Option<usize> {
        if bytes > self.follow_max as u64 {
            return None;
        }
        let streams = |out: &RefCell<Outgoing>| {
            let looks = self.looks.get();
            out.try_borrow().is_ok_and(|out| out.goes_on(looks))
        };
        Some(
            match self.outgoing.get(to.0 as usize).is_some_and(streams) {
                _ if packed => part(self.info.limits, bytes, 4, PACKED_FRAGMENT),
                false if self.is_cycled => part(self.info.limits, bytes, 8, SHORT_FRAGMENT),
                false => part(self.info.limits, bytes, 4, FRAGMENT),
                true => part(self.info.limits, bytes, 2, FRAGMENT),
            },
        )
    }
}

impl Connections for Sm {
    /// Stops receiving from the peer and sending to the peer.
    /// The peer is not notified, because the shared memory can no longer be trusted.
    fn cut(&self, to: Endpoint) {
        if let Ok(mut incoming) = self.incoming.try_borrow_mut() {
            incoming.condemn(to.0);
        } else {
            self.broken.set(Some(to.0));
        }
        if let Some(Ok(mut out)) = self
            .outgoing
            .get(to.0 as usize)
            .map(RefCell::try_borrow_mut)
        {
            out.condemn();
        }
    }
}
