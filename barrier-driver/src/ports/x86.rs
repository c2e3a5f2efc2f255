//! A PC's parallel port, accessed by port instructions; registers: data at base+0, status at base+1, control at base+2.
//!
//! # Rights
//!
//! `ioperm(2)` grants access to the three ports and nothing else; it needs `CAP_SYS_RAWIO`.
//! The kernel stores the permission per *thread*, and a new thread inherits only the permission that its creator had at that moment.
//! So each access first checks a thread-local flag, and requests the permission if the flag is not set.
//! Otherwise the first barrier on a thread that was created earlier would cause a segmentation fault.
//!
//! # Claiming
//!
//! The hardware does not prevent two processes from driving one port,
//! so a process claims it by an abstract UNIX socket with the port's name:
//! such a socket is not a file, and it disappears with its process. It is visible only inside one network namespace.
//! A forked child keeps the socket until it calls exec, so a port that has just been released
//! may stay claimed a moment longer; a new claim by the same process waits for that.
//!
//! # Memory order
//!
//! The port instructions are those of crate `x86`, whose `inb` and `outb` are not marked `nomem`: they are compiler fences, so the
//! compiler does not move the program's memory accesses across them (crate `x86_64` marks its instructions `nomem`).
//! The processor does not reorder loads or stores with `in` and `out`
//! (Intel SDM volume 3, "Strengthening or Weakening the Memory-Ordering Model").
#![cfg_attr(
    all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64")),
    allow(unsafe_code)
)]

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "parport",
    syntax: "parport:0x378,out=D0,in=nACK",
    channels_syntax: "parport:0x378",
    help: "a PC's parallel port at this I/O address, by port instructions; needs CAP_SYS_RAWIO; \
           out is D0 to D7, in is nACK, SELECT, PE, nERROR or BUSY, and ! inverts",
    usual: Some(super::parallel::USUAL),
    options: &[],
    claim: open,
};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64"))))]
fn open(
    _: &super::spec::Spec<'_>,
    _: &super::claimed::Wanted<'_>,
) -> Result<std::sync::Arc<dyn super::claimed::Claimed>, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "the port instructions of an x86 processor under Linux",
    })
}

#[cfg(all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64")))]
use instructions::open;

#[cfg(all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64")))]
mod instructions {
    use super::super::PortError;
    use super::super::claimed::{Claimed, Wanted};
    use super::super::parallel::{self, Lines, Registers};
    use super::super::spec::Spec;
    use core::cell::Cell;
    use rustix::io::Errno;
    use std::collections::BTreeSet;
    use std::io::ErrorKind;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::{Duration, Instant};

    const DATA: u16 = 0;
    const STATUS: u16 = 1;
    const CONTROL: u16 = 2;
    /// The number of I/O ports to which access is requested.
    const COUNT: u16 = 3;

    /// Control bit: the data lines are inputs. Bits 6 and 7 are not part of the register.
    const DATA_ARE_INPUTS: u8 = 1 << 5;
    /// Control bit: nACK interrupts the processor.
    const INTERRUPT: u8 = 1 << 4;

    thread_local! {
        /// The first of the three ports that this thread may access; 0 is none.
        static PERMITTED: Cell<u16> = const { Cell::new(0) };
    }

    /// Maximum time that a claim waits for a forked child that still holds the socket of this process's earlier claim.
    const INHERITED_FOR: Duration = Duration::from_secs(5);

    /// The base addresses of the ports that this process has claimed.
    static CLAIMED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

    struct Ports {
        base: u16,
        _claim: Claim,
    }

    /// A claimed port's name; dropping the value releases the name.
    struct Claim {
        base: u16,
        _socket: UnixListener,
    }

    impl Drop for Claim {
        fn drop(&mut self) {
            let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
            claimed.remove(&self.base);
        }
    }

    pub(super) fn open(
        spec: &Spec<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<dyn Claimed>, PortError> {
        let place = spec.place("the I/O address")?;
        let base = address(place).ok_or_else(|| {
            spec.wrong(format!(
                "\"{place}\" is not an I/O address from 0x1 to 0xfffd"
            ))
        })?;
        let lines = Lines::of(spec, wanted)?;
        let name = format!(
            "the parallel port at I/O addresses {base:#x} to {:#x}",
            base + COUNT - 1
        );
        let ports = Ports {
            base,
            _claim: claim(base, &name)?,
        };
        ports
            .prepare()
            .map_err(|errno| refusal(name.clone(), errno))?
            .map_or(Ok(()), |sign| {
                let port = name.clone();
                Err(PortError::Absent { port, sign })
            })?;
        parallel::claimed(ports, name, lines)
    }

    fn address(text: &str) -> Option<u16> {
        let base = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            Some(digits) => u16::from_str_radix(digits, 16),
            None => text.parse(),
        };
        base.ok()
            .filter(|base| (1..=u16::MAX - COUNT + 1).contains(base))
    }

