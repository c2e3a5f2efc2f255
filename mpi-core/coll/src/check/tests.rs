//! Tests of `check`: differences are reported, matching calls succeed, and the disabled component does nothing.

use super::*;
use crate::CallId;
use crate::datatype::{Named, RecvBuf, Scratch, SendBuf};
use crate::op::{Op, Predefined};
use crate::testing::Job;
use crate::topo::{Cart, DistGraph, Neighbours, Topology};

fn checked(ranks: u32) -> Job {
    Job::of(ranks).with("coll_base_check", "true")
}

fn words(count: i64) -> RecvBuf {
    Scratch::new(count, &Named::INT32.into())
        .expect("memory")
        .all()
}

/// Returns the error text of every rank if rank `i` makes call `call(i)`, blocking or nonblocking.
fn told(job: &Job, blocking: bool, call: impl Fn(u32) -> Call + Sync) -> Vec<String> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let call = call(world.rank());
        let outcome = match blocking {
            true => world.collectives().carry_out(call),
            false => world
                .collectives()
                .begin(call)
                .and_then(|req| engine.wait(&req).map(|_| ())),
        };
        outcome.map_or_else(|e| e.to_string(), |()| "agreed".into())
    })
}

/// Returns the error text `sentence` with the names of the nonblocking functions instead of the blocking ones.
fn nonblocking(sentence: &str) -> String {
    let mut parts = sentence.split("MPI_");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        // Only names of functions are changed: the names of types and operators are in capitals.
        match rest.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => text += &format!("MPI_I{}{rest}", first.to_lowercase()),
            false => text += &format!("MPI_{part}"),
        }
    }
    text
}

fn differ(ranks: u32, call: impl Fn(u32) -> Call + Sync, sentence: &str) {
    for blocking in [true, false] {
        let sentence = match blocking {
            true => sentence.to_owned(),
            false => nonblocking(sentence),
        };
        for said in told(&checked(ranks), blocking, &call) {
            assert_eq!(
                said,
                format!("in collective call 1 on MPI_COMM_WORLD the members differ: {sentence}")
            );
        }
    }
}

fn bcast(count: i64, root: u32) -> Call {
    Call::Bcast {
        buf: words(count),
        root,
    }
}

fn allreduce(op: Predefined) -> Call {
    Call::Allreduce {
        send: None,
        recv: words(2),
        op: Op::from(op),
    }
}

#[test]
fn a_different_root_is_reported() {
    differ(
        5,
        |rank| bcast(4, u32::from(rank == 3)),
        "ranks 0 to 2, 4 call MPI_Bcast from rank 0 of 16 bytes; rank 3 calls MPI_Bcast from rank 1 of 16 bytes",
    );
}

#[test]
fn a_different_count_is_reported() {
    differ(
        2,
        |rank| bcast(4 + i64::from(rank), 0),
        "rank 0 calls MPI_Bcast from rank 0 of 16 bytes; rank 1 calls MPI_Bcast from rank 0 of 20 bytes",
    );
}

#[test]
fn in_place_on_some_ranks_only_is_reported() {
    differ(
        3,
        |rank| Call::Alltoall {
            send: (rank > 0).then(|| words(2).as_send()),
            recv: words(6).with_count(2),
        },
        "rank 0 calls MPI_Alltoall in place of 8 bytes; ranks 1, 2 call MPI_Alltoall of 8 bytes",
    );
}

#[test]
fn a_different_operator_is_reported() {
    differ(
        3,
        |rank| {
            allreduce(if rank == 0 {
                Predefined::Max
            } else {
                Predefined::Sum
            })
        },
        "rank 0 calls MPI_Allreduce of 8 bytes with MPI_MAX; ranks 1, 2 call MPI_Allreduce of 8 bytes with MPI_SUM",
    );
}

#[test]
fn a_blocking_call_beside_nonblocking_ones_is_reported() {
    let said = checked(2).run(|engine| {
        let world = engine.world().expect("a world");
        let outcome = match world.rank() {
            0 => world.collectives().carry_out(Call::Barrier),
            _ => world
                .collectives()
                .begin(Call::Barrier)
                .and_then(|req| engine.wait(&req).map(|_| ())),
        };
        outcome.map_or_else(|e| e.to_string(), |()| "agreed".into())
    });
    for said in said {
        assert_eq!(
            said,
            "in collective call 1 on MPI_COMM_WORLD the members differ: rank 0 calls MPI_Barrier; rank 1 calls MPI_Ibarrier"
        );
    }
}

