//! Tests of the output of `hwbarr`: help, reports and errors.

use std::process::Command;

fn hwbarr(arguments: &[&str]) -> String {
    // The width is fixed, so that the help does not depend on the terminal.
    let output = Command::new(env!("CARGO_BIN_EXE_hwbarr"))
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .expect("hwbarr starts");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}[exit {}]", output.status.code().unwrap_or(-1))
}

#[test]
fn the_help_reads_well() {
    insta::assert_snapshot!("help", hwbarr(&["--help"]));
    insta::assert_snapshot!("help_run", hwbarr(&["run", "--help"]));
    insta::assert_snapshot!("help_faults", hwbarr(&["faults", "--help"]));
    insta::assert_snapshot!("help_report", hwbarr(&["report", "--help"]));
    insta::assert_snapshot!("help_wave", hwbarr(&["wave", "--help"]));
    insta::assert_snapshot!("help_live", hwbarr(&["live", "--help"]));
    insta::assert_snapshot!("help_serve", hwbarr(&["serve", "--help"]));
    insta::assert_snapshot!("help_watch", hwbarr(&["watch", "--help"]));
}

#[test]
fn a_run_prints_its_latencies() {
    insta::assert_snapshot!(hwbarr(&[
        "run",
        "--nodes",
        "7",
        "--barriers",
        "100",
        "--seed",
        "3"
    ]));
}

#[test]
fn a_sweep_prints_a_row_for_each_value() {
    insta::assert_snapshot!(hwbarr(&[
        "run",
        "-k",
        "100",
        "--sweep",
        "nodes=4..60:8",
        "--jitter",
        "0.3us",
    ]));
    insta::assert_snapshot!(hwbarr(&[
        "run",
        "-k",
        "50",
        "--sweep",
        "port-time=0.5us,1.2us",
        "--csv",
    ]));
}

#[test]
fn a_campaign_prints_its_table_and_succeeds_when_all_is_documented() {
    insta::assert_snapshot!(hwbarr(&["faults", "-n", "3"]));
}

#[test]
fn a_campaign_fails_on_what_is_not_documented() {
    let said = hwbarr(&["faults", "-n", "3", "--only", "reboot", "--strict"]);
    assert!(said.contains("UNSAFE, NOT DOCUMENTED"), "{said}");
    assert!(
        said.ends_with("unsafe outcomes are not on the documented list\n[exit 1]"),
        "{said}"
    );
    let said = hwbarr(&["faults", "-n", "3", "--only", "slow", "--csv"]);
    assert!(
        said.starts_with("fault,place,moment,at_ns,class,sentence,known"),
        "{said}"
    );
    assert!(said.ends_with("[exit 0]"), "{said}");
}

fn write_report(folder: &std::path::Path) -> std::path::PathBuf {
    let page = folder.join("page.html");
    let output = format!("--output={}", page.display());
    let said = hwbarr(&[
        "report",
        "-n",
        "6",
        "-k",
        "50",
        "--sweep",
        "nodes=2..10:4",
        "--faults",
        "3",
        &output,
    ]);
    assert!(
        said.ends_with("readable without network)\n[exit 0]"),
        "{said}"
    );
    page
}

#[test]
fn a_report_is_one_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = write_report(folder.path());
    let text = std::fs::read_to_string(page).expect("a page");
    for words in [
        "6 nodes, 50 barriers",
        "Sweep over nodes",
        "Faults",
        "</html>",
    ] {
        assert!(text.contains(words), "{words}");
    }
    let files = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 1, "a page needs no other file");
}

