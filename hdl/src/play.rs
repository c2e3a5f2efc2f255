//! Generator of testbenches, in Verilog and in VHDL, that apply a text of inputs to any design: one line of bits per clock edge.
//!
//! Both testbenches set the inputs half a period before the edge,
//! and write the outputs just before they set the next inputs.
//! So the traces of a design in Verilog,
//! in VHDL and as a netlist can be compared as texts.
//! The first port of the list has the leftmost bits of a line.

use std::fmt::Write as _;

use crate::source::{Source, source};

/// The testbench for Icarus; it reads `+stimulus=FILE`, writes `+trace=FILE` and dumps the design's signals to `+vcd=FILE`.
pub const BENCH: Source = source!("shared/dv/play_tb.v");

/// A port of the design, other than its clock `clk_i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    name: &'static str,
    bits: usize,
    is_vector: bool,
}

/// Returns a port of one bit.
pub const fn bit(name: &'static str) -> Port {
    Port {
        name,
        bits: 1,
        is_vector: false,
    }
}

/// Returns a port that is a vector of this number of bits.
pub const fn bits(name: &'static str, bits: usize) -> Port {
    Port {
        name,
        bits,
        is_vector: true,
    }
}

/// A design with its parameters and ports.
#[derive(Debug, Clone)]
pub struct Play {
    /// The name of the design's top module.
    pub top: &'static str,
    /// Names and values of the design's parameters.
    pub parameters: Vec<(&'static str, usize)>,
    /// The design's inputs, without the clock.
    pub inputs: Vec<Port>,
    /// The design's outputs.
    pub outputs: Vec<Port>,
}

fn width(ports: &[Port]) -> usize {
    ports.iter().map(|port| port.bits).sum()
}

/// Returns each port with its highest and lowest bit index in a line.
fn placed(ports: &[Port]) -> impl Iterator<Item = (&Port, usize, usize)> {
    let mut above = width(ports);
    ports.iter().map(move |port| {
        let high = above - 1;
        above -= port.bits;
        (port, high, above)
    })
}

impl Play {
    /// Returns the parameters of [`BENCH`]: the numbers of input and output bits.
    pub fn bench_parameters(&self) -> [(&'static str, usize); 2] {
        [("W", width(&self.inputs)), ("V", width(&self.outputs))]
    }

    /// Returns the Verilog module `play`: the design with one vector of inputs and one of outputs.
    ///
    /// A netlist has no parameters; its top module is called `top` and has the design's ports.
    pub fn verilog(&self, is_netlist: bool) -> String {
        let ends = |ports, vector: &str| {
            placed(ports)
                .map(|(port, high, low)| {
                    format!(",\n        .{}({vector}[{high}:{low}])", port.name)
                })
                .collect::<String>()
        };
        let values = self.parameters.iter();
        let values: Vec<_> = values
            .map(|(name, value)| format!(".{name}({value})"))
            .collect();
        let design = match is_netlist {
            true => self.top.to_owned(),
            false => format!("{} #({})", self.top, values.join(", ")),
        };
        format!(
            "`default_nettype none\nmodule play (\n    input wire clk_i,\n    input wire [{}:0] in_i,\n    output wire [{}:0] out_o\n);\n    \
             {design} dut (\n        .clk_i(clk_i){}{}\n    );\nendmodule\n`default_nettype wire\n",
            width(&self.inputs) - 1,
            width(&self.outputs) - 1,
            ends(&self.inputs, "in_i"),
            ends(&self.outputs, "out_o"),
        )
    }

    /// Returns the VHDL testbench `play_tb`, which reads the file `stimulus` and writes the file `trace`.
    pub fn vhdl(&self) -> String {
        let ends = |ports, vector: &str| {
            placed(ports).fold(String::new(), |mut text, (port, high, low)| {
                let range = match port.is_vector {
                    true => format!("{high} downto {low}"),
                    false => low.to_string(),
                };
                let _ = write!(text, ",\n    {} => {vector}({range})", port.name);
                text
            })
        };
        let values = self.parameters.iter();
        let values: Vec<_> = values
            .map(|(name, value)| format!("{name} => {value}"))
            .collect();
        format!(
            "library ieee;\nuse ieee.std_logic_1164.all;\nuse std.textio.all;\n\
             entity play_tb is\nend entity;\n\
             architecture bench of play_tb is\n  \
             signal clk : std_logic := '0';\n  \
             signal ins : std_logic_vector({} downto 0) := (others => '0');\n  \
             signal outs : std_logic_vector({} downto 0);\nbegin\n  \
             dut : entity work.{} generic map ({}) port map (\n    clk_i => clk{}{}\n  );\n  \
             process\n    file stimulus : text open read_mode is \"stimulus\";\n    file trace : text open write_mode is \"trace\";\n    \
             variable text_in, text_out : line;\n    variable value : bit_vector(ins'range);\n  begin\n    \
             while not endfile(stimulus) loop\n      readline(stimulus, text_in);\n      read(text_in, value);\n      \
             ins <= to_stdlogicvector(value);\n      wait for 20 ns;\n      clk <= '1';\n      wait for 20 ns;\n      \
             write(text_out, to_bitvector(outs));\n      writeline(trace, text_out);\n      clk <= '0';\n    \
             end loop;\n    wait;\n  end process;\nend architecture;\n",
            width(&self.inputs) - 1,
            width(&self.outputs) - 1,
            self.top,
            values.join(", "),
            ends(&self.inputs, "ins"),
            ends(&self.outputs, "outs"),
        )
    }
}

/// Returns the lowest `count` bits of a number as binary digits, for use in a line of inputs.
pub fn in_bits(value: u64, count: usize) -> String {
    (0..count)
        .rev()
        .map(|at| if value >> at & 1 == 1 { '1' } else { '0' })
        .collect()
}
