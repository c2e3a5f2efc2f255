//! Tests of a served board with several hosts, simulated on one machine:
//! each host is a network namespace with a virtual cable (veth) to the server's namespace.
//!
//! A namespace has no name and ends with the process that holds it,
//! so nothing is left behind after the test.

use super::*;

/// A host: the process that holds its namespace, and that also ends if the test is killed.
struct Host(Process);

impl Host {
    /// Creates a host; returns `None` if this process may not create network namespaces.
    fn start() -> Option<Self> {
        let mut unshare = Command::new("unshare");
        // `cat` holds the namespace: it echoes one byte after the namespace has been created,
        // and ends when its input ends.
        let mut process = Process::start(unshare.args(["--net", "cat"]));
        let ready = process
            .child
            .stdin
            .as_mut()
            .expect("a pipe")
            .write_all(b".");
        let mut echo = [0];
        let output = process.child.stdout.as_mut().expect("a pipe");
        (ready.is_ok() && output.read_exact(&mut echo).is_ok()).then_some(Self(process))
    }

    fn id(&self) -> String {
        self.0.child.id().to_string()
    }

    /// Returns a command that runs on this host.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([&format!("--net=/proc/{}/ns/net", self.id()), program]);
        command
    }

    fn ip(&self, arguments: &str) {
        let output = self.command("ip").args(arguments.split(' ')).output();
        let output = output.expect("nsenter of the Debian package util-linux starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "ip {arguments} (ip is of the Debian package iproute2): {said}"
        );
    }
}

/// Creates the server's host and `count` other hosts. At the cable of host n, the host has address
/// 10.77.n.2 and the server has 10.77.n.1.
fn hosts(count: usize) -> Option<(Host, Vec<Host>)> {
    let missing = || {
        eprintln!(
            "SKIPPED: several hosts are not tested, this process may not make network namespaces"
        );
    };
    let Some(center) = Host::start() else {
        missing();
        return None;
    };
    center.ip("link set lo up");
    let cabled = |number| {
        let host = Host::start()?;
        let id = host.id();
        center.ip(&format!(
            "link add h{number} type veth peer name eth0 netns {id}"
        ));
        center.ip(&format!("addr add 10.77.{number}.1/24 dev h{number}"));
        center.ip(&format!("link set h{number} up"));
        host.ip(&format!("addr add 10.77.{number}.2/24 dev eth0"));
        host.ip("link set eth0 up");
        host.ip(&format!("route add default via 10.77.{number}.1"));
        Some(host)
    };
    let hosts = (1..=count).map(cabled).collect::<Option<_>>()?;
    Some((center, hosts))
}

#[test]
fn nodes_on_several_hosts_pass_barriers_over_one_board() {
    let Some((center, hosts)) = hosts(3) else {
        return;
    };
    let arguments = ["--nodes", "6", "--listen", "0.0.0.0:25175", "--once"];
    let mut server = Server::start(center.command(HWBARR), &arguments);
    server.says("a board of 6 nodes is served at port 25175 of every address of this host");
    // Each host has two nodes; all hosts reach the server by its address on the first host's cable.
    let commands = (0..6).map(|node| hosts[node / 2].command(HWBARR)).collect();
    let mut nodes = Nodes::start(commands, "sim:tcp://10.77.1.1:25175", "200");
    for _fence in ["open", "start"] {
        nodes.fence();
    }
    nodes.end();
    server.says("200 releases counted by the machine");
    server.process.ends_well();
    for host in 1..=3 {
        assert_eq!(server.counted(&format!("joined from 10.77.{host}.2:")), 2);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_host_that_loses_its_network_is_noticed_and_its_node_counts_as_dead() {
    let Some((center, hosts)) = hosts(2) else {
        return;
    };
    let arguments = ["--nodes", "2", "--listen", "0.0.0.0:25175"];
    let mut server = Server::start(center.command(HWBARR), &arguments);
    server.says("served at");
    let commands = hosts.iter().map(|host| host.command(HWBARR)).collect();
    let mut nodes = Nodes::start(commands, "sim:tcp://10.77.1.1:25175", "1000000000");
    for _fence in ["open", "start"] {
        nodes.fence();
    }
    std::thread::sleep(Duration::from_millis(50));
    hosts[1].ip("link set eth0 down");
    let died = server.says("node 1 has died, from 10.77.2.2:");
    assert!(died.contains("it lost its connection: "), "{died}");
    assert_eq!(server.counted("node 0 has died"), 0);
}
