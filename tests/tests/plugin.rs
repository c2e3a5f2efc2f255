//! A component as a file: copied into the plugin folder, it serves an unchanged program with an unchanged library.

use std::fs;

use tests::{Job, bare_installation, compile, installation};
use xtask::demo::{Report, number, simulator_arguments};
use xtask::install::PLUGIN;

#[test]
fn a_plugin_copied_into_its_folder_serves_an_unchanged_binary() {
    let program = compile("barrier_loop");
    let prefix = bare_installation();
    let folder = tempfile::tempdir().unwrap();
    let (waveform, report) = (
        folder.path().join("wires.vcd"),
        folder.path().join("report"),
    );
    let job = || {
        Job::command(&program)
            .under(&prefix.join("bin/mpirun"))
            .on_library_of(prefix)
            .with(simulator_arguments(&waveform, &report))
            .ranks(7)
            .arg("50")
    };
    let plugin = prefix.join("lib/portcullis").join(PLUGIN);
    let before = fs::read(prefix.join("lib/libmpi_abi.so.1")).unwrap();

    job().holds();
    assert!(
        !report.exists(),
        "the hardware barrier served although it is neither built in nor there as a file"
    );

    fs::copy(installation().join("lib/portcullis").join(PLUGIN), &plugin).unwrap();
    let outcome = job().holds();
    fs::remove_file(&plugin).unwrap();
    let counted = Report::read(&report)
        .unwrap_or_else(|e| panic!("{e}"))
        .releases;
    let made = number(&outcome.stdout, "barriers").unwrap();
    assert_eq!(counted, made as u64);
    assert_eq!(
        before,
        fs::read(prefix.join("lib/libmpi_abi.so.1")).unwrap(),
        "the library changed"
    );
}
