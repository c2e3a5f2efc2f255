//! What images of all processes cannot contain: devices, terminals, TCP connections and shared memory
//! with processes outside of the job, and processes under valgrind or a tracer.
//!
//! CRIU dumps a connection with one end, and memory that others share, without a message;
//! the restored processes then have neither. So mpirun checks this before the dump.

use super::wire::{Connection, Quiet};
use mpi_core::crs::criu::{CriuError, check_descriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The state of an established connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// The state of the accepting end before the last packet of the handshake.
const SYN_RECEIVED: &str = "03";

/// The inode of a connection that no process has accepted yet.
const NO_PROCESS: u64 = 0;

/// The state of a listening socket; its receive queue is the number of connections to accept.
const LISTENS: &str = "0A";

/// The states of a connection that is being opened or closed by the kernels:
/// SYN_SENT, SYN_RECV, FIN_WAIT1, LAST_ACK, CLOSING.
const MOVING: [&str; 5] = ["02", "03", "04", "09", "0B"];

/// The name of the memory that the ranks of a node share, as `/proc/PID/maps` shows it.
const NODE: &str = "/memfd:portcullis-node";

/// Fails if one of these processes, with names for messages, is or has something that images cannot contain.
/// `owner` is the launcher on this host, which is dumped with them.
/// Returns the TCP connections with other processes, which may be processes of the job on another host.
pub(super) fn check(processes: &[(i32, String)], owner: i32) -> Result<Vec<Connection>, CriuError> {
    let mut sockets = BTreeMap::new();
    let owner = owner.to_string();
    let mut own = shared_memory(&owner);
    for (number, target) in descriptors(&owner) {
        if target.starts_with(NODE)
            && let Ok(memory) = fs::metadata(format!("/proc/{owner}/fd/{number}"))
        {
            own.insert(memory.ino().to_string());
        }
        sockets.extend(socket(&target).map(|inode| (inode, "mpirun".to_owned())));
    }
    for (pid, name) in processes {
        let pid = pid.to_string();
        check_process(&pid, name)?;
        for (number, target) in descriptors(&pid) {
            check_descriptor(name, number, &target)?;
            sockets.extend(socket(&target).map(|inode| (inode, name.clone())));
        }
        if shared_memory(&pid).difference(&own).next().is_some() {
            let what = format!("{name} shares memory with a job of another mpirun");
            return Err(CriuError::ForeignDescriptor { what });
        }
    }
    Ok(connected_outside(&tables(), &sockets))
}

/// Returns the error about a connection with a process that is not part of the job.
pub(super) fn foreign(connection: &Connection) -> CriuError {
    let Connection { owner, remote, .. } = connection;
    let what = format!("{owner} has a TCP connection with {remote}, outside of the job");
    CriuError::ForeignDescriptor { what }
}

/// Returns the state of the TCP connections of stopped processes, and a digest of their queues.
///
/// If two digests differ, a kernel has moved data of the stopped processes in between: a kernel sends data
/// without the program when it probes a window that is smaller than a segment.
pub(super) fn is_quiet(processes: &[i32]) -> (Quiet, u64) {
    let files = processes.iter().map(i32::to_string);
    let files = files.flat_map(|pid| descriptors(&pid));
    let sockets: BTreeSet<u64> = files.filter_map(|(_, target)| socket(&target)).collect();
    let lines = tables();
    let states = lines.lines().filter_map(|line| quiet(line, &sockets));
    (states.max().unwrap_or(Quiet::Yes), digest(&lines, &sockets))
}

/// Returns a digest of the states and queues of these sockets.
fn digest(table: &str, sockets: &BTreeSet<u64>) -> u64 {
    let queues = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let inode: u64 = fields.get(9)?.parse().ok()?;
        let known = sockets.contains(&inode);
        known.then(|| (inode, fields[3].to_owned(), fields[4].to_owned()))
    });
    let queues: BTreeSet<_> = queues.collect();
    let mut hasher = std::hash::DefaultHasher::new();
    queues.hash(&mut hasher);
    hasher.finish()
}

