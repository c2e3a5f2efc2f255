//! Tests of hang reports and traces of programs on other MPI libraries.
//!
//! The recorder is loaded by LD_PRELOAD under the other library's launcher, or by `mpirun --on`.
//! The report must be the same on all libraries, so one snapshot serves all.

use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tests::peers::{Peer, Program, complains, debian_open_mpi, preload, succeeds};
use tests::{Job, compile, installation, mpich, needs};
use xtask::packages;

/// Returns the report without the parts that differ between runs, such as waiting times.
fn report_in(said: &str) -> String {
    let begin = said.find("portcullis: ").expect("a report");
    let mut text = String::new();
    for line in said[begin..].lines() {
        // The report ends where the launcher's own output begins.
        if line.is_empty() || line.starts_with("mpirun") {
            break;
        }
        match line.rsplit_once(", for ") {
            Some((before, time)) if time.ends_with(" s") => text += before,
            _ => text += line,
        }
        text += "\n";
    }
    text
}

/// Runs `hang WAY` on a library and returns the hang report.
fn report_on(peer: Peer, way: &str, ranks: u32) -> String {
    let program = Program::new(&peer.compiler(), "hang.c");
    let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_HANG", "1.5")];
    let mut command = peer.launch(&program.path(), ranks, &settings);
    let said = complains(command.arg(way), "every rank:");
    report_in(&said)
}

macro_rules! mistakes {
    ($($claim:ident: $way:literal on $ranks:literal;)*) => {
        $(
            #[test]
            fn $claim() {
                // Each mistake is tested on one library.
                // The mistakes are distributed over the libraries.
                let peers = Peer::all();
                let turn = WAYS.iter().position(|(way, _)| *way == $way).expect("it is one");
                if let Some(peer) = peers.get(turn % peers.len().max(1)) {
                    insta::assert_snapshot!(report_on(*peer, $way, $ranks));
                }
            }
        )*

        /// The arguments of `hang`, each with the number of ranks.
        const WAYS: &[(&str, u32)] = &[$(($way, $ranks)),*];
    };
}

mistakes! {
    a_circle_names_both_ranks_and_their_tags: "tag" on 2;
    a_rank_that_computes_is_the_culprit: "computes" on 2;
    a_rank_that_has_left_is_the_culprit: "left" on 2;
    different_collectives_are_told_apart: "collective" on 2;
    members_that_differ_and_one_that_computes_are_named: "absent" on 4;
    a_receive_from_any_rank_to_which_no_rank_can_send_is_found: "any" on 3;
    what_a_waitall_still_waits_for_is_named: "second" on 2;
    a_rank_that_only_polls_makes_no_progress: "polls" on 2;
    a_shift_waits_for_one_of_two: "shift" on 4;
    ranks_of_other_communicators_are_found_in_the_job: "inner" on 3;
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn all_libraries_have_the_same_report_of_each() {
    for (way, ranks) in WAYS {
        let of = |peer| report_on(peer, way, *ranks);
        let reports: BTreeSet<_> = Peer::all().into_iter().map(of).collect();
        assert!(reports.len() <= 1, "{way}: {reports:#?}");
    }
}

fn events(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a trace");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    whole["traceEvents"].as_array().expect("events").clone()
}

fn of<'a>(events: &'a [Value], ph: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == ph).collect()
}

fn rank(event: &Value) -> u64 {
    event["pid"].as_u64().expect("a rank")
}

/// Returns the source and destination rank of each message.
/// Checks that no message is received before its send and that both ends agree.
fn arrows(events: &[Value]) -> Vec<(u64, u64)> {
    let ends: BTreeMap<u64, &Value> = of(events, "f")
        .into_iter()
        .map(|end| (end["id"].as_u64().expect("an id"), end))
        .collect();
    let starts = of(events, "s");
    assert_eq!(starts.len(), ends.len());
    let arrow = |start: &Value| {
        let end = ends[&start["id"].as_u64().expect("an id")];
        let time = |event: &Value| event["ts"].as_f64().expect("a time");
        assert!(time(start) <= time(end), "{start} {end}");
        for same in ["bytes", "tag", "communicator"] {
            assert_eq!(start["args"][same], end["args"][same]);
        }
        assert_eq!(start["args"]["to_job_rank"], end["pid"]);
        (rank(start), rank(end))
    };
    starts.into_iter().map(arrow).collect()
}

