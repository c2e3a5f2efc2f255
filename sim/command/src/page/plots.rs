//! Plots of a run: latency by phase, histogram of latencies, entry times of nodes,
//! comparison with software barriers.

use super::svg::{Anchor, Picture, Scale, number, time};
use barrier_simulator::software::Model;
use barrier_simulator::study::{Study, Sweep};
use barrier_simulator::virtual_time::{Distribution, Phase, Summary, Time};

const WIDTH: f64 = 960.0;

/// Plots the median duration of each phase of the last arriver's latency, as one stacked bar.
pub fn phases(summary: &Summary) -> String {
    let medians: Vec<_> = Phase::ALL
        .into_iter()
        .zip(&summary.phases)
        .filter(|(_, d)| d.worst() > Time::ZERO)
        .map(|(phase, d)| (phase, d.median()))
        .collect();
    let height = 70.0 + 24.0 * medians.len().div_ceil(3) as f64;
    let total: f64 = medians.iter().map(|(_, time)| time.us()).sum();
    let mut picture = Picture::new(WIDTH, height, "median time of each phase");
    let scale = Scale::linear([0.0, total.max(1e-6)], [8.0, WIDTH - 8.0]);
    let (mut at, mut legend) = (0.0, 8.0);
    for (number_of, (phase, length)) in medians.iter().enumerate() {
        let (start, end) = (scale.at(at), scale.at(at + length.us()));
        let says = format!("{}: {}", phase.name(), time(*length));
        let class = format!("series{number_of}");
        // A gap of one pixel separates neighbouring phases.
        let width = (end - start - 1.0).max(1.5);
        picture.rectangle(&class, [start, 10.0], [width, 38.0], &says);
        at += length.us();
        let row = 74.0 + 24.0 * (number_of / 3) as f64;
        picture.rectangle(&class, [legend, row - 10.0], [11.0, 11.0], "");
        let words = format!("{}  {}", phase.name(), time(*length));
        picture.text("label", [legend + 17.0, row], Anchor::Start, words);
        legend = if number_of % 3 == 2 {
            8.0
        } else {
            legend + 315.0
        };
    }
    picture.finish()
}

/// Plots the histogram of latencies.
pub fn histogram(distribution: &Distribution, what: &str) -> String {
    const HEIGHT: f64 = 250.0;
    const LEFT: f64 = 56.0;
    const BASE: f64 = 210.0;
    const BINS: usize = 60;
    let mut picture = Picture::new(WIDTH, HEIGHT, &format!("histogram of {what}"));
    let samples = distribution.samples();
    let low = distribution.percentile(0.0).us();
    let high = distribution.worst().us();
    let rim = ((high - low) * 0.03).max(high * 0.005);
    let across = Scale::linear([low - rim, high + rim], [LEFT, WIDTH - 12.0]);
    let from = low - rim;
    let step = (high - low + 2.0 * rim) / BINS as f64;
    let mut counts = [0usize; BINS];
    for sample in samples {
        let bin = ((sample.us() - from) / step.max(1e-12)) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let up = Scale::linear([0.0, most as f64], [BASE, 40.0]);
    for tick in up.ticks(6) {
        let y = up.at(tick);
        picture.line("grid", [LEFT, y], [WIDTH - 12.0, y]);
        picture.text("tick", [LEFT - 8.0, y + 4.0], Anchor::End, number(tick));
    }
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let start = from + bin as f64 * step;
        let (x, y) = (across.at(start), up.at(count as f64));
        let says = format!(
            "{count} from {} to {} µs",
            number(start),
            number(start + step)
        );
        let size = [across.at(start + step) - x - 1.0, BASE - y];
        picture.rectangle("series0", [x, y], size, &says);
    }
    picture.line("axis", [LEFT, BASE], [WIDTH - 12.0, BASE]);
    for tick in across.ticks(9) {
        let words = format!("{} µs", number(tick));
        picture.text(
            "tick",
            [across.at(tick), BASE + 17.0],
            Anchor::Middle,
            words,
        );
    }
    // The median's label is left of its mark and the 99th percentile's label is right of its mark,
    // because the two marks may be close together.
    let [median, p99] = [50.0, 99.0].map(|percent| distribution.percentile(percent));
    for (name, at, anchor, shift) in [
        ("median", median, Anchor::End, -6.0),
        ("p99", p99, Anchor::Start, 6.0),
    ] {
        let x = across.at(at.us());
        picture.line("mark", [x, 8.0], [x, BASE]);
        // A label that would leave the plot is moved to the other side of its mark.
        let (anchor, shift) = match x {
            x if x < LEFT + 110.0 => (Anchor::Start, 6.0),
            x if x > WIDTH - 110.0 && name == "p99" => (Anchor::End, -6.0),
            _ => (anchor, shift),
        };
        let y = if name == "p99" { 30.0 } else { 16.0 };
        picture.text(
            "label strong",
            [x + shift, y],
            anchor,
            format!("{name} {}", time(at)),
        );
    }
    picture.finish()
}

