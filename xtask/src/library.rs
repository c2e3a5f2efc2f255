//! The library that `--on` names, which `mpirun` gets from commands that start it in other folders.

use std::convert::Infallible;
use std::path;

/// A name as it is, and the path of a file from the root, since jobs are started in the folders of their programs.
///
/// What has no slash is a name, as for `mpirun`.
pub fn named(text: &str) -> Result<String, Infallible> {
    let absolute = text.contains('/').then(|| path::absolute(text));
    Ok(match absolute {
        // The text is from the command line, so nothing of it gets lost.
        Some(Ok(path)) => path.to_string_lossy().into_owned(),
        // Without a folder to start from the text stays, and mpirun says that there is no such file.
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
