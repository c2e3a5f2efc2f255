//! The register block of the barrier, mapped into this process: addresses, fields, and volatile accesses.
//!
//! `hdl/registers/registers.txt` describes the block; [`map`] is generated from it.
//! The hot path has two accesses: a store to the node's `ARRIVE`, and loads of its `LEVEL`.
//! Both are levels, so a store that is repeated or merged is harmless, and no arrival can be lost.
//!
//! # Memory order
//!
//! A release fence precedes the store and an acquire fence follows the load, so data that a node has written before it enters
//! are visible to the other nodes after they have left. A device's registers are mapped uncached,
//! and a load from a device returns after the stores that precede it on the same path.
#![allow(unsafe_code)]

pub mod map;

use crate::port_error::PortError;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use map::{global, group, node};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;

/// Number of bytes of the block before the first node's page.
const COMMON: usize = node::BASE;

/// A register block in the address space of this process.
#[derive(Debug)]
pub struct RegisterBlock {
    /// Address of the first mapped byte, at the start of a memory page.
    start: NonNull<u8>,
    mapped: usize,
    /// Offset of the block's first register from `start`, in bytes.
    offset: usize,
    sizes: Sizes,
}

/// The settings of a block's line `start_o`, which pulses when a barrier releases, to trigger instruments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartPulse {
    /// The groups whose releases start a pulse, a bit for each.
    pub groups: u8,
    /// Width of a pulse in clock cycles; 0 disables pulses.
    pub cycles: u16,
    /// True if the line is low in a pulse and high otherwise.
    pub is_inverted: bool,
}

/// The sizes of an instance of the register block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of nodes.
    pub nodes: u32,
    /// Number of groups.
    pub groups: u32,
    /// Distance from one node's page to the next, in bytes.
    pub stride: usize,
}

// SAFETY: the mapping belongs to this value, and all accesses are volatile and of whole words.
unsafe impl Send for RegisterBlock {}
// SAFETY: as for `Send`; no access requires exclusive use of the value.
unsafe impl Sync for RegisterBlock {}

impl RegisterBlock {
    /// Maps the block whose first register is at `offset` of the file, and checks its identity, version and sizes.
    ///
    /// `name` is used in messages.
    pub fn map(file: &File, offset: u64, name: &str) -> Result<Self, PortError> {
        let common = Self::map_bytes(file, offset, COMMON, name)?;
        common.is_supported(name)?;
        let sizes = common.read_sizes();
        let pages = sizes.nodes as usize * sizes.stride;
        let mut whole = Self::map_bytes(file, offset, COMMON + pages, name)?;
        whole.sizes = sizes;
        Ok(whole)
    }

