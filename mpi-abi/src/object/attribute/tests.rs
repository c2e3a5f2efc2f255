//! Tests of attributes: copy and delete callbacks run, also after the keyval was freed.

use super::*;
use std::sync::Mutex;

/// The calls of the copy and delete callbacks below, in order.
/// The tests that use `CALLS` lock `ONE_AT_A_TIME`.
static CALLS: Mutex<Vec<(char, usize, c_int)>> = Mutex::new(Vec::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

unsafe extern "C-unwind" fn copy_next(
    handle: usize,
    keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    CALLS.lock().unwrap().push(('c', handle, keyval));
    // SAFETY: the caller passes the addresses of a pointer and of an int.
    unsafe {
        *copied.cast::<*mut c_void>() = value.wrapping_byte_add(1);
        *flag = 1;
    }
    MPI_SUCCESS
}

unsafe extern "C-unwind" fn delete_noted(
    handle: usize,
    keyval: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    CALLS.lock().unwrap().push(('d', handle, keyval));
    MPI_SUCCESS
}

unsafe extern "C-unwind" fn delete_refused(
    _: usize,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    MPI_ERR_KEYVAL
}

fn value(n: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(n)
}

#[test]
fn attributes_are_copied_by_their_function_and_deleted_last_first() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    CALLS.lock().unwrap().clear();
    let keyvals = Keyvals::new();
    let key = |copy| {
        keyvals
            .create(Carrier::Comm, copy, Some(delete_noted), value(0))
            .unwrap()
    };
    let (never, always, ask) = (
        key(Copy::Never),
        key(Copy::Always),
        key(Copy::Ask(copy_next)),
    );
    let (old, new) = (RefCell::default(), RefCell::default());
    let owner = |handle, attributes| Owner {
        carrier: Carrier::Comm,
        handle,
        attributes,
        keyvals: &keyvals,
    };
    let (old, new) = (owner(7, &old), owner(8, &new));
    for (i, k) in [never, always, ask].into_iter().enumerate() {
        old.set(k, value(10 * i)).unwrap();
    }
    old.copy_all(&new).unwrap();
    assert_eq!(new.get(never).unwrap(), None);
    assert_eq!(new.get(always).unwrap(), Some(value(10)));
    assert_eq!(new.get(ask).unwrap(), Some(value(21)));
    new.delete_all().unwrap();
    assert_eq!(
        *CALLS.lock().unwrap(),
        [('c', 7, ask), ('d', 8, ask), ('d', 8, always)]
    );
}

#[test]
fn a_freed_keyval_serves_its_attributes_to_their_end() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    CALLS.lock().unwrap().clear();
    let keyvals = Keyvals::new();
    let keyval = keyvals
        .create(Carrier::Win, Copy::Never, Some(delete_noted), value(0))
        .unwrap();
    let attributes = RefCell::default();
    let owner = Owner {
        carrier: Carrier::Win,
        handle: 3,
        attributes: &attributes,
        keyvals: &keyvals,
    };
    owner.set(keyval, value(1)).unwrap();
    keyvals.free(Carrier::Win, keyval).unwrap();
    let refused = owner.set(keyval, value(2)).unwrap_err();
    assert_eq!(refused.code(), MPI_ERR_KEYVAL);
    assert!(refused.message().contains("has been freed"));
    owner.delete_all().unwrap();
    assert_eq!(*CALLS.lock().unwrap(), [('d', 3, keyval)]);
    assert!(
        keyvals.get(keyval).is_none(),
        "the last attribute takes the keyval with it"
    );
}

#[test]
fn a_freed_keyval_still_reads_and_deletes_its_attributes() {
    for carrier in [Carrier::Comm, Carrier::Type, Carrier::Win] {
        let keyvals = Keyvals::new();
        let keyval = keyvals
            .create(carrier, Copy::Never, None, value(0))
            .unwrap();
        let (first, second) = (RefCell::default(), RefCell::default());
        let owner = |handle, attributes| Owner {
            carrier,
            handle,
            attributes,
            keyvals: &keyvals,
        };
        let (first, second) = (owner(1, &first), owner(2, &second));
        first.set(keyval, value(1)).unwrap();
        second.set(keyval, value(2)).unwrap();
        for _ in 0..3 {
            keyvals.free(carrier, keyval).unwrap();
        }
        first.delete(keyval).unwrap();
        assert_eq!(first.get(keyval).unwrap(), None, "{carrier:?}");
        assert_eq!(second.get(keyval).unwrap(), Some(value(2)), "{carrier:?}");
        second.delete(keyval).unwrap();
        assert_eq!(second.get(keyval).unwrap_err().code(), MPI_ERR_KEYVAL);
        assert_eq!(
            keyvals.free(carrier, keyval).unwrap_err().code(),
            MPI_ERR_KEYVAL
        );
    }
}

#[test]
fn a_refused_deletion_keeps_the_attribute_and_names_the_keyval() {
    let keyvals = Keyvals::new();
    let keyval = keyvals
        .create(Carrier::Type, Copy::Never, Some(delete_refused), value(0))
        .unwrap();
    let attributes = RefCell::default();
    let owner = Owner {
        carrier: Carrier::Type,
        handle: 3,
        attributes: &attributes,
        keyvals: &keyvals,
    };
    owner.set(keyval, value(1)).unwrap();
    let failure = owner.delete(keyval).unwrap_err();
    assert_eq!(failure.code(), MPI_ERR_KEYVAL);
    assert!(failure.message().contains(&format!("keyval {keyval}")));
    assert_eq!(owner.get(keyval).unwrap(), Some(value(1)));
    assert_eq!(
        keyvals.free(Carrier::Comm, keyval).unwrap_err().code(),
        MPI_ERR_KEYVAL
    );
}
