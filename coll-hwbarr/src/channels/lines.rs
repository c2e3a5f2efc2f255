//! The lines of a node on the board, and their opening: simulator, port of this machine, or served board.

use crate::choice::{Choice, RtlSource, SimFiles};
use crate::port::served::answer_limit;
use crate::port::wired::RANK;
use crate::port::{self, rtl};
use crate::settings::Settings;
use crate::setup_group::SetupGroup;
use barrier_board::live::{ChannelBoard, NodeLines};
use barrier_board::served::{Address, ChannelLines};
use barrier_driver::last_resort::{self, Watch};
use barrier_driver::ports::{self, BoxedChannels};
use hdl::cosim::ChannelRtl;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A placeholder in the port's text, replaced by the lowest rank of the host.
const LEADER: &str = "{leader}";

/// The opened lines of a node; only the node's leader has them.
pub struct Lines {
    pub channels: BoxedChannels,
    /// The node's number on the board, if it is known without a request to the board.
    pub node: Option<u32>,
    /// A process that returns the wires to idle even if this process ends abnormally.
    pub watch: Option<Watch>,
    pub simulated: Option<Simulated>,
    /// The connection to a served board; the channels use it too.
    pub remote: Option<Arc<ChannelLines>>,
}

/// Returns the ranks of this rank's node in `MPI_COMM_WORLD`, the leader first.
/// Needs no communication.
pub fn mates(settings: &Settings, world: &Comm) -> Result<Vec<u32>, String> {
    match &settings.port {
        Choice::Sim(files) | Choice::Rtl(files, _) => {
            port::sim::suits(world)?;
            let nodes = nodes_of(files, world);
            let node = node_of(world.rank(), nodes, world);
            let ours = |rank: &u32| node_of(*rank, nodes, world) == node;
            Ok((0..world.size()).filter(ours).collect())
        }
        Choice::Wired(text) => Ok(match text.contains(RANK) {
            true => vec![world.rank()],
            false => world.node_ranks(),
        }),
        Choice::Served(_, 0) => Ok(world.node_ranks()),
        Choice::Served(_, nodes) => {
            let nodes = (*nodes).min(world.size());
            let node = node_of(world.rank(), nodes, world);
            let ours = |rank: &u32| node_of(*rank, nodes, world) == node;
            let mates: Vec<u32> = (0..world.size()).filter(ours).collect();
            let here = world.node_ranks();
            match mates.iter().find(|rank| !here.contains(rank)) {
                None => Ok(mates),
                Some(far) => Err(format!(
                    "with coll_hwbarr_sim_nodes {nodes} ranks {} and {far} would be one node, and they are on different hosts",
                    world.rank()
                )),
            }
        }
        #[cfg(test)]
        Choice::Broken(..) => Err("only version 1 has ports with defects".into()),
    }
}

fn nodes_of(files: &SimFiles, world: &Comm) -> u32 {
    match files.nodes {
        0 => world.size(),
        nodes => nodes.min(world.size()),
    }
}

/// Returns the node of a rank if consecutive ranks are divided among `nodes` nodes.
fn node_of(rank: u32, nodes: u32, world: &Comm) -> u32 {
    (u64::from(rank) * u64::from(nodes) / u64::from(world.size())) as u32
}

/// Opens the lines of this rank's node if this rank is the leader;
/// every rank of `MPI_COMM_WORLD` must call this.
pub fn attach(settings: &Settings, world: &Comm, leads: bool) -> Result<Option<Lines>, String> {
    match &settings.port {
        Choice::Sim(files) => Simulated::attach(world, files, None, leads),
        Choice::Rtl(files, source) => Simulated::attach(world, files, Some(source), leads),
        Choice::Wired(text) if leads => {
            let rank = world.rank().to_string();
            let place = text.replace(RANK, &rank).replace(LEADER, &rank);
            let channels = ports::open_channels(&place).map_err(|e| e.to_string())?;
            let watch = last_resort::watch(channels.resting.clone());
            Ok(Some(Lines {
                channels,
                node: None,
                watch,
                simulated: None,
                remote: None,
            }))
        }
        Choice::Served(server, _) => {
            // Nodes are numbered in the order of their leaders, which a collective call determines.
            let node = number_of(world, leads)?;
            let limit = answer_limit(settings.timeout);
            leads.then(|| at_server(server, node, limit)).transpose()
        }
        _ => Ok(None),
    }
}

