//! The program `contained PROFILE COMMAND...`, which runs a command under a seccomp filter.
//!
//! The profile `docker` blocks the system calls that Docker's default profile blocks in a container
//! without capabilities: the table "Significant syscalls blocked by the default profile"
//! of its documentation (engine/security/seccomp).
//! Error codes are those of Docker's profile, too: ENOSYS for `clone3`, EPERM for all other calls.
//! The profile `no-ptrace` blocks only the system calls that access other processes.

use std::collections::BTreeMap;
use std::env::args_os;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

const DOCKER: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_get_mempolicy,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

const PTRACE: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The flags of `clone` that create namespaces (CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET).
const NAMESPACES: [u64; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into()?,
    )?;
    filter.try_into()
}

fn never(calls: &[&[i64]]) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls
        .concat()
        .into_iter()
        .map(|call| (call, Vec::new()))
        .collect()
}

fn profile(name: &str) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    if name == "no-ptrace" {
        return Ok(vec![filter(never(&[PTRACE]), libc::EPERM)?]);
    }
    let mut refused = never(&[DOCKER, PTRACE]);
    let namespaces = NAMESPACES.map(|flag| {
        let set = SeccompCmpOp::MaskedEq(flag);
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, set, flag)
            .and_then(|condition| SeccompRule::new(vec![condition]))
    });
    let namespaces = namespaces.into_iter().collect::<Result<Vec<_>, _>>()?;
    refused.insert(libc::SYS_clone, namespaces);
    Ok(vec![
        filter(refused, libc::EPERM)?,
        filter(never(&[&[libc::SYS_clone3]]), libc::ENOSYS)?,
    ])
}

fn main() -> ExitCode {
    let words: Vec<_> = args_os().skip(1).collect();
    let [name, program, arguments @ ..] = words.as_slice() else {
        eprintln!("contained docker|no-ptrace COMMAND...");
        return ExitCode::FAILURE;
    };
    let applied = profile(&name.to_string_lossy())
        .map_err(|error| error.to_string())
        .and_then(|filters| {
            let mut filters = filters.iter();
            filters.try_for_each(|one| seccompiler::apply_filter(one).map_err(|e| e.to_string()))
        });
    if let Err(error) = applied {
        eprintln!("contained: the filter could not be put into force: {error}");
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(arguments).exec();
    eprintln!("contained: {}: {error}", program.to_string_lossy());
    ExitCode::FAILURE
}
