//! Tests of gathers and reductions of long data, for all layouts of datatypes and with `MPI_IN_PLACE`.

use super::job_with;
use crate::Call;
use crate::datatype::{Datatype, Named, Scratch};
use crate::op::Predefined;
use mpi_base::occupancy::Occupancy;

/// Returns datatypes with two words per element: contiguous, contiguous at an offset from the buffer's address, and with holes.
fn pairs() -> [Datatype; 3] {
    let word: Datatype = Named::UINT64.into();
    let made = |counts: &[i64], offsets: &[i64], lb: i64, extent: i64| {
        let made = Datatype::hindexed(counts, offsets, &word).expect("a type");
        let made = Datatype::resized(lb, extent, &made).expect("a type");
        made.commit().expect("a normal form");
        made
    };
    [
        made(&[2], &[0], 0, 16),
        made(&[2], &[4096], 4096, 16),
        made(&[1, 1], &[-16, 8], -24, 48),
    ]
}

fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    words.for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
    bytes
}

/// Depending on the root's buffer, the senders write the blocks or the root reads them; for all datatypes on both sides.
#[test]
fn long_blocks_come_to_the_root_from_any_type_to_any_other() {
    const COUNT: i64 = 5000;
    for (occupancy, ranks, way) in [
        (Occupancy::Dedicated, 2, "copies"),
        (Occupancy::Dedicated, 2, "pieces"),
        (Occupancy::Dedicated, 3, "pieces"),
        (Occupancy::Oversubscribed, 4, "copies"),
        (Occupancy::Oversubscribed, 4, "pieces"),
    ] {
        job_with(ranks, occupancy, way).run(|engine| {
            let world = engine.world().expect("a world");
            let (me, root) = (world.rank(), ranks - 1);
            let words = |rank: u32| -> Vec<u8> {
                let word = |i| u64::from(rank) << 32 | i;
                bytes_of((0..2 * COUNT as u64).map(word))
            };
            let all = (0..ranks).map(words).collect::<Vec<_>>().concat();
            for to in pairs() {
                for from in pairs() {
                    let own = Scratch::new(COUNT, &from).expect("room");
                    own.all().unpack_at(0, &words(me));
                    let buffer = Scratch::new(COUNT * i64::from(ranks), &to).expect("room");
                    let recv = (me == root).then(|| buffer.recv(0..COUNT));
                    let send = Some(own.all().as_send());
                    let gather = Call::Gather { send, recv, root };
                    world.collectives().carry_out(gather).expect("a gather");
                    let got = buffer.all().as_send().to_vec();
                    assert!(me != root || got == all, "{from:?} to {to:?}");

                    own.all().unpack_at(0, &vec![0; 16 * COUNT as usize]);
                    let send = (me == root).then(|| buffer.send(0..COUNT));
                    let recv = Some(own.all());
                    let scatter = Call::Scatter { send, recv, root };
                    world.collectives().carry_out(scatter).expect("a scatter");
                    let got = own.all().as_send().to_vec();
                    assert!(got == words(me), "{to:?} to {from:?}");
                }
            }
        });
    }
}

/// Several ranks compute the result of the root, whose operand may be in the result buffer.
#[test]
fn long_operands_are_combined_by_all_for_any_root() {
    for (occupancy, ranks, way) in [
        (Occupancy::Dedicated, 2, "copies"),
        (Occupancy::Dedicated, 3, "copies"),
        (Occupancy::Dedicated, 3, "pieces"),
        (Occupancy::Oversubscribed, 5, "copies"),
        (Occupancy::Oversubscribed, 5, "pieces"),
    ] {
        job_with(ranks, occupancy, way).run(|engine| {
            let world = engine.world().expect("a world");
            // The last count has no small divisors.
            for count in [60_000, 300_000, 131_101] {
                for root in 0..ranks {
                    let me = world.rank();
                    let operand = |rank: u32| {
                        let word = move |i| i * 1000 + u64::from(rank);
                        (0..count as u64).map(word)
                    };
                    let scratch = || Scratch::new(count, &Named::UINT64.into()).expect("room");
                    let (own, buffer) = (scratch(), scratch());
                    own.all().unpack_at(0, &bytes_of(operand(me)));
                    let in_place = me == root && root % 2 == 0;
                    let recv = if in_place { own.all() } else { buffer.all() };
                    let reduce = Call::Reduce {
                        send: (!in_place).then(|| own.all().as_send()),
                        recv: (me == root).then(|| recv.clone()),
                        op: Predefined::Sum.into(),
                        root,
                    };
                    world.collectives().carry_out(reduce).expect("a reduction");
                    if me == root {
                        let sum = (1..ranks).map(u64::from).sum::<u64>();
                        let ranks = u64::from(ranks);
                        let expected = (0..count as u64).map(|i| i * 1000 * ranks + sum);
                        let got = recv.as_send().to_vec();
                        assert!(got == bytes_of(expected), "{count} to {root}");
                    }
                }
            }
        });
    }
}

/// With two ranks, results may overwrite the operands of both, of one or of no rank
/// (`MPI_IN_PLACE` on one rank only is erroneous, but must not block).
#[test]
fn two_ranks_reduce_long_operands_that_the_results_overwrite() {
    for way in ["copies", "pieces"] {
        job_with(2, Occupancy::Dedicated, way).run(|engine| {
            let world = engine.world().expect("a world");
            let me = world.rank();
            // One worker, two workers, and a length that two workers cannot divide evenly.
            for (count, in_place) in [1_500, 60_000, 131_101].into_iter().flat_map(|count| {
                let all = [[true, true], [true, false], [false, true], [false, false]];
                all.map(|in_place| (count, in_place))
            }) {
                let in_place = in_place[me as usize];
                let word = |rank: u32| move |i| i * 1000 + u64::from(rank);
                let scratch = || Scratch::new(count, &Named::UINT64.into()).expect("room");
                let (own, buffer) = (scratch(), scratch());
                let recv = if in_place { own.all() } else { buffer.all() };
                for nonblocking in [false, true] {
                    own.all()
                        .unpack_at(0, &bytes_of((0..count as u64).map(word(me))));
                    let allreduce = Call::Allreduce {
                        send: (!in_place).then(|| own.all().as_send()),
                        recv: recv.clone(),
                        op: Predefined::Sum.into(),
                    };
                    match nonblocking {
                        false => world.collectives().carry_out(allreduce).expect("a sum"),
                        true => {
                            let req = world.collectives().begin(allreduce).expect("a sum");
                            engine.wait(&req).expect("a sum");
                        }
                    }
                    let sum = |i| word(0)(i) + word(1)(i);
                    let expected = bytes_of((0..count as u64).map(sum));
                    assert!(
                        recv.as_send().to_vec() == expected,
                        "{way} {count} {in_place} {nonblocking}"
                    );
                }
            }
        });
    }
}