/// Returns the tables of all TCP sockets.
fn tables() -> String {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    tables.concat()
}

/// Reads a line of a table: the state of a socket, if it is one of these.
///
/// A send queue that is not empty is quiet only if the window of the receiver is full: the kernel then
/// waits to probe the window (timer 4), and nothing is in flight.
fn quiet(line: &str, sockets: &BTreeSet<u64>) -> Option<Quiet> {
    const PROBES: &str = "04";
    let fields: Vec<&str> = line.split_whitespace().skip(3).collect();
    let [state, queues, timer, ..] = fields.as_slice() else {
        return None;
    };
    let inode = fields.get(6)?.parse().ok()?;
    if !sockets.contains(&inode) {
        return None;
    }
    let (unsent, unread) = queues.split_once(':')?;
    let [unsent, unread] = [unsent, unread].map(|queue| u64::from_str_radix(queue, 16).ok());
    let timer = timer.split(':').next()?;
    Some(match *state {
        LISTENS if unread != Some(0) => Quiet::MustRun,
        LISTENS => Quiet::Yes,
        state if MOVING.contains(&state) => Quiet::NotYet,
        _ if unsent == Some(0) || timer == PROBES => Quiet::Yes,
        _ => Quiet::NotYet,
    })
}

/// Fails if a process runs under valgrind, or is traced: it has one tracer, which then cannot be CRIU.
fn check_process(pid: &str, name: &str) -> Result<(), CriuError> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    if is_valgrind(&program) {
        let what = format!("{name} runs under valgrind");
        return Err(CriuError::ForeignDescriptor { what });
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let Some(tracer) = tracer(&status) else {
        return Ok(());
    };
    let by = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    let what = format!(
        "{name} is traced by {} (process {tracer})",
        printable::name(by.trim())
    );
    Err(CriuError::ForeignDescriptor { what })
}

/// Returns true for valgrind's tools, such as `/usr/libexec/valgrind/memcheck-amd64-linux`.
fn is_valgrind(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_in_its_folder = program.parent().and_then(Path::file_name) == Some("valgrind".as_ref());
    is_in_its_folder && name.ends_with("-linux")
}

/// Returns the tracer of a process, from its `/proc/PID/status`.
fn tracer(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line?.trim().parse().ok().filter(|tracer| *tracer != 0)
}

/// Returns the open descriptors of a process with the files that they denote.
fn descriptors(pid: &str) -> impl Iterator<Item = (u32, String)> + use<> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        Some((number, target.to_string_lossy().into_owned()))
    })
}

/// Returns the inode of a socket, from the file that its descriptor denotes.
fn socket(target: &str) -> Option<u64> {
    target
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Returns the inodes of the memory of nodes that a process has mapped.
/// The supervisor need not have mapped the memory that it has made.
fn shared_memory(pid: &str) -> BTreeSet<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let nodes = maps.lines().filter(|line| line.contains(NODE));
    let inodes = nodes.filter_map(|line| line.split_whitespace().nth(4));
    inodes.map(str::to_owned).collect()
}

/// Returns the established connections of `sockets` whose other end is none of them, and does not wait for its
/// acceptance by one of them: such an end is in the table, with the addresses exchanged, and belongs to no process.
fn connected_outside(table: &str, sockets: &BTreeMap<u64, String>) -> Vec<Connection> {
    let listeners = table.lines().filter_map(|line| entry(line, LISTENS));
    let listeners = listeners.filter(|(_, inode)| sockets.contains_key(inode));
    let ports: BTreeSet<u16> = listeners.map(|((local, _), _)| local.port()).collect();
    let waiting = table.lines().filter_map(|line| {
        let found = entry(line, ESTABLISHED).or_else(|| entry(line, SYN_RECEIVED));
        let (pair, inode) = found?;
        (inode == NO_PROCESS).then_some(pair)
    });
    let waiting = waiting.filter(|(local, _)| ports.contains(&local.port()));
    let waiting: BTreeSet<(SocketAddr, SocketAddr)> = waiting.collect();
    let connections = table.lines().filter_map(connection);
    let ours = connections.filter_map(|(pair, inode)| Some((pair, sockets.get(&inode)?)));
    let ours: BTreeMap<(SocketAddr, SocketAddr), &String> = ours.collect();
    let outside = ours.iter().filter(|((local, remote), _)| {
        let other = (*remote, *local);
        !ours.contains_key(&other) && !waiting.contains(&other)
    });
    let outside = outside.map(|((local, remote), owner)| Connection {
        owner: (*owner).clone(),
        local: *local,
        remote: *remote,
    });
    outside.collect()
}

