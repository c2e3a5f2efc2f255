//! File, symbol and build-id of a code address, found without the allocator.
//!
//! The address ranges of files are read from `/proc/self/maps`.
//! Symbols are read from the file's symbol tables, which are mapped for that purpose.
//! Each offset is checked against the file's length, since the file may be damaged or replaced.

use super::line::Line;
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::ffi::CStr;
use std::ptr::null_mut;

const PATH: usize = 256;

/// A file with an executable mapping.
#[derive(Clone, Copy)]
struct Module {
    /// The address to which the file's first byte is mapped.
    start: usize,
    path: [u8; PATH],
    len: usize,
}

impl Module {
    fn path(&self) -> &[u8] {
        &self.path[..self.len]
    }
}

/// The files of this process. The most recent result is cached.
pub struct Modules {
    latest: Option<(usize, usize, Module)>,
}

impl Modules {
    pub fn new() -> Modules {
        Modules { latest: None }
    }

    /// Appends a line for an address, such as "  #1 compute+0x1c in ./prog +0x1139".
    pub fn describe(&mut self, number: usize, address: usize, line: &mut Line) {
        line.text("  #").number(number as u64).text(" ");
        self.place(address, line);
        line.end();
    }

    /// Adds the description of an address to a line.
    pub fn place(&mut self, address: usize, line: &mut Line) {
        match self.find(address) {
            None => {
                line.hexadecimal(address as u64);
            }
            Some(module) => describe_in(&module, address, line),
        }
    }

    fn find(&mut self, address: usize) -> Option<Module> {
        if let Some((from, to, module)) = &self.latest
            && (*from..*to).contains(&address)
        {
            return Some(*module);
        }
        self.latest = find(address);
        self.latest.map(|(_, _, module)| module)
    }
}

