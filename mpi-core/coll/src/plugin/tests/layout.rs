//! Test that the operation numbers in `plugin.h` are equal to those of [`CallId`].

use crate::CallId;
use crate::plugin::abi;

#[test]
fn each_operation_of_the_header_has_the_number_of_its_call() {
    for call in CallId::ALL {
        let name = format!("PORTCULLIS_{}", call.name().to_uppercase());
        let constant = abi::CONSTANTS
            .iter()
            .find(|(constant, _)| *constant == name);
        assert_eq!(
            constant.map(|(_, value)| *value),
            Some(call as i64),
            "{name}"
        );
    }
}
