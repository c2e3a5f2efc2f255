//! Fault injection decorator, for tests of the layers above.
//!
//! Faults are drawn from a seed, so a run can be repeated:
//! one bit of a message is flipped, sends are refused until the next poll, messages are delivered late, a connection is cut after a number of bytes.
//! Late delivery and refusals are allowed for every transport; flipped bits are detected by the checksum, and a cut is repaired over the remaining links.

use super::decorate::{Decorator, like_the_inner};
use super::{
    Am, Btl, Endpoint, Header, Limits, OpenContext, OpenError, Payload, ProcId, Reach, SendError,
    Sink, Transport,
};
use mpi_base::param::{Level, Param, ParamError, Params};
use std::cell::Cell;
use std::os::fd::BorrowedFd;

static FLIP: Param<f64> = Param::new(
    "btl",
    "fault",
    "flip",
    "0",
    Level::DEVELOPER,
    "The probability that one bit of an arriving message is flipped",
);

static LATE: Param<f64> = Param::new(
    "btl",
    "fault",
    "late",
    "0",
    Level::DEVELOPER,
    "The probability that a look for messages finds nothing, whatever has come",
);

static REFUSE: Param<f64> = Param::new(
    "btl",
    "fault",
    "refuse",
    "0",
    Level::DEVELOPER,
    "The probability that a send is told that there is no room",
);

static CUT: Param<usize> = Param::new(
    "btl",
    "fault",
    "cut",
    "0",
    Level::DEVELOPER,
    "The connection to a peer is cut when so many bytes have been sent over the transport; 0 never",
);

static LINK: Param<i32> = Param::new(
    "btl",
    "fault",
    "link",
    "-1",
    Level::DEVELOPER,
    "The only transport that has faults, as mpi-info and --explain count them from 0; -1 for all",
);

static SEED: Param<u32> = Param::new(
    "btl",
    "fault",
    "seed",
    "1",
    Level::DEVELOPER,
    "What the faults are drawn from; each process and transport adds its number",
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
        rng: FaultRng::new(seed, around.me, number),
        sent: Cell::new(0),
        refusing: Cell::new(false),
    }))
}

struct Faulty {
    inner: Transport,
    faults: Faults,
    rng: FaultRng,
    /// Bytes sent so far.
    sent: Cell<u64>,
    /// All sends are refused until the next `progress`.
    refusing: Cell<bool>,
}

/// Pseudorandom generator: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct FaultRng(Cell<u64>);

impl FaultRng {
    fn new(seed: u32, me: ProcId, number: u32) -> FaultRng {
        let state = u64::from(seed) << 40 ^ u64::from(me) << 8 ^ u64::from(number);
        FaultRng(Cell::new(state))
    }

    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn strikes(&self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= probability
    }
}

impl Btl for Faulty {
    like_the_inner!();

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let len = payload.len() as u64;
        if self.refusing.get() || self.rng.strikes(self.faults.refuse) {
            self.refusing.set(true);
            return Err(SendError::WouldBlock);
        }
        self.inner.send(to, am, header, payload)?;
        let before = self.sent.replace(self.sent.get() + len);
        let limit = self.faults.cut;
        if before < limit && before + len >= limit {
            self.inner.cut(to);
        }
        Ok(())
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        self.refusing.set(false);
        if self.rng.strikes(self.faults.late) {
            return 0;
        }
        self.inner.progress(&Spoiling { outer: self, sink })
    }

    fn pending(&self) -> bool {
        self.refusing.get() || self.inner.pending()
    }
}

struct Spoiling<'a> {
    outer: &'a Faulty,
    sink: &'a dyn Sink,
}

impl Sink for Spoiling<'_> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        let Faulty { rng, faults, .. } = self.outer;
        if payload.is_empty() || !rng.strikes(faults.flip) {
            return self.sink.deliver(from, am, header, payload);
        }
        let mut spoilt = payload.to_vec();
        let bit = rng.next() as usize % (8 * spoilt.len());
        spoilt[bit / 8] ^= 1u8 << (bit % 8);
        self.sink.deliver(from, am, header, &spoilt);
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.sink.lost(peer, why);
    }

    fn parted(&self, peer: ProcId) {
        self.sink.parted(peer);
    }

    fn note(&self, what: &str) {
        self.sink.note(what);
    }
}
