//! Co-simulation: embedded-hal pins whose other end is the RTL itself, Verilated.
//!
//! A [`RtlBoard`] is one barrier in this process; its pins may go to any thread.
//! Time is counted in accesses: each lets the clock tick as often as the board says, before it reads or after it writes,
//! so a run is repeatable if the order of accesses is.
//!
//! The shared object is loaded by its symbols, three of them, see `dv/verilated_pins.cpp`.
#![allow(unsafe_code)]

use std::convert::Infallible;
use std::ffi::c_void;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use libloading::Library;

use crate::source::{Source, source};
use crate::tool::ToolError;
use crate::verilator;

/// The shared object's C interface.
pub const PINS: Source = source!("dv/verilated_pins.cpp");

type New = unsafe extern "C" fn() -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Step = unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64) -> u64;

/// Why there is no board.
#[derive(Debug)]
pub enum CosimError {
    Tool(ToolError),
    /// The shared object could not be loaded or lacks a symbol.
    Load(libloading::Error),
    NoMemory,
}

impl fmt::Display for CosimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(error) => error.fmt(f),
            Self::Load(error) => write!(f, "the Verilated barrier cannot be loaded: {error}"),
            Self::NoMemory => write!(f, "there is no memory for a Verilated barrier"),
        }
    }
}

impl std::error::Error for CosimError {}

/// A barrier of RTL with pins.
#[derive(Clone)]
pub struct RtlBoard(Arc<Mutex<Inner>>);

struct Inner {
    barrier: *mut c_void,
    free: Free,
    step: Step,
    inputs: u64,
    outputs: u64,
    releases: u64,
    edges_per_access: u64,
    /// Keeps the code mapped that the pointers above lead to; dropped last.
    _library: Library,
}

// SAFETY: the barrier is one C++ object without thread affinity, and the mutex lets one thread at a time use it.
unsafe impl Send for Inner {}

impl RtlBoard {
    /// Verilates the toggle barrier of so many nodes in a folder and powers one on.
    pub fn build(
        nodes: usize,
        edges_per_access: u64,
        folder: &Path,
    ) -> Result<RtlBoard, CosimError> {
        let file = verilator::shared_object(nodes, &PINS, folder).map_err(CosimError::Tool)?;
        // SAFETY: the file was made a moment ago from our own sources.
        unsafe { RtlBoard::load(&file, edges_per_access) }
    }

    /// Powers on another barrier of a shared object that [`verilator::shared_object`] has made.
    ///
    /// # Safety
    /// The file is such a shared object: what it runs when it is loaded, and what its symbols are, nobody can check.
    pub unsafe fn load(file: &Path, edges_per_access: u64) -> Result<RtlBoard, CosimError> {
        // SAFETY: the caller vouches for the file; loading ours runs the initialisers of the C++ library only.
        let library = unsafe { Library::new(file) }.map_err(CosimError::Load)?;
        // SAFETY: the three symbols have these types in `dv/verilated_pins.cpp`.
        let (new, free, step) = unsafe {
            (
                *library
                    .get::<New>(b"barrier_new\0")
                    .map_err(CosimError::Load)?,
                *library
                    .get::<Free>(b"barrier_free\0")
                    .map_err(CosimError::Load)?,
                *library
                    .get::<Step>(b"barrier_step\0")
                    .map_err(CosimError::Load)?,
            )
        };
        // SAFETY: it takes nothing and answers null or a barrier of ours.
        let barrier = unsafe { new() };
        if barrier.is_null() {
            return Err(CosimError::NoMemory);
        }
        Ok(RtlBoard(Arc::new(Mutex::new(Inner {
            barrier,
            free,
            step,
            inputs: 0,
            outputs: 0,
            releases: 0,
            edges_per_access,
            _library: library,
        }))))
    }

    /// The pins of one node.
    pub fn wires(&self, node: usize) -> (RtlPin, RtlPin) {
        let pin = RtlPin {
            board: self.clone(),
            node,
        };
        (pin.clone(), pin)
    }

    /// How often the RTL has toggled its output.
    pub fn releases(&self) -> u64 {
        self.lock().releases
    }

    /// Lets the clock tick.
    pub fn clock(&self, edges: u64) {
        self.lock().clock(edges);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn clock(&mut self, edges: u64) {
        // SAFETY: the barrier lives until drop, we are the only ones inside, and `releases` is a word of ours.
        self.outputs = unsafe { (self.step)(self.barrier, self.inputs, edges, &mut self.releases) };
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: made by `barrier_new`, freed once, and nobody is left who could use it.
        unsafe { (self.free)(self.barrier) };
    }
}

/// A node's pin, either of the two.
#[derive(Clone)]
pub struct RtlPin {
    board: RtlBoard,
    node: usize,
}

impl RtlPin {
    fn drive(&self, high: bool) {
        let mut board = self.board.lock();
        let bit = 1 << self.node;
        board.inputs = board.inputs & !bit | if high { bit } else { 0 };
        let edges = board.edges_per_access;
        board.clock(edges);
    }
}

impl ErrorType for RtlPin {
    type Error = Infallible;
}

impl OutputPin for RtlPin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.drive(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.drive(true);
        Ok(())
    }
}

impl InputPin for RtlPin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let mut board = self.board.lock();
        let edges = board.edges_per_access;
        board.clock(edges);
        Ok(board.outputs >> self.node & 1 == 1)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}
