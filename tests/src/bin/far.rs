//! A minimal replacement for ssh and sshd that runs a command over one TCP connection.
//!
//! `far serve ADDRESS` is the server. `far call ADDRESS COMMAND` is a client: the server's shell runs the
//! command, and the client connects its own standard input and output to the command's.
//! The command is a child process of the server. Neither client nor server detects a
//! pulled cable, so the programs that communicate through `far` must detect it themselves.
//! The client first sends the test's mark. The command gets the mark in the environment variable
//! [`MARK`], by which the test later finds the command's processes.

use std::env;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::leftovers::MARK;

/// Maximum time for which a client tries to connect, because the server may still be starting.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.as_slice() {
        [verb, address] if verb == "serve" => serve(address),
        [verb, address, command] if verb == "call" => call(address, command),
        _ => Err(io::Error::other(
            "far serve ADDRESS | far call ADDRESS COMMAND",
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("far: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(address: &str) -> io::Result<()> {
    for caller in TcpListener::bind(address)?.incoming() {
        let caller = caller?;
        thread::spawn(move || {
            if let Err(error) = run(caller) {
                eprintln!("far: {error}");
            }
        });
    }
    Ok(())
}

fn run(mut caller: TcpStream) -> io::Result<()> {
    let (mark, command) = (line(&mut caller)?, line(&mut caller)?);
    let input = OwnedFd::from(caller.try_clone()?);
    Command::new("/bin/sh")
        .args(["-c", &command])
        .env(MARK, mark)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(OwnedFd::from(caller)))
        .spawn()?
        .wait()
        .map(drop)
}

/// Reads a line byte by byte: the bytes after the line belong to the command.
fn line(from: &mut TcpStream) -> io::Result<String> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    loop {
        from.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => return String::from_utf8(text).map_err(io::Error::other),
            byte => text.push(byte),
        }
    }
}

fn call(address: &str, command: &str) -> io::Result<()> {
    let begin = Instant::now();
    let mut there = loop {
        match TcpStream::connect(address) {
            Ok(there) => break there,
            Err(error) if begin.elapsed() > PATIENCE => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    there.set_nodelay(true)?;
    let mark = env::var(MARK).unwrap_or_default();
    there.write_all(format!("{mark}\n{command}\n").as_bytes())?;
    // The files are unbuffered: Rust's standard output would hold bytes back until the end of a line.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut to = there.try_clone()?;
    // The thread is not joined: the client ends when the server's output ends, even if more input could come.
    thread::spawn(move || {
        let _ = pump(&mut input, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    pump(&mut there, &mut output)
}

/// Copies bytes with `read` and `write`. `io::copy` splices; while the splice waits
/// for the network, the kernel blocks every thread that closes the pipe.
fn pump(from: &mut impl io::Read, to: &mut impl io::Write) -> io::Result<()> {
    let mut bytes = [0; 16 * 1024];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            got => to.write_all(&bytes[..got])?,
        }
    }
}
