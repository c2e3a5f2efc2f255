//! Generator of modules that connect a bus front with `barrier_regs`, in Verilog and VHDL.
//! A front is the adapter from a bus protocol to the register block, such as `apb_front`.
//!
//! Each generated module (a *unit*) has the bus ports of the front, the node ports of
//! `barrier_regs`, and the parameters of both.
//! Its body only connects front and block. Since it is generated, each port of `barrier_regs` is
//! declared only once per language.

use super::heads::{self, Head, Port};
use crate::regions::{self, Language};
use crate::workspace;
use std::fs;

const FOLDER: &str = "hdl/registers/rtl";
/// The name of the register block, which each unit contains.
const BLOCK: &str = "barrier_regs";
/// The names of the ports between a front and the register block, without the suffix `_i` or `_o`.
const REQUESTS: [&str; 8] = [
    "raddr", "rdata", "rerror", "write", "waddr", "wdata", "wstrb", "werror",
];

/// The buses, as in the names of the units.
const BUSES: [&str; 3] = ["axi4lite", "wishbone", "apb"];

/// A generated unit: its file, the front from which it is generated, and the generated lines.
pub struct Joined {
    /// The path of the file with the region.
    pub file: String,
    /// The path of the front; the region names it as its source.
    pub front: String,
    lines: Vec<String>,
}

/// Returns the units of all buses in both languages.
pub fn joined() -> Result<Vec<Joined>, String> {
    let mut all = Vec::new();
    for language in [Language::Verilog, Language::Vhdl] {
        let extension = match language {
            Language::Vhdl => "vhd",
            _ => "v",
        };
        let block = head(language, &format!("{FOLDER}/{BLOCK}.{extension}"))?;
        for bus in BUSES {
            let file = format!("{FOLDER}/barrier_{bus}.{extension}");
            let front = format!("{FOLDER}/{bus}_front.{extension}");
            let unit = Unit {
                bus,
                front: head(language, &front)?,
                block: &block,
            };
            let lines = match language {
                Language::Vhdl => unit.vhdl(),
                _ => unit.verilog(),
            };
            all.push(Joined { file, front, lines });
        }
    }
    Ok(all)
}

impl Joined {
    /// Returns the text of the file with its region regenerated.
    pub fn regenerated(&self, text: &str) -> Result<String, String> {
        regions::regenerated(&self.front, &self.file, text, |name| {
            (name == "unit").then(|| self.lines.clone())
        })
    }
}

fn head(language: Language, file: &str) -> Result<Head, String> {
    let path = workspace::root().join(file);
    let text =
        fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    let head = match language {
        Language::Vhdl => heads::vhdl(&text),
        _ => heads::verilog(&text),
    };
    head.map_err(|what| format!("{file}: {what}"))
}

/// A bus front and the register block.
struct Unit<'a> {
    bus: &'a str,
    front: Head,
    block: &'a Head,
}

/// Returns the name of the internal signal for a port between front and block; `None` for any other port.
fn request(port: &Port) -> Option<&'static str> {
    let name = port
        .name
        .strip_suffix("_i")
        .or(port.name.strip_suffix("_o"))?;
    REQUESTS.into_iter().find(|request| *request == name)
}

fn widest<'a>(names: impl IntoIterator<Item = &'a str>) -> usize {
    names.into_iter().map(str::len).max().unwrap_or(0)
}

