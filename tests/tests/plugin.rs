//! Tests of components that are plugin files. A file in the plugin folder serves an unchanged program
//! on an unchanged library; an invalid file causes a message, and the job still succeeds.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tests::{Job, Outcome, bare_installation, compile, installation};
use xtask::demo::{Report, number, simulator_arguments};
use xtask::install::PLUGIN;
use xtask::{process, workspace};

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

/// A folder that contains one plugin file, a variant of a test plugin.
struct Shelf {
    folder: TempDir,
    file: PathBuf,
}

impl Shelf {
    /// Compiles a variant of the linear barrier with these compiler options, linked with a function that throws.
    fn new(options: &[&str]) -> Shelf {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("coll_linear.so");
        make(&file, options);
        Shelf { folder, file }
    }

    /// Replaces bytes in the plugin's manifest; `from` and `to` have the same length.
    fn patched(self, from: &[u8], to: &[u8]) -> Shelf {
        let mut bytes = fs::read(&self.file).expect("the plugin");
        let places = bytes.windows(from.len());
        let at = places.enumerate().find(|(_, part)| *part == from);
        let at = at.expect("the manifest has this").0;
        bytes[at..at + to.len()].copy_from_slice(to);
        fs::write(&self.file, bytes).expect("writing");
        self
    }

    /// Compiles a variant of the transport plugin with these compiler options.
    fn of_transport(options: &[&str]) -> Shelf {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("btl_datagrams.so");
        compiled(
            "transport/src/btl/plugin/testdata/datagrams.c",
            &file,
            options,
        );
        Shelf { folder, file }
    }

    /// Returns a job whose only transport to other ranks is the plugin.
    fn job_over_it(&self, program: &str) -> Job {
        let folder = self.folder.path().to_string_lossy().into_owned();
        let search = ["--mca", "mca_component_path", &folder];
        let job = Job::of(program).ranks(2).with(search);
        job.with(["--mca", "btl", "self,datagrams"])
    }

    fn job(&self) -> Job {
        let folder = self.folder.path().to_string_lossy().into_owned();
        Job::of("barrier_loop").arg("20").ranks(2).with([
            "--mca",
            "mca_component_path",
            &folder,
            "--explain",
        ])
    }
}

fn make(file: &Path, options: &[&str]) {
    compiled("coll/src/plugin/testdata/linear.c", file, options);
}

