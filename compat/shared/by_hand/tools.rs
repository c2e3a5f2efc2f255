//! Tests of tool variables and events that are bound to an object.
//!
//! The program passes the address of its handle. The backend receives that of its own handle.

use super::*;
use std::cell::Cell;

thread_local! {
    /// The backend's constant for the type of object to which the variable or event is bound.
    static BOUND: Cell<c_int> = const { Cell::new(0) };
}

/// The type as which the mock reads the object's handle. 0 means that the handle is not read.
const FILE: c_int = 1;
const OTHER: c_int = 2;
thread_local! {
    static READ: Cell<c_int> = const { Cell::new(0) };
}

const BINDINGS: [(&str, Kind); 11] = [
    ("MPI_T_BIND_MPI_COMM", Kind::Comm),
    ("MPI_T_BIND_MPI_DATATYPE", Kind::Datatype),
    ("MPI_T_BIND_MPI_ERRHANDLER", Kind::Errhandler),
    ("MPI_T_BIND_MPI_FILE", Kind::File),
    ("MPI_T_BIND_MPI_GROUP", Kind::Group),
    ("MPI_T_BIND_MPI_OP", Kind::Op),
    ("MPI_T_BIND_MPI_REQUEST", Kind::Request),
    ("MPI_T_BIND_MPI_WIN", Kind::Win),
    ("MPI_T_BIND_MPI_MESSAGE", Kind::Message),
    ("MPI_T_BIND_MPI_INFO", Kind::Info),
    ("MPI_T_BIND_MPI_SESSION", Kind::Session),
];

type Text = *mut c_char;
type Int = *mut c_int;

unsafe extern "C-unwind" fn cvar_info(
    index: c_int,
    _: Text,
    _: Int,
    _: Int,
    _: *mut Below,
    _: *mut usize,
    _: Text,
    _: Int,
    bind: Int,
    _: Int,
) -> c_int {
    note!(index);
    *bind = BOUND.get();
    0
}

unsafe extern "C-unwind" fn pvar_info(
    index: c_int,
    _: Text,
    _: Int,
    _: Int,
    _: Int,
    _: *mut Below,
    _: *mut usize,
    _: Text,
    _: Int,
    bind: Int,
    _: Int,
    _: Int,
    _: Int,
) -> c_int {
    note!(index);
    *bind = BOUND.get();
    0
}

unsafe extern "C-unwind" fn event_info(
    index: c_int,
    _: Text,
    _: Int,
    _: Int,
    _: *mut Below,
    _: *mut isize,
    _: Int,
    _: *mut usize,
    _: *mut Below,
    _: Text,
    _: Int,
    bind: Int,
) -> c_int {
    note!(index);
    *bind = BOUND.get();
    0
}

/// Records the handle at the address that the backend receives, or the address itself.
unsafe fn note_object(object: *mut c_void) {
    match READ.get() {
        FILE => note!(object.cast::<usize>().read_unaligned()),
        OTHER => note!(object.cast::<Below>().read_unaligned()),
        _ => note!(object.addr()),
    }
}

unsafe extern "C-unwind" fn cvar(
    index: c_int,
    object: *mut c_void,
    handle: *mut usize,
    count: Int,
) -> c_int {
    arrived();
    note!(index);
    note_object(object);
    note!(handle.addr(), count.addr());
    answer()
}

unsafe extern "C-unwind" fn pvar(
    session: usize,
    index: c_int,
    object: *mut c_void,
    handle: *mut usize,
    count: Int,
) -> c_int {
    arrived();
    note!(session, index);
    note_object(object);
    note!(handle.addr(), count.addr());
    answer()
}

unsafe extern "C-unwind" fn event(
    index: c_int,
    object: *mut c_void,
    info: Below,
    registration: *mut usize,
) -> c_int {
    arrived();
    note!(index);
    note_object(object);
    note!(info, registration.addr());
    answer()
}

/// Allocates handles of a control variable, a performance variable and an event for an object.
/// The backend must receive the value `expected`.
fn allocate(object: *mut c_void, expected: u64) {
    let (handle, count, info) = (scratch(1), scratch(2), predefined(Kind::Info));
    let code = failure();
    let check = |name: &str, found: c_int, expected: Vec<u64>| {
        answer_with(0);
        assert!(called(), "{name} is not called below");
        assert_eq!(found, code.0, "{name}: the code");
        assert_eq!(
            noted(),
            expected,
            "{name}: what arrives below, bound to {}",
            BOUND.get()
        );
    };
    mock!(MPI_T_cvar_handle_alloc = cvar);
    answer_with(code.1);
    let found = call!(MPI_T_cvar_handle_alloc(
        11,
        object,
        handle.cast(),
        count.cast()
    ));
    check(
        "MPI_T_cvar_handle_alloc",
        found,
        list![11, 11, expected, handle.addr(), count.addr()],
    );

    mock!(MPI_T_pvar_handle_alloc = pvar);
    answer_with(code.1);
    let found = call!(MPI_T_pvar_handle_alloc(
        99,
        12,
        object,
        handle.cast(),
        count.cast()
    ));
    check(
        "MPI_T_pvar_handle_alloc",
        found,
        list![12, 99, 12, expected, handle.addr(), count.addr()],
    );

    mock!(MPI_T_event_handle_alloc = event);
    answer_with(code.1);
    let found = call!(MPI_T_event_handle_alloc(13, object, info.0, handle.cast()));
    check(
        "MPI_T_event_handle_alloc",
        found,
        list![13, 13, expected, info.1, handle.addr()],
    );
}

