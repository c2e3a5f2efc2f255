//! Programs that are linked to another MPI library, which this launcher cannot make one job of.
//!
//! Open MPI's libraries speak PMIx to their launcher; under a launcher without it each rank of such a program is a job of its own,
//! prints "0 of 1" and ends well. MPICH's libraries speak PMI-1 and are served, and what asks for `libmpi_abi.so` gets ours.
//! So the program's dynamic section is read before it starts (System V ABI, chapter 5, "Dynamic Section"): the libraries it asks for, and its run path.

use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, DynamicTag, FileHeader64, PT_LOAD,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache, ReadRef, StringTable};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Libraries that only Open MPI has. `libmpi.so.12` is MPICH's name as well as that of Open MPI 1.10, so it says nothing.
const OPEN_MPI: &[&str] = &[
    "libmpi.so.",
    "libopen-rte.so.",
    "libopen-pal.so.",
    "libmpi_mpifh.so.",
];
const NOT_ONLY_OPEN_MPI: &[&str] = &["libmpi.so.12", "libmpi.so.1"];

/// What a program asks its loader for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Dynamic {
    needed: Vec<String>,
    /// Folders of the run path, strongest first.
    path: Vec<PathBuf>,
}

/// The sentence about a program that is linked to a library of Open MPI; `None` for any other file.
pub fn warning(program: &Path, ranks: usize) -> Option<String> {
    let dynamic = dynamic(&ReadCache::new(File::open(program).ok()?))?;
    let library = dynamic.needed.iter().find(|name| is_open_mpi(name))?;
    let origin = program.parent().unwrap_or(Path::new("."));
    let found = dynamic
        .path
        .iter()
        .map(|folder| expand(folder, origin).join(library));
    let library = match found.into_iter().find(|file| file.is_file()) {
        Some(file) => format!("{} (by its run path)", file.display()),
        None => library.clone(),
    };
    let ranks = match ranks {
        1 => "its rank is".to_string(),
        more => format!("each of its {more} ranks is"),
    };
    Some(format!(
        "{} is linked to {library} of Open MPI, which this mpirun does not serve: {ranks} a job of its own. \
         Start it with Open MPI's mpirun, or build it with this mpicc.",
        program.display()
    ))
}

fn is_open_mpi(name: &str) -> bool {
    OPEN_MPI.iter().any(|begin| name.starts_with(begin)) && !NOT_ONLY_OPEN_MPI.contains(&name)
}

/// A folder of a run path, whose `$ORIGIN` is where the program lies.
fn expand(folder: &Path, origin: &Path) -> PathBuf {
    let text = folder.to_string_lossy();
    let origin = origin.to_string_lossy();
    text.replace("${ORIGIN}", &origin)
        .replace("$ORIGIN", &origin)
        .into()
}

/// The dynamic section of a 64-bit ELF file; `None` for what is none, has none, or cannot be read.
fn dynamic<'data>(data: impl ReadRef<'data>) -> Option<Dynamic> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let entries = segments
        .iter()
        .find_map(|segment| segment.dynamic(endian, data).ok().flatten())?;
    let value = |tag: DynamicTag| {
        let found = entries.iter().find(|entry| entry.tag(endian) == tag);
        found.map(|entry| entry.val(endian))
    };
    // The string table is named by its address; the segment that loads it says where in the file that is.
    let (strings, length): (u64, u64) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let start = segments.iter().find_map(|segment| {
        let into = strings.checked_sub(segment.p_vaddr(endian))?;
        let loads = segment.p_type(endian) == PT_LOAD && into < segment.p_filesz(endian);
        loads.then(|| segment.p_offset(endian).checked_add(into))?
    })?;
    let table = StringTable::new(data, start, start.checked_add(length)?);
    let text = |offset: u64| {
        let bytes = table.get(u32::try_from(offset).ok()?).ok()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let mut found = Dynamic::default();
    for entry in entries {
        let offset = entry.val(endian);
        match entry.tag(endian) {
            DT_NEEDED => found.needed.extend(text(offset)),
            DT_RPATH | DT_RUNPATH => {
                let folders = text(offset).unwrap_or_default();
                found.path.extend(folders.split(':').map(PathBuf::from));
            }
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// A program that is linked to an empty library of this name in a folder of its run path.
    fn linked_to(folder: &Path, library: &str) -> PathBuf {
        let gcc = |arguments: &[&str]| {
            let mut gcc = Command::new("gcc");
            let done = gcc
                .current_dir(folder)
                .args(["-x", "c", "/dev/null"])
                .args(arguments);
            assert!(done.status().unwrap().success());
        };
        std::fs::write(folder.join("main.c"), "int main(void) { return 0; }").unwrap();
        gcc(&["-shared", "-o", library, &format!("-Wl,-soname,{library}")]);
        let link = format!("-l:{library}");
        gcc(&[
            "main.c",
            "-o",
            "program",
            "-L.",
            "-Wl,--no-as-needed",
            &link,
            "-Wl,-rpath,$ORIGIN",
        ]);
        folder.join("program")
    }

    #[test]
    fn a_program_of_open_mpi_is_told_with_its_library_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let program = linked_to(folder.path(), "libmpi.so.40");
        let said = warning(&program, 4).unwrap();
        let library = folder.path().join("libmpi.so.40");
        let expected = format!(
            "is linked to {} (by its run path) of Open MPI",
            library.display()
        );
        assert!(
            said.contains(&expected) && said.contains("each of its 4 ranks"),
            "{said}"
        );
        for library in ["libmpi.so.12", "libmpi_abi.so.1", "libm.so.6x"] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(
                warning(&linked_to(folder.path(), library), 4),
                None,
                "{library}"
            );
        }
    }

    #[test]
    fn what_is_no_program_of_its_own_is_not_told_of() {
        for file in ["/bin/sh", "/dev/null", "/proc/version", "/", "/nowhere"] {
            assert_eq!(warning(Path::new(file), 2), None, "{file}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(at in 0usize..4096, bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
            let mut file = std::fs::read("/bin/true").unwrap();
            let end = (at + bytes.len()).min(file.len());
            let at = at.min(end);
            file[at..end].copy_from_slice(&bytes[..end - at]);
            let _ = dynamic(&file[..]);
        }
    }
}
