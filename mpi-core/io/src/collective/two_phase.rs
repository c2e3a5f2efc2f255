//! Two-phase collective I/O by messages: a few ranks, the aggregators, read and write long ranges
//! for all ranks, whose pieces interleave
//! (R. Thakur, W. Gropp, E. Lusk, "Data sieving and collective I/O in ROMIO", Frontiers '99).
//!
//! Protocol: the file range that the members access is split into one segment per round.
//! Each segment is split into one part of `cb_buffer_size` bytes per aggregator.
//! In each round every rank sends each aggregator its pieces in the aggregator's part:
//! offsets and lengths, and in a write also the data.
//! The ranks exchange the lengths of the messages before, so empty messages are not sent.
//! In a write, an aggregator assembles the pieces and writes the covered bytes, without the gaps.
//! In a read, the aggregator reads the requested range and sends each rank its bytes,
//! up to the end of the file.
//!
//! Every rank participates in every round, even after an error, so that no rank waits indefinitely.
//! Members on one node use shared memory instead of messages ([`super::shm_aggregation`]).
//! On several nodes with several members each, only the leaders exchange these messages,
//! after they have merged the pieces of their node ([`super::two_level`]).
//!
//! All decisions are computed from values that all members have exchanged.
//! The memory use depends on the size of the parts and not on the number of pieces.
#![allow(unsafe_code)]

use super::exchange::Exchange;
use super::piece_iter::{Piece as InPart, for_each_piece};
use super::plan::Plan;
use crate::Error;
use crate::access::{read_all, write_all};
use crate::comm::Comm;
use crate::datatype::{RecvBuf, SendBuf};
use crate::disk::Disk;
use crate::error::IoError;
use crate::view::View;

const WORD: usize = 8;

/// A piece of a rank's access: its file offset, its length, and its position in the access.
#[derive(Clone, Copy)]
struct Piece {
    offset: i64,
    len: i64,
    at: i64,
}

/// Returns the pieces of one rank in a round, for each aggregator. Adds their lengths to `done`.
fn pieces(plan: &Plan, part: (&View, i64, i64), round: i64, done: &mut i64) -> Vec<Vec<Piece>> {
    let mut parts = vec![Vec::new(); plan.aggregators() as usize];
    let short = |piece: InPart, at| {
        let begin = plan.part(round, piece.aggregator as i64);
        parts[piece.aggregator].push(Piece {
            offset: begin + piece.at as i64,
            len: piece.len as i64,
            at,
        });
    };
    // With `i64::MAX` as the minimum length of a long run, all runs are short and use messages.
    for_each_piece(plan, part, round, (done, i64::MAX), short, |_, _, _| {});
    parts
}

fn put_words(message: &mut Vec<u8>, words: [i64; 2]) {
    words
        .iter()
        .for_each(|word| message.extend_from_slice(&word.to_le_bytes()));
}

/// Encodes the number of pieces, followed by their offsets and lengths.
fn heads(pieces: &[Piece]) -> Vec<u8> {
    let mut message = Vec::with_capacity(WORD * (1 + 2 * pieces.len()));
    message.extend_from_slice(&(pieces.len() as u64).to_le_bytes());
    pieces
        .iter()
        .for_each(|piece| put_words(&mut message, [piece.offset, piece.len]));
    message
}

/// Decodes the pieces of a message. Returns the pieces within the part,
/// as offset and length, and the data that follow them in the message.
fn parsed(message: &[u8], (part, bytes): (i64, i64)) -> (Vec<(i64, i64)>, &[u8]) {
    let word = |at: usize| -> i64 {
        let bytes = message.get(at * WORD..(at + 1) * WORD);
        bytes
            .and_then(|b| b.try_into().ok())
            .map_or(0, i64::from_le_bytes)
    };
    let most = message.len() / WORD / 2;
    let count = usize::try_from(word(0)).unwrap_or(0).min(most);
    let named = (0..count).map(|i| (word(1 + 2 * i), word(2 + 2 * i)));
    // Pieces outside of the part are malformed and are ignored.
    let fits = |(offset, len): &(i64, i64)| {
        *len > 0 && *offset >= part && *len <= bytes && *offset <= part + bytes - *len
    };
    let data = message.get(WORD * (1 + 2 * count)..).unwrap_or(&[]);
    (named.filter(fits).collect(), data)
}

