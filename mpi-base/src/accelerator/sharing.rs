//! Names of device memory for other processes of the node.

/// The length of a library's handle.
pub const HANDLE: usize = 64;

/// Part of an allocation in device memory, for other processes of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// The library's handle of the allocation.
    pub handle: [u8; HANDLE],
    /// The number of the allocation, which the library never reuses in its process.
    pub buffer: u64,
    /// The start address of the allocation in the exporting process, and its length.
    pub base: u64,
    /// Length of the allocation in bytes.
    pub size: u64,
    /// Offset of the part in the allocation.
    pub offset: u64,
}

/// The length of an encoded [`Export`].
pub const ENCODED: usize = HANDLE + 4 * 8;

impl Export {
    /// Encodes the export for a process of the same node.
    pub fn encode(&self) -> Vec<u8> {
        let words = [self.buffer, self.base, self.size, self.offset];
        let words = words.into_iter().flat_map(u64::to_ne_bytes);
        self.handle.into_iter().chain(words).collect()
    }

    /// Decodes an export; `None` if the bytes have another length, or the part does not start in the allocation.
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

    /// Returns true if the part has this number of bytes.
    pub fn has(&self, len: usize) -> bool {
        len as u64 <= self.size - self.offset
    }

    /// Returns true if another allocation of the same process overlaps the addresses of this one, so that one of the two was freed.
    pub fn overlaps(&self, base: u64, size: u64) -> bool {
        self.base < base.saturating_add(size) && base < self.base.saturating_add(self.size)
    }
}

/// A copy that was started, until [`super::Accelerator::end`] has reported its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The library's event.
    pub event: usize,
    /// The context of the event.
    pub context: usize,
    /// The number of the mapping that the copy reads; 0: none.
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