/// Returns the number of calls of a function by each rank.
fn calls(events: &[Value], name: &str) -> BTreeMap<u64, usize> {
    let mut found = BTreeMap::new();
    for event in of(events, "X") {
        if event["name"] == name {
            *found.entry(rank(event)).or_default() += 1;
        }
    }
    found
}

/// Each program runs on one library, and both libraries run two programs.
#[test]
fn every_message_of_a_traced_program_has_both_its_ends() {
    let peers = Peer::all();
    for (turn, peer) in peers.iter().enumerate() {
        let mine = TRACED.iter().skip(turn).step_by(peers.len());
        traced_messages_have_both_their_ends(*peer, mine);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_message_of_all_traced_programs_has_both_its_ends_on_each_library() {
    for peer in Peer::all() {
        traced_messages_have_both_their_ends(peer, TRACED.iter());
    }
}

/// Programs, each with the least number of its messages on four ranks.
const TRACED: [(&str, usize); 4] = [
    ("ring.c", 200),
    ("wildcard.c", 600),
    ("requests.c", 800),
    ("threads.c", 1000),
];

fn traced_messages_have_both_their_ends<'a>(
    peer: Peer,
    programs: impl Iterator<Item = &'a (&'static str, usize)>,
) {
    for &(name, messages) in programs {
        let program = Program::new(&peer.compiler(), name);
        let file = program.folder().join("trace.json");
        let named = file.to_string_lossy();
        let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_TRACE", &*named)];
        succeeds(&mut peer.launch(&program.path(), 4, &settings));
        let events = events(&file);
        let arrows = arrows(&events);
        assert!(arrows.len() >= messages, "{name}: {}", arrows.len());
        let lone = of(&events, "i");
        assert!(lone.is_empty(), "{peer:?} {name}: {lone:?}");
        let init = match name {
            "threads.c" => "MPI_Init_thread",
            _ => "MPI_Init",
        };
        for call in [init, "MPI_Finalize"] {
            let each = (0..4).map(|rank| (rank, 1)).collect();
            assert_eq!(calls(&events, call), each, "{peer:?} {name}: {call}");
        }
    }
}

#[test]
fn collective_operations_have_the_same_numbers_and_names_at_all_ranks() {
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "collectives.c");
        let file = program.folder().join("trace.json");
        let named = file.to_string_lossy();
        let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_TRACE", &*named)];
        succeeds(peer.launch(&program.path(), 3, &settings).arg("20"));
        let mut rounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in of(&events(&file), "X") {
            let args = &event["args"];
            if let Some(operation) = args["operation"].as_str() {
                let key = format!("{} {}", args["communicator"], args["number"]);
                rounds.entry(key).or_default().push(operation.to_owned());
            }
        }
        assert!(rounds.len() > 100, "{peer:?}: {}", rounds.len());
        for (round, operations) in rounds {
            let kinds: BTreeSet<_> = operations.iter().collect();
            assert_eq!(
                (operations.len(), kinds.len()),
                (3, 1),
                "{round}: {operations:?}"
            );
        }
    }
}

/// The file name's extension selects the format, as with `mpirun --trace`.
#[test]
fn a_waveform_has_the_wires_of_the_hardware_barrier_beside_the_calls() {
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "barrier_loop.c");
        let file = program.folder().join("trace.vcd");
        let named = file.to_string_lossy();
        let settings = [
            ("LD_PRELOAD", &*preload()),
            ("PORTCULLIS_TRACE", &*named),
            ("PORTCULLIS_MCA_coll_hwbarr_port", "sim"),
        ];
        succeeds(peer.launch(&program.path(), 2, &settings).args(["5", "0"]));
        let text = std::fs::read_to_string(&file).expect("a trace");
        // `line` is the identifier of rank 1's wire; its changes are counted below.
        let line = text
            .split("rank_1")
            .nth(1)
            .and_then(|scope| scope.split(" wire_out ").next()?.split_whitespace().last())
            .expect("the line of a wire");
        let changes = |level: char| text.matches(&format!("\n{level}{line}\n")).count();
        assert!(changes('1') >= 2 && changes('0') >= 2, "{peer:?}: {text}");
    }
}

