//! MCA parameters of the transport `tcp`.

use super::address::{self, Filter, Local};
use super::rendezvous_points::{Buffers, Met};
use crate::btl::Limits;
use mpi_base::param::{About, Level, Param, ParamError, Params};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::process::{Resource, getrlimit};
use std::time::Duration;

static EAGER_LIMIT: Param<usize> = Param::new(
    "btl",
    "tcp",
    "eager_limit",
    "64k",
    Level::TUNER,
    "Maximum size of a message over TCP that is sent eagerly",
);

static MAX_SEND_SIZE: Param<usize> = Param::new(
    "btl",
    "tcp",
    "max_send_size",
    "512k",
    Level::TUNER,
    "Maximum fragment size of a message over TCP",
);

static LINKS: Param<u32> = Param::new(
    "btl",
    "tcp",
    "links",
    "0",
    Level::TUNER,
    "Number of connections between two processes, which share large messages, and of which one replaces another that fails; 0: one for each network that both machines are in, at most 4",
);

static IF_INCLUDE: Param<String> = Param::new(
    "btl",
    "tcp",
    "if_include",
    "",
    Level::USER,
    "Interfaces, networks or families to use, separated by commas: eth0,10.1.0.0/16,ipv4; empty: all",
);

static IF_EXCLUDE: Param<String> = Param::new(
    "btl",
    "tcp",
    "if_exclude",
    "",
    Level::USER,
    "Interfaces, networks or families to exclude, separated by commas: docker0,192.168.0.0/16,ipv6",
);

static PORT: Param<u16> = Param::new(
    "btl",
    "tcp",
    "port",
    "0",
    Level::USER,
    "Port to listen on, for one process per machine behind a firewall; further links use the following ports; 0: chosen by the system",
);

static SNDBUF: Param<usize> = Param::new(
    "btl",
    "tcp",
    "sndbuf",
    "0",
    Level::TUNER,
    "Size of a socket's send buffer in bytes; 0: adapted by the system",
);

static RCVBUF: Param<usize> = Param::new(
    "btl",
    "tcp",
    "rcvbuf",
    "0",
    Level::TUNER,
    "Size of a socket's receive buffer in bytes; 0: adapted by the system",
);

static DEAD_AFTER: Param<Duration> = Param::new(
    "btl",
    "tcp",
    "dead_after",
    "60s",
    Level::TUNER,
    "Time without an answer from a peer's machine after which an open connection is lost; 0: no limit",
);

static REFUSED_FOR: Param<Duration> = Param::new(
    "btl",
    "tcp",
    "refused_for",
    "10s",
    Level::TUNER,
    "Time for which the first connection to a peer is retried while the peer refuses it",
);

static BANDWIDTH: Param<u32> = Param::new(
    "btl",
    "tcp",
    "bandwidth",
    "0",
    Level::TUNER,
    "Bandwidth of a link in Mbit/s, for sharing messages between links; 0: as the interface reports",
);

pub(super) static PARAMS: &[&About] = &[
    EAGER_LIMIT.about(),
    MAX_SEND_SIZE.about(),
    LINKS.about(),
    IF_INCLUDE.about(),
    IF_EXCLUDE.about(),
    PORT.about(),
    SNDBUF.about(),
    RCVBUF.about(),
    DEAD_AFTER.about(),
    REFUSED_FOR.about(),
    BANDWIDTH.about(),
];

/// The names of the parameters that can exclude all addresses, for error texts.
pub(super) const FILTERS: &str = "btl_tcp_if_include and btl_tcp_if_exclude";

/// Congestion control for connections within one machine, where no congestion can occur: the standard algorithm (RFC 5681), which every process may select on Linux.
/// The system's default may pace packets, as BBR does, which would only delay a copy in memory.
const PLAIN: &str = "reno";

/// Maximum number of links; more would only be slower. The number also fits into the byte of an address record.
const MOST_LINKS: u32 = 16;

/// Maximum number of networks that are used if the user does not set the number of links.
const MOST_NETWORKS: usize = 4;

#[derive(Clone)]
pub(super) struct Settings {
    pub limits: Limits,
    /// Number of links; 0 means one link for each common network.
    pub links: u32,
    pub filter: Filter,
    pub port: u16,
    pub buffers: Buffers,
    dead_after: Duration,
    /// Time during which a peer that refuses connections is tried again.
    pub refused_for: Duration,
    pub megabits: u32,
    /// Maximum size of this process's address record in bytes; addresses that do not fit are left out.
    pub most_card: usize,
}

impl Settings {
    pub fn read(params: &Params) -> Result<Settings, ParamError> {
        // The length field of a frame has 32 bits, and a receiver allocates memory for a whole frame, so the maximum is 1 GiB.
        let max_send = params.get(&MAX_SEND_SIZE)?.clamp(1 << 10, 1 << 30);
        Ok(Settings {
            limits: Limits {
                eager: params.get(&EAGER_LIMIT)?.min(max_send),
                max_send,
            },
            links: params.get(&LINKS)?.min(MOST_LINKS),
            filter: Filter::new(&params.get(&IF_INCLUDE)?, &params.get(&IF_EXCLUDE)?),
            port: params.get(&PORT)?,
            buffers: Buffers {
                send: params.get(&SNDBUF)?,
                receive: params.get(&RCVBUF)?,
            },
            dead_after: params.get(&DEAD_AFTER)?,
            refused_for: params.get(&REFUSED_FOR)?,
            megabits: params.get(&BANDWIDTH)?,
            most_card: usize::MAX,
        })
    }

