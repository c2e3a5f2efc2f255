//! Tests of elements that only atomic instructions update, and of atomicity.

use super::*;

#[repr(align(16))]
struct Window([f64; 4]);

/// Returns the memory from `base + from` on. Without stripes, an update under a lock panics.
fn memory<'a>(base: *mut u8, from: usize, stripes: &'a [Stripe]) -> Memory<'a> {
    let at = base.wrapping_add(from);
    Memory {
        reach: Reach::Here(at),
        address: at.addr() as u64,
        stripes,
        exclusion: Exclusion::Atomics,
        node: None,
        locked: false,
    }
}

fn stripes() -> [Stripe; STRIPES] {
    std::array::from_fn(|_| Stripe::new())
}

/// Adds a complex number. Returns the old value.
fn add(memory: &Memory<'_>, number: [f64; 2]) -> [f64; 2] {
    let sum = Combine::new(Predefined::Sum, Named::COMPLEX16).expect("a sum");
    let [re, im] = number.map(f64::to_ne_bytes);
    let input = [re, im].concat();
    let mut old = [0; 16];
    let run = std::iter::once(Run::new(0, 16));
    // SAFETY: the tests' windows hold two numbers, and both offsets that are used are inside.
    unsafe { sum.run(memory, run, &input, Some(&mut old)) }.expect("memory of this process");
    let part = |at: usize| f64::from_ne_bytes(*old[at..].first_chunk().expect("eight bytes"));
    [part(0), part(8)]
}

#[test]
fn an_element_of_sixteen_bytes_needs_no_lock_where_the_processor_takes_it_whole() {
    if !AtomicU128::is_lock_free() {
        return;
    }
    let mut window = Window([1.0, 2.0, 0.0, 0.0]);
    let number = memory(window.0.as_mut_ptr().cast(), 0, &[]);
    assert_eq!(add(&number, [10.0, 20.0]), [1.0, 2.0]);
    assert_eq!(add(&number, [0.0, 0.0]), [11.0, 22.0]);

    let mut integer = 5i128;
    let there = memory(std::ptr::from_mut(&mut integer).cast(), 0, &[]);
    let swap = |compare: i128, new: i128| {
        let (compare, new) = (compare.to_ne_bytes(), new.to_ne_bytes());
        let mut old = [0; 16];
        // SAFETY: `integer` is a local of 16 bytes, aligned as `i128` is.
        unsafe { compare_and_swap(&there, Named::INTEGER16, [&compare, &new], &mut old) }
            .expect("memory of this process");
        i128::from_ne_bytes(old)
    };
    assert_eq!(swap(4, i128::MAX), 5);
    assert_eq!(swap(5, i128::MIN + 1), 5);
    assert_eq!(swap(0, 0), i128::MIN + 1);
}

#[test]
fn elements_with_holes_or_between_two_places_are_updated_under_a_lock() {
    assert!(!is_atomic(Named::DOUBLE_INT, false, 0));
    assert!(!is_atomic(Named::LONG_INT, false, 0));
    assert!(!is_atomic(Named::COMPLEX16, false, 8));
    assert!(!is_atomic(Named::COMPLEX16, true, 0));
    assert!(!is_atomic(Named::COMPLEX32, false, 0));
}

#[test]
fn sums_of_complex_numbers_by_many_are_whole_wherever_the_number_lies() {
    const TIMES: usize = 2000;
    const THREADS: usize = 4;
    for from in [0, 8] {
        let mut window = Window([0.0; 4]);
        let base = window.0.as_mut_ptr().expose_provenance();
        let stripes = stripes();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let base = std::ptr::with_exposed_provenance_mut(base);
                    let number = memory(base, from, &stripes);
                    for _ in 0..TIMES {
                        let [re, im] = add(&number, [1.0, -1.0]);
                        assert_eq!(re, -im, "a number was read while it was written");
                    }
                });
            }
        });
        let all = (TIMES * THREADS) as f64;
        let number = memory(window.0.as_mut_ptr().cast(), from, &stripes);
        assert_eq!(add(&number, [0.0, 0.0]), [all, -all]);
    }
}
