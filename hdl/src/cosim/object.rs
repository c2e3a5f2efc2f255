//! The Verilated barriers of shared objects, reached by their symbols, see `toggle/dv/verilated_pins.cpp` and `channels/dv/verilated_gates.cpp`.
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

/// What both kinds are: something that was made, with functions that load and store its flip-flops of form `T`.
struct Object<T> {
    at: *mut c_void,
    free: Free,
    load: Load<T>,
    store: Store<T>,
    /// Keeps the code mapped that the pointers above lead to; dropped last.
    library: Library,
}

// SAFETY: what it leads to is one C++ object without thread affinity, and every use of it needs `&mut` or only reads.
unsafe impl<T> Send for Object<T> {}

impl<T: Copy + Default> Object<T> {
    /// # Safety
    /// The file is what one of our recipes has made, of a harness whose registers are a `T`.
    unsafe fn open(file: &Path) -> Result<Object<T>, CosimError> {
        // SAFETY: loading it runs the initialisers of the C++ library only.
        let library = unsafe { Library::new(file) }.map_err(CosimError::Load)?;
        // SAFETY: the symbols have these types in both harnesses; the caller vouches for `T`.
        let (new, free, load, store) = unsafe {
            (
                symbol::<New>(&library, b"barrier_new\0")?,
                symbol::<Free>(&library, b"barrier_free\0")?,
                symbol::<Load<T>>(&library, b"barrier_load\0")?,
                symbol::<Store<T>>(&library, b"barrier_store\0")?,
            )
        };
        // SAFETY: it takes nothing and answers null or a barrier of ours.
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
        // SAFETY: the object lives until drop, we are the only ones inside, and it reads one struct of ours.
        unsafe { (self.load)(self.at, from) };
    }

    fn store(&self) -> T {
        let mut to = T::default();
        // SAFETY: the object lives until drop, and it writes one struct of ours.
        unsafe { (self.store)(self.at, &mut to) };
        to
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: made by `barrier_new`, freed once, and no code is left that could use it.
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
    /// Translates a barrier of so many nodes and powers it on.
    pub fn build(design: Design, nodes: usize, cache: &Cache) -> Result<Barrier, CosimError> {
        let blank = ToggleMachine::new(nodes).map_err(CosimError::Nodes)?;
        let file = design.translate(nodes, cache)?;
        // SAFETY: the recipe has just made it or found it in its cache, of `toggle/dv/verilated_pins.cpp`.
        let object = unsafe { Object::open(&file) }?;
        // SAFETY: the symbol has this type there.
        let step = unsafe { symbol::<Step>(&object.library, b"barrier_step\0") }?;
        Ok(Barrier {
            object,
            step,
            wires: blank.wires(),
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
        let outputs = unsafe { (self.step)(self.object.at, inputs, edges, &mut releases) };
        (outputs, releases)
    }

    pub fn flip_flops(&self) -> FlipFlops {
        self.object.store()
    }

    /// One edge of a barrier with these flip-flops.
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
    /// Translates a board of so many nodes and powers it on.
    pub fn build(
        design: ChannelDesign,
        nodes: usize,
        cache: &Cache,
    ) -> Result<Channels, CosimError> {
        let blank = ChannelMachine::new(nodes, MAX_CHANNELS).map_err(CosimError::Size)?;
        let file = design.translate(nodes, MAX_CHANNELS, LEASE_BITS as usize, cache)?;
        // SAFETY: the recipe has just made it or found it in its cache, of `channels/dv/verilated_gates.cpp`.
        let object = unsafe { Object::open(&file) }?;
        // SAFETY: the symbol has this type there.
        let edge = unsafe { symbol::<Edge>(&object.library, b"barrier_edge\0") }?;
        Ok(Channels {
            object,
            edge,
            blank,
        })
    }

    /// The board after power-on, as the model has it.
    pub fn blank(&self) -> ChannelMachine {
        self.blank
    }

    /// One edge of the board as it is.
    pub fn clock(&mut self, pins: &Pins) -> Outputs {
        let mut outputs = Outputs::default();
        // SAFETY: the board lives until drop, we are the only ones inside, and both structs are ours.
        unsafe { (self.edge)(self.object.at, &ChannelPins::of(pins), &mut outputs) };
        outputs
    }

    pub fn flip_flops(&self) -> ChannelFlipFlops {
        self.object.store()
    }

    /// One edge of a board with these flip-flops.
    pub fn edge(&mut self, before: &ChannelFlipFlops, pins: &Pins) -> (ChannelFlipFlops, Outputs) {
        self.object.load(before);
        let outputs = self.clock(pins);
        (self.flip_flops(), outputs)
    }
}

/// # Safety
/// The symbol has this type.
unsafe fn symbol<T: Copy>(library: &Library, name: &[u8]) -> Result<T, CosimError> {
    // SAFETY: the caller vouches for the type.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(CosimError::Load)
}
