//! Access to C structures by the offsets of their fields.
//!
//! In new versions of both libraries, fields are added at the end of a structure; a mask or a size marks the fields in use.
//! A block is longer than any version of its structure, and bytes that are not set are zero.

/// Zeroed memory of `8 * WORDS` bytes for a C structure.
#[repr(C, align(8))]
pub struct Block<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for Block<WORDS> {
    fn default() -> Self {
        Block([0; WORDS])
    }
}

impl<const WORDS: usize> Block<WORDS> {
    /// Returns the block with a 64-bit field set to `value`. Offsets are constants of this library; an offset beyond the block has no effect.
    #[must_use]
    pub fn with64(mut self, offset: usize, value: u64) -> Self {
        if let Some(word) = self.0.get_mut(offset / 8) {
            *word = value;
        }
        self
    }

    /// Returns the block with a 32-bit field set to `value`.
    #[must_use]
    pub fn with32(mut self, offset: usize, value: u32) -> Self {
        if let Some(word) = self.0.get_mut(offset / 8) {
            let shift = (offset % 8) * 8;
            *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
        }
        self
    }

    /// Returns the block with a pointer field set.
    #[must_use]
    pub fn with_pointer<T: ?Sized>(self, offset: usize, pointer: *const T) -> Self {
        self.with64(offset, pointer.expose_provenance() as u64)
    }

    /// Returns the 64-bit field at `offset`.
    pub fn get64(&self, offset: usize) -> u64 {
        self.0.get(offset / 8).copied().unwrap_or(0)
    }

    /// Returns the 32-bit field at `offset`.
    pub fn get32(&self, offset: usize) -> u32 {
        (self.get64(offset) >> ((offset % 8) * 8)) as u32
    }

    /// Returns the address of the structure, for a library function that writes to the structure.
    pub fn pointer_mut(&mut self) -> *mut std::ffi::c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Returns the address of the structure, for a library function that reads it.
    pub fn pointer(&self) -> *const std::ffi::c_void {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_their_offsets() {
        let block = Block::<3>::default()
            .with32(4, 0x0102_0304)
            .with32(0, 7)
            .with64(16, 9)
            .with32(8, 1)
            .with32(8, 5);
        assert_eq!(block.0, [0x0102_0304_0000_0007, 5, 9]);
        assert_eq!(
            (block.get32(4), block.get32(0), block.get64(16)),
            (0x0102_0304, 7, 9)
        );
        assert_eq!(Block::<1>::default().with64(64, 1).0, [0]);
    }
}
