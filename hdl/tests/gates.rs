//! Tests of the RTL as a next-state function: from any state of the flip-flops,
//! one clock edge of the RTL gives the same next state as one edge of the model.
//! Designs with state outside these flip-flops must be refused.

#[path = "common/channels/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the comparison of traces is another test's"
)]
mod channels;
mod common;

use common::{cache, or_skip, tool_errors};
use fpga_model::channels::{ChannelGates as _, ChannelMachine, MAX_CHANNELS};
use fpga_model::{Gates as _, Registers, ToggleMachine};
use hdl::cosim::{ChannelDesign, ChannelRtl, CosimError, Design, Rtl};
use hdl::{CHANNEL_RTL, RTL, Source};

/// Creates a folder with these files; in `file` one expression is replaced.
fn altered(sources: &[Source], file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for source in sources {
        let text = if source.name() == file {
            assert!(source.text.contains(from), "{from} in {file}");
            source.text.replace(from, to)
        } else {
            source.text.to_owned()
        };
        std::fs::write(folder.path().join(source.name()), text).expect("a file");
    }
    folder
}

/// Returns the error with which a design was refused; prints a message and returns `None` if Verilator is missing.
fn refusal<T>(built: Result<T, CosimError>) -> Option<CosimError> {
    match built {
        Ok(_) => panic!("it should have been refused"),
        Err(CosimError::Tool(error)) => or_skip("a refused design", Err(error)),
        Err(error) => Some(error),
    }
}

#[test]
fn an_edge_of_the_rtl_from_any_state_is_an_edge_of_the_model() {
    for nodes in [1, 4, 60, 64] {
        let built = Rtl::build(Design::toggle_barrier(), nodes, &cache());
        let Some(rtl) = or_skip("the RTL as gates", tool_errors(built)) else {
            return;
        };
        let blank = ToggleMachine::new(nodes).expect("a legal node count");
        let mut random = hdl::random::Random(nodes as u64 + 1);
        let (mut high, mut toggled) = (0, 0);
        for turn in 0..100_000 {
            let output = if random.next_u64().is_multiple_of(2) {
                u64::MAX
            } else {
                0
            };
            // Random levels rarely agree. So one in four tests sets all wires to one level,
            // and one in four sets all wires except one.
            let stage2 = match turn % 4 {
                0 => !output,
                1 => !output ^ 1 << (turn / 4 % nodes),
                _ => random.next_u64(),
            };
            let registers = Registers {
                stage1: random.next_u64(),
                stage2,
                output,
                releases: 0,
            };
            let mut model = blank.load(registers);
            let (before, inputs) = (model.registers(), random.next_u64() & blank.wires());
            let rtl = rtl.edge(before, inputs);
            model.step(inputs);
            let after = model.registers();
            high += u32::from(before.output != 0);
            toggled += u32::from(before.output != after.output);
            assert_eq!(
                Registers {
                    releases: 0,
                    ..after
                },
                rtl,
                "{nodes} nodes, {before:?}, {inputs:x}"
            );
        }
        assert!(high > 10_000 && toggled > 10_000, "{high} {toggled}");
        assert_eq!(rtl.edges(), 100_000);
    }
}

#[test]
fn a_design_with_more_flip_flops_is_refused() {
    let folder = altered(
        &RTL,
        "toggle_machine.v",
        "wire toggle   = level_q ? all_low : all_high;",
        "wire toggle   = was_q; reg was_q = 1'b0; always @(posedge clk_i) was_q <= !was_q && (level_q ? all_low : all_high);",
    );
    let design = Design::of_folder(folder.path()).expect("a design");
    let built = Rtl::build(design, 4, &cache());
    if let Some(error) = refusal(built) {
        assert!(matches!(error, CosimError::HiddenState { .. }), "{error}");
    }
}

#[test]
fn a_design_whose_wires_to_the_nodes_are_not_one_is_refused() {
    let folder = altered(
        &RTL,
        "toggle_barrier.v",
        "{N{level}};",
        "{1'b0, {N-1{level}}};",
    );
    let design = Design::of_folder(folder.path()).expect("a design");
    let built = Rtl::build(design, 4, &cache());
    if let Some(error) = refusal(built) {
        let torn = matches!(
            error,
            CosimError::TornOutputs {
                outputs: 0b0111,
                ..
            }
        );
        assert!(torn, "{error}");
    }
}

