//! Barriers over the simulator's wires.

use super::*;

/// Every job ends with a barrier of its own.
const LAST: u64 = 1;

const SIM: [(&str, &str); 1] = [("port", "sim")];

claims!(&SIM, [1, 2, 7, 60]);

#[test]
fn the_model_counts_as_many_releases_as_there_were_barriers() {
    for (ranks, barriers) in [(1, 50), (2, 200), (7, 100), (60, 20)] {
        let files = Files::new();
        let report = files.report();
        let set = [("port", "sim"), ("sim_report", text(&report))];
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
        assert_eq!(files.count("releases_of_self_test"), 2);
    }
}

#[test]
fn the_last_node_writes_the_waveform() {
    let files = Files::new();
    let vcd = files.vcd();
    run(3, &[("port", "sim"), ("sim_vcd", text(&vcd))], |engine| {
        (0..10).for_each(|_| blocking(&world(engine)));
    });
    let wave = std::fs::read_to_string(&vcd).expect("a waveform");
    assert!(wave.contains("$enddefinitions"), "{wave}");
    let save = std::fs::read_to_string(vcd.with_extension("gtkw")).expect("a save file");
    assert!(save.contains("wires.vcd"), "{save}");
    let commands = std::fs::read_to_string(vcd.with_extension("sucl")).expect("commands");
    assert!(commands.contains("load_file "), "{commands}");
}

#[test]
fn a_file_that_cannot_be_written_does_not_hurt_the_program() {
    let nowhere = [("port", "sim"), ("sim_report", "/nonexistent/report.json")];
    run(2, &nowhere, |engine| blocking(&world(engine)));
}