fn bound() {
    below!(
        MPI_T_cvar_get_info = cvar_info,
        MPI_T_pvar_get_info = pvar_info,
        MPI_T_event_get_info = event_info,
    );
    for (name, kind) in BINDINGS {
        // The tables of some ABIs have no constant for sessions.
        let Some(binding) = known(name) else { continue };
        BOUND.set(binding.1);
        if kind == Kind::File {
            READ.set(FILE);
            let none = null(Kind::File);
            for (mut file, below) in [(none.0 as usize, none.1 as usize), made_file(4)] {
                allocate((&raw mut file).cast(), below as u64);
            }
        } else {
            READ.set(OTHER);
            for (mut object, below) in handles(kind, 3) {
                allocate((&raw mut object).cast(), below as u64);
            }
        }
        READ.set(0);
        allocate(null_mut(), 0);
    }
    BOUND.set(constant("MPI_T_BIND_NO_OBJECT").1);
    allocate(scratch(6).cast(), scratch(6).addr() as u64);
}

/// Number of elements of the mock's event. The program's array may be shorter or longer.
const ELEMENTS: usize = 3;

unsafe extern "C-unwind" fn describe(
    index: c_int,
    name: Text,
    name_length: Int,
    verbosity: Int,
    datatypes: *mut Below,
    displacements: *mut isize,
    elements: Int,
    enumeration: *mut usize,
    info: *mut Below,
    text: Text,
    text_length: Int,
    bind: Int,
) -> c_int {
    arrived();
    note!(
        index,
        name.addr(),
        name_length.addr(),
        displacements.addr(),
        *elements
    );
    note!(enumeration.addr(), text.addr(), text_length.addr());
    *verbosity = word("verbosity").1;
    for (i, datatype) in handles(Kind::Datatype, ELEMENTS).iter().enumerate() {
        if i < *elements as usize {
            *datatypes.add(i) = datatype.1;
        }
    }
    *elements = ELEMENTS as c_int;
    *info = made(33).1;
    *bind = word("bind").1;
    answer()
}

fn event_get_info() {
    let name = "MPI_T_event_get_info";
    for (space, code) in [
        (2, (0, 0)),
        (3, (0, 0)),
        (4, (0, 0)),
        (20, (0, 0)),
        (3, failure()),
    ] {
        let untouched = made(44).0;
        let mut datatypes = vec![untouched; space];
        let (mut verbosity, mut bind, mut info) = (-7, -7, untouched);
        let mut elements = space as c_int;
        mock!(MPI_T_event_get_info = describe);
        answer_with(code.1);
        let found = call!(MPI_T_event_get_info(
            14,
            scratch(1).cast(),
            scratch(2).cast(),
            &raw mut verbosity,
            datatypes.as_mut_ptr(),
            scratch(3).cast(),
            &raw mut elements,
            scratch(4).cast(),
            &raw mut info,
            scratch(5).cast(),
            scratch(6).cast(),
            &raw mut bind,
        ));
        answer_with(0);
        assert_eq!(found, code.0, "{name}: the code");
        arrives!(name; 14, scratch(1).addr(), scratch(2).addr(), scratch(3).addr(), space,
            scratch(4).addr(), scratch(5).addr(), scratch(6).addr());
        if code.0 != 0 {
            continue;
        }
        assert_eq!(elements, ELEMENTS as c_int, "{name}: elements");
        assert_eq!(verbosity, word("verbosity").0, "{name}: verbosity");
        assert_eq!(bind, word("bind").0, "{name}: what it is bound to");
        assert_eq!(info, made(33).0, "{name}: the info");
        let mut expected = of_program(&handles(Kind::Datatype, ELEMENTS));
        expected.resize(space.max(ELEMENTS), untouched);
        assert_eq!(
            datatypes,
            expected[..space],
            "{name}: datatypes in room for {space}"
        );
    }
}

pub fn check() {
    bound();
    event_get_info();
}
