//! Build script: generates the conversions of Open MPI's ABI and all exported functions.

use compat_generate::direction::Below;
use compat_generate::families::{self, Which};
use compat_generate::{by_hand, entries, mock, root, tables, write};

fn main() -> Result<(), String> {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.40");
    let root = root(2)?;
    let tables = tables::read(&root)?;
    write(
        "words.rs",
        &families::word_functions(&tables, Which::OpenMpi, Below::Standard),
    )?;
    write("handles.rs", &families::openmpi_handles(&tables))?;
    let (text, served) =
        entries::write(&tables, Below::Standard, &by_hand(&root, Below::Standard)?)?;
    write("entries.rs", &text)?;
    write("served.rs", &served.write())?;
    write(
        "mock.rs",
        &mock::write(&tables, Which::OpenMpi, Below::Standard, &served)?,
    )
}