    /// Returns the sizes of this instance.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn map_bytes(file: &File, offset: u64, bytes: usize, name: &str) -> Result<Self, PortError> {
        let refused = |cause: String| PortError::Refused {
            port: name.to_owned(),
            step: "be mapped",
            cause,
        };
        if !offset.is_multiple_of(4) {
            return Err(refused(format!(
                "its offset {offset:#x} is not that of a word"
            )));
        }
        let page = rustix::param::page_size();
        let inside = usize::try_from(offset % page as u64).unwrap_or(0);
        let mapped = (inside + bytes).next_multiple_of(page);
        is_long_enough(file, offset + bytes as u64).map_err(refused)?;
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: with a null address the kernel chooses a free address range, so no other memory of this process is replaced.
        let start = unsafe {
            mmap(
                core::ptr::null_mut(),
                mapped,
                flags.0,
                flags.1,
                file,
                offset - inside as u64,
            )
        };
        let start = start.map_err(|errno: Errno| refused(errno.to_string()))?;
        let start = NonNull::new(start.cast()).ok_or_else(|| refused("address 0".into()))?;
        Ok(Self {
            start,
            mapped,
            offset: inside,
            sizes: Sizes {
                nodes: 0,
                groups: 0,
                stride: 0,
            },
        })
    }

    /// Returns an error unless the memory is a register block of the supported major version.
    fn is_supported(&self, name: &str) -> Result<(), PortError> {
        let refused = |cause: String| PortError::Refused {
            port: name.to_owned(),
            step: "be identified",
            cause,
        };
        let identity = self.read(global::BASE + global::ID);
        if identity == u32::MAX {
            return Err(PortError::Absent {
                port: name.to_owned(),
                sign: "every bit of its first register is 1, as on a bus without a device",
            });
        }
        if identity != map::IDENTITY {
            return Err(refused(format!(
                "its first register reads {identity:#010x} and that of a register block {:#010x}",
                map::IDENTITY
            )));
        }
        let version = self.read(global::BASE + global::VERSION);
        let major = global::version::MAJOR;
        if major.of(version) != major.of(map::VERSION) {
            return Err(refused(format!(
                "it has version {} and this driver serves version {}",
                major.of(version),
                major.of(map::VERSION)
            )));
        }
        Ok(())
    }

    fn read_sizes(&self) -> Sizes {
        let word = self.read(global::BASE + global::SIZES);
        Sizes {
            nodes: global::sizes::N.of(word).min(64),
            groups: global::sizes::G.of(word).min(8),
            stride: 1 << global::sizes::STRIDE.of(word).clamp(6, 12),
        }
    }

    fn word(&self, address: usize) -> &AtomicU32 {
        assert!(
            self.offset + address + 4 <= self.mapped && address.is_multiple_of(4),
            "register {address:#x} is outside of the mapping"
        );
        // SAFETY: the word is inside the mapping by the assertion, which lives as long as `self`, and is aligned,
        // because the mapping starts at a page, and offset and address are multiples of 4.
        unsafe { self.start.add(self.offset + address).cast().as_ref() }
    }

    /// Reads the register at byte `address` of the block.
    ///
    /// # Panics
    ///
    /// Panics unless `address` is that of a word in the block.
    pub fn read(&self, address: usize) -> u32 {
        let word = self.word(address).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        u32::from_le(word)
    }

    /// Writes the register at byte `address` of the block.
    ///
    /// # Panics
    ///
    /// Panics unless `address` is that of a word in the block.
    pub fn write(&self, address: usize, value: u32) {
        fence(Ordering::Release);
        self.word(address).store(value.to_le(), Ordering::Relaxed);
    }

    /// Returns the address of a node's register.
    pub fn node(&self, number: u32, register: usize) -> usize {
        node::BASE + number as usize * self.sizes.stride + register
    }

    /// Returns the address of a group's register.
    pub fn group(number: u32, register: usize) -> usize {
        group::BASE + number as usize * group::STRIDE + register
    }

    /// Returns the members of a group, bit `n` for node `n`.
    pub fn members(&self, number: u32) -> u64 {
        self.wide(Self::group(number, group::MASK0))
    }

    /// Requests new members of a group; the block refuses while the line of an old or new member differs from the level.
    pub fn set_members(&self, number: u32, members: u64) {
        self.write(Self::group(number, group::MASK0), members as u32);
        if self.sizes.nodes > 32 {
            self.write(Self::group(number, group::MASK1), (members >> 32) as u32);
        }
    }

    /// Returns the members that have entered the barrier in progress.
    pub fn arrived(&self, number: u32) -> u64 {
        self.wide(Self::group(number, group::ARRIVED0))
    }

    /// Returns the frequency of the block's clock in Hz, or 0 if the block does not know it.
    pub fn clock_hz(&self) -> u32 {
        self.read(global::BASE + global::CLOCK_HZ)
    }

    /// Returns the settings of the start pulse; `None` if the block has no such line.
    pub fn start_pulse(&self) -> Option<StartPulse> {
        let capabilities = self.read(global::BASE + global::CAPS);
        (global::caps::PULSE.of(capabilities) == 1).then(|| {
            let word = self.read(global::BASE + global::PULSE);
            StartPulse {
                groups: global::pulse::GROUPS.of(word) as u8,
                cycles: global::pulse::WIDTH.of(word) as u16,
                is_inverted: global::pulse::INVERT.of(word) == 1,
            }
        })
    }

    /// Changes the settings of the start pulse; a pulse in progress keeps its width. A block without the line ignores them.
    pub fn set_start_pulse(&self, pulse: StartPulse) {
        let word = global::pulse::GROUPS.with(pulse.groups.into())
            | global::pulse::WIDTH.with(pulse.cycles.into())
            | global::pulse::INVERT.with(pulse.is_inverted.into());
        self.write(global::BASE + global::PULSE, word);
    }

    /// Returns the time of the release that began the last pulse: the low 32 bits of the cycle counter.
    pub fn start_time(&self) -> u32 {
        self.read(global::BASE + global::START)
    }

    fn wide(&self, address: usize) -> u64 {
        let high = match self.sizes.nodes > 32 {
            true => self.read(address + 4),
            false => 0,
        };
        u64::from(high) << 32 | u64::from(self.read(address))
    }
}

impl Drop for RegisterBlock {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this value, and no reference to it outlives the value.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// Refuses an ordinary file that ends before the block does: an access beyond the end would kill the process.
fn is_long_enough(file: &File, wanted: u64) -> Result<(), String> {
    let about = file.metadata().map_err(|e| e.to_string())?;
    if about.is_file() && about.len() < wanted {
        return Err(format!(
            "it has {} bytes and the registers end at {wanted}",
            about.len()
        ));
    }
    Ok(())
}