/// Plots each node's entry time relative to the first entry: median, 10th and 90th percentile.
pub fn skew(entries: &[Vec<Time>]) -> String {
    const HEIGHT: f64 = 250.0;
    const LEFT: f64 = 56.0;
    const BASE: f64 = 210.0;
    let nodes = entries.first().map_or(0, Vec::len);
    let mut picture = Picture::new(WIDTH, HEIGHT, "when each node enters after the first");
    let late: Vec<Distribution> = (0..nodes)
        .map(|node| {
            let after = |barrier: &Vec<Time>| {
                let first = barrier.iter().copied().min().unwrap_or_default();
                barrier[node] - first
            };
            Distribution::new(entries.iter().map(after).collect())
        })
        .collect();
    let most = late
        .iter()
        .map(|d| d.percentile(90.0).us())
        .fold(0.0, f64::max);
    let up = Scale::linear([0.0, most.max(1e-3)], [BASE, 16.0]);
    for tick in up.ticks(6) {
        let y = up.at(tick);
        picture.line("grid", [LEFT, y], [WIDTH - 12.0, y]);
        let words = format!("{} µs", number(tick));
        picture.text("tick", [LEFT - 8.0, y + 4.0], Anchor::End, words);
    }
    let pitch = (WIDTH - 12.0 - LEFT) / nodes.max(1) as f64;
    let width = (pitch * 0.6).min(36.0);
    let every = nodes.div_ceil(20).max(1);
    for (node, d) in late.iter().enumerate() {
        let x = LEFT + pitch * (node as f64 + 0.5);
        let [low, middle, high] = [10.0, 50.0, 90.0].map(|percent| d.percentile(percent));
        let says = format!(
            "node {node}: {} to {} after the first, median {}",
            time(low),
            time(high),
            time(middle)
        );
        let (top, bottom) = (up.at(high.us()), up.at(low.us()));
        let size = [width, (bottom - top).max(1.0)];
        picture.rectangle("range", [x - width / 2.0, top], size, &says);
        let y = up.at(middle.us());
        picture.line("median", [x - width / 2.0, y], [x + width / 2.0, y]);
        if node % every == 0 {
            picture.text("tick", [x, BASE + 17.0], Anchor::Middle, node);
        }
    }
    picture.line("axis", [LEFT, BASE], [WIDTH - 12.0, BASE]);
    picture.text("tick", [WIDTH - 12.0, BASE + 34.0], Anchor::End, "node");
    picture.finish()
}

/// Plots the medians of the hardware and the software barriers on a logarithmic scale.
pub fn comparison(study: &Study) -> String {
    const LEFT: f64 = 168.0;
    const ROW: f64 = 30.0;
    let hardware = study.summary.complete.median().us();
    let height = ROW * (study.software.len() + 1) as f64 + 64.0;
    let base = height - 34.0;
    let mut picture = Picture::new(
        WIDTH,
        height,
        "median latency of this hardware and of software barriers",
    );
    let medians = || {
        study
            .software
            .iter()
            .flat_map(|r| r.latencies.iter().map(|d| d.median().us()))
    };
    let most = medians().fold(hardware, f64::max);
    let least = medians().fold(hardware, f64::min);
    let across = Scale::logarithmic(
        [least * if least < hardware { 0.4 } else { 0.7 }, most * 1.2],
        [LEFT, WIDTH - 170.0],
    );
    for tick in across.ticks(8) {
        let x = across.at(tick);
        picture.line("grid", [x, 22.0], [x, base]);
        let words = format!("{} µs", number(tick));
        picture.text("tick", [x, base + 17.0], Anchor::Middle, words);
    }
    let hw = across.at(hardware);
    picture.line("mark", [hw, 22.0], [hw, base]);
    let mut y = 22.0 + ROW / 2.0;
    picture.text(
        "label strong",
        [LEFT - 12.0, y + 4.0],
        Anchor::End,
        "this hardware",
    );
    let says = format!(
        "this hardware: median {}",
        time(study.summary.complete.median())
    );
    picture.dot("series0", [hw, y], 6.0, &says);
    let words = format!("{} µs", number(hardware));
    picture.text("label strong", [hw + 12.0, y + 4.0], Anchor::Start, words);
    for rival in &study.software {
        y += ROW;
        let [log_p, log_gp] = rival.latencies.each_ref().map(|d| d.median().us());
        let name = rival.algorithm.name;
        picture.text("label", [LEFT - 12.0, y + 4.0], Anchor::End, name);
        let (start, end) = (across.at(log_p), across.at(log_gp));
        picture.line("reach", [hw, y], [end, y]);
        for ((x, value), (model, class)) in [(start, log_p), (end, log_gp)]
            .into_iter()
            .zip(Model::ALL.into_iter().zip(["rival", "rival hollow"]))
        {
            let says = format!("{name}, {}: median {} µs", model.name(), number(value));
            picture.dot(class, [x, y], 5.0, &says);
        }
        let words = format!(
            "{} µs, {} times",
            number(log_p),
            number(log_p / hardware.max(1e-6))
        );
        // The software's label must not overlap the mark of the hardware.
        let (from, anchor) = match end < hw {
            true => (start.min(end) - 12.0, Anchor::End),
            false => (end + 12.0, Anchor::Start),
        };
        picture.text("label", [from, y + 4.0], anchor, words);
    }
    picture.finish()
}

