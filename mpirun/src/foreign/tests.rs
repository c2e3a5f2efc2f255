//! Programs linked to empty libraries of the names that count.

use super::*;
use std::process::Command;

/// A program that is linked to an empty library of this name in a folder of its run path.
fn linked_to(folder: &Path, library: &str, tags: &str) -> PathBuf {
    let gcc = |arguments: &[&str]| {
        let mut gcc = Command::new("gcc");
        let done = gcc
            .current_dir(folder)
            .args(["-x", "c", "/dev/null"])
            .args(arguments);
        assert!(done.status().unwrap().success());
    };
    std::fs::write(folder.join("main.c"), "int main(void) { return 0; }").unwrap();
    gcc(&["-shared", "-o", library, &format!("-Wl,-soname,{library}")]);
    let link = format!("-l:{library}");
    gcc(&[
        "main.c",
        "-o",
        "program",
        "-L.",
        "-Wl,--no-as-needed",
        &link,
        "-Wl,-rpath,$ORIGIN",
        tags,
    ]);
    folder.join("program")
}

const NEW: &str = "-Wl,--enable-new-dtags";
const OLD: &str = "-Wl,--disable-new-dtags";

/// A folder of stand-ins, all empty.
fn stand_ins() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for family in &FAMILIES {
        let own = folder.path().join(family.folder);
        std::fs::create_dir(&own).unwrap();
        for library in family.libraries {
            std::fs::write(own.join(library), "").unwrap();
        }
    }
    folder
}

fn env(pairs: &[(&str, &str)]) -> Env {
    let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
    pairs.iter().map(pair).collect()
}

#[test]
fn a_program_of_open_mpi_without_a_stand_in_is_told_with_its_library_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = linked_to(folder.path(), "libmpi.so.40", NEW);
    let Served::Warning(said) = serve(&program, 4, None, &mut Env::new()) else {
        panic!("no warning");
    };
    let library = folder.path().join("libmpi.so.40");
    let expected = format!(
        "is linked to {} (by its run path) of Open MPI",
        library.display()
    );
    assert!(
        said.contains(&expected) && said.contains("each of its 4 ranks"),
        "{said}"
    );
    for library in ["libmpi.so.12", "libmpi_abi.so.1", "libm.so.6x"] {
        let folder = tempfile::tempdir().unwrap();
        let program = linked_to(folder.path(), library, NEW);
        let served = serve(&program, 4, None, &mut Env::new());
        assert_eq!(served, Served::Nothing, "{library}");
    }
}

#[test]
fn a_program_of_another_library_gets_the_stand_in_first() {
    let stand_ins = stand_ins();
    for family in &FAMILIES {
        for library in family.libraries {
            let folder = tempfile::tempdir().unwrap();
            let program = linked_to(folder.path(), library, NEW);
            let mut env = env(&[(SEARCH, "/mine")]);
            let served = serve(&program, 2, Some(stand_ins.path()), &mut env);
            let own = stand_ins.path().join(family.folder);
            let Served::StandIn(said) = served else {
                panic!("{library}: {served:?}");
            };
            let file = own.join(library).display().to_string();
            assert!(said.contains(&file) && said.contains(family.name), "{said}");
            let search = format!("{}:/mine", own.display());
            assert_eq!(get(&env, SEARCH), Some(OsStr::new(&search)));
            assert_eq!(get(&env, PRELOAD), None);
        }
    }
}

#[test]
fn a_run_path_that_is_stronger_than_the_search_path_is_met_by_preloading() {
    let stand_ins = stand_ins();
    let folder = tempfile::tempdir().unwrap();
    let program = linked_to(folder.path(), "libmpi.so.40", OLD);
    let mut env = Env::new();
    serve(&program, 2, Some(stand_ins.path()), &mut env);
    let file = stand_ins.path().join("openmpi/libmpi.so.40");
    assert_eq!(get(&env, PRELOAD), Some(file.as_os_str()));
}

#[test]
fn programs_that_name_no_mpi_library_find_both_after_those_of_the_user() {
    let stand_ins = stand_ins();
    for program in ["/bin/sh", "/dev/null", "/proc/version", "/", "/nowhere"] {
        let mut env = env(&[(SEARCH, "/mine")]);
        let served = serve(Path::new(program), 2, Some(stand_ins.path()), &mut env);
        assert_eq!(served, Served::Nothing, "{program}");
        let folders = ["mpich", "openmpi"].map(|name| stand_ins.path().join(name));
        let search = format!("/mine:{}:{}", folders[0].display(), folders[1].display());
        assert_eq!(get(&env, SEARCH), Some(OsStr::new(&search)), "{program}");
    }
}

#[test]
fn programs_of_the_standard_abi_and_those_that_are_to_be_left_alone_are() {
    let stand_ins = stand_ins();
    let folder = tempfile::tempdir().unwrap();
    let ours = linked_to(folder.path(), "libmpi_abi.so.1", NEW);
    let mut untouched = Env::new();
    let served = serve(&ours, 2, Some(stand_ins.path()), &mut untouched);
    assert_eq!((served, untouched.len()), (Served::Nothing, 0));
    let folder = tempfile::tempdir().unwrap();
    let theirs = linked_to(folder.path(), "libmpi.so.40", NEW);
    for (program, warned) in [(theirs.as_path(), true), (Path::new("/bin/sh"), false)] {
        let mut left = env(&[(COMPAT, "no")]);
        let served = serve(program, 2, Some(stand_ins.path()), &mut left);
        assert_eq!(matches!(served, Served::Warning(_)), warned);
        assert_eq!(get(&left, SEARCH), None);
    }
}
