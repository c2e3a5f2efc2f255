//! Tests of traces by `mpirun --trace`: each send is paired with its receive,
//! messages are in order, and calls are properly nested.

use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use tests::hosts::Hosts;
use tests::{Job, compile};

fn traced(job: Job, file: &Path) -> Job {
    job.with(["--trace".as_ref(), file.as_os_str()])
}

fn whole(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a trace");
    serde_json::from_str(&text).expect("JSON")
}

fn events(file: &Path) -> Vec<Value> {
    whole(file)["traceEvents"]
        .as_array()
        .expect("events")
        .clone()
}

fn of<'a>(events: &'a [Value], ph: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == ph).collect()
}

fn time(event: &Value) -> f64 {
    event["ts"].as_f64().expect("a time")
}

/// Returns the source and destination rank of each message;
/// checks that no message is received before its send.
fn arrows(events: &[Value]) -> Vec<(u64, u64)> {
    let ends: BTreeMap<u64, &Value> = of(events, "f")
        .into_iter()
        .map(|end| (end["id"].as_u64().expect("an id"), end))
        .collect();
    let starts = of(events, "s");
    assert_eq!(starts.len(), ends.len());
    let arrow = |start: &Value| {
        let end = ends[&start["id"].as_u64().expect("an id")];
        assert!(time(start) <= time(end), "{start} {end}");
        for same in ["bytes", "tag", "communicator"] {
            assert_eq!(start["args"][same], end["args"][same]);
        }
        assert_eq!(start["args"]["to_job_rank"], end["pid"]);
        if end["args"]["communicator"] == "MPI_COMM_WORLD" {
            assert_eq!(end["args"]["from_rank"], start["pid"]);
        }
        let rank = |event: &Value| event["pid"].as_u64().expect("a rank");
        (rank(start), rank(end))
    };
    starts.into_iter().map(arrow).collect()
}

#[test]
fn every_send_has_its_receive_and_is_before_it() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    traced(Job::of("wildcard").ranks(4), &file).holds();
    let events = events(&file);
    // The first part of the program makes three ranks send 200 messages each.
    let arrows = arrows(&events);
    assert!(arrows.len() >= 600, "{}", arrows.len());
    assert!(
        of(&events, "i").is_empty(),
        "a message without its other end"
    );
}

#[test]
fn calls_on_windows_name_the_window_the_target_and_the_displacement() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    traced(Job::of("left_windows").ranks(3), &file).holds();
    let events = events(&file);
    let args = |call: &str| {
        let calls = of(&events, "X").into_iter();
        let of_rank_0 = calls.filter(|event| event["name"] == call && event["pid"] == 0);
        of_rank_0.map(|event| event["args"].clone()).next()
    };
    let target = serde_json::json!({"window": "board", "target": 2});
    for call in ["MPI_Win_lock", "MPI_Win_flush", "MPI_Win_unlock"] {
        assert_eq!(args(call), Some(target.clone()), "{call}");
    }
    let mut put = target;
    put["displacement"] = 3.into();
    put["bytes"] = 8.into();
    assert_eq!(args("MPI_Put"), Some(put));
}

#[test]
fn calls_follow_each_other_and_collectives_are_named() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    traced(Job::of("ring").ranks(3), &file).holds();
    let events = events(&file);
    let calls = of(&events, "X");
    for rank in 0..3 {
        let mut until = 0.0;
        for call in calls.iter().filter(|call| call["pid"] == rank) {
            // A call must not begin before the end of the previous call;
            // the times are rounded to a nanosecond.
            assert!(time(call) >= until - 0.001, "{call} before {until}");
            until = time(call) + call["dur"].as_f64().expect("a duration");
        }
        let barrier = calls
            .iter()
            .rfind(|call| call["pid"] == rank && call["name"] == "MPI_Barrier");
        let args = &barrier.expect("a barrier")["args"];
        assert_eq!(args["operation"], "MPI_Barrier");
        assert_eq!(args["communicator"], "MPI_COMM_WORLD");
    }
    let names: Vec<_> = of(&events, "M")
        .iter()
        .map(|m| m["args"]["name"].clone())
        .collect();
    assert!(
        names
            .iter()
            .any(|name| name.as_str().is_some_and(|n| n.starts_with("rank 2 on ")))
    );
}

#[test]
fn ranks_of_hosts_whose_clocks_differ_are_on_one_line_and_every_message_goes_forward() {
    const APART: u32 = 5000;
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]).clocks_apart(APART);
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    traced(hosts.remote_job(&compile("wildcard"), 2), &file).holds();
    let events = events(&file);
    let arrows: BTreeSet<(u64, u64)> = arrows(&events).into_iter().collect();
    for (from, to) in [(1, 0), (2, 0), (3, 0), (0, 1), (0, 2)] {
        assert!(arrows.contains(&(from, to)), "{from} to {to}: {arrows:?}");
    }
    for rank in 0..4 {
        let name = format!("rank {rank} on h{}", rank / 2);
        let mut names = of(&events, "M").into_iter().map(|m| &m["args"]["name"]);
        assert!(names.any(|n| *n == name.as_str()), "{name}");
    }
    // If the clocks were not corrected, events of the two hosts would be `APART` seconds apart.
    let last = of(&events, "X").into_iter().map(time).fold(0.0, f64::max);
    assert!(last < f64::from(APART) * 1e6, "{last}");
    let clocks = whole(&file)["otherData"]["clocks_within_us"].clone();
    for host in ["h0", "h1"] {
        assert!(clocks[host].as_f64().is_some(), "{clocks}");
    }
}

#[test]
fn a_host_that_is_lost_is_missing_from_the_trace_and_named() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    // Rank 1 kills its host's launcher after rank 0 has started.
    let there = place.path().join("there");
    let script = format!(
        "if [ $PMI_RANK = 1 ]; then while [ ! -e {there} ]; do sleep 0.05; done; kill -9 $PPID; fi; : > {there}; sleep 20",
        there = there.display()
    );
    let job = hosts.remote_job(Path::new("/bin/sh"), 1);
    let outcome = traced(job.arg("-c").arg(&script), &file).run();
    let said = "the trace lacks the rank of h1, which could not be asked any more";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(!of(&events(&file), "M").is_empty());
}

#[test]
fn a_job_that_dies_leaves_its_trace_and_a_full_event_ring_its_latest_events() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.json");
    let job = traced(Job::of("race").ranks(3).arg("die"), &file);
    let outcome = job.with(["--mca", "mpi_base_trace", "20"]).run();
    assert_eq!(outcome.status.code(), Some(137), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("earlier ones were forgotten"),
        "{}",
        outcome.stderr
    );
    let events = events(&file);
    assert!(of(&events, "X").iter().any(|call| call["pid"] == 0));
}

#[test]
fn a_waveform_has_the_ranks_beside_the_wires_of_the_hardware_barrier() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("trace.vcd");
    let job = Job::of("barrier_loop").ranks(3).arg("5");
    let job = job.with(["--mca", "coll_hwbarr_port", "sim"]);
    traced(job, &file).succeeds();
    let text = std::fs::read_to_string(&file).expect("a waveform");
    let lines = ["rank_0", "rank_2", "barrier", "wire_out", "wire_in"];
    for line in lines {
        assert!(text.contains(line), "no {line} in:\n{text}");
    }
}
