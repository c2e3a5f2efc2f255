//! Writer of the trace event format:
//! a JSON object that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//!
//! Source: "Trace Event Format", Google, the document behind chrome://tracing.
//! A rank is a process with threads. An MPI call is a complete event (`X`).
//! A message is a flow (`s` to `f`) between the calls that sent and received it.
//! A message whose other end is not in the event rings is an instant event (`i`).
//! Each file of a rank is a thread with the system calls on the file.
//! Times are microseconds since the first event.

use super::lane::Trace;
use crate::CallName;
use crate::file_names::names;
use crate::rank_snapshot::Comm;
use mpi_base::node::{Event, EventKind};
use mpi_base::state::FileCall;
use mpi_core::trace::Trace as Tracer;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// The lowest thread number of files, so that viewers show files below the threads.
const FILE_LANES: u64 = 1_000;

/// Writes the whole trace; times are microseconds since its first event.
pub fn write(trace: &Trace, call_name: CallName, out: &mut impl Write) -> io::Result<()> {
    let begin = trace.begin();
    let clocks = trace.clocks.iter();
    let clocks =
        clocks.map(|(host, error)| (host.clone(), json!(error.map(|ns| ns as f64 / 1000.0))));
    let clocks: Map<String, Value> = clocks.collect();
    let other = json!({"lost_events": trace.lost(), "clocks_within_us": clocks});
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},")?;
    write!(out, "\"traceEvents\":[")?;
    let mut first = true;
    let mut put = |event: Value| {
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(out, "{comma}\n{event}")
    };
    let mut flows: HashMap<(usize, usize), (usize, &str)> = HashMap::new();
    for (id, arrow) in trace.arrows().iter().enumerate() {
        flows.insert(arrow.from, (id, "s"));
        flows.insert(arrow.to, (id, "f"));
    }
    for (at, lane) in trace.lanes.iter().enumerate() {
        // The job number distinguishes processes of spawned jobs from those of the first job.
        let pid = lane.job * 1_000_000 + lane.rank as usize;
        let spawned = match lane.job {
            0 => String::new(),
            job => format!(" of spawned job {job}"),
        };
        let name = format!("rank {}{spawned} on {}", lane.rank, lane.host);
        put(json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}))?;
        put(
            json!({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}),
        )?;
        for (number, file) in names(&lane.played.events) {
            let tid = FILE_LANES + number;
            let name = format!("file {file}");
            put(
                json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}),
            )?;
        }
        let owners = threads(&lane.played.events);
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        // `told` has the details that the present call has recorded;
        // `windows` has the windows' names.
        let mut told: Vec<&Event> = Vec::new();
        let mut windows: HashMap<u64, String> = HashMap::new();
        for (place, event) in lane.played.events.iter().enumerate() {
            let next = numbers.len();
            let tid = *numbers.entry(owners[place]).or_insert(next);
            let us = |ns: u64| ns.saturating_sub(begin) as f64 / 1000.0;
            let mut json = json!({"pid": pid, "tid": tid, "ts": us(event.at)});
            let mut set = |name: &str, value: Value| json[name] = value;
            match event.kind {
                EventKind::Call => {
                    set("ph", "X".into());
                    set("cat", "mpi".into());
                    set("name", call_name(event.call).into());
                    set(
                        "dur",
                        json!(event.until.saturating_sub(event.at) as f64 / 1000.0),
                    );
                    // On the event ring, the details of a call come before the call itself.
                    let mut inside = told.drain(..).filter(|inside| inside.at >= event.at);
                    let args = inside.next_back().map(|inside| match inside.kind {
                        EventKind::Access => access_args(inside, &windows),
                        _ => round_args(inside),
                    });
                    set("args", args.unwrap_or_else(|| json!({})));
                }
                EventKind::Round | EventKind::Access => {
                    told = vec![event];
                    continue;
                }
                EventKind::WindowName => {
                    windows.insert(event.comm, Tracer::window_name(event));
                    continue;
                }
                EventKind::Sent | EventKind::Received => {
                    let sent = event.kind == EventKind::Sent;
                    set("args", message_args(event, sent));
                    match flows.get(&(at, place)) {
                        Some((id, ph)) => {
                            set("ph", (*ph).into());
                            set("id", json!(id));
                            set("name", "message".into());
                            set("cat", "message".into());
                            if !sent {
                                set("bp", "e".into());
                            }
                        }
                        None => {
                            set("ph", "i".into());
                            set("s", "t".into());
                            set("cat", "message".into());
                            let name = if sent { "sent" } else { "received" };
                            set("name", name.into());
                        }
                    }
                }
                EventKind::File => {
                    set("ph", "X".into());
                    set("cat", "file".into());
                    set("tid", json!(FILE_LANES + event.number));
                    let call = FileCall::from_number(event.call.into());
                    set("name", call.map_or("file", FileCall::name).into());
                    let took = event.until.saturating_sub(event.at);
                    set("dur", json!(took as f64 / 1000.0));
                    set("args", json!({"offset": event.extra, "bytes": event.bytes}));
                }
                EventKind::FileName | EventKind::FileTotals | EventKind::Matrix => continue,
                EventKind::Wire => {
                    set("ph", "C".into());
                    set("name", format!("barrier wire {}", event.peer).into());
                    // A wire toggles at each barrier, so its level is the count modulo 2.
                    set(
                        "args",
                        json!({"out": event.number % 2, "in": event.extra % 2}),
                    );
                }
            }
            put(json)?;
        }
    }
    writeln!(out, "\n]}}")
}

/// Returns the thread of each event: a message belongs to the next call on the ring.
fn threads(events: &[Event]) -> Vec<u32> {
    let mut threads = vec![0; events.len()];
    let mut thread = events
        .iter()
        .find(|e| e.kind == EventKind::Call)
        .map_or(0, |e| e.thread);
    for (place, event) in events.iter().enumerate().rev() {
        if event.kind == EventKind::Call {
            thread = event.thread;
        }
        threads[place] = thread;
    }
    threads
}

fn round_args(round: &Event) -> Value {
    json!({
        "operation": Tracer::signature(round).to_string(),
        "communicator": Comm(round.comm).to_string(),
        "number": round.number,
    })
}

fn access_args(access: &Event, windows: &HashMap<u64, String>) -> Value {
    let name = windows.get(&access.comm).cloned();
    let unnamed = || {
        Comm(access.comm)
            .to_string()
            .replace("communicator", "window")
    };
    let mut args = json!({
        "window": name.unwrap_or_else(unnamed),
        "target": access.peer,
    });
    if access.bytes > 0 {
        args["displacement"] = (access.extra as i64).into();
        args["bytes"] = access.bytes.into();
    }
    args
}

fn message_args(event: &Event, sent: bool) -> Value {
    const PLANE_BITS: u32 = 3;
    let mut args = Map::new();
    let other = if sent { "to_job_rank" } else { "from_rank" };
    args.insert(other.into(), event.peer.into());
    args.insert("bytes".into(), event.bytes.into());
    args.insert(
        "communicator".into(),
        Comm(event.comm >> PLANE_BITS).to_string().into(),
    );
    match event.comm & ((1 << PLANE_BITS) - 1) {
        0 => args.insert("tag".into(), event.tag.into()),
        _ => args.insert(
            "part of collective operation".into(),
            (event.tag + 1).into(),
        ),
    };
    args.into()
}
