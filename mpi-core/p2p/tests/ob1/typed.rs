//! Tests of messages with noncontiguous data.

use super::content;
use mpi_core::datatype::{Datatype, Named, Scratch};
use mpi_core::pml::Config;
use mpi_core::pml::Mode;
use mpi_core::testing::Job;

/// Returns layouts of 120,000 bytes: one segment, a few long segments of equal or different lengths, and many short segments.
fn layouts() -> Vec<(Datatype, i64)> {
    let double = Datatype::from(Named::DOUBLE);
    let committed = |datatype: Result<Datatype, _>, count| {
        let datatype: Datatype = datatype.expect("a type");
        datatype.commit().expect("committed");
        (datatype, count)
    };
    vec![
        (double.clone(), 15_000),
        committed(Datatype::vector(15, 1000, 1100, &double), 1),
        committed(Datatype::vector(5, 1000, 3000, &double), 3),
        committed(
            Datatype::indexed(&[7000, 600, 7400], &[20_000, 0, 2000], &double),
            1,
        ),
        committed(Datatype::vector(15_000, 1, 3, &double), 1),
        committed(Datatype::indexed(&[1, 2, 2], &[9, 0, 4], &double), 3000),
    ]
}

#[test]
fn a_typed_message_is_the_same_at_both_ends_however_its_data_lie() {
    let alone = Config::default();
    let together = Config {
        assist_min: 0,
        ..alone
    };
    let fragments = Config {
        single_copy_min: u64::MAX,
        ..alone
    };
    let measured = Config {
        measure: true,
        ..alone
    };
    let crowded = Config {
        sharing: 2,
        ..measured
    };
    for pml in [alone, together, fragments, measured, crowded] {
        let job = Job { pml, ..Job::of(2) };
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let pairs = layouts()
                .into_iter()
                .flat_map(|from| layouts().into_iter().map(move |to| (from.clone(), to)));
            for (at, (from, to)) in pairs.enumerate() {
                let data = content(at, 120_000);
                if engine.me() == 0 {
                    let buffer = Scratch::new(from.1, &from.0).expect("memory");
                    buffer.all().unpack_at(0, &data);
                    let sent = world
                        .p2p()
                        .send(buffer.all().as_send(), 1, 0, Mode::Standard);
                    sent.expect("sent");
                } else {
                    let buffer = Scratch::new(to.1, &to.0).expect("memory");
                    let status = world.p2p().recv(buffer.all(), 0, 0).expect("received");
                    assert_eq!(status.bytes, 120_000);
                    assert!(buffer.all().as_send().to_vec() == data, "pair {at}");
                }
            }
            assert_eq!(engine.pml().protocol_errors(), 0);
        });
    }
}

#[test]
fn data_in_few_and_long_runs_are_measured_and_data_in_many_short_ones_are_not() {
    let pml = Config {
        measure: true,
        ..Config::default()
    };
    for nth in 0..layouts().len() {
        let job = Job { pml, ..Job::of(2) };
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let (datatype, count) = layouts().swap_remove(nth);
            let buffer = Scratch::new(count, &datatype).expect("memory");
            for _ in 0..4 {
                if engine.me() == 0 {
                    let sent = world
                        .p2p()
                        .send(buffer.all().as_send(), 1, 0, Mode::Synchronous);
                    sent.expect("sent");
                } else {
                    world.p2p().recv(buffer.all(), 0, 0).expect("received");
                    let measured = engine.pml().has_measured(0, 120_000);
                    assert_eq!(measured, nth < 4, "layout {nth}");
                }
            }
        });
    }
}
