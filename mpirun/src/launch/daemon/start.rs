//! The start of a daemon's part of a job.

use super::super::ranks::{self, Starter};
use super::super::wire::{FromDaemon, Order};
use super::{Daemon, LocalRank, watch_writable};
use crate::foreign::on;
use crate::node::Node;
use rustix::fd::AsFd;

impl Daemon {
    pub(super) fn launch(&mut self, order: &Order) {
        if let Err((why, code)) = self.start(order) {
            let job = order.job;
            self.report(&FromDaemon::NotStarted { job, why, code });
        }
    }

    pub(super) fn start(&mut self, order: &Order) -> Result<(), (String, i32)> {
        let Some(hello) = &self.hello else {
            return Err((
                "the launcher that started it has sent no hello message".into(),
                1,
            ));
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
            true => feed.add(|pipe| watch_writable(epoll, pipe)).map(Some),
            false => Ok(None),
        };
        let mut started_rank = Vec::with_capacity(resolved.count());
        let outcome = starter.start(order, &resolved, node.fd(), input, |rank| {
            started_rank.push(rank)
        });
        // A singleton may be a job of its own on any library, and with `--on` the user has chosen a library.
        let is_watched = order.hosts.len() > 1 && on::wanted(&hello.env).is_none();
        for rank in started_rank {
            let proc = order.first + rank.rank as usize;
            let (pid, bound) = (rank.pid, rank.bound);
            self.report(&FromDaemon::Started { proc, pid, bound });
            if is_watched {
                self.loaded.began(proc, pid);
            }
            self.ranks.push(LocalRank {
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
        // A job without ranks here never ends here, and its memory would stay.
        if self.ranks.iter().any(|rank| rank.job == order.job) {
            self.nodes.push((order.job, node));
        }
        outcome.map_err(told)
    }
}
