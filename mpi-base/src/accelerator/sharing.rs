//! Descriptions of device memory that a process sends to other processes of the node.

/// Length of a library's IPC handle in bytes.
pub const HANDLE: usize = 64;

/// A part of a device allocation, described for other processes of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// The library's IPC handle of the allocation.
    pub handle: [u8; HANDLE],
    /// The library's ID of the allocation, never reused within the process.
    pub buffer: u64,
    /// Start address of the allocation in the exporting process.
    pub base: u64,
    /// Length of the allocation in bytes.
    pub size: u64,
    /// Offset of the part from the start of the allocation, in bytes.
    pub offset: u64,
}

/// Length of an encoded [`Export`] in bytes.
pub const ENCODED: usize = HANDLE + 4 * 8;

impl Export {
    /// Encodes the export for a process of the same node.
    pub fn encode(&self) -> Vec<u8> {
        let words = [self.buffer, self.base, self.size, self.offset];
        let words = words.into_iter().flat_map(u64::to_ne_bytes);
        self.handle.into_iter().chain(words).collect()
    }

    /// Decodes an export; `None` for another length, or if the part starts outside the allocation.
    pub fn decode(bytes: &[u8]) -> Option<Export> {
        let bytes: &[u8; ENCODED] = bytes.try_into().ok()?;
        let (handle, words) = bytes.split_at(HANDLE);
        let mut words = words.chunks_exact(8).map(|word| {
            let word: Result<[u8; 8], _> = word.try_into();
            word.map_or(0, u64::from_ne_bytes)
        });
        let mut next = || words.next().unwrap_or(0);
        let export = Export {
            handle: handle.try_into().ok()?,
            buffer: next(),
            base: next(),
            size: next(),
            offset: next(),
        };
        let is_sound = export.base.checked_add(export.size).is_some();
        (is_sound && export.offset < export.size).then_some(export)
    }

    /// Returns true if at least `len` bytes of the allocation follow the part's offset.
    pub fn has(&self, len: usize) -> bool {
        len as u64 <= self.size - self.offset
    }

    /// Returns true if this allocation overlaps the `size` bytes at `base`.
    /// If both allocations belong to one process, the older one was freed.
    pub fn overlaps(&self, base: u64, size: u64) -> bool {
        self.base < base.saturating_add(size) && base < self.base.saturating_add(self.size)
    }
}

/// An asynchronous copy between its start and the result of [`super::Accelerator::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The library's event, which is recorded after the copy.
    pub event: usize,
    /// The context in which the event was created.
    pub context: usize,
    /// The number of the mapping that the copy reads; 0 if it reads none.
    pub mapping: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_decoded_as_it_was_encoded_and_malformed_ones_are_refused() {
        let export = Export {
            handle: std::array::from_fn(|i| i as u8),
            buffer: 7,
            base: 1 << 40,
            size: 100,
            offset: 99,
        };
        assert_eq!(Export::decode(&export.encode()), Some(export));
        assert!(export.has(1) && !export.has(2));
        for wrong in [
            Export {
                offset: 100,
                ..export
            },
            Export {
                base: u64::MAX,
                ..export
            },
        ] {
            assert_eq!(Export::decode(&wrong.encode()), None);
        }
        assert_eq!(Export::decode(&[0; ENCODED - 1]), None);
        assert!(export.overlaps((1 << 40) + 99, 5) && !export.overlaps((1 << 40) + 100, 5));
    }
}
