//! The model and the RTL are the same machine, edge by edge and flip-flop by flip-flop, under two simulators.

mod common;

use common::stimulus::{self, Coverage, Edge};
use common::{cache, or_skip};
use hdl::icarus;
use hdl::tool::ToolError;
use hdl::verilator::Verilated;

fn check(
    what: &str,
    nodes: usize,
    edges: &[Edge],
    coverage: &mut Coverage,
    run: impl FnOnce(&str) -> Result<String, ToolError>,
) -> bool {
    let Some(trace) = or_skip(what, run(&stimulus::text(edges))) else {
        return false;
    };
    stimulus::compare(what, nodes, edges, &trace, coverage);
    println!("{what}: {nodes} nodes, {} edges agree", edges.len());
    true
}

fn said(what: &str, coverage: &Coverage) {
    println!("{what}: {coverage:?}");
    assert!(coverage.is_complete(), "{what}: {coverage:?}");
}

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge_under_icarus() {
    let mut coverage = Coverage::default();
    for nodes in [1, 2, 7, 60, 64] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut play = |what: &str, edges: &[Edge]| {
            check(what, nodes, edges, &mut coverage, |text| {
                icarus::trace(nodes, text, folder.path())
            })
        };
        if !play("Icarus, random", &stimulus::random(nodes, 20_000))
            || !play("Icarus, directed", &stimulus::directed(nodes))
        {
            return;
        }
    }
    said("Icarus", &coverage);
}

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge_under_verilator() {
    let mut coverage = Coverage::default();
    for nodes in [3, 60] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(barrier) = or_skip("Verilated RTL", Verilated::build(nodes, &cache())) else {
            return;
        };
        let mut play = |what: &str, edges: &[Edge]| {
            assert!(check(what, nodes, edges, &mut coverage, |text| barrier
                .trace(text, folder.path())));
        };
        play("Verilator, random", &stimulus::random(nodes, 300_000));
        play("Verilator, directed", &stimulus::directed(nodes));
        if nodes == 3 {
            play("Verilator, exhaustive", &stimulus::exhaustive(nodes, 5));
        }
        let speed = barrier.bench(2_000_000).expect("a bench");
        assert!(speed.releases > 0);
    }
    said("Verilator", &coverage);
}
