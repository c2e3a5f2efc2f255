//! Helpers shared by the tests of this crate; a test reports a missing tool and does not skip silently.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod stimulus;

use hdl::cache::Cache;
use hdl::cosim::CosimError;
use hdl::tool::ToolError;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Environment variable; if it is set, a test fails where it would otherwise report a missing tool and skip.
const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// Returns the cache that the tests use.
pub fn cache() -> Cache {
    Cache::at(concat!(env!("CARGO_TARGET_TMPDIR"), "/hdl"))
}

/// Calls `work` for every item, on at most one thread per core.
///
/// Items are taken in order, so the longest should be first.
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

/// Returns the result; if a tool is missing, prints the skipped claim and the missing package and returns `None`.
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

/// Extracts tool errors for [`or_skip`]; panics on an error that no tool caused.
pub fn tool_errors<T>(result: Result<T, CosimError>) -> Result<T, ToolError> {
    result.map_err(|error| match error {
        CosimError::Tool(error) => error,
        other => panic!("{other}"),
    })
}