/// This test needs a browser. On Debian:
/// `apt-get install chromium && cargo test -p hwbarr --test command -- --ignored browser`.
#[test]
#[ignore = "needs a browser (Debian: chromium): cargo test -p hwbarr --test command -- --ignored browser"]
fn a_browser_shows_every_plot_of_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = write_report(folder.path());
    let output = Command::new("timeout")
        .args([
            "60",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
        ])
        .args([
            "--no-first-run",
            "--disable-background-networking",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("timeout starts");
    assert!(
        output.status.success(),
        "Debian's package chromium is needed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let dom = String::from_utf8_lossy(&output.stdout);
    assert_eq!(dom.matches("<svg").count(), 7);
    assert!(dom.contains("Faults"));
    // The page's script has run if every chart can be saved and one waveform can be zoomed.
    assert_eq!(dom.matches(">PNG</button>").count(), 7);
    assert_eq!(dom.matches("class=\"zoomable\"").count(), 1);
    assert!(dom.contains("node 0 reads"), "drawn by the script alone");
}

#[test]
fn arrivals_come_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("arrivals.txt");
    std::fs::write(&file, "# node 1 is late\n1us 9us 1us\n").expect("written");
    let arrivals = format!("--arrivals=file:{}", file.display());
    let said = hwbarr(&["run", "-n", "3", "-k", "5", &arrivals]);
    let skew = said.lines().find(|line| line.contains("skew"));
    assert!(skew.is_some_and(|line| line.contains("8us")), "{said}");
    std::fs::write(&file, "1us soon\n").expect("written");
    let said = hwbarr(&["run", "-n", "3", &arrivals]);
    assert!(said.contains("line 1: 'soon' is no time"), "{said}");
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    let run = |format| hwbarr(&["run", "-n", "5", "-k", "20", format]);
    let (json, csv) = (run("--json"), run("--csv"));
    let json = json.strip_suffix("[exit 0]").expect("success");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(json["releases"], 20);
    let mut rows = csv.lines();
    assert_eq!(rows.next(), Some("what,model,median_ns,p99_ns,worst_ns"));
    let latencies = json["latencies"].as_array().expect("rows");
    assert!(latencies.len() > 20, "{json}");
    for (latency, row) in latencies.iter().zip(rows) {
        let median = latency["median_ns"].to_string();
        assert!(row.contains(&median), "{latency} in {row}");
    }
}

#[test]
fn a_wave_says_where_it_is_and_how_to_open_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("small.vcd");
    let said = hwbarr(&[
        "wave",
        "-n",
        "3",
        "-k",
        "2",
        "-o",
        dump.to_str().expect("UTF-8"),
    ]);
    insta::assert_snapshot!(said.replace(folder.path().to_str().expect("UTF-8"), "FOLDER"));
    let save = std::fs::read_to_string(dump.with_extension("gtkw")).expect("a save file");
    // The save file has the full path of the waveform, so that it opens from any folder.
    let expected = format!("[dumpfile] \"{}\"", dump.display());
    assert!(save.contains(&expected), "{save}");
}

