//! Tests of hang reports from hand-made snapshots; `tests/tests/hang.rs` tests real jobs.

use super::*;
use crate::rank_snapshot::{
    AtWindow, Comm, Gate, InFile, Partner, Round, Stopped, ThreadWait, Waiting, WindowNeed,
};
use std::time::Duration;

pub(super) fn idle(rank: u32) -> Seen {
    let snapshot = RankSnapshot {
        stage: Stage::Running,
        call: None,
        last_call: Some("MPI_Send".into()),
        calls: 4,
        waiting: None,
        begun: None,
        waited: None,
        round: None,
        gate: None,
        in_file: None,
        progress: 0,
        quiet: None,
        threads: Vec::new(),
        stopped: None,
    };
    Seen {
        rank,
        host: "node1".into(),
        alive: true,
        lost: None,
        exception: None,
        snapshot: Some(snapshot),
    }
}

fn with(mut seen: Seen, change: impl FnOnce(&mut RankSnapshot)) -> Seen {
    if let Some(snapshot) = &mut seen.snapshot {
        snapshot.waited = Some(Duration::from_secs(31));
        change(snapshot);
    }
    seen
}

fn partner(job_rank: u32, tag: i32) -> Partner {
    Partner {
        comm: Comm::WORLD,
        rank: job_rank,
        job_rank,
        tag: Some(tag),
        bytes: 8,
        requests: 1,
    }
}

fn calls(rank: u32, call: &str, waiting: Waiting) -> Seen {
    with(idle(rank), |snapshot| {
        snapshot.call = Some(call.into());
        snapshot.waiting = Some(waiting);
    })
}

fn sends(rank: u32, to: u32, tag: i32) -> Seen {
    calls(rank, "MPI_Ssend", Waiting::Send(partner(to, tag)))
}

pub(super) fn receives(rank: u32, from: u32, tag: i32) -> Seen {
    calls(rank, "MPI_Recv", Waiting::Recv(partner(from, tag)))
}

/// Returns a rank with one thread for each of `peers` that receives from that rank.
fn threads(rank: u32, peers: &[u32]) -> Seen {
    with(receives(rank, peers[0], 7), |snapshot| {
        let thread = |peer: &u32| ThreadWait {
            thread: 100 + peer,
            lane: 1,
            call: "MPI_Recv".into(),
            waiting: Some(Waiting::Recv(partner(*peer, 7))),
            begun: None,
            waited: Duration::from_secs(31),
        };
        snapshot.threads = peers.iter().map(thread).collect();
    })
}

fn circles(ranks: Vec<Seen>) -> usize {
    let findings = Report::of(0, ranks).findings;
    let is_circle = |finding: &&Finding| matches!(finding, Finding::Circle { .. });
    findings.iter().filter(is_circle).count()
}

#[test]
fn a_rank_whose_threads_wait_for_different_ranks_is_in_a_circle_only_if_no_thread_can_proceed() {
    let pair = |third: Seen| vec![threads(0, &[1, 2]), receives(1, 0, 7), third];
    assert_eq!(circles(pair(idle(2))), 0, "rank 2 computes");
    assert_eq!(circles(pair(receives(2, 0, 7))), 1);
    assert_eq!(circles(vec![threads(0, &[1, 1]), threads(1, &[0, 0])]), 1);
}

#[test]
fn each_waiting_thread_of_a_rank_is_described() {
    assert_eq!(
        threads(0, &[1, 2]).doing(),
        "waits in 2 threads: thread 101 in MPI_Recv from rank 1, tag 7, for 31 s; \
         thread 102 in MPI_Recv from rank 2, tag 7, for 31 s"
    );
    assert_eq!(
        threads(0, &[1]).doing(),
        "waits in MPI_Recv from rank 1, tag 7, for 31 s"
    );
}

pub(super) fn meets(rank: u32, what: &str, number: u64) -> Seen {
    with(idle(rank), |snapshot| {
        snapshot.call = what.split(' ').next().map(str::to_string);
        snapshot.round = Some(Round {
            comm: Comm::WORLD,
            number,
            what: what.into(),
            members: 4,
            inside: true,
        });
    })
}

