//! Generator of the frame format's marked regions in Verilog.

use super::table::Format;
use super::{Region, aligned, capitals};

pub(super) fn lines(format: &Format, region: Region) -> Vec<String> {
    match region {
        Region::Format => format_constants(format),
        Region::Request => request(format),
        Region::Version => vec![format!("localparam [7:0] VERSION = 8'd{};", format.version)],
        Region::Operations => {
            let codes = format.operations.iter().map(|o| (o.name.as_str(), o.code));
            constants(format, codes)
        }
        Region::Statuses => {
            let codes = format.statuses.iter().map(|s| (s.name.as_str(), s.code));
            constants(format, codes)
        }
    }
}

fn format_constants(format: &Format) -> Vec<String> {
    let (count, check) = (format.counter_bits(), format.check_bits());
    let (body, last) = (format.body_bits(), format.frame_bits() - 1);
    let (start, polynomial) = (format.check.start, format.check.polynomial);
    let constants = [
        (count, "BODY_BITS", format!("{count}'d{body}")),
        (count, "LAST", format!("{count}'d{last}")),
        (check, "START", format!("{check}'h{start:04x}")),
        (check, "POLYNOMIAL", format!("{check}'h{polynomial:04x}")),
    ];
    let head = |(bits, name, value)| {
        let range = format!("[{}:0]", bits - 1);
        (
            format!("localparam {range:6} {name}"),
            format!("= {value};"),
        )
    };
    aligned(constants.map(head).into())
}

fn request(format: &Format) -> Vec<String> {
    let fields = format.body();
    let line = |(field, high, low): &(&super::table::Field, u32, u32)| {
        let range = format!("[{}:0]", field.bits - 1);
        let first = format!("wire {range:6} {}", field.request);
        (first, format!("= request_i[{high}:{low}];"))
    };
    aligned(fields.iter().map(line).collect())
}

fn constants<'a>(format: &Format, codes: impl Iterator<Item = (&'a str, u32)>) -> Vec<String> {
    let bits = format.code_bits();
    let line = |(name, code): (&str, u32)| {
        let first = format!("localparam [{}:0] {}", bits - 1, capitals(name));
        (first, format!("= {bits}'d{code};"))
    };
    aligned(codes.map(line).collect())
}
