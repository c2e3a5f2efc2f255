//! End of a launch, after all ranks have ended: remaining output, last reports, report files.

use super::Supervisor;
use crate::launch::descendants;
use crate::launch::local_ranks::Read;
use crate::launch::output::Target;
use crate::launch::wire::ToDaemon;
use crate::pmi::Proc;
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// The maximum time for which an ended job waits for a reader of its output.
const LIMIT: Duration = Duration::from_secs(1);

impl Supervisor<'_> {
    /// Kills orphans, drains the pipes and writes report files.
    /// Then waits for the reader of mpirun's output.
    pub(super) fn finish(&mut self) {
        self.control.count_losses();
        self.report_unserved();
        descendants::end_all_but(&self.control.ranks.links.pids());
        let by_force = !self.control.is_running();
        let limit = by_force.then(|| Instant::now() + LIMIT);
        for proc in self.control.ranks.local.open() {
            self.drain_pipe(proc, Target::Stdout, limit);
            self.drain_pipe(proc, Target::Stderr, limit);
        }
        self.part(limit);
        // No further output arrives, so incomplete lines are printed.
        self.control.ranks.outputs.flush_all();
        // The commands (such as ssh) that started daemons on other hosts are no longer needed.
        descendants::end_all();
        let control = &mut self.control;
        let (jobs, local) = (&control.ranks.jobs, &control.ranks.local);
        self.tracing.write(jobs, local, &mut control.ranks.outputs);
        control.report_losses();
        self.write_out(limit);
        self.check_outputs();
        self.write_out(limit);
    }

    fn drain_pipe(&mut self, proc: Proc, of: Target, limit: Option<Instant>) {
        loop {
            if self.control.ranks.outputs.is_full() {
                self.write_out(limit);
            }
            if self.read_output(proc, of) != Read::Some {
                return self.control.ranks.outputs.end(proc, of);
            }
        }
    }

    fn write_out(&mut self, limit: Option<Instant>) {
        self.control.ranks.outputs.write_all(limit, &mut self.front);
    }

    /// Receives event rings and remaining output from other hosts, and closes the links.
    fn part(&mut self, limit: Option<Instant>) {
        if self.tracing.needs_hosts(&self.control.ranks.links) {
            // Clocks are compared first, since event rings in flight would delay the answers.
            self.tracing.compare_clocks(&mut self.control.ranks.links);
            self.serve_links(limit, |sup| {
                sup.tracing.has_all_clocks(&sup.control.ranks.links)
            });
            self.control.ranks.links.send_all(&ToDaemon::EventRings);
            self.serve_links(limit, |sup| {
                sup.tracing.has_all_rings(&sup.control.ranks.links)
            });
        }
        self.control.ranks.links.send_all(&ToDaemon::Finish);
        self.serve_links(limit, |_| false);
        self.control.ranks.links.close_all();
    }

    /// Serves the links until `has_come` returns true, the time is over, or no link is open.
    fn serve_links(&mut self, limit: Option<Instant>, has_come: impl Fn(&Self) -> bool) {
        while !has_come(self) && self.control.ranks.links.any_open() {
            let late = limit.is_some_and(|limit| Instant::now() >= limit);
            if late || !self.front.is_alive() {
                break;
            }
            self.control.ranks.links.drain();
            let fds = self.control.ranks.links.read_fds();
            let fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            if !self.front.wait_for(fds.collect()) {
                break;
            }
            for number in 0..self.control.ranks.links.count() {
                self.read_link(number);
            }
            self.keep_links();
            if self.control.ranks.outputs.is_full() {
                self.write_out(limit);
            }
        }
    }
}
