//! Random collective calls (by SplitMix64) and their expected results, which each rank computes without communication.
//!
//! Every rank's input follows from the case's seed, so a rank can compute all inputs, and its own result by the definition of the call.
//! Data are 64-bit words. An element of the datatype has one word,
//! or two words with holes around them and a negative lower bound.
#![allow(unsafe_code)]

mod neighbours;

use crate::algo::Buffer;
use crate::datatype::{Datatype, Named, RecvBuf, Scratch, SendBuf};
use crate::op::{Op, Predefined};
use crate::{Call, CallId};
use mpi_base::random::SplitMix64;
use std::rc::Rc;

/// A reduction operator on words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combine {
    Sum,
    Bxor,
    /// A user-defined sum.
    UserSum,
    /// A user-defined composition of the maps x -> a x + b, with a and b the halves of a word: associative, not commutative.
    Compose,
}

impl Combine {
    fn words(self, left: u64, right: u64) -> u64 {
        match self {
            Combine::Sum | Combine::UserSum => left.wrapping_add(right),
            Combine::Bxor => left ^ right,
            Combine::Compose => {
                let halves = |w: u64| ((w >> 32) as u32, w as u32);
                let ((a, b), (c, d)) = (halves(left), halves(right));
                let (e, f) = (a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b));
                u64::from(e) << 32 | u64::from(f)
            }
        }
    }

    /// Combines each word of `left` with that of `right`.
    fn onto(self, left: &mut [u64], right: &[u64]) {
        for (left, right) in left.iter_mut().zip(right) {
            *left = self.words(*left, *right);
        }
    }

    fn op(self) -> Op {
        match self {
            Combine::Sum => Predefined::Sum.into(),
            Combine::Bxor => Predefined::Bxor.into(),
            Combine::UserSum | Combine::Compose => {
                let commutes = self == Combine::UserSum;
                Op::user(
                    move |input, inout, count, datatype| self.apply(input, inout, count, datatype),
                    commutes,
                )
            }
        }
    }

    fn apply(self, input: *const u8, inout: *mut u8, count: i64, datatype: &Datatype) {
        // SAFETY: the library calls an operator with `count` readable elements of `datatype` at `input`.
        let left = unsafe { SendBuf::new(input, count, datatype.clone()) };
        // SAFETY: the library calls an operator with `count` readable and writable elements of `datatype` at `inout`.
        let mut right = unsafe { RecvBuf::new(inout, count, datatype.clone()) };
        let mut combined = words_of(&left);
        self.onto(&mut combined, &words_of(&right.as_send()));
        right.unpack_at(0, bytes_of(&combined));
    }
}

/// One collective call: the same value on all ranks.
#[derive(Debug)]
pub struct Case {
    call: CallId,
    root: u32,
    /// The count of each rank; calls with a single count use the first one.
    counts: Vec<i64>,
    ragged: bool,
    combine: Combine,
    in_place: bool,
    seed: u64,
}

/// One rank's part of a case: its call, and the expected contents of its buffers.
pub struct Part {
    pub call: Call,
    expected: Expected,
}

type Expected = Vec<(RecvBuf, Vec<u64>)>;

impl Part {
    /// Compares the buffers with the expected words; called after the call has ended.
    pub fn check(&self, what: &dyn std::fmt::Debug) {
        for (buf, words) in &self.expected {
            assert!(
                words_of(&buf.as_send()) == *words,
                "wrong result of {what:?}"
            );
        }
    }
}

impl Case {
    pub fn random(call: CallId, size: u32, random: &mut SplitMix64) -> Case {
        // Most counts are short, some zero, some longer than a transport's eager limit, and some longer than a pipeline segment.
        let most = [1, 5, 5, 40, 40, 2000, 2000, 9000][random.below(8) as usize];
        let ragged = random.below(2) == 0;
        let combine = match random.below(4) {
            0 if !ragged => Combine::Sum,
            1 if !ragged => Combine::Bxor,
            0 | 2 => Combine::UserSum,
            _ => Combine::Compose,
        };
        Case {
            call,
            root: random.below(size.into()) as u32,
            counts: (0..size).map(|_| random.below(most + 1) as i64).collect(),
            ragged,
            combine,
            in_place: random.below(3) == 0,
            seed: random.next_u64(),
        }
    }

