//! `cargo xtask nightly-verbs`: runs programs over an emulated InfiniBand device in a guest.
//!
//! The kernel's module `rdma_rxe` makes a verbs device (RoCE v2) of a network interface.
//! This machine may lack the module and the rights, so a virtual machine loads the module.
//! Its root is this machine's, mounted read-only by 9p, so the guest runs what was built here.
//! In jobs on two hosts, the guest has two host names, and the launcher's agent is a shell.
//! Messages between the two hosts use the device, including its reads and writes of memory.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::machines::{self, Archive, DIRECTORY, MachineError, PROGRAM, at, said};
use crate::process::{self, ProcessError};
use crate::ui::Steps;
use crate::{packages, test_installation, workspace};

/// The time limit of the guest, and of each job.
const LIMIT: Duration = Duration::from_secs(900);
const JOB_SECONDS: u32 = 180;

/// Kernel modules in loading order; a module that the kernel has built in has no file.
const MODULES: &[(&str, &str)] = &[
    ("virtio_ring", "drivers/virtio"),
    ("virtio", "drivers/virtio"),
    ("virtio_pci_modern_dev", "drivers/virtio"),
    ("virtio_pci_legacy_dev", "drivers/virtio"),
    ("virtio_pci", "drivers/virtio"),
    ("failover", "net/core"),
    ("net_failover", "drivers/net"),
    ("virtio_net", "drivers/net"),
    ("netfs", "fs/netfs"),
    ("fscache", "fs/fscache"),
    ("9pnet", "net/9p"),
    ("9pnet_virtio", "net/9p"),
    ("9p", "fs/9p"),
    ("crc32_generic", "crypto"),
    ("ip6_udp_tunnel", "net/ipv6"),
    ("udp_tunnel", "net/ipv4"),
    ("ib_core", "drivers/infiniband/core"),
    ("ib_uverbs", "drivers/infiniband/core"),
    ("rdma_rxe", "drivers/infiniband/sw/rxe"),
    ("configfs", "fs/configfs"),
    ("ib_cm", "drivers/infiniband/core"),
    ("iw_cm", "drivers/infiniband/core"),
    ("rdma_cm", "drivers/infiniband/core"),
    ("rdma_ucm", "drivers/infiniband/core"),
];

