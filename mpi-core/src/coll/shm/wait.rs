//! How a rank waits at a gate.
//!
//! With a core for each rank the others are about to come: the gate is watched alone for about a microsecond.
//! With shared cores they cannot come before this rank makes room: it yields at once, and looks again when it is switched in.
//! A rank that has watched in vain yields too: strangers may have taken the core of somebody it waits for, and on a free core a yield costs little.
//! Then, in both cases, it waits as everywhere, progressing and at last asleep, so that messages move and a computing rank gets the core.

use crate::engine::Engine;

/// Looks at the gate, and nothing else, before the engine is asked to progress.
const LOOKS: u32 = 256;

/// The first of these looks follow one another at once: a pause lasts as long as a cache line takes from core to core.
const EAGER: u32 = 64;

/// Switches to others in a row before the engine waits.
const YIELDS: u32 = 8;

#[inline]
pub fn until(engine: &Engine, done: &mut dyn FnMut() -> bool) {
    if done() {
        return;
    }
    if !engine.is_crowded() {
        for look in 0..LOOKS {
            if done() {
                return;
            }
            if look >= EAGER {
                std::hint::spin_loop();
            }
        }
    }
    for _ in 0..YIELDS {
        std::thread::yield_now();
        if done() {
            return;
        }
        engine.progress();
    }
    engine.wait_until(done);
}
