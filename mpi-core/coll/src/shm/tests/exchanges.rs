//! Tests of the exchanges of words by which windows and files are created and freed.

use super::{OCCUPANCIES, job};

/// Few words are in one cell, many need messages; both give the words of all members in the order of ranks.
#[test]
fn words_are_exchanged_in_cells_and_by_messages() {
    for occupancy in OCCUPANCIES {
        for ranks in [1, 2, 3, 5] {
            job(ranks, occupancy).run(|engine| {
                let world = engine.world().expect("a world");
                let own = world.constructors().dup_now().expect("a duplicate");
                for round in 0..40u64 {
                    for len in [0, 1, 6, 12, 3000] {
                        let words =
                            |rank: u64| (0..len).map(move |at| rank << 32 | round << 16 | at);
                        let mine: Vec<u64> = words(own.rank().into()).collect();
                        let all = own.internal().share_now(&mine).expect("an exchange");
                        let expected: Vec<u64> = (0..ranks.into()).flat_map(words).collect();
                        assert_eq!(all, expected, "{len} words");
                        own.internal().fence_now().expect("a fence");
                    }
                }
            });
        }
    }
}

/// An exchange matches neither a fence nor an exchange of another length, although all use the same cells.
#[test]
fn different_exchanges_do_not_match() {
    for occupancy in OCCUPANCIES {
        for other in [0, 2] {
            let failed = job(2, occupancy).run(|engine| {
                let world = engine.world().expect("a world");
                let own = world.constructors().dup_now().expect("a duplicate");
                for _ in 0..20 {
                    own.internal().share_now(&[1, 2]).expect("an exchange");
                    own.internal().share_now(&[1]).expect("an exchange");
                }
                match (own.rank(), other) {
                    (0, _) => own.internal().share_now(&[0]).is_err(),
                    (_, 0) => own.internal().fence_now().is_err(),
                    _ => own.internal().share_now(&[0, 0]).is_err(),
                }
            });
            assert_eq!(failed, [true, true], "{other}");
        }
    }
}
