//! A node of a register block that is mapped from a UIO device, a PCI resource file or any other file: a store enters, loads poll.
//!
//! The text names the node instead of two lines:
//! `uio:/dev/uio0,node=3`, `mem:/sys/bus/pci/devices/0000:03:00.0/resource2+0x1000,node=3,group=1`.
//!
//! # Claiming
//!
//! A process claims a node by locking the first byte of the node's page in the file; the kernel releases the lock when the process ends.
//!
//! # Members
//!
//! With `members=0-3` the port writes the group's member mask, unless the mask is already right, and enables the block;
//! without `members=`, the node must already be a member. A node that is not yet a member first sets its line to the group's level,
//! because the block refuses new members whose lines differ from that level.
//!
//! # Sleeping until the interrupt
//!
//! The node's `wake_o` is the interrupt of a UIO device, so each node has a UIO device of its own.
//! Arming clears the node's event, discards earlier interrupts and enables the next one. This order loses no release,
//! because the event is latched and the interrupt line is level-triggered. A kernel driver without control of interrupts returns ENOSYS
//! and re-enables the interrupt by itself.
//! The driver `uio_pci_generic` maps no registers, so `registers=` must name the resource file that contains them.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use super::PortKind;

const OPTIONS: &[&str] = &["node", "group", "members", "registers"];

pub(super) const UIO: PortKind = PortKind {
    name: "uio",
    syntax: "uio:/dev/uio0,node=3",
    channels_syntax: "uio:/dev/uio0,node=3",
    help: "a node of the register block behind a UIO device, whose interrupt wakes a process that sleeps; \
           needs read and write access to the device; group=0 and members=0-3 choose the barrier, \
           registers=FILE+OFFSET the mapping if the device has none",
    usual: None,
    options: OPTIONS,
    claim: open,
};

pub(super) const MEM: PortKind = PortKind {
    name: "mem",
    syntax: "mem:FILE+OFFSET,node=3",
    channels_syntax: "mem:FILE+OFFSET,node=3",
    help: "a node of the register block in a file that can be mapped, such as resource2 of a PCI device; \
           needs read and write access to the file; group=0 and members=0-3 choose the barrier",
    usual: None,
    options: &["node", "group", "members"],
    claim: open,
};

#[cfg(not(target_os = "linux"))]
fn open(
    _: &super::spec::Spec<'_>,
    _: &super::claimed::Wanted<'_>,
) -> Result<std::sync::Arc<dyn super::claimed::Claimed>, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: UIO.name,
        needs: "Linux",
    })
}

#[cfg(target_os = "linux")]
pub(super) use mapped::block;
#[cfg(target_os = "linux")]
use mapped::open;

#[cfg(target_os = "linux")]
mod mapped {
    use super::super::PortError;
    use super::super::byte_lock::ByteLock;
    use super::super::claimed::{Claimed, Wanted};
    use super::super::error::Failure;
    use super::super::sleep::until_readable;
    use super::super::spec::Spec;
    use crate::registers::RegisterBlock;
    use crate::registers::map::{global, node};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io::ErrorKind;
    use std::os::unix::fs::FileTypeExt;
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Time limit for all nodes of a new group to set their lines to the group's level.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// A claimed node of a register block.
    struct Node {
        block: RegisterBlock,
        number: u32,
        group: u32,
        name: String,
        /// The UIO device whose interrupt is this node's, if it has one.
        interrupt: Option<File>,
        _claim: ByteLock,
    }

    pub(super) fn open(
        spec: &Spec<'_>,
        _wanted: &Wanted<'_>,
    ) -> Result<Arc<dyn Claimed>, PortError> {
        let members = spec.text_of("members").map(|text| members_of(spec, text));
        let members = members.transpose()?;
        let place = spec.place("the file with the registers")?;
        let is_uio = spec.text.starts_with("uio");
        let Opened {
            file,
            offset,
            block,
            number,
            group,
            name,
        } = Opened::new(spec)?;
        let address = offset + block.node(number, 0) as u64;
        let claim = ByteLock::take(file, address, &name)?;
        let interrupt = match is_uio {
            true => Some(opened(place, &name)?),
            false => None,
        };
        let claimed = Node {
            block,
            number,
            group,
            name,
            interrupt,
            _claim: claim,
        };
        claimed.join(members)?;
        Ok(Arc::new(claimed))
    }

