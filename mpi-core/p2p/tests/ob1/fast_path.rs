//! Tests of the receives that the fast path accepts.

use mpi_core::datatype::{RecvBytes, Scratch};
use mpi_core::pml::Key;
use mpi_core::pml::Plane;
use mpi_core::request::{ANY_SOURCE, ANY_TAG};
use mpi_core::testing::Job;

/// Returns true if the slot accepts a receive with the key `waiting` while a receive with the key `posted` is posted.
fn lets_in(posted: (i32, i32), waiting: (i32, i32)) -> bool {
    let let_in = Job::of(1).run(|engine| {
        let (world, pml) = (engine.world().expect("a world"), engine.pml());
        let word = Scratch::bytes(8).expect("memory");
        let earlier = world.p2p().irecv(word.all(), posted.0, posted.1);
        let matching = pml.matching(world.context().plane(Plane::User));
        let key = Key::new(waiting.0, waiting.1);
        let let_in = pml.try_recv_here(&matching, 0, key, RecvBytes::empty());
        pml.termination().abandon(&earlier.expect("posted"));
        let_in
    });
    let_in[0]
}

#[test]
fn the_slot_is_for_receives_whose_messages_nobody_was_promised() {
    let posted = [(0, 7), (ANY_SOURCE, 7), (0, ANY_TAG), (ANY_SOURCE, ANY_TAG)];
    for posted in posted {
        for waiting in [(0, 7), (0, 8), (ANY_SOURCE, 8), (ANY_SOURCE, ANY_TAG)] {
            let exact = waiting.0 != ANY_SOURCE;
            let accepts = Key::new(posted.0, posted.1).accepts(Key::new(waiting.0, waiting.1));
            let due = exact && !accepts;
            assert_eq!(
                lets_in(posted, waiting),
                due,
                "{waiting:?} after {posted:?}"
            );
        }
    }
}
