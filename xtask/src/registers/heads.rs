//! Parser of the parameters and ports of a module (Verilog) or entity (VHDL) of the register block:
//! the sources have one port or parameter per line.

/// A parameter of Verilog, or a generic of VHDL.
pub(super) struct Parameter {
    pub name: String,
    /// The text of the declaration: `[31:0] CLOCK_HZ = 32'd0` in Verilog, `natural := 0` in VHDL.
    pub text: String,
}

pub(super) struct Port {
    pub name: String,
    pub is_output: bool,
    /// The range of the port in Verilog, its type in VHDL.
    pub kind: String,
}

pub(super) struct Head {
    pub parameters: Vec<Parameter>,
    pub ports: Vec<Port>,
    /// The number of outer ports of a front, which precede its ports to the register block.
    pub outer: usize,
}

/// The first of a front's ports to the register block; the following ports also belong to it.
const FIRST_INNER: &str = "raddr_o";

impl Head {
    fn of(parameters: Vec<Parameter>, ports: Vec<Port>) -> Result<Head, String> {
        if ports.is_empty() {
            return Err("the unit has no ports, or its head has another form".into());
        }
        let inner = ports.iter().position(|port| port.name == FIRST_INNER);
        Ok(Head {
            parameters,
            outer: inner.unwrap_or(ports.len()),
            ports,
        })
    }
}

impl Parameter {
    /// Returns the type of a generic without its range.
    pub fn kind(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }

    /// Returns the default value of a generic.
    pub fn default(&self) -> &str {
        let (_, default) = self.text.split_once(":= ").unwrap_or_default();
        default
    }
}

/// Returns a line without its comment and its separator.
fn declared<'a>(line: &'a str, comment: &str, separator: char) -> &'a str {
    let line = line.split(comment).next().unwrap_or_default();
    line.trim().trim_end_matches(separator).trim_end()
}

pub(super) fn verilog(text: &str) -> Result<Head, String> {
    let (mut parameters, mut ports) = (Vec::new(), Vec::new());
    let mut is_formal = false;
    for line in text.lines() {
        match line.trim() {
            "`ifdef FORMAL" => is_formal = true,
            "`endif" => is_formal = false,
            ");" => break,
            _ => {}
        }
        let line = declared(line, "//", ',');
        if let Some(text) = line.strip_prefix("parameter ") {
            let (before, _) = text.split_once(" = ").ok_or("a parameter has no default")?;
            let name = before.rsplit(' ').next().unwrap_or(before);
            parameters.push(Parameter {
                name: name.into(),
                text: text.into(),
            });
        }
        let way = ["input", "output"]
            .into_iter()
            .find(|way| line.starts_with(way));
        let Some(way) = way.filter(|_| !is_formal) else {
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, kind) = match words[..] {
            [_, "wire", name] => (name, ""),
            [_, "wire", range, name] => (name, range),
            _ => return Err(format!("\"{line}\" is no port of one line")),
        };
        ports.push(Port {
            name: name.into(),
            is_output: way == "output",
            kind: kind.into(),
        });
    }
    Head::of(parameters, ports)
}

pub(super) fn vhdl(text: &str) -> Result<Head, String> {
    let (mut parameters, mut ports) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with("end entity") {
            break;
        }
        let line = declared(line, "--", ';');
        // If there is only one generic, it is on the line of the keyword `generic`.
        let line = match line.strip_prefix("generic (") {
            Some(one) => one.trim_end_matches(')'),
            None => line,
        };
        let Some((name, kind)) = line.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            continue;
        };
        let (name, kind) = (name.trim().to_owned(), kind.trim());
        let (way, rest) = kind.split_once(' ').unwrap_or((kind, ""));
        match way {
            "in" | "out" => ports.push(Port {
                name,
                is_output: way == "out",
                kind: rest.trim().into(),
            }),
            _ => parameters.push(Parameter {
                name,
                text: kind.into(),
            }),
        }
    }
    Head::of(parameters, ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(head: &Head) -> Vec<(&str, bool, &str)> {
        let ports = head.ports.iter();
        ports
            .map(|port| (&*port.name, port.is_output, &*port.kind))
            .collect()
    }

    #[test]
    fn heads_of_both_languages_are_read() {
        let text = "module m #(\n    parameter ADDRESS = 19,  // bits\n    parameter [31:0] HZ = 32'd0\n) (\n    input  wire        a_i, // in\n`ifdef FORMAL\n    output wire f_o,\n`endif\n    output wire [18:0] raddr_o\n);\n    input wire later;\n";
        let head = verilog(text).expect("a head");
        assert_eq!(
            ports(&head),
            [("a_i", false, ""), ("raddr_o", true, "[18:0]")]
        );
        let texts: Vec<&str> = head.parameters.iter().map(|p| &*p.text).collect();
        assert_eq!(texts, ["ADDRESS = 19", "[31:0] HZ = 32'd0"]);
        assert_eq!((head.outer, &*head.parameters[1].name), (1, "HZ"));

        let text = "entity m is\n  generic (ADDRESS : positive range 13 to 19 := 19);\n  port (\n    a_i     : in  std_logic; -- in\n    raddr_o : out std_logic_vector(18 downto 0)\n  );\nend entity;\n";
        let head = vhdl(text).expect("a head");
        let wide = "std_logic_vector(18 downto 0)";
        assert_eq!(
            ports(&head),
            [("a_i", false, "std_logic"), ("raddr_o", true, wide)]
        );
        let [one] = &head.parameters[..] else {
            panic!("one generic");
        };
        assert_eq!((one.kind(), one.default()), ("positive", "19"));
    }

    #[test]
    fn a_head_of_another_form_is_refused() {
        assert!(verilog("module m (a, b);\n").is_err());
        assert!(verilog("    input wire [1:0] a_i, b_i,\n").is_err());
        assert!(vhdl("entity m is\nend entity;\n").is_err());
    }
}
