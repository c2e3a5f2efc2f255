//! The statements of a body in the making.

/// The statements of a body around its C call.
#[derive(Default)]
pub struct Statements {
    pub before: String,
    pub passed: Vec<String>,
    pub after: String,
    /// Arguments that a section of an array replaces: (name, expression).
    pub replaced: Vec<(String, String)>,
    /// Buffers whose copies live until the request is complete.
    pub kept: Vec<String>,
}
