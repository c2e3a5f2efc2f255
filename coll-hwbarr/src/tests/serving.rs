//! Tests of barriers on the simulator's wires.

use super::*;

/// Number of barriers that the end of every job adds.
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

/// A file that cannot be written is reported before the first barrier, not at the end of the job.
#[test]
fn the_name_of_a_file_that_cannot_be_written_is_refused_at_once() {
    let files = Files::new();
    let missing = files.vcd().join("a.vcd");
    for (parameter, path, why) in [
        (
            "sim_vcd",
            files.vcd().with_extension("gtkw"),
            "GTKWave's save file",
        ),
        ("sim_vcd", missing.clone(), "there is no folder"),
        ("sim_report", missing, "there is no folder"),
    ] {
        run(2, &[("port", "sim"), (parameter, text(&path))], |engine| {
            let message = verdict(&world(engine)).expect_err("refused");
            assert!(
                message.contains(&format!(
                    "coll_hwbarr_{parameter} is \"{}\", ",
                    path.display()
                )),
                "{message}"
            );
            assert!(message.contains(why), "{message}");
        });
        assert!(!path.exists());
    }
}

#[test]
fn a_waveform_whose_name_ends_in_fst_is_an_fst() {
    for version in ["1", "2"] {
        let files = Files::new();
        let fst = files.vcd().with_extension("fst");
        let set = [
            ("port", "sim"),
            ("version", version),
            ("sim_vcd", text(&fst)),
        ];
        run(3, &set, |engine| blocking(&world(engine)));
        let bytes = std::fs::read(&fst).expect("a waveform");
        // The FST file begins with its header block: type 0, length 329 bytes.
        assert!(
            bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, 1, 73]),
            "version {version}"
        );
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
