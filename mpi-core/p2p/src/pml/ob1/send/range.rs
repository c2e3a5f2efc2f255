//! Sending of a part of a message.

use super::super::peer::Peer;
use crate::btl::{Am, Header, Payload, SendError};
use crate::datatype::SendBuf;

/// Sends the packed bytes `at..at + len` of a message. Data that are not contiguous are packed directly into the transport's memory.
#[inline]
pub fn send_range(
    peer: &Peer,
    am: Am,
    header: Header,
    buf: &SendBuf,
    at: usize,
    len: usize,
) -> Result<(), SendError> {
    match buf.contiguous() {
        Some(data) => peer.send(am, header, Payload::Bytes(&data[at..at + len])),
        None => {
            let mut fill = |out: &mut [u8]| {
                buf.pack_at(at as i64, out);
            };
            peer.send(
                am,
                header,
                Payload::Fill {
                    len,
                    fill: &mut fill,
                },
            )
        }
    }
}