    /// Maps the register block that a port's text names.
    /// Returns the block, and the group that the text names.
    pub(in super::super) fn block(spec: &Spec<'_>) -> Result<(RegisterBlock, u32), PortError> {
        Opened::new(spec).map(|opened| (opened.block, opened.group))
    }

    /// The node and the block that a text names, mapped and not claimed.
    struct Opened {
        file: File,
        offset: u64,
        block: RegisterBlock,
        number: u32,
        group: u32,
        name: String,
    }

    impl Opened {
        fn new(spec: &Spec<'_>) -> Result<Self, PortError> {
            let place = spec.place("the file with the registers")?;
            let is_uio = spec.text.starts_with("uio");
            let number = spec.value("node")?;
            let number = number.ok_or_else(|| spec.wrong("node= is missing"))?;
            let group = spec.value("group")?.unwrap_or(0);
            let registers = spec.text_of("registers");
            let (path, offset) = match (is_uio, registers) {
                (true, None) => (place, uio_offset(place)),
                (_, Some(text)) => split_offset(spec, text)?,
                (false, None) => split_offset(spec, place)?,
            };
            let name = format!("node {number} of the registers {path}");
            let file = opened(path, &name)?;
            let block = RegisterBlock::map(&file, offset, &name)?;
            let sizes = block.sizes();
            if number >= sizes.nodes || group >= sizes.groups {
                return Err(spec.wrong(format!(
                    "{path} has {} nodes and {} groups, counted from 0",
                    sizes.nodes, sizes.groups
                )));
            }
            Ok(Self {
                file,
                offset,
                block,
                number,
                group,
                name,
            })
        }
    }

