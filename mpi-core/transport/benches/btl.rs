//! Benchmark of the shared-memory transport (sm) against the machine's cache-to-cache latency, measured in the same run.
//!
//! `cargo bench -p mpi-transport --bench btl [-- rounds]`
//!
//! Two threads pinned to two cores act as two ranks.
//! The reference is a ping-pong of one cache line.
//! Ratios to the reference are comparable between machines; absolute times are not.
//! Rounds are short and each contains all measurements, so a slow phase of the machine affects all results.
//! For each measurement the output contains the best round, which shows the cost of the code,
//! and the median round, which includes the machine's noise.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mpi_base::node::Node;
use mpi_base::param::Params;
use mpi_transport::btl::{
    Am, Btl, Endpoint, Header, OpenContext, Payload, ProcId, Reach, Sink, open_all,
};

/// A sink that copies every payload into a buffer, as a receive does, and counts the messages.
struct Count {
    got: Cell<u64>,
    buffer: Cell<Vec<u8>>,
}

impl Sink for Count {
    #[inline]
    fn deliver(&self, _: ProcId, _: Am, _: Header, payload: &[u8]) {
        let mut buffer = self.buffer.take();
        buffer[..payload.len()].copy_from_slice(payload);
        self.buffer.set(buffer);
        self.got.set(self.got.get() + 1);
    }
}

struct Rank {
    btl: Box<dyn Btl + Send>,
    peer: Endpoint,
    sink: Count,
    me: u32,
}

impl Rank {
    fn send(&self, bytes: &[u8]) {
        while self
            .btl
            .send(self.peer, 1, [7, 8], Payload::Bytes(bytes))
            .is_err()
        {
            self.btl.progress(&self.sink);
        }
    }

    fn wait_for(&self, got: u64) {
        while self.sink.got.get() < got {
            self.btl.progress(&self.sink);
        }
    }

    /// Returns the one-way time of a ping-pong message, in microseconds.
    fn latency(&self, len: usize, turns: u64) -> f64 {
        let bytes = vec![1u8; len];
        let start = self.sink.got.get();
        let begin = Instant::now();
        for turn in 1..=turns {
            if self.me == 0 {
                self.send(&bytes);
                self.wait_for(start + turn);
            } else {
                self.wait_for(start + turn);
                self.send(&bytes);
            }
        }
        begin.elapsed().as_secs_f64() * 1e6 / turns as f64 / 2.0
    }

    /// Returns the time per message of a stream with a reply after each window, in microseconds.
    fn stream(&self, len: usize, windows: u64) -> f64 {
        const WINDOW: u64 = 64;
        let bytes = vec![1u8; len];
        let start = self.sink.got.get();
        let begin = Instant::now();
        for window in 1..=windows {
            if self.me == 0 {
                for _ in 0..WINDOW {
                    self.send(&bytes);
                }
                self.wait_for(start + window);
            } else {
                self.wait_for(start + window * WINDOW);
                self.send(&bytes[..len.min(4)]);
            }
        }
        begin.elapsed().as_secs_f64() * 1e6 / (windows * WINDOW) as f64
    }
}

#[repr(align(128))]
struct Line(AtomicU64);

/// Returns the one-way time of a ping-pong with a bare cache line, in microseconds.
fn bare(lines: &[Line; 2], me: usize, base: u64, turns: u64) -> f64 {
    let (mine, theirs) = (&lines[me].0, &lines[1 - me].0);
    let begin = Instant::now();
    for turn in base + 1..=base + turns {
        if me == 0 {
            mine.store(turn, Ordering::Release);
        }
        while theirs.load(Ordering::Acquire) != turn {}
        if me == 1 {
            mine.store(turn, Ordering::Release);
        }
    }
    begin.elapsed().as_secs_f64() * 1e6 / turns as f64 / 2.0
}

const LATENCY: [usize; 5] = [8, 64, 1024, 4096, 8192];
const STREAM: [usize; 6] = [8, 64, 1024, 4096, 8192, 32768];

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(500);
    let fd = Node::create(2).expect("shared memory for two ranks");
    let lines = [const { Line(AtomicU64::new(0)) }; 2];
    let figures = std::thread::scope(|s| {
        let ranks: Vec<_> = (0..2)
            .map(|me| {
                let (fd, lines) = (&fd, &lines);
                s.spawn(move || run(me, fd, lines, rounds))
            })
            .collect();
        let mut all = ranks.into_iter().map(|rank| rank.join());
        all.next().and_then(Result::ok).unwrap_or_default()
    });
    // Best and median round of each measurement, in the order in which `run` collects them.
    let mut summary = figures.into_iter().map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        (rounds[0], rounds[rounds.len() / 2])
    });
    let floor = summary.next().unwrap_or((f64::NAN, f64::NAN));
    println!("                        best   median us");
    println!("bare cache line      {:7.3}  {:7.3}", floor.0, floor.1);
    for (len, us) in LATENCY.iter().zip(&mut summary) {
        let (best, median) = (us.0 / floor.0, us.1 / floor.1);
        println!(
            "latency {len:6} B     {:7.3}  {:7.3}   {best:5.2} {median:5.2} cache lines",
            us.0, us.1
        );
    }
    for (len, us) in STREAM.iter().zip(&mut summary) {
        let rate = |us: f64| (1.0 / us, *len as f64 / us);
        let ((best, best_mb), (median, median_mb)) = (rate(us.0), rate(us.1));
        println!(
            "stream  {len:6} B     {:7.3}  {:7.3}   {best:6.2} {median:6.2} M msg/s {best_mb:7.0} {median_mb:7.0} MB/s",
            us.0, us.1
        );
    }
}

fn run(me: u32, fd: &std::os::fd::OwnedFd, lines: &[Line; 2], rounds: usize) -> Vec<Vec<f64>> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(me as usize);
    // Errors are ignored: a thread that is not bound to its core is recognisable in the results.
    let _ = rustix::thread::sched_setaffinity(None, &set);
    let params = Params::default();
    let around = OpenContext {
        me,
        size: 2,
        modex: None,
        node: Some((Node::attach(fd, me).expect("our rank"), vec![0, 1])),
        params: &params,
    };
    let btl = open_all(&around)
        .expect("the default selection")
        .btls
        .into_iter()
        .find(|btl| btl.info().name == "sm")
        .expect("sm is built in");
    let Reach::Yes(peer) = btl.reach(1 - me) else {
        return Vec::new();
    };
    let rank = Rank {
        btl,
        peer,
        me,
        sink: Count {
            got: Cell::new(0),
            buffer: Cell::new(vec![0; 1 << 16]),
        },
    };
    let mut figures = vec![Vec::new(); 1 + LATENCY.len() + STREAM.len()];
    for round in 0..rounds as u64 {
        let turns = 500;
        figures[0].push(bare(lines, me as usize, round * turns, turns));
        for (at, &len) in LATENCY.iter().enumerate() {
            figures[1 + at].push(rank.latency(len, (500 / (1 + len as u64 / 512)).max(50)));
        }
        for (at, &len) in STREAM.iter().enumerate() {
            let windows = (20 / (1 + len as u64 / 512)).max(2);
            figures[1 + LATENCY.len() + at].push(rank.stream(len, windows));
        }
    }
    figures
}
