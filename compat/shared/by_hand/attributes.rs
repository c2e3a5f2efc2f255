//! Tests of predefined attributes: values that are ABI constants are converted, addresses are not.

use super::*;

thread_local! {
    /// The mock's answer: the attribute value, and a flag that is not 0 if the attribute is set.
    static ANSWER: std::cell::Cell<(usize, c_int)> = const { std::cell::Cell::new((0, 0)) };
}

unsafe extern "C-unwind" fn get(
    object: Below,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    arrived();
    note!(object, keyval);
    let (address, there) = ANSWER.get();
    if there != 0 {
        value.cast::<usize>().write_unaligned(address);
    }
    *flag = there;
    answer()
}

macro_rules! check {
    ($name:ident: $kind:ident, $constants:expr) => {{
        let name = stringify!($name);
        let object = predefined(Kind::$kind);
        let ask = |keyval: (c_int, c_int), answer: (usize, c_int), code: (c_int, c_int)| {
            let (mut value, mut flag) = (scratch(9).addr(), -7);
            ANSWER.set(answer);
            mock!($name = get);
            answer_with(code.1);
            let found = call!($name(object.0, keyval.0, (&raw mut value).cast(), &raw mut flag));
            answer_with(0);
            assert_eq!(found, code.0, "{name}: the code");
            arrives!(name; object.1, keyval.1);
            assert_eq!(flag, answer.1, "{name}: whether there is one");
            value
        };
        let constants: &[(&str, (c_int, c_int))] = &$constants;
        for (keyval, (value, value_below)) in constants.iter().copied() {
            let keyval = constant(keyval);
            let there = (&raw const value_below).expose_provenance();
            let found = ask(keyval, (there, 1), (0, 0));
            let found = std::ptr::with_exposed_provenance::<c_int>(found);
            // SAFETY: `found` is the address of a constant of the library, or of `value_below`.
            // Both are valid here.
            assert_eq!(unsafe { *found }, value, "{name}: the value of {}", keyval.0);
            // If the call fails or the attribute is not set, the value is not read.
            assert_eq!(ask(keyval, (0, 0), (0, 0)), scratch(9).addr(), "{name}: no value");
            assert_eq!(ask(keyval, (0, 0), failure()), scratch(9).addr(), "{name}: no value");
        }
        let other = scratch(8).addr();
        assert_eq!(ask(MADE_KEYVAL, (other, 1), (0, 0)), other, "{name}: the program's own");
        assert_eq!(ask(constant("MPI_TAG_UB"), (other, 1), (0, 0)), other, "{name}: an address");
    }};
}

pub fn check() {
    let of_comm = [
        ("MPI_IO", word("rank")),
        ("MPI_IO", constant("MPI_ANY_SOURCE")),
        ("MPI_IO", constant("MPI_PROC_NULL")),
        ("MPI_HOST", constant("MPI_PROC_NULL")),
        ("MPI_IO", (3, 3)),
        ("MPI_LASTUSEDCODE", constant("MPI_ERR_LASTCODE")),
    ];
    check!(MPI_Comm_get_attr: Comm, of_comm);
    check!(MPI_Attr_get: Comm, of_comm);
    let of_win = [
        ("MPI_WIN_CREATE_FLAVOR", word("flavor")),
        ("MPI_WIN_MODEL", constant("MPI_WIN_UNIFIED")),
        ("MPI_WIN_MODEL", constant("MPI_WIN_SEPARATE")),
    ];
    check!(MPI_Win_get_attr: Win, of_win);
    check!(MPI_Type_get_attr: Datatype, []);
}
