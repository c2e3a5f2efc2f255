//! Tests of the stimuli's coverage of the RTL (lines, branches, toggles, states), in Verilog and in VHDL.

mod common;
#[allow(
    dead_code,
    unused_imports,
    reason = "the stimuli alone, without the comparison"
)]
#[path = "common/subjects.rs"]
mod subjects;

use common::or_skip;
use hdl::coverage::{self, Counts, Points, Subject, added};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const LONG: &str =
    "bit k of a counter rises after 2^k edges or releases; the proofs cover every value";
const STAMP: &str = "a stamp has the bits of the time, of which the higher ones do not rise";
const OTHER_GROUPS: &str = "bits of groups that this instance does not have: 0 at all times";
const INSTANCE: &str = "the counters of group 0 and channel 0 run to their ends, and those of the others are instances of the same module";
const PARAMETER: &str =
    "only with other values of the parameters, which are constants of an instance";

/// Points that no stimulus reaches: parts of a point's name, and the reason why it is not reached.
const KEPT: &[(&[&str], &str)] = &[
    (&[".time_q["], LONG),
    (&["count_q["], LONG),
    (&["released_q["], LONG),
    (&["began_q["], STAMP),
    (&["first_q["], STAMP),
    (&["last_q["], STAMP),
    (&["start_time_"], STAMP),
    (&["regs.intr_"], OTHER_GROUPS),
    (&["pulse_q[19]"], OTHER_GROUPS),
    (&["pulse_q[20]"], OTHER_GROUPS),
    (&["pulse_q[21]"], OTHER_GROUPS),
    (&["pulse_q[22]"], OTHER_GROUPS),
    (&["pulse_q[23]"], OTHER_GROUPS),
    (&["pulse_q[24]"], OTHER_GROUPS),
    (&["regs.node_intr_q"], OTHER_GROUPS),
    (&["regs.node_enable_q"], OTHER_GROUPS),
    (
        &["resp_o[0]"],
        "a response is OKAY or SLVERR, and bit 0 is 0 in both",
    ),
    (
        &["pready_o"],
        "the APB front never waits: the line is 1 at all times",
    ),
    (&["machine.expired_q"], INSTANCE),
    (&["machine.early_q"], INSTANCE),
    (&["barrier_regs.vhd:351"], PARAMETER),
    (&["barrier_regs.vhd:418 if"], PARAMETER),
    (&["barrier_regs.vhd:419"], PARAMETER),
    (&["barrier_regs.vhd:470 otherwise"], PARAMETER),
    (&["channel_barrier.vhd:268"], PARAMETER),
    (&["level_filter.vhd:21"], PARAMETER),
    (&["synchroniser.vhd:41"], PARAMETER),
];

type Both = [Counts; 2];
const LANGUAGES: [&str; 2] = ["Verilog", "VHDL"];

fn measured(subject: &Subject) -> Option<Both> {
    let folder = tempfile::tempdir().expect("a folder");
    let own = |language: &str| {
        let own = folder.path().join(language);
        std::fs::create_dir(&own).expect("a folder of its own");
        own
    };
    let verilog = coverage::verilog(subject, &own("verilog"));
    let verilog = or_skip(subject.name, verilog)?;
    let vhdl = or_skip(subject.name, coverage::vhdl(subject, &own("vhdl")))?;
    compare(subject, &verilog.trace, &vhdl.trace);
    Some([verilog, vhdl])
}

fn compare(subject: &Subject, verilog: &str, vhdl: &str) {
    let mut edges = (1..).zip(verilog.lines().zip(vhdl.lines()));
    let other = edges.find(|(_, (verilog, vhdl))| verilog != vhdl);
    assert_eq!(other, None, "{}: outputs of Verilog and VHDL", subject.name);
    assert_eq!(verilog.lines().count(), subject.stimulus.lines().count());
    assert_eq!(verilog.len(), vhdl.len());
}

/// Returns the numbers of reached points and of all points of each file, by file name without extension.
fn by_file(points: &Points) -> BTreeMap<&str, (usize, usize)> {
    let mut files = BTreeMap::<&str, (usize, usize)>::new();
    for (name, times) in points {
        let file = name.split('.').next().unwrap_or(name);
        let (reached, all) = files.entry(file).or_default();
        *all += 1;
        *reached += usize::from(*times > 0);
    }
    files
}

fn missed(points: &Points) -> impl Iterator<Item = String> {
    let never = points.iter().filter(|(_, times)| **times == 0);
    never.map(|(name, _)| name.clone())
}

fn reason(hole: &str) -> Option<&'static str> {
    let matches = |parts: &[&str]| parts.iter().all(|part| hole.contains(part));
    let kept = KEPT.iter().find(|(parts, _)| matches(parts));
    kept.map(|(_, reason)| *reason)
}

/// Returns the names of unreached points without "rises" and "falls"; adjacent bits are combined to a range.
fn ranges(names: &BTreeSet<String>) -> Vec<String> {
    let mut bits = BTreeMap::<&str, BTreeSet<u32>>::new();
    for name in names {
        let name = name.trim_end_matches(" rises").trim_end_matches(" falls");
        let parts = name
            .strip_suffix(']')
            .and_then(|name| name.rsplit_once('['));
        match parts.and_then(|(path, bit)| Some((path, bit.parse().ok()?))) {
            Some((path, bit)) => drop(bits.entry(path).or_default().insert(bit)),
            None => drop(bits.entry(name).or_default()),
        }
    }
    let range = |(path, bits): (&str, BTreeSet<u32>)| match (bits.first(), bits.last()) {
        (Some(low), Some(high)) if low == high => format!("{path}[{low}]"),
        (Some(low), Some(high)) if (high - low) as usize + 1 == bits.len() => {
            format!("{path}[{high}:{low}]")
        }
        (Some(_), _) => format!("{path}{bits:?}"),
        _ => path.to_owned(),
    };
    bits.into_iter().map(range).collect()
}

