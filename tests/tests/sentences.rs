//! Tests of the library's error messages for common mistakes, as a user reads them.

use std::process::Command;
use std::time::Duration;
use tests::{Job, compile, compile_source, installation};
use xtask::process;

#[test]
fn mistakes_are_answered_with_sentences() {
    let outcome = Job::of("mistakes").ranks(2).succeeds();
    insta::assert_snapshot!(without_handles(&outcome.stdout));
}

/// Replaces every object handle in the text by `0x...`, because the values differ between runs.
fn without_handles(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        text + "0x..." + rest
    })
}

#[test]
fn members_that_call_different_collectives_get_the_call_of_each() {
    let job = Job::of("mismatch").ranks(4);
    let outcome = job.with(["--mca", "coll_base_check", "true"]).succeeds();
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn messages_whose_type_is_not_that_of_their_receive_get_a_sentence_that_names_both() {
    let check = ["--mca", "pml_ob1_check_types", "true"];
    let outcome = Job::of("mistyped").ranks(2).with(check).succeeds();
    insta::assert_snapshot!(outcome.stdout);
    for way in [["btl", "self,tcp"], ["btl_sm_single_copy", "false"]] {
        let job = Job::of("mistyped").ranks(2).with(check);
        assert_eq!(
            job.with(["--mca", way[0], way[1]]).succeeds().stdout,
            outcome.stdout
        );
    }
    // If the check is not enabled, the types are not compared and the receives succeed.
    Job::of("mistyped").arg("unchecked").ranks(2).succeeds();
}

/// A communicator, a window and a file have names with escape characters and a newline;
/// error messages and reports show these names.
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

/// Checks that a job with this parameter value fails to start, with the message `sentence`
/// from every rank that reads the parameter.
fn says(name: &str, value: &std::ffi::OsStr, sentence: &str) {
    let arguments = ["--mca".as_ref(), name.as_ref(), value];
    let outcome = Job::of("ring").ranks(2).with(arguments).run();
    assert!(!outcome.status.success());
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
}

/// Both ranks want the port, and whichever rank reports first gives the reason.
#[test]
fn a_port_that_several_ranks_of_a_machine_want_is_reported_with_the_parameter() {
    for (port, sentence) in [
        (
            "47119",
            "the port is 47119, and btl_tcp_port is for one process per machine",
        ),
        ("65536", "but a whole number from 0 to 65535 is expected"),
    ] {
        let tcp = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_port", port];
        let outcome = Job::of("ring").ranks(2).with(tcp).run();
        assert!(!outcome.status.success(), "{port}");
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    }
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

/// This includes parameters that only one component reads: the library must not omit the component
/// without a message because of an invalid value.
#[test]
fn a_value_that_its_parameter_does_not_take_ends_the_job_with_what_it_takes() {
    says(
        "coll_base_check",
        "maybe".as_ref(),
        "mpirun: parameter coll_base_check has the value \"maybe\" (from command line), but true or false",
    );
    // A type may accept fewer values than its kind, and a component that is not used may read the parameter.
    says(
        "btl_tcp_port",
        "65536".as_ref(),
        "mpirun: parameter btl_tcp_port has the value \"65536\" (from command line), but a whole number from 0 to 65535 is expected",
    );
    says(
        "mpi_initial_errhandler",
        "ignore".as_ref(),
        "but mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return is expected",
    );
    let job = Job::of("hello").env("PORTCULLIS_MCA_btl_sm_eager_limit", "lots");
    let alone = job.alone().run();
    assert!(!alone.status.success());
    let sentence = "MPI_Init: a parameter cannot be read: parameter btl_sm_eager_limit has the value \"lots\" (from environment), but a size such as";
    assert!(alone.stderr.contains(sentence), "{}", alone.stderr);
}

/// Parameters that request hardware that does not exist, each with its error message.
/// `FOLDER` stands for a folder with invalid Verilog.
const UNSERVED: [(&str, &str); 21] = [
    (
        "port=nosuch",
        "coll_hwbarr_port is \"nosuch\", but none, sim, sim:tcp://HOST:PORT, rtl, rtl:DIR or a port such as parport:",
    ),
    (
        "port=sim priority=1",
        "component shm precedes it: its priority is ",
    ),
    (
        "port=sim version=3",
        "coll_hwbarr_version is 3, and there are 1 and 2",
    ),
    (
        "port=sim reboot=maybe",
        "coll_hwbarr_reboot is \"maybe\", but none, low or high is expected",
    ),
    (
        "port=sim:tcp://localhost",
        "\"sim:tcp://localhost\" is no address of a served board",
    ),
    (
        "port=sim:tcp://127.0.0.1:1",
        "no board can be reached at sim:tcp://127.0.0.1:1: ",
    ),
    (
        "port=sim:tcp://127.0.0.1:1 version=2 sim_nodes=2",
        "no board can be reached at sim:tcp://127.0.0.1:1: ",
    ),
    (
        "port=sim:tcp://127.0.0.1:1 boards=2",
        "sim:tcp://127.0.0.1:1 serves one board, and coll_hwbarr_boards is 2",
    ),
    (
        "port=rtl boards=2",
        "the RTL is one board, and coll_hwbarr_boards is 2",
    ),
    (
        "port=sim version=2 boards=2",
        "cascaded boards are of version 1",
    ),
    (
        "port=sim version=2 sim_nodes=1",
        "all its ranks are at node 0",
    ),
    ("port=rtl:/nowhere", "/nowhere cannot be written or read"),
    (
        "port=rtl:/nowhere version=2",
        "/nowhere cannot be written or read",
    ),
    (
        "port=ppdev:/nowhere/0,out=D0,in=nACK",
        "is one port, and 2 ranks run on the host of rank 0",
    ),
    ("port=ppdev:/nowhere/{rank},out=D0,in=nACK", "/nowhere/0"),
    (
        "port=ppdev:/nowhere/{rank},out=D0,in=nACK version=2",
        "the port \"ppdev:/nowhere/0,out=D0,in=nACK\" cannot be understood",
    ),
    (
        "port=parport:nowhere{rank},out=D0,in=nACK",
        "the port \"parport:nowhere0,out=D0,in=nACK\" cannot be understood",
    ),
    ("port=rtl:FOLDER", "verilator "),
    (
        "port=sim sim_vcd=FOLDER/waves.gtkw",
        "waves.gtkw\", but a file of that name is GTKWave's save file, which the waveform would overwrite; a name that ends in .vcd or .fst is expected",
    ),
    (
        "port=sim sim_vcd=FOLDER/nowhere/waves.vcd",
        "waves.vcd\", which cannot be written: there is no folder ",
    ),
    (
        "port=sim version=2 sim_report=FOLDER",
        "\", which cannot be written: is a directory",
    ),
];

/// Returns a job of two ranks with parameters of the hardware barrier, `name=value name=value`.
fn with_hardware(settings: &str, folder: &str) -> Job {
    with_hardware_of("hello", settings, folder)
}

/// As [`with_hardware`], with a program of `programs/`.
fn with_hardware_of(program: &str, settings: &str, folder: &str) -> Job {
    let settings = settings.replace("FOLDER", folder);
    let mut job = Job::of(program).ranks(2);
    for setting in settings.split(' ') {
        let (name, value) = setting.split_once('=').expect("a name and a value");
        job = job.with(["--mca", &format!("coll_hwbarr_{name}"), value]);
    }
    job
}

/// Creates a folder with invalid Verilog.
fn broken_verilog() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("toggle_barrier.v");
    std::fs::write(file, "module toggle_barrier (\n").expect("a file");
    folder
}

#[test]
fn hardware_that_is_asked_for_and_cannot_be_had_is_one_warning_with_the_reason() {
    let folder = broken_verilog();
    let path = folder.path().display().to_string();
    for (settings, why) in UNSERVED {
        let told = with_hardware(settings, &path).holds().stderr;
        let warnings = told.matches("warning").count();
        assert_eq!(warnings, 1, "{settings}: {told}");
        let sentence = "[rank 0 of MPI_COMM_WORLD] coll hwbarr: warning: ";
        assert!(told.starts_with(sentence), "{settings}: {told}");
        assert!(told.contains(why), "{settings}: {told}");
        let end = "; barriers go in software (component shm)\n";
        assert!(told.ends_with(end), "{settings}: {told}");
    }
}

#[test]
fn hardware_that_is_not_asked_for_is_no_warning() {
    for settings in ["port=none", "port=sim"] {
        assert_eq!(with_hardware(settings, "").holds().stderr, "", "{settings}");
    }
    let unasked = with_hardware("port=nosuch", "");
    assert_eq!(
        unasked.with(["--mca", "coll", "^hwbarr"]).holds().stderr,
        ""
    );
}

#[test]
fn hardware_that_is_required_and_cannot_be_had_ends_the_job_with_the_reason() {
    let left_out = ["--mca", "coll", "^hwbarr"];
    for (job, why) in [
        (
            with_hardware("port=nosuch", ""),
            "coll_hwbarr_port is \"nosuch\"",
        ),
        (
            with_hardware("port=sim:tcp://127.0.0.1:1", ""),
            "no board can be reached at sim:tcp://127.0.0.1:1: ",
        ),
        (
            with_hardware("port=sim sim_vcd=waves.GTKW", ""),
            "coll_hwbarr_sim_vcd is \"waves.GTKW\", but a file of that name is GTKWave's save file",
        ),
        (
            with_hardware("port=none", ""),
            "no port is configured (coll_hwbarr_port is none)",
        ),
        (
            with_hardware("port=sim", "").with(left_out),
            "the parameter coll leaves it out",
        ),
        (
            with_hardware("port=sim priority=1", ""),
            "component shm precedes it: its priority is ",
        ),
    ] {
        let outcome = job.with(["--mca", "coll_hwbarr_required", "true"]).run();
        let told = outcome.stderr;
        assert!(!outcome.status.success(), "{why}: {told}");
        let sentence = "the collective component hwbarr cannot be used: ";
        assert!(
            told.contains(sentence) && told.contains(why),
            "{why}: {told}"
        );
        assert!(
            told.contains("(coll_hwbarr_required is true)"),
            "{why}: {told}"
        );
        assert!(!told.contains("warning"), "{why}: {told}");
    }
    for settings in ["port=sim required=true", "port=sim required=true version=2"] {
        let served = with_hardware(settings, "");
        assert_eq!(served.holds().stderr, "", "{settings}");
        // The component `check` passes all calls on, so it does not take the barriers from the hardware.
        let checked = with_hardware(settings, "").with(["--mca", "coll_base_check", "true"]);
        assert_eq!(checked.holds().stderr, "", "{settings}");
    }
}

#[test]
fn a_call_that_no_component_serves_fails_with_the_reasons_of_those_that_may_serve() {
    for (settings, why) in [
        (
            "port=none",
            "no port is configured (coll_hwbarr_port is none)",
        ),
        ("port=nosuch", "coll_hwbarr_port is \"nosuch\""),
    ] {
        let alone = ["--mca", "coll", "hwbarr"];
        let outcome = with_hardware_of("barrier_loop", settings, "")
            .with(alone)
            .run();
        let told = outcome.stderr;
        assert!(!outcome.status.success(), "{settings}: {told}");
        let sentence = "no collective component serves barrier on MPI_COMM_WORLD; see the parameter coll; hwbarr is not used: ";
        let reason = told.split_once(sentence).map(|(_, reason)| reason);
        assert!(
            reason.is_some_and(|reason| reason.contains(why)),
            "{settings}: {told}"
        );
        assert!(!told.contains("shm is not used"), "{settings}: {told}");
    }
}

#[test]
fn a_setting_of_an_unknown_parameter_is_reported_once_whatever_its_source() {
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
fn a_line_of_a_parameter_file_that_is_not_understood_is_reported_once() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".portcullis");
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("mca-params.conf");
    // The first line has a byte order mark and the line end of another system.
    let lines = "\u{feff}coll_base_check = false\r\n# comment\n\nbtl_sm_eager_limit 8k\n";
    std::fs::write(&file, lines).expect("a file");
    let told = |job: Job| job.env("HOME", home.path()).holds().stderr;
    let sentence = format!(
        "rank 0: line 4 of {} is \"btl_sm_eager_limit 8k\", but \"name = value\" is expected; the line is ignored\n",
        file.display()
    );
    assert_eq!(told(Job::of("hello").ranks(3)), sentence);
    assert_eq!(told(Job::of("hello").alone()), sentence);
    let silent = ["--mca", "mca_base_tell_misspelt", "no"];
    assert_eq!(told(Job::of("hello").ranks(2).with(silent)), "");
}

