//! Detection of another MPI library in this process, which explains handles that are not of this ABI.
//!
//! If a program is linked to a library that was compiled with the `mpi.h` of MPICH or Open MPI,
//! the calls of that library reach this one, with the handles of the other `mpi.h`.
//! The other MPI library is then in the memory map, too (proc_pid_maps(5)).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Prefixes of the file names of libraries of other ABIs.
const NAMES: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_cray.so"];

/// The folder of the compatibility libraries, which have the names of other libraries and convert their handles.
const OURS: &str = "/portcullis/compat/";

/// Returns the first MPI library of another ABI in the memory map of this process.
#[cold]
pub(super) fn loaded() -> Option<PathBuf> {
    first_in(&std::fs::read("/proc/self/maps").ok()?)
}

fn first_in(maps: &[u8]) -> Option<PathBuf> {
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let path = &line[line.iter().position(|byte| *byte == b'/')?..];
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let is_named_so = NAMES.iter().any(|begin| name.starts_with(begin.as_bytes()));
        let is_ours = path.windows(OURS.len()).any(|part| part == OURS.as_bytes());
        (is_named_so && !is_ours).then(|| OsStr::from_bytes(path).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_abi_is_found_and_a_compatibility_library_is_not() {
        let found = |maps: &str| first_in(maps.as_bytes());
        let ours = "7f00-7f01 r--p 0 fe:01 1 /opt/lib/portcullis/compat/mpich/libmpi.so.12\n\
                    7f01-7f02 r--p 0 fe:01 2 /opt/lib/libmpi_abi.so.1\n\
                    7f02-7f03 rw-p 0 00:00 0 \n\
                    7f03-7f04 rw-p 0 00:00 0 [heap]\n";
        assert_eq!(found(ours), None);
        for path in ["/usr/lib/libmpi.so.40.30.4", "/a b/libmpich.so.12"] {
            let maps = format!("{ours}7f04-7f05 r-xp 0 fe:01 3 {path}\n");
            assert_eq!(found(&maps), Some(path.into()));
        }
    }
}
