//! Tests of `MPI_Type_create_struct`, and of datatype contents that include named constants.

use super::*;

/// Returns the datatype whose envelope and contents are queried.
fn datatype() -> (Handle, Below) {
    predefined(Kind::Datatype)
}

macro_rules! structure {
    ($name:ident($count:ty, $displacement:ty)) => {{
        unsafe extern "C-unwind" fn mock(
            count: $count,
            lengths: *const $count,
            displacements: *const $displacement,
            types: *const Below,
            new: *mut Below,
        ) -> c_int {
            arrived();
            note!(count, lengths.addr(), displacements.addr());
            for i in 0..count as usize {
                note!(*types.add(i));
            }
            *new = made(7).1;
            answer()
        }
        for (length, (code, code_below)) in LENGTHS.into_iter().zip([(0, 0), failure()]) {
            let types = handles(Kind::Datatype, length);
            let mut new = null(Kind::Datatype).0;
            mock!($name = mock);
            answer_with(code_below);
            let found = call!($name(
                length as $count,
                scratch(1).cast(),
                scratch(2).cast(),
                of_program(&types).as_ptr(),
                &raw mut new,
            ));
            answer_with(0);
            let name = stringify!($name);
            assert_eq!(found, code, "{name}: the code");
            let mut expected = list![length, scratch(1).addr(), scratch(2).addr()];
            expected.extend(types.iter().map(|pair| pair.1 as u64));
            assert_eq!(noted(), expected, "{name}: what arrives below");
            assert_eq!(new, made(7).0, "{name}: the datatype");
        }
    }};
}

/// The contents of a datatype: the combiner, and the integers as pairs (program's, backend's).
struct Made {
    combiner: &'static str,
    integers: Vec<(c_int, c_int)>,
    /// The number of sizes that `MPI_Type_get_contents_c` returns as `MPI_Count` values.
    large: usize,
}

/// Pairs each integer with itself, for integers that are not constants.
fn same(numbers: &[c_int]) -> Vec<(c_int, c_int)> {
    numbers.iter().map(|number| (*number, *number)).collect()
}

fn subarray(large: bool) -> Made {
    let sizes = same(if large { &[] } else { &[9, 8, 3, 2, 1, 0] });
    Made {
        combiner: "MPI_COMBINER_SUBARRAY",
        integers: [same(&[2]), sizes, vec![word("order")]].concat(),
        large: if large { 6 } else { 0 },
    }
}

fn darray(large: bool) -> Made {
    let sizes = same(if large { &[] } else { &[10, 20] });
    let distributions = ["MPI_DISTRIBUTE_CYCLIC", "MPI_DISTRIBUTE_NONE"].map(constant);
    let arguments = [constant("MPI_DISTRIBUTE_DFLT_DARG"), (5, 5)];
    Made {
        combiner: "MPI_COMBINER_DARRAY",
        integers: [
            same(&[4, 1, 2]),
            sizes,
            distributions.to_vec(),
            arguments.to_vec(),
            same(&[2, 2]),
            vec![word("order")],
        ]
        .concat(),
        large: if large { 2 } else { 0 },
    }
}

/// Returns contents without constants.
/// The integers equal constants of the backend, so the test notices if they are converted.
fn indexed() -> Made {
    Made {
        combiner: "MPI_COMBINER_INDEXED",
        integers: same(&[word("order").1; 5]),
        large: 0,
    }
}

thread_local! {
    static MADE: std::cell::RefCell<Made> = std::cell::RefCell::new(indexed());
}

/// Returns the input datatypes that the mock reports in the contents.
fn parts() -> [(Handle, Below); 3] {
    [datatype(), made(3), null(Kind::Datatype)]
}

/// Writes the integers and the input datatypes, as the backend does.
unsafe fn write(integers: *mut c_int, datatypes: *mut Below) {
    MADE.with_borrow(|made| {
        for (i, integer) in made.integers.iter().enumerate() {
            *integers.add(i) = integer.1;
        }
    });
    for (i, part) in parts().iter().enumerate() {
        *datatypes.add(i) = part.1;
    }
}

fn combiner() -> c_int {
    MADE.with_borrow(|made| constant(made.combiner).1)
}

unsafe extern "C-unwind" fn envelope(
    datatype: Below,
    integers: *mut c_int,
    addresses: *mut c_int,
    datatypes: *mut c_int,
    written: *mut c_int,
) -> c_int {
    note!(datatype);
    *integers = MADE.with_borrow(|made| made.integers.len()) as c_int;
    *addresses = 1;
    *datatypes = 3;
    *written = combiner();
    0
}

