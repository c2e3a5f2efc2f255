//! Tests with arbitrary messages from a peer: each is handled, counted or dropped, and active operations can be abandoned afterwards.

use super::scratch;
use mpi_core::btl::{OVERTAKES, Sink};
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use mpi_core::pml::testing::wire;
use mpi_core::testing::Job;
use proptest::prelude::*;

/// Generates a 64-bit field of a header or payload: a small number, `own`, a request of this process, source and tag, or an arbitrary value.
fn word(own: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        0..5_u64,
        Just(own),
        (0..3_u64).prop_map(|index| index << 32 | 1),
        (0..100_u64, 0..9_u64).prop_map(|(source, tag)| source << 32 | tag),
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn malformed_messages_are_dropped(
        said in prop::collection::vec(
            (0..16_u8, word(0), word(1), prop::collection::vec(word(2), 0..6), 0..8_usize),
            0..60,
        )
    ) {
        Job::of(2).run(|engine| {
            if engine.me() == 1 {
                return;
            }
            let world = engine.world().expect("a world");
            let (data, buffer) = (scratch(100_000), scratch(1000));
            let sent = world.p2p().isend(data.all().as_send(), 1, 4, Mode::Synchronous).expect("sent");
            let receive = world.p2p().irecv(buffer.all(), 1, 4).expect("posted");
            let Sent::Pending(send) = sent else { panic!("it went without a receive") };
            let context = engine.pml().latest_context().map_or(0, |context| context.0);
            for (am, first, second, words, odd) in &said {
                // The values 0 to 2 are replaced by the context of the receive or by a request of this process.
                let first = match first {
                    0 => context,
                    1 => send.id().0,
                    2 => receive.id().0,
                    other => *other,
                };
                let named = |word: &u64| match word {
                    1 => send.id().0,
                    2 => receive.id().0,
                    other => *other,
                };
                let mut payload: Vec<u8> = words.iter().flat_map(|w| named(w).to_le_bytes()).collect();
                payload.truncate(payload.len().saturating_sub(*odd));
                // ASSIST is left out: its receiver writes to the addresses in the message,
                // which here are random addresses of this process.
                for am in [*am, *am | OVERTAKES].into_iter().filter(|am| *am != wire::ASSIST) {
                    engine.pml().deliver(1, am, [first, *second], &payload);
                }
            }
            engine.pml().termination().abandon(&receive);
            engine.pml().termination().abandon(&send);
        });
    }
}
