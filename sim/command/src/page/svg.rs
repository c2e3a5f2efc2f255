//! Drawing primitives of all plots, as inline SVG.
//!
//! Colours are class names; the page's style sheet defines each class for light and for dark.

use barrier_simulator::virtual_time::Time;
use std::fmt::{Display, Write as _};

/// Escapes text for use between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The alignment of text relative to its point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The text starts at the point.
    Start,
    /// The middle of the text is at the point.
    Middle,
    /// The text ends at the point.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// An SVG picture under construction.
#[derive(Debug, Clone)]
pub struct Picture {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Picture {
    /// Creates an empty picture; screen readers read its `title`.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self {
            width,
            height,
            title: escape(title),
            body: String::new(),
        }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(element);
    }

    /// Draws a straight line.
    pub fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.push(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// Draws a rectangle, with the tooltip `says` unless it is empty.
    pub fn rectangle(&mut self, class: &str, [x, y]: [f64; 2], [w, h]: [f64; 2], says: &str) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"1.5\">{}</rect>",
            tooltip(says)
        ));
    }

    /// Draws a dot with a tooltip.
    pub fn dot(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, says: &str) {
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\">{}</circle>",
            tooltip(says)
        ));
    }

    /// Draws a polyline through points.
    pub fn path(&mut self, class: &str, points: impl IntoIterator<Item = [f64; 2]>) {
        let mut data = String::new();
        for [x, y] in points {
            let step = if data.is_empty() { 'M' } else { 'L' };
            let _ = write!(data, "{step}{x:.1} {y:.1}");
        }
        self.push(format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// Draws a text.
    pub fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, words: impl Display) {
        let words = escape(&words.to_string());
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{}\">{words}</text>",
            anchor.name()
        ));
    }

    /// Returns the SVG element.
    pub fn finish(self) -> String {
        let Self {
            width,
            height,
            title,
            body,
        } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">{body}</svg>"
        )
    }
}

fn tooltip(says: &str) -> String {
    match says {
        "" => String::new(),
        says => format!("<title>{}</title>", escape(says)),
    }
}

/// A mapping from a range of numbers to a range of positions in a picture.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    from: [f64; 2],
    to: [f64; 2],
    logarithmic: bool,
}

impl Scale {
    /// Creates a linear scale.
    pub fn linear(from: [f64; 2], to: [f64; 2]) -> Self {
        Self {
            from: not_empty(from),
            to,
            logarithmic: false,
        }
    }

    /// Creates a logarithmic scale; the numbers must be positive.
    pub fn logarithmic([low, high]: [f64; 2], to: [f64; 2]) -> Self {
        let low = if low > 0.0 { low } else { 1e-3 };
        Self {
            from: not_empty([low, high.max(low)]).map(f64::ln),
            to,
            logarithmic: true,
        }
    }

    /// Returns the position of a number in the picture.
    pub fn at(&self, number: f64) -> f64 {
        let number = if self.logarithmic {
            // A number that is not positive has no logarithm and is drawn at the low end.
            number.max(f64::MIN_POSITIVE).ln().max(self.from[0])
        } else {
            number
        };
        let [from, until] = self.from;
        let [start, end] = self.to;
        start + (number - from) / (until - from) * (end - start)
    }

    /// Returns about `about` round numbers on the scale, for its ticks.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        let [from, until] = self.from;
        if self.logarithmic {
            let (low, high) = (from.exp(), until.exp());
            let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
            let steps: &[f64] = if until - from < 7.0 {
                &[1.0, 2.0, 5.0]
            } else {
                &[1.0]
            };
            return decades
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                .filter(|tick| (low * 0.999..=high * 1.001).contains(tick))
                .collect();
        }
        let rough = (until - from) / about.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|step| step * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (from / step).ceil() as i64;
        let last = (until / step + 1e-9).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// Widens a range of length zero.
fn not_empty([from, until]: [f64; 2]) -> [f64; 2] {
    if until - from > 1e-9 * until.abs() {
        [from, until]
    } else {
        let half = if until == 0.0 { 0.5 } else { until.abs() * 0.1 };
        [from - half, until + half]
    }
}

/// Formats a number, rounded to about three significant digits, without trailing zeros.
pub fn number(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a time for the page: with a space before the unit, and the letter mu.
pub fn time(time: Time) -> String {
    let text = time.to_string();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = &text[..text.len() - unit.len()];
    format!("{digits} {}", if unit == "us" { "µs" } else { unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = |scale: Scale| scale.ticks(5);
        assert_eq!(
            ticks(Scale::linear([0.3, 9.7], [0.0, 1.0])),
            [2.0, 4.0, 6.0, 8.0]
        );
        assert_eq!(
            ticks(Scale::logarithmic([2.0, 60.0], [0.0, 1.0])),
            [2.0, 5.0, 10.0, 20.0, 50.0]
        );
        // A range of length zero is widened, so that its value has a position and ticks.
        let scale = Scale::linear([2.4, 2.4], [0.0, 100.0]);
        assert!((scale.at(2.4) - 50.0).abs() < 1e-6);
        assert!(!scale.ticks(4).is_empty());
    }

    #[test]
    fn words_cannot_break_out_of_their_element() {
        let mut picture = Picture::new(1.0, 1.0, "<script>");
        picture.text("t", [0.0, 0.0], Anchor::Start, "a<b & \"c\"");
        let text = picture.finish();
        assert!(text.contains("&lt;script&gt;"), "{text}");
        assert!(text.contains("a&lt;b &amp; &quot;c&quot;"), "{text}");
    }

    #[test]
    fn times_are_printed_with_a_space_and_mu() {
        assert_eq!(time(Time::from_ns(2522)), "2.522 µs");
        assert_eq!(time(Time::from_ps(39_720)), "39.72 ns");
    }

    #[test]
    fn numbers_have_three_digits_that_say_something() {
        for (value, text) in [
            (198.577, "199"),
            (33.0, "33"),
            (2.52, "2.52"),
            (0.0397, "0.04"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
