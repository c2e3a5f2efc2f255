//! Tests that run the C programs on this library under its `mpirun`, with several numbers of ranks.
//!
//! There are more ranks than cores; the tests with many ranks are in the long form.

use tests::Job;

/// Makes one test per program, which runs the program on each number of ranks.
macro_rules! programs {
    ($($(#[$mark:meta])? $claim:ident: $program:literal $(with $argument:literal)* on $ranks:expr;)*) => {
        $(
            #[test]
            $(#[$mark])?
            fn $claim() {
                for ranks in $ranks {
                    Job::of($program)$(.arg($argument))*.ranks(ranks).holds();
                }
            }
        )*
    };
}

programs! {
    ranks_know_who_they_are: "hello" on [1, 2, 7, 60];
    a_token_visits_every_rank_and_comes_home: "ring" on [1, 2, 5, 60];
    short_messages_allocate_nothing_and_call_nobody: "short_path" with "2" on [2];
    every_send_mode_delivers_every_size: "sendrecv" on [1, 2, 3];
    a_barrier_does_not_stop_a_large_send: "late_send" on [2, 3];
    messages_match_in_order_whatever_the_receiver_asks_for: "wildcard" on [1, 2, 3];
    a_probed_message_is_the_one_received: "probe" on [1, 2, 5];
    sends_are_taken_back: "taken_back" on [1, 2, 3];
    every_form_of_wait_and_test_completes: "requests" on [1, 2, 5];
    collectives_agree_with_local_computation: "collectives" with "2500" on [1, 2, 3, 4];
    collectives_agree_on_many_ranks: "collectives" with "40" on [16];
    #[ignore = "long: cargo xtask test --long"]
    collectives_agree_in_many_calls: "collectives" with "5000" on [1, 2, 3, 4, 7, 16, 33];
    short_collectives_complete_in_any_order_and_after_their_communicator_was_freed: "short_collectives" on [1, 2, 3, 4];
    large_collectives_agree_with_local_computation: "collectives" with "40000" on [2, 4];
    shared_memory_of_two_arguments_is_refused: "aliased" on [1, 2, 3, 4];
    performance_variables_of_communicators_and_peers_are_read: "pvars" on [2, 3];
    tools_see_events_in_order_and_count_those_that_were_dropped: "events" on [1, 2, 3];
    a_tool_reads_variables_in_a_thread_of_its_own: "tool_threads" on [2];
    who_gets_nothing_gives_no_buffer: "nothing" on [1, 2, 3, 5];
    persistent_collectives_are_started_in_any_order: "any_order" on [1, 2, 3];
    operators_agree_with_c: "operators" on [1, 2, 3, 8];
    communicators_are_made_used_and_freed: "communicators" on [1, 2, 3];
    things_live_as_long_as_the_standard_says: "lives" on [1, 2, 3];
    #[ignore = "long: cargo xtask test --long"]
    more_than_a_million_requests_live_at_once: "million" on [2];
    hints_are_kept_or_not_told: "hints" on [1, 2, 3];
    names_of_ports_fit_and_are_found_again: "port_names" on [1, 2, 3];
    messages_arrive_in_parts: "partitioned" on [1, 2, 3];
    what_cannot_be_cancelled_is_refused: "cancels" on [1, 2];
    two_groups_talk_across: "intercommunicators" on [1, 2, 3, 5];
    sessions_come_and_go: "sessions" on [1, 2, 3];
    derived_datatypes_arrive_as_they_are_laid_out: "datatypes" on [1, 2, 3];
    topologies_say_who_is_next_to_whom: "topologies" on [1, 2, 3, 6];
    ranks_are_reordered_to_be_near_their_neighbours: "reordered" on [1, 3, 7, 8];
    neighbours_exchange_in_every_form: "neighbors" on [1, 2, 3, 4];
    threads_may_all_call_at_once: "threads" on [1, 2, 3];
    threads_duplicate_communicators_at_the_same_time: "dup_threads" on [1, 2, 3];
    threads_make_their_first_calls_at_the_same_time: "first_calls" on [1, 2, 3];
    errors_are_returned_and_leave_everything_working: "errors" on [1, 2, 3];
    windows_are_what_chapter_12_says: "windows" on [1, 2, 3];
    random_accesses_agree_with_a_sequential_oracle: "accesses" with "6" on [1, 2, 3];
    #[ignore = "long: cargo xtask test --long"]
    windows_cost_nothing_that_runs_out: "many_windows" on [1, 2, 3];
    files_hold_what_every_family_of_accesses_wrote: "files" on [1, 2, 3, 5];
    random_accesses_to_files_agree_with_an_array: "file_accesses" with "25" on [1, 2, 3, 5];
    representations_have_their_own_lengths_in_the_file: "file_representations" on [1, 2, 3];
    hints_of_files_act_and_never_change_what_a_file_holds: "file_hints" on [1, 3];
    memory_does_not_grow_with_the_pieces_of_a_view: "file_memory" with "3000000" on [2];
}

/// The same programs on other numbers of ranks or with more rounds, which take most of the test time.
/// The tests outside this module run each program on few ranks.
mod with_other_numbers_of_ranks {
    use super::*;

    programs! {
        #[ignore = "long: cargo xtask test --long"]
        a_barrier_does_not_stop_a_large_send: "late_send" on [8];
        #[ignore = "long: cargo xtask test --long"]
        messages_match_in_order_whatever_the_receiver_asks_for: "wildcard" on [16];
        #[ignore = "long: cargo xtask test --long"]
        sends_are_taken_back: "taken_back" on [8];
        #[ignore = "long: cargo xtask test --long"]
        every_form_of_wait_and_test_completes: "requests" on [20];
        #[ignore = "long: cargo xtask test --long"]
        collectives_agree_with_local_computation: "collectives" with "2500" on [7];
        #[ignore = "long: cargo xtask test --long"]
        collectives_agree_on_many_ranks: "collectives" with "40" on [33];
        #[ignore = "long: cargo xtask test --long"]
        short_messages_allocate_nothing_and_call_nobody: "short_path" with "8" on [2];
        #[ignore = "long: cargo xtask test --long"]
        memory_does_not_grow_with_the_pieces_of_a_view: "file_memory" on [1, 2];
        #[ignore = "long: cargo xtask test --long"]
        performance_variables_of_communicators_and_peers_are_read: "pvars" on [5];
        #[ignore = "long: cargo xtask test --long"]
        who_gets_nothing_gives_no_buffer: "nothing" on [8];
        #[ignore = "long: cargo xtask test --long"]
        persistent_collectives_are_started_in_any_order: "any_order" on [8];
        #[ignore = "long: cargo xtask test --long"]
        operators_agree_with_c: "operators" on [13];
        #[ignore = "long: cargo xtask test --long"]
        communicators_are_made_used_and_freed: "communicators" on [8, 17];
        #[ignore = "long: cargo xtask test --long"]
        things_live_as_long_as_the_standard_says: "lives" on [8];
        #[ignore = "long: cargo xtask test --long"]
        messages_arrive_in_parts: "partitioned" on [7];
        #[ignore = "long: cargo xtask test --long"]
        two_groups_talk_across: "intercommunicators" on [8];
        #[ignore = "long: cargo xtask test --long"]
        sessions_come_and_go: "sessions" on [5];
        #[ignore = "long: cargo xtask test --long"]
        topologies_say_who_is_next_to_whom: "topologies" on [12];
        #[ignore = "long: cargo xtask test --long"]
        ranks_are_reordered_to_be_near_their_neighbours: "reordered" on [2, 4, 12];
        #[ignore = "long: cargo xtask test --long"]
        neighbours_exchange_in_every_form: "neighbors" on [6, 12];
        #[ignore = "long: cargo xtask test --long"]
        windows_are_what_chapter_12_says: "windows" on [8];
        #[ignore = "long: cargo xtask test --long"]
        random_accesses_agree_with_a_sequential_oracle: "accesses" on [1, 2, 3, 5];
        #[ignore = "long: cargo xtask test --long"]
        files_hold_what_every_family_of_accesses_wrote: "files" on [8];
        #[ignore = "long: cargo xtask test --long"]
        random_accesses_to_files_agree_with_an_array: "file_accesses" with "60" on [1, 2, 3, 5, 8];
        #[ignore = "long: cargo xtask test --long"]
        representations_have_their_own_lengths_in_the_file: "file_representations" on [5];
        #[ignore = "long: cargo xtask test --long"]
        hints_of_files_act_and_never_change_what_a_file_holds: "file_hints" on [2, 5];
    }
}

/// The program continues after `MPI_Finalize` and checks its own descriptors.
#[test]
fn a_process_that_has_finalized_does_not_listen() {
    let job = Job::of("finalized").ranks(3);
    job.with(["--mca", "btl", "self,tcp"]).holds();
}

/// Without shared windows, the data of collective accesses are collected by messages.
#[test]
fn random_accesses_to_files_agree_with_an_array_by_messages() {
    for ranks in [2, 3, 5] {
        let job = Job::of("file_accesses").arg("25").ranks(ranks);
        job.with(["--mca", "osc", "am"]).holds();
    }
    let job = Job::of("file_hints").ranks(3);
    job.with(["--mca", "osc", "am"]).holds();
}

/// Without shared memory between processes, messages access the shared file pointer.
#[test]
fn files_hold_what_every_family_of_accesses_wrote_over_tcp() {
    let job = Job::of("files").ranks(3);
    job.with(["--mca", "btl", "self,tcp", "--mca", "osc", "am"])
        .holds();
}

#[test]
fn a_target_that_computes_gets_what_is_put_to_it() {
    for how in ["allocate", "create"] {
        Job::of("busy_target").arg(how).ranks(3).holds();
        let helped = ["--mca", "osc_am_progress_thread", "true"];
        let by_messages = ["--mca", "osc", "am", "--mca", "btl", "self,tcp"];
        let job = Job::of("busy_target").arg(how).ranks(3);
        job.with(helped).with(by_messages).holds();
    }
}

/// The windows are accessed by messages, as between nodes.
#[test]
fn windows_are_what_chapter_12_says_by_messages() {
    for ways in ["self,sm", "self,tcp"] {
        let job = Job::of("windows").ranks(3);
        job.with(["--mca", "osc", "am", "--mca", "btl", ways])
            .holds();
    }
}

#[test]
fn random_accesses_agree_with_a_sequential_oracle_by_messages() {
    accesses_by_messages("6");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn more_random_accesses_agree_with_a_sequential_oracle_by_messages() {
    accesses_by_messages("30");
}

fn accesses_by_messages(phases: &str) {
    for ways in ["self,sm", "self,tcp"] {
        let job = Job::of("accesses").arg(phases).ranks(3);
        job.with(["--mca", "osc", "am", "--mca", "btl", ways])
            .holds();
    }
}

#[test]
fn persistent_collectives_are_started_in_any_order_over_messages() {
    let job = Job::of("any_order").ranks(4);
    job.with(["--mca", "coll", "^shm"]).holds();
}

#[test]
fn ranks_that_receive_nothing_need_no_buffer_over_messages() {
    let job = Job::of("nothing").ranks(4);
    job.with(["--mca", "coll", "^shm"]).holds();
}

#[test]
fn errors_are_returned_and_leave_everything_working_over_messages() {
    for ranks in [2, 3, 5] {
        let job = Job::of("errors").ranks(ranks);
        job.with(["--mca", "coll", "^shm"]).holds();
    }
}

#[test]
fn sends_are_taken_back_over_tcp() {
    let job = Job::of("taken_back").ranks(3);
    job.with(["--mca", "btl", "self,tcp"]).holds();
}

/// The messages need ten times the memory of the receiver's buffer.
/// The senders store the rest of the messages, although the sends have completed.
#[test]
fn short_messages_in_another_order_than_they_are_received_block_no_rank() {
    let jobs = [("self,sm", "1000", "5000"), ("self,tcp", "4000", "1250")];
    in_another_order("1m", &jobs);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn more_short_messages_in_another_order_than_they_are_received_block_no_rank() {
    for (small, large) in [("self,sm", "self,tcp"), ("self,tcp", "self,sm")] {
        in_another_order("8m", &[(small, "1000", "40000"), (large, "4000", "10000")]);
    }
}

/// `most` is the size of the receiver's buffer; each job has transports, and the length and number of the messages.
fn in_another_order(most: &str, jobs: &[(&str, &str, &str)]) {
    for (ways, bytes, messages) in jobs {
        let parameters = [
            "--mca",
            "btl",
            ways,
            "--mca",
            "pml_ob1_unexpected_max",
            most,
        ];
        let job = Job::of("other_order").arg(bytes).arg(messages).ranks(3);
        job.with(parameters).holds();
    }
}

/// The parameter `threads_lanes` may not change any result: communicators have lanes of their own, or not.
#[test]
fn threads_exchange_messages_in_lanes_and_without() {
    in_lanes(&["1"], &[2]);
    // Without single copies, the sender of a long message must make progress until the message has been received.
    let copied = ["--mca", "btl_sm_single_copy", "false"];
    let job = Job::of("lanes").ranks(2).with(copied);
    job.with(["--mca", "threads_lanes", "4"]).holds();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn threads_exchange_messages_in_each_number_of_lanes_and_ranks() {
    in_lanes(&["1", "2", "4"], &[1, 2, 3]);
}

fn in_lanes(lanes: &[&str], ranks: &[u32]) {
    for lanes in lanes {
        for ranks in ranks {
            let job = Job::of("lanes").ranks(*ranks);
            job.with(["--mca", "threads_lanes", lanes]).holds();
        }
    }
}

/// Threads that wait in lanes sleep: a message in any lane wakes one of them, and the others go on sleeping.
#[test]
fn sleeping_threads_wake_for_messages_of_all_lanes_and_rarely_otherwise() {
    for lanes in ["1", "2", "4"] {
        let job = Job::of("asleep_threads").ranks(2);
        job.with(["--mca", "threads_lanes", lanes]).holds();
    }
}

#[test]
fn programs_with_threads_run_with_lanes() {
    for program in [
        "threads",
        "dup_threads",
        "requests",
        "lives",
        "communicators",
    ] {
        let job = Job::of(program).ranks(2);
        job.with(["--mca", "threads_lanes", "4"]).holds();
    }
}

/// Only network transports such as TCP count their messages; shared memory does not.
#[test]
fn performance_variables_count_the_messages_of_tcp() {
    let job = Job::of("pvars").ranks(2).env("PVARS_COUNTED", "1");
    job.with(["--mca", "btl", "self,tcp"]).holds();
}

/// A receiver that stored a million eager messages completely would need more than 100 MiB;
/// `flood` allows its memory to grow by 48 MiB (the first argument, in KiB).
#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_million_unexpected_messages_do_not_fill_their_receiver() {
    for ways in ["self,sm", "self,tcp"] {
        let parameters = [
            "--mca",
            "btl",
            ways,
            "--mca",
            "pml_ob1_unexpected_max",
            "8m",
            // If the sender has copied a message, the receiver stores only an announcement of it.
            "--mca",
            "pml_ob1_copied_max",
            "16m",
        ];
        let job = Job::of("flood").arg("49152").arg("1000000").ranks(2);
        job.with(parameters).holds();
    }
}
