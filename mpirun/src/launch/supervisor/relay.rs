//! Relaying the ranks' output: when ranks are read, when they are held back, and how their last output is printed.

use super::super::output::{Read, Stream, Target};
use super::super::sys::Signal;
use super::super::{descendants, ends_the_job};
use super::{FINAL_OUTPUT_LIMIT, OUTPUT_LOST, Supervisor, Watch};
use crate::pmi::Proc;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::time::Instant;

impl Supervisor<'_> {
    pub(super) fn relay(&mut self, proc: Proc, to: Target) {
        self.unserved.before_output(proc);
        self.read_output(proc, to, |read| read == Read::End);
    }

    /// Reads what a rank of this host has written; if `is_over` returns true, the stream is closed. Returns true if more can be read.
    pub(super) fn read_output(
        &mut self,
        proc: Proc,
        to: Target,
        is_over: impl Fn(Read) -> bool,
    ) -> bool {
        let Some(rank) = self.ranks.get_mut(proc).filter(|rank| rank.here) else {
            return false;
        };
        let slot = match to {
            Target::Stdout => &mut rank.stdout,
            Target::Stderr => &mut rank.stderr,
        };
        let Some(stream) = slot else {
            return false;
        };
        let sink = self.outputs.sink(stream.to);
        let over = is_over(stream.read(sink));
        if over {
            stream.flush(sink);
            *slot = None;
        }
        !over
    }

    /// Ends the streams of a rank of which nothing more arrives; its incomplete lines are printed.
    pub(super) fn end_streams(&mut self, proc: Proc) {
        let Some(rank) = self.ranks.get_mut(proc) else {
            return;
        };
        for slot in [&mut rank.stdout, &mut rank.stderr] {
            if let Some(mut stream) = slot.take() {
                stream.flush(self.outputs.sink(stream.to));
            }
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        if !self.plan.quiet {
            self.outputs.say(text);
        }
    }

    /// Reports output that could not be written, which the job's exit status shows.
    pub(super) fn check_outputs(&mut self) {
        for complaint in self.outputs.take_complaints() {
            self.lose_output(&complaint);
        }
        let kept = self.plan.io.folder.is_some();
        for (name, write_error) in self.outputs.take_write_errors() {
            let Some(errno) = write_error else { continue };
            let error = std::io::Error::from(errno);
            let consequence = match kept {
                true => "The job goes on, since --output keeps its lines.",
                false => "The job is ended, since its lines are kept nowhere else.",
            };
            self.lose_output(&format!(
                "mpirun's {name} cannot be written any more: {error}. {consequence}"
            ));
            if !kept {
                self.end(OUTPUT_LOST, libc::SIGTERM);
            }
        }
    }

    /// Reports output that a user asked for and that is incomplete.
    pub(super) fn lose_output(&mut self, sentence: &str) {
        self.say(sentence);
        self.lifecycle.fail(OUTPUT_LOST);
    }

    /// Returns when the next incomplete line is due to be printed.
    pub(super) fn next_prompt(&self) -> Option<Instant> {
        let ranks = self.ranks.iter();
        let streams = ranks.flat_map(|(_, rank)| [&rank.stdout, &rank.stderr]);
        streams.flatten().filter_map(Stream::prompt_at).min()
    }

    /// Prints incomplete lines whose end has not arrived by `now`.
    pub(super) fn show_prompts(&mut self, now: Instant) {
        self.flush_streams(|stream| stream.prompt_at().is_some_and(|at| at <= now));
    }

    /// Prints the incomplete lines of the streams that are `due`.
    fn flush_streams(&mut self, due: impl Fn(&Stream) -> bool) {
        for rank in self.ranks.iter_mut() {
            for stream in [&mut rank.stdout, &mut rank.stderr].into_iter().flatten() {
                if due(stream) {
                    stream.flush(self.outputs.sink(stream.to));
                }
            }
        }
    }

    /// Stops reading the ranks while a reader of mpirun's output is slow, and resumes when it has read.
    pub(super) fn throttle_reading(&mut self) {
        self.outputs.watch_writable(&self.epoll);
        if let Some(full) = self.outputs.throttle_change() {
            let flags = if full {
                EventFlags::empty()
            } else {
                EventFlags::IN
            };
            for (proc, rank) in self.ranks.iter() {
                for (stream, watch) in [
                    (&rank.stdout, Watch::Stdout(proc)),
                    (&rank.stderr, Watch::Stderr(proc)),
                ] {
                    if let Some(fd) = stream.as_ref().and_then(|stream| stream.fd.as_ref()) {
                        let token = EventData::new_u64(watch.token());
                        let _ = epoll::modify(&self.epoll, fd, token, flags);
                    }
                }
            }
        }
    }

    /// All ranks have ended: kills orphans of ranks, prints what the pipes still hold, and waits for the reader of mpirun's output.
    pub(super) fn finish_output(&mut self) {
        let links: Vec<i32> = self.links.iter().map(|link| link.pid).collect();
        descendants::end_all_but(&links);
        let by_force = !self.is_running();
        let limit = Instant::now() + FINAL_OUTPUT_LIMIT;
        for n in 0..self.ranks.count() {
            for to in [Target::Stdout, Target::Stderr] {
                self.drain_pipe(Proc(n), to, by_force.then_some(limit));
            }
        }
        self.part(by_force.then_some(limit));
        // Nothing more arrives.
        self.flush_streams(|_| true);
        // The commands that reached the other hosts have nothing more to do.
        descendants::end_all();
        self.write_trace();
        self.report_losses();
        self.write_out(by_force.then_some(limit));
        self.check_outputs();
        self.write_out(by_force.then_some(limit));
    }

    pub(super) fn drain_pipe(&mut self, proc: Proc, to: Target, limit: Option<Instant>) {
        loop {
            if self.outputs.is_full() {
                self.write_out(limit);
            }
            if !self.read_output(proc, to, |read| read != Read::Some) {
                return;
            }
        }
    }

    /// Writes until nothing is queued, the time is over, or the front end has died.
    pub(super) fn write_out(&mut self, limit: Option<Instant>) {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            self.outputs.drain();
            let late = limit.is_some_and(|limit| Instant::now() >= limit);
            if self.outputs.is_empty() || late || !self.front_end_alive {
                return;
            }
            let mut fds = [
                PollFd::new(self.outputs.slow(), PollFlags::OUT),
                PollFd::new(&self.wires.front, PollFlags::RDHUP),
            ];
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            let _ = poll(&mut fds, Some(&pause));
            let gone = fds[1].revents();
            if gone.intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR) {
                self.front_end_alive = false;
            }
            // A signal from the user ends the waiting, too.
            let mut byte = [0u8; 1];
            let asked = rustix::net::recv(
                &self.wires.front,
                &mut byte,
                rustix::net::RecvFlags::DONTWAIT,
            );
            if asked.is_ok_and(|(got, _)| got > 0 && ends_the_job(Signal::from(byte[0]))) {
                return;
            }
        }
    }
}
