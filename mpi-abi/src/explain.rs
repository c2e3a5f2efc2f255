//! `mpirun --explain`: selected and rejected components, printed by rank 0 after initialization.

use mpi_base::param::Params;
use mpi_core::Engine;
use mpi_core::btl::OpenError;
pub use mpi_core::engine::EXPLAIN;
use mpi_core::osc::{self, Win};
use mpi_core::plugin::{Catalogue, Origin};

/// Facts collected during the start of the library.
pub struct Findings<'a> {
    pub rte: &'static str,
    pub rte_rejected: &'a [(&'static str, String)],
    pub btl_refused: &'a [(&'static str, OpenError)],
    pub plugins: &'a Catalogue,
}

/// Returns the lines about decisions made before the job starts.
pub fn before_start(params: &Params, found: &Findings<'_>) -> Vec<String> {
    let mut lines = vec![format!("rte: {} serves", found.rte)];
    lines.extend(
        found
            .rte_rejected
            .iter()
            .map(|(name, why)| format!("rte: {name} does not: {why}")),
    );
    lines.extend(params.settings().map(|(name, value, source)| {
        let (name, value) = (printable::name(name), printable::name(value));
        format!("parameter {name} = {value} ({source})")
    }));
    lines.extend(
        params
            .complaints()
            .iter()
            .map(|complaint| format!("parameter ignored: {complaint}")),
    );
    lines.extend(
        found
            .btl_refused
            .iter()
            .map(|(name, why)| format!("btl: {name} is not used: {why}")),
    );
    lines.extend(
        found
            .plugins
            .taken
            .iter()
            .filter(|taken| taken.origin != Origin::BuiltIn)
            .map(|taken| {
                format!(
                    "plugin: {} {} from {}",
                    taken.plugin.name, taken.plugin.version, taken.origin
                )
            }),
    );
    lines.extend(
        found
            .plugins
            .rejected
            .iter()
            .map(|rejected| format!("plugin: {rejected}")),
    );
    lines
}

/// Prints all lines, after the creation of `MPI_COMM_WORLD`.
pub fn print(engine: &Engine, mut lines: Vec<String>) {
    lines.push(waiting(engine));
    lines.extend(engine.pml().bml().btls().map(|btl| {
        let limits = btl.info().limits;
        let by = btl.capabilities().connections.and_then(|all| all.about());
        let by = by.map_or(String::new(), |by| format!(" over {by}"));
        format!(
            "btl: {} is used{by}, eager up to {} bytes, pieces of {} bytes",
            btl.info().name,
            limits.eager,
            limits.max_send
        )
    }));
    lines.extend(reach(engine));
    lines.extend(copies(engine));
    lines.extend(windows(engine));
    if let Some(world) = engine.world()
        && let Some(table) = world.collectives().components()
    {
        lines.extend(table.explain("MPI_COMM_WORLD"));
    }
    for line in lines {
        printable::eprintln!("explain: {line}");
    }
}

/// Returns the line about cores, ranks, and the wait policy of a rank.
fn waiting(engine: &Engine) -> String {
    let (cores, ranks) = (engine.place().cores(), engine.place().neighbours().len());
    let limit = if cores.limited_by_quota() {
        ", as the control group allows"
    } else {
        ""
    };
    let policy = engine.waiting().policy();
    let first = match policy.pauses.is_zero() {
        true => format!("yields after each of {} polls", policy.yields),
        false => format!(
            "polls {} times, then with pauses for {} us",
            policy.spins,
            policy.pauses.as_micros()
        ),
    };
    let ranks = match cores.sharers {
        Some(_) => format!("{} of {ranks} bound", cores.shared_by(ranks)),
        None => ranks.to_string(),
    };
    format!(
        "waiting: {ranks} ranks on {} usable cores{limit}: a waiting rank {first}, then sleeps on its doorbell",
        cores.usable
    )
}

/// Returns the transport selected for each peer, and why the preferred transports cannot be used.
fn reach(engine: &Engine) -> Vec<String> {
    // A query about a peer may require a request to the launcher, so the number is limited.
    const ASKED: u32 = 1024;
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for peer in 0..engine.size().min(ASKED) {
        let (found, rejected) = engine.pml().bml().survey(peer);
        let mut says = match found {
            Some(names) => format!("by {names}"),
            None => "by no transport".into(),
        };
        let reasons: Vec<String> = rejected
            .iter()
            .map(|rejection| format!("not by {rejection}"))
            .collect();
        if !reasons.is_empty() {
            says += &format!(" ({})", reasons.join("; "));
        }
        match groups.iter_mut().find(|(same, _)| *same == says) {
            Some((_, peers)) => peers.push(peer),
            None => groups.push((says, vec![peer])),
        }
    }
    let line = |(says, peers): (String, Vec<u32>)| {
        format!("btl: rank {} reaches {} {says}", engine.me(), ranks(&peers))
    };
    groups.into_iter().map(line).collect()
}

/// Returns the lines about long messages between processes of this host: one copy or two.
fn copies(engine: &Engine) -> Vec<String> {
    let by_one = engine
        .pml()
        .bml()
        .btls()
        .any(|btl| btl.capabilities().single_copy.is_some());
    let node = engine.node();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for (local, rank) in (0..).zip(engine.place().neighbours()) {
        if local == node.rank() {
            continue;
        }
        match by_one && node.processes().readable_pid(local).is_some() {
            true => one.push(*rank),
            false => two.push(*rank),
        }
    }
    let mut lines = Vec::new();
    if !one.is_empty() {
        lines.push(format!(
            "copy: long messages of {} are read from their memory in one copy (process_vm_readv, tried)",
            ranks(&one)
        ));
    }
    if !two.is_empty() {
        let why = match by_one {
            true => "their memory may not be read from here",
            false => "one copy is switched off",
        };
        lines.push(format!(
            "copy: long messages of {} come in fragments through shared memory: {why}",
            ranks(&two)
        ));
    }
    lines
}

/// Returns the line about windows in memory that a program itself allocated:
/// how the other ranks of the node access this memory.
fn windows(engine: &Engine) -> Option<String> {
    let are_any = engine.place().neighbours().len() > 1 && osc::is_direct_allowed(engine.params());
    are_any.then(|| format!("osc: {}", osc::explain(engine)))
}

/// Prints the access method of one window. Called on rank 0 when the window is created.
pub fn explain_window(win: &Win) {
    let engine = win.engine();
    if engine.me() != 0 || !engine.params().get(&EXPLAIN).unwrap_or(false) {
        return;
    }
    let (mapped, copied) = win.memory().mapped_and_copied();
    for (all, how) in [
        (mapped, "mapped here (/dev/xpmem)"),
        (copied, "copied by the system (process_vm_writev)"),
    ] {
        if !all.is_empty() {
            let (whose, label) = (ranks(&all), win.label());
            printable::eprintln!("explain: osc: memory of {whose} in {label} is {how}");
        }
    }
}

/// Formats ascending ranks as ranges: "ranks 0, 2-5".
fn ranks(all: &[u32]) -> String {
    let runs: Vec<String> = all
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    let noun = if all.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.join(", "))
}
