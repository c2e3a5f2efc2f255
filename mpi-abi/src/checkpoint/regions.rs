//! The memory regions of `MPIX_Checkpoint_protect`, saved in one file of the rank's folder.
//!
//! A region is stored as two 64-bit little-endian integers, its number and its length in bytes,
//! and then its packed bytes.
//! The manifest of the checkpoint holds the file's checksum.

use mpi_core::datatype::RecvBuf;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The file name in the rank's folder.
const FILE: &str = "protected";

/// The regions of a process, by the number that the program has given.
#[derive(Default)]
pub struct Regions(RefCell<BTreeMap<c_int, RecvBuf>>);

impl Regions {
    /// Registers a region under a number. `None` removes the region.
    pub fn set(&self, id: c_int, memory: Option<RecvBuf>) {
        let mut regions = self.0.borrow_mut();
        match memory {
            None => drop(regions.remove(&id)),
            Some(memory) => drop(regions.insert(id, memory)),
        }
    }

    /// Writes all regions to a rank's folder. Without regions, no file is written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let regions = self.0.borrow();
        if regions.is_empty() {
            return Ok(());
        }
        let mut file = BufWriter::new(File::create(folder.join(FILE))?);
        for (id, region) in regions.iter() {
            let bytes = region.as_send().to_vec();
            file.write_all(&i64::from(*id).to_le_bytes())?;
            file.write_all(&(bytes.len() as u64).to_le_bytes())?;
            file.write_all(&bytes)?;
        }
        file.flush()
    }

    /// Reads all regions from a rank's folder. The registered regions must match the saved regions.
    pub fn load(&self, folder: &Path) -> Result<(), String> {
        let mut regions = self.0.borrow_mut();
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(format!(
                    "{} cannot be read: {error}",
                    printable::name(&path)
                ));
            }
        };
        let mut saved = read(&bytes).ok_or_else(|| {
            format!(
                "{} is not a file of protected memory",
                printable::name(&path)
            )
        })?;
        for (id, region) in regions.iter_mut() {
            let Some(bytes) = saved.remove(&i64::from(*id)) else {
                return Err(format!("region {id} is protected now and was not then"));
            };
            let now = region.bytes();
            if bytes.len() as i64 != now {
                let then = bytes.len();
                return Err(format!(
                    "region {id} has {now} bytes now and had {then} then"
                ));
            }
            region.unpack_at(0, bytes);
        }
        match saved.keys().next() {
            Some(id) => Err(format!(
                "region {id} was protected then and is not now; MPIX_Checkpoint_protect comes before the first point"
            )),
            None => Ok(()),
        }
    }
}

/// Splits a file into its regions.
fn read(mut bytes: &[u8]) -> Option<BTreeMap<i64, &[u8]>> {
    let mut regions = BTreeMap::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (region, rest) = rest.split_at_checked(len)?;
        regions.insert(i64::from_le_bytes(*id), region);
        bytes = rest;
    }
    Some(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_regions_that_was_cut_is_refused() {
        let mut file = Vec::new();
        for (id, bytes) in [(-1i64, &b"abc"[..]), (7, b"")] {
            file.extend(id.to_le_bytes());
            file.extend((bytes.len() as u64).to_le_bytes());
            file.extend(bytes);
        }
        let regions = read(&file).unwrap();
        assert_eq!((regions[&-1], regions[&7]), (&b"abc"[..], &b""[..]));
        for len in (1..file.len()).filter(|len| *len != 19) {
            assert!(read(&file[..len]).is_none(), "{len}");
        }
    }
}