#[test]
fn a_wave_of_a_fault_says_how_it_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = format!("--output={}", folder.path().join("fault.vcd").display());
    let wave = |fault, place, moment| {
        hwbarr(&[
            "wave", "-n", "3", "--fault", fault, "--place", place, "--moment", moment, &output,
        ])
    };
    let said = wave("reboot to 0", "node:1", "awaited, falling");
    assert!(
        said.contains("): unsafe\n    node 2 left barrier 4"),
        "{said}"
    );
    assert!(said.ends_with("[exit 0]"), "{said}");
    let said = wave("reboot to 0", "board", "idle, low");
    assert!(
        said.contains("'reboot to 0' cannot be at the board"),
        "{said}"
    );
    let said = wave("inverted", "to:1", "idle, low");
    assert!(
        said.contains("cannot strike at the moment 'idle, low'"),
        "{said}"
    );
    let said = wave("inverted", "wire 1", "power-on");
    assert!(
        said.contains("'wire 1' names no place of a fault; a place is to:NODE"),
        "{said}"
    );
    let said = wave("inverted", "to:1", "later");
    assert!(
        said.contains("'later' is none of the moments: power-on"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_run_is_refused_with_a_sentence() {
    for (arguments, sentence) in [
        (
            &["run", "-n", "65"][..],
            "a barrier of 65 nodes cannot be built: it has 1 to 64 wire pairs",
        ),
        (
            &["live", "-n", "0"],
            "a barrier of 0 nodes cannot be built: it has 1 to 64 wire pairs",
        ),
        (&["run", "--port", "0"], "a port read must take some time"),
        (
            &["run", "--port", "fast"],
            "'fast' is no time: write a number and a unit, as in 1.2us",
        ),
        (
            &["run", "--arrivals", "late"],
            "'late' is none of together, uniform:TIME, exponential:MEAN",
        ),
        (
            &["run", "--clock", "0"],
            "the clock must be between 1e-6 and 1e6 MHz",
        ),
        (
            &["run", "--cable=-1"],
            "the length must be between 0 and 1e9 metres",
        ),
        (&["run", "-k", "0"], "a run needs at least 1 barrier"),
        (&["report", "-k", "0"], "a run needs at least 1 barrier"),
        (&["wave", "-k", "0"], "a run needs at least 1 barrier"),
        (
            &["run", "--sweep", "nodes=1.5"],
            "'1.5' is no value of nodes: write a whole number as 10",
        ),
        (
            &["faults", "-n", "1"],
            "a campaign needs at least 2 nodes: one to break and one to notice",
        ),
        (
            &["faults", "-n", "65"],
            "a barrier of 65 nodes cannot be built",
        ),
        (
            &["faults", "--only", "gremlins"],
            "no fault has 'gremlins' in its name: there are stuck at 0, stuck at 1",
        ),
        (
            &["wave", "-o", "/no/such/folder/x.vcd"],
            "cannot write /no/such/folder/x.vcd: there is no folder /no/such/folder",
        ),
        (
            &["report", "-o", "/no/such/folder/x.html"],
            "cannot write /no/such/folder/x.html: there is no folder /no/such/folder",
        ),
    ] {
        let said = hwbarr(arguments);
        assert!(said.contains(sentence), "{arguments:?}: {said}");
        assert!(!said.contains("[exit 0]"), "{arguments:?}: {said}");
    }
}

#[test]
fn the_version_is_that_of_hwbarr() {
    let said = hwbarr(&["--version"]);
    assert!(said.starts_with("hwbarr "), "{said}");
}

#[test]
fn one_of_something_is_singular() {
    let said = hwbarr(&["run", "-n", "1", "-k", "1"]);
    assert!(said.starts_with("1 node, 1 barrier, "), "{said}");
}

/// `hwbarr live` rejects a bad name for its waveform before any node passes a barrier.
#[test]
fn a_live_run_refuses_the_name_of_its_waveform_before_it_begins() {
    for (name, why) in [
        ("live.gtkw", "GTKWave's save file"),
        ("missing/live.vcd", "there is no folder"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join(name);
        let said = hwbarr(&[
            "live",
            "-n",
            "2",
            "-k",
            "2",
            "-o",
            output.to_str().expect("UTF-8"),
        ]);
        assert!(said.contains(why), "{said}");
        assert!(!said.contains("passed"), "{said}");
        assert!(said.ends_with("[exit 1]"), "{said}");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            0
        );
    }
}

/// An FST file starts with a header block: block type 0 and length 329.
#[test]
fn a_name_that_ends_in_fst_gives_an_fst() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in [
        &["live", "-n", "2", "-k", "2"][..],
        &["wave", "-n", "2", "-k", "2"],
        &["wave", "-n", "2", "-k", "2", "--channels", "1"],
    ] {
        let dump = folder.path().join("wave.fst");
        let said = hwbarr(&[command, &["-o", dump.to_str().expect("UTF-8")]].concat());
        assert!(said.ends_with("[exit 0]"), "{command:?}: {said}");
        let bytes = std::fs::read(&dump).expect("a waveform");
        assert!(
            bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, 1, 73]),
            "{command:?}"
        );
    }
}

#[test]
fn a_waveform_is_not_overwritten_by_its_save_file() {
    let path = std::env::temp_dir().join(format!("hwbarr-{}.gtkw", std::process::id()));
    let said = hwbarr(&["wave", "-o", path.to_str().expect("UTF-8")]);
    assert!(said.contains("GTKWave's save file"), "{said}");
    assert!(said.ends_with("[exit 1]"), "{said}");
    assert!(!path.exists());
    let path = path.with_extension("sucl");
    let said = hwbarr(&["wave", "-o", path.to_str().expect("UTF-8")]);
    assert!(said.contains("Surfer's command file"), "{said}");
    assert!(!path.exists());
}

