//! The target arguments of an access, as the program passes them.

use crate::datatype::Datatype;

/// The target arguments of an access.
#[derive(Clone, Copy)]
pub struct TargetArgs<'a> {
    pub rank: i32,
    pub disp: i64,
    pub count: i64,
    pub datatype: &'a Datatype,
}
