//! Fault injection: a decorator for tests of the layers above the transports.
//!
//! A seed determines the faults, so a run can be repeated. The faults are:
//! one bit of a message is flipped; sends are refused until the next poll; messages are delivered late; a connection is cut after a number of bytes.
//! Late deliveries and refused sends are also possible without injected faults, in every transport.
//! The checksum detects flipped bits, and the remaining links of a bond retransmit after a cut.

use super::decorate::Decorator;
use super::{
    Am, Btl, Capabilities, Endpoint, Header, Info, OpenContext, OpenError, Payload, ProcId, Reach,
    SendError, Sink, Traffic, Transport,
};
use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_base::random::SplitMix64;
use std::cell::Cell;

static FLIP: Param<f64> = Param::new(
    "btl",
    "fault",
    "flip",
    "0",
    Level::DEVELOPER,
    "Probability (0 to 1) that one bit of an arriving message is flipped",
);

static LATE: Param<f64> = Param::new(
    "btl",
    "fault",
    "late",
    "0",
    Level::DEVELOPER,
    "Probability (0 to 1) that a poll reports no message",
);

static REFUSE: Param<f64> = Param::new(
    "btl",
    "fault",
    "refuse",
    "0",
    Level::DEVELOPER,
    "Probability (0 to 1) that a send is refused for lack of buffer space",
);

static CUT: Param<usize> = Param::new(
    "btl",
    "fault",
    "cut",
    "0",
    Level::DEVELOPER,
    "Number of bytes sent over the transport after which the connection to a peer is cut; 0: never",
);

static LINK: Param<i32> = Param::new(
    "btl",
    "fault",
    "link",
    "-1",
    Level::DEVELOPER,
    "Index of the only transport that has faults, from 0 in the order of mpi-info and --explain; -1: all",
);

static SEED: Param<u32> = Param::new(
    "btl",
    "fault",
    "seed",
    "1",
    Level::DEVELOPER,
    "Seed of the fault generator; each process and transport adds its number",
);

pub(super) const DECORATOR: Decorator = Decorator {
    name: "fault",
    params: &[
        FLIP.about(),
        LATE.about(),
        REFUSE.about(),
        CUT.about(),
        LINK.about(),
        SEED.about(),
    ],
    wrap,
};

/// The faults to inject, and their probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Faults {
    flip: f64,
    late: f64,
    refuse: f64,
    cut: u64,
}

fn read(params: &Params) -> Result<(Faults, i32, u32), ParamError> {
    let faults = Faults {
        flip: params.get(&FLIP)?,
        late: params.get(&LATE)?,
        refuse: params.get(&REFUSE)?,
        cut: params.get(&CUT)? as u64,
    };
    Ok((faults, params.get(&LINK)?, params.get(&SEED)?))
}

fn wrap(around: &OpenContext<'_>, number: u32, inner: Transport) -> Result<Transport, OpenError> {
    let (faults, link, seed) = read(around.params).map_err(OpenError::Param)?;
    let none = Faults {
        flip: 0.0,
        late: 0.0,
        refuse: 0.0,
        cut: 0,
    };
    if faults == none || (link >= 0 && link as u32 != number) {
        return Ok(inner);
    }
    Ok(Box::new(Faulty {
        inner,
        faults,
        random: FaultRng::new(seed, around.me, number),
        sent: Cell::new(0),
        refusing: Cell::new(false),
    }))
}

struct Faulty {
    inner: Transport,
    faults: Faults,
    random: FaultRng,
    /// Number of bytes sent so far.
    sent: Cell<u64>,
    /// If true, all sends are refused until the next `progress`.
    refusing: Cell<bool>,
}

/// The random number generator that decides on faults.
struct FaultRng(Cell<SplitMix64>);

impl FaultRng {
    fn new(seed: u32, me: ProcId, number: u32) -> FaultRng {
        let state = u64::from(seed) << 40 ^ u64::from(me) << 8 ^ u64::from(number);
        FaultRng(Cell::new(SplitMix64(state)))
    }

    fn draw<T>(&self, number: impl FnOnce(&mut SplitMix64) -> T) -> T {
        let mut random = self.0.replace(SplitMix64(0));
        let drawn = number(&mut random);
        self.0.set(random);
        drawn
    }

    fn strikes(&self, probability: f64) -> bool {
        probability > 0.0 && self.draw(SplitMix64::unit) <= probability
    }
}

impl Btl for Faulty {
    fn info(&self) -> &Info {
        self.inner.info()
    }

    fn reach(&self, peer: ProcId) -> Reach {
        self.inner.reach(peer)
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let len = payload.len() as u64;
        if self.refusing.get() || self.random.strikes(self.faults.refuse) {
            self.refusing.set(true);
            return Err(SendError::WouldBlock);
        }
        self.inner.send(to, am, header, payload)?;
        let before = self.sent.replace(self.sent.get() + len);
        let limit = self.faults.cut;
        if before < limit && before + len >= limit {
            self.inner.capabilities().cut(to);
        }
        Ok(())
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        self.refusing.set(false);
        if self.random.strikes(self.faults.late) {
            return 0;
        }
        self.inner.progress(&Spoiling { outer: self, sink })
    }

    fn pending(&self) -> bool {
        self.refusing.get() || self.inner.pending()
    }

    /// Withholds single copy, remote memory, delivery in place and lending: these data bypass messages, and faults are injected only into messages.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            single_copy: None,
            remote_memory: None,
            in_place: None,
            lending: None,
            // A delayed message is neither in shared memory nor counted as delivered, so messages in flight cannot be counted.
            traffic: Traffic::Uncounted,
            ..self.inner.capabilities()
        }
    }
}

struct Spoiling<'a> {
    outer: &'a Faulty,
    sink: &'a dyn Sink,
}

impl Sink for Spoiling<'_> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        let Faulty { random, faults, .. } = self.outer;
        if payload.is_empty() || !random.strikes(faults.flip) {
            return self.sink.deliver(from, am, header, payload);
        }
        let mut spoilt = payload.to_vec();
        let bit = random.draw(SplitMix64::next_u64) as usize % (8 * spoilt.len());
        spoilt[bit / 8] ^= 1u8 << (bit % 8);
        self.sink.deliver(from, am, header, &spoilt);
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.sink.lost(peer, why);
    }

    fn parted(&self, peer: ProcId) {
        self.sink.parted(peer);
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.sink.link_lost(peer, what);
    }
}
