//! Where a node's lines come from.

use crate::choice::{Choice, RtlSource, SimFiles};
use crate::port::served::answer_limit;
use crate::port::wired::RANK;
use crate::port::{self, rtl};
use crate::settings::Settings;
use crate::setup_group::SetupGroup;
use barrier_driver::last_resort::{self, Watch};
use barrier_driver::ports::{self, BoxedChannels};
use hdl::cosim::ChannelRtl;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};
use mpi_core::plugin::guest::{Comm, SharedMemory};
use serde::Serialize;
use sim::live::{ChannelBoard, NodeLines};
use sim::served::{Address, ChannelLines};
use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What stands for the lowest rank of the host.
const LEADER: &str = "{leader}";

/// A node's lines, at its leader.
pub struct Lines {
    pub channels: BoxedChannels,
    /// The node's number, where it need not be asked for.
    pub node: Option<u32>,
    /// The wires go back to idle also if the process ends without us.
    pub watch: Option<Watch>,
    pub simulated: Option<Simulated>,
    /// The connection to a served board, which the channels use too.
    pub remote: Option<Arc<ChannelLines>>,
}

/// The ranks of this rank's node, in `MPI_COMM_WORLD`, its leader first. Local.
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

/// How many nodes a simulated board has.
fn nodes_of(files: &SimFiles, world: &Comm) -> u32 {
    match files.nodes {
        0 => world.size(),
        nodes => nodes.min(world.size()),
    }
}

/// The node of a rank, if so many nodes are divided among the ranks in order.
fn node_of(rank: u32, nodes: u32, world: &Comm) -> u32 {
    (u64::from(rank) * u64::from(nodes) / u64::from(world.size())) as u32
}

/// The lines of this rank's node, if it is the leader; every rank of the world calls.
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
            // Nodes are numbered in the order of their leaders, which takes all to know.
            let node = number_of(world, leads)?;
            let limit = answer_limit(settings.timeout);
            leads.then(|| at_server(server, node, limit)).transpose()
        }
        _ => Ok(None),
    }
}

/// How many ranks before this one lead a node; every rank of the world calls.
fn number_of(world: &Comm, leads: bool) -> Result<u32, String> {
    let all = SetupGroup::of_all(world);
    let mine = [u8::from(leads)];
    let mut leading = all.gather(mine)?;
    leading.resize(all.ranks().len(), mine);
    let mut leading = leading.concat();
    all.tell(&mut leading)?;
    let before = leading.iter().take(world.rank() as usize);
    Ok(before.map(|leads| u32::from(*leads)).sum())
}

/// The lines of a node on a served board.
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

/// Lines of a served board; when the connection is gone they are, and their name says whose they were.
struct Remote(Arc<ChannelLines>);

impl ports::Lines for Remote {
    fn set(&self, out: usize, high: bool) -> Option<()> {
        self.0.set(out, high).ok()
    }

    fn get(&self, input: usize) -> Option<bool> {
        self.0.get(input).ok()
    }
}

/// What the nodes of a simulated board tell each other beside the lines.
#[repr(C)]
struct Desk {
    /// How many have put their lines back for good.
    closed: AtomicU32,
    /// Communicators that got a channel.
    taken: AtomicU64,
    /// Barriers that programs passed over channels, each counted once.
    barriers: AtomicU64,
    /// Edges that the leaders' copies of the RTL have evaluated.
    rtl_edges: AtomicU64,
}

/// The board begins here; it wants a multiple of 128.
const BOARD: usize = 128;
const _: () = assert!(size_of::<Desk>() <= BOARD);

/// A node of the simulator's board in the memory of the world's ranks.
pub struct Simulated {
    lent: Lent,
    desk: &'static Desk,
    board: ChannelBoard<'static>,
    /// What is behind the lines, if it is not the model.
    rtl: Option<&'static ChannelRtl>,
    nodes: u32,
    files: SimFiles,
    world: Comm,
}