/// Plots median latencies over the swept parameter.
pub fn sweep(sweep: &Sweep, studies: &[(f64, Study)]) -> String {
    const HEIGHT: f64 = 400.0;
    const LEFT: f64 = 64.0;
    const RIGHT: f64 = 170.0;
    const BASE: f64 = 356.0;
    let mut picture = Picture::new(WIDTH, HEIGHT, "median latency over the sweep");
    let mut series: Vec<(&str, Vec<(f64, f64)>)> = vec![(
        "this hardware",
        studies
            .iter()
            .map(|(v, s)| (*v, s.summary.complete.median().us()))
            .collect(),
    )];
    if let Some((_, first)) = studies.first() {
        series.extend(first.software.iter().enumerate().map(|(place, rival)| {
            let points = studies.iter().filter_map(|(value, study)| {
                let median = study.software.get(place)?.latencies[0].median();
                Some((*value, median.us()))
            });
            (rival.algorithm.name, points.collect())
        }));
    }
    // A logarithmic scale cannot show zero, the latency of a barrier with a single node.
    let values = || {
        series
            .iter()
            .flat_map(|(_, points)| points.iter().map(|&(_, y)| y))
    };
    let least = values().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    let up = Scale::logarithmic([least * 0.7, most * 1.2], [BASE, 14.0]);
    let xs = || studies.iter().map(|(value, _)| *value);
    let ends = [xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max)];
    // On a linear scale, values of very different magnitudes would be too close together.
    let decades = ends[0] > 0.0 && ends[1] / ends[0] >= 50.0;
    let scale = if decades {
        Scale::logarithmic
    } else {
        Scale::linear
    };
    let across = scale(ends, [LEFT, WIDTH - RIGHT]);
    for tick in up.ticks(6) {
        let y = up.at(tick);
        picture.line("grid", [LEFT, y], [WIDTH - RIGHT, y]);
        let words = format!("{} µs", number(tick));
        picture.text("tick", [LEFT - 8.0, y + 4.0], Anchor::End, words);
    }
    picture.line("axis", [LEFT, BASE], [WIDTH - RIGHT, BASE]);
    for tick in across.ticks(10) {
        picture.text(
            "tick",
            [across.at(tick), BASE + 17.0],
            Anchor::Middle,
            number(tick),
        );
    }
    let axis = match sweep.axis.unit() {
        "" => sweep.axis.name().to_owned(),
        unit => format!("{}, {unit}", sweep.axis.name()),
    };
    picture.text("tick", [WIDTH - RIGHT, BASE + 35.0], Anchor::End, axis);
    for (place, (name, points)) in series.iter().enumerate().rev() {
        let class = format!("curve stroke{place}");
        let points: Vec<_> = points.iter().filter(|(_, y)| *y > 0.0).collect();
        picture.path(
            &class,
            points.iter().map(|(x, y)| [across.at(*x), up.at(*y)]),
        );
        for (x, y) in points {
            let says = format!("{name} at {}: {} µs", number(*x), number(*y));
            let radius = if place == 0 { 3.5 } else { 2.5 };
            picture.dot(
                &format!("series{place}"),
                [across.at(*x), up.at(*y)],
                radius,
                &says,
            );
        }
    }
    let ends = series
        .iter()
        .map(|(_, points)| points.last().map_or(0.0, |&(_, y)| up.at(y)));
    for (place, y) in spread(ends.collect(), 16.0, [14.0, BASE])
        .into_iter()
        .enumerate()
    {
        let x = WIDTH - RIGHT + 12.0;
        picture.rectangle(&format!("series{place}"), [x, y - 5.0], [10.0, 10.0], "");
        let class = if place == 0 { "label strong" } else { "label" };
        picture.text(class, [x + 16.0, y + 4.0], Anchor::Start, series[place].0);
    }
    picture.finish()
}

/// Moves positions apart until they differ by at least `distance`, in the same order and within the bounds.
fn spread(wanted: Vec<f64>, distance: f64, [top, bottom]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted;
    let mut floor = top;
    for &place in &order {
        places[place] = places[place].max(floor);
        floor = places[place] + distance;
    }
    let mut ceiling = bottom;
    for &place in order.iter().rev() {
        places[place] = places[place].min(ceiling);
        ceiling = places[place] - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_in_their_order() {
        let places = spread(vec![50.0, 52.0, 10.0, 99.0], 10.0, [0.0, 100.0]);
        assert_eq!(places, [50.0, 60.0, 10.0, 99.0]);
        let places = spread(vec![98.0, 99.0], 10.0, [0.0, 100.0]);
        assert_eq!(places, [90.0, 100.0]);
    }
}
