//! Build script: generates the backend's table of function pointers, the fallbacks, and `Word`:
//! the kinds of integer arguments with named constants (keyval, error, rank, tag, ...).

use compat_generate::{backend, fallbacks, families, root, tables, write, written_in};

fn main() -> Result<(), String> {
    let tables = tables::read(&root(1)?)?;
    write("words.rs", &families::words(&tables))?;
    write("backend.rs", &backend::write(&tables))?;
    let by_hand = written_in(&root(1)?, "foreign_below/fallbacks")?;
    write("fallbacks.rs", &fallbacks::write(&tables, &by_hand)?)
}