#[test]
fn a_folder_without_verilog_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Design::of_folder(folder.path()).expect_err("there is nothing");
    assert_eq!(
        error.to_string(),
        format!(
            "there are no Verilog files (*.v) in {}",
            folder.path().display()
        )
    );
}

#[test]
fn an_edge_of_the_channels_is_an_edge_of_the_model() {
    compare_channels(3, 5_000);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_edges_of_the_channels_at_each_size_are_edges_of_the_model() {
    for nodes in [3, 60, 64] {
        compare_channels(nodes, 20_000);
    }
}

/// Compares the model with the next-state function, which gets the model's flip-flops at each edge.
fn compare_channels(nodes: usize, random_edges: usize) {
    let built = ChannelRtl::build(ChannelDesign::channel_barrier(), nodes, &cache());
    let Some(rtl) = or_skip("the channels as gates", tool_errors(built)) else {
        return;
    };
    let blank = ChannelMachine::new(nodes, MAX_CHANNELS).expect("a legal size");
    // The stimulus is made for a short lease; the board's long lease would not expire within it.
    let short = blank.with_lease_bits(channels::LEASE_BITS);
    let life = channels::directed(short).into_iter();
    let life = life.chain(channels::random(short, random_edges));
    let (mut model, mut edges) = (blank, 0);
    for edge in life.filter(|edge| !edge.reset) {
        let after = rtl.edge(&model, &edge.pins);
        model.step(&edge.pins);
        assert_eq!(after, model, "{nodes} nodes, edge {edges}");
        edges += 1;
    }
    let released = (0..MAX_CHANNELS).filter_map(|c| model.channel(c));
    let released = released.filter(|c| c.releases > 1).count();
    assert!(released > 1, "{nodes} nodes: {model:?}");
    assert_eq!(rtl.edges(), edges);
}

#[test]
fn channels_with_more_flip_flops_are_refused() {
    let folder = altered(
        &CHANNEL_RTL,
        "channel_machine.v",
        "wire         toggle  = (|mask_q) && arrived == mask_q;",
        "reg was_q = 1'b0; wire toggle = (|mask_q) && arrived == mask_q && !was_q; always @(posedge clk_i) was_q <= |line_i;",
    );
    let design = ChannelDesign::of_folder(folder.path()).expect("a design");
    if let Some(error) = refusal(ChannelRtl::build(design, 4, &cache())) {
        assert!(
            matches!(error, CosimError::HiddenChannelState { .. }),
            "{error}"
        );
    }
}

#[test]
fn channels_whose_releases_are_not_their_levels_are_refused() {
    let folder = altered(
        &CHANNEL_RTL,
        "channel_barrier.v",
        "assign release_o = level;",
        "assign release_o = ~level;",
    );
    let design = ChannelDesign::of_folder(folder.path()).expect("a design");
    if let Some(error) = refusal(ChannelRtl::build(design, 4, &cache())) {
        assert!(
            matches!(error, CosimError::OtherOutputs { edge: 1 }),
            "{error}"
        );
    }
}

/// Opens, runs and closes designs of several sizes in concurrent threads: their states must be independent.
#[test]
fn designs_that_are_open_side_by_side_do_not_meet() {
    let built = Rtl::build(Design::toggle_barrier(), 2, &cache());
    if or_skip("designs side by side", tool_errors(built)).is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..10 {
                    let nodes = [1, 2, 4][(thread + round) % 3];
                    let rtl = Rtl::build(Design::toggle_barrier(), nodes, &cache());
                    let rtl = rtl.expect("it was there a moment ago");
                    let wires = u64::MAX >> (64 - nodes);
                    let mut now = Registers::default();
                    for _ in 0..3 {
                        now = rtl.edge(now, wires);
                    }
                    assert_eq!(now.output, wires, "{nodes} nodes");
                }
            });
        }
    });
}
