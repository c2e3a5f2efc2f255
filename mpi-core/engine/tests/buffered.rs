//! Tests of buffered sends.

use mpi_core::datatype::Scratch;
use mpi_core::pml::buffered::Buffer;
use mpi_core::request::PROC_NULL;
use mpi_core::testing::Job;

#[test]
fn what_goes_nowhere_needs_no_buffer() {
    Job::of(1).run(|engine| {
        let (world, buffer) = (engine.world().expect("a world"), Buffer::default());
        let word = Scratch::bytes(8).expect("memory");
        let sent = buffer.send(&world, &word.all().as_send(), PROC_NULL, 7);
        assert!(sent.is_ok(), "{sent:?}");
    });
}

#[test]
fn a_message_that_no_memory_holds_a_copy_of_is_refused_and_the_next_one_goes() {
    Job::of(1).run(|engine| {
        let (world, buffer) = (engine.world().expect("a world"), Buffer::default());
        buffer.attach(None).expect("without limit");
        let word = Scratch::bytes(8).expect("memory");
        let small = word.all().as_send();
        let huge = small.with_count(1 << 60);
        let error = buffer.send(&world, &huge, 0, 7).expect_err("too much");
        let text = error.to_string();
        assert!(text.contains("no memory for a copy"), "{text}");
        assert!(text.contains(&(1_u64 << 60).to_string()), "{text}");
        buffer.send(&world, &small, 0, 7).expect("sent");
        let status = world.p2p().recv(word.all(), 0, 7).expect("received");
        assert_eq!(status.bytes, 8);
        buffer.detach(engine).expect("empty");
    });
}
