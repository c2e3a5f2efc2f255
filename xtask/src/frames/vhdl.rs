//! Generator of the frame format's marked regions in VHDL.

use super::table::{Field, Format};
use super::{Region, aligned, capitals};

pub(super) fn lines(format: &Format, region: Region) -> Vec<String> {
    match region {
        Region::Format => format_constants(format),
        Region::Request => request(format),
        Region::Version => vec![format!("constant VERSION : natural := {};", format.version)],
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
    let number = |value: u32| {
        let kind = format!(": unsigned({} downto 0)", count - 1);
        format!("{kind} := to_unsigned({value}, {count});")
    };
    let vector = |value: u16| {
        let kind = format!(": std_logic_vector({} downto 0)", check - 1);
        format!("{kind} := \"{value:0width$b}\";", width = check as usize)
    };
    let constants = [
        ("BODY_BITS", number(format.body_bits())),
        ("LAST", number(format.frame_bits() - 1)),
        ("START", vector(format.check.start)),
        ("POLYNOMIAL", vector(format.check.polynomial)),
    ];
    let line = |(name, value)| (format!("constant {name}"), value);
    aligned(constants.map(line).into())
}

/// Returns the assignments of a request's fields. Operation and channel are `unsigned`, because the design compares them;
/// the argument is a vector.
fn request(format: &Format) -> Vec<String> {
    let line = |(field, high, low): &(&Field, u32, u32)| {
        let slice = format!("request_i({high} downto {low})");
        let value = match field.bits == format.code_bits() {
            true => format!("<= unsigned({slice});"),
            false => format!("<= {slice};"),
        };
        (field.request.clone(), value)
    };
    aligned(format.body().iter().map(line).collect())
}

fn constants<'a>(format: &Format, codes: impl Iterator<Item = (&'a str, u32)>) -> Vec<String> {
    let width = format.code_bits() as usize;
    let line = |(name, code): (&str, u32)| {
        let first = format!("constant {}", capitals(name));
        (first, format!(": code := \"{code:0width$b}\";"))
    };
    aligned(codes.map(line).collect())
}
