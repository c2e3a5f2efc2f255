//! Routing: the choice of the protocol for an operation's data, and the execution of the operation.
//!
//! There are three routes: through [`cells`](super::cells), by single copies from other members' memory, or to the next component.
//! Short data are sent through one cell.
//! For data that could be sent through cells in pieces, rank 0's configuration fixes the protocol,
//! or [`protocol_choice`](super::protocol_choice) measures it.
//!
//! Guarantee: all members use the same route in the same call, and the choice takes no message.
//! A route depends only on arguments that the standard makes equal on all members, on rank 0's config blob, and on plans (see [`protocol_choice`](super::protocol_choice)).
//!
//! Protocol: an operation gets its [`Route`], and operation numbers of its lane's cells ([`Begun`]),
//! when it is called or started; it may be carried out later.
//! All members make the same calls in the same order, so an operation has the same numbers on all members.
//! A measured operation blocks until the cells of its first number are free,
//! and only then gets its numbers; so requests are not measured.

use super::large::{self, Large};
use super::layout::Lane;
use super::params::LongWay;
use super::protocol_choice::moves_data;
use super::segment::{Long, Segment};
use super::small::Shape;
use super::wait::{Blocking, Wait, or_leave};
use super::{State, small};
use crate::Error;
use crate::trial::Way;
use crate::{Call, Invocation, Table, Unserved};

/// The protocol of an operation other than a barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// The data are sent through cells.
    Cells(Shape),
    /// The ranks copy directly from each other's memory (single copy);
    /// the operation takes this number of operation numbers.
    Copies(u64),
    /// The data are sent through several cells or not through cells, whichever is faster by measurement.
    Measured(Shape),
}

/// An operation to which operation numbers have been assigned.
pub(super) struct Begun {
    pub(super) route: Route,
    lane: Lane,
    number: u64,
}

impl State {
    /// Returns the route of an operation, or `None` if the call must be passed to the next component.
    /// All members get the same result.
    #[inline]
    pub(super) fn route(&self, lane: Lane, call: &Call) -> Option<Route> {
        let place = self.place.get()?;
        let small = &place.small.as_ref()?[lane as usize];
        if place.leaves(call.id()) {
            return None;
        }
        match small.shape(call, self.members.count()) {
            Some(shape @ (Shape::Whole | Shape::Counts)) => Some(Route::Cells(shape)),
            Some(shape) => match self.long_way(place, lane, call, shape) {
                LongWay(None) => Some(Route::Measured(shape)),
                LongWay(Some(Way::Fragments)) => Some(Route::Cells(shape)),
                LongWay(Some(Way::Copy)) => self.copies(place, call),
            },
            None => self.copies(place, call),
        }
    }

    /// Returns the route by single copies, or `None` if they do not support the call.
    fn copies(&self, place: &Segment, call: &Call) -> Option<Route> {
        let serves = place.large.serves(call, self.members.count());
        serves.then(|| Route::Copies(Large::numbers(call)))
    }

    /// Returns the protocol for data that can be sent through several cells.
    fn long_way(&self, place: &Segment, lane: Lane, call: &Call, shape: Shape) -> LongWay {
        if let Long::Always(way) = &place.long {
            return LongWay(Some(*way));
        }
        let small = place.small.as_ref().map(|small| &small[lane as usize]);
        let is_sliced = small.is_some_and(|small| small.cells.has_slices());
        let in_rows = matches!(shape, Shape::Rows(_));
        if in_rows && self.copies(place, call).is_none() {
            // Without single copies, the only alternative is one message per rank, which is slower at any length.
            return LongWay(Some(Way::Fragments));
        }
        // Single copies combine operands in the same order as cells; the next component does not guarantee this order.
        // If data are only moved, messages of the next component are an alternative too.
        // Messages choose a protocol of their own,
        // and on some machines messages are faster at some sizes and pieces at others.
        let another_way = || self.copies(place, call).is_some() || moves_data(call.id());
        match lane {
            Lane::Blocking if another_way() => LongWay(None),
            // Requests are not measured.
            // If the blocking lane has slices, requests in pieces were slower than the alternative (measured).
            Lane::Nonblocking if is_sliced && another_way() => LongWay(Some(Way::Copy)),
            _ => {
                let bytes = call.agreed_bytes().unwrap_or(0) as u64;
                LongWay(Some(place.fixed_protocol(call.id(), bytes)))
            }
        }
    }

