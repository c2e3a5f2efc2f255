//! The stimuli that compare the RTL with the model reach every line of the RTL.

#[allow(
    dead_code,
    unused_imports,
    reason = "the stimuli alone, without the comparison"
)]
#[path = "common/channels/mod.rs"]
mod channels;
mod common;

use channels::LEASE_BITS;
use common::or_skip;
use common::stimulus::{self, Edge};
use fpga_model::channels::ChannelMachine;
use hdl::{
    CHANNEL_RTL, CHANNEL_TRACE_BENCH, EUREKA_RTL, EUREKA_TRACE_BENCH, RTL, TRACE_BENCH, lines,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The other benches' inputs, and a barrier that releases now and then.
fn eureka(edges: &[Edge]) -> String {
    let edges = edges.iter().enumerate();
    edges.fold(String::new(), |mut text, (number, edge)| {
        let release = u8::from(number / 50 % 2 == 1);
        let _ = writeln!(text, "{} {release} {:x}", u8::from(edge.reset), edge.inputs);
        text
    })
}

/// Returns, per file of the design, the number of reachable lines and the lines that were not reached.
fn reached(lcov: &str) -> BTreeMap<String, (usize, Vec<String>)> {
    let (mut files, mut file) = (BTreeMap::<_, (usize, Vec<_>)>::new(), String::new());
    for line in lcov.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            let path = Path::new(path).file_name();
            file = path.unwrap_or_default().to_string_lossy().into_owned();
        } else if let Some((number, times)) =
            line.strip_prefix("DA:").and_then(|l| l.split_once(','))
        {
            let (all, missed) = files.entry(file.clone()).or_default();
            *all += 1;
            if times == "0" {
                missed.push(number.to_owned());
            }
        }
    }
    files.retain(|name, _| !name.ends_with("_tb.v"));
    files
}

/// Compiles C++ for a minute; run alone: `cargo test -p hdl --test lines -- --ignored --nocapture`.
/// The file for lcov's tools is left in the target folder.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_line_of_the_rtl_is_reached() {
    let edges = stimulus::random(4, 4, 20_000);
    let blank = ChannelMachine::new(4, 5).expect("a legal size");
    let blank = blank.with_lease_bits(LEASE_BITS);
    let mut members = channels::directed(blank);
    members.extend(channels::random(blank, 40_000));
    let wires: &[(&str, usize)] = &[("N", 4), ("FILTER", 4)];
    let lines_of_five: &[(&str, usize)] = &[("N", 4), ("LEASE_BITS", LEASE_BITS as usize)];
    let plays = [
        (TRACE_BENCH, &RTL[..], wires, stimulus::text(&edges)),
        (EUREKA_TRACE_BENCH, &EUREKA_RTL[..], wires, eureka(&edges)),
        (
            CHANNEL_TRACE_BENCH,
            &CHANNEL_RTL[..],
            lines_of_five,
            channels::text(&members, &blank),
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut counts = Vec::new();
    for (bench, rtl, parameters, stimulus) in plays {
        let own = folder.path().join(bench.name());
        std::fs::create_dir(&own).expect("a folder of its own");
        let counted = lines::count(&bench, rtl, parameters, &stimulus, &own);
        let Some(counted) = or_skip(bench.name(), counted) else {
            return;
        };
        counts.push(counted);
    }
    let lcov = lines::lcov(&counts, folder.path()).expect("one file of all");
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtl.info");
    std::fs::write(&left, &lcov).expect("written");
    println!("lcov: {}", left.display());
    let files = reached(&lcov);
    for (file, (all, missed)) in &files {
        println!("{file}: {} of {all} lines", all - missed.len());
    }
    let missed: Vec<_> = files
        .into_iter()
        .filter(|(_, (_, missed))| !missed.is_empty())
        .collect();
    assert!(missed.is_empty(), "lines that were not reached: {missed:?}");
}