/// Surfer would leave out missing signals without a message.
#[test]
fn surfer_is_given_signals_that_the_waveform_has() {
    for more in [
        &[][..],
        &["--boards", "2"],
        &["--channels", "2"],
        &[
            "--fault",
            "reboot to 0",
            "--place",
            "node:1",
            "--moment",
            "awaited, falling",
        ],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let dump = folder.path().join("wave.vcd");
        let output = format!("--output={}", dump.display());
        let said = hwbarr(&[&["wave", "-n", "3", "-k", "2", &output], more].concat());
        assert!(said.ends_with("[exit 0]"), "{said}");
        let header = std::fs::File::open(&dump).map(std::io::BufReader::new);
        let header = vcd::Parser::new(header.expect("a dump")).parse_header();
        let header = header.expect("a header");
        let commands = std::fs::read_to_string(dump.with_extension("sucl")).expect("commands");
        let load = format!("load_file {}", dump.display());
        assert!(commands.lines().any(|line| line == load), "{commands}");
        assert!(commands.contains("\ncursor_set "), "{commands}");
        let mut added = 0;
        for line in commands.lines() {
            if let Some(path) = line.strip_prefix("variable_add ") {
                let path: Vec<&str> = path.split('.').collect();
                assert!(header.find_var(&path).is_some(), "{more:?}: {line}");
                added += 1;
            } else if let Some(title) = line.strip_prefix("divider_add ") {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(title.chars().all(is_word), "{line}");
            }
        }
        assert!(added > 10, "{commands}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    use std::process::Stdio;
    let path = std::env::temp_dir().join(format!("hwbarr-{}-closed.vcd", std::process::id()));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_hwbarr"))
        .args(["wave", "-n", "64", "-o"])
        .arg(&path)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("hwbarr starts");
    for written in ["gtkw", "sucl", "vcd"].map(|ending| path.with_extension(ending)) {
        std::fs::remove_file(written).expect("all files are written");
    }
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    for arguments in [
        &["scale", "--ranks", "0"][..],
        &[
            "scale",
            "--ranks",
            "18446744073709551615",
            "--size",
            "1000000",
        ],
        &["scale", "--size", "18446744073709551615"],
        &["live", "-n", "2", "-k", "0"],
        &["run", "--bytes", "18446744073709551615"],
    ] {
        let said = hwbarr(arguments);
        assert!(said.contains("invalid value"), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
    let said = hwbarr(&["scale", "--ranks", "1048576", "--size", "4294967295"]);
    assert!(said.contains("takes longer than"), "{said}");
    assert!(said.ends_with("[exit 1]"), "{said}");
}

/// With version 2 each host needs one wire: 120 ranks on sixty hosts fit on one board, while 65,536
/// ranks exceed the limit of ranks per host.
#[test]
fn version_2_is_predicted_for_ranks_that_share_hosts() {
    let scale = |more: &[&str]| {
        let common = ["scale", "--ranks", "60,120,65536", "--network", "hdr"];
        hwbarr(&[&common, more].concat())
    };
    let printed = scale(&["--channels", "1", "--host-memory", "1us"]);
    assert!(
        printed.contains("hardware: version 2, one board of 60 hosts"),
        "{printed}"
    );
    let row = |text: &str| {
        let row = text.lines().find(|line| line.starts_with("this hardware"));
        let row = row.unwrap_or_default().split_whitespace().skip(2);
        row.map(str::to_owned).collect::<Vec<_>>()
    };
    let [alone, shared, none] = &row(&printed)[..] else {
        panic!("{printed}")
    };
    assert_eq!(none, "-");
    let us = |text: &str| text.strip_suffix("us").and_then(|t| t.parse::<f64>().ok());
    let [alone, shared] =
        [alone, shared].map(|text| us(text).unwrap_or_else(|| panic!("{printed}")));
    assert!((shared - alone - 2.0).abs() < 1e-3, "{printed}");
    let refused = scale(&["--host-memory", "1us"]);
    assert!(refused.contains("--channels"), "{refused}");
}
