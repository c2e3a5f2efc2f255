//! The outpost: the launcher on another host, which does what the agent says and tells what happens.
//!
//! `mpirun --agent` speaks [`wire`] over its standard input and output. It starts its ranks with the same [`Starter`] as the agent,
//! hands lines of PMI and pieces of output up, and knows nothing of jobs but its own part of them.
//! It may have links to other hosts itself; their frames pass through unread.
//!
//! Promise: when the link above closes or falls silent, or the guard dies, everything below is ended:
//! a polite signal, the grace period, SIGKILL, and whatever was left behind.

use super::descendants;
use super::feed::Feed;
use super::front;
use super::link::{Heard, Link, Queue};
use super::ranks::{self, Starter};
use super::sys::{self, Ended, FailedStart, Signal};
use super::wire::{
    self, ALL, Branch, Down, End, FrameError, Frames, GREETING, Hello, Order, Up, VERSION,
};
use crate::glimpse::Glimpse;
use crate::node::Node;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// Serves the launcher at the other end of standard input and output; the result is the exit code.
pub fn run() -> i32 {
    let done = front::guarded(|guard, signals, nofile| {
        match Outpost::new(guard, signals, nofile).and_then(Outpost::serve) {
            Ok(()) => 0,
            Err(error) => {
                descendants::end_all();
                eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
                1
            }
        }
    });
    done.unwrap_or_else(|error| {
        eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
        1
    })
}

/// A rank of this host.
struct Here {
    proc: usize,
    local_rank: u32,
    job: usize,
    pid: i32,
    alive: bool,
    pmi: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

struct Outpost {
    guard: OwnedFd,
    signals: OwnedFd,
    nofile: Option<u64>,
    above: OwnedFd,
    to_above: OwnedFd,
    frames: Frames,
    queue: Queue,
    heard: Instant,
    told: Instant,
    hello: Option<Hello>,
    links: Vec<Link>,
    ranks: Vec<Here>,
    nodes: Vec<(usize, Node)>,
    feed: Feed,
    /// Bytes of standard input that the readers have not taken, which the agent is to be told of when they have.
    unfed: usize,
    reports: (OwnedFd, OwnedFd),
    null: OwnedFd,
    epoll: OwnedFd,
    /// The launcher above has gone; nobody is told anything any more.
    orphaned: bool,
    finishing: bool,
    kill_at: Option<Instant>,
}

impl Outpost {
    fn new(guard: OwnedFd, signals: OwnedFd, nofile: Option<u64>) -> io::Result<Outpost> {
        use rustix::fs::{Mode, OFlags};
        let above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let to_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // What a rank's ancestor prints must not land between frames.
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::io::ioctl_fionbio(&above, true)?;
        rustix::io::ioctl_fionbio(&to_above, true)?;
        let pipes = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut queue = Queue::default();
        queue.push(GREETING);
        Ok(Outpost {
            guard,
            signals,
            nofile,
            above,
            to_above,
            frames: Frames::new(false),
            queue,
            heard: Instant::now(),
            told: Instant::now(),
            hello: None,
            links: Vec::new(),
            ranks: Vec::new(),
            nodes: Vec::new(),
            feed: Feed::default(),
            unfed: 0,
            reports: rustix::pipe::pipe_with(pipes)?,
            null,
            epoll,
            orphaned: false,
            finishing: false,
            kill_at: None,
        })
    }

    /// Until nothing is left to do here.
    fn serve(mut self) -> io::Result<()> {
        while !self.is_done() {
            self.wait()?;
            self.hear_signals();
            self.hear_guard();
            self.hear_above();
            self.hear_ranks();
            for number in 0..self.links.len() {
                self.hear_link(number);
            }
            self.step();
        }
        // Strays of ranks, and then the commands that reached other hosts.
        let links: Vec<i32> = self.links.iter().map(|link| link.pid).collect();
        descendants::end_all_but(&links);
        self.empty_pipes();
        self.await_links();
        descendants::end_all();
        self.write_all();
        Ok(())
    }