/// Half of the ranks run under another host name (`unshare --uts`).
#[test]
fn clocks_of_several_hosts_are_compared() {
    let mut unshare = std::process::Command::new("unshare");
    let there = packages::on_path("unshare")
        && unshare
            .args(["--uts", "true"])
            .status()
            .is_ok_and(|status| status.success());
    if !needs(
        there,
        "the right to have a host name of its own (unshare --uts)",
    ) {
        return;
    }
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "ring.c");
        let file = program.folder().join("trace.json");
        let named = file.to_string_lossy();
        let elsewhere = format!("hostname elsewhere; exec {}", program.path().display());
        let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_TRACE", &*named)];
        let mut command = peer.launch(&program.path(), 2, &settings);
        command.arg(":");
        if peer == Peer::OpenMpi {
            for (name, value) in settings {
                command.arg("-x").arg(format!("{name}={value}"));
            }
        }
        command.args(["-n", "2", "unshare", "--uts", "sh", "-c", &elsewhere]);
        succeeds(&mut command);
        let text = std::fs::read_to_string(&file).expect("a trace");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let bound = &whole["otherData"]["clocks_within_us"]["elsewhere"];
        assert!(bound.as_f64().is_some_and(|bound| bound < 1e6), "{bound}");
        let events = events(&file);
        assert_eq!(arrows(&events).len(), 232);
    }
}

#[test]
fn programs_in_fortran_are_watched() {
    let fortran = packages::on_path("gfortran");
    if !debian_open_mpi() || !needs(fortran, "a Fortran compiler (gfortran)") {
        return;
    }
    let program = Program::new(Path::new("mpif90.openmpi"), "fortran_messages.f90");
    let file = program.folder().join("trace.json");
    let named = file.to_string_lossy();
    let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_TRACE", &*named)];
    succeeds(&mut Peer::OpenMpi.launch(&program.path(), 2, &settings));
    let events = events(&file);
    assert_eq!(arrows(&events).len(), 8);
    assert!(of(&events, "i").is_empty());
    for (call, times) in [("MPI_Irecv", 3), ("MPI_Waitall", 2), ("MPI_Allreduce", 1)] {
        let each = (0..2).map(|rank| (rank, times)).collect();
        assert_eq!(calls(&events, call), each, "{call}");
    }
    let settings = [("LD_PRELOAD", &*preload()), ("PORTCULLIS_HANG", "1.5")];
    let mut command = Peer::OpenMpi.launch(&program.path(), 2, &settings);
    let said = complains(command.arg("hang"), "every rank:");
    insta::assert_snapshot!(report_in(&said));
}

/// The barriers are done by the hardware or by the library; the times that are printed are not checked.
#[test]
fn the_exit_skew_of_barriers_is_printed_on_any_library() {
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "barrier_loop.c");
        for port in ["none", "sim"] {
            let settings = [
                ("LD_PRELOAD", &*preload()),
                ("PORTCULLIS_EXIT_SKEW", "1"),
                ("PORTCULLIS_MCA_coll_hwbarr_port", port),
            ];
            let outcome = succeeds(&mut peer.launch(&program.path(), 2, &settings));
            let sentence = "portcullis: MPI_Barrier on 2 ranks: the last rank left ";
            let said = outcome.stderr.lines().find(|line| line.contains(sentence));
            let said = said.unwrap_or_else(|| panic!("{port}: {}", outcome.stderr));
            assert!(said.ends_with("; all ranks have the same clock"), "{said}");
        }
    }
}

#[test]
fn the_default_is_silent_and_wrong_values_are_reported() {
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "ring.c");
        let preloaded = [("LD_PRELOAD", &*preload())];
        let outcome = succeeds(&mut peer.launch(&program.path(), 2, &preloaded));
        assert!(!outcome.stderr.contains("portcullis"), "{}", outcome.stderr);
        let settings = [preloaded[0], ("PORTCULLIS_HANG", "soon")];
        let outcome = succeeds(&mut peer.launch(&program.path(), 2, &settings));
        let sentence = "PORTCULLIS_HANG=soon: it must be a number of seconds, such as 30 or 1.5";
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
        let settings = [preloaded[0], ("PORTCULLIS_TRACE", "/no/such/folder/t.json")];
        let outcome = succeeds(&mut peer.launch(&program.path(), 2, &settings));
        let sentence = "the trace cannot be written to /no/such/folder/t.json: No such file";
        let said = outcome.stderr.matches(sentence).count();
        assert_eq!(said, 1, "{}", outcome.stderr);
    }
}

