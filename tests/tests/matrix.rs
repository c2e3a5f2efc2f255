//! Tests of `mpirun --matrix`, the table of messages and bytes from rank to rank, by kind of communication.

use std::path::Path;
use tests::Job;

/// Returns the lines of the table for one kind of communication.
fn lines(file: &Path, kind: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("a table");
    let prefix = format!("0,{kind},");
    let rest = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    rest.map(str::to_owned).collect()
}

#[test]
fn messages_operations_and_accesses_are_counted_from_rank_to_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    // The numbers must be the same in shared memory and over TCP, with and without a trace.
    let trace = folder.path().join("trace.json");
    let trace = trace.to_string_lossy();
    let ways: [&[&str]; 3] = [&[], &["--mca", "btl", "self,tcp"], &["--trace", &*trace]];
    for (number, way) in ways.iter().enumerate() {
        let name = folder.path().join(format!("traffic{number}"));
        let options = ["--matrix".into(), name.clone().into_os_string()];
        Job::of("traffic")
            .ranks(3)
            .with(*way)
            .with(options)
            .succeeds();
        let table = name.with_extension("csv");
        assert_eq!(
            lines(&table, "p2p"),
            ["0,1,3,120", "1,2,3,120", "2,0,3,120"],
            "{way:?}"
        );
        assert_eq!(
            lines(&table, "one-sided"),
            ["0,2,1,8", "1,0,1,16"],
            "{way:?}"
        );
        // Only the broadcast and the reduction count: the collectives that create the window carry no program data.
        let collective = lines(&table, "collective");
        let bytes = |line: &String| -> (String, u64) {
            let (way, bytes) = line.rsplit_once(',').expect("a column");
            let (ends, _) = way.rsplit_once(',').expect("a column");
            (ends.to_owned(), bytes.parse().expect("a number"))
        };
        let bytes: Vec<(String, u64)> = collective.iter().map(bytes).collect();
        let with_data: Vec<_> = bytes.iter().filter(|(_, bytes)| *bytes > 0).collect();
        let expected = [("1,0", 104), ("1,2", 100), ("2,0", 4)];
        let expected = expected.map(|(ends, bytes)| (ends.to_owned(), bytes));
        assert_eq!(with_data, expected.iter().collect::<Vec<_>>(), "{way:?}");
        let map = std::fs::read_to_string(name.with_extension("svg")).expect("a heat map");
        assert!(map.starts_with("<svg "), "{map}");
        assert!(map.contains("<title>rank 0 to rank 1: 3 messages, 120 B</title>"));
    }
}
