//! Spawn requests of PMI-1: one block of lines for each program, `mcmd=spawn` ... `endcmd`.
//!
//! In these lines a value extends to the end of the line, so it may contain spaces.
//! Nothing is escaped. This library's clients send a value with a newline as hexadecimal digits,
//! under the key `KEY.hex` ([`TAKES_HEX`](mpi_core::rte::wire::TAKES_HEX)).
//! Arguments and programs (`spawnssofar`) are numbered from 1, infos and preputs from 0.

use mpi_base::text;
use mpi_core::rte::wire::{HEX_SUFFIX, WireError, shown, unhex};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Limits of a spawn request (lines, programs, processes), which protect the launcher's memory.
const LINES_MAX: usize = 100_000;
const APPS_MAX: usize = 1024;
const PROCS_MAX: usize = 16_384;

/// One program of a spawn request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub procs: usize,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The info keys and values from the caller of `MPI_Comm_spawn`.
    pub info: Vec<(String, OsString)>,
}

/// A complete spawn request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnRequest {
    pub apps: Vec<App>,
    /// Values that are stored in the new job's key-value space before its start.
    pub preput: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A collector of the lines of one spawn request.
#[derive(Debug, Default)]
pub struct Collector {
    request: SpawnRequest,
    block: HashMap<String, Vec<u8>>,
    lines: usize,
}

impl Collector {
    /// Processes a line; after the last line returns the request.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<SpawnRequest>, WireError> {
        self.lines += 1;
        if self.lines > LINES_MAX {
            return Err(WireError::LineTooLong { len: self.lines });
        }
        match line {
            b"mcmd=spawn" => self.block.clear(),
            b"endcmd" => return self.end_of_block(),
            _ => {
                let sign = line
                    .iter()
                    .position(|&byte| byte == b'=')
                    .ok_or_else(|| WireError::NotAMessage { line: shown(line) })?;
                let (key, value) = (text::from_bytes(&line[..sign]), &line[sign + 1..]);
                let (key, value) = match key.strip_suffix(HEX_SUFFIX) {
                    None => (key, value.to_vec()),
                    Some(plain) => {
                        let bytes = unhex(value);
                        let bytes = bytes.ok_or_else(|| WireError::NotHex { key: key.clone() })?;
                        (plain.to_owned(), bytes)
                    }
                };
                self.block.insert(key, value);
            }
        }
        Ok(None)
    }

    fn end_of_block(&mut self) -> Result<Option<SpawnRequest>, WireError> {
        let program = self.need("execname")?.to_vec();
        let args = (1..=self.count("argcnt")?)
            .map(|n| self.need(&format!("arg{n}")).map(os))
            .collect::<Result<_, _>>()?;
        let info = (0..self.count("info_num")?)
            .map(|n| {
                let key = self.need(&format!("info_key_{n}"))?;
                let value = self.need(&format!("info_val_{n}"))?;
                Ok((text::from_bytes(key), os(value)))
            })
            .collect::<Result<_, WireError>>()?;
        for n in 0..self.count("preput_num")? {
            let key = self.need(&format!("preput_key_{n}"))?.to_vec();
            let value = self.need(&format!("preput_val_{n}"))?.to_vec();
            self.request.preput.push((key, value));
        }
        self.request.apps.push(App {
            procs: self.count("nprocs")?,
            program: os(&program),
            args,
            info,
        });
        let expected = self.count("totspawns")?.max(1);
        let all: usize = self.request.apps.iter().map(|app| app.procs).sum();
        if expected > APPS_MAX || all > PROCS_MAX {
            return Err(WireError::Unexpected {
                wanted: format!("spawn of at most {APPS_MAX} programs and {PROCS_MAX} processes"),
                line: format!("{expected} programs, {all} processes"),
            });
        }
        self.block.clear();
        let whole = self.request.apps.len() >= expected;
        Ok(whole.then(|| std::mem::take(&mut self.request)))
    }

    fn need(&self, key: &str) -> Result<&[u8], WireError> {
        self.block
            .get(key)
            .map(Vec::as_slice)
            .ok_or_else(|| WireError::Missing {
                key: key.into(),
                line: "mcmd=spawn".into(),
            })
    }

    /// Returns a count; a missing key counts as 0.
    fn count(&self, key: &str) -> Result<usize, WireError> {
        let Some(value) = self.block.get(key) else {
            return Ok(0);
        };
        let count = std::str::from_utf8(value)
            .ok()
            .and_then(|value| value.trim().parse::<usize>().ok());
        count
            .filter(|&count| count <= LINES_MAX)
            .ok_or_else(|| WireError::NotANumber {
                key: key.into(),
                value: shown(value),
            })
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}
