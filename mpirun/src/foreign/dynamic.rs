//! Dynamic section of an ELF program: its needed libraries (System V ABI, chapter 5,
//! "Dynamic Section").

use mpi_base::text;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB, DynamicTag, ELFCLASS32,
    ELFMAG, FileHeader64, PT_LOAD,
};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache, ReadRef, StringTable};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The libraries that a program needs, and the search path in the program's file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// The library's own name (`DT_SONAME`).
    pub name: Option<String>,
    pub needed: Vec<String>,
    /// The folders of `DT_RUNPATH`, in search order.
    run_path: Vec<PathBuf>,
    /// The folders of the older `DT_RPATH`, before `LD_LIBRARY_PATH`; unused with `DT_RUNPATH`.
    rpath: Vec<PathBuf>,
}

impl Dynamic {
    /// Reads a file's dynamic section; `None` if the file is no readable, dynamic 64-bit ELF file.
    pub fn of(program: &Path) -> Option<Dynamic> {
        read(&ReadCache::new(File::open(program).ok()?))
    }

    /// Finds the file of a library in the program's `DT_RUNPATH` or `DT_RPATH`.
    pub fn on_run_path(&self, library: &str, program: &Path) -> Option<PathBuf> {
        find(&self.run_path, library, program).or_else(|| self.on_rpath(library, program))
    }

    /// Finds a library's file in the program's `DT_RPATH`, which overrides `LD_LIBRARY_PATH`.
    pub fn on_rpath(&self, library: &str, program: &Path) -> Option<PathBuf> {
        find(&self.rpath, library, program).filter(|_| self.run_path.is_empty())
    }
}

/// Returns true if a file is a 32-bit ELF program, for which the 32-bit loader is responsible.
pub fn is_of_32_bits(program: &Path) -> bool {
    let mut begin = [0; 5];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin[..4] == ELFMAG && begin[4] == ELFCLASS32.0
}

fn find(folders: &[PathBuf], library: &str, program: &Path) -> Option<PathBuf> {
    let origin = program.parent().unwrap_or(Path::new("."));
    let files = folders
        .iter()
        .map(|folder| expand(folder, origin).join(text::to_os(library)));
    files.into_iter().find(|file| file.is_file())
}

/// Expands `$ORIGIN`, the folder of the program, in a folder of a run path.
fn expand(folder: &Path, origin: &Path) -> PathBuf {
    let (folder, origin) = (text::from_os(folder), text::from_os(origin));
    let expanded = folder
        .replace("${ORIGIN}", &origin)
        .replace("$ORIGIN", &origin);
    text::to_path(&expanded)
}

/// Reads the dynamic section from ELF data; `None` if the data are not dynamic 64-bit ELF.
pub(crate) fn read<'data>(data: impl ReadRef<'data>) -> Option<Dynamic> {
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
    // DT_STRTAB is a virtual address; the PT_LOAD segment that contains it gives the file offset.
    let (strings, length): (u64, u64) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let start = segments.iter().find_map(|segment| {
        let into = strings.checked_sub(segment.p_vaddr(endian))?;
        let loads = segment.p_type(endian) == PT_LOAD && into < segment.p_filesz(endian);
        loads.then(|| segment.p_offset(endian).checked_add(into))?
    })?;
    let table = StringTable::new(data, start, start.checked_add(length)?);
    let text = |offset: u64| {
        let bytes = table.get(u32::try_from(offset).ok()?).ok()?;
        Some(text::from_bytes(bytes))
    };
    let mut found = Dynamic::default();
    for entry in entries {
        let offset = entry.val(endian);
        match entry.tag(endian) {
            DT_SONAME => found.name = text(offset),
            DT_NEEDED => found.needed.extend(text(offset)),
            tag @ (DT_RPATH | DT_RUNPATH) => {
                let folders = text(offset).unwrap_or_default();
                let path = match tag {
                    DT_RUNPATH => &mut found.run_path,
                    _ => &mut found.rpath,
                };
                path.extend(folders.split(':').map(text::to_path));
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

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(at in 0usize..4096, bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
            let mut file = std::fs::read("/bin/true").unwrap();
            let end = (at + bytes.len()).min(file.len());
            let at = at.min(end);
            file[at..end].copy_from_slice(&bytes[..end - at]);
            let _ = read(&file[..]);
        }
    }
}