/// Reads a line of `/proc/net/tcp` or `tcp6` about an established connection.
fn connection(line: &str) -> Option<((SocketAddr, SocketAddr), u64)> {
    entry(line, ESTABLISHED)
}

/// Reads a line about a socket in this state: the addresses of both ends, and the socket's inode.
fn entry(line: &str, state: &str) -> Option<((SocketAddr, SocketAddr), u64)> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let is_in_state = fields.next()? == state;
    let inode = fields.nth(5)?.parse().ok()?;
    is_in_state.then_some(((local, remote), inode))
}

/// Reads an address: each word of 4 bytes as a hexadecimal number of this machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = (0..ip.len() / 8).map(|word| ip.get(word * 8..word * 8 + 8));
    let words = words.map(|word| u32::from_str_radix(word?, 16).ok());
    let words: Vec<[u8; 4]> = words
        .map(|word| Some(word?.to_ne_bytes()))
        .collect::<Option<_>>()?;
    let ip = match words.as_slice() {
        [word] => IpAddr::V4(Ipv4Addr::from(*word)),
        [_, _, _, _] => {
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 10 1 0 100 0
   1: 0100007F:1F90 0100007F:8000 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 20 4
   2: 0100007F:8000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20 4
   3: 0000000000000000FFFF00000100007F:1F91 0000000000000000FFFF00000100007F:8001 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 20 4
   4: 0100007F:8001 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 14 1 0 20 4
";

    fn outside(inodes: &[u64]) -> Option<String> {
        let sockets = inodes.iter().map(|inode| (*inode, format!("rank {inode}")));
        let found = connected_outside(TABLE, &sockets.collect());
        let first = found.first()?;
        Some(format!("{} {}", first.owner, first.remote))
    }

    #[test]
    fn a_connection_is_quiet_if_nothing_is_in_flight() {
        let sockets = BTreeSet::from([10, 11]);
        let line = |state, queues, timer, inode| {
            let line = format!(
                "1: 0100007F:1F90 0100007F:8000 {state} {queues} {timer}:0000 0 0 0 {inode} 1 0"
            );
            quiet(&line, &sockets)
        };
        let empty = "00000000:00000000";
        assert_eq!(line("01", empty, "00", 11), Some(Quiet::Yes));
        assert_eq!(line("01", empty, "00", 12), None);
        assert_eq!(
            line("01", "00000000:00000010", "00", 11),
            Some(Quiet::Yes),
            "received data are in the image"
        );
        assert_eq!(
            line("01", "00000010:00000000", "01", 11),
            Some(Quiet::NotYet)
        );
        assert_eq!(
            line("01", "00000010:00000000", "04", 11),
            Some(Quiet::Yes),
            "the receiver's window is full"
        );
        assert_eq!(line("02", empty, "01", 11), Some(Quiet::NotYet));
        assert_eq!(
            line("0A", "00000000:00000001", "00", 10),
            Some(Quiet::MustRun)
        );
        assert_eq!(quiet("sl local_address", &sockets), None);
    }

    #[test]
    fn a_queue_that_changes_while_processes_are_stopped_changes_the_digest() {
        let sockets = BTreeSet::from([11, 12]);
        let before = digest(TABLE, &sockets);
        assert_eq!(digest(TABLE, &sockets), before);
        // The timers of a connection and the queues of other processes may change.
        let timer = TABLE.replacen(
            "00:00000000 00000000     0        0 11",
            "01:00000004 00000000     0        0 11",
            1,
        );
        assert_ne!(timer, TABLE);
        assert_eq!(digest(&timer, &sockets), before);
        let (empty, probed) = (
            "00000000:00000000 00:00000000 00000000     0        0 ",
            "00000000:00000200 00:00000000 00000000     0        0 ",
        );
        let other = TABLE.replacen(&format!("{empty}13"), &format!("{probed}13"), 1);
        assert_eq!(digest(&other, &sockets), before);
        let moved = TABLE.replacen(&format!("{empty}12"), &format!("{probed}12"), 1);
        assert_ne!(digest(&moved, &sockets), before);
    }

    #[test]
    fn a_connection_is_inside_if_both_ends_are() {
        assert_eq!(outside(&[10, 11, 12, 13, 14]), None);
        assert_eq!(outside(&[10, 11]), Some("rank 11 127.0.0.1:32768".into()));
        assert_eq!(
            outside(&[12, 11, 14]),
            Some("rank 14 127.0.0.1:8081".into())
        );
        assert_eq!(outside(&[]), None);
        // Another process has accepted the connection from socket 10, which listens.
        assert_eq!(outside(&[10, 12]), Some("rank 12 127.0.0.1:8080".into()));
    }

    #[test]
    fn a_connection_that_waits_for_its_acceptance_is_inside_if_the_listener_is() {
        let waits = TABLE.replacen(" 0        0 11 1", " 0        0 0 1", 1);
        let outside = |inodes: &[u64], table: &str| {
            let sockets = inodes.iter().map(|inode| (*inode, inode.to_string()));
            connected_outside(table, &sockets.collect()).len()
        };
        assert_eq!(outside(&[10, 12], &waits), 0);
        assert_eq!(outside(&[12], &waits), 1, "another process listens");
        let early = waits.replacen("0100007F:8000 01", "0100007F:8000 03", 1);
        assert_ne!(early, waits);
        assert_eq!(outside(&[10, 12], &early), 0);
    }

    #[test]
    fn a_connection_with_a_port_of_an_own_listener_on_another_host_is_outside() {
        const TABLE: &str = "\
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 10 1 0 100 0
   1: 0200000A:8000 0100000A:1F90 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20 4
";
        let sockets = [(10, "rank 0".to_owned()), (12, "rank 0".to_owned())];
        let found = connected_outside(TABLE, &BTreeMap::from(sockets));
        let [found] = found.as_slice() else {
            panic!("{found:?}")
        };
        let expected = ["10.0.0.2:32768", "10.0.0.1:8080"].map(|text| text.parse());
        assert_eq!([Ok(found.local), Ok(found.remote)], expected);
    }

    #[test]
    fn processes_with_a_tracer_and_under_valgrind_are_found() {
        assert_eq!(tracer("Name:\ta\nTracerPid:\t0\n"), None);
        assert_eq!(tracer("Name:\ta\nTracerPid:\t17\nUid:\t0\n"), Some(17));
        assert_eq!(tracer(""), None);
        assert!(is_valgrind(Path::new(
            "/usr/libexec/valgrind/memcheck-amd64-linux"
        )));
        assert!(!is_valgrind(Path::new("/home/me/valgrind")));
        assert!(!is_valgrind(Path::new("/home/me/valgrind/stencil")));
        assert_eq!(check_process(&std::process::id().to_string(), "me"), Ok(()));
    }

    #[test]
    fn the_files_of_descriptors_are_told_apart() {
        assert_eq!(socket("socket:[17]"), Some(17));
        assert_eq!(socket("pipe:[17]"), None);
        let me = std::process::id().to_string();
        assert!(descriptors(&me).any(|(number, _)| number == 0));
    }
}
