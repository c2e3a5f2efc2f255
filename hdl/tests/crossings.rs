//! Test that every asynchronous wire ends in one flip-flop, which only the next stage of the synchroniser reads.

mod common;

use common::or_skip;
use hdl::formal::Design;
use hdl::tool::{self, Tool, ToolError};
use hdl::{eureka_claims, register_claims};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A one-bit flip-flop, as the net numbers of its input and output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stage {
    d: u64,
    q: u64,
}

/// A flattened netlist: the bits of `node_i`, the flip-flops, and how many cell inputs and ports read each bit.
struct Netlist {
    wires: Vec<u64>,
    stages: Vec<Stage>,
    readers: BTreeMap<u64, usize>,
}

fn netlist(design: &Design, parameters: &str, folder: &Path) -> Result<Netlist, ToolError> {
    let mut names = Vec::new();
    for (name, text) in &design.verilog {
        tool::write(&folder.join(name), text)?;
        names.push(*name);
    }
    let top = design.top;
    let script = format!(
        "read_verilog {}\nhierarchy -check -top {top} {parameters}\nproc\nflatten\nopt -full\nrename -top {top}\nwrite_json netlist.json\n",
        names.join(" ")
    );
    tool::write(&folder.join("netlist.ys"), &script)?;
    let limit = Duration::from_secs(300);
    Tool::YOSYS.run("a netlist", ["-q", "-s", "netlist.ys"], folder, limit)?;
    let text = tool::read(&folder.join("netlist.json"))?;
    let json: Value = serde_json::from_str(&text).expect("yosys writes JSON");
    Ok(read(&json["modules"][top]))
}

fn bits(value: &Value) -> Vec<u64> {
    let bits = value.as_array().map(Vec::as_slice).unwrap_or_default();
    // In yosys' JSON a net is a number and a constant bit a string; the constant becomes 0 here.
    bits.iter().map(|bit| bit.as_u64().unwrap_or(0)).collect()
}

fn read(module: &Value) -> Netlist {
    let mut readers = BTreeMap::new();
    let mut stages = Vec::new();
    for cell in module["cells"].as_object().expect("cells").values() {
        let connections = cell["connections"].as_object().expect("connections");
        for (port, bit_list) in connections {
            if cell["port_directions"][port] == "input" {
                for bit in bits(bit_list) {
                    *readers.entry(bit).or_default() += 1;
                }
            }
        }
        if cell["type"]
            .as_str()
            .is_some_and(|kind| kind.contains("dff"))
        {
            let pairs = bits(&connections["D"])
                .into_iter()
                .zip(bits(&connections["Q"]));
            stages.extend(pairs.map(|(d, q)| Stage { d, q }));
        }
    }
    for port in module["ports"].as_object().expect("ports").values() {
        if port["direction"] == "output" {
            for bit in bits(&port["bits"]) {
                *readers.entry(bit).or_default() += 1;
            }
        }
    }
    Netlist {
        wires: bits(&module["ports"]["node_i"]["bits"]),
        stages,
        readers,
    }
}

/// Returns the length of the chain of flip-flops from net `wire` to the first net with several readers.
fn stages(netlist: &Netlist, wire: u64) -> usize {
    let mut net = wire;
    let mut count = 0;
    while let [stage] = netlist
        .stages
        .iter()
        .filter(|stage| stage.d == net)
        .collect::<Vec<_>>()
        .as_slice()
    {
        if netlist.readers.get(&net) != Some(&1) {
            break;
        }
        net = stage.q;
        count += 1;
    }
    count
}

fn check(design: &Design, parameters: &str, expected: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(netlist) = or_skip("crossings", netlist(design, parameters, folder.path())) else {
        return;
    };
    assert!(!netlist.wires.is_empty());
    for &wire in &netlist.wires {
        let found = stages(&netlist, wire);
        assert_eq!(found, expected, "{} {parameters}", design.top);
    }
}

#[test]
fn every_wire_of_a_node_passes_its_stages_before_anything_reads_it() {
    for (parameters, expected) in [("", 2), ("-chparam SYNC 3", 3), ("-chparam SYNC 0", 0)] {
        check(&Design::toggle_barrier(), parameters, expected);
        check(&eureka_claims::design(), parameters, expected);
        check(&register_claims::design(), parameters, expected);
    }
}

#[test]
fn a_first_stage_with_two_readers_is_found() {
    let broken = hdl::formal::Mutant {
        fault: "the machine reads the first stage of a wire",
        file: "synchroniser.v",
        from: "assign level_o = stage2_q;",
        to: "assign level_o = {stage2_q[N-1:1], stage1_q[0] & stage2_q[0]};",
    };
    let design = Design::toggle_barrier().mutated(broken).expect("one place");
    let folder = tempfile::tempdir().expect("a folder");
    let Some(netlist) = or_skip("crossings", netlist(&design, "", folder.path())) else {
        return;
    };
    let short = netlist
        .wires
        .iter()
        .filter(|&&wire| stages(&netlist, wire) < 2);
    assert_eq!(short.count(), 1);
}
