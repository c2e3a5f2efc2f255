//! Tests of fault tolerance (ULFM): revoked communicators, and jobs that survive the death of ranks.

use tests::hosts::Hosts;
use tests::{Job, compile};

const TCP: [&str; 3] = ["--mca", "btl", "tcp,self"];

/// Returns a job of a program in which ranks die by SIGKILL; `seed` determines which ranks and when.
fn surviving(program: &str, what: &str, ranks: u32, seed: u32) -> Job {
    let job = Job::of(program).arg(what).arg(seed.to_string());
    job.with(["--with-ft", "ulfm"]).ranks(ranks)
}

/// Returns a job that checks the errors of calls that involve a dead rank.
fn deaths(what: &str, ranks: u32, seed: u32) -> Job {
    surviving("deaths", what, ranks, seed)
}

/// Returns a job of `recoveries.c`, whose survivors continue without the dead ranks or with replacements.
fn recoveries(what: &str, ranks: u32, seed: u32) -> Job {
    surviving("recoveries", what, ranks, seed)
}

#[test]
fn communicators_are_revoked_agreed_on_and_shrunk_without_a_death() {
    for ranks in [1, 3] {
        Job::of("revoked").ranks(ranks).holds();
    }
    Job::of("revoked").ranks(3).with(TCP).holds();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn communicators_of_more_sizes_are_revoked_agreed_on_and_shrunk_without_a_death() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::of("revoked").ranks(ranks).holds();
        Job::of("revoked").ranks(ranks).with(TCP).holds();
    }
}

#[test]
fn every_call_that_a_death_concerns_fails_and_the_others_go_on() {
    for ranks in [2, 3, 5] {
        deaths("dead", ranks, 1).holds();
        deaths("dead", ranks, 1).with(TCP).holds();
    }
}

#[test]
fn short_nonblocking_collectives_fail_when_a_rank_dies_for_which_they_wait() {
    for ranks in [2, 3, 5] {
        deaths("started", ranks, 1).holds();
        deaths("started", ranks, 1).with(TCP).holds();
    }
}

#[test]
fn a_loop_of_collectives_is_revoked_and_shrunk_after_each_death() {
    for seed in 1..=3 {
        recoveries("loop", 7, seed).holds();
        recoveries("loop", 4, seed).with(TCP).holds();
    }
}

/// The first agreements of a communicator go by messages; later ones go through the node's shared memory.
#[test]
fn all_that_live_have_the_same_outcomes_of_thousands_of_agreements() {
    agreements(3, 1, 0).holds();
    for ranks in [1, 2, 5] {
        agreements(ranks, 1, 60).holds();
    }
    agreements(3, 1, 60).with(TCP).holds();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn all_that_live_have_the_same_outcomes_of_more_agreements() {
    for ranks in [1, 2, 3, 5, 8] {
        agreements(ranks, 1, 0).holds();
        for seed in 1..=2 {
            agreements(ranks, seed, 60).holds();
        }
    }
    agreements(5, 1, 60).with(TCP).holds();
}

/// A job with 300 agreements of which `dying` have a rank that dies.
fn agreements(ranks: u32, seed: u32, dying: u32) -> Job {
    let job = Job::of("agreements").ranks(ranks);
    let job = job.with(["--with-ft", "ulfm"]).arg(seed.to_string());
    job.arg("300").arg(dying.to_string())
}

#[test]
fn dead_ranks_are_replaced_in_their_places_and_get_their_states_back_from_their_neighbours() {
    // Only in some runs does a rank leave with the last sum while another rank still waits for it.
    // So the test is repeated.
    for ranks in [2, 3, 6, 6, 6, 6, 6, 6] {
        recoveries("checkpoint", ranks, 1).holds();
    }
}

#[test]
fn groups_of_the_living_make_communicators_that_work() {
    for ranks in [2, 3, 5] {
        deaths("groups", ranks, 1).holds();
        deaths("groups", ranks, 1).with(TCP).holds();
    }
}

#[test]
fn the_hardware_barrier_names_the_dead_node_and_is_left() {
    for version in ["1", "2"] {
        let job = deaths("barrier", 4, 1).with(["--mca", "coll_hwbarr_port", "sim"]);
        let outcome = job.with(["--mca", "coll_hwbarr_version", version]).holds();
        let told = "coll hwbarr: warning: the hardware barrier of 4 nodes has lost node 3, which is dead; the others leave it";
        assert_eq!(
            outcome.stderr.matches(told).count(),
            1,
            "version {version}: {}",
            outcome.stderr
        );
    }
}

/// The last survivor writes the simulator's report, for one board and for cascaded boards.
#[test]
fn the_report_of_the_hardware_is_written_without_the_dead_node() {
    let folder = tempfile::tempdir().expect("a folder");
    for boards in ["1", "2"] {
        let report = folder.path().join(boards);
        let path = report.to_string_lossy();
        let job = deaths("barrier", 4, 1).with(["--mca", "coll_hwbarr_port", "sim"]);
        let job = job.with(["--mca", "coll_hwbarr_boards", boards]);
        job.with(["--mca", "coll_hwbarr_sim_report", &path]).holds();
        let report = std::fs::read_to_string(&report).expect("a report");
        let dead: String = report.split_whitespace().collect();
        assert!(
            dead.contains("\"dead_nodes\":[3]"),
            "{boards} boards: {report}"
        );
    }
}

/// The board drops the dead member from the world's channel, so the survivors can free the channel.
#[test]
fn the_living_give_back_the_channel_of_the_hardware_that_a_dead_rank_was_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let job = deaths("barrier", 4, 1).with(["--mca", "coll_hwbarr_port", "sim"]);
    let job = job.with(["--mca", "coll_hwbarr_version", "2"]);
    let path = report.to_string_lossy();
    job.with(["--mca", "coll_hwbarr_sim_report", &path]).holds();
    let report = std::fs::read_to_string(&report).expect("a report");
    assert_eq!(report.matches("\"members\": 0").count(), 5, "{report}");
}

