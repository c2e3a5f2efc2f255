//! Generator of an IP-XACT component (IEEE 1685-2014) with the registers.
//!
//! The component has one group and one node at the default page size;
//! dimensions are expressions of the parameters.

use super::notice;
use super::table::{Access, Block, Field, Map, Register};

pub(super) fn text(map: &Map) -> String {
    let [major, minor, patch] = map.version;
    let mut lines = vec![
        r#"<?xml version="1.0" encoding="UTF-8"?>"#.into(),
        format!("<!-- {} -->", notice()),
        r#"<ipxact:component xmlns:ipxact="http://www.accellera.org/XMLSchema/IPXACT/1685-2014">"#
            .into(),
        "  <ipxact:vendor>portcullis</ipxact:vendor>".into(),
        "  <ipxact:library>barrier</ipxact:library>".into(),
        "  <ipxact:name>barrier_regs</ipxact:name>".into(),
        format!("  <ipxact:version>{major}.{minor}.{patch}</ipxact:version>"),
        "  <ipxact:memoryMaps>".into(),
        "    <ipxact:memoryMap>".into(),
        "      <ipxact:name>barrier_regs</ipxact:name>".into(),
        "      <ipxact:addressBlock>".into(),
        "        <ipxact:name>barrier_regs</ipxact:name>".into(),
        "        <ipxact:baseAddress>'h0</ipxact:baseAddress>".into(),
        "        <ipxact:range>'h80000</ipxact:range>".into(),
        "        <ipxact:width>32</ipxact:width>".into(),
    ];
    lines.extend(map.blocks.iter().flat_map(block_lines));
    lines.extend(
        [
            "      </ipxact:addressBlock>",
            "      <ipxact:addressUnitBits>8</ipxact:addressUnitBits>",
            "    </ipxact:memoryMap>",
            "  </ipxact:memoryMaps>",
            "  <ipxact:parameters>",
            &parameter("N", "4"),
            &parameter("G", "1"),
            &parameter("STRIDE", "6"),
            "  </ipxact:parameters>",
            "</ipxact:component>",
        ]
        .map(str::to_owned),
    );
    lines.join("\n") + "\n"
}

fn parameter(name: &str, value: &str) -> String {
    format!(
        "    <ipxact:parameter parameterId=\"{name}\"><ipxact:name>{name}</ipxact:name><ipxact:value>{value}</ipxact:value></ipxact:parameter>"
    )
}

fn block_lines(block: &Block) -> Vec<String> {
    let mut lines = vec![
        "        <ipxact:registerFile>".into(),
        format!("          <ipxact:name>{}</ipxact:name>", block.name),
        format!(
            "          <ipxact:description>{}</ipxact:description>",
            escaped(&block.meaning)
        ),
    ];
    if block.stride.is_some() {
        lines.push(format!(
            "          <ipxact:dim>{}</ipxact:dim>",
            block.count
        ));
    }
    lines.push(format!(
        "          <ipxact:addressOffset>'h{:x}</ipxact:addressOffset>",
        block.base
    ));
    let range = match block.stride.as_deref() {
        None => "'h100".to_owned(),
        Some("2^STRIDE") => "$pow(2,STRIDE)".to_owned(),
        Some(number) => number.replace("0x", "'h"),
    };
    lines.push(format!("          <ipxact:range>{range}</ipxact:range>"));
    lines.extend(block.registers.iter().flat_map(register_lines));
    lines.push("        </ipxact:registerFile>".into());
    lines
}

fn register_lines(register: &Register) -> Vec<String> {
    let mut lines = vec![
        "          <ipxact:register>".into(),
        format!("            <ipxact:name>{}</ipxact:name>", register.name),
        format!(
            "            <ipxact:description>{}</ipxact:description>",
            escaped(&register.meaning)
        ),
        format!(
            "            <ipxact:addressOffset>'h{:x}</ipxact:addressOffset>",
            register.offset
        ),
        "            <ipxact:size>32</ipxact:size>".into(),
    ];
    let whole = [Field {
        high: 31,
        low: 0,
        name: "VALUE".into(),
        meaning: register.meaning.clone(),
    }];
    let fields = match register.fields.as_slice() {
        [] => &whole[..],
        fields => fields,
    };
    for field in fields {
        lines.extend(field_lines(register, field));
    }
    lines.push("          </ipxact:register>".into());
    lines
}

fn field_lines(register: &Register, field: &Field) -> Vec<String> {
    let width = field.high - field.low + 1;
    let (access, write) = match register.access {
        Access::ReadOnly => ("read-only", None),
        Access::ReadWrite => ("read-write", None),
        Access::WriteOnly => ("write-only", None),
        Access::WriteOneToClear => ("read-write", Some("oneToClear")),
    };
    let mut lines = vec![
        "            <ipxact:field>".into(),
        format!("              <ipxact:name>{}</ipxact:name>", field.name),
        format!(
            "              <ipxact:description>{}</ipxact:description>",
            escaped(&field.meaning)
        ),
        format!(
            "              <ipxact:bitOffset>{}</ipxact:bitOffset>",
            field.low
        ),
    ];
    if let Some(value) = register.reset_value() {
        let value = value >> field.low & u32::MAX >> (32 - width);
        lines.push(format!(
            "              <ipxact:resets><ipxact:reset><ipxact:value>'h{value:x}</ipxact:value></ipxact:reset></ipxact:resets>"
        ));
    }
    lines.push(format!(
        "              <ipxact:bitWidth>{width}</ipxact:bitWidth>"
    ));
    lines.push(format!(
        "              <ipxact:access>{access}</ipxact:access>"
    ));
    if let Some(write) = write {
        lines.push(format!(
            "              <ipxact:modifiedWriteValue>{write}</ipxact:modifiedWriteValue>"
        ));
    }
    lines.push("            </ipxact:field>".into());
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
