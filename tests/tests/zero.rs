//! Tests that jobs need no configuration: jobs in restricted environments.
//!
//! Each test creates an environment ([`Surrounding`]) with commands of util-linux in new namespaces,
//! checks that the environment is as intended, and runs the same programs in it: a ring, collectives, large messages.
//! If the machine does not permit the environment, the test is skipped and prints what is missing;
//! under `cargo xtask test` the test fails instead.
//! `docs/zero-configuration.md` lists the environments.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tests::{Job, compile, installation, needs, shipped_installation};
use xtask::{process, workspace};

/// The user ID of `nobody`, the unprivileged account of every Debian system.
const USER: &str = "65534";

/// An environment for jobs: the commands that create it, and a check that it is in effect.
#[derive(Default)]
struct Surrounding {
    /// Prefix of the script's shell, such as `unshare` with its options.
    before: Vec<String>,
    /// Shell commands that create the environment; each must succeed.
    setup: String,
    /// A command that succeeds only if the environment is in effect; it is run in the same way as the job.
    proof: &'static str,
    /// Prefix of the command `mpirun` in the environment; may be empty.
    then: Vec<String>,
    /// What the machine lacks if the environment cannot be created; the test prints it.
    lacks: &'static str,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A folder that every user can read, with copies of the launcher, the library and the programs.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn make(programs: &[&str]) -> Copy {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for sub in ["", "bin", "lib"] {
            fs::create_dir_all(path.join(sub)).unwrap();
            bounded::set_folder_mode(&path.join(sub), 0o755).unwrap();
        }
        for file in ["bin/mpirun", "lib/libmpi_abi.so.1"] {
            bounded::copy_program(&installation().join(file), &path.join(file)).unwrap();
        }
        for program in programs {
            let copy = path.join("bin").join(program);
            bounded::copy_program(&compile(program), &copy).unwrap();
        }
        Copy { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

const PROGRAMS: [(&str, &[&str]); 3] = [
    ("ring", &[]),
    ("collectives", &["10"]),
    ("transfer", &["0.1"]),
];

impl Surrounding {
    /// Writes the script that creates the environment and then executes its arguments.
    fn script(&self, folder: &Path) -> PathBuf {
        let path = folder.join("surrounded");
        let before = self.before.join(" ");
        let then = self.then.join(" ");
        let text = format!(
            "#!/bin/sh\nexec {before} /bin/sh -c 'set -e\n{}\nexec {then} \"$@\"' sh \"$@\"\n",
            self.setup
        );
        bounded::write_program(&path, &text).unwrap();
        path
    }

    fn can_be_made(&self, script: &Path) -> bool {
        let mut command = Command::new(script);
        command.args(["/bin/sh", "-c", self.proof]);
        let made = process::output(&mut command, Duration::from_secs(20));
        if let Err(error) = &made {
            eprintln!("{error}");
        }
        needs(made.is_ok(), self.lacks)
    }

    /// Runs all programs in the environment, with these options for `mpirun`.
    fn holds(&self, options: &[&str]) {
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        let copy = Copy::make(&names);
        let tools = tempfile::tempdir().unwrap();
        bounded::set_folder_mode(tools.path(), 0o755).unwrap();
        let script = self.script(tools.path());
        if !self.can_be_made(&script) {
            return;
        }
        let launcher = tools.path().join("mpirun-inside");
        let mpirun = copy.path().join("bin/mpirun");
        let text = format!(
            "#!/bin/sh\nexec {} {} \"$@\"\n",
            script.display(),
            mpirun.display()
        );
        bounded::write_program(&launcher, &text).unwrap();
        for (program, arguments) in PROGRAMS {
            let job = Job::command(&copy.path().join("bin").join(program))
                .under(&launcher)
                .ranks(4)
                .with(options)
                .on_library_of(copy.path());
            arguments
                .iter()
                .fold(job, |job, word| job.arg(word))
                .holds();
        }
    }
}

/// Returns an environment with a mount namespace in which root may mount.
fn mounts(setup: &str, proof: &'static str) -> Surrounding {
    Surrounding {
        before: words("unshare --mount --propagation private"),
        setup: setup.to_owned(),
        proof,
        lacks: "root to mount in a namespace of its own",
        ..Surrounding::default()
    }
}

fn contained(profile: &str, proof: &'static str) -> Surrounding {
    Surrounding {
        then: vec![env!("CARGO_BIN_EXE_contained").into(), profile.into()],
        proof,
        lacks: "a kernel with seccomp filters",
        ..Surrounding::default()
    }
}

#[test]
fn an_ordinary_user_needs_no_rights() {
    let user = Surrounding {
        then: words(&format!(
            "setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all --no-new-privs"
        )),
        proof: "test $(id -u) = 65534 && test ! -w /",
        lacks: "root to become an ordinary user",
        ..Surrounding::default()
    };
    user.holds(&[]);
}

#[test]
fn a_user_of_a_namespace_of_ones_own_is_as_good_as_root() {
    let user = Surrounding {
        before: words("unshare --user --map-root-user --mount --pid --fork --mount-proc"),
        proof: "test $(id -u) = 0",
        lacks: "a kernel that lets users have namespaces",
        ..Surrounding::default()
    };
    user.holds(&[]);
}

#[test]
fn sixty_four_megabytes_of_dev_shm_are_enough_and_none_are_too() {
    let small = "mount -t tmpfs -o size=64m tmpfs /dev/shm";
    let none = "mount -t tmpfs -o ro,size=4k,mode=000 tmpfs /dev/shm";
    mounts(small, "test $(df --output=size /dev/shm | tail -1) = 65536").holds(&[]);
    mounts(none, "! touch /dev/shm/file").holds(&[]);
}

#[test]
fn looking_into_other_processes_is_not_needed() {
    contained("no-ptrace", "true").holds(&[]);
}

#[test]
fn a_program_that_its_user_may_run_but_not_read_runs() {
    // The kernel protects a process whose program file is unreadable even from its user's other processes.
    let copy = Copy::make(&["ring", "transfer"]);
    let launcher = copy.path().join("bin/mpirun");
    let user = copy.path().join("bin/as-user");
    let text = format!(
        "#!/bin/sh\nexec setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all {} \"$@\"\n",
        launcher.display()
    );
    bounded::write_program(&user, &text).unwrap();
    if !needs(
        rustix::process::geteuid().is_root(),
        "root to become an ordinary user",
    ) {
        return;
    }
    for program in ["ring", "transfer"] {
        let path = copy.path().join("bin").join(program);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        let job = Job::command(&path).under(&user).ranks(2);
        let job = job.on_library_of(copy.path());
        match program {
            "transfer" => job.arg("0.1").holds(),
            _ => job.holds(),
        };
    }
}

#[test]
fn the_filter_of_container_engines_lets_everything_pass_that_is_needed() {
    contained("docker", "! unshare --mount true").holds(&[]);
}

#[test]
fn nothing_is_written_anywhere() {
    // All file systems become read-only where possible, and HOME names a folder that does not exist.
    let setup = "while read -r _ place _; do \
                 mount -o remount,bind,ro \"$place\" 2>/dev/null || true; done < /proc/mounts\n\
                 export HOME=/nowhere";
    let proof =
        "! touch /file && ! touch /tmp/file && ! touch /dev/shm/file && ! touch /var/tmp/file";
    mounts(setup, proof).holds(&[]);
}

#[test]
fn files_of_thirty_two_megabytes_are_enough() {
    // The file size limit is 32 MiB, in units of 512 bytes;
    // the file of the ranks' shared memory must be smaller.
    let limited = Surrounding {
        setup: "ulimit -f 65536".into(),
        proof: "test $(ulimit -f) = 65536",
        lacks: "a limit of file sizes that it may lower",
        ..Surrounding::default()
    };
    limited.holds(&[]);
}

#[test]
fn one_core_is_enough() {
    let one = Surrounding {
        then: words("taskset --cpu-list 0"),
        proof: "test $(nproc) = 1",
        lacks: "the first core",
        ..Surrounding::default()
    };
    one.holds(&[]);
}

#[test]
fn a_network_of_loopback_alone_without_any_resolver_is_enough() {
    let setup = "for file in resolv.conf hosts nsswitch.conf services; do \
                 test ! -e /etc/$file || mount --bind /dev/null /etc/$file; done\n\
                 ip link set lo up";
    let mut alone = mounts(
        setup,
        "! getent hosts localhost && test $(ls /sys/class/net | wc -l) -ge 1",
    );
    alone.before = words("unshare --mount --propagation private --net");
    alone.holds(&[]);
    alone.holds(&["--mca", "btl", "self,tcp"]);
}

#[test]
fn a_network_that_is_not_even_up_is_enough_on_one_host() {
    let mut none = mounts("true", "! ping -c 1 127.0.0.1 2>/dev/null");
    none.before = words("unshare --mount --propagation private --net");
    none.holds(&[]);
}

#[test]
fn half_a_core_is_enough() {
    let group = format!("portcullis-test-{}", std::process::id());
    // In cgroup version 2 there is one hierarchy, in version 1 one for each controller;
    // the script uses the version in which this kernel offers the CPU quota.
    let setup = format!(
        "for root in /sys/fs/cgroup/unified /sys/fs/cgroup; do \
         grep -qw cpu $root/cgroup.controllers 2>/dev/null || continue; \
         echo +cpu > $root/cgroup.subtree_control; mkdir -p $root/{group}; \
         echo \"50000 100000\" > $root/{group}/cpu.max; echo $$ > $root/{group}/cgroup.procs; exec \"$@\"; done\n\
         mkdir -p /sys/fs/cgroup/cpu/{group}\n\
         echo 50000 > /sys/fs/cgroup/cpu/{group}/cpu.cfs_quota_us\n\
         echo $$ > /sys/fs/cgroup/cpu/{group}/cgroup.procs"
    );
    let half = Surrounding {
        setup,
        proof: "grep -q portcullis-test /proc/self/cgroup",
        lacks: "root and a cgroup tree with the quota of processors",
        ..Surrounding::default()
    };
    half.holds(&[]);
    for root in [
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/cpu",
    ] {
        // The group exists in only one of these folders, so errors are ignored.
        let _ = fs::remove_dir(Path::new(root).join(&group));
    }
}

/// Returns the libraries that a file needs from the dynamic linker.
fn needed(file: &Path) -> Vec<String> {
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(file);
    let said =
        process::output(&mut readelf, Duration::from_secs(20)).unwrap_or_else(|e| panic!("{e}"));
    let lines = said.stdout.lines().filter(|line| line.contains("(NEEDED)"));
    let names =
        lines.filter_map(|line| Some(line.split_once('[')?.1.trim_end_matches(']').to_owned()));
    names.collect()
}

#[track_caller]
fn needs_only_libc(file: &str) {
    // All these files belong to the C library's package.
    const LIBC: [&str; 3] = ["libc.so.6", "libm.so.6", "ld-linux"];
    for name in needed(&installation().join(file)) {
        let known = LIBC.iter().any(|libc| name.starts_with(libc));
        assert!(known, "{file} needs {name}");
    }
}

#[test]
fn the_library_needs_only_libc() {
    needs_only_libc("lib/libmpi_abi.so.1");
}

#[test]
fn a_plugin_needs_only_libc() {
    needs_only_libc("lib/portcullis/coll_hwbarr.so");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_launcher_needs_no_library_at_all() {
    assert_eq!(needed(&shipped_installation().join("bin/mpirun")), [""; 0]);
}

#[test]
fn every_surrounding_is_in_the_documentation() {
    let page = fs::read_to_string(workspace::root().join("docs/zero-configuration.md")).unwrap();
    let tests = fs::read_to_string(workspace::root().join("tests/tests/zero.rs")).unwrap();
    let names = tests
        .split("#[test]\nfn ")
        .skip(1)
        .filter_map(|rest| rest.split_once('('));
    for (name, _) in names.filter(|(name, _)| !name.starts_with("every_")) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/zero-configuration.md"
        );
    }
}