    fn is_done(&self) -> bool {
        (self.finishing || self.orphaned) && !self.ranks.iter().any(|rank| rank.alive)
    }

    /// Sleeps until there is something to do. The descriptors are few, as few ranks are on one host.
    fn wait(&self) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.epoll, PollFlags::IN),
        ];
        if !self.orphaned {
            fds.push(PollFd::new(&self.guard, PollFlags::IN));
            fds.push(PollFd::new(&self.above, PollFlags::IN));
            if !self.queue.is_empty() {
                fds.push(PollFd::new(&self.to_above, PollFlags::OUT));
            }
        }
        // A full queue means that nobody reads us, so we do not read the ranks either.
        if !self.queue.is_full() {
            for rank in &self.ranks {
                let pipes = [&rank.pmi, &rank.stdout, &rank.stderr];
                let pipes = pipes.into_iter().flatten();
                fds.extend(pipes.map(|fd| PollFd::new(fd, PollFlags::IN)));
            }
            let ears = self.links.iter().filter_map(Link::ear);
            fds.extend(ears.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        match poll(&mut fds, self.pause().as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn pause(&self) -> Option<Timespec> {
        let now = Instant::now();
        let kill = self.kill_at.map(|at| at.saturating_duration_since(now));
        let beat = self.silence().map(|silence| silence / 6);
        let pause = [kill, beat].into_iter().flatten().min()?;
        let pause = pause.max(Duration::from_millis(1));
        Some(Timespec {
            tv_sec: pause.as_secs() as i64,
            tv_nsec: i64::from(pause.subsec_nanos()),
        })
    }

    fn silence(&self) -> Option<Duration> {
        let silence = self.hello.as_ref()?.far.silence;
        (!silence.is_zero()).then_some(silence)
    }

    fn me(&self) -> u32 {
        self.hello.as_ref().map_or(ALL, |hello| hello.you.host)
    }

    // ---- above ----------------------------------------------------------------------------------------------------

    fn tell(&mut self, what: &Up) {
        let frame = wire::frame(self.me(), what);
        self.pass_up(&frame);
    }

    fn pass_up(&mut self, frame: &[u8]) {
        if !self.orphaned {
            self.told = Instant::now();
            self.queue.push(frame);
        }
    }

    fn hear_guard(&mut self) {
        let mut byte = [0u8; 16];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(&self.guard, &mut byte, flags) {
            Ok((got @ 1.., _)) => {
                // The guard passes signals on; each of those it takes asks for the end.
                let signal = Signal::from(byte[got - 1]);
                self.lose_above(signal);
            }
            Ok(_) => self.lose_above(libc::SIGTERM),
            Err(_) => {}
        }
    }

    fn hear_above(&mut self) {
        let mut buffer = [0u8; 64 * 1024];
        while !self.orphaned {
            match rustix::io::read(&self.above, &mut buffer) {
                Ok(got @ 1..) => {
                    self.heard = Instant::now();
                    self.frames.push(&buffer[..got]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                _ => {
                    self.obey_frames();
                    return self.lose_above(libc::SIGTERM);
                }
            }
            self.obey_frames();
        }
    }

    fn obey_frames(&mut self) {
        loop {
            match self.frames.next_frame() {
                Ok(None) => return,
                Ok(Some((host, body))) => {
                    if host == ALL || host != self.me() {
                        let frame = wire::raw_frame(host, &body);
                        let all = host == ALL;
                        for link in &mut self.links {
                            if all || link.covers(host) {
                                link.send(&frame);
                            }
                        }
                    }
                    // Before it has been greeted a host does not know its number.
                    if (host == ALL || host == self.me() || self.hello.is_none())
                        && let Err(error) = wire::open(&body).map(|down| self.obey(down))
                    {
                        return self.despair(&error);
                    }
                }
                Err(error) => return self.despair(&error),
            }
        }
    }

    fn despair(&mut self, error: &FrameError) {
        eprintln!(
            "mpirun on {}: the launcher above is not understood: {error}",
            crate::hosts::own_name()
        );
        self.lose_above(libc::SIGTERM);
    }

    fn obey(&mut self, what: Down) {
        match what {
            Down::Hello(hello) => self.greet(*hello),
            Down::Launch(order) => self.launch(&order),
            Down::Pmi { proc, bytes } => {
                let socket = self.ranks.iter().find(|rank| rank.proc == proc);
                if let Some(socket) = socket.and_then(|rank| rank.pmi.as_ref()) {
                    // One that does not read its answers waits for ever, and is seen to.
                    ranks::tell(socket, &bytes);
                }
            }
            Down::Stdin(bytes) => {
                self.unfed += bytes.len();
                self.feed.push(&bytes);
            }
            Down::StdinEnd => self.feed.end(),
            Down::Signal(signal) => self.signal(signal),
            Down::Kill => self.signal(libc::SIGKILL),
            Down::Look => {
                let seen = self.ranks.iter().filter(|rank| rank.alive);
                let seen = seen.filter_map(|rank| Some((rank.proc, self.glimpse(rank)?)));
                let seen = seen.collect();
                self.tell(&Up::Glimpses(seen));
            }
            Down::Finish => self.finishing = true,
            Down::Beat => {}
        }
    }

    fn greet(&mut self, hello: Hello) {
        if hello.version != VERSION {
            eprintln!(
                "mpirun on {}: this is version {VERSION}, but the launcher is version {}",
                hello.you.name, hello.version
            );
            return self.lose_above(libc::SIGTERM);
        }
        for branch in hello.you.below.clone() {
            let hosts = branch.hosts();
            let below = Hello {
                you: branch,
                ..hello.clone()
            };
            match Link::open(below, self.reports.1.as_fd(), self.nofile) {
                Ok(link) => {
                    if let Some(mouth) = link.mouth() {
                        watch_room(&self.epoll, mouth);
                    }
                    self.links.push(link);
                }
                Err(error) => self.lose_below(hosts, error.to_string()),
            }
        }
        self.hello = Some(hello);
    }

    fn launch(&mut self, order: &Order) {
        if let Err((why, code)) = self.start(order) {
            let job = order.job;
            self.tell(&Up::NotStarted { job, why, code });
        }
    }

    fn start(&mut self, order: &Order) -> Result<(), (String, i32)> {
        let Some(hello) = &self.hello else {
            return Err(("nobody has said hello".into(), 1));
        };
        let starter = Starter {
            env: &hello.env,
            dir: Some(&hello.dir),
            report: self.reports.1.as_fd(),
            null: self.null.as_fd(),
            nofile: self.nofile,
        };
        let told = |error: ranks::StartError| (error.to_string(), error.code());
        let resolved = starter.resolve(order, hello.you.host).map_err(told)?;
        if resolved.count() == 0 {
            return Ok(());
        }
        let node = Node::create(resolved.count()).map_err(|error| (error.to_string(), 1))?;
        let (feed, epoll) = (&mut self.feed, &self.epoll);
        let input = |rank: u32| match order.readers.contains(&rank) {
            true => feed.add(|pipe| watch_room(epoll, pipe)).map(Some),
            false => Ok(None),
        };
        let mut fresh = Vec::with_capacity(resolved.count());
        let outcome = starter.start(order, &resolved, node.fd(), input, |rank| fresh.push(rank));
        for rank in fresh {
            let proc = order.first + rank.rank as usize;
            let (pid, bound) = (rank.pid, rank.bound);
            self.tell(&Up::Started { proc, pid, bound });
            self.ranks.push(Here {
                proc,
                local_rank: rank.local_rank,
                job: order.job,
                pid: rank.pid,
                alive: true,
                pmi: Some(rank.pmi),
                stdout: Some(rank.stdout),
                stderr: Some(rank.stderr),
            });
        }
        self.nodes.push((order.job, node));
        outcome.map_err(told)
    }

    /// The launcher above has gone, or is not to be believed: everything here ends.
    fn lose_above(&mut self, signal: Signal) {
        if self.orphaned {
            return;
        }
        self.orphaned = true;
        for link in &mut self.links {
            link.close();
        }
        self.signal(signal);
        if signal != libc::SIGTERM {
            self.signal(libc::SIGTERM);
        }
        self.signal(libc::SIGCONT);
        let grace = self
            .hello
            .as_ref()
            .map_or(Duration::ZERO, |hello| hello.grace);
        self.kill_at = Some(Instant::now() + grace);
    }

    // ---- below ----------------------------------------------------------------------------------------------------

    fn signal(&self, signal: Signal) {
        for rank in self.ranks.iter().filter(|rank| rank.alive) {
            sys::signal_group(rank.pid, signal);
        }
    }

    fn glimpse(&self, rank: &Here) -> Option<Glimpse> {
        let (_, node) = self.nodes.iter().find(|(job, _)| *job == rank.job)?;
        Glimpse::of_local(node, rank.local_rank)
    }

    fn hear_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal != libc::SIGCHLD {
                self.lose_above(signal);
            }
        }
        while let Some((pid, ended)) = sys::reap() {
            let found = self
                .ranks
                .iter()
                .position(|rank| rank.pid == pid && rank.alive);
            if let Some(index) = found {
                self.mourn(index, ended);
            }
        }
    }

    fn mourn(&mut self, index: usize, ended: Ended) {
        // What it said before it died counts before its death does.
        self.hear_pmi(index);
        let failed = FailedStart::read(&self.reports.0);
        let end = match (failed, ended) {
            (Some(failed), _) => End::NeverBegan {
                errno: failed.errno,
                step: failed.step as i32,
            },
            (None, Ended::Exited(code)) => End::Exited(code),
            (None, Ended::Killed(signal)) => End::Killed(signal),
        };
        let rank = &mut self.ranks[index];
        rank.alive = false;
        let proc = rank.proc;
        let glimpse = self.glimpse(&self.ranks[index]);
        self.tell(&Up::Ended { proc, end, glimpse });
    }

    fn hear_ranks(&mut self) {
        if self.queue.is_full() {
            return;
        }
        for index in 0..self.ranks.len() {
            self.hear_pmi(index);
            self.relay(index, false);
            self.relay(index, true);
        }
    }

    fn hear_pmi(&mut self, index: usize) {
        loop {
            let Some(rank) = self.ranks.get_mut(index) else {
                return;
            };
            let Some(socket) = &rank.pmi else {
                return;
            };
            let mut bytes = Vec::new();
            let heard = ranks::hear(socket, |heard| bytes.extend_from_slice(heard));
            let proc = rank.proc;
            match heard {
                ranks::Heard::Bytes => self.tell(&Up::Pmi { proc, bytes }),
                ranks::Heard::Nothing => return,
                ranks::Heard::HungUp => {
                    rank.pmi = None;
                    return;
                }
            }
        }
    }

    /// Reads one output of a rank once; whether there may be more.
    fn relay(&mut self, index: usize, stderr: bool) -> bool {
        let rank = &mut self.ranks[index];
        let proc = rank.proc;
        let slot = match stderr {
            true => &mut rank.stderr,
            false => &mut rank.stdout,
        };
        let Some(pipe) = slot else {
            return false;
        };
        let mut buffer = [0u8; 32 * 1024];
        let got = match rustix::io::read(pipe, &mut buffer) {
            Ok(got) => got,
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            Err(_) => 0,
        };
        if got == 0 {
            *slot = None;
        }
        // No bytes say that the last line is whole.
        let bytes = buffer[..got].to_vec();
        self.tell(&Up::Output {
            proc,
            stderr,
            bytes,
        });
        got > 0
    }

    fn hear_link(&mut self, number: usize) {
        if self.queue.is_full() || !self.links[number].is_open() {
            return;
        }
        let heard = self.links[number].hear();
        loop {
            match self.links[number].frames.next_frame() {
                Ok(Some((host, body))) => {
                    let frame = wire::raw_frame(host, &body);
                    self.pass_up(&frame);
                }
                Ok(None) => break,
                Err(error) => return self.cut(number, error.to_string()),
            }
        }
        if heard == Heard::End {
            self.cut(number, "its launcher has ended, or was not reached".into());
        }
    }

    fn cut(&mut self, number: usize, why: String) {
        self.links[number].close();
        let hosts = Branch::hosts(&self.links[number].branch);
        if !self.finishing {
            self.lose_below(hosts, why);
        }
    }

    fn lose_below(&mut self, hosts: Vec<u32>, why: String) {
        self.tell(&Up::Lost { hosts, why });
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    fn step(&mut self) {
        // Clears what the epoll tells, which is only that there is room somewhere.
        let mut events = Vec::with_capacity(16);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let _ = epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&now),
        );
        self.feed.drain();
        if self.unfed > 0 && self.feed.is_empty() {
            let fed = std::mem::take(&mut self.unfed);
            self.tell(&Up::Fed(fed));
        }
        for link in &mut self.links {
            link.drain();
        }
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.signal(libc::SIGKILL);
        }
        if let Some(silence) = self.silence() {
            self.keep(silence);
        }
        if self.queue.drain_into(&self.to_above).is_none() {
            self.lose_above(libc::SIGTERM);
        }
    }

    fn keep(&mut self, silence: Duration) {
        if self.told.elapsed() >= silence / 3 {
            self.tell(&Up::Beat);
        }
        let beat = wire::frame(ALL, &Down::Beat);
        let mut silent = Vec::new();
        for (number, link) in self.links.iter_mut().enumerate() {
            if link.should_beat(silence) {
                link.send(&beat);
            }
            if link.is_silent(silence) {
                silent.push(number);
            }
        }
        for number in silent {
            self.cut(
                number,
                format!("it has said nothing for {} s", silence.as_secs_f64()),
            );
        }
        if self.heard.elapsed() >= silence {
            self.lose_above(libc::SIGTERM);
        }
    }

    // ---- the end --------------------------------------------------------------------------------------------------

    fn empty_pipes(&mut self) {
        for index in 0..self.ranks.len() {
            for stderr in [false, true] {
                while self.relay(index, stderr) {
                    if self.queue.is_full() {
                        self.write_all();
                    }
                }
            }
        }
    }

    /// Those below finish at the same time; their last words pass through us.
    fn await_links(&mut self) {
        while !self.orphaned && self.links.iter().any(Link::is_open) {
            let _ = self.wait();
            self.hear_guard();
            self.hear_above();
            for number in 0..self.links.len() {
                self.hear_link(number);
            }
            self.step();
        }
    }

    /// Writes all that is left, unless nobody reads it any more.
    fn write_all(&mut self) {
        while !self.queue.is_empty() && !self.orphaned {
            if self.queue.drain_into(&self.to_above).is_none() {
                return;
            }
            let mut fds = [
                PollFd::new(&self.to_above, PollFlags::OUT),
                PollFd::new(&self.guard, PollFlags::RDHUP),
            ];
            let _ = poll(&mut fds, None);
            let gone = !fds[1].revents().is_empty();
            if gone {
                return;
            }
        }
    }
}

/// Watches a pipe into which something may have to wait.
fn watch_room(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    let flags = EventFlags::OUT | EventFlags::ET;
    let _ = epoll::add(epoll, fd, EventData::new_u64(0), flags);
}