    /// Returns the number of links of this process if it has the addresses `addresses`, in a job of `size` processes.
    pub fn links_for(&self, addresses: &[Local], size: u32) -> u32 {
        if self.links > 0 {
            return self.links;
        }
        let networks = address::interfaces(addresses).clamp(1, MOST_NETWORKS) as u32;
        // The connections to all processes may use at most a quarter of the file descriptors; the rest are for the program.
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
        let for_each = descriptors / u64::from(size.max(1));
        networks
            .min(u32::try_from(for_each).unwrap_or(u32::MAX))
            .max(1)
    }

    /// Returns the listening port of a link; 0 means that the system chooses.
    pub fn port(&self, link: u32) -> u16 {
        match self.port {
            0 => 0,
            first => u16::try_from(u32::from(first).saturating_add(link)).unwrap_or(0),
        }
    }

    /// Sets the socket options of an established connection.
    pub fn prepare(&self, met: &Met) -> Result<(), Errno> {
        let socket = &met.socket;
        if met.is_inside {
            // If the system lacks this algorithm, its default remains, which also works.
            let _ = sockopt::set_tcp_congestion(socket, PLAIN);
        }
        // A message is complete when it is written, so Nagle's algorithm (RFC 896) would only delay it.
        sockopt::set_tcp_nodelay(socket, true)?;
        if self.dead_after.is_zero() {
            return Ok(());
        }
        // Enables probes of an idle connection, so that a process that only receives detects the loss of a machine (RFC 9293, 3.8.4; RFC 5482).
        let probe = (self.dead_after / 4).max(Duration::from_secs(1));
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, probe)?;
        sockopt::set_tcp_keepintvl(socket, probe)?;
        sockopt::set_tcp_keepcnt(socket, 3)?;
        let millis = u32::try_from(self.dead_after.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(socket, millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::param::Source;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut params = Params::default();
        for (name, value) in pairs {
            params.set(name, value, Source::CommandLine);
        }
        Settings::read(&params).unwrap()
    }

    #[test]
    fn every_parameter_has_an_effect() {
        let s = settings(&[
            ("btl_tcp_eager_limit", "4k"),
            ("btl_tcp_max_send_size", "1M"),
            ("btl_tcp_links", "3"),
            ("btl_tcp_if_include", "no-such-interface"),
            ("btl_tcp_port", "5000"),
            ("btl_tcp_sndbuf", "64k"),
            ("btl_tcp_rcvbuf", "128k"),
            ("btl_tcp_dead_after", "5s"),
            ("btl_tcp_bandwidth", "40000"),
        ]);
        assert_eq!((s.limits.eager, s.limits.max_send), (4 << 10, 1 << 20));
        assert_eq!((s.links, s.port(0), s.port(2)), (3, 5000, 5002));
        assert_eq!((s.buffers.send, s.buffers.receive), (64 << 10, 128 << 10));
        assert_eq!((s.dead_after, s.megabits), (Duration::from_secs(5), 40_000));
        assert_eq!(
            super::super::address::of_this_machine(&s.filter).unwrap(),
            []
        );
        let s = settings(&[("btl_tcp_if_exclude", "0.0.0.0/0,::/0")]);
        assert_eq!(
            super::super::address::of_this_machine(&s.filter).unwrap(),
            []
        );
    }

    #[test]
    fn a_port_is_at_most_65535() {
        for port in ["65536", "99999", "-1", "http"] {
            let mut params = Params::default();
            params.set("btl_tcp_port", port, Source::CommandLine);
            let refused = Settings::read(&params).err().map(|e| e.to_string());
            let refused = refused.unwrap_or_default();
            assert!(refused.contains("from 0 to 65535"), "{port}: {refused}");
        }
        assert_eq!(settings(&[("btl_tcp_port", "65535")]).port(0), 65535);
    }

    #[test]
    fn each_interface_is_a_network_until_descriptors_are_scarce() {
        let on = |interface| Local {
            ip: [10, 0, interface, 1].into(),
            prefix: 24,
            megabits: 1000,
            interface,
        };
        let addresses: Vec<Local> = [0, 1, 1, address::NO_CABLE].map(on).into();
        let automatic = settings(&[]);
        assert_eq!(automatic.links_for(&addresses, 2), 2);
        assert_eq!(automatic.links_for(&addresses[3..], 2), 1);
        assert_eq!(automatic.links_for(&addresses, u32::MAX), 1);
        let many: Vec<Local> = (0..9).map(on).collect();
        assert_eq!(automatic.links_for(&many, 1), 4);
        let told = settings(&[("btl_tcp_links", "3")]);
        assert_eq!(told.links_for(&addresses, u32::MAX), 3);
    }

    #[test]
    fn a_piece_fits_a_frame_and_an_eager_message_a_piece() {
        let s = settings(&[("btl_tcp_max_send_size", "64G"), ("btl_tcp_links", "1000")]);
        assert_eq!((s.limits.max_send, s.links), (1 << 30, MOST_LINKS));
        let s = settings(&[
            ("btl_tcp_max_send_size", "1"),
            ("btl_tcp_eager_limit", "1M"),
        ]);
        assert_eq!((s.limits.eager, s.limits.max_send), (1 << 10, 1 << 10));
    }
}
