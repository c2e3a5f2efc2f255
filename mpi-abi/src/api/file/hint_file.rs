//! The MPI-IO hint file: values for hints, and warnings about lines that have no effect.
//!
//! Rank 0 of the members reads the file, since its values apply to all members.
//! Rank 0 prints one warning per misspelled line, however many files are opened.
//! If each rank opens its own files, only rank 0 of the job warns.
//!
//! The standard requires that unknown hints of an info object are ignored silently.
//! A hint file contains only hints, so a misspelled name in it is probably a mistake of the user.
//! Names that only other libraries use cause no warning: libraries may share a hint file.

use mpi_base::{environment, text};
use mpi_core::comm::Comm;
use mpi_core::io::Tuning;
use mpi_core::io::hints::{ACTING, HINTS};
use std::sync::{Mutex, PoisonError};
use strsim::normalized_damerau_levenshtein;

use crate::error::Failure;
use crate::state;

/// The name of the environment variable that holds the path of ROMIO's hint file.
const ROMIOS: &str = "ROMIO_HINTS";

/// Minimum similarity (0 to 1) for a name to be suggested.
const NEAR: f64 = 0.8;

/// Hint names of the MPI standard and of ROMIO that have no effect in this library.
const ELSEWHERE: [&str; 32] = [
    "cb_block_size",
    "cb_config_list",
    "cb_ds_threshold",
    "cb_lock_ahead_read",
    "cb_lock_ahead_write",
    "chunked",
    "chunked_item",
    "chunked_size",
    "direct_read",
    "direct_write",
    "filename",
    "io_node_list",
    "nb_proc",
    "num_io_devices",
    "overstriping_ratio",
    "romio_aggregator_list",
    "romio_cb_alltoall",
    "romio_cb_ds_threshold",
    "romio_cb_fr_alignment",
    "romio_cb_fr_type",
    "romio_cb_fr_types",
    "romio_cb_pfr",
    "romio_filesystem_type",
    "romio_min_fdomain_size",
    "romio_no_indep_rw",
    "romio_synchronized_flush",
    "romio_visibility_immediate",
    "start_iodevice",
    "stripe_size",
    "stripe_width",
    "striping_factor",
    "striping_unit",
];

/// The warnings that were printed before, so that none is printed twice.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns the values of the hint file on rank 0 of a file's members. Other ranks get the defaults.
pub(super) fn tuning(members: &Comm) -> Result<Tuning, Failure> {
    let mut tuning = Tuning::default();
    if members.rank() != 0 {
        return Ok(tuning);
    }
    let engine = state::engine()?;
    // If each rank opens its own files, only rank 0 of the job warns.
    let tells = members.size() > 1 || engine.me() == 0;
    // Initialization has already rejected a value that cannot be parsed.
    let by_parameter = engine.params().get(&HINTS).unwrap_or_default();
    let (path, by) = match by_parameter.as_os_str().is_empty() {
        true => (environment::var(ROMIOS).unwrap_or_default().into(), ROMIOS),
        false => (by_parameter, "io_base_hints"),
    };
    if path.as_os_str().is_empty() {
        return Ok(tuning);
    }
    let sentences = match std::fs::read(&path) {
        Ok(bytes) => take(&mut tuning, &text::from_bytes(&bytes)),
        Err(error) => vec![format!("it cannot be read, so it sets nothing: {error}")],
    };
    for sentence in sentences.into_iter().filter(|_| tells) {
        tell(format!(
            "the file of hints {} (named by {by}): {sentence}",
            path.display()
        ));
    }
    Ok(tuning)
}

fn tell(sentence: String) {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.contains(&sentence) {
        printable::eprintln!("{}: {sentence}", state::this_rank());
        told.push(sentence);
    }
}

/// Applies the lines of a hint file, and returns a warning for each line without effect.
/// A line is a name and a value. `#` starts a comment.
fn take(tuning: &mut Tuning, text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        let Some(value) = words.next() else {
            sentences.push(format!("line {number}: \"{key}\" has no value behind it"));
            continue;
        };
        if tuning.set(key, value) || ELSEWHERE.contains(&key) || key.starts_with("romio_lustre_") {
            continue;
        }
        sentences.push(match ACTING.contains(&key) {
            true => format!("line {number}: \"{value}\" is no value of {key}"),
            false => format!("line {number}: there is no hint \"{key}\"{}", instead(key)),
        });
    }
    sentences
}

/// Suggests the most similar name of a hint with an effect.
fn instead(key: &str) -> String {
    let alike = ACTING.map(|name| (normalized_damerau_levenshtein(key, name), name));
    let alike = alike.into_iter();
    let near = alike.filter(|(likeness, _)| *likeness >= NEAR);
    let near = near.max_by(|(a, _), (b, _)| a.total_cmp(b));
    near.map_or_else(String::new, |(_, name)| {
        format!("; the nearest name is {name}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_hints_has_a_name_and_a_value_on_each_line() {
        let mut tuning = Tuning::default();
        let text = "# mine\ncb_nodes 5\n\nromio_ds_write disable # why\n";
        assert_eq!(take(&mut tuning, text), Vec::<String>::new());
        assert_eq!(tuning.cb_nodes, 5);
        assert_eq!(tuning.ds_write.to_string(), "disable");
    }

    #[test]
    fn ineffective_lines_are_reported_with_their_number() {
        let mut tuning = Tuning::default();
        let text = "cb_bufer_size 77\nodd\nind_rd_buffer_size lots\nzzz 1\ncb_nodes 2";
        let told = [
            "line 1: there is no hint \"cb_bufer_size\"; the nearest name is cb_buffer_size",
            "line 2: \"odd\" has no value behind it",
            "line 3: \"lots\" is no value of ind_rd_buffer_size",
            "line 4: there is no hint \"zzz\"",
        ];
        assert_eq!(take(&mut tuning, text), told);
        assert_eq!(tuning.cb_nodes, 2);
    }

    #[test]
    fn hints_of_other_libraries_are_not_reported() {
        let text = "striping_unit 1048576\nromio_lustre_co_ratio 2\nromio_no_indep_rw true\n";
        let mut tuning = Tuning::default();
        assert_eq!(take(&mut tuning, text), Vec::<String>::new());
        assert_eq!(tuning, Tuning::default());
    }
}
