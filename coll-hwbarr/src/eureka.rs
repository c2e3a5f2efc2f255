//! Rounds of the eureka line, which exists in addition to the hardware barrier (`MPIX_Eureka_...`).
//!
//! Every release of the hardware barrier lowers the line,
//! so one barrier opens a round and another barrier ends it.
//! Barriers that the program calls during a round are performed in software by all members.
//! The result of the opening barrier is the same at all members:
//! if they no longer use the hardware, the next component performs the round.
//!
//! With `coll_hwbarr_reboot` a barrier has a second release, for which no node waits.
//! It would lower the line during a round, so the next component then performs all rounds.
//!
//! The line's wires are opened when the first round is opened:
//! all nodes lower their wires, enter a fence, and check that the line is low. If a node
//! finds it high, no member uses the line, and one warning names that node.

use crate::module::Module;
use crate::port::Fault;
use crate::port::line::{Line, LineEnd, LineWires};
use crate::setup_group::SetupGroup;
use mpi_core::plugin::guest::{Module as _, Served};
use std::cell::Cell;

impl Module {
    /// Opens a round of the eureka line; every member must call this.
    pub fn open_round(&self) -> Result<Served, String> {
        // The value is equal at all members: it depends on the type of port and on earlier
        // agreements.
        let has_line = self
            .with_state(|state| state.port.has_line() && !matches!(state.line, LineEnd::Refused))?;
        if !has_line || self.is_returning() {
            return Ok(Served::Next);
        }
        if self.barrier()? == Served::Next {
            return Ok(Served::Next);
        }
        let unopened = self.with_state(|state| matches!(state.line, LineEnd::Unopened))?;
        if unopened && !self.open_line()? {
            return Ok(Served::Next);
        }
        self.round.set(true);
        Ok(Served::Here)
    }

    /// Ends the round of the eureka line; every member must call this.
    pub fn end_round(&self) -> Result<(), String> {
        self.round.set(false);
        // If the port fails here, it also fails in the next barrier, which reports the error.
        let _ = self.with_line(|line| line.rest());
        self.barrier().map(|_| ())
    }

    /// Runs `act` on this node's open connection to the eureka line.
    pub fn with_line<T>(
        &self,
        act: impl FnOnce(&mut dyn Line) -> Result<T, String>,
    ) -> Result<T, String> {
        self.with_state(|state| match &mut state.line {
            LineEnd::Open(line) => act(&mut **line),
            _ => Err("no round of the line is open".into()),
        })?
    }

    /// Opens the wires at all nodes; collective. Returns false at all nodes if one node fails.
    fn open_line(&self) -> Result<bool, String> {
        let setup_group = SetupGroup::of_all(self.comm());
        let wires = self.with_state(|state| state.port.line())?;
        let line = setup_group
            .agree(wires.map_err(Fault::Here))
            .and_then(|wires| self.open_together(&setup_group, wires));
        let end = match line {
            Ok(line) => LineEnd::Open(line),
            Err(reason) => {
                if !self.comm().failed_ranks().is_empty() {
                    return Err(reason);
                }
                if self.comm().rank() == 0 {
                    self.comm().warn(&format!(
                        "the eureka line cannot be used: {reason}; its rounds go in software"
                    ));
                }
                LineEnd::Refused
            }
        };
        let is_open = matches!(end, LineEnd::Open(_));
        self.with_state(|state| state.line = end)?;
        if is_open && self.comm().rank() == 0 {
            self.comm()
                .info("the eureka line beside the barrier, opened and found low by all");
        }
        Ok(is_open)
    }

    fn open_together(
        &self,
        setup_group: &SetupGroup,
        wires: Box<dyn LineWires>,
    ) -> Result<Box<dyn Line>, String> {
        let fenced = Cell::new(false);
        let mut fence = || {
            fenced.set(true);
            setup_group.fence()
        };
        let opened = wires.open(&mut fence);
        if !fenced.get() {
            setup_group.fence()?;
        }
        // No node raises its wire before all nodes have found the line low.
        setup_group.agree(opened.map_err(Fault::Here))
    }
}
