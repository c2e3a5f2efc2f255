//! A simulated fault of one node's wires, for tests; parsed from the port parameter.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The wire to the barrier is cut: its level never arrives.
    Cut,
    /// The wire from the barrier floats and follows the wire to it.
    Floating,
    /// The wire from the barrier breaks after some changes of the wire to the barrier
    /// and stays at its last level.
    Deaf,
    /// The node's wire from the eureka line is stuck high.
    Line,
}

impl Defect {
    /// Parses a defect and its number: `cut:2`, `floating:3`, `deaf:1` or `line:0`.
    pub fn parse(text: &str) -> Option<(Defect, u32)> {
        let (defect, node) = text.split_once(':')?;
        let defect = match defect {
            "cut" => Defect::Cut,
            "floating" => Defect::Floating,
            "deaf" => Defect::Deaf,
            "line" => Defect::Line,
            _ => return None,
        };
        Some((defect, node.parse().ok()?))
    }
}
