//! Conformance tests of transports; one line runs them for a transport: `btl_suite!(|| net)`.
//!
//! A [`Net`] contains the transports of all processes of a small job, and the pair of sender and receiver to test; for a loopback both are the same process.

mod abandoned;
mod copies;
mod encounters;
mod in_place;
mod lending;
mod messages;
mod net;
mod remote_memory;
mod threads;

pub use abandoned::*;
pub use copies::*;
pub use encounters::*;
pub use in_place::*;
pub use lending::*;
pub use messages::*;
pub use net::*;
pub use remote_memory::*;
pub use threads::*;

/// Runs all tests for a transport. The closure opens a new [`Net`], or returns `None` if this machine lacks something that the transport needs.
#[macro_export]
macro_rules! btl_suite {
    // Long tests only (`--long`): for a second configuration of a transport
    // whose default configuration already has a `btl_suite!` line.
    (long $net:expr) => {
        $crate::btl_suite!(long $net;
            messages_of_all_sizes_arrive_once_each_in_order
            every_length_up_to_the_eager_limit_arrives_whole
            the_longest_messages_arrive_whole
            would_block_takes_nothing_and_room_comes_back
            a_sent_payload_may_be_overwritten_at_once
            what_waits_is_pending_until_delivered
            polls_that_first_check_for_work_miss_no_message_and_no_space
            a_sink_may_send_and_is_never_entered_twice
            data_are_delivered_in_place_or_not_at_all
            a_place_that_is_given_up_is_not_written_afterwards
            two_ranks_fill_each_others_places
            two_ranks_exchange_at_full_speed);
    };
    (long $net:expr; $($claim:ident)*) => {
        $(#[test]
        #[ignore = "long: cargo xtask test --long"]
        fn $claim() {
            let net: Option<$crate::btl::suite::Net> = ($net)().into();
            if let Some(net) = net {
                $crate::btl::suite::$claim(net);
            }
        })*
    };
    ($net:expr) => {
        $crate::btl_suite!($net;
            messages_of_all_sizes_arrive_once_each_in_order
            lengths_up_to_the_eager_limit_arrive_whole
            the_longest_messages_arrive_whole
            a_longer_message_is_refused_and_nothing_sent
            would_block_takes_nothing_and_room_comes_back
            a_sent_payload_may_be_overwritten_at_once
            what_waits_is_pending_until_delivered
            polls_that_first_check_for_work_miss_no_message_and_no_space
            a_sink_may_send_and_is_never_entered_twice
            limits_make_sense_and_strangers_are_not_reached
            single_copy_reads_the_peers_memory_or_says_why_not
            a_copy_together_is_whole_whoever_does_how_much
            what_is_lent_arrives_whole_and_once_or_not_at_all
            registered_memory_is_read_and_written_whole_or_not_at_all
            data_are_delivered_in_place_or_not_at_all
            a_place_that_is_given_up_is_not_written_afterwards
            two_ranks_fill_each_others_places
            a_peer_that_is_abandoned_before_it_is_connected_is_not_waited_for
            a_peer_that_is_abandoned_while_it_is_connected_is_not_waited_for
            two_ranks_exchange_at_full_speed);
        $crate::btl_suite!(long $net; every_length_up_to_the_eager_limit_arrives_whole);

        #[test]
        #[ignore = "long: cargo xtask test --long"]
        fn two_ranks_exchange_at_full_speed_for_long() {
            let net: Option<$crate::btl::suite::Net> = ($net)().into();
            if let Some(net) = net {
                $crate::btl::suite::two_ranks_exchange(net, 100_000);
            }
        }
    };
    ($net:expr; $($claim:ident)*) => {
        $(#[test]
        fn $claim() {
            let net: Option<$crate::btl::suite::Net> = ($net)().into();
            if let Some(net) = net {
                $crate::btl::suite::$claim(net);
            }
        })*
    };
}
