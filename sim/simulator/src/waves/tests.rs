//! Tests of the waveforms with a resolution of 1 ps, read back by another parser.

use super::*;
use crate::faults::campaign::Campaign;
use crate::faults::catalogue::Place;
use crate::faults::known::KnownUnsafe;
use crate::faults::moments::Moment;
use crate::virtual_time::run_observed;
use barrier_waveform::gtkw;
use std::collections::HashMap;
use std::io::Cursor;

fn traced(parameters: Parameters) -> Trace {
    let mut trace = Trace::of(&Setup::new(parameters.clone()));
    let (_, sights) = run_observed(&parameters, Vec::new()).expect("legal parameters");
    trace.sights = sights;
    trace
}

/// For each signal's path, its changes as pairs of time in ps and value without leading zeros.
type Dump = HashMap<String, Vec<(u64, String)>>;

fn read(text: &[u8]) -> Dump {
    let mut parser = vcd::Parser::new(text);
    let header = parser.parse_header().expect("a header");
    assert_eq!(header.timescale, Some((1, vcd::TimescaleUnit::PS)));
    let mut names = HashMap::new();
    fn walk(items: &[vcd::ScopeItem], path: &str, names: &mut HashMap<vcd::IdCode, String>) {
        for item in items {
            match item {
                vcd::ScopeItem::Scope(scope) => {
                    walk(&scope.items, &format!("{path}{}.", scope.identifier), names);
                }
                vcd::ScopeItem::Var(var) => {
                    names.insert(var.code, format!("{path}{}", var.reference));
                }
                _ => {}
            }
        }
    }
    walk(&header.items, "", &mut names);
    let (mut now, mut dump) = (0, Dump::new());
    for command in parser {
        let (code, value) = match command.expect("well-formed") {
            vcd::Command::Timestamp(at) => {
                assert!(at >= now, "time goes on");
                now = at;
                continue;
            }
            vcd::Command::ChangeScalar(code, value) => (code, value.to_string()),
            vcd::Command::ChangeVector(code, value) => (code, value.to_string()),
            vcd::Command::ChangeString(code, value) => (code, value),
            _ => continue,
        };
        dump.entry(names[&code].clone())
            .or_default()
            .push((now, value));
    }
    dump
}

fn drawn(trace: &Trace) -> Dump {
    let mut sink = Cursor::new(Vec::new());
    write(&mut sink, trace, Form::Vcd).expect("memory takes everything");
    read(sink.get_ref())
}

/// Returns the value of a signal at time `when`; `included` includes changes at exactly that time.
fn at<'d>(dump: &'d Dump, signal: &str, when: u64, included: bool) -> &'d str {
    let changes = dump
        .get(signal)
        .unwrap_or_else(|| panic!("{signal} is there"));
    let before = |(time, _): &&(u64, String)| *time < when || included && *time == when;
    let last = changes.iter().rev().find(before);
    last.map_or("", |(_, value)| value)
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text, 2).unwrap_or_else(|_| panic!("a number: {text:?}"))
}

#[test]
fn every_edge_of_the_clock_moves_the_flip_flops_as_the_rtl_says() {
    for filter in [1, 4] {
        let nodes = 3;
        let dump = drawn(&traced(Parameters {
            filter,
            ..Parameters::new(nodes, 3)
        }));
        let rises = dump["barrier.board.clk"].iter();
        let rises: Vec<u64> = rises.filter(|(_, v)| v == "1").map(|(at, _)| *at).collect();
        assert!(rises.len() > 500, "{}", rises.len());
        let (mut toggles, mut steps) = (0, 0);
        for &edge in &rises {
            let before =
                |name: &str| number(at(&dump, &format!("barrier.board.{name}"), edge, false));
            let after =
                |name: &str| number(at(&dump, &format!("barrier.board.{name}"), edge, true));
            let pins = (0..nodes).fold(0, |pins, node| {
                let pin = format!("barrier.node{node:02}.pin");
                pins | number(at(&dump, &pin, edge, false)) << node
            });
            assert_eq!(after("stage1"), pins, "at {edge}");
            assert_eq!(after("stage2"), before("stage1"), "at {edge}");
            let level = before("level");
            let all = if level == 1 { 0 } else { (1 << nodes) - 1 };
            assert_eq!(after("level") != level, before("seen") == all, "at {edge}");
            toggles += u64::from(after("level") != level);
            steps += u64::from(after("stage1") != before("stage1"));
        }
        assert_eq!(toggles, 3);
        assert!(steps > 5);
    }
}

#[test]
fn both_ends_of_a_long_cable_are_seen() {
    let dump = drawn(&traced(Parameters {
        cable: Time::from_ns(500),
        ..Parameters::new(2, 2)
    }));
    let rise = |signal: &str| {
        let changes = dump[signal].iter();
        let mut rises = changes.filter(|(_, value)| value == "1").map(|(at, _)| *at);
        rises.next().expect("a rise")
    };
    // To the board, a level takes the delays of the cable and of the input pad;
    // to the node, those of the output pad and of the cable.
    let there = rise("barrier.node00.pin") - rise("barrier.node00.out");
    let back = rise("barrier.node01.in") - rise("barrier.board.level");
    assert_eq!((there, back), (500_000 + 4900, 500_000 + 4300));
}