/// Compiles a test plugin; `source` is its path below `mpi-core`.
fn compiled(source: &str, file: &Path, options: &[&str]) {
    let source = workspace::root().join("mpi-core").join(source);
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-fexceptions", "-I"])
        .arg(workspace::root().join("mpi-core/include"))
        .args(options)
        .arg("-o")
        .arg(file)
        .arg(source);
    process::output(&mut cc, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
}

/// Bytes of a plugin's manifest: the owner field, and the owner field followed by version 2.0.
const OWNER: &[u8] = b"Portcullis\0";
const VERSION: &[u8] = b"Portcullis\0\0\x02\0\0\0";

#[track_caller]
fn says(outcome: &Outcome, sentence: &str) {
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(all.contains(sentence), "no {sentence:?} in:\n{all}");
}

#[test]
fn a_bad_plugin_file_has_its_sentence_and_the_job_goes_on_without_it() {
    let other_magic = |shelf: Shelf| shelf.patched(OWNER, b"Portculliz\0");
    let major = |number: u8| {
        move |shelf: Shelf| shelf.patched(VERSION, &[&VERSION[..12], &[number, 0, 0, 0]].concat())
    };
    let writable = |shelf: Shelf| {
        fs::set_permissions(&shelf.file, Permissions::from_mode(0o666)).expect("rights");
        shelf
    };
    type Change<'a> = Box<dyn Fn(Shelf) -> Shelf + 'a>;
    let unchanged = || Box::new(|shelf| shelf) as Change;
    let cases: [(&str, &[&str], Change, &str); 11] = [
        (
            "wrong magic",
            &[],
            Box::new(other_magic),
            "it has no manifest, so it is no plugin",
        ),
        (
            "too new",
            &[],
            Box::new(major(3)),
            "it was built for version 3 of the plugin ABI, this library speaks version 2",
        ),
        (
            "too old",
            &[],
            Box::new(major(1)),
            "it was built for version 1 of the plugin ABI, this library speaks version 2",
        ),
        (
            "a newer library is needed",
            &["-DPORTCULLIS_NEEDS_MINOR=9"],
            unchanged(),
            "it needs version 2.9 of the plugin ABI, this library has 2.0",
        ),
        (
            "a table of another version than its manifest",
            &["-DABI=3"],
            unchanged(),
            "it was built for version 3 of the plugin ABI, this library speaks version 2",
        ),
        (
            "a missing symbol",
            &["-Dportcullis_component=another"],
            unchanged(),
            "it does not export portcullis_component, so it is not a plugin",
        ),
        (
            "nonsense for a table",
            &["-DRETURN=(const void *)((const char *)&component + 1)"],
            unchanged(),
            "portcullis_component returns an odd address, which is that of no table",
        ),
        (
            "nonsense for a module",
            &["-DAT_QUERY=return (const void *)((const char *)&module + 1)"],
            unchanged(),
            "its function query returns no table: the address is odd",
        ),
        (
            "a library that it needs is missing",
            &["-DAT_OPEN=extern void missing(void); missing()"],
            unchanged(),
            "undefined symbol: missing",
        ),
        (
            "swapped while it is opened",
            &[
                "-DAT_OPEN=const char *rank = getenv(\"PMI_RANK\"); if (rank && *rank == '0') rename(getenv(\"SWAPPED\"), getenv(\"SWAP\"))",
            ],
            unchanged(),
            "another file took its place while this process opened it, so it is not used",
        ),
        (
            "every user can write it",
            &[],
            Box::new(writable),
            "every user may write it (mode 0666), so it is not opened; chmod o-w makes it usable",
        ),
    ];
    for (case, options, change, sentence) in cases {
        let shelf = change(Shelf::new(options));
        let other = shelf.folder.path().join("new");
        fs::copy(&shelf.file, &other).expect("a copy");
        let job = shelf.job().env("SWAPPED", &other).env("SWAP", &shelf.file);
        let outcome = job.holds();
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(all.contains(sentence), "{case}: no {sentence:?} in:\n{all}");
    }
}

#[test]
fn a_plugin_that_ends_its_process_is_named() {
    // The plugin calls `exit` when it is opened or queried, or returns an invalid result code.
    for (option, sentence) in [
        ("-DAT_OPEN=exit(3)", "in the start of "),
        ("-DAT_QUERY=exit(3)", "in the function query of "),
    ] {
        let outcome = Shelf::new(&[option]).job().run();
        assert_eq!(outcome.status.code(), Some(3), "{}", outcome.stderr);
        says(&outcome, &format!("It was in MPI_Init, {sentence}"));
        says(&outcome, "coll_linear.so.");
    }
    let outcome = Shelf::new(&["-DAT_BARRIER=return 7"]).job().run();
    says(
        &outcome,
        "barrier on MPI_COMM_WORLD: component linear: it answered 7, which means nothing here",
    );
    let (_folder, source) = thrower();
    for (place, function, mpirun) in [
        (
            "AT_QUERY",
            "query",
            "It was in MPI_Init, in the function query of ",
        ),
        ("AT_BARRIER", "barrier", "It was in MPI_Barrier"),
    ] {
        let at = format!("-D{place}=throws()");
        let shelf = Shelf::new(&["-DTHROWS", &at, &source, "-lstdc++"]);
        let outcome = shelf.job().run();
        assert_eq!(outcome.status.code(), Some(128 + 6), "{}", outcome.stderr);
        let file = shelf.file.display();
        says(
            &outcome,
            &format!(
                "the component linear from {file} threw an exception out of its function {function}, which a plugin must not do"
            ),
        );
        says(&outcome, mpirun);
    }
}

#[test]
fn a_plugin_that_does_not_return_is_named_in_the_hang_report() {
    let options = ["-DAT_QUERY=for (;;) pause()", "-include", "unistd.h"];
    let shelf = Shelf::new(&options);
    let outcome = shelf.job().with(["--timeout", "1s"]).run();
    assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
    says(&outcome, "in the function query of ");
    says(&outcome, ", in MPI_Init");
}

#[test]
fn ranks_with_different_files_are_told_with_both_and_go_on_without_them() {
    let (old, new) = (Shelf::new(&[]), Shelf::new(&["-DVERSION=\"1.1\""]));
    let none = tempfile::tempdir().expect("a folder");
    let shell = |second: &Path| {
        let program = compile("barrier_loop");
        let script = format!(
            "case $PMI_RANK in 1) folder={} ;; *) folder={} ;; esac; export PORTCULLIS_MCA_mca_component_path=$folder; exec {} 20",
            second.display(),
            old.folder.path().display(),
            program.display()
        );
        let job = Job::command(Path::new("/bin/sh")).under(&installation().join("bin/mpirun"));
        let outcome = job.ranks(2).arg("-c").arg(script).succeeds();
        says(&outcome, "all claims of barrier_loop hold on 2 ranks");
        outcome
    };
    let both = shell(new.folder.path());
    let (first, second) = (old.file.display(), new.file.display());
    says(&both, "rank 0: warning: of the component linear rank 1 on ");
    says(
        &both,
        &format!("has version 1.1 from {second}, and rank 0 on "),
    );
    says(&both, &format!("version 1.0 from {first}; no rank uses it"));
    let one = shell(none.path());
    says(&one, "rank 0: warning: rank 1 on ");
    says(&one, "has no component file linear, which rank 0 on ");
}

/// Returns the path of the source of a function that throws a C++ exception, and its temporary folder.
fn thrower() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("throws.cpp");
    fs::write(&source, "extern \"C\" void throws() { throw 1; }\n").expect("writing");
    let source = source.to_string_lossy().into_owned();
    (folder, source)
}

