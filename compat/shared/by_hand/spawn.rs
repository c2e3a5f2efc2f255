//! Tests of `MPI_Comm_spawn` and `MPI_Comm_spawn_multiple`: the root, infos, and error codes.

use super::*;

thread_local! {
    /// The intercommunicator that the mock returns, and the number of infos that the mock reads.
    static MADE: std::cell::Cell<(Below, usize)> = const { std::cell::Cell::new((0, 0)) };
}

/// Number of started processes. The program's array of error codes is longer by one.
const STARTED: usize = 3;

/// The index at which `see` records the communicator whose remote size is queried.
const ASKED: usize = 40;

unsafe extern "C-unwind" fn remote_size(comm: Below, size: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *size = STARTED as c_int;
    0
}

/// This process's rank in the mock.
const RANK: c_int = 2;

unsafe extern "C-unwind" fn rank(comm: Below, rank: *mut c_int) -> c_int {
    see(ASKED + 1, comm as u64);
    *rank = RANK;
    0
}

unsafe extern "C-unwind" fn one(
    command: *const c_char,
    arguments: *mut *mut c_char,
    most: c_int,
    info: Below,
    root: c_int,
    comm: Below,
    intercomm: *mut Below,
    codes: *mut c_int,
) -> c_int {
    arrived();
    note!(command.addr(), arguments.addr(), most, info, root, comm);
    finish(intercomm, codes)
}

unsafe extern "C-unwind" fn several(
    count: c_int,
    commands: *mut *mut c_char,
    arguments: *mut *mut *mut c_char,
    most: *const c_int,
    infos: *const Below,
    root: c_int,
    comm: Below,
    intercomm: *mut Below,
    codes: *mut c_int,
) -> c_int {
    arrived();
    note!(
        count,
        commands.addr(),
        arguments.addr(),
        most.addr(),
        root,
        comm
    );
    for i in 0..MADE.get().1 {
        note!(*infos.add(i));
    }
    finish(intercomm, codes)
}

/// Stores the intercommunicator and the error codes, for both mocks.
unsafe fn finish(intercomm: *mut Below, codes: *mut c_int) -> c_int {
    *intercomm = MADE.get().0;
    for i in 0..=STARTED {
        *codes.add(i) = failure().1;
    }
    answer()
}

/// Checks the intercommunicator and the error codes that the program received.
fn assert_started(name: &str, intercomm: (Handle, Handle), codes: &[c_int], started: bool) {
    assert_eq!(intercomm.0, intercomm.1, "{name}: the intercommunicator");
    let known = if started { STARTED } else { 0 };
    for (i, code) in codes.iter().enumerate() {
        let expected = if i < known { failure().0 } else { failure().1 };
        assert_eq!(*code, expected, "{name}: the code of process {i}");
    }
    if started {
        assert_eq!(
            seen(ASKED),
            made(70).1 as u64,
            "{name}: whose processes are counted"
        );
    }
}

/// Returns test cases: an intercommunicator, a return code, and whether processes are started.
fn outcomes() -> [((Handle, Below), (c_int, c_int), bool); 3] {
    let no_comm = null(Kind::Comm);
    [
        (made(70), (0, 0), true),
        (no_comm, (0, 0), false),
        (no_comm, failure(), false),
    ]
}

fn spawn() {
    let name = "MPI_Comm_spawn";
    let (info, comm, root) = (predefined(Kind::Info), predefined(Kind::Comm), word("rank"));
    for (made_below, code, started) in outcomes() {
        MADE.set((made_below.1, 0));
        let (mut intercomm, mut codes) = (made(1).0, [0; STARTED + 1]);
        mock!(MPI_Comm_spawn = one);
        answer_with(code.1);
        let found = call!(MPI_Comm_spawn(
            scratch(1).cast(),
            scratch(2).cast(),
            4,
            info.0,
            root.0,
            comm.0,
            &raw mut intercomm,
            codes.as_mut_ptr(),
        ));
        answer_with(0);
        assert_eq!(found, code.0, "{name}: the code");
        arrives!(name; scratch(1).addr(), scratch(2).addr(), 4, info.1, root.1, comm.1);
        assert_started(name, (intercomm, made_below.0), &codes, started);
    }
}

/// Tests that the root's infos reach the backend. Infos of other ranks are not read.
fn spawn_multiple() {
    let name = "MPI_Comm_spawn_multiple";
    let comm = predefined(Kind::Comm);
    for (made_below, code, started) in outcomes() {
        for length in LENGTHS {
            for root in [(RANK, RANK), (RANK - 1, RANK - 1), word("rank")] {
                let infos = handles(Kind::Info, length);
                let given = of_program(&infos);
                let read = if root.0 == RANK { length } else { 0 };
                // On other ranks than the root, the program may pass an invalid address.
                let place = match read {
                    0 => std::ptr::without_provenance(8),
                    _ => given.as_ptr(),
                };
                MADE.set((made_below.1, read));
                let (mut intercomm, mut codes) = (made(1).0, [0; STARTED + 1]);
                mock!(MPI_Comm_spawn_multiple = several);
                answer_with(code.1);
                let found = call!(MPI_Comm_spawn_multiple(
                    length as c_int,
                    scratch(1).cast(),
                    scratch(2).cast(),
                    scratch(3).cast(),
                    place,
                    root.0,
                    comm.0,
                    &raw mut intercomm,
                    codes.as_mut_ptr(),
                ));
                answer_with(0);
                assert_eq!(found, code.0, "{name}: the code");
                let mut expected = list![length, scratch(1).addr(), scratch(2).addr()];
                expected.extend(list![scratch(3).addr(), root.1, comm.1]);
                expected.extend(infos[..read].iter().map(|pair| pair.1 as u64));
                assert_eq!(noted(), expected, "{name}: what arrives below");
                assert_eq!(
                    seen(ASKED + 1),
                    comm.1 as u64,
                    "{name}: whose rank is asked"
                );
                assert_started(name, (intercomm, made_below.0), &codes, started);
            }
        }
    }
}

pub fn check() {
    below!(MPI_Comm_remote_size = remote_size, MPI_Comm_rank = rank);
    spawn();
    spawn_multiple();
}
