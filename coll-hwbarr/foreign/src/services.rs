//! The services of a [`ForeignComm`] that the component calls, and their host table.
#![allow(unsafe_code)]

use crate::foreign_comm::ForeignComm;
use mpi_core::plugin::abi::{Call, Host, WARNING};
use mpi_core::plugin::host::{Services, table};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::time::Duration;

/// The host table of these services, in the plugin ABI.
pub static HOST: Host = table::<ForeignComm>();

impl Services for ForeignComm {
    const LIBRARY: &'static CStr = c"another MPI library";

    fn rank(&self) -> u32 {
        ForeignComm::rank(self)
    }

    fn size(&self) -> u32 {
        ForeignComm::size(self)
    }

    fn name(&self) -> &CStr {
        c"MPI_COMM_WORLD"
    }

    fn is_world(&self) -> bool {
        true
    }

    fn node_ranks(&self) -> impl ExactSizeIterator<Item = u32> {
        self.neighbours().iter().copied()
    }

    /// Returns an empty list: the MPI library ends the job when a rank dies.
    fn failed_ranks(&self) -> Vec<u32> {
        Vec::new()
    }

    fn send(&self, dest: u32, data: &[u8]) -> Result<(), String> {
        ForeignComm::send(self, dest, data)
    }

    fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String> {
        ForeignComm::recv(self, source, data)
    }

    fn fence(&self) -> Result<(), String> {
        ForeignComm::fence(self)
    }

    fn start_send(&self, dest: u32, data: &[u8]) -> Result<u64, String> {
        self.messages.send(dest, data)
    }

    fn start_recv(&self, source: u32, bytes: usize) -> Result<u64, String> {
        Ok(self.messages.receive(source, bytes))
    }

    fn test_message(&self, message: u64, data: &mut [u8]) -> Result<bool, String> {
        self.messages.test(message, data)
    }

    /// Returns false: an MPI library does not report whether a poll has made progress.
    fn progress(&self) -> bool {
        ForeignComm::progress(self);
        false
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<bool, String> {
        Ok(ForeignComm::wait(self, limit, ready))
    }

    /// Does nothing: a rank that waits here polls or yields and never sleeps.
    fn ring(&self, _: u32) {}

    fn shared_memory(&self, bytes: usize, align: usize) -> Result<*mut c_void, String> {
        ForeignComm::shared_memory(self, bytes, align)
    }

    fn param(&self, name: &CStr) -> Option<&CStr> {
        ForeignComm::param(self, name)
    }

    fn log(&self, level: c_int, line: &CStr) {
        if level == WARNING || self.is_verbose() {
            printable::eprintln!("portcullis: hwbarr: {}", line.to_string_lossy());
        }
    }

    fn component_data(&self) -> &Cell<*mut c_void> {
        &self.common
    }

    /// Ignores the reason: the component never reports a reason through this service.
    fn fail(&self, _: &CStr) {}

    /// Passes the counts of barriers to the callback that observes the wire ([`crate::wire`]), for hang reports and traces.
    fn barrier_wire(&self, wire: u32, entered: u64, released: u64) {
        crate::wire::changes(wire, entered, released);
    }

    /// Returns an error, because the host has no next component;
    /// the caller of the module then calls the library's own barrier.
    unsafe fn call_next(_: *mut Call) -> Result<(), String> {
        Err("no other component is known here".into())
    }
}