#[test]
fn the_launcher_reports_unknown_parameters_of_its_own() {
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
fn settings_of_excluded_components_are_not_reported() {
    let nowhere = tempfile::tempdir().expect("a folder");
    let nowhere = nowhere.path().to_str().expect("a name");
    // The first component, `mine`, is excluded by name. The second one is a plugin file,
    // and the library searches another folder.
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

/// Programs without windows, checkpoints or devices do not choose these components.
#[test]
fn a_component_that_is_not_there_ends_the_job_though_the_program_would_not_use_it() {
    for (framework, there) in [
        ("accelerator", "there are cuda, rocm, level_zero"),
        ("crs", "there are self, criu"),
        ("osc", "there are am, direct, network"),
    ] {
        let sentence = format!(
            "a component cannot be used: there is no {framework} component \"nosuch\"; {there}"
        );
        says(framework, "nosuch".as_ref(), &sentence);
        let job = Job::of("hello").ranks(2);
        let job = job.with(["--mca", framework, "^nosuch"]);
        assert_eq!(job.holds().stderr, "", "{framework}");
    }
}

#[test]
fn messages_that_were_never_received_are_reported_once_at_the_end() {
    let job = || Job::of("unreceived").ranks(3);
    let said = job().holds().stderr;
    let [line] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    assert!(line.starts_with("rank 2 on "), "{line}");
    let told = "MPI_Finalize is called, and 4 messages to this rank were never received: \
                3 from rank 0 with tag 5 on MPI_COMM_WORLD; from rank 0 with tag 6 on halo";
    assert!(line.ends_with(told), "{line}");
    let over_tcp = job().with(["--mca", "btl", "self,tcp"]).holds().stderr;
    assert!(
        !over_tcp.contains("tag 4") && !over_tcp.contains("tag 9"),
        "{over_tcp}"
    );
    let in_lanes = job().arg("threads").with(["--mca", "threads_lanes", "4"]);
    let said = in_lanes.holds().stderr;
    assert!(said.trim_end().ends_with(told), "{said}");
    let quiet = job().with(["--mca", "mpi_base_tell_unreceived", "false"]);
    assert_eq!(quiet.holds().stderr, "");
}

/// Messages that are probed, matched, cancelled, buffered, partitioned or sent by the library itself cause no warning.
#[test]
fn a_program_that_receives_all_its_messages_ends_without_a_warning() {
    for program in [
        "taken_back",
        "probe",
        "partitioned",
        "intercommunicators",
        "requests",
        "neighbors",
    ] {
        let said = Job::of(program).ranks(3).holds().stderr;
        assert!(!said.contains("never received"), "{program}: {said}");
    }
}

/// Replaces the digits of hexadecimal numbers by `_`.
fn offsets_removed(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push_str("0x_");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

/// Checks the lines that each rank prints about objects that were never freed.
#[test]
fn objects_that_are_never_freed_are_named_if_the_user_wants_that() {
    let leaks = || Job::of("leaks").ranks(2);
    let with = |job: Job| job.with(["--mca", "mpi_report_leaks", "1"]);
    let said = with(leaks()).holds().stderr;
    let without_offsets = offsets_removed(&said);
    let program = compile("leaks");
    let place = |by: &str| {
        let program = program.display();
        format!(", made by {by} at main+0x_ in {program} +0x_")
    };
    for line in [
        format!(
            "1 communicator was never freed: halo{}",
            place("MPI_Comm_dup")
        ),
        format!(
            "3 requests were never freed: receive from any rank with tag 7 on halo (2 times); inactive persistent request on MPI_COMM_WORLD{}",
            place("MPI_Send_init")
        ),
        format!(
            "1 datatype was never freed: pairs{}",
            place("MPI_Type_contiguous")
        ),
        format!(
            "1 group was never freed: one of 2 ranks{}",
            place("MPI_Comm_group")
        ),
        format!(
            "1 operator was never freed: one of the program{}",
            place("MPI_Op_create")
        ),
    ] {
        let both = without_offsets
            .matches(&format!("MPI_Finalize is called, and {line}\n"))
            .count();
        assert_eq!(both, 2, "{line:?} in:\n{said}");
    }
    assert!(!said.contains(" file"), "{said}");
    let in_lanes = leaks().arg("threads").with(["--mca", "threads_lanes", "4"]);
    let said = with(in_lanes).holds().stderr;
    let of_halo = "; receive from any rank with tag 7 on halo (2 times)\n";
    assert_eq!(said.matches(of_halo).count(), 2, "{said}");
    // With this argument the program frees all objects except one communicator.
    let said = with(leaks().arg("one")).holds().stderr;
    assert_eq!(said.matches("never freed").count(), 2, "{said}");
    let said = leaks().holds().stderr;
    assert!(!said.contains("never freed"), "{said}");
}

/// A program uses a library that was compiled for another MPI library, whose handles then reach this one.
#[test]
fn a_second_mpi_library_in_the_process_is_named_when_its_handles_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("libmpi.so.12");
    let empty = folder.path().join("empty.c");
    std::fs::write(&empty, "int mpich_only;\n").unwrap();
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&other, &empty]);
    process::output(&mut compiler, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    let program = compile_source(
        "two_libraries",
        "#include <dlfcn.h>\n#include <mpi.h>\n\
         int main(int argc, char **argv)\n{\n\
         \x20   MPI_Init(&argc, &argv);\n\
         \x20   if (argc > 1 && !dlopen(argv[1], RTLD_NOW))\n        return 3;\n\
         \x20   return MPI_Barrier((MPI_Comm)0x44000000);\n}\n",
    );
    let sentence = "the handle 0x44000000 is an info object, not a communicator";
    let alone = Job::command(&program).under(&installation().join("bin/mpirun"));
    let said = alone.ranks(1).run().stderr;
    assert!(
        said.contains(&format!("{sentence} (MPI_ERR_COMM)")),
        "{said}"
    );
    let both = Job::command(&program).under(&installation().join("bin/mpirun"));
    let said = both.arg(other.to_str().unwrap()).ranks(1).run().stderr;
    let named = format!(
        "{sentence}; this process has also loaded {}, another MPI library",
        other.display()
    );
    assert!(said.contains(&named), "{said}");
}
