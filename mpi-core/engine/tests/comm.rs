//! Tests of leaders that have no context id left, or invalid arguments for the remote group,
//! and of groups that are not subsets of the parent:
//! every process that would have become a member gets the error, and no process hangs.

use mpi_core::comm::{Comm, CommError, LeaderError, SplitKey, U64Buf};
use mpi_core::datatype::SendBuf;
use mpi_core::group::Group;
use mpi_core::pml::Mode;
use mpi_core::testing::Job;
use mpi_core::{Engine, Error};
use std::fmt::Debug;

/// Checks that the call failed because rank `leader` has no context id left.
#[track_caller]
fn names<T: Debug>(leader: u32, outcome: Result<T, Error>) {
    let error = outcome.expect_err("there is no number");
    assert_eq!(error.find(), Some(&CommError::NoNumber { leader }));
    let text = error.to_string();
    let begins = format!("no communicator was made: rank {leader} of the job was to number it");
    assert!(text.starts_with(&begins), "{text}");
}

fn made(comm: Result<Option<Comm>, Error>) -> Result<Option<u32>, Error> {
    Ok(comm?.map(|comm| comm.size()))
}

/// Returns this process's part of the world, which is split by `color`.
fn side(engine: &Engine, world: &Comm, color: u64) -> Comm {
    let (color, key) = (Some(color), 0);
    let part = engine.block_on(world.constructors().split(SplitKey { color, key }));
    part.expect("a part").expect("each rank is on a side")
}

#[test]
fn members_hear_that_the_first_of_them_cannot_number_a_communicator() {
    Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let group = Group::from_procs(vec![3, 1, 4]);
        if [0, 3].contains(&engine.me()) {
            engine.context_ids().exhaust();
        }
        names(
            0,
            made(engine.block_on(world.constructors().dup()).map(Some)),
        );
        let is_member = group.rank_of(engine.me()).is_some();
        let ended = [
            made(engine.block_on(world.constructors().create(&group))),
            made(engine.block_on(world.constructors().create_group(&group, 7))),
            made(engine.block_on(engine.process().comm_from_group(&group, "some"))),
        ];
        for outcome in ended {
            match is_member {
                true => names(3, outcome),
                false => assert_eq!(outcome, Ok(None)),
            }
        }
        // Other ranks can still lead, and existing communicators work.
        let rest = Group::from_procs(vec![1, 0, 2, 3, 4]);
        assert_eq!(
            made(engine.block_on(world.constructors().create(&rest))),
            Ok(Some(5))
        );
        engine.block_on(world.internal().fence()).expect("a fence");
    });
}

#[test]
fn a_part_is_made_if_its_own_first_member_can_number_it() {
    Job::of(6).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        if [1, 4].contains(&me) {
            engine.context_ids().exhaust();
        }
        let parity = SplitKey {
            color: Some(u64::from(me % 2)),
            key: 0,
        };
        let part = made(engine.block_on(world.constructors().split(parity)));
        match me % 2 {
            // Rank 4 has no context id left, but does not lead the part of the even ranks.
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
        let part = side(engine, &world, u64::from(me % 2));
        // Rank 0 leads the even ranks, and rank 1 the odd ranks.
        let between = |tag| {
            let bridge = Some(Ok((&world, 1 - me % 2)));
            engine.block_on(part.inter().create(0, bridge, tag))
        };
        let inter = between(1).expect("an intercommunicator");
        if me == 1 {
            engine.context_ids().exhaust();
        }
        names(1, made(between(2).map(Some)));
        names(
            1,
            made(engine.block_on(inter.constructors().dup()).map(Some)),
        );
        let own = inter.group().clone();
        names(1, made(engine.block_on(inter.constructors().create(&own))));
        let all = SplitKey {
            color: Some(0),
            key: 0,
        };
        names(1, made(engine.block_on(inter.constructors().split(all))));
        names(
            1,
            made(engine.block_on(inter.inter().merge(false)).map(Some)),
        );
        engine.block_on(world.internal().fence()).expect("a fence");
    });
}

/// Checks that the call failed because the leader of this process's group got invalid arguments.
#[track_caller]
fn fails_by_its_leader<T: Debug>(leader: u32, due: &LeaderError, outcome: Result<T, Error>) {
    let failure = outcome.expect_err("there is no way");
    let error = due.clone();
    let expected = CommError::LeaderError { leader, error };
    assert_eq!(failure.find(), Some(&expected));
    let text = failure.to_string();
    let begins = format!("no intercommunicator was made: rank {leader} of the job, the leader");
    assert!(text.starts_with(&begins), "{text}");
}

#[test]
fn a_group_hears_that_its_leader_was_told_a_wrong_way_to_the_other() {
    Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        let part = side(engine, &world, u64::from(me % 2));
        // The second member leads each group, and only its arguments are significant.
        let leader = me % 2 + 2;
        // A very long text is truncated at a boundary between characters.
        let long = format!("a{}", "ü".repeat(1000));
        for (why, heard) in [
            ("", ""),
            ("remote_leader is 9", "remote_leader is 9"),
            (&long, &long[..999]),
        ] {
            let with = |why: &str| LeaderError {
                code: -3,
                why: why.into(),
            };
            let (error, heard) = (with(why), with(heard));
            let wrong = || match me == leader {
                true => Err(error.clone()),
                false => Ok(0),
            };
            let bridge = wrong().map(|rank| (&world, rank));
            let outcome = engine.block_on(part.inter().create(1, Some(bridge), 3));
            fails_by_its_leader(leader, &heard, made(outcome.map(Some)));
            let group = part.group();
            let outcome = engine.block_on(engine.process().inter_from_groups(
                (group, 1),
                (me == leader).then(wrong),
                "a failed leader",
            ));
            fails_by_its_leader(leader, &heard, made(outcome));
        }
        // Existing communicators work, and the leaders can connect the groups with valid arguments.
        let bridge = (me == leader).then_some(Ok((&world, 5 - me)));
        let inter = engine.block_on(part.inter().create(1, bridge, 3));
        assert_eq!(made(inter.map(Some)), Ok(Some(part.size())));
    });
}

