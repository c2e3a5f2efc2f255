//! The barrier simulator: live board, virtual time, faults, waveforms; the hwbarr command
