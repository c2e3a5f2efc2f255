//! Shared-memory transport between the processes of one node, over the rings of [`mpi_base::node`].
//!
//! A small payload travels inside a ring's cell, a medium one in the ring's byte area,
//! a longer one in a pooled fragment.
//! All three kinds of payload have a cell in the same ring, so they keep their order.
//! The fast path has no system call and no lock: a send is a store to the receiver's ring, and a receive polls it.
//! Up to [`SCAN`] senders are polled one by one.
//! Above that, the receiver requests marks and polls only marked rings.
//!
//! A sender without space requests a doorbell only when it is about to sleep ([`Btl::pending`]),
//! because an awake sender polls.
//! The protocols are in `mpi_base::ring`, `doorbell`, `bitmap` and `inbox`; this module adds no shared state.
//!
//! Processes of other jobs on the same node share a two-process segment with this one ([`other_jobs`]).

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

/// Lower bound of `max_send_size`, so that the library's own messages fit.
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

/// Returns true if a process may read its neighbours' memory for long messages.
pub fn may_copy_once(params: &Params) -> Result<bool, ParamError> {
    params.get(&SINGLE_COPY)
}

/// The exclusivity is higher than that of any other transport:
/// shared memory is preferred for every peer that it reaches.
const EXCLUSIVITY: u32 = 1 << 10;

/// Maximum number of senders that are polled one by one. A poll costs 0.7 ns (measured); marks cost an atomic operation per message.
const SCAN: usize = 32;

/// Number of polls without a message after which a process counts as waiting, which leaves time to populate pages.
const IDLE: u32 = 256;

/// Fragment length of contiguous data.
const FRAGMENT: RangeInclusive<usize> = 16 << 10..=32 << 10;
const LONG_FRAGMENT: RangeInclusive<usize> = 32 << 10..=64 << 10;
/// Fragment length of a lone contiguous message between cores that share only their last cache:
/// sender and receiver work one fragment apart,
/// and each access to a line of the other core is slow there.
const SHORT_FRAGMENT: RangeInclusive<usize> = 8 << 10..=16 << 10;
const PACKED_FRAGMENT: RangeInclusive<usize> = 8 << 10..=16 << 10;

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
    Ok(vec![Box::new(sm)])
}

struct Sm {
    node: Node,
    /// Job ranks by local rank.
    procs: Vec<ProcId>,
    info: Info,
    /// True if the node's cores share only their last cache, so that senders cycle through the whole span of a ring.
    is_cycled: bool,
    /// Maximum length in bytes of a message that the sender sends by the eager pipeline.
    follow_max: usize,
    outgoing: Vec<RefCell<Outgoing>>,
    frags: RefCell<FragPool>,
    incoming: RefCell<Incoming>,
    /// True if some entry of `outgoing` may have refused a send since this process last slept.
    wants_space: Cell<bool>,
    single_copy: Option<Cma>,
    device_copies: DeviceCopies,
    /// Number of polls so far. Two sends at the same number are a stream;
    /// a ping-pong polls between two sends.
    looks: Cell<u32>,
    /// Number of consecutive polls that found nothing, since pages were last populated ([`Sm::count_idle_poll`]).
    idle: Cell<u32>,
    /// A local rank that has written an invalid position into a ring and whose loss has not been reported yet.
    broken: Cell<Option<u32>>,
}

fn info(limits: Limits) -> Info {
    Info::of_memory("sm", EXCLUSIVITY, limits)
}

/// Returns the payload limits for rings of this shape and fragments of this length.
fn limits(params: &Params, rings: Shape, frag_len: usize) -> Result<Limits, ParamError> {
    let longest = rings.longest().min(*LONG_FRAGMENT.end()).max(frag_len);
    let max_send = params.get(&MAX_SEND_SIZE)?.clamp(SHORTEST_PIECE, longest);
    let eager = params.get(&EAGER_LIMIT)?.min(max_send);
    Ok(Limits { eager, max_send })
}

/// Returns `bytes / parts` within `lens`, rounded up to whole cache lines.
fn part(limits: Limits, bytes: u64, parts: u64, lens: RangeInclusive<usize>) -> usize {
    let part = usize::try_from(bytes / parts).unwrap_or(usize::MAX);
    let len = part.clamp(*lens.start(), *lens.end());
    len.next_multiple_of(64).min(limits.max_send)
}

/// Returns the fragment length of a rendezvous message.
///
/// Sender and receiver work at the same time, one fragment apart.
///
/// Packed data use shorter fragments, a quarter of the message,
/// because only one side works on the first and on the last fragment.
/// Measured with runs of 64 bytes, 16 KiB in all, in fragments of 2, 4 and 8 KiB:
/// 1.89, 1.54 and 1.31 us.
/// Contiguous data use longer fragments,
/// because the notice of a short fragment costs as much as its copy:
/// streams of 1 MiB reached 36 GB/s with fragments of 8 KiB and 48 with 32 KiB, where both cores share a cache.
/// The longest fragments are for streams, and for messages
/// so long that the first and the last fragment do not matter.
/// Streams of 4 MiB reached, in GB/s,
/// with fragments of at most 32 KiB and of at most 64 KiB:
/// one way 51.3 and 51.7, both ways 51.8 and 54.2;
/// on a slow day of the machine, one way 30.6 and 32.2, both ways 31.1 and 32.6.
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
    /// Creates the transport with the sizes of the parameters, as far as the segment allows.
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

    /// Called after a refused send:
    /// records the receiver if it has written an invalid position into the ring.
    #[cold]
    fn note_broken(&self, to: Endpoint) {
        let out = self.outgoing.get(to.0 as usize).map(RefCell::try_borrow);
        if out.is_some_and(|out| out.is_ok_and(|out| out.is_broken())) {
            self.broken.set(Some(to.0));
        }
    }

    /// Disconnects from peers with invalid rings, and reports them to the layer above.
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

    /// Counts a poll that found nothing; every [`IDLE`]th consecutive one populates pages that later messages need.
    #[inline]
    fn count_idle_poll(&self) {
        let idle = self.idle.get() + 1;
        self.idle.set(idle % IDLE);
        if idle == IDLE {
            self.populate_ahead();
        }
    }

    /// Populates the next pages of one of the rings in use.
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
        // A `fill` that sends to the peer it is filling for gets `WouldBlock`.
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
            // The sink has called this function; the running call delivers the rest.
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
        // The process is about to sleep: a full receiver must ring its doorbell
        // when there is space. Poll once more for space that is already free.
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
        fragment(self.info.limits, bytes, packed, alone)
    }

    /// A single message arrives sooner in four fragments than in two,
    /// because the copies of sender and receiver overlap more
    /// (see [`fragment`]): 64 KiB took 1.48 us in four and 1.62 us in two fragments.
    /// Streams use longer fragments: with one buffer per message,
    /// messages of 64 KiB reached 42 GB/s in two fragments and 39 in four.
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
    /// Stops receiving from the peer and sending to it.
    /// The peer is not notified, since its shared memory cannot be trusted.
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
