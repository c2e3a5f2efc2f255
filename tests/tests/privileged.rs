//! Tests that a program with more rights than its user loads none of this user's code and settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tests::{Outcome, compile, installation, needs};
use xtask::process::{self, ProcessError};

/// The option of setpriv that selects the user `nobody`, the unprivileged account of every Debian system.
const USER: &str = "--reuid=65534";

/// A program in a separate folder with a copy of the library: the loader ignores
/// LD_LIBRARY_PATH for a set-user-ID program.
struct Installed {
    folder: TempDir,
    program: PathBuf,
}

impl Installed {
    fn new(name: &str) -> Installed {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let (program, library) = (folder.path().join("program"), folder.path().join("lib"));
        bounded::set_folder_mode(folder.path(), 0o755).unwrap();
        fs::create_dir(&library).unwrap();
        let soname = "libmpi_abi.so.1";
        let built = installation().join("lib").join(soname);
        fs::copy(built, library.join(soname)).unwrap();
        let source = xtask::workspace::programs().join(format!("{name}.c"));
        compile(name);
        let mut mpicc = Command::new(installation().join("bin/mpicc"));
        mpicc.arg(source).arg("-o").arg(&program);
        mpicc.arg(format!("-Wl,-rpath,{}", library.display()));
        process::output(&mut mpicc, Duration::from_secs(60)).unwrap();
        Installed { folder, program }
    }