/// Bytes of a transport plugin's manifest: the owner field followed by version 1.1.
const TRANSPORT: &[u8] = b"Portcullis\0\0\x01\0\0\0";

#[test]
fn a_transport_in_c_reads_long_messages_from_their_senders() {
    let shelf = Shelf::of_transport(&[]);
    let job = shelf.job_over_it("transfer").arg("0.1");
    says(&job.env("DATAGRAMS_COUNT", "1").holds(), "datagrams: read ");
    shelf.job_over_it("windows").holds();
}

#[test]
fn the_librarys_own_transport_uses_the_same_table() {
    let job = |program| {
        Job::of(program)
            .ranks(3)
            .with(["--mca", "btl", "self,dgram"])
    };
    let outcome = job("ring").with(["--explain"]).holds();
    says(&outcome, "dgram");
    job("windows").holds();
    // A plugin file with the name of a built-in component replaces the component.
    let shelf = Shelf::of_transport(&["-DNAME=\"dgram\"", "-DVERSION=\"7.0\""]);
    let file = shelf.folder.path().join("btl_dgram.so");
    fs::rename(&shelf.file, &file).expect("renaming");
    let path = shelf.folder.path().to_string_lossy().into_owned();
    let outcome = job("transfer").arg("0.1").env("DATAGRAMS_COUNT", "1");
    let outcome = outcome.with(["--mca", "mca_component_path", &path]).holds();
    says(&outcome, "datagrams: read ");
}

