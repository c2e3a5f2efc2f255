//! Collection of the Rust statements of a procedure's body, while the body is generated.

/// The statements of a body before and after its C call.
#[derive(Default)]
pub struct Statements {
    pub before: String,
    pub passed: Vec<String>,
    pub after: String,
    /// Arguments that a section replaces: name and expression.
    pub replaced: Vec<(String, String)>,
    /// Buffers whose copies exist until the request is complete.
    pub kept: Vec<String>,
}