#[test]
fn nonblocking_and_persistent_calls_are_named_as_the_program_calls_them() {
    let said = checked(2).run(|engine| {
        let world = engine.world().expect("a world");
        let calls = world.collectives();
        let started = match world.rank() {
            0 => calls.begin(Call::Barrier),
            _ => {
                let plan = calls.plan(&Call::Barrier);
                calls.begin_persistent(Call::Barrier, plan.as_ref())
            }
        };
        let outcome = started.and_then(|req| engine.wait(&req).map(|_| ()));
        outcome.map_or_else(|e| e.to_string(), |()| "agreed".into())
    });
    for said in said {
        assert_eq!(
            said,
            "in collective call 1 on MPI_COMM_WORLD the members differ: rank 0 calls MPI_Ibarrier; rank 1 calls MPI_Barrier_init"
        );
    }
}

fn floats(count: i64) -> RecvBuf {
    Scratch::new(count, &Named::FLOAT.into())
        .expect("memory")
        .all()
}

#[test]
fn a_different_type_of_the_same_length_is_reported() {
    differ(
        3,
        |rank| Call::Bcast {
            buf: if rank == 1 { floats(2) } else { words(2) },
            root: 0,
        },
        "ranks 0, 2 call MPI_Bcast from rank 0 of 8 bytes with data of MPI_INT32_T; rank 1 calls MPI_Bcast from rank 0 of 8 bytes with data of MPI_FLOAT",
    );
    differ(
        2,
        |rank| Call::Gather {
            send: Some(words(1).as_send()),
            recv: (rank == 0).then(|| floats(2).with_count(1)),
            root: 0,
        },
        "rank 0 calls MPI_Gather to rank 0 of 4 bytes with data of MPI_INT32_T to MPI_FLOAT; rank 1 calls MPI_Gather to rank 0 of 4 bytes with data of MPI_INT32_T",
    );
}

#[test]
fn a_different_order_of_calls_is_reported() {
    differ(
        2,
        |rank| match rank {
            0 => Call::Barrier,
            _ => allreduce(Predefined::Sum),
        },
        "rank 0 calls MPI_Barrier; rank 1 calls MPI_Allreduce of 8 bytes with MPI_SUM",
    );
}

#[test]
fn different_counts_of_ranks_are_reported() {
    differ(
        2,
        |rank| Call::ReduceScatter {
            send: None,
            recv: words(3),
            counts: if rank == 0 { [1, 2] } else { [2, 1] }.into(),
            op: Predefined::Sum.into(),
        },
        "MPI_Reduce_scatter: rank 1 gives 8 bytes to rank 0, which takes 4; rank 0 gives 8 bytes to rank 1, which takes 4",
    );
}

fn row<B>(counts: impl IntoIterator<Item = i64>, buf: impl Fn(RecvBuf) -> B) -> Rc<[B]> {
    counts.into_iter().map(|count| buf(words(count))).collect()
}

fn rows(send: [i64; 3], recv: [i64; 3]) -> (Rc<[SendBuf]>, Rc<[RecvBuf]>) {
    (row(send, |b| b.as_send()), row(recv, |b| b))
}

#[test]
fn what_one_sends_and_the_other_does_not_expect_is_told() {
    let sentence = |call: &str| {
        format!(
            "{call}: rank 1 sends 12 bytes to rank 0, which expects 8; rank 0 sends 4 bytes to rank 2, which expects 0"
        )
    };
    let counts = |rank: u32| match rank {
        0 => rows([1, 1, 1], [1, 2, 1]),
        1 => rows([3, 1, 1], [1, 1, 1]),
        _ => rows([1, 1, 1], [0, 1, 1]),
    };
    let v = |rank| {
        let (send, recv) = counts(rank);
        Call::Alltoallv {
            send: Some(send),
            recv,
        }
    };
    differ(3, v, &sentence("MPI_Alltoallv"));
    let w = |rank| {
        let (send, recv) = counts(rank);
        Call::Alltoallw {
            send: Some(send),
            recv,
        }
    };
    differ(3, w, &sentence("MPI_Alltoallw"));
}

