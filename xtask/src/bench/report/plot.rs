//! Plots of a group as SVG, with logarithmic axes and one line per library.

use plotters::coord::combinators::{BindKeyPoints as _, IntoLogRange as _};
use plotters::prelude::*;

use super::groups::{Over, spelled};
use super::results::{Measured, Row};

/// The data of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The name of the plot's file.
    pub file: String,
    /// The title above the plot.
    pub title: String,
    horizontal: Over,
    unit: String,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    library: String,
    points: Vec<(f64, f64)>,
}

/// Colours of Portcullis and of the compared libraries, in column order;
/// the lines also have different markers.
const COLOURS: [RGBColor; 3] = [
    RGBColor(0x1b, 0x5e, 0xa8),
    RGBColor(0xc8, 0x55, 0x1b),
    RGBColor(0x3d, 0x8b, 0x40),
];

const SIZE: (u32, u32) = (720, 420);

/// Returns the plots of a group: one over sizes, or one per size over ranks;
/// a group with a single point has no plot.
pub fn plots(measured: &Measured, peers: &[&str]) -> Vec<Plot> {
    let group = measured.group;
    let rows = &measured.rows;
    let parts = match group.over {
        Over::Operations => Vec::new(),
        Over::Sizes => vec![(None, rows.iter().collect::<Vec<&Row>>())],
        Over::Ranks => {
            let mut sizes: Vec<Option<u64>> = rows.iter().map(|row| row.size).collect();
            sizes.sort_unstable();
            sizes.dedup();
            let of = |size| rows.iter().filter(|row| row.size == size).collect();
            sizes.into_iter().map(|size| (size, of(size))).collect()
        }
    };
    let plots = parts.into_iter().map(|(size, rows)| Plot {
        file: match size {
            Some(size) => format!("{}-{}.svg", group.name, spelled(size)),
            None => format!("{}.svg", group.name),
        },
        title: match size {
            Some(size) if size < 1024 => format!("{}, {size} bytes", group.title),
            Some(size) => format!("{}, {}B", group.title, bytes(size)),
            None => group.title.to_owned(),
        },
        horizontal: group.over,
        unit: rows
            .first()
            .map_or(String::new(), |row| row.figures.unit.clone()),
        lines: lines(group.over, &rows, peers),
    });
    plots.filter(Plot::has_a_line).collect()
}

fn lines(over: Over, rows: &[&Row], peers: &[&str]) -> Vec<Line> {
    let place = |row: &Row| match over {
        Over::Ranks => f64::from(row.ranks),
        _ => row.figures.size as f64,
    };
    let line = |library: &str, figure: &dyn Fn(&Row) -> Option<f64>| Line {
        library: library.to_owned(),
        points: rows
            .iter()
            .filter_map(|row| Some((place(row), figure(row)?)))
            // A logarithmic axis has no values at or below 0.
            .filter(|&(x, y)| x > 0.0 && y > 0.0 && y.is_finite())
            .collect(),
    };
    let ours = line("Portcullis", &|row| Some(row.figures.ours));
    let theirs = peers.iter().map(|peer| {
        line(peer, &|row| {
            let figure = row.figures.peers.iter().find(|p| p.library == *peer);
            figure.map(|p| p.median)
        })
    });
    std::iter::once(ours).chain(theirs).collect()
}

/// Formats a size in bytes with the binary prefixes of the tables.
pub fn bytes(size: u64) -> String {
    match spelled(size) {
        text if text.ends_with(['K', 'M']) => {
            let (digits, prefix) = text.split_at(text.len() - 1);
            format!("{digits} {prefix}i")
        }
        text => text,
    }
}

impl Plot {
    fn has_a_line(&self) -> bool {
        self.lines.iter().any(|line| line.points.len() > 1)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.lines
            .iter()
            .flat_map(|line| line.points.iter().copied())
    }

