//! What the library says to common mistakes, as a user reads it.

use tests::Job;

#[test]
fn mistakes_are_answered_with_sentences() {
    let outcome = Job::of("mistakes").ranks(2).succeeds();
    insta::assert_snapshot!(without_handles(&outcome.stdout));
}

/// The text with every handle of an object as `0x...`: which one the library gives out is its own affair.
fn without_handles(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        text + "0x..." + rest
    })
}

#[test]
fn members_that_call_different_collectives_are_told_who_calls_what() {
    let job = Job::of("mismatch").ranks(4);
    let outcome = job.with(["--mca", "coll_base_check", "true"]).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}

/// The program names a communicator, a window and a file with escapes and a newline, and fails on them.
#[test]
fn names_that_a_program_has_chosen_are_shown_in_the_sentences_of_its_ranks() {
    for what in ["comm", "win", "file"] {
        let said = Job::of("names_with_escapes").arg(what).run().stderr;
        assert!(
            said.contains("\\u{1b}]0;title\\u{7}\\nrank 0: forged"),
            "{what}: {said:?}"
        );
        let obeyed = said
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(obeyed, None, "{what}: {said:?}");
        assert!(
            !said.lines().any(|line| line.starts_with("rank 0: forged")),
            "{what}: {said:?}"
        );
    }
}

/// A job that does not start says so on every rank that comes so far, so what is read is one sentence.
fn says(name: &str, value: &std::ffi::OsStr, sentence: &str) {
    let arguments = ["--mca".as_ref(), name.as_ref(), value];
    let outcome = Job::of("ring").ranks(2).with(arguments).run();
    assert!(!outcome.status.success());
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
}

#[test]
fn an_unknown_algorithm_ends_the_job_with_those_there_are() {
    says(
        "coll_tuned_allreduce_algorithm",
        "fastest".as_ref(),
        "coll_tuned_allreduce_algorithm is \"fastest\", but one of recursive_doubling, reduce_bcast, linear, ring, segmented_ring, rabenseifner as the algorithm of allreduce is expected",
    );
}

#[test]
fn a_malformed_decision_table_ends_the_job_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("rules.txt");
    let rules = "# mine\nbcast 2 0 any binomial\nbcast 2 8k some chain\n";
    std::fs::write(&table, rules).expect("a table");
    says(
        "coll_tuned_rules",
        table.as_os_str(),
        "line 3, \"bcast 2 8k some chain\": expected any or shared in the column of cores",
    );
}

/// Also where only one component would read it, which would then not serve without a word.
#[test]
fn a_value_that_its_parameter_does_not_take_ends_the_job_with_what_it_takes() {
    says(
        "coll_base_check",
        "maybe".as_ref(),
        "mpirun: parameter coll_base_check has the value \"maybe\" (from command line), but true or false",
    );
    let job = Job::of("hello").env("PORTCULLIS_MCA_btl_sm_eager_limit", "lots");
    let alone = job.alone().run();
    assert!(!alone.status.success());
    let sentence = "MPI_Init: a parameter cannot be read: parameter btl_sm_eager_limit has the value \"lots\" (from environment), but a size such as";
    assert!(alone.stderr.contains(sentence), "{}", alone.stderr);
}

#[test]
fn a_hardware_barrier_that_cannot_be_meant_is_told_of_once_and_software_serves() {
    for (name, value, why) in [
        (
            "port",
            "nosuch",
            "coll_hwbarr_port is \"nosuch\", and there are none, sim, and ports such as ",
        ),
        (
            "version",
            "3",
            "coll_hwbarr_version is 3, and there are 1 and 2",
        ),
    ] {
        let name = format!("coll_hwbarr_{name}");
        let port = ["--mca", "coll_hwbarr_port", "sim"];
        let job = Job::of("hello").ranks(3).with(port);
        let told = job.with(["--mca", &name, value]).holds().stderr;
        let sentence = format!("[rank 0 of MPI_COMM_WORLD] coll hwbarr: warning: {why}");
        assert!(told.starts_with(&sentence), "{told}");
        assert!(told.ends_with("; barriers go in software\n"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn a_setting_that_no_parameter_has_is_told_of_once_wherever_it_comes_from() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".portcullis");
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("mca-params.conf");
    std::fs::write(&file, "btl_sm_eager_limt = 8k\n").expect("a file");
    let told = |job: Job| {
        let job = job.env("HOME", home.path());
        job.env("PORTCULLIS_MCA_orte_tmpdir", "/tmp").holds().stderr
    };
    let file = format!(
        "rank 0: there is no parameter \"btl_sm_eager_limt\" (from file {}); the nearest name is btl_sm_eager_limit\n",
        file.display()
    );
    let other = "rank 0: there is no parameter \"orte_tmpdir\" (from environment); mpi-info --all lists those there are\n";
    let line = "rank 0: there is no parameter \"coll_check\" (from command line); the nearest name is coll_base_check\n";
    let launched = Job::of("hello").ranks(3).with(["--mca", "coll_check", "1"]);
    assert_eq!(told(launched), format!("{file}{line}{other}"));
    assert_eq!(told(Job::of("hello").alone()), format!("{file}{other}"));
}

#[test]
fn the_launcher_tells_of_what_was_meant_for_it() {
    let misspelt = [
        "--mca",
        "mpirun_grase",
        "1s",
        "--mca",
        "plm_rsh_agnet",
        "ssh",
    ];
    let job = || Job::of("hello").ranks(2).with(misspelt);
    assert_eq!(
        job().holds().stderr,
        "mpirun: there is no parameter \"mpirun_grase\" (from command line); the nearest name is mpirun_grace\n\
         mpirun: there is no parameter \"plm_rsh_agnet\" (from command line); the nearest name is plm_rsh_agent\n"
    );
    let silent = [
        "--mca",
        "mca_base_tell_misspelt",
        "no",
        "--mca",
        "coll_check",
        "1",
    ];
    assert_eq!(job().with(silent).holds().stderr, "");
}

#[test]
fn settings_for_what_is_left_out_on_purpose_are_not_told_of() {
    let nowhere = tempfile::tempdir().expect("a folder");
    let nowhere = nowhere.path().to_str().expect("a name");
    // A component that is left out by name, and a file of the usual folder that is not looked at.
    for (name, left_out) in [
        ("coll_mine_size", ["--mca", "coll", "^mine"]),
        (
            "coll_hwbarr_other",
            ["--mca", "mca_component_path", nowhere],
        ),
    ] {
        let job = || Job::of("hello").ranks(2).with(["--mca", name, "4"]);
        let told = job().holds().stderr;
        let sentence = format!("rank 0: there is no parameter \"{name}\" (from command line); ");
        assert!(told.starts_with(&sentence), "{told}");
        assert_eq!(job().with(left_out).holds().stderr, "");
    }
}

#[test]
fn a_messaging_layer_that_is_not_there_ends_the_job_with_the_one_there_is() {
    says(
        "pml",
        "ucx".as_ref(),
        "messages cannot be carried: there is no pml component \"ucx\"; there is ob1",
    );
    says(
        "pml",
        "^ob1".as_ref(),
        "messages cannot be carried: the parameter pml is \"^ob1\", which leaves no component; there is ob1",
    );
    for served in ["ob1", "^ucx"] {
        let job = Job::of("hello").ranks(2).with(["--mca", "pml", served]);
        assert_eq!(job.holds().stderr, "", "{served}");
    }
}