unsafe extern "C-unwind" fn envelope_c(
    datatype: Below,
    integers: *mut i64,
    addresses: *mut i64,
    large: *mut i64,
    datatypes: *mut i64,
    written: *mut c_int,
) -> c_int {
    note!(datatype);
    *integers = MADE.with_borrow(|made| made.integers.len()) as i64;
    *addresses = 1;
    *large = MADE.with_borrow(|made| made.large) as i64;
    *datatypes = 3;
    *written = combiner();
    0
}

unsafe extern "C-unwind" fn contents(
    datatype: Below,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut isize,
    datatypes: *mut Below,
) -> c_int {
    arrived();
    note!(datatype, max_integers, max_addresses, max_datatypes);
    note!(integers.addr(), addresses.addr());
    write(integers, datatypes);
    answer()
}

unsafe extern "C-unwind" fn contents_c(
    datatype: Below,
    max_integers: i64,
    max_addresses: i64,
    max_large: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    large: *mut i64,
    datatypes: *mut Below,
) -> c_int {
    arrived();
    note!(
        datatype,
        max_integers,
        max_addresses,
        max_large,
        max_datatypes
    );
    note!(integers.addr(), addresses.addr(), large.addr());
    write(integers, datatypes);
    answer()
}

/// Checks the contents in the program's arrays.
fn assert_contents(name: &str, integers: &[c_int], datatypes: &[Handle]) {
    MADE.with_borrow(|made| {
        let expected: Vec<c_int> = made.integers.iter().map(|pair| pair.0).collect();
        let combiner = made.combiner;
        assert_eq!(
            integers[..expected.len()],
            expected,
            "{name}: integers of {combiner}"
        );
    });
    assert_eq!(datatypes, parts().map(|part| part.0), "{name}: datatypes");
}

fn small(made: Made) {
    MADE.set(made);
    let (mut integers, mut datatypes) = ([-7; 24], [null(Kind::Datatype).0; 3]);
    let places = (integers.as_mut_ptr(), datatypes.as_mut_ptr());
    below!(MPI_Type_get_envelope = envelope);
    mock!(MPI_Type_get_contents = contents);
    let code = call!(MPI_Type_get_contents(
        datatype().0,
        24,
        25,
        26,
        places.0,
        scratch(1).cast(),
        places.1,
    ));
    assert_eq!(code, 0, "MPI_Type_get_contents");
    arrives!("MPI_Type_get_contents";
        datatype().1, datatype().1, 24, 25, 26, places.0.addr(), scratch(1).addr());
    assert_contents("MPI_Type_get_contents", &integers, &datatypes);
}

fn large(made: Made) {
    MADE.set(made);
    let (mut integers, mut datatypes) = ([-7; 24], [null(Kind::Datatype).0; 3]);
    let places = (integers.as_mut_ptr(), datatypes.as_mut_ptr());
    below!(MPI_Type_get_envelope_c = envelope_c);
    mock!(MPI_Type_get_contents_c = contents_c);
    let code = call!(MPI_Type_get_contents_c(
        datatype().0,
        24,
        25,
        26,
        27,
        places.0,
        scratch(1).cast(),
        scratch(2).cast(),
        places.1,
    ));
    assert_eq!(code, 0, "MPI_Type_get_contents_c");
    arrives!("MPI_Type_get_contents_c";
        datatype().1, datatype().1, 24, 25, 26, 27,
        places.0.addr(), scratch(1).addr(), scratch(2).addr());
    assert_contents("MPI_Type_get_contents_c", &integers, &datatypes);
}

/// Checks the return code of failing queries.
fn failing() {
    below!(
        MPI_Type_get_envelope = envelope,
        MPI_Type_get_envelope_c = envelope_c
    );
    let (mut integers, mut datatypes) = ([0; 24], [null(Kind::Datatype).0; 3]);
    let places = (integers.as_mut_ptr(), datatypes.as_mut_ptr());
    answer_with(failure().1);
    let code = call!(MPI_Type_get_contents(
        datatype().0,
        24,
        0,
        0,
        places.0,
        scratch(1).cast(),
        places.1,
    ));
    let code_c = call!(MPI_Type_get_contents_c(
        datatype().0,
        24,
        0,
        0,
        0,
        places.0,
        scratch(1).cast(),
        scratch(2).cast(),
        places.1,
    ));
    answer_with(0);
    assert_eq!(code, failure().0, "MPI_Type_get_contents: the code");
    assert_eq!(code_c, failure().0, "MPI_Type_get_contents_c: the code");
}

pub fn check() {
    structure!(MPI_Type_create_struct(c_int, isize));
    structure!(MPI_Type_create_struct_c(i64, i64));
    for made in [subarray(false), darray(false), indexed()] {
        small(made);
    }
    for made in [
        subarray(false),
        darray(false),
        indexed(),
        subarray(true),
        darray(true),
    ] {
        large(made);
    }
    failing();
}
