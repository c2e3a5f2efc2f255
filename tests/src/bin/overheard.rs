//! The program `overheard COMMAND...`, a proxy between a rank and its launcher that prints the rank's PMI messages.
//!
//! It forwards both directions of the socket `PMI_FD`, and prints each line of the rank
//! on standard error as `overheard RANK LINE`. The exit status is the rank's.

#![allow(unsafe_code)]

use std::env;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};
use std::thread;

use rustix::io::{FdFlags, fcntl_setfd};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("overheard: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<u8> {
    let rank = env::var("PMI_RANK").map_err(io::Error::other)?;
    let number: i32 = env::var("PMI_FD")
        .map_err(io::Error::other)?
        .parse()
        .map_err(io::Error::other)?;
    // SAFETY: the launcher opened this descriptor for this process; no other code here uses it.
    let launcher = UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
    // The rank gets one end of a socket pair and must not inherit the launcher's socket.
    fcntl_setfd(&launcher, FdFlags::CLOEXEC)?;
    let (ours, theirs) = UnixStream::pair()?;
    fcntl_setfd(&theirs, FdFlags::empty())?;
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or(io::Error::other("overheard COMMAND"))?;
    let mut child = Command::new(program)
        .args(words)
        .env(
            "PMI_FD",
            std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string(),
        )
        // The record names the launcher's socket, and the rank gets another one.
        .env_remove("PORTCULLIS_PMI")
        .spawn()?;
    drop(theirs);
    let (mut said, mut answers) = (launcher.try_clone()?, ours.try_clone()?);
    let mut launcher = launcher;
    thread::spawn(move || io::copy(&mut launcher, &mut answers));
    listen(ours, &mut said, &rank)?;
    let status = child.wait()?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Forwards the rank's output until it closes its socket.
fn listen(mut rank: UnixStream, launcher: &mut UnixStream, name: &str) -> io::Result<()> {
    let mut begun = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let got = match rank.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => &buffer[..got],
            // The rank was killed, or ended before it read all data that this proxy sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        begun.extend_from_slice(got);
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            eprint!("overheard {name} {}", String::from_utf8_lossy(&line));
        }
        launcher.write_all(got)?;
    }
}
