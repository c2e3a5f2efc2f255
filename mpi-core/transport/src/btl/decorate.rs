//! Decorators: transports that wrap another transport and add one function.
//!
//! A decorator is enabled by its own parameters and wraps every opened transport, in the order of [`super::DECORATORS`], the first innermost:
//! faults act on the wire, the trace records what the wire delivers, and the checksum detects the damage.

use super::{OpenContext, OpenError, Transport};
use mpi_base::param::About;

/// A component that wraps other components' transports.
pub struct Decorator {
    pub name: &'static str,
    /// Everything `mpi-info` lists for it.
    pub params: &'static [&'static About],
    /// Wraps a transport if its parameters ask for it; `number` counts the transports of this process.
    pub wrap: fn(&OpenContext<'_>, u32, Transport) -> Result<Transport, OpenError>,
}

/// The methods that a decorator forwards to `self.inner`.
macro_rules! like_the_inner {
    () => {
        fn name(&self) -> &'static str {
            self.inner.name()
        }
        fn exclusivity(&self) -> u32 {
            self.inner.exclusivity()
        }
        fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize {
            self.inner
                .fragment(bytes, packed, alone)
                .min(self.limits().max_send)
        }
        fn follow(&self, to: Endpoint, bytes: u64, packed: bool) -> Option<usize> {
            let most = self.limits().max_send;
            self.inner
                .follow(to, bytes, packed)
                .map(|piece| piece.min(most))
        }
        fn reach(&self, peer: ProcId) -> Reach {
            self.inner.reach(peer)
        }
        fn listens(&self) -> bool {
            self.inner.listens()
        }
        fn poll_is_syscall(&self) -> bool {
            self.inner.poll_is_syscall()
        }
        fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>) {
            self.inner.descriptors(all);
        }
        fn is_through(&self, to: Endpoint) -> bool {
            self.inner.is_through(to)
        }
        fn bandwidth(&self, to: Endpoint) -> u32 {
            self.inner.bandwidth(to)
        }
        fn cut(&self, to: Endpoint) {
            self.inner.cut(to);
        }
        fn settle(&self) {
            self.inner.settle();
        }
        fn leave(&self) {
            self.inner.leave();
        }
    };
}

pub(super) use like_the_inner;
