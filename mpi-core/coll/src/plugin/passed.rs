//! Plugins that were skipped because of the user's settings or their version.
//! Their parameters have no effect, but are not reported as unknown.

use mpi_base::param::About;
use std::path::{Path, PathBuf};

/// The skipped plugins.
#[derive(Default)]
pub struct Passed {
    /// Parameters of plugins whose table was read but which were not selected.
    pub(super) params: Vec<&'static [About]>,
    /// Files that were not opened, because a setting excludes them.
    pub(super) files: Vec<PathBuf>,
}

impl Passed {
    /// Returns true if the parameter `name` belongs to a skipped plugin.
    ///
    /// Of a file that was not opened, only the file name is known;
    /// by convention, parameter names begin with it: those of `coll_hwbarr.so` with `coll_hwbarr_`.
    pub fn reads(&self, name: &str) -> bool {
        let mut tables = self.params.iter().flat_map(|params| params.iter());
        tables.any(|about| about.is_called(name)) || self.files.iter().any(|file| owns(file, name))
    }
}

fn owns(file: &Path, name: &str) -> bool {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let rest = stem.and_then(|stem| name.strip_prefix(stem));
    rest.is_some_and(|rest| rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_opened_owns_the_parameters_that_begin_with_its_name() {
        let passed = Passed {
            params: Vec::new(),
            files: vec!["/opt/p/lib/portcullis/coll_hwbarr.so".into()],
        };
        assert!(passed.reads("coll_hwbarr_port"));
        for other in ["coll_hwbarr", "coll_hwbar_port", "coll_hwbarring_port"] {
            assert!(!passed.reads(other), "{other}");
        }
    }
}