    /// Returns true if the call uses MPI_IN_PLACE.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    fn size(&self) -> u32 {
        self.counts.len() as u32
    }

    fn words_per_element(&self) -> usize {
        if self.ragged { 2 } else { 1 }
    }

    fn datatype(&self) -> Datatype {
        let word: Datatype = Named::INT64.into();
        if !self.ragged {
            return word;
        }
        let holes = Datatype::hindexed(&[1, 1], &[-16, 8], &word).expect("a type");
        let holes = Datatype::resized(-24, 48, &holes).expect("a type");
        holes.commit().expect("a normal form");
        holes
    }

    /// Returns the initial data of `rank` for block `block`.
    fn input(&self, rank: u32, block: u32, count: i64) -> Vec<u64> {
        let mut random = SplitMix64(self.seed ^ u64::from(rank) << 40 ^ u64::from(block) << 20);
        let mut words = vec![0; count as usize * self.words_per_element()];
        for word in &mut words {
            *word = random.next_u64();
        }
        words
    }

    /// Returns the concatenation of these inputs.
    fn whole(inputs: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
        inputs.collect::<Vec<_>>().concat()
    }

    fn filled(&self, words: &[u64]) -> RecvBuf {
        let count = words.len() / self.words_per_element();
        let buf = Scratch::new(count as i64, &self.datatype())
            .expect("memory")
            .all();
        buf.clone().unpack_at(0, bytes_of(words));
        buf
    }

    /// Returns a buffer with words that are no valid result.
    fn blank(&self, count: i64) -> RecvBuf {
        self.filled(&vec![
            0xdead_dead_dead_dead;
            count as usize * self.words_per_element()
        ])
    }

    /// Returns the inputs of the first `ranks` ranks, combined in the order of ranks.
    fn combined(&self, ranks: u32, count: i64) -> Vec<u64> {
        let first = self.input(0, 0, count);
        (1..ranks).fold(first, |mut combined, rank| {
            let next = self.input(rank, 0, count);
            self.combine.onto(&mut combined, &next);
            combined
        })
    }

    /// Returns the number of elements that rank `from` sends to rank `to`, in calls with a count for each pair.
    fn between(&self, from: u32, to: u32) -> i64 {
        // With MPI_IN_PLACE the count must be the same in both directions.
        let (a, b) = if self.in_place {
            (from.min(to), from.max(to))
        } else {
            (from, to)
        };
        (self.counts[a as usize] * 3 + i64::from(b) * 7) % 23
    }

    /// Returns the part of rank `me`.
    pub fn part(&self, me: u32) -> Part {
        use CallId as Id;
        let (size, root, count, op) = (self.size(), self.root, self.counts[0], self.combine.op());
        let ranks = || 0..size;
        let at_root = me == root;
        let own = self.input(me, 0, count);
        let send_unless =
            |in_place: bool, words: &[u64]| (!in_place).then(|| self.filled(words).as_send());
        // Returns a buffer for all ranks' contiguous blocks,
        // and the same buffer with this rank's block filled in.
        let all_blocks = |count: i64| Case::whole(ranks().map(|r| self.input(r, 0, count)));
        let only_mine = |count: i64| {
            let buf = self.blank(count * i64::from(size));
            let mine = buf.slice(count * i64::from(me)..count * i64::from(me + 1));
            mine.clone()
                .unpack_at(0, bytes_of(&self.input(me, 0, count)));
            buf
        };
        let (call, expected) = match self.call {
            Id::Barrier => (Call::Barrier, vec![]),
            Id::Bcast => {
                let words = self.input(root, 0, count);
                let buf = if at_root {
                    self.filled(&words)
                } else {
                    self.blank(count)
                };
                (
                    Call::Bcast {
                        buf: buf.clone(),
                        root,
                    },
                    vec![(buf, words)],
                )
            }
            Id::Gather | Id::Allgather => {
                let everywhere = self.call == Id::Allgather;
                let receives = everywhere || at_root;
                let in_place = self.in_place && receives;
                let whole = if in_place {
                    only_mine(count)
                } else {
                    self.blank(count * i64::from(size))
                };
                let recv = Buffer::with_count(&whole, count);
                let send = send_unless(in_place, &own);
                let expected = if receives {
                    vec![(whole, all_blocks(count))]
                } else {
                    vec![]
                };
                let call = match everywhere {
                    true => Call::Allgather { send, recv },
                    false => Call::Gather {
                        send,
                        recv: at_root.then_some(recv),
                        root,
                    },
                };
                (call, expected)
            }
            Id::Gatherv | Id::Allgatherv => {
                let everywhere = self.call == Id::Allgatherv;
                let receives = everywhere || at_root;
                let in_place = self.in_place && receives;
                let input = |r: u32| self.input(r, 0, self.counts[r as usize]);
                let recv: Rc<[RecvBuf]> = ranks()
                    .map(|r| match in_place && r == me {
                        true => self.filled(&input(r)),
                        false => self.blank(self.counts[r as usize]),
                    })
                    .collect();
                let send = send_unless(in_place, &input(me));
                let expected = match receives {
                    true => recv.iter().cloned().zip(ranks().map(input)).collect(),
                    false => vec![],
                };
                let call = match everywhere {
                    true => Call::Allgatherv { send, recv },
                    false => Call::Gatherv {
                        send,
                        recv: at_root.then_some(recv),
                        root,
                    },
                };
                (call, expected)
            }
            Id::Scatter => {
                let words = Case::whole(ranks().map(|r| self.input(root, r, count)));
                let send =
                    at_root.then(|| Buffer::with_count(&self.filled(&words).as_send(), count));
                let recv = (!(self.in_place && at_root)).then(|| self.blank(count));
                let expected = recv
                    .iter()
                    .cloned()
                    .map(|b| (b, self.input(root, me, count)));
                let expected = expected.collect();
                (Call::Scatter { send, recv, root }, expected)
            }
            Id::Scatterv => {
                let input = |r: u32| self.input(root, r, self.counts[r as usize]);
                let send =
                    at_root.then(|| ranks().map(|r| self.filled(&input(r)).as_send()).collect());
                let recv =
                    (!(self.in_place && at_root)).then(|| self.blank(self.counts[me as usize]));
                let expected = recv.iter().cloned().map(|b| (b, input(me))).collect();
                (Call::Scatterv { send, recv, root }, expected)
            }
            Id::Alltoall => {
                let going = Case::whole(ranks().map(|r| self.input(me, r, count)));
                let coming = Case::whole(ranks().map(|r| self.input(r, me, count)));
                let whole = if self.in_place {
                    self.filled(&going)
                } else {
                    self.blank(count * i64::from(size))
                };
                let send =
                    send_unless(self.in_place, &going).map(|s| Buffer::with_count(&s, count));
                let recv = Buffer::with_count(&whole, count);
                (Call::Alltoall { send, recv }, vec![(whole, coming)])
            }
            Id::Alltoallv | Id::Alltoallw => {
                let going = |r: u32| self.input(me, r, self.between(me, r));
                let coming = |r: u32| self.input(r, me, self.between(r, me));
                let send = (!self.in_place)
                    .then(|| ranks().map(|r| self.filled(&going(r)).as_send()).collect());
                let recv: Rc<[RecvBuf]> = ranks()
                    .map(|r| match self.in_place {
                        true => self.filled(&going(r)),
                        false => self.blank(self.between(r, me)),
                    })
                    .collect();
                let expected = recv.iter().cloned().zip(ranks().map(coming)).collect();
                let call = match self.call {
                    Id::Alltoallv => Call::Alltoallv { send, recv },
                    _ => Call::Alltoallw { send, recv },
                };
                (call, expected)
            }
            Id::Reduce => {
                let in_place = self.in_place && at_root;
                let recv = at_root.then(|| {
                    if in_place {
                        self.filled(&own)
                    } else {
                        self.blank(count)
                    }
                });
                let send = send_unless(in_place, &own);
                let expected = recv
                    .iter()
                    .cloned()
                    .map(|b| (b, self.combined(size, count)))
                    .collect();
                (
                    Call::Reduce {
                        send,
                        recv,
                        op,
                        root,
                    },
                    expected,
                )
            }
            Id::Allreduce | Id::Scan | Id::Exscan => {
                let recv = if self.in_place {
                    self.filled(&own)
                } else {
                    self.blank(count)
                };
                let send = send_unless(self.in_place, &own);
                let words = match (self.call, me) {
                    (Id::Allreduce, _) => self.combined(size, count),
                    (Id::Scan, _) => self.combined(me + 1, count),
                    // An exclusive scan does not change rank 0's buffer.
                    (_, 0) => words_of(&recv.as_send()),
                    _ => self.combined(me, count),
                };
                let expected = vec![(recv.clone(), words)];
                let call = match self.call {
                    Id::Allreduce => Call::Allreduce { send, recv, op },
                    Id::Scan => Call::Scan { send, recv, op },
                    _ => Call::Exscan { send, recv, op },
                };
                (call, expected)
            }
            Id::ReduceScatter | Id::ReduceScatterBlock => {
                let counts: Rc<[i64]> = match self.call {
                    Id::ReduceScatter => self.counts.clone().into(),
                    _ => vec![count; size as usize].into(),
                };
                let total = counts.iter().sum();
                let start: i64 = counts[..me as usize].iter().sum();
                let mine = counts[me as usize];
                let input = self.input(me, 0, total);
                let whole = if self.in_place {
                    self.filled(&input)
                } else {
                    self.blank(mine)
                };
                let recv = Buffer::with_count(&whole, mine);
                let send = send_unless(self.in_place, &input);
                let w = self.words_per_element();
                let words = self.combined(size, total)
                    [start as usize * w..(start + mine) as usize * w]
                    .to_vec();
                let expected = vec![(recv.clone(), words)];
                let call = match self.call {
                    Id::ReduceScatter => Call::ReduceScatter {
                        send,
                        recv,
                        counts,
                        op,
                    },
                    _ => Call::ReduceScatterBlock { send, recv, op },
                };
                (call, expected)
            }
            Id::NeighborAllgather
            | Id::NeighborAllgatherv
            | Id::NeighborAlltoall
            | Id::NeighborAlltoallv
            | Id::NeighborAlltoallw => self.neighbour_part(me),
        };
        Part { call, expected }
    }
}

// The conversions copy whole buffers, because this package is compiled without optimisation for its tests,
// and a loop over the bytes would take most of their time.

fn words_of(buf: &SendBuf) -> Vec<u64> {
    let bytes = buf.to_vec();
    let mut words = vec![0; bytes.len() / 8];
    // SAFETY: the words are writable memory of this length, and any bytes are valid words.
    let memory =
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8 * words.len()) };
    memory.copy_from_slice(&bytes[..8 * words.len()]);
    words
}

fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: a slice of words is initialised memory of this length.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
