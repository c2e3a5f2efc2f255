//! A plot of the page as a separate SVG file, for other programs.
//!
//! Some programs do not support CSS variables, so the colours of the light theme replace them.

use super::STYLE;

/// A plot as a separate file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The file's name without extension.
    pub name: String,
    /// The contents of the SVG file.
    pub svg: String,
}

impl Chart {
    /// Creates the chart of a plot with this title; `None` if `plot` is an HTML table.
    pub(super) fn of(title: &str, plot: &str) -> Option<Self> {
        let rest = plot.strip_prefix("<svg ")?;
        let (attributes, body) = rest.split_once('>')?;
        let size = attributes.split("viewBox=\"0 0 ").nth(1)?;
        let (width, height) = size.split_once('"')?.0.split_once(' ')?;
        let [page, style] = ["var(--card)", &rules()].map(resolved);
        Some(Self {
            name: name(title),
            svg: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" {attributes}>\n\
                 <style>\nsvg {{ font-family: \"DejaVu Sans\", sans-serif; }}\n{style}</style>\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"{page}\"/>{body}\n"
            ),
        })
    }
}

/// Converts a title to a file name.
fn name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// Returns the CSS rules that plots need: those for classes, and those for text in an SVG.
fn rules() -> String {
    let lines = STYLE.lines();
    let of_plots = lines.filter(|line| line.starts_with("svg ") || line.starts_with('.'));
    let of_plots = of_plots.filter(|line| !line.starts_with("svg {"));
    of_plots.flat_map(|line| [line, "\n"]).collect()
}

/// Replaces the CSS variables of colours by the colours of the light theme.
fn resolved(text: &str) -> String {
    let light = STYLE.split_once('}').map_or("", |(light, _)| light);
    let declarations = light.split([';', '{']).filter_map(|d| d.split_once(':'));
    declarations.fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("var({})", name.trim()), value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_needs_nothing_but_itself() {
        let plot = "<svg viewBox=\"0 0 960 120\" role=\"img\" aria-label=\"x\"><path class=\"wire\" d=\"\"/></svg>";
        let chart = Chart::of("Until all nodes, had left", plot).expect("a chart");
        assert_eq!(chart.name, "until-all-nodes-had-left");
        assert!(!chart.svg.contains("var("), "{}", chart.svg);
        assert!(
            chart.svg.contains(".wire { fill: none; stroke: #16202c;"),
            "{}",
            chart.svg
        );
        assert!(
            chart.svg.contains("width=\"960\" height=\"120\""),
            "{}",
            chart.svg
        );
        assert!(chart.svg.trim_end().ends_with("</svg>"));
        assert_eq!(Chart::of("Faults", "<table></table>"), None);
    }
}
