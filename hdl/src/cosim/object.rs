//! Loader of the Verilated barriers as shared objects; their C interfaces are in `toggle/dv/verilated_pins.cpp` and `channels/dv/verilated_gates.cpp`.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;

use fpga_model::ToggleMachine;
use fpga_model::channels::{ChannelMachine, LEASE_BITS, MAX_CHANNELS, Pins};
use libloading::Library;

use super::flip_flops::{ChannelFlipFlops, ChannelPins, FlipFlops, Outputs};
use super::{ChannelDesign, CosimError, Design};
use crate::cache::Cache;

type New = unsafe extern "C" fn() -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Step = unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64) -> u64;
type Load<T> = unsafe extern "C" fn(*mut c_void, *const T);
type Store<T> = unsafe extern "C" fn(*const c_void, *mut T);
type Edge = unsafe extern "C" fn(*mut c_void, *const ChannelPins, *mut Outputs);

/// A simulated barrier of version 1 or 2, with the functions that load and store its flip-flops as a struct `T`.
struct Object<T> {
    at: *mut c_void,
    free: Free,
    load: Load<T>,
    store: Store<T>,
    /// The loaded shared object, which contains the functions above; dropped last.
    library: Library,
}

// SAFETY: the handle is one C++ object without thread affinity, and every method either takes `&mut` or only reads.
unsafe impl<T> Send for Object<T> {}

impl<T: Copy + Default> Object<T> {
    /// # Safety
    /// The file must be a shared object that this crate built, whose struct of registers has the layout of `T`.
    unsafe fn open(file: &Path) -> Result<Object<T>, CosimError> {
        // SAFETY: by the caller, this crate built the file;
        // loading it only runs the initialisers of the C++ library.
        let library = unsafe { Library::new(file) }.map_err(CosimError::Load)?;
        // SAFETY: the symbols have these types in both C interfaces; by the caller, the registers have the layout of `T`.
        let (new, free, load, store) = unsafe {
            (
                symbol::<New>(&library, b"barrier_new\0")?,
                symbol::<Free>(&library, b"barrier_free\0")?,
                symbol::<Load<T>>(&library, b"barrier_load\0")?,
                symbol::<Store<T>>(&library, b"barrier_store\0")?,
            )
        };
        // SAFETY: the function has no arguments and returns null or a new barrier.
        let at = unsafe { new() };
        if at.is_null() {
            return Err(CosimError::NoMemory);
        }
        Ok(Object {
            at,
            free,
            load,
            store,
            library,
        })
    }

    fn load(&mut self, from: &T) {
        // SAFETY: the object lives until drop, `&mut self` excludes other calls, and the function reads one `T`.
        unsafe { (self.load)(self.at, from) };
    }

    fn store(&self) -> T {
        let mut to = T::default();
        // SAFETY: the object lives until drop, and the function writes one `T`.
        unsafe { (self.store)(self.at, &mut to) };
        to
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: `barrier_new` created the object, and `drop` runs once and is the last use.
        unsafe { (self.free)(self.at) };
    }
}

/// One Verilated toggle barrier.
pub(super) struct Barrier {
    object: Object<FlipFlops>,
    step: Step,
    wires: u64,
}

impl Barrier {
    /// Builds a barrier of `nodes` nodes and powers it on.
    pub fn build(design: Design, nodes: usize, cache: &Cache) -> Result<Barrier, CosimError> {
        let blank = ToggleMachine::new(nodes).map_err(CosimError::Nodes)?;
        let file = design.translate(nodes, cache)?;
        // SAFETY: `translate` built the file, now or earlier, with the interface `toggle/dv/verilated_pins.cpp`.
        let object = unsafe { Object::open(&file) }?;
        // SAFETY: the symbol has this type in `toggle/dv/verilated_pins.cpp`.
        let step = unsafe { symbol::<Step>(&object.library, b"barrier_step\0") }?;
        Ok(Barrier {
            object,
            step,
            wires: blank.wires(),
        })
    }

    /// Returns a mask with one bit for each existing node.
    pub fn wires(&self) -> u64 {
        self.wires
    }

    /// Runs `edges` clock edges; returns the outputs after them and the number of their changes.
    pub fn clock(&mut self, inputs: u64, edges: u64) -> (u64, u64) {
        let mut releases = 0;
        // SAFETY: the barrier lives until drop, `&mut self` excludes other calls, and `releases` is a live local.
        let outputs = unsafe { (self.step)(self.object.at, inputs, edges, &mut releases) };
        (outputs, releases)
    }

    pub fn flip_flops(&self) -> FlipFlops {
        self.object.store()
    }

    /// Runs one edge of a barrier with these flip-flops.
    pub fn edge(&mut self, before: FlipFlops, inputs: u64) -> FlipFlops {
        self.object.load(&before);
        self.clock(inputs, 1);
        self.flip_flops()
    }
}

/// One Verilated board of five channels.
pub(super) struct Channels {
    object: Object<ChannelFlipFlops>,
    edge: Edge,
    blank: ChannelMachine,
}

impl Channels {
    /// Builds a board of `nodes` nodes and powers it on.
    pub fn build(
        design: ChannelDesign,
        nodes: usize,
        cache: &Cache,
    ) -> Result<Channels, CosimError> {
        let blank = ChannelMachine::new(nodes, MAX_CHANNELS).map_err(CosimError::Size)?;
        let file = design.translate(nodes, MAX_CHANNELS, LEASE_BITS as usize, cache)?;
        // SAFETY: `translate` built the file, now or earlier, with the interface `channels/dv/verilated_gates.cpp`.
        let object = unsafe { Object::open(&file) }?;
        // SAFETY: the symbol has this type in `channels/dv/verilated_gates.cpp`.
        let edge = unsafe { symbol::<Edge>(&object.library, b"barrier_edge\0") }?;
        Ok(Channels {
            object,
            edge,
            blank,
        })
    }

    /// Returns the model of the board, in the state after power-on.
    pub fn blank(&self) -> ChannelMachine {
        self.blank
    }

    /// Runs one edge of the board from its present state.
    pub fn clock(&mut self, pins: &Pins) -> Outputs {
        let mut outputs = Outputs::default();
        // SAFETY: the board lives until drop, `&mut self` excludes other calls, and both structs are live locals.
        unsafe { (self.edge)(self.object.at, &ChannelPins::of(pins), &mut outputs) };
        outputs
    }

    pub fn flip_flops(&self) -> ChannelFlipFlops {
        self.object.store()
    }

    /// Runs one edge of a board with these flip-flops.
    pub fn edge(&mut self, before: &ChannelFlipFlops, pins: &Pins) -> (ChannelFlipFlops, Outputs) {
        self.object.load(before);
        let outputs = self.clock(pins);
        (self.flip_flops(), outputs)
    }
}

/// # Safety
/// The symbol must have type `T`.
unsafe fn symbol<T: Copy>(library: &Library, name: &[u8]) -> Result<T, CosimError> {
    // SAFETY: by the caller, the symbol has type `T`.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(CosimError::Load)
}
