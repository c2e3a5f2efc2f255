//! Simulated hosts on one machine: network namespaces with private addresses, links and bridges.
//!
//! A network is a bridge in a namespace of its own (the switch), with a virtual cable to each host.
//! `mpirun` launches each rank through a wrapper that enters the rank's namespace.
//! The wrapper unsets the variables about shared memory, so each rank must detect
//! the ranks of its host, as under a launcher that does not pass this information.
//!
//! Requires root, and `ip` and `tc` of Debian's iproute2. Dropping [`Hosts`] removes the hosts.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use xtask::process;

use crate::job::Job;
use crate::setting::{compile, installation, needs};

/// The `far serve` process of a host; killed on drop.
#[derive(Debug)]
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already if its address was in use; the error is ignored.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A small cluster of simulated hosts.
#[derive(Debug)]
pub struct Hosts {
    /// Unique prefix of the names of this cluster's namespaces.
    name: String,
    count: u32,
    wrapper: TempDir,
    /// Difference between the clocks of consecutive hosts, in seconds.
    clocks_apart: u32,
}

fn ip(arguments: &str) -> Result<(), process::ProcessError> {
    let mut command = Command::new("ip");
    command.args(arguments.split_whitespace());
    process::output(&mut command, Duration::from_secs(20)).map(drop)
}

#[track_caller]
fn must(arguments: &str) {
    ip(arguments).unwrap_or_else(|e| panic!("{e}"));
}

