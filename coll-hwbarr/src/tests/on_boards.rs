//! Tests of barriers on simulated cascaded boards.

use super::*;

/// Number of barriers that the end of every job adds.
const LAST: u64 = 1;

const BOARDS: [(&str, &str); 2] = [("port", "sim"), ("boards", "3")];

claims!(&BOARDS, [2, 6, 7, 70]);

#[test]
fn the_root_counts_as_many_releases_as_there_were_barriers() {
    for (ranks, asked, boards, barriers) in [(6, "2", 3, 100), (6, "3", 4, 100), (96, "2", 3, 20)] {
        let files = Files::new();
        let (report, vcd) = (files.report(), files.vcd());
        let set = [
            ("port", "sim"),
            ("boards", asked),
            ("sim_report", text(&report)),
            ("sim_vcd", text(&vcd)),
        ];
        run(ranks, &set, |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            for round in 0..barriers {
                barrier::pass(&world, Form::Mixed, round);
            }
        });
        let made = u64::from(barriers) + LAST;
        assert_eq!(files.count("releases"), made);
        assert_eq!(files.count("barriers"), made);
        assert_eq!(files.count("nodes"), u64::from(ranks));
        assert_eq!(files.count("boards"), boards);
        let wave = std::fs::read_to_string(&vcd).expect("a waveform");
        assert!(wave.contains(&format!("node{:02}", ranks - 1)), "{wave}");
    }
}

#[test]
fn boards_that_are_too_few_are_refused() {
    let refused = |ranks, set: &[(&str, &str)]| {
        run(ranks, set, |engine| verdict(&world(engine)))
            .remove(0)
            .expect_err("it should have refused")
    };
    let message = refused(65, &[("port", "sim")]);
    assert!(
        message.contains(
            "there are 65 ranks, and the barrier has at most 64 wires; coll_hwbarr_boards 2 would"
        ),
        "{message}"
    );
    let message = refused(130, &[("port", "sim"), ("boards", "2")]);
    assert!(
        message.contains("the 2 boards of coll_hwbarr_boards have at most 128 wires"),
        "{message}"
    );
    let message = refused(2, &[("port", "sim"), ("boards", "2"), ("version", "2")]);
    assert!(
        message.contains("cascaded boards are of version 1"),
        "{message}"
    );
    let message = refused(2, &[("port", "rtl"), ("boards", "2")]);
    assert!(message.contains("the RTL is one board"), "{message}");
}
