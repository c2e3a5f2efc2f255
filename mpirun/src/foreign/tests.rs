//! Tests with programs that are linked to empty libraries with the names of MPI libraries.

use super::*;
use std::process::Command;

/// Builds a program that is linked to an empty library of this name, with a run path to it.
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

/// Creates a folder of empty stand-ins.
fn stand_ins() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for family in &FAMILIES {
        let own = folder.path().join(family.folder);
        std::fs::create_dir(&own).unwrap();
        for library in family.libraries.iter().chain(&["libmpi.so"]) {
            std::fs::write(own.join(library), "").unwrap();
        }
    }
    std::fs::write(folder.path().join(SEARCHER), "").unwrap();
    folder
}

const SEARCHER: &str = "libportcullis-search.so";

/// Returns an installation that has only stand-ins.
fn only(stand_ins: &tempfile::TempDir) -> Libraries {
    Libraries {
        stand_ins: Some(stand_ins.path().into()),
        ..Libraries::default()
    }
}

fn env(pairs: &[(&str, &str)]) -> Env {
    let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
    pairs.iter().map(pair).collect()
}

#[test]
fn a_program_of_open_mpi_without_a_stand_in_is_reported_with_its_library() {
    let folder = tempfile::tempdir().unwrap();
    let program = linked_to(folder.path(), "libmpi.so.40", NEW);
    let Served::Warning(said) = serve(&program, 4, &Libraries::default(), &mut Env::new()) else {
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
        let served = serve(&program, 4, &Libraries::default(), &mut Env::new());
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
            let served = serve(&program, 2, &only(&stand_ins), &mut env);
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
    serve(&program, 2, &only(&stand_ins), &mut env);
    let file = stand_ins.path().join("openmpi/libmpi.so.40");
    assert_eq!(get(&env, PRELOAD), Some(file.as_os_str()));
}

#[test]
fn programs_that_name_no_mpi_library_find_the_stand_ins_before_other_libraries() {
    let stand_ins = stand_ins();
    let own = tempfile::tempdir().unwrap();
    let libraries = Libraries {
        alone: Some(own.path().into()),
        ..only(&stand_ins)
    };
    for program in ["/bin/sh", "/dev/null", "/proc/version", "/", "/nowhere"] {
        let mut env = env(&[(SEARCH, "/mine")]);
        let served = serve(Path::new(program), 2, &libraries, &mut env);
        assert_eq!(served, Served::Nothing, "{program}");
        let search = get(&env, SEARCH).unwrap();
        let mut folders: Vec<PathBuf> = std::env::split_paths(search).collect();
        // The order of the stand-ins' two folders depends on the system's `libmpi.so`.
        folders[..2].sort_unstable();
        let both = ["mpich", "openmpi"].map(|name| stand_ins.path().join(name));
        assert_eq!(folders[..2], both, "{program}");
        assert_eq!(
            folders[2..],
            [PathBuf::from("/mine"), own.path().into()],
            "{program}"
        );
    }
}

#[test]
fn searches_of_interpreters_for_names_of_stand_ins_are_led_to_them() {
    let stand_ins = stand_ins();
    let folder = tempfile::tempdir().unwrap();
    let narrow = folder.path().join("narrow");
    std::fs::write(&narrow, b"\x7fELF\x01\x01\x01").unwrap();
    let python = folder.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\n").unwrap();
    let searcher = stand_ins.path().join(SEARCHER);
    let mut wide = Env::new();
    // A nested mpirun finds the auditing library already in `LD_AUDIT`.
    for _ in 0..2 {
        serve(&python, 2, &only(&stand_ins), &mut wide);
        assert_eq!(get(&wide, "LD_AUDIT"), Some(searcher.as_os_str()));
    }
    let files = get(&wide, "PORTCULLIS_STAND_INS").unwrap();
    let mut files: Vec<String> = std::env::split_paths(files)
        .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort_unstable();
    assert_eq!(
        files,
        [
            "libmpi.so",
            "libmpi.so.12",
            "libmpi.so.40",
            "libmpich.so.12"
        ]
    );
    let valgrind = Path::new("/usr/bin/valgrind");
    for program in [narrow.as_path(), valgrind, Path::new("/bin/sh")] {
        let mut others = Env::new();
        serve(program, 2, &only(&stand_ins), &mut others);
        assert_eq!(get(&others, "LD_AUDIT"), None, "{}", program.display());
    }
}

#[test]
fn the_name_without_a_version_leads_to_the_family_whose_library_has_it() {
    let stand_ins = stand_ins();
    for (family, library) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12")] {
        let folder = tempfile::tempdir().unwrap();
        linked_to(folder.path(), library, NEW);
        std::fs::rename(folder.path().join(library), folder.path().join("libmpi.so")).unwrap();
        let mut env = env(&[(SEARCH, folder.path().to_str().unwrap())]);
        let python = folder.path().join("python3");
        std::fs::write(&python, "#!/bin/sh\n").unwrap();
        serve(&python, 2, &only(&stand_ins), &mut env);
        let expected = stand_ins.path().join(family);
        let first = std::env::split_paths(get(&env, SEARCH).unwrap()).next();
        assert_eq!(first, Some(expected.clone()));
        let files = get(&env, "PORTCULLIS_STAND_INS").unwrap();
        let plain = std::env::split_paths(files).find(|file| file.ends_with("libmpi.so"));
        assert_eq!(plain, Some(expected.join("libmpi.so")));
    }
}

#[test]
fn a_program_of_the_standard_gets_this_installations_library_where_it_would_find_none() {
    let own = tempfile::tempdir().unwrap();
    let libraries = Libraries {
        own: Some(own.path().into()),
        ..Libraries::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let program = linked_to(folder.path(), "libmpi_abi.so.1", NEW);
    let mut found = Env::new();
    serve(&program, 2, &libraries, &mut found);
    assert_eq!(get(&found, SEARCH), None);
    std::fs::remove_file(folder.path().join("libmpi_abi.so.1")).unwrap();
    for (before, after) in [("", ""), ("/mine", "/mine:")] {
        let mut lost = env(&[(SEARCH, before)]);
        serve(&program, 2, &libraries, &mut lost);
        let expected = format!("{after}{}", own.path().display());
        assert_eq!(get(&lost, SEARCH), Some(OsStr::new(&expected)));
    }
}

#[test]
fn programs_of_the_standard_abi_and_those_that_are_to_be_left_alone_are() {
    let stand_ins = stand_ins();
    let folder = tempfile::tempdir().unwrap();
    let ours = linked_to(folder.path(), "libmpi_abi.so.1", NEW);
    let mut untouched = Env::new();
    let served = serve(&ours, 2, &only(&stand_ins), &mut untouched);
    assert_eq!((served, untouched.len()), (Served::Nothing, 0));
    let folder = tempfile::tempdir().unwrap();
    let of_open_mpi = linked_to(folder.path(), "libmpi.so.40", NEW);
    for (program, warned) in [(of_open_mpi.as_path(), true), (Path::new("/bin/sh"), false)] {
        let mut left = env(&[(COMPAT, "no")]);
        let served = serve(program, 2, &only(&stand_ins), &mut left);
        assert_eq!(matches!(served, Served::Warning(_)), warned);
        assert_eq!(get(&left, SEARCH), None);
    }
}