impl Hosts {
    /// Creates `count` hosts without a network; returns `None` if the machine does not allow this.
    pub fn new(count: u32) -> Option<Hosts> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("portcullis-{}-{serial}", std::process::id());
        let possible = ip(&format!("netns add {name}-switch")).is_ok();
        if !needs(
            possible,
            "root and ip (Debian package iproute2) to make network namespaces",
        ) {
            return None;
        }
        let wrapper = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        let hosts = Hosts {
            name,
            count,
            wrapper,
            clocks_apart: 0,
        };
        for host in 0..count {
            must(&format!("netns add {}", hosts.host(host)));
            must(&format!("-n {} link set lo up", hosts.host(host)));
        }
        Some(hosts)
    }

    /// Returns the name of a host's namespace.
    fn host(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// Connects all hosts by a network: interface `ethN` with the addresses
    /// 10.77.N.(host + 1)/24 and fd77:N::(host + 1)/64.
    ///
    /// Host `i` gets the MTU `mtus[i % mtus.len()]`.
    pub fn network(self, number: u32, mtus: &[u32]) -> Hosts {
        let switch = format!("{}-switch", self.name);
        must(&format!("-n {switch} link add br{number} type bridge"));
        must(&format!("-n {switch} link set br{number} up"));
        for host in 0..self.count {
            let (space, at) = (self.host(host), host + 1);
            let mtu = mtus[host as usize % mtus.len()];
            must(&format!(
                "link add eth{number} mtu {mtu} netns {space} type veth peer name p{number}x{host} netns {switch}"
            ));
            must(&format!(
                "-n {switch} link set p{number}x{host} master br{number} up"
            ));
            must(&format!(
                "-n {space} addr add 10.77.{number}.{at}/24 dev eth{number}"
            ));
            must(&format!(
                "-n {space} -6 addr add fd77:{number}::{at}/64 dev eth{number} nodad"
            ));
            must(&format!("-n {space} link set eth{number} up"));
        }
        self
    }

    /// Offsets the clocks of consecutive hosts by `seconds`,
    /// as on machines that were booted at different times.
    ///
    /// Processes that `mpirun` starts through the ssh replacement see these clocks.
    pub fn clocks_apart(mut self, seconds: u32) -> Hosts {
        self.clocks_apart = seconds;
        self
    }

    /// Adds to every host two bridges that lead to no other host. One has the same address on
    /// all hosts, like a container engine's bridge; the other has a different address on each host.
    pub fn decoys(self) -> Hosts {
        for host in 0..self.count {
            let space = self.host(host);
            for (bridge, address) in [
                ("docker0", "172.17.0.1/16".to_string()),
                ("virbr0", format!("192.168.{}.1/24", 100 + host)),
            ] {
                must(&format!("-n {space} link add {bridge} type bridge"));
                must(&format!("-n {space} addr add {address} dev {bridge}"));
                must(&format!("-n {space} link set {bridge} up"));
            }
        }
        self
    }

    /// Returns a command that runs a program on a host.
    pub fn command(&self, host: u32, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.host(host)])
            .arg(program);
        command
    }

    /// Limits the rate at which a host can send into a network, in Mbit/s.
    pub fn slow_down(&self, host: u32, network: u32, megabits: u32) {
        let space = self.host(host);
        let rule = format!(
            "-n {space} qdisc add dev eth{network} root tbf rate {megabits}mbit burst 256kb latency 50ms"
        );
        // Debian's `tc` is in a folder that a root shell without a login may not search.
        let script = format!("PATH=$PATH:/usr/sbin:/sbin exec tc {rule}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let done = process::output(&mut command, Duration::from_secs(20));
        done.map(drop).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Returns the number of bytes that a host has sent into a network.
    #[track_caller]
    pub fn sent(&self, host: u32, network: u32) -> u64 {
        let path = format!("/sys/class/net/eth{network}/statistics/tx_bytes");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host), "cat", &path]);
        let output = process::output(&mut command, Duration::from_secs(20));
        let text = output.unwrap_or_else(|e| panic!("{e}"));
        let count = text.stdout.trim().parse();
        count.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Disconnects a host from a network, as if the cable were pulled.
    pub fn unplug(&self, host: u32, network: u32) {
        must(&format!(
            "-n {}-switch link set p{network}x{host} down",
            self.name
        ));
    }

    /// Runs a C program with `ranks_per_host` ranks on each host, in host order.
    pub fn job(&self, program: &str, ranks_per_host: u32) -> Job {
        let script = format!(
            "#!/bin/sh\nunset PORTCULLIS_NODE_FD PORTCULLIS_LOCAL_RANK PORTCULLIS_LOCAL_SIZE PORTCULLIS_LOCAL_RANKS\nexec ip netns exec {}-$((PMI_RANK / {ranks_per_host})) \"$@\"\n",
            self.name
        );
        let wrapper = self.script(&script, &format!("on-its-host-{ranks_per_host}"));
        Job::command(&wrapper)
            .under(&installation().join("bin/mpirun"))
            .ranks(self.count * ranks_per_host)
            .arg(compile(program))
    }

    /// Returns a job with `ranks_per_host` ranks on each of the hosts h0, h1, ...
    /// `mpirun` reaches the hosts through a script that replaces ssh.
    ///
    /// `program` is the path of one of the C programs or of a system command.
    pub fn remote_job(&self, program: &Path, ranks_per_host: u32) -> Job {
        let names: Vec<String> = (0..self.count)
            .map(|host| format!("h{host}:{ranks_per_host}"))
            .collect();
        Job::command(program)
            .under(&installation().join("bin/mpirun"))
            .ranks(self.count * ranks_per_host)
            .with(["--launch-agent"])
            .with([self.in_place_of_ssh()])
            .with(["--host", &names.join(",")])
    }

    /// Creates a script that replaces ssh: it runs a command on a host.
    pub fn in_place_of_ssh(&self) -> PathBuf {
        let clock = match self.clocks_apart {
            0 => String::new(),
            seconds => format!("unshare --time --monotonic $(({seconds} * (host + 1))) "),
        };
        let script = format!(
            "#!/bin/sh\nhost=${{1#h}}\nshift\nexec ip netns exec {}-$host {clock}sh -c \"$*\"\n",
            self.name
        );
        self.script(&script, "in-place-of-ssh")
    }

    /// Like `remote_job`, but hosts are reached over their network by a `far serve` on each host.
    ///
    /// `mpirun` runs on the first host. Dropping the returned servers kills them.
    pub fn distant_job(&self, far: &Path, program: &Path) -> (Job, Vec<Server>) {
        let servers = (0..self.count).map(|host| {
            let address = format!("10.77.0.{}:7077", host + 1);
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &self.host(host)]);
            command.arg(far).args(["serve", &address]);
            let server = command.spawn();
            Server(server.unwrap_or_else(|e| panic!("{} cannot be served: {e}", self.host(host))))
        });
        let servers = servers.collect();
        let call = format!(
            "#!/bin/sh\nhost=${{1#h}}\nshift\nexec {} call 10.77.0.$((host + 1)):7077 \"$*\"\n",
            far.display()
        );
        let first = format!(
            "#!/bin/sh\nexec ip netns exec {} {} \"$@\"\n",
            self.host(0),
            installation().join("bin/mpirun").display()
        );
        let names: Vec<String> = (0..self.count).map(|host| format!("h{host}:1")).collect();
        let job = Job::command(program)
            .under(&self.script(&first, "mpirun-on-the-first-host"))
            .ranks(self.count)
            .with(["--launch-agent"])
            .with([self.script(&call, "call")])
            .with(["--host", &names.join(",")]);
        (job, servers)
    }

    fn script(&self, text: &str, name: &str) -> PathBuf {
        let path: PathBuf = self.wrapper.path().join(name);
        process::write_program(&path, text).unwrap_or_else(|e| panic!("{e}"));
        path
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 0..self.count {
            let _ = ip(&format!("netns delete {}", self.host(host)));
        }
        let _ = ip(&format!("netns delete {}-switch", self.name));
    }
}