pub(super) fn gone(rank: u32) -> Seen {
    Seen {
        alive: false,
        ..idle(rank)
    }
}

fn lost(rank: u32) -> Seen {
    Seen {
        lost: Some("was killed by signal 9 (SIGKILL)".into()),
        ..gone(rank)
    }
}

fn report(ranks: Vec<Seen>) -> String {
    Report::of(0, ranks).to_string()
}

#[test]
fn the_exception_of_a_python_program_is_the_first_finding() {
    let raised = Seen {
        exception: Some("ValueError: bad".into()),
        ..calls(1, "MPI_Finalize", Waiting::Collective)
    };
    let said = report(vec![receives(0, 1, 7), raised]);
    let first = "rank 1 has printed the Python exception ValueError: bad, and ";
    assert!(said.starts_with(first), "{said}");
    assert!(
        said.contains("rank 0 waits for rank 1, which has left"),
        "{said}"
    );
}

#[test]
fn a_rank_that_the_job_goes_on_without_is_named_as_dead() {
    let ranks = vec![receives(0, 1, 7), lost(1), lost(2)];
    let said = report(ranks);
    for part in [
        "rank 0 waits for rank 1, which is dead; it was killed by signal 9 (SIGKILL)\n",
        "\n  ranks 1-2 are dead; each was killed by signal 9 (SIGKILL)",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // A dead rank without a snapshot is reported in the same way.
    let unseen = Seen {
        snapshot: None,
        ..lost(1)
    };
    assert!(report(vec![unseen]).contains("rank 1 is dead; it was killed"));
}

#[test]
fn crossed_sends_are_a_circle() {
    insta::assert_snapshot!(report(vec![sends(0, 1, 7), sends(1, 0, 7)]));
}

#[test]
fn a_longer_circle_is_told_once_and_then_who_waits_for_it() {
    let ranks = vec![
        receives(0, 1, 1),
        receives(1, 2, 1),
        receives(2, 0, 1),
        receives(3, 0, 1),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn ranks_that_wait_for_a_rank_that_waits_for_itself_are_named() {
    let ranks = vec![receives(0, 0, 1), receives(1, 0, 1), receives(2, 1, 1)];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn the_function_that_began_a_request_is_named() {
    let waits = |rank, waiting, begun: &str| {
        with(calls(rank, "MPI_Wait", waiting), |snapshot| {
            snapshot.begun = Some(begun.into());
        })
    };
    let ranks = vec![
        waits(0, Waiting::Send(partner(1, 7)), "MPI_Isend"),
        waits(1, Waiting::Recv(partner(2, 7)), "MPI_Recv_init"),
        waits(
            2,
            Waiting::RecvAny {
                comm: Comm::WORLD,
                tag: None,
            },
            "MPI_Irecv",
        ),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn a_wrong_tag_is_named() {
    insta::assert_snapshot!(report(vec![sends(0, 1, 7), receives(1, 0, 8)]));
}

#[test]
fn a_missing_receive_is_a_circle_through_the_barrier() {
    let ranks = vec![sends(0, 1, 7), meets(1, "MPI_Barrier", 1)];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn a_rank_that_computes_or_has_left_is_the_culprit() {
    let ranks = vec![
        receives(0, 1, 5),
        receives(1, 2, 5),
        idle(2),
        gone(3),
        receives(4, 3, 9),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn a_mismatch_is_named_with_who_calls_what() {
    let ranks = vec![
        meets(0, "MPI_Allreduce of 8 bytes with MPI_SUM", 12),
        meets(1, "MPI_Allreduce of 8 bytes with MPI_SUM", 12),
        meets(2, "MPI_Allreduce of 8 bytes with MPI_SUM", 12),
        meets(3, "MPI_Bcast from rank 0 of 8 bytes", 12),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn who_has_not_come_is_not_said_to_be_missed_in_what_only_some_call() {
    let ranks = vec![
        meets(0, "MPI_Allreduce of 8 bytes with MPI_SUM", 12),
        idle(1),
        meets(2, "MPI_Bcast from rank 0 of 8 bytes", 12),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn members_that_have_not_come_are_named_with_what_they_do() {
    let ranks = vec![
        meets(0, "MPI_Barrier", 12),
        idle(1),
        meets(2, "MPI_Barrier", 12),
        receives(3, 1, 4),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn what_several_ranks_do_is_told_of_several() {
    let before = |rank| {
        with(idle(rank), |snapshot| {
            snapshot.stage = Stage::Before;
            snapshot.last_call = None;
        })
    };
    let sends = |rank| calls(rank, "MPI_Waitall", Waiting::Send(partner(9, 7)));
    let ranks = vec![
        before(0),
        before(1),
        idle(2),
        idle(3),
        sends(4),
        sends(5),
        gone(6),
        gone(7),
        sends(8),
    ];
    insta::assert_snapshot!(report(ranks));
}

#[test]
fn who_takes_any_message_waits_in_vain_only_when_nobody_can_move() {
    let any = || {
        let (comm, tag) = (Comm::WORLD, None);
        calls(0, "MPI_Recv", Waiting::RecvAny { comm, tag })
    };
    let vain = |ranks: &[Seen]| {
        let found = find::all(ranks);
        found
            .iter()
            .any(|found| matches!(found, Finding::NoSender { waiting, .. } if *waiting == [0]))
    };
    assert!(!vain(&[any(), idle(1)]));
    // Rank 1 waits for a message from rank 2, which computes, so rank 1 may later send to rank 0.
    assert!(!vain(&[any(), receives(1, 2, 1), idle(2)]));
    assert!(vain(&[any(), gone(1)]));
    assert!(vain(&[any(), receives(1, 0, 1)]));
    insta::assert_snapshot!(report(vec![any(), receives(1, 0, 1), gone(2)]));
}

#[test]
fn wires_of_the_hardware_barrier_that_lag_are_named() {
    let wired = |seen: Seen, wire, entered, released| {
        with(seen, |snapshot| {
            snapshot.gate = Some(Gate {
                wire,
                entered,
                released,
            });
        })
    };
    let ranks = vec![
        wired(meets(0, "MPI_Barrier", 3), 0, 3, 2),
        wired(idle(1), 1, 2, 2),
        wired(meets(2, "MPI_Barrier", 3), 2, 3, 2),
    ];
    insta::assert_snapshot!(report(ranks));
    let ranks = vec![
        wired(meets(0, "MPI_Barrier", 3), 0, 3, 3),
        wired(idle(1), 1, 3, 3),
    ];
    assert_eq!(find::all(&ranks)[1..], [], "all have entered");
}

#[test]
fn tools_get_kind_ranks_and_sentence_of_each_finding() {
    let json = Report::of(0, vec![sends(0, 1, 7), sends(1, 0, 7)]).json();
    let finding = &json["findings"][0];
    assert_eq!(finding["kind"], "circle");
    assert_eq!(finding["ranks"], serde_json::json!([0, 1]));
    assert!(
        finding["text"]
            .as_str()
            .unwrap()
            .starts_with("ranks 0, 1 wait for each other")
    );
    let rank = &json["ranks"][1];
    assert_eq!(rank["snapshot"]["waiting"]["send"]["job_rank"], 0);
    assert_eq!(
        rank["text"],
        "waits in MPI_Ssend to rank 0, tag 7, 8 bytes, for 31 s"
    );
}

/// Ranks 1 to 3 expect more bytes than rank 0 has sent, so they wait indefinitely.
#[test]
fn an_operation_that_does_not_end_though_all_have_come_is_told() {
    let mut ranks: Vec<Seen> = (1..4)
        .map(|rank| meets(rank, "MPI_Scatter from rank 0 of 40 bytes", 1))
        .collect();
    ranks.insert(0, meets(0, "MPI_Reduce to rank 0 of 4 bytes", 2));
    insta::assert_snapshot!(report(ranks.clone()));
    // The rank that has completed the operation may compute, or may have ended.
    ranks[0] = left(0, "MPI_Scatter from rank 0 of 80 bytes", 1);
    let told = report(ranks.clone());
    assert!(told.contains("and rank 0 has left it:"), "{told}");
    // A member that has not entered the operation explains the wait.
    ranks[0] = idle(0);
    let told = report(ranks);
    assert!(!told.contains("coll_base_check"), "{told}");
}

/// Returns a rank that has completed its latest collective operation, and computes.
fn left(rank: u32, what: &str, number: u64) -> Seen {
    with(meets(rank, what, number), |snapshot| {
        snapshot.call = None;
        snapshot.round.as_mut().expect("a round").inside = false;
    })
}

/// The root of a broadcast returns before the other members, so nothing but its latest operation shows the mismatch.
#[test]
fn a_rank_that_has_left_another_operation_is_named_with_it() {
    let in_barrier = |ranks: std::ops::Range<u32>| ranks.map(|rank| meets(rank, "MPI_Barrier", 1));
    let bcast = "MPI_Bcast from rank 0 of 4 bytes";
    let mut ranks: Vec<Seen> = in_barrier(1..4).collect();
    ranks.insert(0, left(0, bcast, 1));
    let expected = "collective operation #1 on MPI_COMM_WORLD is not the same everywhere:\n  \
                    ranks 1-3 are in MPI_Barrier\n  rank 0 has left MPI_Bcast from rank 0 of 4 bytes\n";
    let told = report(ranks.clone());
    assert!(told.starts_with(expected), "{told}");
    // A rank that has ended, or calls MPI_Finalize, has left the operation too.
    ranks[0].alive = false;
    let told = report(ranks.clone());
    assert!(told.starts_with(expected), "{told}");
    // Other roots differ as other functions do.
    let roots = |ranks: std::ops::Range<u32>| {
        ranks.map(|rank| meets(rank, "MPI_Bcast from rank 1 of 4 bytes", 1))
    };
    ranks = std::iter::once(left(0, bcast, 1))
        .chain(roots(1..4))
        .collect();
    let told = report(ranks.clone());
    assert!(told.contains("is not the same everywhere"), "{told}");
    // The rank may have called further operations since, and its call of this one is not known then.
    ranks = in_barrier(1..4).collect();
    ranks.insert(0, meets(0, "MPI_Barrier", 2));
    let told = report(ranks);
    let sentence = "and rank 0 has left it: rank 0 may have called another operation, which --mca coll_base_check true compares, or a rank may be stopped in it";
    assert!(told.contains(sentence), "{told}");
}

/// A member that has completed the same operation is no mismatch, whatever the lengths.
#[test]
fn a_rank_that_has_left_the_same_operation_is_no_mismatch() {
    for (own, theirs) in [
        ("MPI_Barrier", "MPI_Barrier"),
        (
            "MPI_Scatter from rank 0 of 80 bytes",
            "MPI_Scatter from rank 0 of 40 bytes",
        ),
    ] {
        let mut ranks: Vec<Seen> = (1..4).map(|rank| meets(rank, theirs, 1)).collect();
        ranks.insert(0, left(0, own, 1));
        let told = report(ranks);
        assert!(!told.contains("is not the same"), "{told}");
        assert!(told.contains("and rank 0 has left it"), "{told}");
    }
}

/// Members of a barrier transfer no data, so lengths cannot differ.
#[test]
fn a_barrier_that_does_not_end_is_reported_without_lengths() {
    let told = report((0..4).map(|rank| meets(rank, "MPI_Barrier", 1)).collect());
    let sentence = ": a rank may be stopped in it";
    assert!(told.contains(sentence), "{told}");
    assert!(!told.contains("lengths"), "{told}");
}

/// A persistent operation is named by the function that creates it.
#[test]
fn a_started_operation_is_named_as_the_program_calls_it() {
    let waits = |rank, what: &str| {
        with(meets(rank, what, 2), |snapshot| {
            snapshot.call = Some("MPI_Wait".into());
            snapshot.waiting = Some(Waiting::Collective);
            snapshot.round.as_mut().expect("a round").inside = false;
        })
    };
    let ranks = vec![
        waits(0, "MPI_Iallgather of 4 bytes"),
        meets(1, "MPI_Allgather of 4 bytes", 2),
        waits(2, "MPI_Allgather_init of 4 bytes"),
        idle(3),
    ];
    insta::assert_snapshot!(report(ranks));
}

/// Another user may have chosen the names of windows and files, so a report escapes them.
#[test]
fn names_in_a_report_are_shown() {
    let window = |name: &str| AtWindow {
        name: name.into(),
        rank: 0,
        job_rank: 0,
        need: WindowNeed::Lock,
        holder: None,
        calls: None,
        is_outside: false,
    };
    let at = window("w\x1b[2J\nmpirun: forged");
    let mut file = idle(1);
    if let Some(snapshot) = &mut file.snapshot {
        snapshot.call = Some("MPI_File_write".into());
        snapshot.in_file = Some(Box::new(InFile {
            call: "pwrite".into(),
            name: "f\x1b[2J\nmpirun: forged".into(),
            since: Duration::from_secs(31),
        }));
    }
    let told = report(vec![
        calls(0, "MPI_Win_lock", Waiting::Window(Box::new(at))),
        file,
    ]);
    for shown in [
        "w\\u{1b}[2J\\nmpirun: forged",
        "f\\u{1b}[2J\\nmpirun: forged",
    ] {
        assert!(told.contains(shown), "{told:?}");
    }
    assert!(
        !told.contains('\x1b') && !told.contains("\nmpirun"),
        "{told:?}"
    );
}

fn locks(rank: u32, holder: u32, calls_then: u64) -> Seen {
    let at = AtWindow {
        name: "board".into(),
        rank: 0,
        job_rank: 0,
        need: WindowNeed::Lock,
        holder: Some(holder),
        calls: Some(calls_then),
        is_outside: false,
    };
    calls(rank, "MPI_Win_lock", Waiting::Window(Box::new(at)))
}

#[test]
fn ranks_that_are_stopped_are_told_from_those_that_compute() {
    let stopped = |how| with(idle(1), |s| s.stopped = Stopped::of(how));
    let says = |how| Report::of(0, vec![idle(0), stopped(how)]).to_string();
    for (stat, line) in [
        (
            "7 (a) T 1",
            "rank 1 is stopped by a signal; its last MPI call was MPI_Send",
        ),
        ("7 (T) t) t 1", "rank 1 is stopped by a debugger; its last"),
        ("7 (T) R 1", "ranks 0-1 compute; their last"),
    ] {
        let text = says(stat);
        assert!(text.contains(line), "{stat}: {text}");
    }
    let waits = with(locks(1, 0, 4), |s| s.stopped = Some(Stopped::BySignal));
    let text = Report::of(0, vec![idle(0), waits]).to_string();
    assert!(text.contains(", and is stopped by a signal"), "{text}");
}

#[test]
fn a_lock_holder_without_calls_has_been_outside_as_long_as_the_others_wait() {
    let text = Report::of(0, vec![idle(0), locks(1, 2, 4), idle(2)]).to_string();
    let line = "rank 1 waits in MPI_Win_lock for the lock of rank 0 of window board, held by rank 2 of the job, which has been outside MPI for 31 s";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("rank 1 waits for rank 2, which computes"),
        "{text}"
    );
    // Rank 2 has made MPI calls since the wait began.
    let text = Report::of(0, vec![idle(0), locks(1, 2, 2), idle(2)]).to_string();
    assert!(
        text.contains("held by rank 2 of the job, for 31 s"),
        "{text}"
    );
}

#[test]
fn a_fence_is_called_by_its_name() {
    let fence = with(meets(0, "MPI_Barrier", 2), |snapshot| {
        snapshot.call = Some("MPI_Win_fence".into());
    });
    let text = Report::of(0, vec![fence, idle(1)]).to_string();
    let line = "rank 0 waits in MPI_Win_fence (MPI_Barrier #2 on";
    assert!(text.contains(line), "{text}");
}

#[test]
fn ranks_that_all_wait_for_each_other_seem_stuck_and_others_do_not() {
    let seem_stuck = |ranks: Vec<Seen>| Report::of(0, ranks).all_seem_stuck();
    assert!(seem_stuck(vec![receives(0, 1, 7), receives(1, 0, 7)]));
    assert!(seem_stuck(vec![
        receives(0, 1, 7),
        receives(1, 0, 7),
        gone(2)
    ]));
    assert!(!seem_stuck(vec![
        receives(0, 1, 7),
        receives(1, 0, 7),
        idle(2)
    ]));
    assert!(!seem_stuck(vec![receives(0, 1, 7), idle(1)]));
    assert!(!seem_stuck(vec![gone(0), gone(1)]));
}