    /// Returns the plot as SVG; the error is that of the drawing library.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (mut across, mut up): (Vec<f64>, Vec<f64>) = self.points().unzip();
        for values in [&mut across, &mut up] {
            values.sort_by(f64::total_cmp);
            values.dedup();
        }
        let ([left, right], [low, high]) = (ends(&across), ends(&up));
        let across = apart(&across);
        let ticks = ticks(low, high);
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .margin_right(24)
            .x_label_area_size(46)
            .y_label_area_size(68)
            .build_cartesian_2d(
                (left / 1.15..right * 1.15)
                    .log_scale()
                    .with_key_points(across),
                (low / 1.4..high * 1.4).log_scale().with_key_points(ticks),
            )?;
        let over_ranks = self.horizontal == Over::Ranks;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(if over_ranks { "ranks" } else { "bytes" })
            .y_desc(&self.unit)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 14))
            .x_label_formatter(&|x| {
                if over_ranks {
                    format!("{x:.0}")
                } else {
                    bytes(x.round() as u64)
                }
            })
            .y_label_formatter(&|y| y.to_string())
            .draw()?;
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let points = line.points.clone();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            // Portcullis has filled circles; the compared libraries have open circles and crosses.
            let (filled, open) = (colour.filled(), colour.stroke_width(2));
            let points = points.into_iter();
            match number {
                0 => chart
                    .draw_series(points.map(|point| Circle::new(point, 4, filled)))?
                    .legend(move |(x, y)| Circle::new((x + 10, y), 4, filled)),
                1 => chart
                    .draw_series(points.map(|point| Circle::new(point, 4, open)))?
                    .legend(move |(x, y)| Circle::new((x + 10, y), 4, open)),
                _ => chart
                    .draw_series(points.map(|point| Cross::new(point, 4, open)))?
                    .legend(move |(x, y)| Cross::new((x + 10, y), 4, open)),
            }
            .label(&line.library);
        }
        chart
            .configure_series_labels()
            // Curves rise, so the lower right corner is free for the legend.
            .position(SeriesLabelPosition::LowerRight)
            .label_font(("sans-serif", 14))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// Returns the smallest and the largest of sorted values.
fn ends(sorted: &[f64]) -> [f64; 2] {
    let first = sorted.first().copied().unwrap_or(1.0);
    [first, sorted.last().copied().unwrap_or(first)]
}

/// Returns those values whose labels do not overlap on a logarithmic axis.
fn apart(sorted: &[f64]) -> Vec<f64> {
    const MOST: f64 = 14.0;
    let [first, last] = ends(sorted);
    let factor = (last / first).powf(1.0 / MOST);
    let mut kept: Vec<f64> = Vec::new();
    for &value in sorted {
        if kept.last().is_none_or(|before| value / before >= factor) {
            kept.push(value);
        }
    }
    kept
}

/// Returns round numbers for an axis from below `low` to above `high`: powers of ten;
/// if the range is below a factor of 200, also 2 and 5 times these.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let steps: &[f64] = if high / low < 200.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let all = decades.flat_map(|decade| {
        let power = 10f64.powi(decade.abs());
        // Dividing by a power gives exactly 0.02; multiplying by 0.01 would print many digits.
        let at = move |step: &f64| {
            if decade < 0 {
                step / power
            } else {
                step * power
            }
        };
        steps.iter().map(at)
    });
    all.filter(|tick| (low / 1.4..=high * 1.4).contains(tick))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_about_the_figures() {
        assert_eq!(ticks(0.08, 3.0), [0.1, 0.2, 0.5, 1.0, 2.0]);
        assert_eq!(ticks(0.3, 500.0), [1.0, 10.0, 100.0]);
    }

    #[test]
    fn words_below_the_axis_do_not_touch() {
        let octaves: Vec<f64> = (3..=22).map(|power| f64::from(1 << power)).collect();
        let kept = apart(&octaves);
        assert_eq!(kept.len(), 10, "{kept:?}");
        assert_eq!(apart(&[2.0, 4.0, 16.0, 60.0]).len(), 4);
        assert_eq!(apart(&[]).len(), 0);
    }
}
