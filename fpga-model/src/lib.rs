//! The cycle-accurate model of the toggle barrier
