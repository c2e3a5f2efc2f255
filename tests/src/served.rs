//! A `hwbarr serve` process, on this host or on one of [`Hosts`].

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use barrier_board::served::{Address, BoardObserver};
use rustix::process::{Pid, Signal, kill_process};
use xtask::process;

use crate::hosts::Hosts;
use crate::installation;

/// A server process; killed on drop.
pub struct Server {
    process: Child,
    /// The server's address, as value of the parameter `coll_hwbarr_port`.
    pub address: String,
    /// The read end of the server's standard output, open because the server keeps writing its log.
    _log: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server on this host; `arguments` select the board.
    #[track_caller]
    pub fn new<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        Self::start(Command::new(program()), "127.0.0.1", arguments)
    }

    /// Starts a server on one of the simulated hosts, at its address in the first network.
    #[track_caller]
    pub fn on<S: AsRef<OsStr>>(hosts: &Hosts, host: u32, arguments: &[S]) -> Self {
        let address = format!("10.77.0.{}", host + 1);
        Self::start(hosts.command(host, &program()), &address, arguments)
    }

    #[track_caller]
    fn start<S: AsRef<OsStr>>(mut command: Command, at: &str, arguments: &[S]) -> Self {
        let mut process = command
            .args(["serve", "--listen", &format!("{at}:0")])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("hwbarr does not start: {e}"));
        let Some(log) = process.stdout.take() else {
            panic!("hwbarr has no output");
        };
        let mut log = BufReader::new(log);
        let mut line = String::new();
        if let Err(e) = log.read_line(&mut line) {
            panic!("hwbarr does not say where it listens: {e}");
        }
        let address = line.trim().rsplit(' ').next().unwrap_or_default();
        Self {
            process,
            address: address.to_owned(),
            _log: log,
        }
    }

    /// Stops the server with SIGSTOP: connections stay open, but no reply is sent.
    pub fn freeze(&self) {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        let Some(pid) = pid else {
            panic!("the server has no process number");
        };
        if let Err(e) = kill_process(pid, Signal::STOP) {
            panic!("the server cannot be stopped: {e}");
        }
    }

    /// Returns the board's number of released barriers, read by an observer on this host.
    #[track_caller]
    pub fn releases(&self) -> u64 {
        let seen = self
            .address
            .parse::<Address>()
            .map_err(|e| e.to_string())
            .and_then(|address| BoardObserver::connect(&address).map_err(|e| e.to_string()))
            .and_then(|mut observer| observer.look().map_err(|e| e.to_string()));
        let seen = seen.unwrap_or_else(|e| panic!("the board cannot be observed: {e}"));
        seen.board.releases
    }

    /// Runs `hwbarr watch` once on this board and returns its output.
    /// The parameter `watch` is a command that starts hwbarr, on this or another host.
    #[track_caller]
    fn seen(&self, mut watch: Command) -> String {
        watch.args(["watch", &self.address, "--once", "--json"]);
        let seen = process::output(&mut watch, Duration::from_secs(60));
        seen.unwrap_or_else(|e| panic!("{e}")).stdout
    }

    /// Returns the number of released barriers that `hwbarr watch` reports on one of these hosts.
    #[track_caller]
    pub fn releases_seen_from(&self, hosts: &Hosts, host: u32) -> u64 {
        let seen = self.seen(hosts.command(host, &program()));
        let number = seen.split("\"releases\":").nth(1).unwrap_or_default();
        let digits = number.split(|c: char| !c.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse().ok());
        number.unwrap_or_else(|| panic!("no releases in {seen}"))
    }
}

fn program() -> std::path::PathBuf {
    installation().join("bin/hwbarr")
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
