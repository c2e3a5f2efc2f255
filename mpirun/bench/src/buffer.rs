//! Page-aligned message buffers, as in the OSU benchmarks: every library gets the same alignment.

const PAGE: usize = 4096;

/// A buffer of `len` bytes that begins on a page boundary.
#[derive(Debug)]
pub struct Buffer {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Creates a buffer and sets each byte to `fill`, so that every page is mapped.
    pub fn new(len: usize, fill: u8) -> Self {
        // Pages of a zeroed vector would all map the kernel's zero page until the first write.
        let mut storage = Vec::new();
        storage.resize(len + PAGE, std::hint::black_box(fill));
        let start = storage.as_ptr().align_offset(PAGE).min(PAGE);
        Self {
            storage,
            start,
            len,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_on_a_page_and_has_its_length() {
        for len in [0, 1, 4095, 4096, 100_000] {
            let mut buffer = Buffer::new(len, 7);
            assert_eq!(buffer.bytes().as_ptr().addr() % PAGE, 0);
            assert_eq!(buffer.bytes_mut().len(), len);
        }
    }
}