/// Returns the number of leaders with a lower rank; every rank of `MPI_COMM_WORLD` must call this.
fn number_of(world: &Comm, leads: bool) -> Result<u32, String> {
    let all = SetupGroup::of_all(world);
    let mine = [u8::from(leads)];
    let mut leading = all.gather(mine)?;
    leading.resize(all.ranks().len(), mine);
    let mut leading = leading.concat();
    all.broadcast(&mut leading)?;
    let before = leading.iter().take(world.rank() as usize);
    Ok(before.map(|leads| u32::from(*leads)).sum())
}

/// Connects to a served board (simulated in another process) as one of its nodes.
fn at_server(server: &Address, node: u32, limit: Duration) -> Result<Lines, String> {
    let lines = ChannelLines::connect(server, node as usize, limit).map_err(|e| e.to_string())?;
    let lines = Arc::new(lines);
    let name = format!("node {node} of the board at {server}");
    let channels = ports::channels_over(Remote(lines.clone()), &name).map_err(|e| e.to_string())?;
    Ok(Lines {
        channels,
        node: Some(node),
        watch: None,
        simulated: None,
        remote: Some(lines),
    })
}

/// The lines of a served board. An access fails if the connection has failed;
/// the name of the lines contains the server's address.
struct Remote(Arc<ChannelLines>);

impl ports::Lines for Remote {
    fn set(&self, out: usize, high: bool) -> Option<()> {
        self.0.set(out, high).ok()
    }

    fn get(&self, input: usize) -> Option<bool> {
        self.0.get(input).ok()
    }
}

/// The record that all nodes of a simulated board share in memory, in addition to the lines.
#[repr(C)]
struct SharedRecord {
    /// Number of nodes that have closed their lines.
    closed: AtomicU32,
    /// Number of times that a communicator has acquired a channel.
    taken: AtomicU64,
    /// Number of barriers that programs executed on channels; each barrier is counted one time.
    barriers: AtomicU64,
    /// Number of clock edges evaluated by the leaders' copies of the RTL.
    rtl_edges: AtomicU64,
}

/// Offset of the board in the shared memory, in bytes; a board requires a multiple of 128.
const BOARD: usize = 128;
const _: () = assert!(size_of::<SharedRecord>() <= BOARD);

/// A node of the simulated board in memory that the ranks of `MPI_COMM_WORLD` share.
pub struct Simulated {
    lent: Lent,
    shared_record: &'static SharedRecord,
    board: ChannelBoard<'static>,
    /// The RTL that computes the lines, if it replaces the model.
    rtl: Option<&'static ChannelRtl>,
    nodes: u32,
    files: SimFiles,
    world: Comm,
}

/// The lines of a simulated node; `disable` removes them before the memory is unmapped.
#[derive(Clone)]
struct Lent(Arc<Mutex<Option<NodeLines<'static>>>>);

impl ports::Lines for Lent {
    fn set(&self, out: usize, high: bool) -> Option<()> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.as_ref().map(|lines| lines.set(out, high))
    }

    fn get(&self, input: usize) -> Option<bool> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.as_ref().map(|lines| lines.get(input))
    }
}

