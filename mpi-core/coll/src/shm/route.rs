//! Which way an operation's data go, and going it.
//!
//! There are three: through [`cells`](super::cells), straight from the others' memory, or that of the next component.
//! Short data go through cells whole. Of those that could go there in pieces rank 0 has said which way they go, or that it is measured ([`protocol_choice`](super::protocol_choice)).
//!
//! Promise: all members go the same way in the same call, and nothing is sent for that.
//! A way follows from what the standard makes equal at all members, from rank 0's letter, and from plans that all read alike.
//!
//! Protocol: an operation has its [`Route`], and the numbers that this takes of its lane's cells ([`Begun`]), when it is called or started, and may be carried out later;
//! members make the same calls in the same order, so an operation has the same numbers at all of them.
//! One that is measured has its numbers when there is room for the first of them, which is waited for: so requests are not measured.

use super::cells::Lane;
use super::large::{self, Large};
use super::params::LongWay;
use super::segment::{Long, Segment};
use super::small::Shape;
use super::wait::{Here, Waits};
use super::{State, small};
use crate::Error;
use crate::trial::Way;
use crate::{Call, CallId, Invocation, Table};

/// How an operation other than a barrier is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Through cells.
    Cells(Shape),
    /// From the others' memory, with so many numbers.
    Copies(u64),
    /// Through several cells, or as if there were none: as is faster.
    Measured(Shape),
}

/// An operation that has its number.
pub(super) struct Begun {
    pub(super) route: Route,
    lane: Lane,
    /// The first of its numbers.
    number: u64,
}

impl State {
    /// How an operation is carried out, unless it is for the next component; the same answer at all members.
    #[inline]
    pub(super) fn route(&self, lane: Lane, call: &Call) -> Option<Route> {
        let place = self.place.get()?;
        let small = &place.small.as_ref()?[lane as usize];
        if place.leaves(call.id()) {
            return None;
        }
        match small.shape(call, self.members.count()) {
            Some(Shape::Whole) => Some(Route::Cells(Shape::Whole)),
            Some(shape) => match self.long_way(place, lane, call, shape) {
                LongWay(None) => Some(Route::Measured(shape)),
                LongWay(Some(Way::Fragments)) => Some(Route::Cells(shape)),
                LongWay(Some(Way::Copy)) => self.copies(place, call),
            },
            None => self.copies(place, call),
        }
    }

    /// The way of long data without pieces, if it is not the next component's.
    fn copies(&self, place: &Segment, call: &Call) -> Option<Route> {
        let serves = place.large.serves(call, self.members.count());
        serves.then(|| Route::Copies(Large::numbers(call)))
    }

    /// The way of data that can go through several cells.
    fn long_way(&self, place: &Segment, lane: Lane, call: &Call, shape: Shape) -> LongWay {
        let moves = matches!(
            call.id(),
            CallId::Bcast | CallId::Gather | CallId::Scatter | CallId::Allgather | CallId::Alltoall
        );
        let ways = match &place.long {
            Long::Always(way) => return LongWay(Some(*way)),
            Long::Measured(ways) => ways,
        };
        let in_rows = matches!(shape, Shape::Rows(_));
        if in_rows && self.copies(place, call).is_none() {
            // As many messages as there are ranks take longer, whatever they carry.
            return LongWay(Some(Way::Fragments));
        }
        // What is combined is so here in one order, whichever way; the next component does not promise that.
        // What is only moved can go as its messages: they find out for themselves which way is the faster one for them,
        // and on some machines neither theirs nor pieces are.
        let another_way = || self.copies(place, call).is_some() || moves;
        match lane {
            Lane::Blocking if another_way() => LongWay(None),
            _ => LongWay(Some(ways.first(call.id()))),
        }
    }

    /// Numbers an operation.
    #[inline]
    pub(super) fn begin_data(&self, lane: Lane, route: Route) -> Option<Begun> {
        let small = &self.place.get()?.small.as_ref()?[lane as usize];
        let numbers = match route {
            Route::Cells(shape) => shape.numbers(),
            Route::Copies(numbers) => numbers,
            // As many as the way needs that it will go.
            Route::Measured(_) => 0,
        };
        Some(Begun {
            route,
            lane,
            number: small.cells.begin(numbers),
        })
    }

    /// Carries a call out the way that is found to be the faster one, and finds that out.
    pub(super) async fn run_measured(
        &self,
        shape: Shape,
        cx: &Invocation,
        call: &Call,
    ) -> Result<(), Error> {
        let began = crate::trial::now();
        let Some((place, cells)) = self.place.get().zip(self.blocking().map(|s| &s.cells)) else {
            // Nothing is taken up without them.
            return Ok(());
        };
        let Long::Measured(ways) = &place.long else {
            return Ok(());
        };
        let number = cells.next();
        let spot = cells.long_spot(number);
        cells.make_room(Here(cx.comm()), cx.engine(), spot).await;
        let finished = |number| cells.have_finished(number);
        let kind = (call.id(), call.agreed_bytes().unwrap_or(0) as u64);
        let measured = ways.begin(kind, number, began, finished);
        let route = match measured.way {
            Way::Fragments => Some(Route::Cells(shape)),
            Way::Copy => self.copies(place, call),
        };
        let begun = route.and_then(|route| self.begin_data(Lane::Blocking, route));
        let outcome = match begun {
            Some(begun) => self.carry_out(begun, Here(cx.comm()), cx, call).await,
            None => {
                let number = cells.begin(1);
                let outcome = Table::run_next(cx, call);
                cells.end_long(&self.members, number);
                outcome
            }
        };
        #[cfg(feature = "testing")]
        crate::trial::costs::end(measured.way);
        ways.end(measured);
        outcome
    }

    /// An operation in the cells, unless it goes another way.
    #[inline]
    pub(super) fn in_cells<'a, W>(
        &'a self,
        begun: &Begun,
        wait: W,
        cx: &'a Invocation,
    ) -> Option<small::Turn<'a, W>> {
        let Route::Cells(_) = begun.route else {
            return None;
        };
        let small = self.place.get()?.small.as_ref()?;
        let small = &small[begun.lane as usize];
        Some(small::Turn {
            cells: &small.cells,
            kind: small.kind,
            members: &self.members,
            engine: cx.engine(),
            comm: cx.comm(),
            number: begun.number,
            wait,
        })
    }

    pub(super) async fn carry_out(
        &self,
        begun: Begun,
        wait: impl Waits,
        cx: &Invocation,
        call: &Call,
    ) -> Result<(), Error> {
        if let (Route::Cells(shape), Some(turn)) = (begun.route, self.in_cells(&begun, wait, cx)) {
            return turn.run(call, shape).await;
        }
        let place = self.place.get();
        let Some((small, large)) = place.and_then(|p| Some((p.small.as_ref()?, &p.large))) else {
            // Nothing is taken up without them.
            return Ok(());
        };
        let turn = large::Turn {
            large,
            cells: &small[begun.lane as usize].cells,
            members: &self.members,
            cx,
            number: begun.number,
            wait,
        };
        turn.run(call).await
    }
}
