//! Tests of data representations: the program's callbacks receive the program's datatype handles.

use super::*;

unsafe extern "C-unwind" fn extent(
    datatype: Handle,
    extent: *mut isize,
    extra_state: *mut c_void,
) -> c_int {
    note_where();
    note!(datatype, extent.addr(), extra_state.addr());
    failure().0
}

/// The program's conversion callback. Its return code shows whether data are read or written.
unsafe extern "C-unwind" fn convert<C: Into<i64>, const READ: bool>(
    memory: *mut c_void,
    datatype: Handle,
    count: C,
    file: *mut c_void,
    position: i64,
    extra_state: *mut c_void,
) -> c_int {
    note_where();
    note!(
        memory.addr(),
        datatype,
        count.into(),
        file.addr(),
        position,
        extra_state.addr()
    );
    if READ { failure().0 } else { other_failure().0 }
}

unsafe extern "C-unwind" fn take(
    name: *const c_char,
    read: usize,
    write: usize,
    extent: usize,
    extra_state: *mut c_void,
) -> c_int {
    arrived();
    note!(name.addr());
    keep(0, read);
    keep(1, write);
    keep(2, extent);
    keep(3, extra_state.expose_provenance());
    answer()
}

type Extent = unsafe extern "C-unwind" fn(Below, *mut isize, *mut c_void) -> c_int;
type Convert<H, C> =
    unsafe extern "C-unwind" fn(*mut c_void, H, C, *mut c_void, i64, *mut c_void) -> c_int;

macro_rules! check {
    ($name:ident: $count:ty) => {{
        let name = stringify!($name);
        let register = |functions: [usize; 3], code: (c_int, c_int)| {
            mock!($name = take);
            let [read, write, extent] = functions;
            answer_with(code.1);
            let found = call!($name(scratch(1).cast(), read, write, extent, scratch(2).cast()));
            answer_with(0);
            assert_eq!(found, code.0, "{name}: the code");
            arrives!(name; scratch(1).addr());
        };
        register([0; 3], failure());
        assert_eq!([kept(0), kept(1), kept(2)], [0; 3], "{name}: no functions");
        let read: Convert<Handle, $count> = convert::<$count, true>;
        let write: Convert<Handle, $count> = convert::<$count, false>;
        register([read as usize, write as usize, extent as *const () as usize], (0, 0));
        let state = std::ptr::with_exposed_provenance_mut::<c_void>(kept(3));
        for datatype in handles(Kind::Datatype, 3) {
            // SAFETY: the backend's third callback is the extent callback, of this type.
            let function: Extent = unsafe { std::mem::transmute(kept(2)) };
            // SAFETY: `function` has this type by the transmute above.
            // It does not access the addresses.
            let code = as_library(|| unsafe { function(datatype.1, scratch(3).cast(), state) });
            assert_eq!(code, failure().1, "{name}: the code of the extent function");
            arrives!(name; false, datatype.0, scratch(3).addr(), scratch(2).addr());
            for (place, (_, code_below)) in [failure(), other_failure()].into_iter().enumerate() {
                // SAFETY: the backend's first two callbacks are the conversions, of this type.
                let function: Convert<Below, $count> = unsafe { std::mem::transmute(kept(place)) };
                let (memory, file) = (scratch(4).cast(), scratch(5).cast());
                // SAFETY: `function` has this type by the transmute above.
                // It does not access the addresses.
                let code = as_library(|| unsafe {
                    function(memory, datatype.1, <$count>::MAX, file, 1 << 33, state)
                });
                assert_eq!(code, code_below, "{name}: the code of a conversion");
                arrives!(name; false, scratch(4).addr(), datatype.0, <$count>::MAX, scratch(5).addr(),
                    1i64 << 33, scratch(2).addr());
            }
        }
    }};
}

pub fn check() {
    check!(MPI_Register_datarep: c_int);
    check!(MPI_Register_datarep_c: i64);
}
