//! A private Slurm on this machine: a controller and two nodes, with private ports and folders.
//!
//! Both nodes are this machine; each `slurmd` gets the name of its node as an argument.
//! A Slurm that is already running on this machine is not affected. No authentication key is needed,
//! because all processes belong to one user and use the loopback interface.
//!
//! Requires root and Debian's packages. Dropping [`Slurm`] ends the daemons and removes the folder;
//! if this process is killed, the daemons end at their time limit.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use xtask::packages::on_path;
use xtask::process::{self, Running};

use crate::job::{Job, send};
use crate::leftovers;
use crate::setting::needs;

/// Number of processors of each node in Slurm's configuration.
const CPUS: u32 = 8;

/// The maximum lifetime of a daemon, in seconds.
const LIFE: &str = "300";

/// A temporary Slurm cluster of two nodes.
#[derive(Debug)]
pub struct Slurm {
    /// The daemons in the order in which they are stopped: the nodes, then the controller.
    daemons: Vec<Running>,
    folder: TempDir,
}

impl Slurm {
    /// Starts the cluster and waits until both nodes are ready; returns `None` if Slurm cannot run here.
    pub fn new() -> Option<Slurm> {
        let programs = ["slurmctld", "slurmd", "srun", "salloc"];
        let possible = rustix::process::geteuid().is_root() && programs.into_iter().all(on_path);
        if !needs(
            possible,
            "root and Slurm (Debian packages slurmctld, slurmd, slurm-client and slurm-wlm-basic-plugins)",
        ) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        let mut slurm = Slurm {
            daemons: Vec::new(),
            folder,
        };
        slurm.configure();
        slurm.start(&["slurmctld", "-D", "-c"]);
        for node in ["n1", "n2"] {
            slurm.start(&["slurmd", "-D", "-N", node]);
        }
        // The daemons were pushed in start order and are stopped in reverse order.
        slurm.daemons.reverse();
        slurm.wait_for_nodes();
        Some(slurm)
    }

    fn configure(&self) {
        let folder = self.folder.path();
        let at = folder.display();
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        let [controller, spare, first, second] = free_ports();
        let config = format!(
            "ClusterName=portcullis\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmUser=root\n\
             SlurmdUser=root\n\
             AuthType=auth/none\n\
             CredType=cred/none\n\
             SlurmctldPort={controller}\n\
             SlurmdPort={spare}\n\
             StateSaveLocation={at}/state\n\
             SlurmdSpoolDir={at}/%n/spool\n\
             TmpFS={at}/%n/tmp\n\
             SlurmctldPidFile={at}/slurmctld.pid\n\
             SlurmdPidFile={at}/%n/slurmd.pid\n\
             SlurmctldLogFile={at}/slurmctld.log\n\
             SlurmdLogFile={at}/%n/slurmd.log\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             MpiDefault=none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core\n\
             ReturnToService=2\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\n\
             SlurmdParameters=config_overrides\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs={CPUS} State=UNKNOWN\n\
             NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs={CPUS} State=UNKNOWN\n\
             PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n"
        );
        let make = || {
            for part in ["state", "n1/spool", "n1/tmp", "n2/spool", "n2/tmp"] {
                fs::create_dir_all(folder.join(part))?;
            }
            fs::write(folder.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n")?;
            fs::write(self.config(), config)
        };
        make().unwrap_or_else(|e| panic!("cannot configure Slurm in {at}: {e}"));
    }

    /// Returns the path of the configuration file, for `SLURM_CONF` of every command.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn start(&mut self, daemon: &[&str]) {
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", LIFE])
            .args(daemon)
            .env(leftovers::MARK, self.mark())
            .env("SLURM_CONF", self.config());
        let running = Running::start(&mut command).unwrap_or_else(|e| panic!("{e}"));
        self.daemons.push(running);
    }

    /// Returns the mark of all daemons and their child processes, an environment variable's value.
    pub fn mark(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Runs a Slurm command and returns its output, or `None` if it fails.
    fn said(&self, command: &str, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(command);
        command.args(arguments).env("SLURM_CONF", self.config());
        let outcome = process::output(&mut command, Duration::from_secs(10)).ok()?;
        Some(outcome.stdout.trim().to_string())
    }

    fn wait_for_nodes(&self) {
        let begin = Instant::now();
        while self
            .said("sinfo", &["--noheader", "--format=%D %t"])
            .as_deref()
            != Some("2 idle")
        {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "Slurm's nodes are not ready:\n{}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        ["slurmctld.log", "n1/slurmd.log", "n2/slurmd.log"]
            .map(read)
            .concat()
    }

    /// Returns a job that srun starts with these options.
    pub fn srun(&self, program: &Path, options: &[&str]) -> Job {
        Job::command(program)
            .under(Path::new("srun"))
            .with(options)
            .env("SLURM_CONF", self.config())
    }

    /// Returns a job that `salloc` starts in an allocation of both nodes, for `tasks` tasks.
    pub fn salloc(&self, command: &Path, tasks: u32) -> Job {
        Job::command(command)
            .under(Path::new("salloc"))
            .ranks(tasks)
            .with(["--quiet", "--nodes=2"])
            .env("SLURM_CONF", self.config())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The controller treats a job whose srun was killed as running, so all jobs are cancelled.
        let _ = self.said("scancel", &["--user=root"]);
        let begin = Instant::now();
        while self
            .said("squeue", &["--noheader"])
            .is_some_and(|jobs| !jobs.is_empty())
            && begin.elapsed() < Duration::from_secs(10)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.daemons.clear();
        // A step daemon outlives its controller, because it tries to report the end of its step to the controller.
        for guardian in leftovers::processes(&self.mark()) {
            let number = guardian
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok());
            send(number.unwrap_or(0), Signal::KILL);
        }
    }
}

/// Returns unused TCP ports that no other cluster of this process uses.
///
/// The ports are below Linux's range for outgoing connections
/// (`net.ipv4.ip_local_port_range`, from 32768 on). The kernel could assign a port of that range
/// to another process between this check and the daemon's start.
fn free_ports<const N: usize>() -> [u16; N] {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    // Different test processes start their search at different ports.
    let start = std::process::id().wrapping_mul(997);
    let mut draws = (0..COUNT).map(|_| {
        let drawn = DRAWN.fetch_add(1, Ordering::Relaxed);
        (FIRST + start.wrapping_add(drawn) % COUNT) as u16
    });
    [(); N].map(|()| {
        draws
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap_or_else(|| panic!("no port from {FIRST} on is free"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_drawn_twice_or_given_to_another_client() {
        let drawn: BTreeSet<u16> = (0..8).flat_map(|_| free_ports::<4>()).collect();
        assert_eq!(drawn.len(), 32);
        assert!(drawn.iter().all(|port| *port < 32_768), "{drawn:?}");
    }
}