    /// Returns a command that starts the program with these mode bits as an ordinary user.
    fn command(&self, mode: u32) -> Command {
        fs::set_permissions(&self.program, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args([USER, "--clear-groups"]).arg(&self.program);
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// File mode of an ordinary program, which every user may execute.
const ORDINARY: u32 = 0o755;
/// File mode of a set-user-ID program.
const RAISED: u32 = 0o4755;

fn may_make_such_programs() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    needs(is_root, "root, to make a program with raised rights")
}

fn run(command: &mut Command) -> Result<Outcome, ProcessError> {
    process::output(command, Duration::from_secs(30))
}

#[test]
fn a_set_user_id_program_ignores_its_users_settings() {
    if !may_make_such_programs() {
        return;
    }
    let hello = Installed::new("hello");
    let home = hello.folder.path();
    let start = |mode: u32| {
        let mut command = hello.command(mode);
        // The value is invalid: any program that reads the parameter ends with an error.
        command.env("PORTCULLIS_MCA_mpi_base_explain", "neither");
        run(command.env("HOME", home))
    };
    let refused = start(ORDINARY).unwrap_err().to_string();
    assert!(refused.contains("mpi_base_explain"), "{refused}");
    let said = start(RAISED).unwrap();
    assert!(said.stdout.contains("all claims of hello hold on 1 ranks"));

    // Here the invalid value is in a file in the user's home.
    fs::create_dir(home.join(".portcullis")).unwrap();
    fs::write(
        home.join(".portcullis/mca-params.conf"),
        "mpi_base_explain = perhaps\n",
    )
    .unwrap();
    start(RAISED).unwrap();
}

/// Compiles the linear barrier as a plugin that prints `place` when it is opened.
fn make_plugin(folder: &Path, place: &str) {
    fs::create_dir_all(folder).unwrap();
    let source = xtask::workspace::root().join("mpi-core/coll/src/plugin/testdata/linear.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"]);
    cc.arg(xtask::workspace::root().join("mpi-core/include"));
    cc.arg(format!("-DAT_OPEN=puts(\"opened from {place}\")"));
    cc.arg("-o").arg(folder.join("coll_linear.so")).arg(source);
    process::output(&mut cc, Duration::from_secs(60)).unwrap();
}

/// The reason why a program has more rights than its user.
#[derive(Clone, Copy)]
enum Raised {
    SetUserId,
    /// File capabilities, which do not change the user ID.
    Capabilities,
}

/// The program must load no plugin of its user, even if a parameter names the plugin's folder,
/// and the installation's plugin only if the file belongs to root.
fn opens_plugins_of_roots_installation_only(raised: Raised) {
    let hello = Installed::new("hello");
    let (named, home) = (hello.path("named"), hello.path("home"));
    make_plugin(&named, "a named folder");
    make_plugin(&home.join(".portcullis/components"), "the user's folder");
    let shared = hello.path("lib/portcullis");
    let start = |mode: u32, path: Option<&Path>| {
        let mut command = hello.command(mode);
        command.env("HOME", &home);
        if let Some(path) = path {
            command.env("PORTCULLIS_MCA_mca_component_path", path);
        }
        let said = run(&mut command).unwrap();
        assert!(said.stdout.contains("all claims of hello hold on 1 ranks"));
        let lines = said.stdout.lines();
        let opened = lines.filter_map(|line| line.strip_prefix("opened from "));
        opened.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(start(ORDINARY, Some(&named)), ["a named folder"]);
    assert_eq!(start(ORDINARY, None), ["the user's folder"]);
    let mode = match raised {
        Raised::SetUserId => RAISED,
        Raised::Capabilities => {
            let mut setcap = Command::new("setcap");
            setcap.arg("cap_net_raw+ep").arg(&hello.program);
            let set = run(&mut setcap);
            if !needs(
                set.is_ok(),
                "setcap, and a file system in /var/tmp that keeps capabilities of files",
            ) {
                return;
            }
            ORDINARY
        }
    };
    assert!(start(mode, Some(&named)).is_empty());
    assert!(start(mode, None).is_empty());

    make_plugin(&shared, "the installation");
    assert_eq!(start(mode, Some(&named)), ["the installation"]);
    // A plugin file of another user in the installation would run with the program's rights.
    let file = shared.join("coll_linear.so");
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    assert!(start(mode, None).is_empty());
}

#[test]
fn a_set_user_id_program_opens_plugins_of_roots_installation_only() {
    if may_make_such_programs() {
        opens_plugins_of_roots_installation_only(Raised::SetUserId);
    }
}

#[test]
fn a_program_with_file_capabilities_opens_plugins_of_roots_installation_only() {
    if may_make_such_programs() {
        opens_plugins_of_roots_installation_only(Raised::Capabilities);
    }
}

/// A set-user-ID program must not read hint files (error messages quote their lines),
/// create folders for port names, or start mpirun.
#[test]
fn a_set_user_id_program_reads_makes_and_starts_nothing_that_its_users_variables_name() {
    if !may_make_such_programs() {
        return;
    }
    let raised = Installed::new("raised");
    let open = |name: &str| {
        let folder = raised.path(name);
        fs::create_dir(&folder).unwrap();
        bounded::set_folder_mode(&folder, 0o777).unwrap();
        folder
    };
    let (runtime, data) = (open("runtime"), open("data"));
    let names = runtime.join("portcullis-names");
    let secret = raised.path("secret");
    fs::write(&secret, "swordfish\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let start = |mode: u32| {
        let mut command = raised.command(mode);
        command.arg(data.join("file"));
        command.env("ROMIO_HINTS", &secret);
        run(command.env("XDG_RUNTIME_DIR", &runtime)).unwrap()
    };

    let said = start(RAISED);
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(!all.contains("swordfish"), "{all}");
    assert!(!all.contains("secret"), "{all}");
    assert!(!names.exists());
    assert!(said.stdout.contains("not spawned: "), "{all}");
    assert!(all.contains("has more rights than its user"), "{all}");

    // An ordinary program does use these variables, with the rights of its user.
    fs::remove_file(data.join("file")).unwrap();
    let said = start(ORDINARY);
    assert!(said.stderr.contains("secret"), "{}", said.stderr);
    assert!(said.stderr.contains("cannot be read"), "{}", said.stderr);
    assert!(names.exists());
}
