//! Tests of the report page and its plots, with invented results.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::groups::{Effort, GROUPS};
use super::machine::Machine;
use super::markdown::Report;
use super::plot::plots;
use super::results::Measured;
use super::{version_in, write};

/// Returns a row in the format of `mpi-bench --vs --json`.
/// Open MPI's median is 2 times that of Portcullis, and MPICH's 0.95 times.
fn line(benchmark: &str, size: u64, ours: f64) -> String {
    let (half, better) = (ours * 2.0, ours * 0.95);
    format!(
        r#"{{"benchmark":"{benchmark}","ranks":2,"size":{size},"unit":"us","ours":{ours},"peers":[{{"library":"Open MPI","setting":"ob1+sm","median":{half},"ours_is_better_by":2.0}},{{"library":"MPICH","setting":"ucx shm","median":{better},"ours_is_better_by":0.95}}]}}"#
    )
}

fn report() -> Report {
    let effort = Effort::new(true, None);
    let words = ["OPENMPI".to_owned(), "MPICH".to_owned()];
    let names = ["latency", "allreduce", "init", "io"];
    let chosen = GROUPS.iter().filter(|group| names.contains(&group.name));
    let groups = chosen.map(|group| {
        let mut measured = Measured::new(group);
        for run in group.runs.iter().filter(|run| run.is_in(&effort)) {
            let arguments = run.arguments(&effort, &words).join(" ");
            measured.commands.push(format!("mpi-bench {arguments}"));
            let ranks = f64::from(run.ranks);
            let lines: Vec<String> = match group.name {
                "latency" => (3..=21).step_by(6).map(|power| line("latency", 1 << power, 0.3 * f64::from(1 << (power / 2)))).collect(),
                "allreduce" => vec![line("allreduce", 8, ranks), line("allreduce", 65_536, 20.0 * ranks)],
                "init" => ["init", "start", "launch"].map(|part| line(part, 2, ranks)).into(),
                _ => Vec::new(),
            };
            let stderr = match group.name {
                "io" => "mpi-bench: not measured: Open MPI (ob1+sm, yielding): cannot start /opt/openmpi/bin/mpirun: it is gone",
                _ => "",
            };
            measured.add(run, &lines.join("\n"), stderr);
        }
        measured
    });
    Report {
        date: "2026-01-02".into(),
        machine: Machine {
            cpu: "A Processor @ 2.00GHz".into(),
            cores: 2,
            kernel: "Linux 6.1.0".into(),
            is_virtual: true,
            load: "0.08".into(),
        },
        versions: vec![
            ("Portcullis".into(), "0.1.0, commit 1234567".into()),
            ("Open MPI".into(), "5.0.11".into()),
            ("MPICH".into(), "5.0.2".into()),
        ],
        peers: vec!["Open MPI", "MPICH"],
        absent: Vec::new(),
        effort,
        groups: groups.collect(),
    }
}

#[test]
fn the_page_has_a_head_a_summary_and_a_section_for_each_group() {
    insta::assert_snapshot!(report().markdown());
}

#[test]
fn figures_of_a_busy_machine_are_marked() {
    let mut report = report();
    let warning = "The machine had other work";
    assert!(!report.markdown().contains(warning));
    report.machine.load = "2.09".into();
    assert!(report.markdown().contains(warning));
}

#[test]
fn a_peer_that_is_missing_is_a_line_and_has_no_columns() {
    let mut report = report();
    report.peers = vec!["Open MPI"];
    report.absent = vec!["MPICH is not compared: pip could not install it.".into()];
    let text = report.markdown();
    assert!(text.contains("\nMPICH is not compared: pip could not install it.\n"));
    assert!(text.contains("\n| bytes | ours, us | Open MPI | ratio |\n|---|---|---|---|\n"));
    assert!(!text.contains("ucx shm"), "{text}");
    report.peers.clear();
    let text = report.markdown();
    assert!(text.contains("\n| bytes | ours, us |\n|---|---|\n"));
    assert!(!text.contains("## Summary"));
}

/// Parses an SVG text; returns all element names and all text. Panics on malformed XML.
fn read(svg: &str) -> (Vec<String>, String) {
    let mut reader = Reader::from_str(svg);
    let (mut elements, mut text, mut open) = (Vec::new(), String::new(), 0);
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(element) => {
                open += 1;
                elements.push(element.name().as_ref().to_owned());
            }
            Event::Empty(element) => elements.push(element.name().as_ref().to_owned()),
            Event::End(_) => open -= 1,
            Event::Text(part) => text += part.as_ref(),
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "every element is closed");
    (elements, text)
}

#[test]
fn pictures_are_well_formed_and_show_every_library_and_point() {
    let report = report();
    let pictures: Vec<_> = report
        .groups
        .iter()
        .flat_map(|measured| plots(measured, &report.peers))
        .collect();
    let files: Vec<&str> = pictures.iter().map(|plot| plot.file.as_str()).collect();
    assert_eq!(
        files,
        ["latency.svg", "allreduce-8.svg", "allreduce-64K.svg"]
    );
    for (plot, ticks) in pictures
        .iter()
        .zip([["32 Ki", "2 Mi"], ["16", "60"], ["2", "60"]])
    {
        let svg = plot.svg().expect("a picture");
        let (elements, text) = read(&svg);
        let words: Vec<&str> = text.lines().map(str::trim).collect();
        for word in ["Portcullis", "Open MPI", "MPICH", &plot.title, "us"]
            .iter()
            .chain(&ticks)
        {
            assert!(words.contains(word), "{word} is not in {words:?}");
        }
        let count = |name: &str| elements.iter().filter(|e| *e == name).count();
        assert_eq!(elements[0], "svg");
        // In the plot and in the legend, the markers of Portcullis and of Open MPI are circles.
        let points = if plot.file == "latency.svg" { 4 } else { 3 };
        assert_eq!(count("circle"), 2 * (points + 1), "{}", plot.file);
    }
}

#[test]
fn a_picture_needs_a_line_but_not_every_point() {
    let group = GROUPS.iter().find(|group| group.name == "latency").unwrap();
    let mut measured = Measured::new(group);
    measured.add(&group.runs[0], &line("latency", 8, 0.3), "");
    assert!(plots(&measured, &["Open MPI"]).is_empty());
    // A zero is not drawn on a logarithmic axis; other values are.
    let rest = [line("latency", 64, 0.0), line("latency", 4096, 1.0)].join("\n");
    measured.add(&group.runs[0], &rest, "");
    let pictures = plots(&measured, &["Open MPI", "unmeasured"]);
    read(&pictures[0].svg().expect("a picture"));
}

#[test]
fn every_picture_that_the_page_shows_is_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("new");
    let report = report();
    write(&folder, &report).unwrap();
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let shown: Vec<&str> = page
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert_eq!(shown.len(), 3);
    for name in shown {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

#[test]
fn versions_are_found_in_the_output_of_launchers() {
    for (said, version) in [
        ("mpirun (Portcullis) 0.1.0\n", Some("0.1.0")),
        (
            "mpirun (Open MPI) 5.0.11\n\nReport bugs to x.org\n",
            Some("5.0.11"),
        ),
        (
            "HYDRA build details:\n    Version:      5.0.2\n    Release Date: Fri",
            Some("5.0.2"),
        ),
        ("no version.", None),
    ] {
        assert_eq!(version_in(said).as_deref(), version);
    }
}
