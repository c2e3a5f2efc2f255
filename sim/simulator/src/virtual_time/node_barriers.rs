//! A node's barriers in virtual time:
//! the real driver, for the parameters' board version and protocol.
//!
//! With `n` channels, barrier `k` uses channel `k mod n`; node 0 allocates and frees the channels.

use super::host::{Delay, Disagreement, Host, Pin};
use super::{Parameters, Protocol, Time};
use barrier_driver::channels::{
    ChannelBarrier, LastLine, Membership, Programmer, ReleaseLine, SerialPins,
};
use barrier_driver::{Confirmed, ReturningBarrier, SelfTest, ToggleBarrier, self_test_by};
use core::task::Poll;
use fpga_model::channels::MAX_CHANNELS;
use std::time::Duration;

type Input<'h> = Confirmed<ReleaseLine<Pin<'h>>>;
type PinProgrammer<'h> = Programmer<Pin<'h>, LastLine<Pin<'h>>, Delay<'h>>;

/// A barrier driver of the selected version and protocol.
enum BarrierKind<'h> {
    Toggle(ToggleBarrier<Pin<'h>, Input<'h>>),
    Returning(ReturningBarrier<Pin<'h>, Input<'h>>),
}

/// The barrier drivers of a node: one, or one per channel.
pub struct NodeBarriers<'h> {
    host: &'h Host<'h>,
    protocol: Protocol,
    barriers: Vec<BarrierKind<'h>>,
    /// The programmer of the channels; `None` except at the node that programs them.
    programmer: Option<PinProgrammer<'h>>,
    channels: usize,
}

fn message(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn duration(time: Time) -> Duration {
    Duration::from_nanos(time.ns())
}

impl<'h> NodeBarriers<'h> {
    /// Opens all barriers at this node; the nodes open each barrier together and agree on the
    /// result.
    pub fn open(host: &'h Host<'h>, parameters: &Parameters) -> Result<Self, Disagreement> {
        let Parameters {
            protocol,
            channels,
            reads,
            nodes,
            ..
        } = *parameters;
        let mut node_barriers = Self {
            host,
            protocol,
            barriers: Vec::new(),
            programmer: None,
            channels,
        };
        if channels == 0 {
            let input = Confirmed::new(ReleaseLine::Own(host.pin(0)), reads);
            let opened = ToggleBarrier::open(host.pin(0), input, || host.fence());
            node_barriers
                .barriers
                .push(BarrierKind::Toggle(host.agree(opened.map_err(message))?));
            return Ok(node_barriers);
        }
        let last = LastLine::new(host.pin(MAX_CHANNELS - 1));
        let mut opened_serial = Ok(());
        if host.node() == 0 {
            let pins = SerialPins {
                clock: host.pin(MAX_CHANNELS),
                data: host.pin(MAX_CHANNELS + 1),
                select: host.pin(MAX_CHANNELS + 2),
            };
            match Programmer::new(pins, last.clone(), Delay(host)) {
                Ok(programmer) => node_barriers.programmer = Some(programmer),
                Err(e) => opened_serial = Err(message(e)),
            }
        }
        host.agree(opened_serial)?;
        for channel in 0..channels {
            let line = match channel + 1 == MAX_CHANNELS {
                true => ReleaseLine::Shared(last.clone()),
                false => ReleaseLine::Own(host.pin(channel)),
            };
            let membership = Membership {
                channel: channel as u8,
                members: u64::MAX >> (u64::BITS as usize - nodes),
            };
            let opened = ChannelBarrier::open(
                host.pin(channel),
                Confirmed::new(line, reads),
                membership,
                node_barriers.programmer.as_mut(),
                || host.fence(),
            );
            let opened = host.agree(opened.map_err(message))?;
            node_barriers
                .barriers
                .push(BarrierKind::Toggle(opened.into_toggle()));
        }
        Ok(node_barriers)
    }

    /// Runs the driver's self-test of each barrier.
    /// After a failure the other barriers are tested, too, because the self-tests contain software
    /// barriers (fences), in which all nodes must take part.
    pub fn self_test(
        &mut self,
        test: SelfTest,
        late: impl Iterator<Item = usize> + Clone,
        hold: Time,
    ) -> Result<(), String> {
        let host = self.host;
        let mut verdict = Ok(());
        for barrier in &mut self.barriers {
            let BarrierKind::Toggle(barrier) = barrier else {
                continue;
            };
            let tested = self_test_by(
                || host.elapsed(),
                barrier,
                test,
                late.clone(),
                || host.fence(),
                || host.watch(Some(hold)),
            );
            verdict = verdict.and(tested.map_err(message));
        }
        verdict
    }

    /// Converts the barriers to returning barriers if the protocol requires it.
    /// `limit` is the time limit per barrier.
    pub fn begin(&mut self, limit: Option<Time>) -> Result<(), String> {
        let Protocol::Returning { rest } = self.protocol else {
            return Ok(());
        };
        let host = self.host;
        for barrier in std::mem::take(&mut self.barriers) {
            self.barriers.push(match barrier {
                BarrierKind::Toggle(toggle) => {
                    let limit_or_ever = limit.map_or(Duration::MAX, duration);
                    let returning = ReturningBarrier::over_by(
                        || host.elapsed(),
                        toggle,
                        rest,
                        || host.watch(limit),
                        limit_or_ever,
                    );
                    BarrierKind::Returning(returning.map_err(message)?)
                }
                returning => returning,
            });
        }
        Ok(())
    }

    /// Enters barrier `number`.
    pub fn enter(&mut self, number: usize) -> Result<(), String> {
        match self.barrier(number) {
            BarrierKind::Toggle(barrier) => barrier.enter().map_err(message),
            BarrierKind::Returning(barrier) => barrier.enter().map_err(message),
        }
    }

    /// Waits for the release of barrier `number`, for at most `limit`.
    pub fn wait(&mut self, number: usize, limit: Option<Time>) -> Result<(), String> {
        let host = self.host;
        let barrier = self.barrier(number);
        let Some(limit) = limit else {
            loop {
                let polled = match barrier {
                    BarrierKind::Toggle(barrier) => barrier.poll().map_err(message)?,
                    BarrierKind::Returning(barrier) => barrier.poll().map_err(message)?,
                };
                if matches!(polled, Poll::Ready(())) {
                    return Ok(());
                }
                host.watch(None);
            }
        };
        let now = || host.elapsed();
        let progress = || host.watch(Some(limit));
        match barrier {
            BarrierKind::Toggle(barrier) => barrier
                .wait_by(now, progress, duration(limit))
                .map_err(message),
            BarrierKind::Returning(barrier) => barrier
                .wait_by(now, progress, duration(limit))
                .map_err(message),
        }
    }

    /// Makes all wires idle and frees the channels.
    pub fn close(mut self) -> Result<(), String> {
        let mut closed = Ok(());
        for barrier in std::mem::take(&mut self.barriers) {
            let this = match barrier {
                BarrierKind::Toggle(barrier) => barrier.close().map_err(message),
                BarrierKind::Returning(barrier) => barrier.close().map_err(message),
            };
            closed = closed.and(this);
        }
        if self.channels > 0 {
            let met = self.host.fence().map_err(message);
            closed = closed.and(met);
            if closed.is_ok()
                && let Some(programmer) = &mut self.programmer
            {
                for channel in 0..self.channels {
                    closed = closed.and(programmer.give_back(channel as u8).map_err(message));
                }
            }
        }
        closed
    }

    fn barrier(&mut self, number: usize) -> &mut BarrierKind<'h> {
        let count = self.barriers.len();
        &mut self.barriers[number % count]
    }
}