/// Searches `/proc/self/maps` for the file mapped at an address. Also returns the mapped range.
fn find(address: usize) -> Option<(usize, usize, Module)> {
    let maps = open(
        "/proc/self/maps",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut buffer = [0u8; 4096];
    let (mut filled, mut module) = (0, None::<Module>);
    loop {
        let read = rustix::io::read(&maps, &mut buffer[filled..]).ok()?;
        filled += read;
        let mut begun = 0;
        while let Some(len) = buffer[begun..filled].iter().position(|byte| *byte == b'\n') {
            let (from, to, path) = parse(&buffer[begun..begun + len])?;
            if !path.is_empty() && module.is_none_or(|module| module.path() != path) {
                let mut next = Module {
                    start: from,
                    path: [0; PATH],
                    len: path.len().min(PATH - 1),
                };
                next.path[..next.len].copy_from_slice(&path[..next.len]);
                module = Some(next);
            }
            if (from..to).contains(&address) {
                return module
                    .filter(|_| path.starts_with(b"/"))
                    .map(|module| (from, to, module));
            }
            begun += len + 1;
        }
        // A line longer than the buffer can never be read completely.
        if read == 0 || begun == 0 {
            return None;
        }
        buffer.copy_within(begun..filled, 0);
        filled -= begun;
    }
}

/// Parses a line of `/proc/self/maps` to its address range and path, which may be empty.
fn parse(line: &[u8]) -> Option<(usize, usize, &[u8])> {
    let (from, rest) = hexadecimal(line)?;
    let (to, rest) = hexadecimal(rest.strip_prefix(b"-")?)?;
    // Skips permissions, offset, device and inode.
    let mut rest = rest;
    for _ in 0..4 {
        let field = rest.iter().position(|byte| *byte != b' ')?;
        let len = rest[field..].iter().position(|byte| *byte == b' ');
        rest = len.map_or(&[][..], |len| &rest[field + len..]);
    }
    let path = rest.iter().position(|byte| *byte != b' ');
    Some((from, to, path.map_or(&[][..], |path| &rest[path..])))
}

fn hexadecimal(text: &[u8]) -> Option<(usize, &[u8])> {
    let len = text
        .iter()
        .position(|byte| !byte.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let digits = std::str::from_utf8(&text[..len]).ok()?;
    Some((usize::from_str_radix(digits, 16).ok()?, &text[len..]))
}

fn describe_in(module: &Module, address: usize, line: &mut Line) {
    let offset = address - module.start;
    let file = map(module);
    let image = file.and_then(Image::of);
    // The symbol values of a file that is not position-independent are absolute addresses.
    let value = match image {
        Some(image) if image.is_fixed() => address as u64,
        _ => offset as u64,
    };
    let symbol = image.and_then(|image| image.symbol(value));
    if let Some((name, distance)) = symbol {
        line.bytes(name)
            .text("+")
            .hexadecimal(distance)
            .text(" in ");
    }
    line.bytes(module.path()).text(" +").hexadecimal(value);
    if symbol.is_none()
        && let Some(id) = image.and_then(|image| image.build_id())
    {
        line.text(" (build-id ").hexadecimal_bytes(id).text(")");
    }
}

/// Maps the file of a module. It is never unmapped, since the process is about to end.
fn map(module: &Module) -> Option<&'static [u8]> {
    // The path is padded with NUL bytes.
    let path = CStr::from_bytes_until_nul(&module.path).ok()?;
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let len = usize::try_from(fstat(&file).ok()?.st_size).ok()?;
    if len == 0 {
        return None;
    }
    // SAFETY: this is a new private mapping of `len` bytes for reading, and it is never unmapped.
    unsafe {
        let start = mmap(
            null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            &file,
            0,
        )
        .ok()?;
        Some(std::slice::from_raw_parts(start.cast::<u8>(), len))
    }
}

/// A 64-bit ELF file of the host's byte order.
#[derive(Clone, Copy)]
struct Image(&'static [u8]);

/// A section: type, offset, length, and the index of the linked section.
#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    len: u64,
    link: u32,
}

impl Image {
    fn of(bytes: &'static [u8]) -> Option<Image> {
        (bytes.starts_with(b"\x7fELF") && *bytes.get(4)? == 2).then_some(Image(bytes))
    }

    fn bytes(self, offset: u64, len: u64) -> Option<&'static [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.0.get(offset..)?.get(..usize::try_from(len).ok()?)
    }

    fn half(self, offset: u64) -> Option<u16> {
        Some(u16::from_ne_bytes(self.bytes(offset, 2)?.try_into().ok()?))
    }

    fn word(self, offset: u64) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(offset, 4)?.try_into().ok()?))
    }

    fn double(self, offset: u64) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(offset, 8)?.try_into().ok()?))
    }

    fn is_fixed(self) -> bool {
        const EXECUTABLE: u16 = 2;
        self.half(16) == Some(EXECUTABLE)
    }

    fn section(self, number: u32) -> Option<Section> {
        let (table, each) = (self.double(40)?, u64::from(self.half(58)?));
        let at = table.checked_add(u64::from(number).checked_mul(each)?)?;
        Some(Section {
            kind: self.word(at.checked_add(4)?)?,
            offset: self.double(at.checked_add(24)?)?,
            len: self.double(at.checked_add(32)?)?,
            link: self.word(at.checked_add(40)?)?,
        })
    }

    fn sections(self) -> impl Iterator<Item = Section> {
        let count = u32::from(self.half(60).unwrap_or(0));
        (0..count).filter_map(move |number| self.section(number))
    }

    /// Returns the symbol that contains an address, and the offset from the symbol's start.
    fn symbol(self, address: u64) -> Option<(&'static [u8], u64)> {
        const SYMBOLS: u32 = 2;
        const DYNAMIC_SYMBOLS: u32 = 11;
        let table = |kind: u32| self.sections().find(|section| section.kind == kind);
        let found = |section: Section| self.symbol_in(section, address);
        table(SYMBOLS)
            .and_then(found)
            .or_else(|| table(DYNAMIC_SYMBOLS).and_then(found))
    }

    fn symbol_in(self, table: Section, address: u64) -> Option<(&'static [u8], u64)> {
        const ENTRY: usize = 24;
        const FUNCTION: u8 = 2;
        let names = self.section(table.link)?;
        let names = self.bytes(names.offset, names.len)?;
        for entry in self.bytes(table.offset, table.len)?.chunks_exact(ENTRY) {
            let [value, len] = [8, 16].map(|at| {
                let bytes = entry
                    .get(at..at + 8)
                    .and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u64::from_ne_bytes)
            });
            let is_function = entry[4] & 15 == FUNCTION;
            if is_function && address >= value && address - value < len {
                let name = u32::from_ne_bytes(entry[..4].try_into().ok()?) as usize;
                let rest = names.get(name..)?;
                let end = rest.iter().position(|byte| *byte == 0)?;
                return Some((&rest[..end], address - value));
            }
        }
        None
    }

    fn build_id(self) -> Option<&'static [u8]> {
        const NOTE: u32 = 7;
        const BUILD_ID: u32 = 3;
        self.sections()
            .filter(|section| section.kind == NOTE)
            .find_map(|section| {
                let name_len = u64::from(self.word(section.offset)?);
                let len = u64::from(self.word(section.offset + 4)?);
                let is_build_id = self.word(section.offset + 8)? == BUILD_ID
                    && self.bytes(section.offset + 12, 4)? == b"GNU\0";
                let at = section
                    .offset
                    .checked_add(12)?
                    .checked_add(name_len.next_multiple_of(4))?;
                is_build_id.then(|| self.bytes(at, len.min(32)))?
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_taken_apart() {
        let line = b"7f00-7fff r-xp 00001000 fe:01 1234    /usr/lib/libx y.so";
        assert_eq!(
            parse(line),
            Some((0x7f00, 0x7fff, &b"/usr/lib/libx y.so"[..]))
        );
        let line = b"10-20 rw-p 00000000 00:00 0 ";
        assert_eq!(parse(line), Some((0x10, 0x20, &b""[..])));
        assert_eq!(parse(b"nonsense"), None);
    }

    #[inline(never)]
    extern "C" fn a_function_of_this_program() -> usize {
        std::hint::black_box(17)
    }

    #[test]
    fn an_address_of_this_program_has_its_symbol() {
        let address = a_function_of_this_program as *const () as usize;
        let mut line = Line::new();
        let (_, _, module) = find(address).expect("a module");
        describe_in(&module, address, &mut line);
        let said = String::from_utf8_lossy(line.so_far());
        assert!(said.contains("a_function_of_this_program"), "{said}");
        assert!(said.contains("+0x0 in /"), "{said}");
    }

    #[test]
    fn damaged_files_have_no_symbols_and_no_build_id() {
        let bytes = std::fs::read("/proc/self/exe").expect("this program");
        for len in [0, 4, 5, 20, 63, 64, 100, bytes.len() / 2] {
            let cut: &'static [u8] = Vec::leak(bytes[..len].to_vec());
            if let Some(image) = Image::of(cut) {
                assert_eq!(image.symbol(u64::MAX), None);
                assert_eq!(image.symbol(0x1000), None);
                let _ = image.build_id();
            }
        }
    }
}
