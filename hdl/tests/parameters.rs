//! Tests of parameters, in Verilog and VHDL: legal values elaborate without a warning, illegal ones are refused.

mod common;

use common::{each, or_skip};
use hdl::elaboration::{Elaborator, Parameters};
use hdl::formal::Design;
use hdl::tool::Outcome;
use hdl::{channel_claims, eureka_claims, register_claims};

/// Elaborates the design; prints a message and returns `None` if the tool is missing.
fn elaborate(tool: Elaborator, design: &Design, parameters: Parameters) -> Option<Outcome> {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = tool
        .prepare(design, folder.path())
        .and_then(|()| tool.elaborate(design, parameters, folder.path()));
    or_skip(&format!("elaboration by {tool:?}"), outcome)
}

/// Tests the bounds of every range, and values at which a width changes.
#[test]
fn every_legal_parameter_is_clean_under_the_default_warnings_of_verilator() {
    let mut cases: Vec<(Design, Vec<(&str, i64)>)> = Vec::new();
    for nodes in [1, 33, 64] {
        cases.push((Design::toggle_barrier(), vec![("N", nodes), ("FILTER", 4)]));
        cases.push((eureka_claims::design(), vec![("N", nodes), ("FILTER", 4)]));
        cases.push((channel_claims::design(), vec![("N", nodes)]));
    }
    for samples in [1, 2, 3, 5, 16, 17, 32, 33, 128, 129, 256] {
        let parameters = vec![("N", 2), ("FILTER", samples)];
        cases.push((Design::toggle_barrier(), parameters));
    }
    for (channels, lease_bits) in [(1, 4), (5, 31)] {
        let parameters = vec![("N", 4), ("C", channels), ("LEASE_BITS", lease_bits)];
        cases.push((channel_claims::design(), parameters));
    }
    for (nodes, groups, stages, stride, options) in
        [(1, 1, 0, 6, 0), (33, 1, 3, 9, 1), (64, 8, 0, 12, 0)]
    {
        let parameters = vec![
            ("N", nodes),
            ("G", groups),
            ("SYNC", stages),
            ("STRIDE", stride),
            ("STAMPS", options),
            ("PULSE", options),
        ];
        cases.push((register_claims::design(), parameters));
    }
    for bus in register_claims::BUSES {
        cases.push((bus.design(), vec![("ADDRESS", 13), ("N", 4), ("SYNC", 0)]));
    }
    for stages in [0, 3] {
        cases.push((Design::toggle_barrier(), vec![("N", 4), ("SYNC", stages)]));
        cases.push((eureka_claims::design(), vec![("N", 4), ("SYNC", stages)]));
    }
    each(&cases, |(design, parameters)| {
        if let Some(outcome) = elaborate(Elaborator::Verilator, design, parameters) {
            let top = design.top;
            assert!(outcome.success, "{top} {parameters:?}: {}", outcome.log);
        }
    });
}

/// A parameter's name, an illegal value, and the name of the rule that refuses the value.
type Refused = (&'static str, i64, &'static str);

#[test]
fn an_illegal_parameter_is_refused_by_every_tool_in_both_languages() {
    let toggle = Design::toggle_barrier();
    let (eureka, channels) = (eureka_claims::design(), channel_claims::design());
    let registers = register_claims::design();
    let [axi4lite, wishbone, apb] = register_claims::BUSES.map(|bus| bus.design());
    let refused: [(&Design, &[Refused]); 7] = [
        (
            &channels,
            &[
                ("N", 0, "N_must_be_1_to_64"),
                ("N", 65, "N_must_be_1_to_64"),
                ("C", 0, "C_must_be_1_to_5"),
                ("C", 6, "C_must_be_1_to_5"),
                ("LEASE_BITS", 3, "LEASE_BITS_must_be_4_to_31"),
                ("LEASE_BITS", 32, "LEASE_BITS_must_be_4_to_31"),
            ],
        ),
        (
            &registers,
            &[
                ("N", 65, "N_must_be_1_to_64"),
                ("G", 9, "G_must_be_1_to_8"),
                ("SYNC", 4, "SYNC_must_be_0_2_or_3"),
                ("CLOCK_HZ", 100_000_000, "SYNC_must_be_3_at_100_MHz"),
                ("STRIDE", 5, "STRIDE_must_be_6_to_12"),
                ("STAMPS", 2, "STAMPS_must_be_0_or_1"),
                ("PULSE", 2, "PULSE_must_be_0_or_1"),
            ],
        ),
        (&axi4lite, &[("ADDRESS", 12, "ADDRESS_must_be_13_to_19")]),
        (&wishbone, &[("ADDRESS", 20, "ADDRESS_must_be_13_to_19")]),
        (&apb, &[("ADDRESS", 20, "ADDRESS_must_be_13_to_19")]),
        (
            &toggle,
            &[
                ("SYNC", 4, "SYNC_must_be_0_2_or_3"),
                ("FILTER", 0, "FILTER_must_be_1_to_256"),
                ("FILTER", 257, "FILTER_must_be_1_to_256"),
                ("FILTER", 512, "FILTER_must_be_1_to_256"),
                ("N", 0, "N_must_be_1_or_more"),
            ],
        ),
        (
            &eureka,
            &[
                ("SYNC", 4, "SYNC_must_be_0_2_or_3"),
                ("FILTER", 257, "FILTER_must_be_1_to_256"),
                ("N", 0, "N_must_be_1_or_more"),
            ],
        ),
    ];
    let by_tool = |tool| refused.map(|(design, values)| (tool, design, values));
    // GHDL's cases come first, because they take the longest.
    let mut cases = Elaborator::ALL.map(by_tool).concat();
    cases.reverse();
    each(&cases, |&(tool, design, values)| {
        let folder = tempfile::tempdir().expect("a folder");
        let what = format!("elaboration by {tool:?}");
        if or_skip(&what, tool.prepare(design, folder.path())).is_none() {
            return;
        }
        for &(name, value, rule) in values {
            let outcome = tool.elaborate(design, &[(name, value)], folder.path());
            let Some(outcome) = or_skip(&what, outcome) else {
                return;
            };
            let case = format!("{tool:?}, {} with {name} {value}", design.top);
            assert!(!outcome.success, "{case} is not refused");
            let said = match tool {
                // In VHDL, a constant whose range is exceeded checks the rule about two generics.
                Elaborator::Ghdl if name == "CLOCK_HZ" => "value out of range".to_owned(),
                Elaborator::Ghdl => format!("generic \"{}\" is out of bounds", name.to_lowercase()),
                // Verilator's first error names the rule. For the value 0, it may be another error of Verilator.
                Elaborator::Verilator if value == 0 => "%Error".to_owned(),
                Elaborator::Verilator => "_must_be_".to_owned(),
                Elaborator::Icarus | Elaborator::Yosys => rule.to_owned(),
            };
            assert!(outcome.log.contains(&said), "{case}: {}", outcome.log);
        }
    });
}
