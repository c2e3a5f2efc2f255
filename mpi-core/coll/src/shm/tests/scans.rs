//! Tests of scans on oversubscribed ranks: each prefix continues from the previous rank's prefix, regardless of the rank that computes it.

use super::job;
use crate::Call;
use crate::datatype::{Named, Scratch};
use crate::op::Predefined;
use mpi_base::occupancy::Occupancy;
use std::time::Duration;

/// Returns a rank's operand; the bits of sums of these operands depend on the order of additions.
fn operand(rank: u32, call: u32) -> f64 {
    let scale = [1e16, 1.0, -1e16, 3.0, 1e-3];
    f64::from(1 + call) * scale[((rank + call) % 5) as usize]
}

/// Returns the sum of the operands of the first `ranks` ranks, added in the order of ranks.
fn sum(ranks: u32, call: u32) -> Option<f64> {
    (0..ranks)
        .map(|rank| operand(rank, call))
        .reduce(|sum, own| sum + own)
}

/// Single calls and series of calls, blocking and nonblocking, with and without MPI_IN_PLACE; each rank is late in one of the tests.
#[test]
fn a_scan_has_the_same_bits_for_every_order_of_arrival() {
    const CALLS: u32 = 4;
    for (ranks, rounds) in [(2, 40), (3, 40), (5, 60), (9, 60)] {
        job(ranks, Occupancy::Oversubscribed).run(|engine| {
            let world = engine.world().expect("a world");
            let me = world.rank();
            for round in 0..rounds {
                let mut under_way = Vec::new();
                for call in 0..CALLS {
                    let what = round * CALLS + call;
                    match (me * 7 + what * 5) % 11 {
                        0..=1 => std::thread::sleep(Duration::from_micros(150)),
                        2..=4 => std::thread::yield_now(),
                        _ => {}
                    }
                    let (in_place, with_own) = (what.is_multiple_of(3), what % 5 < 3);
                    let double = Named::DOUBLE.into();
                    let scratch = || Scratch::new(1, &double).expect("room");
                    let (own, to) = (scratch(), scratch());
                    own.all().unpack_at(0, &operand(me, what).to_ne_bytes());
                    to.all().unpack_at(0, &operand(me, what).to_ne_bytes());
                    let send = (!in_place).then(|| own.all().as_send());
                    let (recv, op) = (to.all(), Predefined::Sum.into());
                    let made = match with_own {
                        true => Call::Scan { send, recv, op },
                        false => Call::Exscan { send, recv, op },
                    };
                    // An exclusive scan does not change rank 0's result buffer.
                    let expected = sum(me + u32::from(with_own), what);
                    let expected = expected.unwrap_or(operand(me, what));
                    let check = move |to: &Scratch| {
                        let got = to.all().as_send().to_vec();
                        assert_eq!(got, expected.to_ne_bytes(), "rank {me}, call {what}");
                    };
                    match round % 2 {
                        0 => {
                            world.collectives().carry_out(made).expect("a scan");
                            check(&to);
                        }
                        _ => {
                            let req = world.collectives().begin(made).expect("a scan");
                            under_way.push((req, own, to, check));
                        }
                    }
                }
                for (req, _own, to, check) in under_way {
                    engine.wait(&req).expect("a scan");
                    check(&to);
                }
            }
        });
    }
}
