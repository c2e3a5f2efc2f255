//! Dispatch of arriving messages to the modules of ob1.

use super::Ob1;
use super::core::ProtocolError;
use super::flow_control::on_throttle;
use super::matching::Key;
use super::peer_failure::end_all;
use super::recv::{direct_receive, eager_pipeline, fragments};
use super::send::{assist, cancel, pipeline, streams};
use super::types;
use super::wire::{self, Rendezvous};
use crate::btl::{Am, Header, ProcId, Sink};
use crate::pml::envelope::Context;
use std::ops::Range;

impl Ob1 {
    /// Handles all messages except complete short ones.
    /// This is a separate function, so the code for short messages stays small.
    #[inline(never)]
    fn on_rare(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        let Ob1 {
            core,
            receiver,
            sender,
        } = self;
        let handled = match am {
            wire::RNDV => receiver.on_rendezvous(core, from, header, Rendezvous::decode(payload)),
            wire::RNDV_KEY => {
                receiver.on_rendezvous(core, from, header, Rendezvous::decode_with_key(payload))
            }
            wire::CTS => sender.streams().on_cts(core, from, header, payload),
            wire::FRAG => fragments::on_fragment(core, from, header, payload),
            wire::FIN => sender.on_fin(core, from, header),
            wire::ASSIST => assist::on_assist(core, from, header, payload),
            wire::ASSIST_DONE => receiver.on_assist_done(core, from, header, payload),
            wire::THROTTLE => on_throttle(core, from, header),
            wire::EAGER_LONG => {
                eager_pipeline::disturb(core, from);
                self.on_eager(from, header, payload);
                Ok(())
            }
            wire::EAGER_START => receiver.on_eager_start(core, from, header, payload),
            wire::EAGER_FRAG => receiver.on_eager_frag(core, from, header, payload),
            wire::TYPES => types::on_types(core, header, payload),
            wire::EAGER_MODE => pipeline::on_mode(core, from, header),
            wire::CANCEL => receiver.on_cancel(core, from, header, payload),
            wire::CANCELLED => {
                cancel::on_cancelled(core, from, header);
                Ok(())
            }
            _ => Err(ProtocolError("an unknown kind of message")),
        };
        if let Err(nonsense) = handled {
            self.report_protocol_error(from, nonsense);
        }
    }

    /// Handles an eager message that arrived in one piece.
    #[inline(always)]
    fn on_eager(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (context, key) = wire::read_match(header);
        if !(self.receiver).take_eager(&self.core, context, key, payload) {
            self.keep_eager(from, context, key, payload);
        }
    }

    /// Buffers an unexpected message. Not inlined, so the code for expected messages stays small.
    #[inline(never)]
    fn keep_eager(&self, from: ProcId, context: Context, key: Key, payload: &[u8]) {
        let kept = (self.receiver).keep_eager(&self.core, from, context, key, payload);
        if let Err(nonsense) = kept {
            self.report_protocol_error(from, nonsense);
        }
    }

    /// Disconnects a peer after a protocol error; the peer then counts as lost.
    #[cold]
    fn report_protocol_error(&self, from: ProcId, ProtocolError(what): ProtocolError) {
        let core = &self.core;
        core.protocol_error();
        let me = core.links().me();
        if from == me || core.losses().has(from) {
            return;
        }
        let why = format!(
            "rank {from} sent {what} to rank {me}, which no message layer of this library does"
        );
        core.links().cut(from);
        self.declare_lost(from, &why);
    }

    #[cold]
    fn declare_lost(&self, peer: ProcId, why: &str) {
        if !self.core.losses().has(peer) {
            self.core.counts().loses_peer();
            if let Some(observer) = self.core.observer() {
                observer.loses(peer);
            }
        }
        self.core.losses().declare(peer, why);
        self.receiver.close_slot(&self.core, peer);
        end_all(&self.core, peer);
    }
}

impl Sink for Ob1 {
    #[inline]
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        match am {
            wire::EAGER => self.on_eager(from, header, payload),
            _ => self.on_rare(from, am, header, payload),
        }
    }

    fn begin(&self, from: ProcId, am: Am, header: Header, len: usize, begun: &[u8]) -> bool {
        (self.receiver).begin_direct_receive(&self.core, from, am, header, len, begun)
    }

    fn land(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        direct_receive::go_on(&self.core, from, am, header, range, fill)
    }

    fn landed(&self, from: ProcId, am: Am, header: Header, len: usize) {
        direct_receive::end(&self.core, from, am, header, len);
    }

    fn again(&self, to: ProcId, am: Am, header: Header, len: usize, send: &mut dyn FnMut(&[u8])) {
        if am == wire::FRAG {
            streams::again(&self.core, to, header, len, send);
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.declare_lost(peer, why);
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.core.counts().loses_link();
        if let Some(observer) = self.core.observer() {
            observer.loses_link(peer);
        }
        if let Some(what) = what {
            printable::eprintln!("{what}");
        }
    }
}