impl Simulated {
    /// Creates the board or finds it; every rank of `MPI_COMM_WORLD` must call this.
    /// Only leaders receive their node's lines.
    #[allow(unsafe_code)]
    fn attach(
        world: &Comm,
        files: &SimFiles,
        source: Option<&RtlSource>,
        leads: bool,
    ) -> Result<Option<Lines>, String> {
        let nodes = nodes_of(files, world);
        // Only leaders evaluate the RTL. Errors are returned after the fence, which all ranks enter.
        let rtl = source.filter(|_| leads);
        let rtl = rtl.map(|source| rtl::load_channels(source, nodes as usize));
        let rtl = rtl.transpose();
        let bytes = BOARD.saturating_add(ChannelBoard::layout_size(nodes as usize, files.record));
        let SharedMemory { at, len } = world.shared_memory(bytes, BOARD)?;
        // SAFETY: `shared_memory` returned `BOARD` bytes and more, so the offset is inside the allocation.
        let (place, len) = (unsafe { at.add(BOARD) }, len - BOARD);
        let made = if world.rank() == 0 {
            // SAFETY: `shared_memory` returned zeroed, aligned memory,
            // and every rank uses the bytes behind the shared record only as this board.
            // They stay mapped until the module of `MPI_COMM_WORLD` is freed.
            // Before that, the module's `disable` removes the lines from all holders that remain.
            unsafe { ChannelBoard::<'static>::init(place, len, nodes as usize, files.record) }
                .map(|_| ())
                .map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        world.fence()?;
        made?;
        let rtl = rtl?;
        if !leads {
            return Ok(None);
        }
        // SAFETY: rank 0 has initialised a board here before the fence, and all ranks use the memory only as a board. It stays mapped until
        // the module of `MPI_COMM_WORLD` is freed, whose `disable` removes the lines.
        let mut board =
            unsafe { ChannelBoard::<'static>::attach(place, len) }.map_err(|e| e.to_string())?;
        if let Some(rtl) = rtl {
            board = board.with_gates(rtl);
        }
        // SAFETY: the memory is zeroed, aligned and has at least `BOARD` bytes (asserted above).
        // All ranks use it as a shared record. It stays mapped as long as the board.
        let shared_record = unsafe { at.cast::<SharedRecord>().as_ref() };
        let node = node_of(world.rank(), nodes, world);
        let lines = board.lines(node as usize).map_err(|e| e.to_string())?;
        let lent = Lent(Arc::new(Mutex::new(Some(lines))));
        let name = format!("node {node} of the simulator's board");
        let channels = ports::channels_over(lent.clone(), &name).map_err(|e| e.to_string())?;
        Ok(Some(Lines {
            channels,
            node: Some(node),
            watch: None,
            simulated: Some(Simulated {
                lent,
                shared_record,
                board,
                rtl,
                nodes,
                files: files.clone(),
                world: world.clone(),
            }),
            remote: None,
        }))
    }

    /// Counts that a communicator has acquired a channel.
    pub fn note_taken(&self) {
        self.shared_record.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a barrier on a channel; only one member of the communicator calls this.
    pub fn note_barrier(&self) {
        self.shared_record.barriers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of nodes whose leader has died, as far as this process knows.
    fn gone(&self) -> u32 {
        let world = &self.world;
        let node = |rank| node_of(rank, self.nodes, world);
        let leads = |rank: &u32| (0..*rank).all(|lower| node(lower) != node(*rank));
        let dead = world.failed_ranks();
        u32::try_from(dead.iter().filter(|rank| leads(rank)).count()).unwrap_or(0)
    }

    /// Closes the lines; the last living node to close also writes the report.
    pub fn close(self) -> Result<(), String> {
        let machine = self.board.machine();
        let lines = self
            .lent
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(lines);
        let edges = self.rtl.map_or(0, ChannelRtl::edges);
        self.shared_record
            .rtl_edges
            .fetch_add(edges, Ordering::Relaxed);
        // SYNC POINT shared_record.closed: the last node to close reads what all others stored before.
        if self.shared_record.closed.fetch_add(1, Ordering::AcqRel) + 1 + self.gone() != self.nodes
        {
            return Ok(());
        }
        if let Some(waveform) = &self.files.vcd {
            let record = self.board.record();
            port::sim_files::warn_of_missing(&self.world, record.dropped);
            waveform
                .write_channels(&record)
                .map_err(|e| format!("the waveform was not written: {e}"))?;
        }
        let Some(path) = &self.files.report else {
            return Ok(());
        };
        let channels = (0..).map_while(|number| machine.channel(number));
        let report = Report {
            version: 2,
            nodes: self.nodes,
            machine: if self.rtl.is_some() { "rtl" } else { "model" },
            rtl_edges: self.shared_record.rtl_edges.load(Ordering::Relaxed),
            barriers: self.shared_record.barriers.load(Ordering::Relaxed),
            channels_taken: self.shared_record.taken.load(Ordering::Relaxed),
            channels: channels
                .map(|channel| ChannelReport {
                    releases: channel.releases,
                    members: channel.mask,
                })
                .collect(),
        };
        port::sim_files::write_report(path, &report)
            .map_err(|e| format!("the report {} was not written: {e}", path.display()))
    }
}

/// The report of a simulated board of version 2, in the file `coll_hwbarr_sim_report`.
#[derive(Serialize)]
struct Report {
    version: u32,
    nodes: u32,
    /// What computed the board's outputs: the model or the RTL.
    machine: &'static str,
    /// Number of clock edges that the RTL has evaluated.
    rtl_edges: u64,
    /// Number of barriers that the program executed on channels.
    barriers: u64,
    /// Number of times that a communicator acquired a channel.
    channels_taken: u64,
    channels: Vec<ChannelReport>,
}

#[derive(Serialize)]
struct ChannelReport {
    /// Number of all releases: barriers of programs, self-tests and last barriers (farewells).
    releases: u64,
    /// Members of the channel at the end, one bit per node; 0 if the channel was freed.
    members: u64,
}
