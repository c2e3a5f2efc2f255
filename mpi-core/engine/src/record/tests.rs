//! Unit tests of [`Script`], a process's recording or replay.
//! `tests/tests/replay.rs` tests the replay of whole programs.

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn id(number: u64) -> ReqId {
    ReqId(number)
}

#[test]
fn a_receive_with_a_wildcard_is_replayed_as_one_of_its_message() {
    let folder = folder();
    let any = Key::new(ANY_SOURCE, ANY_TAG);
    let script = Script::record(folder.path(), 0, 4).expect("a recording");
    for number in 0..3 {
        assert_eq!(script.posts(any), Ok(any));
        script.posted(id(number), any);
    }
    // The receives do not match in the order in which they were posted; the third never matches.
    script.meets(id(1), Key::new(2, 20));
    script.meets(id(0), Key::new(3, 30));
    // A process that is killed does not drop the script.
    std::mem::forget(script);
    let script = Script::replay(folder.path(), 0, 4).expect("a replay");
    assert_eq!(script.posts(any), Ok(Key::new(3, 30)));
    assert_eq!(script.posts(Key::new(1, 1)), Ok(Key::new(1, 1)));
    assert_eq!(script.posts(any), Ok(Key::new(2, 20)));
    assert_eq!(script.posts(any), Ok(nobody()));
}

#[test]
fn a_receive_without_a_wildcard_that_was_cancelled_is_replayed_as_one_of_nobodys_message() {
    let folder = folder();
    let key = Key::new(1, 7);
    let script = Script::record(folder.path(), 0, 4).expect("a recording");
    for number in 0..3 {
        assert_eq!(script.posts(key), Ok(key));
        // The second receive reuses the slot of the first.
        script.posted(id(((number + 1) << 32) | (number / 2)), key);
    }
    let cancel = |id| {
        let plain = script.plain_number(id);
        let written = script.write(Asker::Cancel, Decision::Cancelled { plain });
        written.expect("written");
        plain
    };
    assert_eq!(cancel(id(2 << 32)), 2);
    assert_eq!(cancel(id(1 << 32)), 0, "the first is over");
    drop(script);
    let script = Script::replay(folder.path(), 0, 4).expect("a replay");
    let posted = [0; 3].map(|_| script.posts(key));
    assert_eq!(posted, [Ok(key), Ok(nobody()), Ok(key)]);
}

#[test]
fn a_loop_that_finds_nothing_is_one_word() {
    let folder = folder();
    let script = Script::record(folder.path(), 1, 2).expect("a recording");
    for _ in 0..1000 {
        script.found_nothing(Asker::Iprobe).expect("written");
    }
    script.found(Asker::Iprobe, 0, 5).expect("written");
    script.completed(Asker::Waitsome, &[4, 2]).expect("written");
    drop(script);
    let length = std::fs::metadata(folder.path().join("rank.1"))
        .expect("a file")
        .len();
    assert_eq!(length, 8 * (2 + 1 + 2 + 3));
    let script = Script::replay(folder.path(), 1, 2).expect("a replay");
    for _ in 0..1000 {
        assert_eq!(script.probed(Asker::Iprobe), Ok(None));
    }
    assert_eq!(script.probed(Asker::Iprobe), Ok(Some(Key::new(0, 5))));
    assert_eq!(script.places(Asker::Waitsome), Ok(Some(vec![4, 2])));
}

#[test]
fn a_program_that_asks_something_else_is_told_what_was_recorded() {
    let folder = folder();
    let script = Script::record(folder.path(), 0, 1).expect("a recording");
    script.found(Asker::Iprobe, 3, 5).expect("written");
    drop(script);
    let script = Script::replay(folder.path(), 0, 1).expect("a replay");
    let error = script.places(Asker::Waitany).expect_err("another call");
    assert_eq!(
        error.to_string(),
        "the replay has left the recording on rank 0 at decision 1: the program calls MPI_Waitany, \
         recorded is MPI_Iprobe or MPI_Improbe, which found the message from rank 3, tag 5"
    );
    assert_eq!(script.probed(Asker::Iprobe), Ok(Some(Key::new(3, 5))));
    let error = script.places(Asker::Test).expect_err("the end");
    assert!(
        error
            .to_string()
            .ends_with("calls MPI_Test, recorded is nothing more")
    );
}