/// Sends each aggregator its message. At an aggregator, returns the received messages.
pub(crate) fn exchange(
    comm: &Comm,
    plan: &Plan,
    mut messages: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let sizes: Vec<u64> = messages
        .iter()
        .map(|message| message.len() as u64)
        .collect();
    let all = comm.internal().share_now(&sizes)?;
    let (me, aggregators) = (comm.rank() as usize, plan.aggregators() as usize);
    let mut come = Vec::new();
    let mut exchange = Exchange::new(comm);
    if me < aggregators {
        come = (0..comm.size() as usize)
            .map(|rank| match rank == me {
                true => std::mem::take(&mut messages[me]),
                false => vec![0; all[rank * aggregators + me] as usize],
            })
            .collect();
        for (rank, dest) in come.iter_mut().enumerate() {
            if rank != me && !dest.is_empty() {
                // SAFETY: no other code uses `dest`, a separate `Vec`,
                // until `exchange.done` below (or its drop) returns.
                unsafe { exchange.expect(rank, dest.as_mut_ptr(), dest.len())? };
            }
        }
    }
    for (to, message) in messages.iter().enumerate() {
        if to != me && !message.is_empty() {
            // SAFETY: `messages` stays unchanged until `exchange.done` below (or its drop) returns.
            unsafe { exchange.send(to, message)? };
        }
    }
    exchange.done().map(|_| come)
}

/// Returns the ranges that the pieces cover, sorted; overlapping and adjacent ranges are merged.
fn covered(mut pieces: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    pieces.sort_unstable();
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for (offset, len) in pieces {
        match stretches.last_mut() {
            Some((begin, covered)) if offset <= *begin + *covered => {
                *covered = (*covered).max(offset + len - *begin);
            }
            _ => stretches.push((offset, len)),
        }
    }
    stretches
}

/// Writes a rank's data; collective. The inner result is that of this rank's own file accesses.
pub(crate) fn write(
    comm: &Comm,
    plan: &Plan,
    disk: &Disk,
    (view, from): (&View, i64),
    buf: &SendBuf,
) -> Result<Result<i64, IoError>, Error> {
    let (mut done, mut outcome) = (0, Ok(buf.bytes()));
    let mut buffer = Vec::new();
    for round in 0..plan.rounds() {
        let mine = pieces(plan, (view, from, buf.bytes()), round, &mut done);
        let messages = mine.iter().map(|pieces| {
            let mut message = match pieces.is_empty() {
                true => Vec::new(),
                false => heads(pieces),
            };
            // The pieces of a part are contiguous in the stream.
            let begin = message.len();
            let len: i64 = pieces.iter().map(|piece| piece.len).sum();
            message.resize(begin + len as usize, 0);
            if let Some(first) = pieces.first() {
                buf.pack_at(first.at, &mut message[begin..]);
            }
            message
        });
        let come = exchange(comm, plan, messages.collect())?;
        if outcome.is_ok() && !come.is_empty() {
            let part = (plan.part(round, comm.rank().into()), plan.part_bytes());
            if let Err(error) = assemble(disk, part, &come, &mut buffer) {
                outcome = Err(error);
            }
        }
    }
    Ok(outcome)
}

/// Assembles the pieces of all ranks and writes the covered ranges to the file.
fn assemble(
    disk: &Disk,
    part: (i64, i64),
    come: &[Vec<u8>],
    buffer: &mut Vec<u8>,
) -> Result<(), IoError> {
    buffer.resize(part.1 as usize, 0);
    let mut all = Vec::new();
    for message in come {
        let (named, mut data) = parsed(message, part);
        let part = part.0;
        for (offset, len) in named {
            let Some((bytes, rest)) = data.split_at_checked(len as usize) else {
                break;
            };
            let at = (offset - part) as usize;
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
            all.push((offset, len));
            data = rest;
        }
    }
    for (offset, len) in covered(all) {
        let at = (offset - part.0) as usize;
        write_all(disk, &buffer[at..at + len as usize], offset)?;
    }
    Ok(())
}

/// Reads a rank's data; collective. The inner result is that of this rank's own file accesses.
pub(crate) fn read(
    comm: &Comm,
    plan: &Plan,
    disk: &Disk,
    (view, from): (&View, i64),
    buf: &mut RecvBuf,
) -> Result<Result<i64, IoError>, Error> {
    let (len, mut done, mut filled) = (buf.bytes(), 0, 0);
    let mut outcome = Ok(());
    let mut buffer = Vec::new();
    for round in 0..plan.rounds() {
        let mine = pieces(plan, (view, from, len), round, &mut done);
        let (there, read) = asked(comm, plan, disk, round, &mine, &mut buffer)?;
        outcome = outcome.and(read);
        for (pieces, data) in mine.iter().zip(there) {
            if let Some(first) = pieces.first() {
                buf.unpack_at(first.at, &data);
                filled += data.len() as i64;
            }
        }
    }
    Ok(outcome.map(|()| filled))
}

/// For each aggregator, the bytes of this rank's pieces, up to the end of the file.
type Answers = Vec<Vec<u8>>;

