//! A process that has no number left for a communicator: whoever would have been a member hears so, and nobody waits for it.

use super::{Comm, CommError, SplitKey};
use crate::Error;
use crate::engine::testing::Job;
use crate::error::ErrorKind;
use crate::group::Group;
use std::fmt::Debug;

/// The call has failed because of this process, and says so.
#[track_caller]
fn names<T: Debug>(leader: u32, outcome: Result<T, Error>) {
    let error = outcome.expect_err("there is no number");
    assert_eq!(
        *error.kind(),
        ErrorKind::Comm(CommError::NoNumber { leader })
    );
    let text = error.to_string();
    let begins = format!("no communicator was made: rank {leader} of the job was to number it");
    assert!(text.starts_with(&begins), "{text}");
}

fn made(comm: Result<Option<Comm>, Error>) -> Result<Option<u32>, Error> {
    Ok(comm?.map(|comm| comm.size()))
}

#[test]
fn members_hear_that_the_first_of_them_cannot_number_a_communicator() {
    Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let group = Group::from_procs(vec![3, 1, 4]);
        if [0, 3].contains(&engine.me()) {
            engine.exhaust_serials();
        }
        names(0, made(engine.block_on(world.dup()).map(Some)));
        let is_member = group.rank_of(engine.me()).is_some();
        let ended = [
            made(engine.block_on(world.create(&group))),
            made(engine.block_on(world.create_group(&group, 7))),
            made(engine.block_on(engine.comm_from_group(&group, "some"))),
        ];
        for outcome in ended {
            match is_member {
                true => names(3, outcome),
                false => assert_eq!(outcome, Ok(None)),
            }
        }
        // The others lead as before, and what there is goes on.
        let rest = Group::from_procs(vec![1, 0, 2, 3, 4]);
        assert_eq!(made(engine.block_on(world.create(&rest))), Ok(Some(5)));
        engine.block_on(world.fence()).expect("a fence");
    });
}

#[test]
fn a_part_is_made_if_its_own_first_member_can_number_it() {
    Job::of(6).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        if [1, 4].contains(&me) {
            engine.exhaust_serials();
        }
        let parity = SplitKey {
            color: Some(u64::from(me % 2)),
            key: 0,
        };
        let part = made(engine.block_on(world.split(parity)));
        match me % 2 {
            // Rank 4 does not lead its part.
            0 => assert_eq!(part, Ok(Some(3))),
            _ => names(1, part),
        }
    });
}

#[test]
fn both_groups_hear_that_a_leader_cannot_number_what_is_between_them() {
    Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        let side = SplitKey {
            color: Some(u64::from(me % 2)),
            key: 0,
        };
        let part = engine.block_on(world.split(side)).expect("a part");
        let part = part.expect("everybody has a side");
        // The even ones are led by rank 0, the odd ones by 1.
        let between = |tag| {
            let bridge = Some((&world, 1 - me % 2));
            engine.block_on(part.inter(0, bridge, tag))
        };
        let inter = between(1).expect("an intercommunicator");
        if me == 1 {
            engine.exhaust_serials();
        }
        names(1, made(between(2).map(Some)));
        names(1, made(engine.block_on(inter.dup()).map(Some)));
        let own = inter.group().clone();
        names(1, made(engine.block_on(inter.create(&own))));
        let all = SplitKey {
            color: Some(0),
            key: 0,
        };
        names(1, made(engine.block_on(inter.split(all))));
        names(1, made(engine.block_on(inter.merge(false)).map(Some)));
        engine.block_on(world.fence()).expect("a fence");
    });
}
