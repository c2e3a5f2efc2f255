//! Parser of the argument `--on`, which names an MPI library.
//!
//! It makes relative paths absolute, because `mpirun` is started in another folder.

use std::convert::Infallible;
use std::path;

/// Returns the name of a library unchanged, and a path as an absolute path,
/// because jobs start in the folders of their programs.
///
/// As in `mpirun`, an argument without a slash is a name.
pub fn named(text: &str) -> Result<String, Infallible> {
    let absolute = text.contains('/').then(|| path::absolute(text));
    Ok(match absolute {
        // The argument is UTF-8, so the conversion is lossless.
        Some(Ok(path)) => path.to_string_lossy().into_owned(),
        // Without a current folder the path stays relative; mpirun then reports that the file is missing.
        Some(Err(_)) | None => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_from_any_folder_and_a_name_stays() {
        assert_eq!(named("openmpi"), Ok("openmpi".to_owned()));
        assert_eq!(
            named("/lib/libmpi.so.12"),
            Ok("/lib/libmpi.so.12".to_owned())
        );
        let here = std::env::current_dir().unwrap();
        let expected = here.join("lib/libmpi.so.40").to_string_lossy().into_owned();
        assert_eq!(named("lib/libmpi.so.40"), Ok(expected));
    }
}
