//! What the tests of this crate share: a tool that is missing is named, not passed over in silence.

#![allow(dead_code)]

pub mod stimulus;

use hdl::tool::ToolError;

/// Set by `cargo xtask test` when everything was installed: then nothing may be skipped.
const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// The result, or `None` after a line that says what was not checked and which package would allow it.
pub fn or_skip<T>(claim: &str, result: Result<T, ToolError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(missing @ ToolError::Missing(_)) if std::env::var_os(NO_SKIPS).is_none() => {
            eprintln!("SKIPPED: {claim}: {missing}");
            None
        }
        Err(error) => panic!("{claim}: {error}"),
    }
}
