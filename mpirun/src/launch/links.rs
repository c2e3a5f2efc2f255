//! Table of a launcher's links to other hosts: routes orders, gives up ended or overdue links.
//!
//! A link reaches a host and further hosts behind it. Supervisor and daemons have one table each.

use super::limits::Limits;
use super::link::{self, Link, Received, Starter};
use super::program::RemoteLaunch;
use super::wire::{ALL, FrameError, Hello, ToDaemon, frame};
use rustix::fd::BorrowedFd;
use std::io;

/// All links that were ever opened; a closed link keeps its index.
#[derive(Debug, Default)]
pub struct Links {
    links: Vec<Link>,
}

/// The result of reading a link.
#[derive(Debug)]
pub struct Arrived {
    /// Complete frames, each as a host index and a body.
    pub frames: Vec<(u32, Vec<u8>)>,
    /// The reason why the link is lost; `None` if the link still works.
    pub lost: Option<LostLink>,
}

/// The reason why the reader of a link gives up the link.
#[derive(Debug, PartialEq, Eq)]
pub enum LostLink {
    /// The daemon at the other side has ended after its greeting.
    Ended,
    /// The command that reaches the host has ended before the daemon's greeting.
    NotReached,
    Frame(FrameError),
}

impl LostLink {
    /// Formats the reason as a sentence; `remote` names the command that reaches other hosts.
    pub fn sentence(&self, remote: &RemoteLaunch) -> String {
        match self {
            LostLink::Ended => "its launcher has ended".to_string(),
            LostLink::NotReached => {
                let agent = remote.agent.first();
                let agent = agent.map(|word| printable::name(word).to_string());
                format!(
                    "{} did not reach it, or {} is not there",
                    agent.unwrap_or("ssh".into()),
                    printable::name(&remote.mpirun)
                )
            }
            LostLink::Frame(error) => error.to_string(),
        }
    }
}

impl Links {
    /// Opens a link and sends `Hello` through it; returns the link with its index.
    pub fn open(&mut self, hello: Hello, by: &Starter<'_>) -> io::Result<(usize, &Link)> {
        let number = self.links.len();
        self.links.push(Link::open(hello, by)?);
        Ok((number, &self.links[number]))
    }

    /// Returns true if no link was ever opened.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the number of links that were ever opened.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Returns true while data may still arrive on a link.
    pub fn any_open(&self) -> bool {
        self.links.iter().any(Link::is_open)
    }

    /// Returns true if the route to that host begins with one of the links.
    pub fn covers(&self, host: u32) -> bool {
        self.links.iter().any(|link| link.covers(host))
    }

    /// Returns the index of the open link to a host.
    pub fn number_of(&self, host: u32) -> Option<usize> {
        let mut links = self.links.iter();
        links.position(|link| link.is_open() && link.branch.host == host)
    }

    /// Returns the hosts that open links reach.
    pub fn open_hosts(&self) -> Vec<u32> {
        let open = self.links.iter().filter(|link| link.is_open());
        open.flat_map(|link| link.branch.hosts()).collect()
    }

    /// Asks all daemons to be silent until the end of a checkpoint ([`Links::release`]).
    pub fn hold(&mut self) {
        self.links.iter_mut().for_each(Link::hold);
    }

    /// Records that the daemon of a host is silent.
    pub fn set_silent(&mut self, host: u32) {
        let links = self.links.iter_mut();
        let links = links.filter(|link| link.branch.host == host);
        links.for_each(Link::set_silent);
    }

    /// Returns true if no open link has anything in flight.
    pub fn are_silent(&self) -> bool {
        let mut open = self.links.iter().filter(|link| link.is_open());
        open.all(Link::is_silent)
    }

    /// Returns the silent links.
    pub fn silent(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.is_silent())
    }

    /// Ends the silence of all links.
    pub fn release(&mut self) {
        self.links.iter_mut().for_each(Link::release);
    }

    /// Returns the pids of the commands (such as ssh) that started daemons on the hosts.
    pub fn pids(&self) -> Vec<i32> {
        self.links.iter().map(|link| link.pid).collect()
    }

    /// Returns the descriptors to read frames from.
    pub fn read_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().filter_map(Link::read_fd)
    }

    /// Sends an order to all hosts.
    pub fn send_all(&mut self, what: &ToDaemon) {
        if !self.links.is_empty() {
            self.forward(ALL, &frame(ALL, what));
        }
    }

    /// Sends an order to one host.
    pub fn send(&mut self, host: u32, what: &ToDaemon) {
        if self.covers(host) {
            self.forward(host, &frame(host, what));
        }
    }

    /// Sends an encoded frame to its addressee, one host or [`ALL`].
    pub fn forward(&mut self, host: u32, frame: &[u8]) {
        for link in &mut self.links {
            if host == ALL || link.covers(host) {
                link.send(frame);
            }
        }
    }

    /// Writes queued bytes of all links without blocking.
    pub fn drain(&mut self) {
        self.links.iter_mut().for_each(Link::drain);
    }

    /// Reads a link with one system call, so a host with much output does not delay the others.
    pub fn read(&mut self, number: usize) -> Arrived {
        let mut arrived = Arrived {
            frames: Vec::new(),
            lost: None,
        };
        let Some(link) = self.links.get_mut(number).filter(|link| link.is_open()) else {
            return arrived;
        };
        if link.receive() == Received::End {
            arrived.lost = Some(match link.frames.is_greeted() {
                true => LostLink::Ended,
                false => LostLink::NotReached,
            });
        }
        loop {
            match link.frames.next_frame() {
                Ok(Some(frame)) => arrived.frames.push(frame),
                Ok(None) => return arrived,
                Err(error) => {
                    arrived.lost = Some(LostLink::Frame(error));
                    return arrived;
                }
            }
        }
    }

    /// Closes a link; returns the hosts that it reached, which are now lost.
    pub fn close(&mut self, number: usize) -> Vec<u32> {
        let Some(link) = self.links.get_mut(number) else {
            return Vec::new();
        };
        link.close();
        link.branch.hosts()
    }

    /// Closes all links.
    pub fn close_all(&mut self) {
        self.links.iter_mut().for_each(Link::close);
    }

    /// Returns the links whose daemon has not sent its greeting yet; then no rank runs there.
    pub fn unanswered(&self) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        links
            .filter(|(_, link)| link.is_unanswered())
            .map(|(number, _)| number)
            .collect()
    }

    /// Sends due keep-alive frames. Returns each overdue link with a message about it.
    pub fn keep(&mut self, limits: &Limits) -> Vec<(usize, String)> {
        link::keep(&mut self.links, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_lost_link_is_explained_by_the_command_that_should_have_reached_the_host() {
        let remote = RemoteLaunch {
            agent: vec!["/bin/rsh".into(), "-l".into()],
            mpirun: "/opt/bin/mpirun".into(),
            fanout: 1,
            limits: Limits {
                greeting: Duration::ZERO,
                silence: Duration::ZERO,
            },
        };
        let said = LostLink::NotReached.sentence(&remote);
        assert_eq!(
            said,
            "/bin/rsh did not reach it, or /opt/bin/mpirun is not there"
        );
        assert_eq!(LostLink::Ended.sentence(&remote), "its launcher has ended");
    }
}