#[test]
fn a_bad_transport_file_ends_the_job_that_names_it_with_a_sentence() {
    let major = |number: u8| {
        move |shelf: Shelf| {
            shelf.patched(TRANSPORT, &[&TRANSPORT[..12], &[number, 0, 0, 0]].concat())
        }
    };
    type Change<'a> = Box<dyn Fn(Shelf) -> Shelf + 'a>;
    let unchanged = || Box::new(|shelf| shelf) as Change;
    let cases: [(&[&str], Change, &str); 10] = [
        (
            &[],
            Box::new(|shelf: Shelf| shelf.patched(OWNER, b"Portculliz\0")),
            "it has no manifest, so it is no plugin",
        ),
        (
            &[],
            Box::new(major(2)),
            "it was built for version 2 of the plugin ABI, this library speaks version 1",
        ),
        (
            &[],
            Box::new(major(0)),
            "it was built for version 0 of the plugin ABI, this library speaks version 1",
        ),
        (
            &["-DPORTCULLIS_NEEDS_TRANSPORT_MINOR=9"],
            unchanged(),
            "it needs version 1.9 of the plugin ABI, this library has 1.1",
        ),
        (
            &["-DABI=3"],
            unchanged(),
            "it was built for version 3 of the transport ABI, this library speaks version 1",
        ),
        (
            &["-Dportcullis_transport=another"],
            unchanged(),
            "it does not export portcullis_transport, so it is not a plugin",
        ),
        (
            &["-DRETURN=(const void *)((const char *)&transport + 1)"],
            unchanged(),
            "its function portcullis_transport returns no table",
        ),
        (
            &["-DAT_LOAD=extern void missing(void); missing()"],
            unchanged(),
            "undefined symbol: missing",
        ),
        (
            &["-DAT_OPEN=return 7"],
            unchanged(),
            "the parameter btl names datagrams, which is not used: the transport datagrams: it answered 7, which means nothing here",
        ),
        (
            &["-DAT_ADDRESS=return 1 << 20"],
            unchanged(),
            "its address has 1048576 bytes, and a transport's has at most ",
        ),
    ];
    for (options, change, sentence) in cases {
        let shelf = change(Shelf::of_transport(options));
        let outcome = shelf.job_over_it("ring").run();
        assert!(!outcome.status.success(), "{options:?} {sentence}");
        says(&outcome, sentence);
    }
}

#[test]
fn a_transport_that_ends_its_process_throws_or_blocks_is_named() {
    for (option, place) in [
        ("-DAT_LOAD=exit(3)", "in the start of "),
        ("-DAT_OPEN=exit(3)", "in the function open of "),
    ] {
        let outcome = Shelf::of_transport(&[option]).job_over_it("ring").run();
        assert_eq!(outcome.status.code(), Some(3), "{}", outcome.stderr);
        says(&outcome, &format!("It was in MPI_Init, {place}"));
        says(&outcome, "btl_datagrams.so.");
    }
    let (_folder, source) = thrower();
    for (place, function) in [("AT_OPEN", "open"), ("AT_SEND", "send")] {
        let at = format!("-D{place}=throws()");
        let shelf = Shelf::of_transport(&["-DTHROWS", &at, &source, "-lstdc++"]);
        let outcome = shelf.job_over_it("ring").run();
        assert_eq!(outcome.status.code(), Some(128 + 6), "{}", outcome.stderr);
        let file = shelf.file.display();
        says(
            &outcome,
            &format!(
                "the component datagrams from {file} threw an exception out of its function {function}, which a plugin must not do"
            ),
        );
    }
    let shelf = Shelf::of_transport(&["-DAT_OPEN=for (;;) pause()"]);
    let outcome = shelf.job_over_it("ring").with(["--timeout", "1s"]).run();
    assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
    says(&outcome, "in the function open of ");
}

#[test]
fn a_transport_on_some_ranks_or_in_two_versions_ends_the_job_with_both_sides() {
    let (one, other) = (
        Shelf::of_transport(&[]),
        Shelf::of_transport(&["-DVERSION=\"1.1\""]),
    );
    let none = tempfile::tempdir().expect("a folder");
    let job = |second: &Path| {
        let program = compile("ring");
        let script = format!(
            "case $PMI_RANK in 1) folder={} ;; *) folder={} ;; esac; export PORTCULLIS_MCA_mca_component_path=$folder; exec {}",
            second.display(),
            one.folder.path().display(),
            program.display()
        );
        let job = Job::command(Path::new("/bin/sh")).under(&installation().join("bin/mpirun"));
        let job = job.with(["--mca", "btl", "self,datagrams"]);
        let outcome = job.ranks(2).arg("-c").arg(script).run();
        assert!(!outcome.status.success());
        outcome
    };
    let outcome = job(other.folder.path());
    says(&outcome, "has version 1.");
    says(
        &outcome,
        " of the transport datagrams, and this process version 1.",
    );
    let outcome = job(none.path());
    says(&outcome, "datagrams");
}