/// Requests pieces from the aggregators, and serves as an aggregator the requests of all ranks.
/// Returns the bytes of this rank's pieces for each aggregator, up to the end of the file.
/// The inner result is that of this rank's reads as an aggregator;
/// after an error, ranks that requested data from this rank receive no data.
fn asked(
    comm: &Comm,
    plan: &Plan,
    disk: &Disk,
    round: i64,
    mine: &[Vec<Piece>],
    buffer: &mut Vec<u8>,
) -> Result<(Answers, Result<(), IoError>), Error> {
    let wanted = mine.iter().map(|pieces| match pieces.is_empty() {
        true => Vec::new(),
        false => heads(pieces),
    });
    let come = exchange(comm, plan, wanted.collect())?;
    let (mut answers, mut outcome) = (Vec::new(), Ok(()));
    if !come.is_empty() {
        let part = (plan.part(round, comm.rank().into()), plan.part_bytes());
        answers = fetch(disk, part, &come, buffer).unwrap_or_else(|error| {
            outcome = Err(error);
            vec![Vec::new(); come.len()]
        });
    }
    Ok((answered(comm, mine, answers)?, outcome))
}

/// Reads the requested pieces of this part. Returns each rank's bytes, up to the end of the file.
fn fetch(
    disk: &Disk,
    part: (i64, i64),
    come: &[Vec<u8>],
    buffer: &mut Vec<u8>,
) -> Result<Vec<Vec<u8>>, IoError> {
    let named: Vec<_> = come.iter().map(|message| parsed(message, part).0).collect();
    let all: Vec<_> = named.iter().flatten().copied().collect();
    let (Some(low), Some(high)) = (
        all.iter().map(|(offset, _)| *offset).min(),
        all.iter().map(|(offset, len)| offset + len).max(),
    ) else {
        return Ok(vec![Vec::new(); come.len()]);
    };
    buffer.resize((high - low) as usize, 0);
    let end = low + read_all(disk, buffer, low)? as i64;
    let answer = |pieces: &Vec<(i64, i64)>| {
        let mut data = Vec::new();
        for (offset, len) in pieces {
            let there = (end - offset).clamp(0, *len);
            let at = (offset - low) as usize;
            data.extend_from_slice(&buffer[at..at + there as usize]);
            if there < *len {
                break;
            }
        }
        data
    };
    Ok(named.iter().map(answer).collect())
}

/// Sends the replies to the requests. Returns the received replies, one per aggregator.
fn answered(
    comm: &Comm,
    mine: &[Vec<Piece>],
    answers: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Error> {
    let me = comm.rank() as usize;
    // Every rank informs all ranks to which aggregators it has sent a request.
    // So each aggregator knows the ranks that expect a reply.
    let asked: Vec<u64> = mine
        .iter()
        .map(|pieces| u64::from(!pieces.is_empty()))
        .collect();
    let all = comm.internal().share_now(&asked)?;
    let mut dests: Vec<Vec<u8>> = mine
        .iter()
        .map(|pieces| vec![0; pieces.iter().map(|piece| piece.len).sum::<i64>() as usize])
        .collect();
    let mut exchange = Exchange::new(comm);
    for (from, dest) in dests.iter_mut().enumerate() {
        if from != me && !dest.is_empty() {
            // SAFETY: no other code uses `dest`, a separate `Vec`,
            // until `exchange.done` below (or its drop) returns.
            unsafe { exchange.expect(from, dest.as_mut_ptr(), dest.len())? };
        }
    }
    for (to, answer) in answers.iter().enumerate() {
        if to != me && all[to * mine.len() + me] == 1 {
            // SAFETY: `answers` stays unchanged until `exchange.done` below (or its drop) returns.
            unsafe { exchange.send(to, answer)? };
        }
    }
    for (from, bytes) in exchange.done()? {
        dests[from].truncate(bytes);
    }
    if let (Some(own), Some(dest)) = (answers.into_iter().nth(me), dests.get_mut(me)) {
        *dest = own;
    }
    Ok(dests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_ranges_are_merged() {
        let pieces = vec![(10, 5), (0, 3), (15, 1), (12, 2), (3, 1), (20, 4)];
        assert_eq!(covered(pieces), [(0, 4), (10, 6), (20, 4)]);
        assert_eq!(covered(Vec::new()), []);
    }

    #[test]
    fn a_malformed_message_names_nothing_outside_of_the_part() {
        let piece = |offset, len| Piece { offset, len, at: 0 };
        let message = heads(&[
            piece(100, 10),
            piece(99, 10),
            piece(4096 + 95, 10),
            piece(200, -1),
        ]);
        assert_eq!(parsed(&message, (100, 4096)).0, [(100, 10)]);
        assert_eq!(parsed(&[0xff; 24], (0, 4096)).0, []);
        assert_eq!(parsed(&[], (0, 4096)).0, []);
    }
}