impl Unit<'_> {
    /// Returns the ports of the front (the bus adapter) that precede its ports to the register block:
    /// those of the bus, and clock and reset if the front has them.
    fn bus_ports(&self) -> impl Iterator<Item = &Port> {
        self.front.ports[..self.front.outer].iter()
    }

    /// Returns the ports of the block for nodes and instruments: all except requests, clock and reset.
    fn node_ports(&self) -> impl Iterator<Item = &Port> {
        let ports = self.block.ports.iter();
        ports.filter(|port| request(port).is_none() && !is_clocking(port))
    }

    /// Returns the ports of the generated module: clock and reset, the bus, and the ports for nodes and instruments.
    fn ports(&self) -> Vec<&Port> {
        let clocking = self.block.ports.iter().filter(|port| is_clocking(port));
        let bus = self.bus_ports().filter(|port| !is_clocking(port));
        clocking.chain(bus).chain(self.node_ports()).collect()
    }

    /// Returns the ports of the front, each with the signal connected to it.
    fn front_ends(&self) -> Vec<(&str, &str)> {
        let outer = self.bus_ports().map(|port| (&*port.name, &*port.name));
        let inner = self.front.ports[self.front.outer..].iter();
        let inner = inner.map(|port| (&*port.name, request(port).unwrap_or(&port.name)));
        outer.chain(inner).collect()
    }

    /// Returns the ports of the block, each with the signal connected to it.
    fn block_ends(&self) -> Vec<(&str, &str)> {
        let ports = self.block.ports.iter();
        ports
            .map(|port| (&*port.name, request(port).unwrap_or(&port.name)))
            .collect()
    }

    fn verilog(&self) -> Vec<String> {
        let mut lines = vec![format!("module barrier_{} #(", self.bus)];
        let parameters = self.front.parameters.iter().chain(&self.block.parameters);
        let parameters: Vec<String> = parameters
            .map(|parameter| format!("    parameter {}", parameter.text))
            .collect();
        lines.extend(separated(parameters, ","));
        lines.push(") (".into());
        let ports = self.ports();
        let width = widest(ports.iter().map(|port| &*port.kind));
        let port = |port: &&Port| {
            let way = if port.is_output { "output" } else { "input " };
            format!("    {way} wire {:width$} {}", port.kind, port.name)
        };
        lines.extend(separated(ports.iter().map(port).collect(), ","));
        lines.push(");".into());
        lines.extend(
            [
                "    wire [18:0] raddr, waddr;",
                "    wire [31:0] rdata, wdata;",
                "    wire [3:0]  wstrb;",
                "    wire        rerror, write, werror;",
                "",
            ]
            .map(str::to_owned),
        );
        let front = format!("{}_front", self.bus);
        lines.extend(verilog_instance(
            &front,
            "front",
            &self.front,
            &self.front_ends(),
        ));
        lines.push(String::new());
        lines.extend(verilog_instance(
            BLOCK,
            "regs",
            self.block,
            &self.block_ends(),
        ));
        lines.push("endmodule".into());
        lines
    }

    fn vhdl(&self) -> Vec<String> {
        let name = format!("barrier_{}", self.bus);
        let mut lines = vec![format!("entity {name} is"), "  generic (".into()];
        let generics: Vec<_> = self
            .front
            .parameters
            .iter()
            .chain(&self.block.parameters)
            .collect();
        let width = widest(generics.iter().map(|generic| &*generic.name));
        // The register block checks the ranges of its generics, so these types need none.
        let fronts = self.front.parameters.len();
        let generic = |(number, generic): (usize, &&heads::Parameter)| {
            let kind = match number < fronts {
                true => generic.text.clone(),
                false => format!("{} := {}", generic.kind(), generic.default()),
            };
            format!("    {:width$} : {kind}", generic.name)
        };
        let generics = generics.iter().enumerate().map(generic).collect();
        lines.extend(separated(generics, ";"));
        lines.push("  );".into());
        lines.extend(vhdl_ports("  ", &self.ports()));
        lines.push("end entity;".into());
        lines.push(String::new());
        lines.push("-- Components and configurations: see toggle_barrier.vhd.".into());
        lines.push(format!("architecture rtl of {name} is"));
        let front = format!("{}_front", self.bus);
        for (unit, head) in [(&*front, &self.front), (BLOCK, self.block)] {
            lines.extend(vhdl_component(unit, head));
            lines.push(String::new());
        }
        for unit in [&*front, BLOCK] {
            lines.push(format!("  for all : {unit} use entity work.{unit}(rtl);"));
        }
        lines.extend(
            [
                "",
                "  signal raddr, waddr          : std_logic_vector(18 downto 0);",
                "  signal rdata, wdata          : std_logic_vector(31 downto 0);",
                "  signal wstrb                 : std_logic_vector(3 downto 0);",
                "  signal rerror, write, werror : std_logic;",
                "begin",
            ]
            .map(str::to_owned),
        );
        lines.extend(vhdl_instance(
            &front,
            "front",
            &self.front,
            &self.front_ends(),
        ));
        lines.push(String::new());
        lines.extend(vhdl_instance(BLOCK, "regs", self.block, &self.block_ends()));
        lines.push("end architecture;".into());
        lines
    }
}

