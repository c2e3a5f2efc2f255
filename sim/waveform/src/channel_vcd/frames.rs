//! Requests and replies of the serial protocol as text.

use fpga_model::channels::frame::{Body, Operation, Status};
use fpga_model::channels::{Phase, Serial};

/// Returns the request that the receiver executes at the next edge as text,
/// for example `SetMask:1:0x3`.
pub(super) fn request_text(serial: &Serial) -> Option<String> {
    if serial.phase != Phase::Execute || serial.grant == 0 {
        return None;
    }
    let body = Body::from_bits(serial.shift);
    let operation = match (serial.check, Operation::from_code(body.code)) {
        (0, Some(operation)) => format!("{operation:?}"),
        (0, None) => format!("operation{}", body.code),
        _ => "spoilt".to_owned(),
    };
    Some(format!("{operation}:{}:{:#x}", body.channel, body.value))
}

/// Returns a reply as text, for example `Done:0x3`.
pub(super) fn reply_text(shift: u128) -> String {
    let body = Body::from_bits(shift);
    match Status::from_code(body.code) {
        Some(status) => format!("{status:?}:{:#x}", body.value),
        None => "-".to_owned(),
    }
}