#[test]
fn a_recording_of_another_job_is_refused() {
    let folder = folder();
    drop(Script::record(folder.path(), 0, 3).expect("a recording"));
    let error = Script::replay(folder.path(), 0, 4).err().expect("refused");
    assert!(
        error
            .to_string()
            .ends_with("is of rank 0 of 3, and this is rank 0 of 4"),
        "{error}"
    );
    std::fs::write(folder.path().join("rank.1"), "something else").expect("written");
    let error = Script::replay(folder.path(), 1, 4).err().expect("refused");
    assert!(error.to_string().contains("is not a recording"), "{error}");
    assert!(
        Script::record(folder.path(), 0, 3).is_err(),
        "nothing is overwritten"
    );
}

#[test]
fn a_long_recording_grows() {
    let folder = folder();
    let script = Script::record(folder.path(), 0, 2).expect("a recording");
    for place in 0..20_000 {
        script.completed(Asker::Waitany, &[place]).expect("written");
    }
    drop(script);
    let script = Script::replay(folder.path(), 0, 2).expect("a replay");
    for place in 0..20_000 {
        assert_eq!(script.places(Asker::Waitany), Ok(Some(vec![place])));
    }
}

/// Writes a recording with every kind of decision; one receive has matched its message, another has not.
fn recorded(folder: &Path) {
    let any = Key::new(ANY_SOURCE, ANY_TAG);
    let script = Script::record(folder, 1, 2).expect("a recording");
    for number in 0..2 {
        script.posts(any).expect("written");
        script.posted(id(number), any);
    }
    script.meets(id(1), Key::new(0, 3));
    script.found_nothing(Asker::Iprobe).expect("written");
    script.found_nothing(Asker::Iprobe).expect("written");
    script.found(Asker::Iprobe, 0, 5).expect("written");
    script.completed(Asker::Waitsome, &[4, 2]).expect("written");
    script.completed(Asker::Test, &[0]).expect("written");
    for decision in [Decision::Cancelled { plain: 1 }, Decision::TooLate] {
        script.write(Asker::Cancel, decision).expect("written");
    }
}

#[test]
fn damage_to_any_byte_is_found_before_the_recording_is_followed() {
    let folder = folder();
    recorded(folder.path());
    let file = path(folder.path(), 1);
    let whole = std::fs::read(&file).expect("read");
    let decisions = file::read(&file, 1, 2).expect("undamaged");
    assert_eq!(decisions.len(), 10);
    let mut found = 0;
    for at in 0..whole.len() {
        let flips = (0..8).map(|bit| whole[at] ^ 1 << bit);
        for value in flips
            .chain([0, 0xff, b'\n'])
            .filter(|value| *value != whole[at])
        {
            let mut bytes = whole.clone();
            bytes[at] = value;
            std::fs::write(&file, bytes).expect("written");
            let error = Script::replay(folder.path(), 1, 2).err();
            let error = error.unwrap_or_else(|| panic!("byte {at} may be {value}"));
            found += usize::from(
                matches!(&error, RecordError::Damaged { byte, .. } if *byte == at / 8 * 8),
            );
        }
    }
    assert!(found > 8 * (whole.len() - 16), "{found}");
}

#[test]
fn of_a_recording_that_was_cut_only_what_is_left_is_followed() {
    let folder = folder();
    recorded(folder.path());
    let file = path(folder.path(), 1);
    let whole = std::fs::read(&file).expect("read");
    let decisions = file::read(&file, 1, 2).expect("undamaged");
    for length in 0..whole.len() {
        std::fs::write(&file, &whole[..length]).expect("written");
        match file::read(&file, 1, 2) {
            Ok(left) => {
                assert!(length % 8 == 0 && decisions.starts_with(&left) && left != decisions)
            }
            Err(_) => assert!(length % 8 != 0 || length < 16),
        }
    }
}
