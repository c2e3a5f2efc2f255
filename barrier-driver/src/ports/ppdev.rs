//! A parallel port through Linux's driver ppdev (`/dev/parport0` and so on): needs no root, exclusive to one process.
//!
//! References: Documentation/misc-devices and `drivers/char/ppdev.c` of the kernel; the codes are those of `<linux/ppdev.h>`.
//!
//! # The protocol
//!
//! 1. Open the device, then `PPEXCL`, which makes the next step exclusive and must precede it.
//! 2. `PPCLAIM` registers this process as exclusive user of the port, and waits until the port is granted.
//! 3. `PPDATADIR` 0 makes the data lines outputs; then `PPWDATA` and `PPRSTATUS` access the wires.
//! 4. `PPRELEASE` and close release the port; so does the end of the process.
//!
//! The data register keeps its value in all of these steps.
//!
//! # Sleeping until the interrupt
//!
//! `PPCLAIM` enables the port's interrupt, and the driver counts the interrupts of each open file.
//! `PPCLRIRQ` reads and resets that count, which arms the interrupt; `poll` on the file returns when the count is not zero.
//! `PPWCTLONIRQ` is not used: it writes control lines in response to an interrupt, for a handshake that the barrier does not have.
//!
//! A port without an interrupt (`irq=none`) accepts these calls, but no interrupt ever occurs.
//! `/proc/sys/dev/parport/parportN/irq` then contains -1, and the port reports that it wakes no sleeping process.
//! If that file is missing, the driver assumes that the port has an interrupt; a sleep without interrupt then ends at its limit.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "ppdev",
    syntax: "ppdev:/dev/parport0,out=D0,in=nACK",
    channels_syntax: "ppdev:/dev/parport0",
    help: "a parallel port by the kernel's driver; needs the group of /dev/parport0, usually lp; \
           out is D0 to D7, in is nACK, SELECT, PE, nERROR or BUSY, and ! inverts; \
           a rising nACK wakes a process that sleeps, if the port has an interrupt",
    usual: Some(super::parallel::USUAL),
    options: &[],
    claim: open,
};

#[cfg(not(target_os = "linux"))]
fn open(
    _: &super::spec::Spec<'_>,
    _: &super::claimed::Wanted<'_>,
) -> Result<std::sync::Arc<dyn super::claimed::Claimed>, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "Linux",
    })
}

#[cfg(target_os = "linux")]
use device::open;

#[cfg(target_os = "linux")]
mod device {
    use super::super::PortError;
    use super::super::claimed::{Claimed, Wanted};
    use super::super::parallel::{self, Lines, Registers};
    use super::super::sleep;
    use super::super::spec::Spec;
    use core::ffi::c_int;
    use rustix::io::Errno;
    use rustix::ioctl::{Getter, NoArg, Opcode, Setter, ioctl, opcode};
    use std::fs::File;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::sync::Arc;
    use std::time::Duration;

    const GROUP: u8 = b'p';
    const PPCLAIM: Opcode = opcode::none(GROUP, 0x8b);
    const PPRELEASE: Opcode = opcode::none(GROUP, 0x8c);
    const PPEXCL: Opcode = opcode::none(GROUP, 0x8f);
    const PPRSTATUS: Opcode = opcode::read::<u8>(GROUP, 0x81);
    const PPRDATA: Opcode = opcode::read::<u8>(GROUP, 0x85);
    const PPWDATA: Opcode = opcode::write::<u8>(GROUP, 0x86);
    const PPDATADIR: Opcode = opcode::write::<c_int>(GROUP, 0x90);
    const PPCLRIRQ: Opcode = opcode::read::<c_int>(GROUP, 0x93);

