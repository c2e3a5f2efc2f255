//! `self`, the loopback transport: a queue of messages from a process to itself.
//!
//! A message is copied into a pooled buffer and delivered by a later `progress`, never during `send`.
//! So the order of events is the same as in communication with another process.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use mpi_base::cma::{self, CmaError};
use mpi_base::param::{Level, Param};

use super::{
    Am, Btl, Capabilities, Component, Endpoint, GetError, Header, Info, Limits, OpenContext,
    OpenError, Payload, ProcId, Reach, Region, SendError, SingleCopy, Sink, Target, Traffic,
    Transport,
};

static EAGER_LIMIT: Param<usize> = Param::new(
    "btl",
    "self",
    "eager_limit",
    "64k",
    Level::TUNER,
    "Maximum size of a message to the own process that is sent eagerly",
);

static MAX_SEND_SIZE: Param<usize> = Param::new(
    "btl",
    "self",
    "max_send_size",
    "256k",
    Level::TUNER,
    "Maximum fragment size of a message to the own process",
);

pub(super) const COMPONENT: Component = Component {
    name: "self",
    params: &[EAGER_LIMIT.about(), MAX_SEND_SIZE.about()],
    open,
    posts: super::component::never,
};

fn open(around: &OpenContext<'_>) -> Result<Vec<Transport>, OpenError> {
    let get = |param| around.params.get(param).map_err(OpenError::Param);
    let max_send = get(&MAX_SEND_SIZE)?;
    let limits = Limits {
        eager: get(&EAGER_LIMIT)?.min(max_send),
        max_send,
    };
    Ok(vec![Box::new(Loop::new(around.me, limits))])
}

/// Maximum number of queued messages; beyond it `send` returns `WouldBlock`.
const DEPTH: usize = 256;

struct Loop {
    me: ProcId,
    info: Info,
    queue: RefCell<VecDeque<Message>>,
    /// Buffers of delivered messages, for reuse.
    spare: RefCell<Vec<Vec<u8>>>,
    /// True while `progress` delivers messages to the sink.
    busy: Cell<bool>,
}

struct Message {
    am: Am,
    header: Header,
    payload: Vec<u8>,
}

impl Loop {
    fn new(me: ProcId, limits: Limits) -> Loop {
        Loop {
            me,
            info: Info {
                listens: false,
                ..Info::of_memory("self", 1 << 16, limits)
            },
            queue: RefCell::default(),
            spare: RefCell::default(),
            busy: Cell::new(false),
        }
    }
}

impl Btl for Loop {
    fn info(&self) -> &Info {
        &self.info
    }

    fn reach(&self, peer: ProcId) -> Reach {
        if peer == self.me {
            Reach::Yes(Endpoint(0))
        } else {
            Reach::No("it is another process".into())
        }
    }

    fn send(
        &self,
        _to: Endpoint,
        am: Am,
        header: Header,
        mut payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let (len, max) = (payload.len(), self.info.limits.max_send);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        if self.queue.borrow().len() >= DEPTH {
            return Err(SendError::WouldBlock);
        }
        let mut buffer = self.spare.borrow_mut().pop().unwrap_or_default();
        buffer.clear();
        match payload {
            Payload::Bytes(bytes) => buffer.extend_from_slice(bytes),
            _ => {
                buffer.resize(len, 0);
                payload.put(&mut buffer);
            }
        }
        self.queue.borrow_mut().push_back(Message {
            am,
            header,
            payload: buffer,
        });
        Ok(())
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        if self.queue.borrow().is_empty() || self.busy.replace(true) {
            return 0;
        }
        // Messages that the sink sends during this call are left for the next one. Otherwise this call might never end.
        let round = self.queue.borrow().len();
        let mut delivered = 0;
        while delivered < round
            && let Some(message) = { self.queue.borrow_mut().pop_front() }
        {
            sink.deliver(self.me, message.am, message.header, &message.payload);
            self.spare.borrow_mut().push(message.payload);
            delivered += 1;
        }
        self.busy.set(false);
        delivered
    }

    #[inline]
    fn has_work(&self) -> bool {
        !self.queue.borrow().is_empty()
    }

    fn pending(&self) -> bool {
        !self.queue.borrow().is_empty()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            single_copy: Some(self),
            traffic: Traffic::InMemory,
            ..Capabilities::default()
        }
    }
}

impl SingleCopy for Loop {
    fn get(&self, _peer: Endpoint, remote: &[Region], local: Target<'_>) -> Result<(), GetError> {
        // The data are copied by a system call, because the trait requires an error and not a crash for an unmapped range.
        let (remote, local) = (remote.iter().copied(), local.iter().copied());
        cma::read_all(remote, local, std::process::id()).map_err(GetError::from)
    }
}

impl From<CmaError> for GetError {
    fn from(error: CmaError) -> GetError {
        match error {
            CmaError::Forbidden => GetError::Forbidden,
            CmaError::Gone => GetError::PeerGone,
            CmaError::BadAddress => GetError::BadAddress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btl::suite::Net;

    fn net(eager: usize, max_send: usize) -> Net {
        let limits = Limits { eager, max_send };
        Net {
            btls: vec![Box::new(Loop::new(5, limits))],
            procs: vec![5],
            pair: (0, 0),
        }
    }

    crate::btl_suite!(|| net(1 << 12, 1 << 15));
}
