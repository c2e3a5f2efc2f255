//! Every function of the standard, written by the build.
#![allow(unsafe_code, non_snake_case, unused_parens, unused_mut)]
// SAFETY of every unsafe block in the generated text: arguments are converted and passed on; what they must satisfy is what the
// MPI standard asks of the caller of the C function.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]

use crate::family::OnOpenMpi as F;
use compat::below::{self, unconverted};
use compat::convert::*;
use compat::inside;
use compat::{Family as _, Kind, Limit, Word};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

pub type Handle = <F as compat::Family>::Handle;
pub type Status = <F as compat::Family>::Status;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
