//! The Verilated barrier of a shared object, reached by its symbols, see `dv/verilated_pins.cpp`.
#![allow(unsafe_code)]

use std::ffi::c_void;

use fpga_model::ToggleMachine;
use libloading::Library;

use super::{CosimError, Design};
use crate::cache::Cache;

/// `struct Registers` of the C interface.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FlipFlops {
    pub stage1: u64,
    pub stage2: u64,
    pub output: u64,
}

type New = unsafe extern "C" fn() -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Step = unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64) -> u64;
type Load = unsafe extern "C" fn(*mut c_void, *const FlipFlops);
type Store = unsafe extern "C" fn(*const c_void, *mut FlipFlops);

/// One Verilated barrier of a loaded shared object.
pub(super) struct Barrier {
    barrier: *mut c_void,
    free: Free,
    step: Step,
    load: Load,
    store: Store,
    wires: u64,
    /// Keeps the code mapped that the pointers above lead to; dropped last.
    _library: Library,
}

// SAFETY: the barrier is one C++ object without thread affinity, and every use of it needs `&mut`.
unsafe impl Send for Barrier {}

impl Barrier {
    /// Translates a barrier of so many nodes and powers it on.
    pub fn build(design: Design, nodes: usize, cache: &Cache) -> Result<Barrier, CosimError> {
        let blank = ToggleMachine::new(nodes).map_err(CosimError::Nodes)?;
        let file = design.translate(nodes, cache)?;
        // SAFETY: the cache holds what our recipe has made; loading it runs the initialisers of the C++ library only.
        let library = unsafe { Library::new(&file) }.map_err(CosimError::Load)?;
        // SAFETY: the symbols have these types in `dv/verilated_pins.cpp`.
        let (new, free, step, load, store) = unsafe {
            (
                symbol::<New>(&library, b"barrier_new\0")?,
                symbol::<Free>(&library, b"barrier_free\0")?,
                symbol::<Step>(&library, b"barrier_step\0")?,
                symbol::<Load>(&library, b"barrier_load\0")?,
                symbol::<Store>(&library, b"barrier_store\0")?,
            )
        };
        // SAFETY: it takes nothing and answers null or a barrier of ours.
        let barrier = unsafe { new() };
        if barrier.is_null() {
            return Err(CosimError::NoMemory);
        }
        Ok(Barrier {
            barrier,
            free,
            step,
            load,
            store,
            wires: blank.wires(),
            _library: library,
        })
    }

    /// The wires that exist, as a mask.
    pub fn wires(&self) -> u64 {
        self.wires
    }

    /// So many edges; the outputs after them, and how often they have changed.
    pub fn clock(&mut self, inputs: u64, edges: u64) -> (u64, u64) {
        let mut releases = 0;
        // SAFETY: the barrier lives until drop, we are the only ones inside, and `releases` is a word of ours.
        let outputs = unsafe { (self.step)(self.barrier, inputs, edges, &mut releases) };
        (outputs, releases)
    }

    pub fn flip_flops(&self) -> FlipFlops {
        let mut flip_flops = FlipFlops::default();
        // SAFETY: the barrier lives until drop, and it writes one struct of ours.
        unsafe { (self.store)(self.barrier, &mut flip_flops) };
        flip_flops
    }

    /// One edge of a barrier with these flip-flops.
    pub fn edge(&mut self, before: FlipFlops, inputs: u64) -> FlipFlops {
        // SAFETY: the barrier lives until drop, we are the only ones inside, and it reads one struct of ours.
        unsafe { (self.load)(self.barrier, &before) };
        self.clock(inputs, 1);
        self.flip_flops()
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        // SAFETY: made by `barrier_new`, freed once, and nobody is left who could use it.
        unsafe { (self.free)(self.barrier) };
    }
}

/// # Safety
/// The symbol has this type.
unsafe fn symbol<T: Copy>(library: &Library, name: &[u8]) -> Result<T, CosimError> {
    // SAFETY: the caller vouches for the type.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(CosimError::Load)
}