/// Returns the coverage tables in Markdown, and the unreached points for which [`KEPT`] has no reason.
fn tables(designs: &[(&'static str, Both)]) -> (String, Vec<String>) {
    let files = |of: fn(&Counts) -> &Points| {
        [0, 1].map(|language| added(designs.iter().map(|(_, both)| of(&both[language]).clone())))
    };
    let (lines, branches) = (
        files(|counts| &counts.lines),
        files(|counts| &counts.branches),
    );
    let [lines_of, arms_of] =
        [&lines, &branches].map(|points| [0, 1].map(|at| by_file(&points[at])));
    let cell = |of: Option<&(usize, usize)>| {
        of.map_or_else(String::new, |(reached, all)| format!("{reached} of {all}"))
    };
    let mut text = "| file | lines, Verilog | branches, Verilog | lines, VHDL | branches, VHDL |\n|---|---|---|---|---|\n".to_owned();
    let names: BTreeSet<_> = lines_of.iter().flat_map(|of| of.keys()).collect();
    for name in names {
        let [a, b, c, d] =
            [&lines_of[0], &arms_of[0], &lines_of[1], &arms_of[1]].map(|of| cell(of.get(name)));
        text += &format!("| {name} | {a} | {b} | {c} | {d} |\n");
    }
    text += "\n| design | toggles, Verilog | states and steps, Verilog | toggles, VHDL | states and steps, VHDL |\n|---|---|---|---|---|\n";
    for (name, both) in designs {
        let of = both.each_ref().map(|counts| {
            let states = match counts.states.all {
                0 => "none".to_owned(),
                all => format!("{} of {all}", counts.states.reached()),
            };
            format!(
                "{} of {} | {states}",
                counts.toggles.reached(),
                counts.toggles.all
            )
        });
        text += &format!("| {name} | {} |\n", of.join(" | "));
    }
    let mut holes: BTreeSet<String> = lines.iter().chain(&branches).flat_map(missed).collect();
    for (_, both) in designs {
        for (counts, language) in both.iter().zip(LANGUAGES) {
            let missed = counts.toggles.missed.iter().chain(&counts.states.missed);
            holes.extend(missed.map(|hole| format!("{language} {hole}")));
        }
    }
    let mut kept = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut unexplained = Vec::new();
    for hole in holes {
        match reason(&hole) {
            Some(reason) => drop(kept.entry(reason).or_default().insert(hole)),
            None => unexplained.push(hole),
        }
    }
    text += "\n| not reached | because |\n|---|---|\n";
    for (reason, holes) in kept {
        let ranges = ranges(&holes);
        let all = ranges.iter().map(|name| format!("`{name}`"));
        text += &format!("| {} | {reason} |\n", all.collect::<Vec<_>>().join(", "));
    }
    (text, unexplained)
}

/// The lines of COVERAGE.md between which the tables are.
const MARKS: [&str; 2] = [
    "<!-- measured by tests/coverage.rs -->\n",
    "<!-- end of what is measured -->",
];

/// Applies the stimuli of all designs. To run only this test: `cargo test -p hdl --test coverage -- --ignored --nocapture`.
/// The new tables are written to the target folder.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_point_is_reached_or_has_a_reason_and_the_tables_are_those_of_the_document() {
    let subjects = subjects::all();
    let mut designs = Vec::new();
    for subject in &subjects {
        let Some(both) = measured(subject) else {
            return;
        };
        designs.push((subject.name, both));
    }
    let (tables, unexplained) = tables(&designs);
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coverage.md");
    std::fs::write(&left, &tables).expect("written");
    println!("{tables}\nThese tables are in {}", left.display());
    assert!(unexplained.is_empty(), "not reached: {unexplained:#?}");
    let document = include_str!("../COVERAGE.md");
    let (_, rest) = document.split_once(MARKS[0]).expect("the first mark");
    let (old, _) = rest.split_once(MARKS[1]).expect("the last mark");
    assert!(
        old == tables,
        "COVERAGE.md has other tables than {}",
        left.display()
    );
}

#[test]
fn every_line_branch_and_bit_of_version_1_in_vhdl_is_reached() {
    let subject = subjects::toggle(4000);
    let folder = tempfile::tempdir().expect("a folder");
    let Some(counts) = or_skip(subject.name, coverage::vhdl(&subject, folder.path())) else {
        return;
    };
    let own = |points: &Points| {
        let names = missed(points);
        // Functions and synchroniser stages that only other designs use are omitted.
        let own = names
            .filter(|name| !name.starts_with("barrier_logic") && !name.starts_with("synchroniser"));
        own.filter(|name| reason(name).is_none())
            .collect::<Vec<_>>()
    };
    assert_eq!(own(&counts.lines), [""; 0]);
    assert_eq!(own(&counts.branches), [""; 0]);
    assert_eq!(
        (&counts.toggles.missed, &counts.states.missed),
        (&vec![], &vec![])
    );
    assert!(counts.toggles.all > 50, "{:?}", counts.toggles);
}

/// The proofs use the VHDL as GHDL synthesises it; this test simulates it.
#[test]
fn the_vhdl_in_a_simulator_does_what_the_verilog_does() {
    common::each(&subjects::short(), |subject| {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let verilog = or_skip(subject.name, coverage::verilog_trace(subject, one.path()));
        let vhdl = or_skip(subject.name, coverage::vhdl_trace(subject, two.path()));
        if let (Some(verilog), Some(vhdl)) = (verilog, vhdl) {
            compare(subject, &verilog, &vhdl);
        }
    });
}