/// Debian's Open MPI has no large-count functions,
/// but in this job the program's `dlsym` finds those of the preloaded library.
#[test]
fn a_program_that_asks_for_large_counts_gets_what_it_finds() {
    for peer in Peer::all() {
        let program = Program::with(&peer.compiler(), "probing.c", &["-ldl"]);
        let file = program.folder().join("trace.json");
        let named = file.to_string_lossy();
        let preloaded = [("LD_PRELOAD", &*preload())];
        succeeds(&mut peer.launch(&program.path(), 2, &preloaded));
        let settings = [preloaded[0], ("PORTCULLIS_TRACE", &*named)];
        succeeds(&mut peer.launch(&program.path(), 2, &settings));
        assert_eq!(arrows(&events(&file)), [(0, 1)], "{peer:?}");
    }
}

/// A PMPI profiler is preloaded after the library that records the calls.
#[test]
fn a_profiler_goes_on_counting() {
    for peer in Peer::all() {
        let program = Program::new(&peer.compiler(), "ring.c");
        let profiler = Program::with(&peer.compiler(), "profiler.c", &["-shared", "-fPIC"]);
        let file = program.folder().join("trace.json");
        let (named, tool) = (file.to_string_lossy(), profiler.path());
        let both = format!("{}:{}", preload(), tool.display());
        for settings in [
            vec![("LD_PRELOAD", &*both)],
            vec![("LD_PRELOAD", &*both), ("PORTCULLIS_TRACE", &*named)],
        ] {
            let outcome = succeeds(&mut peer.launch(&program.path(), 2, &settings));
            let counted = outcome.stderr.matches("profiler: 50 messages").count();
            assert_eq!(counted, 2, "{peer:?}: {}", outcome.stderr);
        }
        let sends = (0..2).map(|rank| (rank, 50)).collect();
        assert_eq!(calls(&events(&file), "MPI_Send"), sends);
    }
}

/// Returns a job of a program of the standard ABI on another library.
fn on(library: &Path, name: &str, ranks: u32) -> Job {
    Job::command(&compile(name))
        .under(&installation().join("bin/mpirun"))
        .with(["--on"])
        .with([library])
        .ranks(ranks)
}

/// Returns the installed libraries on which programs of the standard ABI can run.
fn below() -> Vec<PathBuf> {
    let folder = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let open_mpi = debian_open_mpi().then(|| folder.join("libmpi.so.40"));
    let mpich = mpich().map(|mpich| mpich.lib().join("libmpi.so.12"));
    open_mpi.into_iter().chain(mpich).collect()
}

#[test]
fn programs_of_the_standard_on_another_library_are_traced() {
    for library in below() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("trace.json");
        let job = on(&library, "ring", 3);
        job.with(["--trace".as_ref(), file.as_os_str()]).holds();
        let events = events(&file);
        assert!(arrows(&events).len() >= 150);
        assert!(of(&events, "i").is_empty());
        let each = (0..3).map(|rank| (rank, 1)).collect();
        assert_eq!(calls(&events, "MPI_Finalize"), each);
    }
}

/// Waits up to a minute for a whole report in this file.
fn written(file: &Path) -> Value {
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Ok(report) = serde_json::from_str(&text) {
            return report;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{text:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_of_the_standard_that_hangs_on_another_library_is_explained() {
    for library in below() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("report.json");
        let job = on(&library, "hang", 2)
            .with(["--hang-after", "1500ms", "--hang-report"])
            .with([&file])
            .arg("tag");
        // Beside other load the ranks start late, so the job ends only when its report is there.
        let job = job.start();
        job.complains("their tags differ, so they never meet", 1);
        let report = written(&file);
        job.signal(Signal::TERM);
        let outcome = job.wait();
        assert!(!outcome.status.success());
        for part in [
            "portcullis: nothing has moved for 1.5 s, and as far as their calls show all ranks wait for each other\n",
            "ranks 0, 1 wait for each other in a circle:",
            "rank 0 waits in MPI_Ssend to rank 1, tag 7, 4 bytes",
        ] {
            assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
        }
        assert_eq!(report["jobs"][0]["findings"][0]["kind"], "circle");
    }
}