/// The lines, until the memory goes.
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
    /// Makes or finds the board; every rank of the world calls, and those that lead a node get its lines.
    #[allow(unsafe_code)]
    fn attach(
        world: &Comm,
        files: &SimFiles,
        source: Option<&RtlSource>,
        leads: bool,
    ) -> Result<Option<Lines>, String> {
        let nodes = nodes_of(files, world);
        // Only a rank that drives lines computes edges. A failure waits until all are behind the fence.
        let rtl = source.filter(|_| leads);
        let rtl = rtl.map(|source| rtl::load_channels(source, nodes as usize));
        let rtl = rtl.transpose();
        let bytes = BOARD.saturating_add(ChannelBoard::layout_size(nodes as usize, files.record));
        let SharedMemory { at, len } = world.shared_memory(bytes, BOARD)?;
        // SAFETY: `BOARD` is inside the memory, whose length includes it.
        let (place, len) = (unsafe { at.add(BOARD) }, len - BOARD);
        let made = if world.rank() == 0 {
            // SAFETY: zeroed memory beyond the desk, which all ranks use as a board only. It stays until the world's module
            // is freed, and that module's disable takes the lines away from a rank that may outlive it.
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
        // SAFETY: as above.
        let mut board =
            unsafe { ChannelBoard::<'static>::attach(place, len) }.map_err(|e| e.to_string())?;
        if let Some(rtl) = rtl {
            board = board.with_gates(rtl);
        }
        // SAFETY: zeroed, aligned, of the desk's size, used as a desk by all ranks, and it stays as the board does.
        let desk = unsafe { at.cast::<Desk>().as_ref() };
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
                desk,
                board,
                rtl,
                nodes,
                files: files.clone(),
                world: world.clone(),
            }),
            remote: None,
        }))
    }

    /// A communicator has got a channel.
    pub fn note_taken(&self) {
        self.desk.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// A communicator has passed a barrier; one of its members notes it.
    pub fn note_barrier(&self) {
        self.desk.barriers.fetch_add(1, Ordering::Relaxed);
    }

    /// How many nodes have died with the rank that leads them, as far as this process knows.
    fn gone(&self) -> u32 {
        let world = &self.world;
        let node = |rank| node_of(rank, self.nodes, world);
        let leads = |rank: &u32| (0..*rank).all(|lower| node(lower) != node(*rank));
        let dead = world.failed_ranks();
        u32::try_from(dead.iter().filter(|rank| leads(rank)).count()).unwrap_or(0)
    }

    /// Takes the lines away; the last living node writes the report.
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
        self.desk.rtl_edges.fetch_add(edges, Ordering::Relaxed);
        // SYNC POINT desk.closed: the last one sees what all others have written before.
        if self.desk.closed.fetch_add(1, Ordering::AcqRel) + 1 + self.gone() != self.nodes {
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
            rtl_edges: self.desk.rtl_edges.load(Ordering::Relaxed),
            barriers: self.desk.barriers.load(Ordering::Relaxed),
            channels_taken: self.desk.taken.load(Ordering::Relaxed),
            channels: channels
                .map(|channel| ChannelReport {
                    releases: channel.releases,
                    members: channel.mask,
                })
                .collect(),
        };
        File::create(path)
            .and_then(|file| {
                serde_json::to_writer_pretty(BufWriter::new(file), &report)
                    .map_err(std::io::Error::from)
            })
            .map_err(|e| format!("the report {} was not written: {e}", path.display()))
    }
}

/// What `coll_hwbarr_sim_report` holds for version 2.
#[derive(Serialize)]
struct Report {
    version: u32,
    nodes: u32,
    /// What was behind the lines: the model or the RTL.
    machine: &'static str,
    /// Clock edges that the RTL has evaluated.
    rtl_edges: u64,
    /// Barriers that the program passed over channels.
    barriers: u64,
    /// How often a communicator got a channel.
    channels_taken: u64,
    channels: Vec<ChannelReport>,
}

#[derive(Serialize)]
struct ChannelReport {
    /// Releases in all: barriers of programs, self-tests and farewells.
    releases: u64,
    /// Which nodes have it at the end, bit by bit; none if it was given back.
    members: u64,
}