#[test]
fn a_root_that_expects_another_amount_is_reported() {
    let gather = |rank: u32| Call::Gatherv {
        send: Some(words(i64::from(rank)).as_send()),
        recv: (rank == 1).then(|| row([0, 1, 3], |b| b)),
        root: 1,
    };
    differ(
        3,
        gather,
        "MPI_Gatherv: rank 2 sends 8 bytes to rank 1, which expects 12",
    );
    let scatter = |rank: u32| Call::Scatterv {
        send: (rank == 1).then(|| row([2, 1, 2], |b| b.as_send())),
        recv: Some(words(if rank == 2 { 4 } else { i64::from(2 - rank) })),
        root: 1,
    };
    differ(
        3,
        scatter,
        "MPI_Scatterv: rank 1 sends 8 bytes to rank 2, which expects 16",
    );
}

#[test]
fn a_member_with_another_length_is_told_by_those_who_expect_it() {
    let call = |rank: u32| Call::Allgatherv {
        send: Some(words(if rank == 1 { 2 } else { 1 }).as_send()),
        recv: row([1, 1, 1], |b| b),
    };
    differ(
        3,
        call,
        "MPI_Allgatherv: rank 1 sends 8 bytes to rank 0, which expects 4; rank 1 sends 8 bytes to rank 1, which expects 4; rank 1 sends 8 bytes to rank 2, which expects 4",
    );
}

#[test]
fn a_member_that_sends_another_amount_than_all_expect_is_told() {
    let send = |rank: u32| Some(words(if rank == 1 { 1 } else { 2 }).as_send());
    let to_all = "rank 1 sends 4 bytes to rank 0, which expects 8; rank 1 sends 4 bytes to rank 1, which expects 8";
    let allgather = |rank| Call::Allgather {
        send: send(rank),
        recv: words(2),
    };
    differ(2, allgather, &format!("MPI_Allgather: {to_all}"));
    let alltoall = |rank| Call::Alltoall {
        send: send(rank),
        recv: words(2),
    };
    differ(2, alltoall, &format!("MPI_Alltoall: {to_all}"));
}

#[test]
fn a_root_with_another_amount_for_itself_is_reported() {
    let gather = |rank: u32| Call::Gather {
        send: Some(words(if rank == 1 { 1 } else { 2 }).as_send()),
        recv: (rank == 1).then(|| words(2)),
        root: 1,
    };
    differ(
        3,
        gather,
        "MPI_Gather: rank 1 sends 4 bytes to rank 1, which expects 8",
    );
    let scatter = |rank: u32| Call::Scatter {
        send: (rank == 1).then(|| words(2).as_send()),
        recv: Some(words(if rank == 1 { 3 } else { 2 })),
        root: 1,
    };
    differ(
        3,
        scatter,
        "MPI_Scatter: rank 1 sends 8 bytes to rank 1, which expects 12",
    );
}

#[test]
fn no_more_than_four_pairs_are_named() {
    let call = |rank: u32| Call::Alltoallv {
        send: Some(row([i64::from(rank == 5); 6], |b| b.as_send())),
        recv: row([0; 6], |b| b),
    };
    let last = "rank 5 sends 4 bytes to rank 3, which expects 0; and 2 other pairs";
    for said in told(&checked(6), true, call) {
        assert!(said.ends_with(last), "{said}");
    }
}

/// Returns the neighbours of each rank of a directed ring of three.
/// The right neighbour occurs twice, then the left neighbour once.
fn neighbours(rank: u32) -> Rc<Neighbours> {
    let edges: Vec<_> = (0..3u32)
        .flat_map(|from| {
            [
                (from, (from + 1) % 3, 0),
                (from, (from + 1) % 3, 0),
                (from, (from + 2) % 3, 0),
            ]
        })
        .collect();
    let topology = Topology::DistGraph(DistGraph::of(rank, &edges, false));
    Rc::new(topology.neighbours(rank).expect("inside"))
}

/// Returns a neighbourhood call with one block of one word per edge.
/// The blocks listed in `longer_out` and `longer_in`,
/// by the rank of the other end and the edge's index, are longer.
fn among_neighbours(
    rank: u32,
    longer_out: &[(u32, usize)],
    longer_in: &[(u32, usize)],
) -> (Rc<[SendBuf]>, Rc<[RecvBuf]>) {
    let neighbours = neighbours(rank);
    let lengths = |ends: &[Option<u32>], longer: &[(u32, usize)]| -> Vec<i64> {
        (0..ends.len())
            .map(|block| {
                let end = ends[block].expect("each rank has a neighbour");
                let nth = ends[..block]
                    .iter()
                    .filter(|other| **other == Some(end))
                    .count();
                1 + i64::from(longer.contains(&(end, nth)))
            })
            .collect()
    };
    (
        row(lengths(neighbours.destinations(), longer_out), |b| {
            b.as_send()
        }),
        row(lengths(neighbours.sources(), longer_in), |b| b),
    )
}

