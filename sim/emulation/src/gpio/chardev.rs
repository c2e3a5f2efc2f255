//! The ioctls of `/dev/gpiochipN`, version 2: Documentation/userspace-api/gpio of the kernel, structures of `<linux/gpio.h>`.
//!
//! # Behaviour copied from `drivers/gpio/gpiolib-cdev.c`
//!
//! * `GPIO_GET_CHIPINFO_IOCTL` returns the chip's name and number of lines;
//!   `GPIO_V2_GET_LINEINFO_IOCTL` returns the program that uses a line.
//! * `GPIO_V2_GET_LINE_IOCTL` assigns lines to one user, as inputs or as outputs with a level, and returns a file for them.
//!   It fails with EBUSY if another file has one of the lines, and with EINVAL for a line that the chip lacks.
//! * `GPIO_V2_LINE_GET_VALUES_IOCTL` and `GPIO_V2_LINE_SET_VALUES_IOCTL` on that file read and
//!   write levels; writing an input fails with EPERM.
//! * `GPIO_V2_LINE_SET_CONFIG_IOCTL` on that file configures inputs with or without detection of
//!   both edges. A chip without interrupts refuses edge detection with ENXIO.
//!   Each edge is a `struct gpio_v2_line_event` that can be read from the file,
//!   and wakes `poll` on it.
//! * Closing the file releases the lines, which keep function and level: `persist_gpio_outputs` of
//!   pinctrl-bcm2835 does the same.
//!
//! Detection of only one edge, debouncing, bias and inversion by the kernel are not emulated
//! (EINVAL), because the driver does not use them.
//! An event has no time stamp, and two opposite edges between two polls of a line are not detected.
//!
//! # The file of a request
//!
//! The file of a request is one end of a socket pair, identified by device and inode, which are the same in each process.
//! The emulator's end sees a hang-up when the user has closed the other end in any way,
//! including by its death.

