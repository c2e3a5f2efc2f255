//! A cache of tool results, keyed by the content of their inputs.
//!
//! A cache is a folder, and each entry is a subfolder.
//! The entry's name describes its content and ends in a hash of all
//! inputs: texts, arguments, the tools' executables. A changed input changes the name, so no entry is out of date.
//!
//! A process builds an entry in a temporary folder beside the entry, holds a lock on that folder,
//! and renames the folder to the entry when it is complete.
//! So an entry is either complete or absent, and
//! other processes that need the same entry wait for its builder.
//! If the builder is killed, the kernel releases its lock, and the next builder clears the folder.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::tool::ToolError;

/// A cache: the folder that contains the entries.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache in this folder; storing the first entry creates the folder.
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// Opens the user's cache: `portcullis/rtl` in the cache folder of the XDG base directory specification;
    /// `None` for a process without a home directory.
    pub fn of_user() -> Option<Cache> {
        let folder = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let caches =
            folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
        Some(Cache::at(caches.join("portcullis/rtl")))
    }

    /// Returns the path of an entry. If it does not exist, `make` fills its folder.
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
        // Another process may have renamed the folder to the entry just before.
        // This call then opens the entry itself, waits for its lock, and then finds it complete.
        let lock = match File::open(&unfinished) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && entry.is_dir() => return Ok(entry),
            opened => opened.map_err(|e| named(&unfinished, e))?,
        };
        lock.lock().map_err(|e| named(&unfinished, e))?;
        if entry.is_dir() {
            // Another process may have renamed its folder to the entry before this call created
            // `unfinished`, which is then a new, empty folder: remove it.
            let _ = fs::remove_dir(&unfinished);
            return Ok(entry);
        }
        clear(&unfinished).map_err(|e| named(&unfinished, e))?;
        make(&unfinished)?;
        fs::rename(&unfinished, &entry).map_err(|e| named(&entry, e))?;
        Ok(entry)
    }
}

/// Removes the contents of a folder, but not the folder itself, which is locked.
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
    fn a_client_of_a_running_build_waits_for_it() {
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