#[test]
fn an_answer_that_is_none_is_refused_before_anybody_makes_room_for_it() {
    Job::of(3).run(|engine| {
        let world = engine.world().expect("a world");
        let part = side(engine, &world, u64::from(engine.me() == 2));
        let too_many = u64::MAX - 1;
        if engine.me() == 2 {
            let (said, heard) = (U64Buf::of(&[too_many, 0]), U64Buf::new(2));
            let cx = world.internal().group_conversation(3);
            let (said, heard) = (said.send(0..2), heard.recv(0..2));
            let swapped = cx.sendrecv(said, 0, heard, 0);
            engine.block_on(swapped).expect("swapped");
            return;
        }
        let outcome = engine.block_on(part.inter().create(0, Some(Ok((&world, 2))), 3));
        let error = made(outcome.map(Some)).expect_err("no answer");
        let words = too_many;
        assert_eq!(error.find(), Some(&CommError::Strange { words }));
        let text = error.to_string();
        assert!(text.contains("do both groups call the same"), "{text}");
    });
}

/// Rank 2 acts as the leader of a group with members of another job, so the leaders exchange addresses after the contributions.
#[test]
fn addresses_that_are_too_long_are_refused_before_memory_is_allocated_for_them() {
    Job::of(3).run(|engine| {
        let world = engine.world().expect("a world");
        let part = side(engine, &world, u64::from(engine.me() == 2));
        let (nothing, other_jobs, too_many) = (0, 1, u64::MAX - 1);
        if engine.me() == 2 {
            let cx = world.internal().group_conversation(3);
            for answer in [[nothing, other_jobs], [too_many, 0]] {
                let (said, heard) = (U64Buf::of(&answer), U64Buf::new(2));
                let swapped = cx.sendrecv(said.send(0..2), 0, heard.recv(0..2), 0);
                engine.block_on(swapped).expect("swapped");
            }
            return;
        }
        let outcome = engine.block_on(part.inter().create(0, Some(Ok((&world, 2))), 3));
        let error = made(outcome.map(Some)).expect_err("no addresses");
        let words = too_many;
        assert_eq!(error.find(), Some(&CommError::Strange { words }));
    });
}

/// Checks that the call failed because of a member of the group that is not in the communicator.
#[track_caller]
fn outside<T: Debug>(
    rank: u32,
    proc: u32,
    whole: &'static str,
    size: u32,
    outcome: Result<T, Error>,
) {
    let error = outcome.expect_err("no part");
    let expected = CommError::Outsider {
        rank,
        proc,
        whole,
        size,
    };
    assert_eq!(error.find(), Some(&expected));
    let text = error.to_string();
    let names = format!(
        "rank {rank} of the group given, which is rank {proc} of the job, is not among the {size} members of {whole}"
    );
    assert!(text.ends_with(&names), "{text}");
}

#[test]
fn a_group_with_a_stranger_in_it_is_refused_by_everybody_at_once() {
    Job::of(6).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        let part = side(engine, &world, u64::from(me < 2));
        if me < 2 {
            // The caller with rank 0 is not in the group, the caller with rank 1 is;
            // the group's other members do not call.
            let group = Group::from_procs(vec![1, 4, 5]);
            let whole = "the communicator";
            outside(
                1,
                4,
                whole,
                2,
                made(engine.block_on(part.constructors().create(&group))),
            );
            let created = engine.block_on(part.constructors().create_group(&group, 7));
            outside(1, 4, whole, 2, made(created));
            // The failed calls leave no state behind: the next call matches on all members.
            let twin = engine.block_on(part.constructors().create(&Group::range(0, 2)));
            assert_eq!(made(twin), Ok(Some(2)));
        }
        engine.block_on(world.internal().fence()).expect("a fence");
    });
}

#[test]
fn a_wrong_group_on_one_side_of_an_intercommunicator_fails_on_both() {
    Job::of(5).run(|engine| {
        let world = engine.world().expect("a world");
        let me = engine.me();
        let part = side(engine, &world, u64::from(me % 2));
        let bridge = Some(Ok((&world, 1 - me % 2)));
        let inter = engine.block_on(part.inter().create(0, bridge, 1));
        let inter = inter.expect("an intercommunicator");
        // The odd ranks pass a group that contains an even rank.
        let (group, whole) = match me % 2 {
            0 => (inter.group().clone(), "the other side"),
            _ => (Group::from_procs(vec![3, 2]), "this side"),
        };
        outside(
            1,
            2,
            whole,
            2,
            made(engine.block_on(inter.constructors().create(&group))),
        );
        let own = inter.group().clone();
        let size = own.size();
        assert_eq!(
            made(engine.block_on(inter.constructors().create(&own))),
            Ok(Some(size))
        );
    });
}

#[test]
fn a_communicator_without_a_name_is_told_by_its_size() {
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        let everybody = side(engine, &world, 0);
        let told = |comm: &Comm| {
            let sent = comm.p2p().send(SendBuf::empty(), 9, 0, Mode::Standard);
            sent.expect_err("no such rank").to_string()
        };
        assert_eq!(
            told(&world),
            "rank 9 is not in MPI_COMM_WORLD, which has ranks 0 to 1"
        );
        assert_eq!(
            told(&everybody),
            "rank 9 is not in a communicator of 2 processes, which has ranks 0 to 1"
        );
    });
}
