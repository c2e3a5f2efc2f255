//! Tests of the I/O report with given counters, as a table and as JSON.

use super::*;
use mpi_base::node::Played;

fn named(number: u64, name: &str) -> Vec<Event> {
    let words = |piece: &[u8]| -> [u64; 3] {
        std::array::from_fn(|word| {
            let byte = |at: usize| piece.get(word * 8 + at).copied().unwrap_or(0);
            u64::from_le_bytes(std::array::from_fn(byte))
        })
    };
    let pieces = (0..).zip(name.as_bytes().chunks(24));
    pieces
        .map(|(tag, piece)| {
            let [comm, bytes, extra] = words(piece);
            Event {
                number,
                tag,
                comm,
                bytes,
                extra,
                ..Event::new(EventKind::FileName, 1)
            }
        })
        .collect()
}

fn counted(number: u64, set: &[(Counter, u64)]) -> Vec<Event> {
    let mut counters = [0; COUNTERS];
    set.iter()
        .for_each(|(at, value)| counters[*at as usize] = *value);
    (0..COUNTERS)
        .step_by(3)
        .map(|first| Event {
            number,
            tag: first as i32,
            comm: counters[first],
            bytes: counters[first + 1],
            extra: counters[first + 2],
            ..Event::new(EventKind::FileTotals, 2)
        })
        .collect()
}

fn lane(rank: u32, events: Vec<Event>) -> Lane {
    Lane {
        rank,
        host: "here".into(),
        played: Played { events, lost: 0 },
        ..Lane::default()
    }
}

const LONG: &str = "/a/folder/with/a/name/longer/than/one/event/data.bin";

#[test]
fn the_ranks_counters_of_a_file_are_added_and_the_slowest_is_named() {
    let played = |written, nanos| {
        let mut events = named(1, LONG);
        // The rank writes counters at the first close and again at its end.
        events.extend(counted(1, &[(Counter::BytesWritten, 1)]));
        events.extend(counted(
            1,
            &[
                (Counter::Opens, 1),
                (Counter::BytesWritten, written),
                (Counter::Writes, 2),
                (Counter::NanosInCalls, nanos),
                (Counter::SystemSizes, 3),
            ],
        ));
        events
    };
    let report = IoReport::of(&[lane(0, played(100, 5)), lane(1, played(50, 2_000_000_000))]);
    let [file] = &report.files[..] else {
        panic!("{report:?}")
    };
    assert_eq!(file.name, LONG);
    assert_eq!((file.ranks, file.bytes_written, file.writes), (2, 150, 4));
    assert_eq!(file.system_sizes, [6, 0, 0, 0, 0, 0]);
    assert_eq!(file.slowest.as_ref().map(|slow| slow.rank), Some(1));
    let table = report.table();
    assert!(
        table.starts_with(&format!("{LONG}: opened 2 times by 2 ranks\n")),
        "{table}"
    );
    assert!(
        table.contains("written           150 B in 4 calls"),
        "{table}"
    );
    assert!(table.contains("rank 1 on here, 2.000 s"), "{table}");
}

#[test]
fn counters_that_no_rank_of_ours_writes_are_left_out() {
    let mut events = named(1, "x");
    events.extend(counted(1, &[(Counter::Opens, 1)]));
    for tag in [-1, COUNTERS as i32, i32::MAX] {
        events.push(Event {
            number: 1,
            tag,
            comm: 9,
            bytes: 9,
            extra: 9,
            ..Event::new(EventKind::FileTotals, 3)
        });
    }
    let report = IoReport::of(&[lane(0, events)]);
    assert_eq!(report.files[0].opens, 1);
    assert_eq!(report.files[0].bytes_read, 0);
}

#[test]
fn a_job_without_files_says_so() {
    assert!(
        IoReport::of(&[lane(0, Vec::new())])
            .table()
            .contains("no rank opened")
    );
}