use super::{Function, GpioChip, LINES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use std::os::fd::{AsFd, OwnedFd, RawFd};

/// The type byte in the codes of all these ioctls.
pub const TYPE: u8 = 0xb4;

/// `GPIO_GET_CHIPINFO_IOCTL`: returns the chip's number of lines.
pub const GET_CHIPINFO: u32 = 0x8044_b401;
/// `GPIO_V2_GET_LINEINFO_IOCTL`: returns the program that uses a line, and the line's purpose.
pub const GET_LINEINFO: u32 = 0xc100_b405;
/// `GPIO_V2_GET_LINE_IOCTL`: requests lines for exclusive use; returns a new descriptor.
pub const GET_LINE: u32 = 0xc250_b407;
/// `GPIO_V2_LINE_SET_CONFIG_IOCTL`: changes the configuration of a request's lines.
pub const SET_CONFIG: u32 = 0xc110_b40d;
/// `GPIO_V2_LINE_GET_VALUES_IOCTL`: returns the levels of a request's lines.
pub const GET_VALUES: u32 = 0xc010_b40e;
/// `GPIO_V2_LINE_SET_VALUES_IOCTL`: sets the levels of a request's outputs.
pub const SET_VALUES: u32 = 0xc010_b40f;

const FLAG_USED: u64 = 1 << 0;
const FLAG_INPUT: u64 = 1 << 2;
const FLAG_OUTPUT: u64 = 1 << 3;
/// Flag for detection of both edges, rising and falling.
const FLAG_EDGES: u64 = 1 << 4 | 1 << 5;
const RISING: u32 = 1;
const FALLING: u32 = 2;
/// The identifier of the attribute that contains the levels of outputs.
const ATTRIBUTE_VALUES: u32 = 2;

/// `struct gpiochip_info` of the kernel.
#[repr(C)]
pub struct ChipInfo {
    name: [u8; 32],
    label: [u8; 32],
    lines: u32,
}

/// `struct gpio_v2_line_attribute` of the kernel.
#[derive(Clone, Copy)]
#[repr(C)]
struct Attribute {
    id: u32,
    padding: u32,
    value: u64,
}

/// `struct gpio_v2_line_info` of the kernel.
#[repr(C)]
pub struct LineInfo {
    name: [u8; 32],
    consumer: [u8; 32],
    offset: u32,
    attributes: u32,
    flags: u64,
    attribute: [Attribute; 10],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_config_attribute` of the kernel.
#[derive(Clone, Copy)]
#[repr(C)]
struct ConfigAttribute {
    attribute: Attribute,
    mask: u64,
}

/// `struct gpio_v2_line_request`, with its `struct gpio_v2_line_config` in the middle.
#[repr(C)]
pub struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; 32],
    flags: u64,
    attributes: u32,
    config_padding: [u32; 5],
    attribute: [ConfigAttribute; 10],
    lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

impl LineRequest {
    /// Stores the descriptor that the request's file has in the process that requested the lines.
    pub fn set_file(&mut self, fd: RawFd) {
        self.fd = fd;
    }
}

/// `struct gpio_v2_line_config` of the kernel.
#[repr(C)]
pub struct LineConfig {
    flags: u64,
    attributes: u32,
    padding: [u32; 5],
    attribute: [ConfigAttribute; 10],
}

/// Size of a `struct gpio_v2_line_event` in bytes:
/// time, event type, line, two sequence numbers, padding.
const EVENT: usize = 48;

/// `struct gpio_v2_line_values` of the kernel.
#[repr(C)]
pub struct LineValues {
    bits: u64,
    mask: u64,
}

/// Each ioctl code contains the size of its structure; the types above must have these sizes.
const _: () = assert!(
    size_of::<ChipInfo>() == size_in(GET_CHIPINFO)
        && size_of::<LineInfo>() == size_in(GET_LINEINFO)
        && size_of::<LineRequest>() == size_in(GET_LINE)
        && size_of::<LineConfig>() == size_in(SET_CONFIG)
        && size_of::<LineValues>() == size_in(GET_VALUES)
        && size_of::<LineValues>() == size_in(SET_VALUES)
);

const fn size_in(code: u32) -> usize {
    (code >> 16 & 0x3fff) as usize
}

/// The identity of an open file: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The number of the device.
    pub device: u64,
    /// The number of the inode on this device.
    pub inode: u64,
}

impl FileIdentity {
    /// Returns the identity of an open file of this process.
    pub fn of(file: impl AsFd) -> Result<Self, Errno> {
        let about = rustix::fs::fstat(file)?;
        Ok(Self {
            device: about.st_dev,
            inode: about.st_ino,
        })
    }
}

/// Lines that are assigned to a user until the user closes the other end of `ours`.
struct RequestedLines {
    ours: OwnedFd,
    theirs: FileIdentity,
    consumer: [u8; 32],
    lines: Vec<u32>,
    are_outputs: bool,
    /// The lines' levels at the last poll; `None` if edge detection is disabled.
    told: Option<Vec<bool>>,
}

impl RequestedLines {
    /// Sends an event for each line whose level has changed since the last poll.
    fn tell_edges(&mut self, chip: &mut GpioChip) {
        let Some(told) = &mut self.told else {
            return;
        };
        for (&line, told) in self.lines.iter().zip(told) {
            let high = chip.level(line);
            if std::mem::replace(told, high) != high {
                let mut event = [0; EVENT];
                let kind = if high { RISING } else { FALLING };
                event[8..12].copy_from_slice(&kind.to_ne_bytes());
                event[12..16].copy_from_slice(&line.to_ne_bytes());
                // Events that do not fit into the socket's buffer are lost, as in the kernel.
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let _ = send(&self.ours, &event, flags);
            }
        }
    }

    fn is_closed(&self) -> bool {
        let mut wanted = [PollFd::new(&self.ours, PollFlags::empty())];
        let polled = poll(&mut wanted, Some(&Timespec::default()));
        polled.is_ok() && wanted[0].revents().contains(PollFlags::HUP)
    }
}

/// The requests of all users, with the lines that are assigned to each.
#[derive(Default)]
pub struct Requests(Vec<RequestedLines>);

impl Requests {
    /// Answers `GPIO_GET_CHIPINFO_IOCTL`; rppal identifies the chip by the label.
    pub fn chip_info(&self) -> ChipInfo {
        ChipInfo {
            name: text(b"gpiochip0"),
            label: text(b"pinctrl-bcm2711"),
            lines: LINES,
        }
    }

    /// Answers `GPIO_V2_GET_LINEINFO_IOCTL`.
    pub fn line_info(&mut self, chip: &GpioChip, info: &mut LineInfo) -> Result<(), Errno> {
        if info.offset >= LINES {
            return Err(Errno::INVAL);
        }
        let holder = self.holder(info.offset);
        info.consumer = holder.map_or([0; 32], |held| held.consumer);
        let direction = match chip.function(info.offset) {
            Function::Output => FLAG_OUTPUT,
            Function::Input | Function::Other(_) => FLAG_INPUT,
        };
        info.flags = direction | if holder.is_some() { FLAG_USED } else { 0 };
        (info.name, info.attributes) = ([0; 32], 0);
        Ok(())
    }

    /// Answers `GPIO_V2_GET_LINE_IOCTL`: assigns lines to the caller, and returns the file of the request.
    pub fn request(
        &mut self,
        chip: &mut GpioChip,
        request: &LineRequest,
    ) -> Result<OwnedFd, Errno> {
        let asked = request.offsets.get(..request.lines as usize);
        let lines = asked
            .filter(|lines| !lines.is_empty())
            .ok_or(Errno::INVAL)?;
        let are_outputs = match request.flags {
            FLAG_INPUT => false,
            FLAG_OUTPUT => true,
            _ => return Err(Errno::INVAL),
        };
        let attributes = request.attribute.get(..request.attributes as usize);
        let attributes = attributes.ok_or(Errno::INVAL)?;
        if lines.iter().any(|&line| line >= LINES)
            || attributes
                .iter()
                .any(|a| a.attribute.id != ATTRIBUTE_VALUES)
        {
            return Err(Errno::INVAL);
        }
        if lines.iter().any(|&line| self.holder(line).is_some()) {
            return Err(Errno::BUSY);
        }
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let identity = FileIdentity::of(&theirs)?;
        for (index, &line) in lines.iter().enumerate() {
            if are_outputs {
                let levels = attributes.iter().find(|a| a.mask >> index & 1 == 1);
                let high = levels.is_some_and(|a| a.attribute.value >> index & 1 == 1);
                // The level is set before the line becomes an output,
                // so the wire has no other level in between.
                chip.set(line, high);
                chip.set_function(line, Function::Output);
            } else {
                chip.set_function(line, Function::Input);
            }
        }
        self.0.push(RequestedLines {
            ours,
            theirs: identity,
            consumer: request.consumer,
            lines: lines.to_vec(),
            are_outputs,
            told: None,
        });
        Ok(theirs)
    }

    /// Answers `GPIO_V2_LINE_SET_CONFIG_IOCTL` on the file of a request.
    pub fn configure(
        &mut self,
        chip: &mut GpioChip,
        file: FileIdentity,
        config: &LineConfig,
    ) -> Result<(), Errno> {
        let held = self.of(file)?;
        let direction = if held.are_outputs {
            FLAG_OUTPUT
        } else {
            FLAG_INPUT
        };
        let edges = config.flags & FLAG_EDGES == FLAG_EDGES && !held.are_outputs;
        if config.attributes != 0 || config.flags & !FLAG_EDGES != direction {
            return Err(Errno::INVAL);
        }
        if !edges && config.flags & FLAG_EDGES != 0 {
            return Err(Errno::INVAL);
        }
        if edges && !chip.has_interrupts() {
            return Err(Errno::NXIO);
        }
        held.told = edges.then(|| held.lines.iter().map(|&line| chip.level(line)).collect());
        Ok(())
    }

    /// Polls the lines with edge detection, and sends their edges;
    /// returns true if any line has edge detection.
    pub fn tell_edges(&mut self, chip: &mut GpioChip) -> bool {
        self.0.iter_mut().for_each(|held| held.tell_edges(chip));
        self.0.iter().any(|held| held.told.is_some())
    }

    /// Answers `GPIO_V2_LINE_GET_VALUES_IOCTL` on the file of a request.
    pub fn get(
        &mut self,
        chip: &mut GpioChip,
        file: FileIdentity,
        values: &mut LineValues,
    ) -> Result<(), Errno> {
        let held = self.of(file)?;
        held.tell_edges(chip);
        values.bits = held
            .masked(values.mask)?
            .filter(|&(_, line)| chip.level(line))
            .fold(0, |bits, (index, _)| bits | 1 << index);
        Ok(())
    }

    /// Answers `GPIO_V2_LINE_SET_VALUES_IOCTL` on the file of a request.
    pub fn set(
        &mut self,
        chip: &mut GpioChip,
        file: FileIdentity,
        values: &LineValues,
    ) -> Result<(), Errno> {
        let held = self.of(file)?;
        if !held.are_outputs {
            return Err(Errno::PERM);
        }
        for (index, line) in held.masked(values.mask)? {
            chip.set(line, values.bits >> index & 1 == 1);
        }
        Ok(())
    }

    /// Returns true if this file is that of a request.
    pub fn has(&mut self, file: FileIdentity) -> bool {
        self.of(file).is_ok()
    }

    fn of(&mut self, file: FileIdentity) -> Result<&mut RequestedLines, Errno> {
        self.forget_closed();
        let held = self.0.iter_mut().find(|held| held.theirs == file);
        held.ok_or(Errno::NOTTY)
    }

    fn holder(&mut self, line: u32) -> Option<&RequestedLines> {
        self.forget_closed();
        self.0.iter().find(|held| held.lines.contains(&line))
    }

    /// Removes the requests whose files are closed: their inodes may already be reused.
    fn forget_closed(&mut self) {
        self.0.retain(|held| !held.is_closed());
    }
}

impl RequestedLines {
    /// Returns the lines of the request that `mask` selects,
    /// each with its bit position in the mask.
    fn masked(&self, mask: u64) -> Result<impl Iterator<Item = (usize, u32)>, Errno> {
        if mask == 0 {
            return Err(Errno::INVAL);
        }
        let all = self.lines.iter().copied().enumerate();
        Ok(all.filter(move |(index, _)| mask >> index & 1 == 1))
    }
}

fn text(text: &[u8]) -> [u8; 32] {
    let mut field = [0; 32];
    for (to, from) in field.iter_mut().zip(text) {
        *to = *from;
    }
    field
}
