//! Looking at messages before receiving them (MPI 5.0, section 3.8).

use super::matching::Key;
use super::{Arrived, Matching, Ob1, recv};
use crate::datatype::RecvBuf;
use crate::request::{Body, Req, Status};
use std::rc::Rc;

/// A message taken out of matching by `MPI_Mprobe`; only [`Ob1::imrecv`] can receive it.
pub struct Message {
    pub status: Status,
    key: Key,
    arrived: Arrived,
    matching: Rc<Matching>,
}

impl Ob1 {
    /// The earliest message that a receive with this key would take, left where it is.
    pub fn iprobe(&self, matching: &Matching, key: Key) -> Option<Status> {
        let mut unexpected = matching.unexpected.borrow_mut();
        let (key, arrived) = unexpected.peek(key)?;
        Some(recv::status(key, arrived.content.bytes()))
    }

    /// Takes the earliest message that a receive with this key would take.
    pub fn improbe(&self, matching: &Rc<Matching>, key: Key) -> Option<Message> {
        let (key, arrived) = matching.unexpected.borrow_mut().take(key)?;
        let status = recv::status(key, arrived.content.bytes());
        Some(Message {
            status,
            key,
            arrived,
            matching: matching.clone(),
        })
    }

    /// Receives a message taken by [`Ob1::improbe`].
    pub fn imrecv(&self, message: Message, receiver: i32, buf: RecvBuf) -> Req {
        let Message {
            key,
            arrived,
            matching,
            ..
        } = message;
        let body = recv::RecvBody::matched(buf.into(), key, receiver, matching);
        let req = self.requests.begin(Body::Recv(body));
        self.meet_message(&req, key, arrived);
        req
    }
}