/// The network library of a job, with its transport or provider.
#[derive(Clone, Copy)]
enum Over {
    Ucx(&'static str),
    Ofi(&'static str),
}

/// A job of two ranks in the guest.
struct Job {
    program: &'static str,
    argument: &'static str,
    hosts: usize,
    over: Over,
    /// True if the job passes only if the device has read and written memory.
    accesses: bool,
}

const fn job(program: &'static str, argument: &'static str, hosts: usize, over: Over) -> Job {
    Job {
        program,
        argument,
        hosts,
        over,
        accesses: false,
    }
}

const fn accessing(program: &'static str, argument: &'static str) -> Job {
    Job {
        program,
        argument,
        hosts: 2,
        over: Over::Ucx("rc"),
        accesses: true,
    }
}

/// The arguments make long programs short: each message takes about 10 ms in the guest.
const JOBS: &[Job] = &[
    job("hello", "", 1, Over::Ucx("rc")),
    job("ring", "", 1, Over::Ucx("rc")),
    job("sendrecv", "", 1, Over::Ucx("rc")),
    job("partitioned", "", 1, Over::Ucx("rc")),
    job("collectives", "", 1, Over::Ucx("rc")),
    job("hello", "", 2, Over::Ucx("rc")),
    job("sendrecv", "", 2, Over::Ucx("rc")),
    accessing("registered", ""),
    accessing("accesses", "5"),
    accessing("windows", "5"),
    accessing("elsewhere", "3"),
    job("hello", "", 1, Over::Ucx("ud")),
    job("ring", "", 2, Over::Ucx("ud")),
    job("hello", "", 1, Over::Ofi("verbs;ofi_rxm")),
    job("registered", "", 2, Over::Ofi("verbs;ofi_rxm")),
];

/// Boots the guest, runs the jobs, and prints the table.
pub fn run() -> Result<(), MachineError> {
    let own = workspace::target().join("verbs");
    if let Some(hidden) = ["/tmp", "/run", "/dev"]
        .iter()
        .find(|top| own.starts_with(top))
    {
        return Err(MachineError::Failed(format!(
            "the target folder is in {hidden}, which the guest replaces; set CARGO_TARGET_DIR to another folder"
        )));
    }
    at(&own, fs::create_dir_all(&own))?;
    let mut steps = Steps::new(4);
    let folder = machines::folder();
    let kernel = steps.step("fetching qemu, a kernel and busybox", || {
        packages::ensure_verbs()?;
        machines::fetch(&folder)
    })?;
    steps.step("building the library and the programs", || build(&own))?;
    steps.step("packing what the guest boots", || {
        pack(&own, &folder, &kernel)
    })?;
    let title = format!("booting the guest, and running {} jobs", JOBS.len());
    let console = steps.step(title, || boot(&own, &folder))?;
    table(&console)
}

fn build(own: &Path) -> Result<(), MachineError> {
    test_installation::ensure()?;
    let compiler = test_installation::installation().join("bin/mpicc");
    let compile = |name: &str, to: &str, options: &[&str]| {
        let mut command = Command::new(&compiler);
        command.args(["-std=gnu11", "-O1", "-o"]).arg(own.join(to));
        command.arg(workspace::programs().join(name).with_extension("c"));
        said(command.args(options)).map(drop)
    };
    let mut programs: Vec<&str> = JOBS.iter().map(|job| job.program).collect();
    programs.sort_unstable();
    programs.dedup();
    for program in programs {
        compile(program, program, &["-lm"])?;
    }
    let counting = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-l:libucp.so.0"];
    compile("failing_get", "libfailing_get.so", &counting)
}

/// Writes the initial file system, and the scripts that the guest reads from this machine.
fn pack(own: &Path, folder: &Path, kernel: &str) -> Result<(), MachineError> {
    let path = own.join("initramfs");
    let mut archive = at(&path, Archive::create(&path))?;
    let mut add = |name: &str, mode, contents: &[u8]| at(&path, archive.add(name, mode, contents));
    for folder in ["bin", "dev", "proc", "sys", "modules", "newroot"] {
        add(folder, DIRECTORY, &[])?;
    }
    let root = folder.join("root");
    let busybox = root.join("bin/busybox");
    add("bin/busybox", PROGRAM, &at(&busybox, fs::read(&busybox))?)?;
    let release = root.join("lib/modules").join(kernel);
    let built_in = fs::read_to_string(release.join("modules.builtin")).unwrap_or_default();
    let mut loaded = Vec::new();
    for (name, place) in MODULES {
        let file = format!("kernel/{place}/{name}.ko");
        if built_in.lines().any(|line| line == file) {
            continue;
        }
        let from = release.join(&file);
        let contents = fs::read(&from).map_err(|_| {
            MachineError::Missing(format!("the module {file} of Debian's kernel {kernel}"))
        })?;
        add(&format!("modules/{name}.ko"), PROGRAM, &contents)?;
        loaded.push(*name);
    }
    let inside = own.join("inside.sh");
    add("init", PROGRAM, init(&loaded, &inside).as_bytes())?;
    at(&path, archive.end())?;
    at(&inside, fs::write(&inside, script(own)))?;
    let agent = own.join("agent");
    let text = "#!/bin/sh\nshift\nexec sh -c \"$*\"\n";
    process::write_program(&agent, text).map_err(Into::into)
}

/// Returns the guest's init script.
fn init(modules: &[&str], inside: &Path) -> String {
    format!(
        "#!/bin/busybox sh\n\
         B=/bin/busybox\n\
         $B mount -t proc p /proc; $B mount -t sysfs s /sys; $B mount -t devtmpfs d /dev\n\
         exec < /dev/ttyS0 > /dev/ttyS0 2>&1\n\
         for module in {}; do $B insmod /modules/$module.ko || echo @ missing: the kernel does not load $module; done\n\
         $B mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /newroot || {{\n\
         echo @ missing: the guest cannot mount the root of this machine by 9p; $B poweroff -f; }}\n\
         for folder in proc sys dev; do $B mount --bind /$folder /newroot/$folder; done\n\
         for folder in tmp run dev/shm dev/pts; do $B mkdir -p /newroot/$folder; done\n\
         $B mount -t devpts p /newroot/dev/pts\n\
         for folder in tmp run dev/shm; do $B mount -t tmpfs t /newroot/$folder; done\n\
         $B chroot /newroot /bin/sh {}\n\
         $B poweroff -f\n",
        modules.join(" "),
        quoted(inside)
    )
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Returns the script that makes the device and runs the jobs.
///
/// The GID of index 0 is the link-local address: UCX 1.13 does not connect by the IPv4 address.
fn script(own: &Path) -> String {
    let mut text = format!(
        "export PATH={}/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C\n\
         ulimit -l unlimited; ulimit -c 0; hostname guest; cd {}\n\
         ip link set lo up; ip link set eth0 up; ip addr add 10.0.0.1/24 dev eth0\n\
         rdma link add rxe0 type rxe netdev eth0 || echo @ missing: rxe0 cannot be made\n\
         export UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0 FAILING_GET=count FI_UNIVERSE_SIZE=4\n\
         for second in 1 2 3 4 5 6 7 8 9; do\n\
         grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state && grep -q fe80 /sys/class/infiniband/rxe0/ports/1/gids/0 && break\n\
         sleep 1; done\n",
        test_installation::installation().display(),
        quoted(own)
    );
    for (number, job) in JOBS.iter().enumerate() {
        let _ = writeln!(
            text,
            "begin=$(date +%s); timeout {JOB_SECONDS} {} >/tmp/out 2>&1; code=$?; end=$(date +%s)\n\
             grep -v 'explain: coll' /tmp/out | tail -n 60 | cut -c1-300\n\
             echo \"@ job {number} $code $((end - begin))\"",
            command(job)
        );
    }
    text
}

/// Returns the command line of a job in the shell.
fn command(job: &Job) -> String {
    let mut text = String::from("mpirun -n 2 --explain");
    let mut names = "UCX_NET_DEVICES UCX_IB_GID_INDEX FAILING_GET FI_UNIVERSE_SIZE".to_owned();
    let set = match job.over {
        Over::Ucx(transport) => {
            text += " --mca btl ucx,self --mca btl_ucx_library ./libfailing_get.so";
            names += " UCX_TLS";
            format!("UCX_TLS={transport},self")
        }
        Over::Ofi(provider) => {
            text += " --mca btl ofi,self";
            names += " FI_PROVIDER";
            format!("FI_PROVIDER='{provider}'")
        }
    };
    if job.hosts > 1 {
        text += " --launch-agent ./agent --host localhost:1,elsewhere:1";
        for name in names.split(' ') {
            text += " -x ";
            text += name;
        }
    }
    format!("env {set} {text} ./{} {}", job.program, job.argument)
}

/// Boots the guest, and returns what it has printed.
fn boot(own: &Path, folder: &Path) -> Result<String, MachineError> {
    let console: PathBuf = own.join("console");
    let mut command = machines::emulator(folder);
    command
        .args([
            "-machine",
            "pc",
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max",
        ])
        .args(["-smp", "2", "-m", "2G"])
        .arg("-kernel")
        .arg(folder.join("vmlinuz"))
        .arg("-initrd")
        .arg(own.join("initramfs"))
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .arg("-chardev")
        .arg(format!("file,id=console,path={}", console.display()))
        .args(["-device", "isa-serial,chardev=console"])
        .args([
            "-fsdev",
            "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
        ])
        .args(["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"])
        .args(["-netdev", "user,id=net"])
        .args(["-device", "virtio-net-pci,netdev=net,romfile="]);
    let outcome = process::output(&mut command, LIMIT);
    let printed = fs::read(&console).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    match outcome {
        Ok(_) => Ok(printed),
        Err(ProcessError::TimedOut { .. }) => Ok(format!(
            "{printed}\n@ missing: the guest was stopped after {} s\n",
            LIMIT.as_secs()
        )),
        Err(error) => Err(error.into()),
    }
}

/// What the guest has printed about one job.
#[derive(Default)]
struct Found<'a> {
    code: &'a str,
    seconds: &'a str,
    output: Vec<&'a str>,
}

/// Splits the guest's output by jobs; also returns its messages about missing files or devices.
fn split(console: &str) -> (Vec<Option<Found<'_>>>, Vec<&str>) {
    let mut all: Vec<Option<Found<'_>>> = JOBS.iter().map(|_| None).collect();
    let (mut output, mut missing) = (Vec::new(), Vec::new());
    for line in console.lines().map(str::trim_end) {
        if let Some(sentence) = line.strip_prefix("@ missing: ") {
            missing.push(sentence);
        } else if let Some(words) = line.strip_prefix("@ job ") {
            let words: Vec<&str> = words.split(' ').collect();
            if let [number, code, seconds] = words[..]
                && let Some(place) = number.parse().ok().and_then(|n: usize| all.get_mut(n))
            {
                let output = std::mem::take(&mut output);
                *place = Some(Found {
                    code,
                    seconds,
                    output,
                });
            }
        } else {
            output.push(line);
        }
    }
    (all, missing)
}

/// Returns the numbers of reads, writes and messages of all ranks.
fn counts(output: &[&str]) -> [u64; 3] {
    let mut all = [0; 3];
    let lines = output
        .iter()
        .filter_map(|line| line.split_once("failing_get: "));
    for (_, line) in lines {
        let numbers = line
            .split([' ', ','])
            .filter_map(|word| word.parse::<u64>().ok());
        all.iter_mut()
            .zip(numbers)
            .for_each(|(sum, number)| *sum += number);
    }
    all
}

/// Returns the reason why a job has not passed, or `None`.
fn fault(job: &Job, found: &Found<'_>) -> Option<String> {
    let claim = format!("all claims of {} hold on 2 ranks", job.program);
    let library = match job.over {
        Over::Ucx(_) => "btl: ucx is used over UCX",
        Over::Ofi(_) => "btl: ofi is used over libfabric",
    };
    let says = |text: &str| found.output.iter().any(|line| line.contains(text));
    let [reads, writes, _] = counts(&found.output);
    if found.code == "124" {
        Some(format!("did not end within {JOB_SECONDS} s"))
    } else if found.code != "0" {
        Some(format!("ended with code {}", found.code))
    } else if !says(&claim) {
        Some(format!("did not print '{claim}'"))
    } else if !says(library) {
        Some(format!("--explain did not print '{library}'"))
    } else if job.accesses && (reads == 0 || writes == 0) {
        Some(format!(
            "used {reads} reads and {writes} writes of the device"
        ))
    } else {
        None
    }
}

/// Prints one line for each job; fails if a job has not passed.
fn table(console: &str) -> Result<(), MachineError> {
    let (all, missing) = split(console);
    if all.iter().all(Option::is_none) {
        let console: Vec<&str> = console.lines().collect();
        let last = console[console.len().saturating_sub(12)..].join("\n");
        return Err(MachineError::Failed(match missing.is_empty() {
            true => format!("the guest ran no job; its console ends with:\n{last}"),
            false => format!("the guest ran no job: {}", missing.join("; ")),
        }));
    }
    let mut faults: Vec<String> = missing.into_iter().map(str::to_owned).collect();
    println!("program        hosts  over                seconds  messages  reads  writes");
    for (job, found) in JOBS.iter().zip(&all) {
        let over = match job.over {
            Over::Ucx(transport) => format!("UCX {transport}"),
            Over::Ofi(provider) => provider.to_owned(),
        };
        let name = format!("{} {}", job.program, job.argument);
        let name = name.trim_end();
        let head = format!("{name:<15}{:>5}  {over:<18}", job.hosts);
        let Some(found) = found else {
            println!("{head}  did not run");
            faults.push(format!("{name} over {over} did not run"));
            continue;
        };
        let numbers = match job.over {
            Over::Ucx(_) => counts(&found.output).map(|number| number.to_string()),
            Over::Ofi(_) => ["-"; 3].map(str::to_owned),
        };
        let [reads, writes, messages] = numbers;
        let fault = fault(job, found);
        let seconds = found.seconds;
        let remark = fault.as_deref().unwrap_or_default();
        let line = format!("{head}{seconds:>9}{messages:>10}{reads:>7}{writes:>8}  {remark}");
        println!("{}", line.trim_end());
        if let Some(fault) = fault {
            let last = found.output.len().saturating_sub(12);
            let output = found.output[last..].join("\n");
            faults.push(format!("{name} over {over} {fault}; it printed:\n{output}"));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(MachineError::Failed(faults.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the console of a guest in which every job has passed.
    fn passed() -> String {
        let mut text = String::new();
        for (number, job) in JOBS.iter().enumerate() {
            let library = match job.over {
                Over::Ucx(_) => "ucx is used over UCX 1.13.1 (rxe0)",
                Over::Ofi(_) => "ofi is used over libfabric 1.17",
            };
            let _ = write!(
                text,
                "explain: btl: {library}\r\nall claims of {} hold on 2 ranks\r\n\
                 failing_get: 5 reads, 6 writes, 24 messages\r\n\
                 failing_get: 7 reads, 6 writes, 15 messages\r\n@ job {number} 0 9\r\n",
                job.program
            );
        }
        text
    }

    #[test]
    fn a_table_of_passed_jobs_is_no_error() {
        assert!(table(&passed()).is_ok());
        let console = passed();
        let (all, _) = split(&console);
        let first = all[0].as_ref().expect("the first job");
        assert_eq!(counts(&first.output), [12, 12, 39]);
    }

    #[test]
    fn each_way_to_fail_is_named() {
        let all = passed();
        let said = |console: &str| table(console).expect_err("a fault").to_string();
        assert!(said(&all.replace("@ job 3 0 9", "@ job 3 124 9")).contains("did not end within"));
        assert!(said(&all.replace("@ job 3 0 9", "@ job 3 7 9")).contains("ended with code 7"));
        assert!(said(&all.replace("@ job 3 0 9", "")).contains("did not run"));
        assert!(said(&all.replace("claims of ring", "")).contains("did not print"));
        assert!(said(&all.replace("ucx is used", "")).contains("--explain did not print"));
        let none = all
            .replace("5 reads", "0 reads")
            .replace("7 reads", "0 reads");
        assert!(said(&none).contains("used 0 reads and 12 writes"));
        assert!(said("SeaBIOS").contains("ran no job; its console ends with"));
        assert!(said("@ missing: a module").contains("ran no job: a module"));
        let missing = format!("@ missing: rxe0 cannot be made\n{all}");
        assert!(said(&missing).contains("rxe0 cannot be made"));
    }
}
