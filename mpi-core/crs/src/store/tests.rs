//! Tests of a store: a kill at each file-system operation of a write, damaged checkpoints,
//! and folders of another job.

use super::*;
use crate::manifest::tests::example;
use std::cell::Cell;

/// A disk on which all operations fail after the first `left` steps, as after a kill.
struct Killed<'a> {
    left: &'a Cell<usize>,
}

impl Killed<'_> {
    fn step(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.left.get() {
            0 => Err(io::Error::other("killed")),
            left => {
                self.left.set(left - 1);
                work()
            }
        }
    }
}

impl Disk for Killed<'_> {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| FileSystem.make_folder(path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // The kill can happen when half of the bytes are written.
        self.step(|| fs::write(path, &bytes[..bytes.len() / 2]))?;
        self.step(|| FileSystem.write(path, bytes))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| FileSystem.sync_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| FileSystem.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.left.get() == 1 {
            // The kill happens during the removal, after the manifest is removed.
            let _ = fs::remove_file(path.join(MANIFEST));
        }
        self.step(|| FileSystem.remove(path))
    }
}

/// Takes a checkpoint whose files contain the checkpoint's number; returns it if committed.
fn take<D: Disk>(store: &mut Store<D>, keep: usize) -> Option<u64> {
    let draft = store.begin().ok()?;
    let mut files = Vec::new();
    for rank in 0..2 {
        let folder = rank_folder(&draft.folder, rank);
        fs::create_dir(&folder).ok()?;
        fs::write(folder.join("data"), draft.number.to_string()).ok()?;
        files.extend(seal(&folder, rank).ok()?);
    }
    let manifest = example(draft.number, files);
    store.commit(&draft, &manifest).ok()?;
    let _ = store.prune(keep);
    Some(draft.number)
}

#[test]
fn the_number_of_an_abandoned_draft_is_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::new(dir.path());
    let first = store.begin().unwrap();
    store.abandon(&first);
    let second = store.begin().unwrap();
    assert!(!first.folder.exists());
    store.discard(&second);
    let third = store.begin().unwrap();
    store.discard(&third);
    assert_eq!([first.number, second.number, third.number], [1, 2, 2]);
}

fn contents(found: &Found) -> String {
    let path = rank_folder(&found.folder, 1).join("data");
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_kill_at_any_step_leaves_the_last_checkpoint_or_the_new_one_whole() {
    let mut committed = 0;
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::new(folder.path());
        for number in 1..=2 {
            assert_eq!(take(&mut store, 2), Some(number));
        }
        drop(store);
        let left = Cell::new(steps);
        let mut killed = Store::on(folder.path(), Killed { left: &left });
        let taken = take(&mut killed, 2);
        drop(killed);
        let store = Store::new(folder.path());
        let found = store.newest().unwrap();
        let number = found.manifest.number;
        assert!(number == 2 || number == 3, "{number} after {steps} steps");
        assert!(taken.is_none() || number == 3, "{steps} steps");
        assert_eq!(contents(&found), number.to_string());
        verify(&found.folder, &found.manifest, 1).unwrap();
        // The next job starts from this checkpoint and uses a new number.
        let mut next = Store::new(folder.path());
        let taken_next = take(&mut next, 2).unwrap();
        assert!(taken_next > number, "{taken_next} after {number}");
        let names = next.names().unwrap();
        assert!(
            names.iter().all(|(_, ending)| ending.is_empty()),
            "{names:?}"
        );
        assert!(names.len() <= 2, "{names:?}");
        committed += usize::from(number == 3);
        if left.get() > 0 {
            assert!(steps > 8 && committed > 2, "{committed} of {steps}");
            return;
        }
    }
}

#[test]
fn a_checkpoint_that_is_not_whole_is_passed_over_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(folder.path());
    let taken: Vec<_> = (0..5).filter_map(|_| take(&mut store, 9)).collect();
    assert_eq!(taken, [1, 2, 3, 4, 5]);
    let data = |number: u64| folder.path().join(format!("{number}/rank-1/data"));
    fs::write(data(5), "longer").unwrap();
    fs::remove_file(data(4)).unwrap();
    fs::write(folder.path().join("3/manifest"), "x").unwrap();
    fs::create_dir(folder.path().join("6.tmp")).unwrap();
    fs::create_dir(folder.path().join("notes")).unwrap();
    let found = store.newest().unwrap();
    assert_eq!(found.manifest.number, 2);
    let reasons: Vec<String> = (found.skipped.iter())
        .map(|(set, damage)| format!("{set}: {damage}"))
        .collect();
    assert_eq!(
        reasons,
        [
            "6.tmp: it was being written when its job ended",
            "5: its file rank-1/data has 6 bytes and had 1",
            "4: its file rank-1/data cannot be read: No such file or directory (os error 2)",
            "3: its manifest is damaged",
        ]
    );
    // A checkpoint that is requested by number is not replaced by an older one.
    let error = store.numbered(5).unwrap_err().to_string();
    assert!(
        error.ends_with("/5 is not complete: its file rank-1/data has 6 bytes and had 1"),
        "{error}"
    );
    fs::write(data(2), "3").unwrap();
    let found = store.numbered(2).unwrap();
    let damage = verify(&found.folder, &found.manifest, 1).unwrap_err();
    assert_eq!(
        damage.to_string(),
        "the contents of its file rank-1/data have changed"
    );
}

#[test]
fn a_folder_of_another_job_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(&folder.path().join("new/set"));
    let job = example(1, Vec::new()).job;
    store.admit(&job).unwrap();
    assert_eq!(take(&mut store, 2), Some(1));
    store.admit(&job).unwrap();
    let changed = |change: fn(&mut crate::description::Program)| {
        let mut other = job.clone();
        change(&mut other.programs[0]);
        store.admit(&other).unwrap_err().to_string()
    };
    let cases = [
        (
            changed(|program| program.procs = 3),
            "is of 2 ranks, and this job has 3; -n 2 restarts it, on any number of hosts",
        ),
        (
            changed(|program| program.program = "./other".into()),
            "is of the program stencil, and this job runs other; name a folder of its own for each program",
        ),
        (
            changed(|program| program.fingerprint = "8:0".into()),
            "restart with the file as it was, or name an empty folder and begin anew",
        ),
        (
            changed(|program| program.args.clear()),
            "leave the program away after --restart to repeat them",
        ),
    ];
    for (sentence, ending) in cases {
        assert!(sentence.ends_with(ending), "{sentence}");
    }
}

#[test]
fn one_job_at_a_time_writes_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::new(folder.path());
    assert_eq!(take(&mut store, 2), Some(1));
    let mut other = Store::new(folder.path());
    let error = other.begin().unwrap_err().to_string();
    assert!(
        error.starts_with("another job is writing checkpoints to "),
        "{error}"
    );
    drop(store);
    assert_eq!(take(&mut other, 2), Some(2));
}

#[test]
fn a_folder_without_checkpoints_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let error = store.newest().unwrap_err().to_string();
    assert!(error.starts_with("there is no checkpoint in "), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::new(&file)
        .admit(&Description::default())
        .unwrap_err();
    assert!(error.to_string().contains("cannot be made"), "{error}");
}
