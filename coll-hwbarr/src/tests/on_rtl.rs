//! Tests of barriers on the Verilated RTL, and on broken RTL, which shows that the RTL is used.

use super::channels::{consistent_barriers, part, pass};
use super::*;
use hdl::{CHANNEL_RTL, RTL, Source};

/// Returns the cache folder of the translated RTL, which the tests of the packages `hdl` and `tests` use too.
pub(super) fn cache() -> PathBuf {
    // The program is `target/debug/deps/NAME`.
    let program = std::env::current_exe().expect("the program's path");
    let target = program.ancestors().nth(3).expect("the target folder");
    target.join("tmp/hdl")
}

/// Returns true if the tools for the translation are installed; otherwise prints what is missing.
fn can_translate() -> bool {
    for tool in [hdl::tool::Tool::VERILATOR, hdl::tool::Tool::CXX] {
        if !tool.is_there() {
            let missing = hdl::tool::ToolError::Missing(tool);
            assert!(
                std::env::var_os("PORTCULLIS_TEST_NO_SKIPS").is_none(),
                "{missing}"
            );
            eprintln!("SKIPPED: a job on the RTL: {missing}");
            return false;
        }
    }
    true
}

#[test]
fn the_rtl_counts_as_many_releases_as_there_were_barriers() {
    counts_releases(&[1, 4]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_rtl_of_60_nodes_counts_as_many_releases_as_there_were_barriers() {
    counts_releases(&[60]);
}

fn counts_releases(sizes: &[u32]) {
    if !can_translate() {
        return;
    }
    for &ranks in sizes {
        let (files, cache) = (Files::new(), cache());
        let (report, vcd) = (files.report(), files.vcd());
        let set = [
            ("port", "rtl"),
            ("rtl_cache", text(&cache)),
            ("sim_report", text(&report)),
            ("sim_vcd", text(&vcd)),
        ];
        run(ranks, &set, |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            for round in 0..20 {
                barrier::pass(&world, Form::Mixed, round);
            }
        });
        // The end of the job is a barrier, too.
        assert_eq!(files.count("releases"), 21);
        assert_eq!(files.count("barriers"), 21);
        // Each release takes three clock edges; the releases of the self-test count, too.
        assert!(files.count("rtl_edges") >= 3 * 23);
        let wave = std::fs::read_to_string(&vcd).expect("a waveform");
        assert!(wave.contains("$enddefinitions"), "{wave}");
    }
}

/// The world and its halves each have a channel, which is taken, tested, used and freed on the RTL.
#[test]
fn three_communicators_have_channels_on_the_rtl() {
    have_channels(&["0"]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn communicators_of_two_nodes_have_channels_on_the_rtl() {
    have_channels(&["2"]);
}

fn have_channels(numbers_of_nodes: &[&str]) {
    if !can_translate() {
        return;
    }
    for &nodes in numbers_of_nodes {
        let (files, cache) = (Files::new(), cache());
        let report = files.report();
        let set = [
            ("port", "rtl"),
            ("version", "2"),
            ("rtl_cache", text(&cache)),
            ("sim_nodes", nodes),
            ("sim_report", text(&report)),
            // Beside other load four ranks and the RTL may not run for longer than the default of 200 ms.
            ("timeout", "20s"),
        ];
        run(4, &set, |engine| {
            let world = world(engine);
            // With two nodes the hardware serves a half only if the half includes a leader of each node.
            let half = part(&world, world.rank() % 2);
            assert_eq!(verdict(&world), Ok(()));
            let served = nodes == "0" || world.rank().is_multiple_of(2);
            let half_verdict = verdict(&half);
            assert_eq!(half_verdict.is_ok(), served, "{half_verdict:?}");
            pass(&half, 10);
            pass(&world, 10);
            pass(&half, 10);
        });
        // The barriers of the served halves and of `MPI_COMM_WORLD`, and the one at the job's end.
        let halves = if nodes == "0" { 2 } else { 1 };
        assert_eq!(consistent_barriers(&files), halves * 20 + 10 + 1);
        // A filter delays each bit of a frame, and each barrier takes three clock edges.
        assert!(files.count("rtl_edges") > 3 * 51);
        let text = std::fs::read_to_string(files.report()).expect("a report");
        assert!(text.contains("\"machine\": \"rtl\""), "{text}");
    }
}

/// The short form tests the same fault in version 1, and another fault of the channels.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn channels_that_do_not_wait_for_a_late_node_are_refused() {
    if !can_translate() {
        return;
    }
    let message = said_of(
        &CHANNEL_RTL,
        "channel_machine.v",
        "(|mask_q) && arrived == mask_q;",
        "(|mask_q) && arrived[N-2:0] == mask_q[N-2:0];",
    );
    assert!(message.contains("before"), "{message}");
}

#[test]
fn channels_that_no_node_can_program_are_refused() {
    if !can_translate() {
        return;
    }
    let message = said_of(
        &CHANNEL_RTL,
        "channel_frame.v",
        "assign right_o   = ~|check_q;",
        "assign right_o   = 1'b0;",
    );
    assert!(message.contains("wrong check"), "{message}");
}

/// Returns the component's message for RTL with one expression of `file` replaced.
fn said_of(sources: &[Source], file: &str, from: &str, to: &str) -> String {
    let version = if sources.len() == RTL.len() { "1" } else { "2" };
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
    let (port, cache) = (format!("rtl:{}", text(folder.path())), cache());
    let set = [
        ("port", port.as_str()),
        ("version", version),
        ("rtl_cache", text(&cache)),
        ("timeout", "300ms"),
    ];
    let message = run(2, &set, |engine| {
        verdict(&world(engine)).expect_err("it should have refused")
    });
    message[0].clone()
}

#[test]
fn rtl_that_does_not_wait_for_a_late_node_is_refused() {
    if !can_translate() {
        return;
    }
    let message = said_of(&RTL, "toggle_machine.v", "&level_i;", "&level_i[N-2:0];");
    assert!(message.contains("before"), "{message}");
}

#[test]
fn rtl_that_never_releases_is_refused() {
    if !can_translate() {
        return;
    }
    let message = said_of(
        &RTL,
        "toggle_machine.v",
        "level_q <= ~level_q;",
        "level_q <= level_q;",
    );
    assert!(message.contains("has not followed"), "{message}");
}

#[test]
fn rtl_that_oscillates_is_refused_and_hangs_no_node() {
    if !can_translate() {
        return;
    }
    said_of(
        &RTL,
        "toggle_machine.v",
        "level_q ? all_low : all_high",
        "1'b1",
    );
}

#[test]
fn verilog_that_is_not_there_is_named() {
    let message = run(2, &[("port", "rtl:/nonexistent/verilog")], |engine| {
        verdict(&world(engine)).expect_err("it should have refused")
    });
    assert!(message[0].contains("/nonexistent/verilog"), "{message:?}");
}
