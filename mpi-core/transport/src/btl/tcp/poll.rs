//! Progress of established connections: reading, writing of queues, and closing.

use super::incoming::{End, Turn};
use super::peer::{Fate, Peer};
use super::rendezvous_points::{self, Met};
use super::{ASK, DIRECT, EVENTS, PARTING, Tcp};
use crate::btl::peers::Place;
use crate::btl::{ProcId, Sink};
use rustix::event::{Timespec, epoll};
use rustix::net::Shutdown;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

impl Tcp {
    /// Polls all connections. Returns the number of messages delivered.
    #[inline]
    pub(super) fn look(&self, sink: &dyn Sink) -> usize {
        let mut delivered = 0;
        let direct = {
            let up = self.up.borrow();
            let mut direct = [ProcId::MAX; DIRECT];
            match up.len() {
                n @ 0..=DIRECT => direct[..n].copy_from_slice(&up),
                _ => self.looks.set(ASK),
            }
            direct
        };
        for proc in direct {
            if let Some(peer) = self.peers.known(proc) {
                delivered += self.receive(peer, sink);
            }
        }
        if !self.ended.borrow().is_empty() {
            self.close_ended();
        }
        if !self.leaving.borrow().is_empty() {
            self.part_from_all();
        }
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        if looks > ASK || self.stuck.get() > 0 || self.connector.borrow().is_waiting() {
            delivered += self.poll(sink);
        }
        delivered
    }

    /// Polls epoll and handles its events. Returns the number of messages delivered.
    #[cold]
    pub(super) fn poll(&self, sink: &dyn Sink) -> usize {
        self.looks.set(0);
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default()))
        else {
            return 0;
        };
        let mut delivered = 0;
        let (mut guests, mut parting) = (false, false);
        for event in events {
            let token = { event.data }.u64();
            if token == PARTING {
                parting = true;
                continue;
            }
            let Some(peer) = u32::try_from(token)
                .ok()
                .and_then(|proc| self.peers.known(proc))
            else {
                guests = true;
                continue;
            };
            let flags = { event.flags };
            if flags.contains(epoll::EventFlags::OUT) {
                self.flush(peer);
            }
            if flags.intersects(!epoll::EventFlags::OUT) {
                delivered += self.receive(peer, sink);
            }
        }
        if parting {
            delivered += self.progress_parting(sink);
        }
        if guests || self.connector.borrow().is_waiting() {
            self.progress_connections(sink);
        }
        delivered
    }

    /// Writes the queue of a peer, and registers for EPOLLOUT if the socket is full.
    #[cold]
    pub(super) fn flush(&self, peer: &Peer) {
        let met = peer.socket.borrow();
        let (Some(met), Ok(mut outgoing)) = (&*met, peer.outgoing.try_borrow_mut()) else {
            return;
        };
        // The error of a failed write is ignored: data that the peer has sent earlier must still be read, and the end of reading reports the loss.
        let _ = outgoing.flush(met.socket.as_fd());
        self.ask_for_room(peer, outgoing.is_stuck());
    }

    /// Registers a socket for EPOLLOUT if `stuck` is true, otherwise only for reading.
    pub(super) fn ask_for_room(&self, peer: &Peer, stuck: bool) {
        if peer.stuck.get() == stuck {
            return;
        }
        let met = peer.socket.borrow();
        let Some(Met { socket, .. }) = &*met else {
            return;
        };
        let mut events = epoll::EventFlags::IN;
        events.set(epoll::EventFlags::OUT, stuck);
        let token = epoll::EventData::new_u64(peer.proc().into());
        if epoll::modify(&self.epoll, socket, token, events).is_ok() {
            peer.stuck.set(stuck);
            let count = self.stuck.get();
            self.stuck.set(if stuck { count + 1 } else { count - 1 });
        }
    }

    /// Reads from one peer. Returns the number of messages delivered.
    #[inline]
    fn receive(&self, peer: &Peer, sink: &dyn Sink) -> usize {
        if peer.is_second.get() {
            let waits = self.is_still_read(peer.proc());
            peer.is_second.set(waits);
            if waits {
                return 0;
            }
        }
        let met = peer.socket.borrow();
        let (Some(met), Ok(mut incoming)) = (&*met, peer.incoming.try_borrow_mut()) else {
            return 0;
        };
        let Some(reader) = &mut *incoming else {
            return 0;
        };
        let Turn { delivered, end } = reader.progress(met.socket.as_fd(), peer.proc(), sink);
        if let Some(end) = end {
            *incoming = None;
            self.part(peer, met, end, sink);
        }
        delivered
    }

    /// Ends a connection. The socket is closed later, when no active function borrows it.
    #[cold]
    fn part(&self, peer: &Peer, met: &Met, end: End, sink: &dyn Sink) {
        self.up.borrow_mut().retain(|&proc| proc != peer.proc());
        self.ask_for_room(peer, false);
        let _ = epoll::delete(&self.epoll, &met.socket);
        self.ended.borrow_mut().push(peer.proc());
        let why = match end {
            End::Goodbye => return sink.parted(peer.proc()),
            End::Closed => {
                "the other end was closed without a disconnect message: its process has died, or has given up the connection".into()
            }
            End::Garbled(error) => error.to_string(),
            End::System(error) => rendezvous_points::text(error),
        };
        // After a protocol error the connection is unusable in both directions.
        let _ = rustix::net::shutdown(&met.socket, Shutdown::Both);
        self.lose(peer, &format!("({}) was lost: {why}", met.ends), sink);
    }

    /// Closes ended connections. A peer that has sent a disconnect message receives this process's disconnect message and can be connected again.
    #[cold]
    pub(super) fn close_ended(&self) {
        for proc in self.ended.take() {
            let Some(peer) = self.peers.known(proc) else {
                continue;
            };
            match peer.fate.get() {
                Fate::Up => self.set_aside(peer),
                fate => {
                    peer.reset();
                    peer.fate.set(fate);
                }
            }
            if self.names.is_unused(proc) {
                self.peers.forget(proc);
            }
        }
    }
}
