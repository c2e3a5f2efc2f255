//! Inventory of the component files of a process, and its comparison between the members of a communicator.
//!
//! Rank 0 sends its list with its offers to the members of `MPI_COMM_WORLD`; a rank with other files or versions replies with a sentence about the difference.
//!
//! ```text
//! host LF (name TAB version TAB file LF) ...
//! ```

use std::path::Path;

/// A component's name, version and file, which the members compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    name: String,
    version: String,
    /// The path of the component's file; for a built-in component, the name of the library.
    file: String,
}

struct Theirs<'a> {
    host: &'a str,
    name: &'a str,
    version: &'a str,
    file: &'a str,
}

impl Entry {
    /// Creates an entry; `file` is the path of the component's file, or the library's name, for error texts.
    pub fn new(name: &str, version: &str, file: &impl ToString) -> Entry {
        let plain = |text: &str| text.replace(['\t', '\n'], " ");
        Entry {
            name: plain(name),
            version: plain(version),
            file: plain(&file.to_string()),
        }
    }

    /// Returns the path of the component's file, or the library's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns an error if rank 0's `list` has this component in another version; `me` is this process's rank.
    pub fn compare(&self, list: &[u8], me: u32) -> Result<(), String> {
        let list = String::from_utf8_lossy(list);
        let theirs = read(&list).find(|theirs| theirs.name == self.name);
        match theirs {
            Some(theirs) if theirs.version != self.version => Err(self.differs(&theirs, me)),
            _ => Ok(()),
        }
    }

    fn differs(&self, theirs: &Theirs<'_>, me: u32) -> String {
        format!(
            "rank {me} on {} has version {} from {}, and rank 0 on {} version {} from {}",
            host_name(),
            self.version,
            self.file,
            theirs.host,
            theirs.version,
            theirs.file
        )
    }
}

/// Appends this host's name and the entries to `to`.
pub fn write<'a>(entries: impl Iterator<Item = &'a Entry>, to: &mut Vec<u8>) {
    let mut list = host_name().replace('\n', " ") + "\n";
    for entry in entries {
        list += &format!("{}\t{}\t{}\n", entry.name, entry.version, entry.file);
    }
    to.extend(list.into_bytes());
}

/// Parses a list; malformed lines are skipped.
fn read(list: &str) -> impl Iterator<Item = Theirs<'_>> {
    let mut lines = list.lines();
    let host = lines.next().unwrap_or_default();
    lines.filter_map(move |line| {
        let mut fields = line.split('\t');
        Some(Theirs {
            host,
            name: fields.next()?,
            version: fields.next()?,
            file: fields.next()?,
        })
    })
}

/// Compares this process's files with those of rank 0; the error is a sentence about the first component that differs.
pub fn compare(ours: &[Entry], list: &[u8], me: u32) -> Result<(), String> {
    let list = String::from_utf8_lossy(list);
    let mut missed: Vec<&Entry> = ours.iter().collect();
    for theirs in read(&list) {
        let Some(entry) = ours.iter().find(|entry| entry.name == theirs.name) else {
            return Err(format!(
                "rank {me} on {} has no component file {}, which rank 0 on {} has in version {} from {}; no rank uses it",
                host_name(),
                theirs.name,
                theirs.host,
                theirs.version,
                theirs.file
            ));
        };
        if entry.version != theirs.version {
            let sentence = entry.differs(&theirs, me);
            return Err(format!(
                "of the component {} {sentence}; no rank uses it",
                entry.name
            ));
        }
        missed.retain(|entry| entry.name != theirs.name);
    }
    match missed.first() {
        None => Ok(()),
        Some(entry) => Err(format!(
            "rank {me} on {} has the component file {} in version {}, and rank 0 on {} has none of that name; no rank uses it",
            host_name(),
            Path::new(&entry.file).display(),
            entry.version,
            list.lines().next().unwrap_or_default()
        )),
    }
}

/// Returns the host name from the kernel.
pub fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(entries.iter(), &mut bytes);
        bytes
    }

    fn acme(version: &str) -> Entry {
        Entry::new("acme", version, &"/p/coll_acme.so")
    }

    #[test]
    fn a_difference_is_one_sentence_with_hosts_files_and_versions() {
        let host = host_name();
        let ours = [acme("1.3")];
        assert_eq!(compare(&ours, &list(&[acme("1.3")]), 3), Ok(()));
        assert_eq!(
            compare(&ours, &list(&[acme("1.2")]), 3).unwrap_err(),
            format!(
                "of the component acme rank 3 on {host} has version 1.3 from /p/coll_acme.so, and rank 0 on {host} version 1.2 from /p/coll_acme.so; no rank uses it"
            )
        );
        assert_eq!(
            compare(&[], &list(&[acme("1.2")]), 3).unwrap_err(),
            format!(
                "rank 3 on {host} has no component file acme, which rank 0 on {host} has in version 1.2 from /p/coll_acme.so; no rank uses it"
            )
        );
        assert_eq!(
            compare(&ours, &list(&[]), 3).unwrap_err(),
            format!(
                "rank 3 on {host} has the component file /p/coll_acme.so in version 1.3, and rank 0 on {host} has none of that name; no rank uses it"
            )
        );
    }

    #[test]
    fn a_list_that_is_none_names_no_component() {
        for bytes in [&b""[..], b"host", b"host\nacme", b"host\nacme\t1.3\n\xff"] {
            assert_eq!(acme("1.2").compare(bytes, 1), Ok(()));
            assert_eq!(compare(&[], bytes, 1), Ok(()));
        }
    }
}
