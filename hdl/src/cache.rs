//! What was made once is not made again: the work of the tools, kept by the content of what it was made from.
//!
//! A cache is a folder, and an entry is a folder in it, named for what it holds and for a hash of everything that it
//! depends on: texts, arguments, the programs that worked. Whatever changes gives another name, so nothing is ever stale.
//!
//! An entry is made in a folder beside it, by the process that holds that folder's lock, and renamed when it is whole.
//! So an entry is there wholly or not at all, processes that want the same one wait for the one that makes it,
//! and when a maker is killed the kernel frees its lock and the next one clears away what it has left.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::tool::ToolError;

/// A folder of things that were made.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache in this folder, which is made when something is first put there.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// The user's: `portcullis/rtl` in the folder for caches by the XDG base directory specification;
    /// `None` for a process without a home.
    pub fn of_user() -> Option<Cache> {
        let folder = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let caches =
            folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
        Some(Cache::at(caches.join("portcullis/rtl")))
    }

    /// The folder with what `make` puts into it, made unless it is there already.
    pub fn entry(
        &self,
        name: &str,
        ingredients: &[&str],
        make: impl FnOnce(&Path) -> Result<(), ToolError>,
    ) -> Result<PathBuf, ToolError> {
        let mut hasher = DefaultHasher::new();
        ingredients.hash(&mut hasher);
        let name = format!("{name}-{:016x}", hasher.finish());
        let entry = self.root.join(&name);
        if entry.is_dir() {
            return Ok(entry);
        }
        let unfinished = self.root.join(name + ".unfinished");
        let named = |path: &Path, e| ToolError::Folder(path.display().to_string(), e);
        fs::create_dir_all(&unfinished).map_err(|e| named(&unfinished, e))?;
        // Another maker may just have renamed the folder; then it is the entry that we open, lock and find.
        let lock = match File::open(&unfinished) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && entry.is_dir() => return Ok(entry),
            opened => opened.map_err(|e| named(&unfinished, e))?,
        };
        lock.lock().map_err(|e| named(&unfinished, e))?;
        if entry.is_dir() {
            // Ours may be a second folder, made after the first had become the entry.
            let _ = fs::remove_dir(&unfinished);
            return Ok(entry);
        }
        clear(&unfinished).map_err(|e| named(&unfinished, e))?;
        make(&unfinished)?;
        fs::rename(&unfinished, &entry).map_err(|e| named(&entry, e))?;
        Ok(entry)
    }
}

/// Removes what is in a folder, but not the folder, which is locked.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn put(text: &str) -> impl Fn(&Path) -> Result<(), ToolError> {
        move |folder| crate::tool::write(&folder.join("made"), text)
    }

    #[test]
    fn the_same_ingredients_are_used_once_and_others_make_another_entry() {
        let root = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(root.path());
        let first = cache.entry("x", &["a", "b"], put("1")).expect("made");
        let again = cache
            .entry("x", &["a", "b"], |_| unreachable!("it is there"))
            .expect("found");
        let other = cache.entry("x", &["ab"], put("2")).expect("made");
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_eq!(fs::read_to_string(first.join("made")).expect("a file"), "1");
    }

    #[test]
    fn what_a_killed_maker_has_left_is_cleared_away_and_no_entry() {
        let root = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(root.path());
        let failed = cache.entry("x", &["a"], |folder| {
            put("half")(folder)?;
            fs::create_dir(folder.join("more")).expect("a folder");
            Err(ToolError::Folder("disk".into(), io::Error::other("full")))
        });
        assert!(failed.is_err());
        let made = cache
            .entry("x", &["a"], |folder| {
                assert_eq!(fs::read_dir(folder).expect("a folder").count(), 0);
                Ok(())
            })
            .expect("made");
        assert!(made.is_dir());
        assert_eq!(fs::read_dir(root.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn who_wants_what_is_being_made_waits_for_it() {
        let root = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(root.path());
        let makers = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let entry = cache.entry("x", &["a"], |folder| {
                        makers.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        put("whole")(folder)
                    });
                    let made = entry.expect("an entry").join("made");
                    assert_eq!(fs::read_to_string(made).expect("a file"), "whole");
                });
            }
        });
        assert_eq!(makers.into_inner(), 1);
        assert_eq!(fs::read_dir(root.path()).expect("a folder").count(), 1);
    }
}