    /// Parses a list of nodes, such as `0-3+6`, and returns the bit mask of the nodes.
    fn members_of(spec: &Spec<'_>, text: &str) -> Result<u64, PortError> {
        let mut members = 0;
        for range in text.split('+') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&node| node < 64);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(spec.wrong(format!(
                    "members={text} is not a list of nodes such as 0-3+6"
                )));
            };
            members |= (first..=last).fold(0, |bits, node| bits | 1 << node);
        }
        Ok(members)
    }

    /// Splits `FILE+OFFSET`; the offset is 0 if it is missing.
    fn split_offset<'a>(spec: &Spec<'_>, text: &'a str) -> Result<(&'a str, u64), PortError> {
        let Some((path, offset)) = text.rsplit_once('+') else {
            return Ok((text, 0));
        };
        let number = match offset.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => offset.parse(),
        };
        let number = number.map_err(|_| {
            spec.wrong(format!(
                "\"{offset}\" after the + of {text} is not an offset"
            ))
        })?;
        Ok((path, number))
    }

    /// Returns the registers' offset in the first mapping of a UIO device, which starts at a page boundary.
    fn uio_offset(device: &str) -> u64 {
        let name = device.rsplit('/').next().unwrap_or(device);
        let path = format!("/sys/class/uio/{name}/maps/map0/offset");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let digits = text.trim().trim_start_matches("0x");
        u64::from_str_radix(digits, 16).unwrap_or(0)
    }

    fn opened(path: &str, name: &str) -> Result<File, PortError> {
        let opened = File::options().read(true).write(true).open(path);
        opened.map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => PortError::Forbidden {
                port: name.to_owned(),
                remedy: "read and write access to the file, which its owner grants",
            },
            ErrorKind::NotFound => PortError::Absent {
                port: name.to_owned(),
                sign: "there is no such file, which the driver of the device makes",
            },
            _ => PortError::Refused {
                port: name.to_owned(),
                step: "be opened",
                cause: e.to_string(),
            },
        })
    }

    impl Node {
        fn arrive_register(&self) -> usize {
            self.block.node(self.number, node::ARRIVE)
        }

        fn level(&self) -> bool {
            let levels = self.block.read(self.block.node(self.number, node::LEVEL));
            levels >> self.group & 1 == 1
        }

        /// Makes the node a member, or checks that it is a member.
        fn join(&self, members: Option<u64>) -> Result<(), PortError> {
            let me = 1 << self.number;
            let refused = |cause: String| PortError::Refused {
                port: self.name.clone(),
                step: "join its group",
                cause,
            };
            let Some(wanted) = members else {
                let now = self.block.members(self.group);
                return match now & me != 0 {
                    true => Ok(()),
                    false => Err(refused(format!(
                        "its group {} has the members {now:#x} (a bit for each node); members= sets them",
                        self.group
                    ))),
                };
            };
            if wanted & me == 0 {
                return Err(refused("members= does not name the node itself".into()));
            }
            let since = Instant::now();
            while self.block.members(self.group) != wanted {
                if self.block.members(self.group) & me == 0 {
                    // The node is no member, so no barrier depends on the level of its line.
                    self.drive(self.level());
                }
                self.block.set_members(self.group, wanted);
                if since.elapsed() > PATIENCE {
                    return Err(refused(format!(
                        "the block refuses the members {wanted:#x} of group {}: its members are {:#x}, \
                         and a node among them or the new ones is in a barrier",
                        self.group,
                        self.block.members(self.group)
                    )));
                }
                thread::yield_now();
            }
            self.block
                .write(global::BASE + global::CTRL, global::ctrl::ENABLE.with(1));
            Ok(())
        }

        /// Drives the node's line in this port's group; the node's lines in other groups keep their levels.
        fn drive(&self, high: bool) {
            let register = self.arrive_register();
            let bit = 1 << self.group;
            let others = self.block.read(register) & !bit;
            let own = if high { bit } else { 0 };
            self.block.write(register, others | own);
        }

        /// Discards earlier interrupts and enables the next one.
        fn rearm(&self, device: &File) -> Result<(), Errno> {
            let bit = node::intr_state::RELEASE.with(1 << self.group);
            let enable = self.block.node(self.number, node::INTR_ENABLE);
            if self.block.read(enable) & bit == 0 {
                self.block.write(enable, self.block.read(enable) | bit);
            }
            self.block
                .write(self.block.node(self.number, node::INTR_STATE), bit);
            if until_readable(device, Duration::ZERO)? {
                rustix::io::read(device, &mut [0_u8; 4])?;
            }
            match rustix::io::write(device, &1_u32.to_ne_bytes()) {
                // With these errors the kernel's driver masks and unmasks the interrupt by itself.
                Ok(_) | Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
    }

    impl Claimed for Node {
        fn set(&self, _out: usize, high: bool) -> Result<(), Failure> {
            self.drive(high);
            Ok(())
        }

        fn get(&self, _input: usize) -> Result<bool, Failure> {
            Ok(self.level())
        }

        fn wakes_sleepers(&self, _input: usize) -> bool {
            let device = self.interrupt.as_ref();
            device.is_some_and(|file| {
                file.metadata()
                    .is_ok_and(|about| about.file_type().is_char_device() || about.is_file())
            })
        }

        fn arm(&self, _input: usize) -> Result<(), Failure> {
            match &self.interrupt {
                Some(device) => Ok(self.rearm(device)?),
                None => Ok(()),
            }
        }

        fn sleep(&self, _input: usize, _high: bool, limit: Duration) -> Result<(), Failure> {
            match &self.interrupt {
                Some(device) => Ok(until_readable(device, limit).map(drop)?),
                None => Ok(()),
            }
        }

        fn out_name(&self, _out: usize) -> String {
            format!("ARRIVE of {}", self.name)
        }

        fn in_name(&self, _input: usize) -> String {
            format!("LEVEL of {}", self.name)
        }
    }
}