    /// Assigns operation numbers to an operation.
    #[inline]
    pub(super) fn begin_data(&self, lane: Lane, route: Route) -> Option<Begun> {
        let small = &self.place.get()?.small.as_ref()?[lane as usize];
        let numbers = match route {
            Route::Cells(shape) => shape.numbers(),
            Route::Copies(numbers) => numbers,
            // The numbers of a measured operation are assigned when its protocol is known.
            Route::Measured(_) => 0,
        };
        Some(Begun {
            route,
            lane,
            number: small.cells.begin(numbers),
        })
    }

    /// Carries out a call with the protocol that its plan selects, and reports its time.
    pub(super) async fn run_measured(
        &self,
        shape: Shape,
        invocation: &Invocation,
        call: &Call,
    ) -> Result<(), Error> {
        let began = crate::trial::now();
        let Some((place, cells)) = self.place.get().zip(self.blocking().map(|s| &s.cells)) else {
            // Unreachable: no call is measured without cells.
            return Err(Unserved::on(invocation.comm(), call.id()));
        };
        let Long::Measured(protocol_choice) = &place.long else {
            return Err(Unserved::on(invocation.comm(), call.id()));
        };
        let number = cells.next();
        let address = cells.long_address(number);
        cells
            .make_room(Blocking(invocation.comm()), invocation.engine(), address)
            .await?;
        let finished = |number| cells.have_finished(number);
        let kind = (call.id(), call.agreed_bytes().unwrap_or(0) as u64);
        let measured =
            protocol_choice.begin(kind, place.large.readers.all_can(), number, began, finished);
        let route = match measured.way {
            Way::Fragments => Some(Route::Cells(shape)),
            Way::Copy => self.copies(place, call),
        };
        let begun = route.and_then(|route| self.begin_data(Lane::Blocking, route));
        let outcome = match begun {
            Some(begun) => {
                let outcome = self
                    .carry_out(begun, Blocking(invocation.comm()), invocation, call)
                    .await;
                or_leave(invocation.comm(), outcome)?
            }
            None => {
                let number = cells.begin(1);
                let outcome = Table::run_next(invocation, call);
                cells.end_long(&self.members, number);
                outcome
            }
        };
        #[cfg(feature = "testing")]
        crate::trial::costs::end(measured.way);
        protocol_choice.end(measured);
        outcome
    }

    /// Returns the operation, if it uses cells.
    #[inline]
    pub(super) fn in_cells<'a, W>(
        &'a self,
        begun: &Begun,
        wait: W,
        invocation: &'a Invocation,
    ) -> Option<small::SmallOp<'a, W>> {
        let Route::Cells(_) = begun.route else {
            return None;
        };
        let small = self.place.get()?.small.as_ref()?;
        let small = &small[begun.lane as usize];
        Some(small::SmallOp {
            cells: &small.cells,
            occupancy: small.occupancy,
            members: &self.members,
            engine: invocation.engine(),
            comm: invocation.comm(),
            number: begun.number,
            wait,
        })
    }

    pub(super) async fn carry_out(
        &self,
        begun: Begun,
        wait: impl Wait,
        invocation: &Invocation,
        call: &Call,
    ) -> Result<(), Error> {
        if let (Route::Cells(shape), Some(operation)) =
            (begun.route, self.in_cells(&begun, wait, invocation))
        {
            return match (shape, self.place.get()) {
                (Shape::Counts, Some(place)) => {
                    operation.run_counts(&place.large, invocation, call).await
                }
                _ => operation.run(call, shape).await,
            };
        }
        let place = self.place.get();
        let Some((small, large)) = place.and_then(|p| Some((p.small.as_ref()?, &p.large))) else {
            // Unreachable: no operation has numbers without cells.
            return Err(Unserved::on(invocation.comm(), call.id()));
        };
        let operation = large::LargeOp {
            large,
            cells: &small[begun.lane as usize].cells,
            members: &self.members,
            invocation,
            number: begun.number,
            wait,
        };
        operation.run(call).await
    }
}
