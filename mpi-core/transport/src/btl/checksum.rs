//! Checksum decorator: detects damaged payloads, for machines whose memory or network is not trusted.
//!
//! Each message has four more bytes: the CRC-32 (IEEE 802.3) of its handler number, its header and its payload.
//! A message with a wrong checksum is not delivered.
//! The sender of the message is reported as lost over this link, with the wrong checksum as the reason.
//! The connection is also closed,
//! so the sender detects the loss, too, and both sides retransmit over another link, if one exists.
//!
//! The decorator supports no single copy and no direct receive, because such data would not be checked before they are used.

use super::decorate::Decorator;
use super::{
    Am, Btl, Capabilities, Endpoint, Header, Info, Limits, OpenContext, OpenError, Payload, ProcId,
    Reach, SendError, Sink, Transport,
};
use crc32fast::Hasher;
use mpi_base::param::{Level, Param};
use std::cell::RefCell;
use std::collections::HashSet;

static ENABLE: Param<bool> = Param::new(
    "btl",
    "checksum",
    "enable",
    "false",
    Level::USER,
    "Whether every message carries a checksum, so that corrupted data are detected; must be the same on all processes",
);

pub(super) const DECORATOR: Decorator = Decorator {
    name: "checksum",
    params: &[ENABLE.about()],
    wrap,
};

fn wrap(around: &OpenContext<'_>, _: u32, inner: Transport) -> Result<Transport, OpenError> {
    if !around.params.get(&ENABLE).map_err(OpenError::Param)? {
        return Ok(inner);
    }
    Ok(Box::new(Checked {
        me: around.me,
        info: with_room_for_sum(inner.info()),
        inner,
        bad: RefCell::default(),
    }))
}

/// Length of the checksum in bytes.
const SUM: usize = size_of::<u32>();

struct Checked {
    me: ProcId,
    /// The inner transport's properties, with message lengths reduced by the checksum.
    info: Info,
    inner: Transport,
    /// The peers from which damaged messages have arrived.
    bad: RefCell<HashSet<ProcId>>,
}

fn with_room_for_sum(inner: &Info) -> Info {
    let Limits { eager, max_send } = inner.limits;
    let limits = Limits {
        eager: eager.saturating_sub(SUM),
        max_send: max_send.saturating_sub(SUM),
    };
    Info { limits, ..*inner }
}

fn sum(am: Am, header: Header, payload: &[u8]) -> [u8; SUM] {
    let mut hasher = Hasher::new();
    hasher.update(&[am]);
    hasher.update(&header[0].to_le_bytes());
    hasher.update(&header[1].to_le_bytes());
    hasher.update(payload);
    hasher.finalize().to_le_bytes()
}

impl Btl for Checked {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        self.inner.reach(peer)
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        mut payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let mut fill = |place: &mut [u8]| {
            let (data, tail) = place.split_at_mut(len);
            payload.put(data);
            tail.copy_from_slice(&sum(am, header, data));
        };
        let payload = Payload::Fill {
            len: len + SUM,
            fill: &mut fill,
        };
        self.inner.send(to, am, header, payload)
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        self.inner.progress(&Checking { outer: self, sink })
    }

    fn pending(&self) -> bool {
        self.inner.pending()
    }

    /// Withholds single copy, remote memory, delivery in place and lending: data outside of messages would have no checksum.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            single_copy: None,
            remote_memory: None,
            in_place: None,
            lending: None,
            ..self.inner.capabilities()
        }
    }
}

struct Checking<'a> {
    outer: &'a Checked,
    sink: &'a dyn Sink,
}

impl Sink for Checking<'_> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        if self.outer.bad.borrow().contains(&from) {
            return;
        }
        match payload.split_last_chunk::<SUM>() {
            Some((data, said)) if sum(am, header, data) == *said => {
                self.sink.deliver(from, am, header, data);
            }
            _ => {
                self.outer.bad.borrow_mut().insert(from);
                let (me, name) = (self.outer.me, self.outer.inner.info().name);
                self.sink.lost(
                    from,
                    &format!(
                        "the connection between job ranks {me} and {from} was given up: {} bytes that came over {name} do not fit their checksum",
                        payload.len().saturating_sub(SUM)
                    ),
                );
                if let Reach::Yes(endpoint) = self.outer.inner.reach(from) {
                    self.outer.inner.capabilities().cut(endpoint);
                }
            }
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        // For a peer in `bad`, the decorator itself has closed the connection and reported the loss, so the loss is not reported again.
        if !self.outer.bad.borrow().contains(&peer) {
            self.sink.lost(peer, why);
        }
    }

    fn parted(&self, peer: ProcId) {
        self.sink.parted(peer);
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.sink.link_lost(peer, what);
    }
}