/// Each of two hosts has three ranks; a host's leader dies, or another rank.
/// Collectives go through shared memory within a host, and by messages between the leaders.
#[test]
fn collectives_in_levels_end_when_a_rank_of_any_level_dies() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    for (program, what, seed) in [
        ("deaths", "barrier", 1),
        ("deaths", "groups", 1),
        ("recoveries", "loop", 1),
        ("recoveries", "loop", 2),
        ("recoveries", "loop", 3),
    ] {
        let job = hosts.remote_job(&compile(program), 3);
        let job = job.with(["--with-ft", "ulfm"]).arg(what);
        job.arg(seed.to_string()).holds();
    }
}

#[test]
fn a_pool_goes_on_when_its_workers_die() {
    for ranks in [2, 5, 8] {
        recoveries("pool", ranks, 1).holds();
    }
}

#[test]
fn windows_and_files_of_the_dead_fail_with_the_right_class_and_are_freed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    for ranks in [2, 3, 5] {
        deaths("memory", ranks, 1).arg(&file).holds();
        let by_messages = deaths("memory", ranks, 1).arg(&file);
        by_messages.with(TCP).with(["--mca", "osc", "am"]).holds();
    }
}

/// Lists of operations of `moments.c`, which create, use or free an object; each list is the argument of one job.
/// Each operation loses one or two members, so eight ranks suffice for a list.
const CALLS: [&str; 9] = [
    "win_create,file_open,dup",
    "file_close,win_free,split",
    "win_allocate,file_write,merge",
    "intercomm,win_dynamic,create",
    "win_shared,idup,create_group",
    "win_fence,split_type,graph",
    "free,disconnect,file_open",
    "inter_dup,spawn,inter_split",
    "accumulate,accumulate,accumulate",
];

#[test]
fn members_may_die_at_any_step_of_a_call_and_the_living_end_it_and_what_it_has_made() {
    let folder = tempfile::tempdir().expect("a folder");
    for (seed, calls) in (1..).zip(CALLS) {
        let file = folder.path().join(format!("file {seed}"));
        let job = || surviving("moments", calls, 8, seed).arg(&file);
        job().holds();
        if seed % 3 == 1 {
            job().with(TCP).with(["--mca", "osc", "am"]).holds();
        }
    }
}

/// Runs each list of `CALLS` with 20 seeds over shared memory and over TCP: 360 jobs of up to 4 s.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn members_may_die_at_any_step_of_a_call_whenever_that_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 100..120 {
        for calls in CALLS {
            let file = folder.path().join("file");
            let job = || surviving("moments", calls, 8, seed).arg(&file);
            job().holds();
            job().with(TCP).holds();
        }
    }
}

#[test]
fn sends_to_a_rank_that_dies_while_there_is_no_room_for_them_end() {
    deaths("full", 3, 1).holds();
    deaths("full", 3, 1).with(TCP).holds();
    let fragments = deaths("full", 3, 1).with(["--mca", "btl_sm_single_copy", "false"]);
    fragments.holds();
}

#[test]
fn a_rank_whose_calls_fail_at_once_is_notified_of_a_revocation() {
    deaths("heard", 3, 1).holds();
    deaths("heard", 3, 1).with(TCP).holds();
}

#[test]
fn both_groups_get_the_reason_for_a_refused_intercommunicator() {
    deaths("between", 5, 1).holds();
    deaths("between", 5, 1).with(TCP).holds();
}

#[test]
fn a_program_can_ask_whether_deaths_are_survived() {
    deaths("asked", 1, 1).holds();
    let outcome = Job::of("deaths").arg("asked").arg("1").run();
    assert!(
        outcome.stderr.contains("found && *survives == 1"),
        "{}",
        outcome.stderr
    );
}

/// The other ranks never get the dead rank's address; the launcher reports its death to them.
#[test]
fn a_rank_that_dies_before_it_begins_mpi_does_not_keep_the_others_from_it() {
    for victim in ["0", "2"] {
        for delay in ["0", "100000"] {
            for transports in ["sm,self", "tcp,self"] {
                let job = Job::of("unborn").with(["--with-ft", "ulfm"]).ranks(3);
                let job = job.with(["--mca", "btl", transports]);
                job.arg(victim).arg(delay).holds();
            }
        }
    }
}

/// Processes die in MPI_Init, in a spawn, and during the recovery from another death, too.
#[test]
fn any_process_may_die_at_any_moment() {
    let outcome = surviving("soak", "soak", 6, 1).arg("8").arg("6").succeeds();
    let line = "all claims of soak hold";
    assert!(outcome.stdout.contains(line), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("The job goes on without it (--with-ft ulfm)."),
        "{}",
        outcome.stderr
    );
}

#[test]
fn without_the_option_a_death_ends_the_job_as_ever() {
    let outcome = Job::of("deaths").arg("dead").arg("1").ranks(3).run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("All other ranks are ended."),
        "{}",
        outcome.stderr
    );
}
