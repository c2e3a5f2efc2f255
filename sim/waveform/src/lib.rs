//! Waveform files: the record of a barrier board as a value change dump or an FST,
//! and the files that open a waveform in a viewer.
//!
//! * [`vcd`] and [`channel_vcd`]: the record of a board of version 1 and of version 2 as a waveform.
//! * [`gtkw`] and [`surfer`]:
//!   the files with which GTKWave and Surfer show the signals in named groups.
//! * [`wave_files`]: the waveform file that a user names,
//!   and the viewers' files in the same folder.
//! * [`dump`]: the two file formats, for any signals; [`view`]: the initial view of a viewer.
//! * [`words`]: counts with their nouns, for messages to the user: `1 node`, `60 nodes`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod channel_vcd;
pub mod dump;
mod eureka_wave;
pub mod gtkw;
pub mod surfer;
pub mod vcd;
pub mod view;
pub mod wave_files;
pub mod words;
