//! Collective operations as values, which [`comm::Collectives`](crate::comm::Collectives) carry out.

mod call;
mod fast_call;
mod signature;

pub use crate::request::Running;
pub use call::{Call, CallId, CallSet};
pub use fast_call::FastCall;
pub use signature::{CallSignature, Form, function};
