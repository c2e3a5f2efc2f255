//! Tests of info objects with the ABI version and the Fortran information.

use super::*;
use std::cell::RefCell;
use std::ffi::CStr;

/// Values of `MPI_ERR_ABI` (the Fortran information is already set) and `MPI_ERR_ARG`.
const ABI: c_int = 62;
const ARG: c_int = 13;

thread_local! {
    /// The keys and values that the library has set in the backend's info object.
    static SET: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// The keys and values that the program's Fortran layer sets.
const TOLD: [(&CStr, &CStr); 2] = [(c"mpi_logical_size", c"4"), (c"mpi_real_size", c"8")];

unsafe extern "C-unwind" fn create(info: *mut Below) -> c_int {
    arrived();
    *info = made(80).1;
    answer()
}

unsafe fn text(text: *const c_char) -> String {
    CStr::from_ptr(text).to_string_lossy().into()
}

unsafe extern "C-unwind" fn set(info: Below, key: *const c_char, value: *const c_char) -> c_int {
    note!(info);
    SET.with_borrow_mut(|set| set.push((text(key), text(value))));
    0
}

unsafe extern "C-unwind" fn keys(info: Below, count: *mut c_int) -> c_int {
    arrived();
    note!(info);
    *count = TOLD.len() as c_int;
    answer()
}

unsafe fn write(from: &CStr, to: *mut c_char) {
    std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.to_bytes_with_nul().len());
}

unsafe extern "C-unwind" fn key(info: Below, number: c_int, key: *mut c_char) -> c_int {
    note!(info, number);
    write(TOLD[number as usize].0, key);
    0
}

unsafe extern "C-unwind" fn get(
    info: Below,
    key: *const c_char,
    space: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    note!(info);
    let known = TOLD.iter().find(|told| told.0 == CStr::from_ptr(key));
    *flag = known.is_some().into();
    if let Some((_, told)) = known.filter(|told| space as usize >= told.1.count_bytes()) {
        write(told, value);
    }
    0
}

/// Calls `ask`, which returns an info object, and compares the object's entries.
/// All backend calls must use the info object that the mock has created.
fn assert_entries(name: &str, ask: impl Fn(*mut Handle) -> c_int, expected: &[(&str, &str)]) {
    SET.take();
    below!(MPI_Info_set = set);
    mock!(MPI_Info_create = create);
    let mut info = null(Kind::Info).0;
    assert_eq!(ask(&raw mut info), 0, "{name}: the code");
    assert!(called(), "{name} makes no info below");
    assert_eq!(info, made(80).0, "{name}: the info");
    let found = SET.take();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(found, expected, "{name}: the entries");
    assert_eq!(
        noted(),
        vec![made(80).1 as u64; expected.len()],
        "{name}: whose entries"
    );
    answer_with(failure().1);
    let code = ask(&raw mut info);
    answer_with(0);
    assert_eq!(code, failure().0, "{name}: the code of a call that fails");
}

fn infos() {
    let sizes = [
        ("mpi_aint_size", "8"),
        ("mpi_count_size", "8"),
        ("mpi_offset_size", "8"),
    ];
    assert_entries(
        "MPI_Abi_get_info",
        |info| call!(MPI_Abi_get_info(info)),
        &sizes,
    );

    let mut info = made(1).0;
    assert_eq!(call!(MPI_Abi_get_fortran_info(&raw mut info)), 0);
    assert_eq!(
        info,
        null(Kind::Info).0,
        "MPI_Abi_get_fortran_info: nothing is told"
    );

    below!(MPI_Info_get_nthkey = key, MPI_Info_get = get);
    mock!(MPI_Info_get_nkeys = keys);
    answer_with(failure().1);
    let code = call!(MPI_Abi_set_fortran_info(made(81).0));
    answer_with(0);
    assert_eq!(code, failure().0, "MPI_Abi_set_fortran_info: the code");
    for code in [0, ABI] {
        mock!(MPI_Info_get_nkeys = keys);
        let found = call!(MPI_Abi_set_fortran_info(made(81).0));
        assert_eq!(found, code, "MPI_Abi_set_fortran_info: the code");
        let info = made(81).1;
        arrives!("MPI_Abi_set_fortran_info"; info, info, 0, info, info, 1, info);
    }
    let told = TOLD.map(|(key, value)| (key.to_str().unwrap(), value.to_str().unwrap()));
    assert_entries(
        "MPI_Abi_get_fortran_info",
        |info| call!(MPI_Abi_get_fortran_info(info)),
        &told,
    );
}

/// Returns the results of `MPI_Abi_get_fortran_booleans`: code, true, false, and whether set.
fn booleans(size: c_int) -> (c_int, u32, u32, c_int) {
    let (mut yes, mut no, mut is_set) = (0u32, 0u32, -7);
    let code = call!(MPI_Abi_get_fortran_booleans(
        size,
        (&raw mut yes).cast(),
        (&raw mut no).cast(),
        &raw mut is_set,
    ));
    (code, yes, no, is_set)
}

fn logicals() {
    assert_eq!(booleans(4), (0, 0, 0, 0), "no values of Fortran are told");
    let (mut yes, mut no) = (0x1234_5678u32, 0x9abc_def0u32);
    for (size, code) in [(3, ARG), (4, 0), (4, ABI)] {
        let yes = (&raw mut yes).cast();
        let found = call!(MPI_Abi_set_fortran_booleans(
            size,
            yes,
            (&raw mut no).cast()
        ));
        assert_eq!(found, code, "MPI_Abi_set_fortran_booleans of {size} bytes");
    }
    assert_eq!(booleans(4), (0, yes, no, 1), "values of Fortran");
    assert_eq!(booleans(2), (0, 0, 0, 0), "values of another size");
    assert_eq!(booleans(3).0, ARG, "values of a size that none has");
}

pub fn check() {
    let (mut major, mut minor) = (-7, -7);
    assert_eq!(
        call!(MPI_Abi_get_version(&raw mut major, &raw mut minor)),
        0
    );
    assert_eq!(
        (major, minor),
        (1, 0),
        "the version of the binary interface"
    );
    infos();
    logicals();
}
