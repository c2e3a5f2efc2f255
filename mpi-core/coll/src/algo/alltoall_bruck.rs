//! Bruck all-to-all: in round k each rank sends to the rank 2^k ahead all blocks whose distance (in ranks) from source to destination has bit k set.
//!
//! J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8(11), 1997.
//! It takes ceil(log2 n) messages per rank, each with about half the data, instead of n - 1; best for very short blocks.

use super::bytes;
use super::turn::{ahead, behind};
use super::{Blocks, copy};
use crate::Error;
use crate::Invocation;
use crate::datatype::{RecvBuf, SendBuf};

pub async fn alltoall(
    invocation: &Invocation,
    send: Option<&SendBuf>,
    recv: &RecvBuf,
) -> Result<(), Error> {
    let (me, size) = (invocation.rank(), invocation.size());
    let block = recv.bytes();
    let recv = Blocks::equal(recv, size);
    let at = |number: u32| i64::from(number) * block;
    // Block `number` is for the rank that is `number` ranks ahead.
    let blocks = bytes(at(size))?;
    let slot = |number: u32| blocks.recv(at(number)..at(number + 1));
    let send = send.map(|s| Blocks::equal(s, size));
    for number in 0..size {
        let to = ahead(me, number, size);
        copy(
            &send
                .as_ref()
                .map_or_else(|| recv.of(to).as_send(), |s| s.of(to)),
            &slot(number),
        );
    }
    let (out, fresh) = (bytes(at(size.div_ceil(2)))?, bytes(at(size.div_ceil(2)))?);
    let mut distance = 1;
    while distance < size {
        let moving = || (0..size).filter(|number| number & distance != 0);
        let count = moving().count() as u32;
        for (i, number) in (0..).zip(moving()) {
            copy(&slot(number).as_send(), &out.recv(at(i)..at(i + 1)));
        }
        let (to, from) = (ahead(me, distance, size), behind(me, distance, size));
        invocation
            .sendrecv(&out.send(0..at(count)), to, &fresh.recv(0..at(count)), from)
            .await?;
        for (i, number) in (0..).zip(moving()) {
            copy(&fresh.send(at(i)..at(i + 1)), &slot(number));
        }
        distance *= 2;
    }
    // Block `number` is now the one from rank (me - number) mod size.
    for number in 0..size {
        copy(&slot(number).as_send(), &recv.of(behind(me, number, size)));
    }
    Ok(())
}
