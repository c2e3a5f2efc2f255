//! Tests of version 1: model and RTL are equal, at each clock edge and in each flip-flop, under two simulators.

mod common;

use common::stimulus::{self, Coverage, Edge};
use common::{cache, or_skip};
use hdl::icarus;
use hdl::tool::ToolError;
use hdl::verilator::Verilated;

fn check(
    what: &str,
    size: (usize, u16),
    edges: &[Edge],
    coverage: &mut Coverage,
    run: impl FnOnce(&str) -> Result<String, ToolError>,
) -> bool {
    let Some(trace) = or_skip(what, run(&stimulus::text(edges))) else {
        return false;
    };
    stimulus::compare(what, size, edges, &trace, coverage);
    let (nodes, samples) = size;
    println!(
        "{what}: {nodes} nodes, {samples} samples, {} edges agree",
        edges.len()
    );
    true
}

/// Returns the RTL's parameters for this number of nodes and of filter samples.
fn parameters((nodes, samples): (usize, u16)) -> [(&'static str, usize); 2] {
    [("N", nodes), ("FILTER", samples.into())]
}

/// Prints the coverage at this size, and asserts that every state and transition was reached.
fn said(what: &str, (nodes, samples): (usize, u16), coverage: &Coverage) {
    let said = format!("{what}: {nodes} nodes, {samples} samples, {coverage:?}");
    println!("{said}");
    assert!(coverage.is_complete(nodes), "{said}");
}

/// Numbers of nodes and of filter samples: one node, the prototype's number, and a filter.
const SIZES: [(usize, u16); 4] = [(1, 1), (60, 1), (3, 4), (2, 17)];

/// The other sizes: the most wires, each width of the filter's count, and few and many nodes.
const MORE_SIZES: [(usize, u16); 9] = [
    (2, 1),
    (7, 1),
    (64, 1),
    (7, 2),
    (60, 4),
    (5, 7),
    (2, 32),
    (2, 128),
    (2, 256),
];

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge_under_icarus() {
    under_icarus(&SIZES, 5_000);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_rtl_does_what_the_model_does_at_all_sizes_under_icarus() {
    under_icarus(&[&SIZES[..], &MORE_SIZES].concat(), 20_000);
}

fn under_icarus(sizes: &[(usize, u16)], random_edges: usize) {
    for &size in sizes {
        let mut coverage = Coverage::default();
        let folder = tempfile::tempdir().expect("a folder");
        let mut play = |what: &str, edges: &[Edge]| {
            check(what, size, edges, &mut coverage, |text| {
                icarus::trace(&parameters(size), text, folder.path())
            })
        };
        let (nodes, samples) = size;
        if !play(
            "Icarus, random",
            &stimulus::random(nodes, samples, random_edges),
        ) || !play("Icarus, directed", &stimulus::directed(nodes, samples))
        {
            return;
        }
        said("Icarus", size, &coverage);
    }
}

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge_under_verilator() {
    under_verilator(&[(3, 1), (60, 4)], 30_000);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_rtl_does_what_the_model_does_at_many_edges_under_verilator() {
    under_verilator(&[(3, 1), (60, 1), (60, 4)], 300_000);
}

fn under_verilator(sizes: &[(usize, u16)], random_edges: usize) {
    for &size in sizes {
        let mut coverage = Coverage::default();
        let folder = tempfile::tempdir().expect("a folder");
        let Some(barrier) = or_skip(
            "Verilated RTL",
            Verilated::build(&parameters(size), &cache()),
        ) else {
            return;
        };
        let mut play = |what: &str, edges: &[Edge]| {
            assert!(check(what, size, edges, &mut coverage, |text| barrier
                .trace(text, folder.path())));
        };
        let (nodes, samples) = size;
        play(
            "Verilator, random",
            &stimulus::random(nodes, samples, random_edges),
        );
        play("Verilator, directed", &stimulus::directed(nodes, samples));
        if nodes == 3 {
            play("Verilator, exhaustive", &stimulus::exhaustive(nodes, 5));
        }
        let speed = barrier.bench(200_000).expect("a bench");
        assert!(speed.releases > 0);
        said("Verilator", size, &coverage);
    }
}