#[test]
fn an_amount_that_a_neighbour_does_not_expect_is_reported() {
    // Rank 1 sends a longer second block to rank 2, which expects a longer first block.
    // Their sums of bytes are equal, so only a comparison block by block finds the two differences.
    let call = |rank: u32, w: bool| {
        let out: &[_] = if rank == 1 { &[(2, 1)] } else { &[] };
        let into: &[_] = if rank == 2 { &[(1, 0)] } else { &[] };
        let (send, recv) = among_neighbours(rank, out, into);
        let neighbours = neighbours(rank);
        match w {
            true => Call::NeighborAlltoallw {
                neighbours,
                send,
                recv,
            },
            false => Call::NeighborAlltoallv {
                neighbours,
                send,
                recv,
            },
        }
    };
    let sentence = "rank 1 sends 4 bytes to rank 2, which expects 8; and another pair";
    differ(
        3,
        |rank| call(rank, false),
        &format!("MPI_Neighbor_alltoallv: {sentence}"),
    );
    differ(
        3,
        |rank| call(rank, true),
        &format!("MPI_Neighbor_alltoallw: {sentence}"),
    );
}

#[test]
fn a_neighbour_with_a_different_count_is_reported() {
    let gather = |rank: u32| Call::NeighborAllgather {
        neighbours: neighbours(rank),
        send: words(1).as_send(),
        recv: words(if rank == 0 { 2 } else { 1 }),
    };
    differ(
        3,
        gather,
        "MPI_Neighbor_allgather: rank 1 sends 4 bytes to rank 0, which expects 8; and 2 other pairs",
    );
    let gatherv = |rank: u32| Call::NeighborAllgatherv {
        neighbours: neighbours(rank),
        send: words(if rank == 2 { 3 } else { 1 }).as_send(),
        recv: row([1; 3], |b| b),
    };
    differ(
        3,
        gatherv,
        "MPI_Neighbor_allgatherv: rank 2 sends 12 bytes to rank 0, which expects 4; rank 2 sends 12 bytes to rank 1, which expects 4; and another pair",
    );
    let alltoall = |rank: u32| Call::NeighborAlltoall {
        neighbours: grid(rank),
        send: words(1 + i64::from(rank == 0)).as_send(),
        recv: words(1),
    };
    differ(
        3,
        alltoall,
        "MPI_Neighbor_alltoall: rank 0 sends 8 bytes to rank 1, which expects 4",
    );
}

/// A Cartesian grid of three processes in a row: the first and the last have only one neighbour.
fn grid(rank: u32) -> Rc<Neighbours> {
    let cart = Cart::new(&[3], vec![false]).expect("a row");
    Rc::new(Topology::Cart(cart).neighbours(rank).expect("inside"))
}

#[test]
fn an_edge_that_one_end_does_not_know_is_reported() {
    let one_way = |rank: u32| {
        let edges: &[_] = if rank == 0 { &[(0, 1, 0)] } else { &[] };
        let topology = Topology::DistGraph(DistGraph::of(rank, edges, false));
        let neighbours = Rc::new(topology.neighbours(rank).expect("inside"));
        Call::NeighborAllgather {
            neighbours,
            send: words(1).as_send(),
            recv: words(1),
        }
    };
    differ(
        2,
        one_way,
        "MPI_Neighbor_allgather: rank 0 sends 4 bytes to rank 1, which expects 0",
    );
}

#[test]
fn members_go_on_after_a_difference() {
    let outcomes = checked(4).run(|engine| {
        let world = engine.world().expect("a world");
        let wrong = world.collectives().carry_out(bcast(1, world.rank()));
        let right = world.collectives().carry_out(Call::Barrier);
        (wrong.is_err(), right.is_ok())
    });
    assert!(outcomes.into_iter().all(|o| o == (true, true)));
}

#[test]
fn without_the_parameter_no_call_passes_through_it() {
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        let table = Table::chosen(&world).expect("a table");
        for call in CallId::ALL {
            assert!(table.chain(call).all(|name| name != "check"));
        }
    });
}