    fn claim(base: u16, name: &str) -> Result<Claim, PortError> {
        let bind = || {
            SocketAddr::from_abstract_name(format!("portcullis-parport-{base:x}"))
                .and_then(|address| UnixListener::bind_addr(&address))
        };
        // Locked until the end of this function, so that two threads cannot both succeed.
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut socket = bind();
        if is_in_use(&socket) && !claimed.contains(&base) && was_made_here(base) {
            let end = Instant::now() + INHERITED_FOR;
            while is_in_use(&socket) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
                socket = bind();
            }
        }
        match socket {
            Ok(socket) => {
                claimed.insert(base);
                Ok(Claim {
                    base,
                    _socket: socket,
                })
            }
            Err(e) if e.kind() == ErrorKind::AddrInUse => Err(PortError::Busy {
                port: name.into(),
                holder: "another process that makes barriers",
            }),
            Err(e) => Err(PortError::Refused {
                port: name.into(),
                step: "be claimed",
                cause: e.to_string(),
            }),
        }
    }

    fn is_in_use<T>(socket: &std::io::Result<T>) -> bool {
        matches!(socket, Err(e) if e.kind() == ErrorKind::AddrInUse)
    }

    /// Returns true if this process created the socket that has the port's name.
    fn was_made_here(base: u16) -> bool {
        let connected = SocketAddr::from_abstract_name(format!("portcullis-parport-{base:x}"))
            .and_then(|address| UnixStream::connect_addr(&address));
        let maker = connected.ok().and_then(|socket| {
            let credentials = rustix::net::sockopt::socket_peercred(&socket);
            credentials.ok().map(|credentials| credentials.pid)
        });
        maker == Some(rustix::process::getpid())
    }

    fn refusal(port: String, errno: Errno) -> PortError {
        match errno {
            Errno::PERM | Errno::ACCESS => PortError::Forbidden {
                port,
                remedy: "CAP_SYS_RAWIO, as root has it and as `setcap cap_sys_rawio+ep PROGRAM` gives it; \
                         a kernel that is locked down gives it to no process, and ppdev:/dev/parport0 does without",
            },
            Errno::NOSYS => PortError::Unsupported {
                port,
                needs: "the system call ioperm (CONFIG_X86_IOPL_IOPERM)",
            },
            other => PortError::Refused {
                port,
                step: "give the right by ioperm",
                cause: other.to_string(),
            },
        }
    }

    impl Ports {
        /// Makes the data lines outputs and disables the interrupt; returns `Some` with the symptom if there is no port.
        fn prepare(&self) -> Result<Option<&'static str>, Errno> {
            let control = self.read(CONTROL)?;
            // An address without a device reads as all ones; a real port that reads so could not drive its wires.
            if control & self.read(DATA)? & self.read(STATUS)? == 0xff {
                return Ok(Some("all its registers read 0xff"));
            }
            let wanted = control & !(DATA_ARE_INPUTS | INTERRUPT);
            if wanted != control {
                self.write(CONTROL, wanted)?;
            }
            Ok(None)
        }

        fn read(&self, register: u16) -> Result<u8, Errno> {
            permit(self.base)?;
            // SAFETY: `permit` has granted this thread access to the port, and reading a parallel port's registers changes no memory.
            Ok(unsafe { x86::io::inb(self.base + register) })
        }

        fn write(&self, register: u16, value: u8) -> Result<(), Errno> {
            permit(self.base)?;
            // SAFETY: `permit` has granted this thread access to the port, whose registers only set levels of wires.
            unsafe { x86::io::outb(self.base + register, value) };
            Ok(())
        }
    }

    impl Registers for Ports {
        fn data(&self) -> Result<u8, Errno> {
            self.read(DATA)
        }

        fn set_data(&self, value: u8) -> Result<(), Errno> {
            self.write(DATA, value)
        }

        fn status(&self) -> Result<u8, Errno> {
            self.read(STATUS)
        }
    }

    impl Drop for Ports {
        /// Revokes the permission of this thread; other threads keep theirs until they end.
        fn drop(&mut self) {
            if PERMITTED.get() == self.base {
                PERMITTED.set(0);
                // On failure the thread keeps a permission that no code uses any more.
                let _ = ioperm(self.base, false);
            }
        }
    }

    /// Requests access to the three ports for this thread, unless the thread has it already.
    fn permit(base: u16) -> Result<(), Errno> {
        if PERMITTED.get() == base {
            return Ok(());
        }
        ioperm(base, true)?;
        PERMITTED.set(base);
        Ok(())
    }

    fn ioperm(base: u16, on: bool) -> Result<(), Errno> {
        // SAFETY: the call has no pointers; the user has requested access to these ports by naming their address.
        let answer = unsafe { libc::ioperm(base.into(), COUNT.into(), on.into()) };
        if answer == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}