#[test]
fn boards_below_a_board_have_their_own_clocks_and_announce_to_it() {
    let dump = drawn(&traced(Parameters {
        boards: 3,
        ..Parameters::new(6, 4)
    }));
    let first = |signal: &str| {
        dump[signal]
            .iter()
            .find(|(_, v)| v == "1")
            .map(|(at, _)| *at)
    };
    let clocks: Vec<_> = ["board00", "board01", "board02", "root"]
        .map(|board| first(&format!("barrier.{board}.clk")))
        .to_vec();
    assert!(
        clocks.windows(2).all(|pair| pair[0] != pair[1]),
        "{clocks:?}"
    );
    let announced = (0..3).filter_map(|k| first(&format!("barrier.board{k:02}.above")));
    let last = announced.max().expect("boards announce");
    let released = first("barrier.root.level").expect("the root releases");
    // A release takes two synchroniser stages and one decision of the root, so 2 to 3 periods:
    // the phase of the root's clock is random.
    let passed = released - last;
    assert!((79_000..=119_200).contains(&passed), "{passed} ps");
}

#[test]
fn a_long_run_has_no_clock_where_nothing_moves_and_the_same_flip_flops() {
    let trace = traced(Parameters {
        arrivals: "uniform:900us".parse().expect("arrivals"),
        ..Parameters::new(2, 60)
    });
    let dump = drawn(&trace);
    let clk = &dump["barrier.board.clk"];
    assert!(
        clk.iter().any(|(_, value)| value == "z"),
        "parts are not drawn"
    );
    let levels = dump["barrier.board.level"].len();
    assert_eq!(levels, 1 + 60, "power-on and each release");
    assert!(clk.len() < 60 * 2 * 200, "{}", clk.len());
}

#[test]
fn a_fault_has_its_name_at_its_moment() {
    let known = KnownUnsafe::shipped().expect("the list");
    let examined = Campaign::new(3, 1).examine(
        &known,
        "FPGA reset",
        Place::Board(0),
        Moment::AwaitedFalling,
    );
    let examined = examined.expect("there is such a case");
    let dump = drawn(&examined.trace);
    let (when, name) = dump["barrier.fault"].last().expect("a mark").clone();
    assert_eq!(
        (when, name.as_str()),
        (examined.case.at.ps(), "FPGA_reset,_board")
    );
    // The board's level falls at the moment of the reset, which is not an edge of the clock.
    assert_eq!(at(&dump, "barrier.board.level", when, false), "1");
    assert_eq!(at(&dump, "barrier.board.level", when, true), "0");
}

#[test]
fn a_closeup_shows_the_last_arrival_pass_every_flip_flop() {
    let closeup_of = |parameters| closeup(&traced(parameters)).expect("a release");
    let one = closeup_of(Parameters::new(5, 2));
    let names: Vec<_> = one.rows.iter().map(|row| row.name.as_str()).collect();
    let node = one.node;
    assert_eq!(
        names,
        [
            format!("node {node} writes").as_str(),
            &format!("node {node} at the board"),
            "board clock",
            "board first stage",
            "board second stage",
            "board level",
            &format!("node {node} reads"),
        ]
    );
    // Each row except the clock changes once, after the change of the previous row.
    let mut before = one.from;
    for row in one.rows.iter().filter(|row| row.name != "board clock") {
        let inside = |at: &Time| (one.from..=one.until).contains(at);
        let changes: Vec<_> = row.levels.iter().filter(|(at, _)| inside(at)).collect();
        let [(at, true)] = changes.as_slice() else {
            panic!("one rise: {row:?}");
        };
        assert!(*at > before, "{row:?}");
        before = *at;
    }
    let below = closeup_of(Parameters {
        boards: 2,
        filter: 3,
        ..Parameters::new(6, 2)
    });
    let named = |name: &str| {
        below
            .rows
            .iter()
            .filter(|row| row.name.contains(name))
            .count()
    };
    assert_eq!((named("clock"), named("seen"), named("level")), (2, 2, 2));
}

#[test]
fn what_is_shown_first_begins_with_the_first_arrival() {
    let trace = traced(Parameters::new(3, 2));
    for (form, fault) in [
        (Form::Vcd, "barrier.fault\n"),
        (Form::Fst, "barrier.fault[383:0]\n"),
    ] {
        let mut sink = Cursor::new(Vec::new());
        let written = write(&mut sink, &trace, form).expect("memory takes everything");
        let mut save = Vec::new();
        gtkw::write_groups(&mut save, "/there/wave", written.view, &written.groups)
            .expect("memory takes everything");
        let save = String::from_utf8(save).expect("text");
        let start = save
            .lines()
            .find_map(|line| line.strip_prefix("[timestart] "));
        let start: u64 = start.and_then(|at| at.parse().ok()).expect("a start");
        // First, all nodes open the barrier and pass a fence of 40 us.
        let first = trace
            .sights
            .iter()
            .find_map(|(at, observation)| match observation {
                Observation::Enter { .. } => Some(at.ps()),
                _ => None,
            });
        assert_eq!(Some(start), first, "{save}");
        assert!(save.contains(fault), "{save}");
    }
}

#[test]
fn the_compressed_form_is_a_small_part_and_has_as_many_changes() {
    let trace = traced(Parameters::new(20, 20));
    let size = |form| {
        let mut sink = Cursor::new(Vec::new());
        let written = write(&mut sink, &trace, form).expect("memory takes everything");
        (sink.get_ref().len(), written.changes)
    };
    let ((text, changes), (compressed, same)) = (size(Form::Vcd), size(Form::Fst));
    assert_eq!(changes, same);
    assert!(compressed * 2 < text, "{compressed} of {text}");
}