    pub(super) fn open(
        spec: &Spec<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<dyn Claimed>, PortError> {
        let path = spec.place("the device file")?;
        let lines = Lines::of(spec, wanted)?;
        let name = format!("the parallel port {path}");
        let device = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| unopened(&name, Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        let refused = |step| {
            let port = name.clone();
            move |errno: Errno| PortError::Refused {
                port,
                step,
                cause: errno.to_string(),
            }
        };
        // SAFETY: this ioctl has no argument.
        unsafe { ioctl(&device, NoArg::<PPEXCL>::new()) }.map_err(refused("be asked for alone"))?;
        // SAFETY: this ioctl has no argument.
        unsafe { ioctl(&device, NoArg::<PPCLAIM>::new()) }
            .map_err(|errno| unclaimed(&name, errno))?;
        let mut device = Device {
            file: device,
            has_interrupts: false,
        };
        device
            .drive_data_lines()
            .map_err(refused("drive its data lines"))?;
        device.has_interrupts = device.may_interrupt();
        parallel::claimed(device, name, lines)
    }

    /// Returns true if `text`, the contents of the kernel's `irq` file of a port, names an interrupt; -1 means no interrupt.
    pub(super) fn names_an_interrupt(text: &str) -> bool {
        text.trim().parse::<c_int>().is_ok_and(|irq| irq >= 0)
    }

    fn unopened(name: &str, errno: Errno) -> PortError {
        let port = name.into();
        match errno {
            Errno::ACCESS | Errno::PERM => PortError::Forbidden {
                port,
                remedy: "the group of the device file, usually lp",
            },
            Errno::NOENT => PortError::Unsupported {
                port,
                needs: "the device file, which the kernel's modules ppdev and parport_pc make",
            },
            Errno::NXIO | Errno::NODEV => PortError::Absent {
                port,
                sign: "the kernel knows no port of this number",
            },
            other => PortError::Refused {
                port,
                step: "be opened",
                cause: other.to_string(),
            },
        }
    }

    fn unclaimed(name: &str, errno: Errno) -> PortError {
        let port = name.into();
        match errno {
            // ppdev returns these errors if the port cannot be claimed exclusively.
            Errno::NXIO | Errno::BUSY | Errno::AGAIN => PortError::Busy {
                port,
                holder: "another driver or process, perhaps the printer's (rmmod lp)",
            },
            other => PortError::Refused {
                port,
                step: "be claimed",
                cause: other.to_string(),
            },
        }
    }

    /// A parallel port that this process has claimed.
    struct Device {
        file: File,
        has_interrupts: bool,
    }

    impl Device {
        /// Returns true unless the kernel reports that the port has no interrupt.
        fn may_interrupt(&self) -> bool {
            self.forget_interrupts().is_ok()
                && self
                    .what_the_kernel_says()
                    .is_none_or(|said| names_an_interrupt(&said))
        }

        /// Returns the contents of the kernel's `irq` file of this port; the port's number is the minor number of its device.
        fn what_the_kernel_says(&self) -> Option<String> {
            let about = self.file.metadata().ok()?;
            if !about.file_type().is_char_device() {
                return None;
            }
            let port = rustix::fs::minor(about.rdev());
            std::fs::read_to_string(format!("/proc/sys/dev/parport/parport{port}/irq")).ok()
        }

        fn drive_data_lines(&self) -> Result<(), Errno> {
            // SAFETY: this ioctl reads an int through a pointer.
            unsafe { ioctl(&self.file, Setter::<PPDATADIR, c_int>::new(0)) }
        }
    }

    impl Registers for Device {
        fn data(&self) -> Result<u8, Errno> {
            // SAFETY: this ioctl writes one byte.
            unsafe { ioctl(&self.file, Getter::<PPRDATA, u8>::new()) }
        }

        fn set_data(&self, value: u8) -> Result<(), Errno> {
            // SAFETY: this ioctl reads one byte through a pointer.
            unsafe { ioctl(&self.file, Setter::<PPWDATA, u8>::new(value)) }
        }

        fn status(&self) -> Result<u8, Errno> {
            // SAFETY: this ioctl writes one byte.
            unsafe { ioctl(&self.file, Getter::<PPRSTATUS, u8>::new()) }
        }

        fn has_interrupts(&self) -> bool {
            self.has_interrupts
        }

        fn forget_interrupts(&self) -> Result<(), Errno> {
            // SAFETY: this ioctl writes one int.
            unsafe { ioctl(&self.file, Getter::<PPCLRIRQ, c_int>::new()) }.map(drop)
        }

        fn sleep_until_interrupt(&self, limit: Duration) -> Result<(), Errno> {
            sleep::until_readable(&self.file, limit).map(drop)
        }
    }

    impl Drop for Device {
        fn drop(&mut self) {
            // SAFETY: this ioctl has no argument. Close also releases the port, so an error is harmless.
            let _ = unsafe { ioctl(&self.file, NoArg::<PPRELEASE>::new()) };
        }
    }

    /// Checks the ioctl codes on all processors on which Linux encodes them as on PCs.
    #[cfg(not(any(target_arch = "mips", target_arch = "powerpc", target_arch = "sparc")))]
    const _: () = assert!(
        PPCLAIM == 0x708b
            && PPRSTATUS == 0x8001_7081
            && PPWDATA == 0x4001_7086
            && PPDATADIR == 0x4004_7090
            && PPCLRIRQ == 0x8004_7093
    );

    #[cfg(test)]
    mod tests {
        use super::names_an_interrupt;

        #[test]
        fn the_kernel_names_no_interrupt_by_a_negative_number() {
            assert!(names_an_interrupt("7\n") && names_an_interrupt("0\n"));
            assert!(!names_an_interrupt("-1\n") && !names_an_interrupt("none\n"));
        }
    }
}
