//! What the tests of this crate share: a tool that is missing is named, not passed over in silence.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod stimulus;

use hdl::cache::Cache;
use hdl::cosim::CosimError;
use hdl::tool::ToolError;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// If this is set in the environment, tests fail that would say what they need and be skipped.
const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// Where the tests keep what the tools have made.
pub fn cache() -> Cache {
    Cache::at(concat!(env!("CARGO_TARGET_TMPDIR"), "/hdl"))
}

/// Does something with each of many, two or as many as there are cores at a time.
///
/// They are taken in order, so the longest should come first.
pub fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

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

/// For [`or_skip`]: what is no tool's fault is ours.
pub fn tool_errors<T>(result: Result<T, CosimError>) -> Result<T, ToolError> {
    result.map_err(|error| match error {
        CosimError::Tool(error) => error,
        other => panic!("{other}"),
    })
}
