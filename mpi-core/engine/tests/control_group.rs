//! Tests of broadcast and MIN-reduction in a control group.

use mpi_core::comm::{ControlGroup, FIRST};
use mpi_core::group::Group;
use mpi_core::testing::Job;

fn told_by(from: u32, words: &[u8]) {
    let heard = Job::of(6).run(|engine| {
        let world = engine.world().expect("a world");
        let mine = match world.rank() == from {
            true => words.to_vec(),
            false => b"something else".to_vec(),
        };
        let conversation = world.internal().conversation();
        let control_group = ControlGroup::of(&conversation, world.group(), world.rank());
        engine
            .block_on(control_group.tell(mine, from))
            .expect("words")
    });
    assert!(heard.iter().all(|h| h == words));
}

#[test]
fn words_reach_everybody_whole_however_many_they_are() {
    for len in [0, 1, FIRST - 1, FIRST, FIRST + 1, 40_000] {
        let words: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        told_by(4, &words);
    }
}

#[test]
fn the_lowest_number_of_each_place_is_found_wherever_it_is() {
    for size in [1, 2, 3, 8, 9, 20] {
        let found = Job::of(size).run(|engine| {
            let world = engine.world().expect("a world");
            let (me, conversation) = (world.rank(), world.internal().conversation());
            let control_group = ControlGroup::of(&conversation, world.group(), me);
            let mut numbers = [me + 5, size - me, 1000 - (me ^ 3)];
            let outcome = engine.block_on(control_group.lowest(&mut numbers));
            outcome.expect("numbers");
            numbers
        });
        let highest = (0..size).map(|rank| rank ^ 3).max().expect("a rank");
        for numbers in found {
            assert_eq!(numbers, [5, 1, 1000 - highest]);
        }
    }
}

#[test]
fn a_group_is_told_in_the_conversation_of_a_larger_one() {
    let heard = Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let group = Group::from_procs(vec![4, 1, 3]);
        let conversation = world.internal().conversation();
        let rank = group.rank_of(world.rank())?;
        let control_group = ControlGroup::of(&conversation, &group, rank);
        Some(engine.block_on(control_group.tell(vec![rank as u8], 1)))
    });
    for (rank, heard) in (0..).zip(heard) {
        match [1, 3, 4].contains(&rank) {
            true => assert_eq!(heard.expect("a member").expect("words"), [1]),
            false => assert!(heard.is_none()),
        }
    }
}