fn is_clocking(port: &Port) -> bool {
    ["clk_i", "rst_i"].contains(&&*port.name)
}

/// Appends a separator to each line except the last.
fn separated(mut lines: Vec<String>, separator: &str) -> Vec<String> {
    let last = lines.len().saturating_sub(1);
    for line in &mut lines[..last] {
        line.push_str(separator);
    }
    lines
}

fn verilog_instance(unit: &str, name: &str, head: &Head, ends: &[(&str, &str)]) -> Vec<String> {
    let parameters = head.parameters.iter();
    let parameters: Vec<String> = parameters
        .map(|parameter| format!(".{0}({0})", parameter.name))
        .collect();
    let mut lines = match &parameters[..] {
        [one] => vec![format!("    {unit} #({one}) {name} (")],
        _ => {
            let mut lines = vec![format!("    {unit} #(")];
            let indented = parameters.iter().map(|one| format!("        {one}"));
            lines.extend(separated(indented.collect(), ","));
            lines.push(format!("    ) {name} ("));
            lines
        }
    };
    let width = widest(ends.iter().map(|(port, _)| *port));
    let end = |(port, to): &(&str, &str)| format!("        .{port:width$} ({to})");
    lines.extend(separated(ends.iter().map(end).collect(), ","));
    lines.push("    );".into());
    lines
}

fn vhdl_ports(indent: &str, ports: &[&Port]) -> Vec<String> {
    let width = widest(ports.iter().map(|port| &*port.name));
    let port = |port: &&Port| {
        let way = if port.is_output { "out" } else { "in " };
        format!("{indent}  {:width$} : {way} {}", port.name, port.kind)
    };
    let mut lines = vec![format!("{indent}port (")];
    lines.extend(separated(ports.iter().map(port).collect(), ";"));
    lines.push(format!("{indent});"));
    lines
}

fn vhdl_component(unit: &str, head: &Head) -> Vec<String> {
    let mut lines = vec![format!("  component {unit}")];
    match &head.parameters[..] {
        [one] => lines.push(format!("    generic ({} : {});", one.name, one.kind())),
        several => {
            let width = widest(several.iter().map(|generic| &*generic.name));
            let generic = |generic: &heads::Parameter| {
                format!("      {:width$} : {}", generic.name, generic.kind())
            };
            lines.push("    generic (".into());
            lines.extend(separated(several.iter().map(generic).collect(), ";"));
            lines.push("    );".into());
        }
    }
    lines.extend(vhdl_ports("    ", &head.ports.iter().collect::<Vec<_>>()));
    lines.push("  end component;".into());
    lines
}

fn vhdl_instance(unit: &str, name: &str, head: &Head, ends: &[(&str, &str)]) -> Vec<String> {
    let generics = head.parameters.iter();
    let generics: Vec<String> = generics
        .map(|generic| format!("{0} => {0}", generic.name))
        .collect();
    let mut lines = vec![
        format!("  {name} : {unit}"),
        format!("    generic map ({})", generics.join(", ")),
        "    port map (".into(),
    ];
    let width = widest(ends.iter().map(|(port, _)| *port));
    let end = |(port, to): &(&str, &str)| format!("      {port:width$} => {to}");
    lines.extend(separated(ends.iter().map(end).collect(), ","));
    lines.push("    );".into());
    lines
}
