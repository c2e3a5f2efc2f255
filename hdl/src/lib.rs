//! The HDL sources of the barrier, their test benches and co-simulation
