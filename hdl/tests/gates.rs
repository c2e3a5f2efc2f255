//! The RTL as gates: from any flip-flops, one edge of it is one edge of the model; and designs that are no gates are told apart.

mod common;

use common::{cache, or_skip, tool_errors};
use fpga_model::{Gates as _, Registers, ToggleMachine};
use hdl::RTL;
use hdl::cosim::{CosimError, Design, Rtl};

/// Verilated designs share statics of Verilator's run-time library with whatever else the process has loaded, so one test at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder with the RTL, one expression exchanged.
fn altered(file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for source in RTL {
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

/// Why a design was refused; `None` after a line that says that there is no Verilator.
fn refusal(built: Result<Rtl, CosimError>) -> Option<CosimError> {
    match built {
        Ok(_) => panic!("it should have been refused"),
        Err(CosimError::Tool(error)) => or_skip("a refused design", Err(error)),
        Err(error) => Some(error),
    }
}

#[test]
fn an_edge_of_the_rtl_from_any_state_is_an_edge_of_the_model() {
    let _alone = alone();
    for nodes in [1, 4, 60, 64] {
        let built = Rtl::build(Design::toggle_barrier(), nodes, &cache());
        let Some(rtl) = or_skip("the RTL as gates", tool_errors(built)) else {
            return;
        };
        let blank = ToggleMachine::new(nodes).expect("a legal node count");
        let mut random = common::stimulus::Random(nodes as u64 + 1);
        let (mut high, mut toggled) = (0, 0);
        for turn in 0..100_000 {
            let output = if random.next().is_multiple_of(2) {
                u64::MAX
            } else {
                0
            };
            // Random wires hardly ever all agree, so a part of the turns makes them.
            let stage2 = match turn % 4 {
                0 => !output,
                1 => !output ^ 1 << (turn / 4 % nodes),
                _ => random.next(),
            };
            let registers = Registers {
                stage1: random.next(),
                stage2,
                output,
                releases: 0,
            };
            let mut model = blank.load(registers);
            let (before, inputs) = (model.registers(), random.next() & blank.wires());
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
    let _alone = alone();
    let folder = altered(
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
    let _alone = alone();
    let folder = altered("toggle_barrier.v", "{N{level}};", "{1'b0, {N-1{level}}};");
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
