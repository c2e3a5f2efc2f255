//! The silk screen: references, outlines and legends, and a stroke font for them.

use crate::footprint::Footprint;
use crate::geometry::Point;
use crate::tables::Design;

/// Characters as polylines on a grid of 5 columns and 7 rows:
/// each corner is a column and a row, and spaces separate the polylines.
const GLYPHS: [(char, &str); 41] = [
    ('A', "0602204246 0444"),
    ('B', "000636454433 03333100 33"),
    ('C', "4130100105164645"),
    ('D', "00063644423000"),
    ('E', "40000646 0333"),
    ('F', "400006 0333"),
    ('G', "4130100105163645432343"),
    ('H', "0006 4046 0343"),
    ('I', "1030 2026 1636"),
    ('J', "40453616 1605"),
    ('K', "0006 400346"),
    ('L', "000646"),
    ('M', "0600234046"),
    ('N', "06004640"),
    ('O', "103041453616050110"),
    ('P', "060030413233 3303"),
    ('Q', "103041453616050110 2446"),
    ('R', "060030413303 2346"),
    ('S', "413010011333444536160504"),
    ('T', "0040 2026"),
    ('U', "00051636454040"),
    ('V', "002640"),
    ('W', "0016233640"),
    ('X', "0046 4006"),
    ('Y', "002340 2326"),
    ('Z', "00400646"),
    ('0', "103041453616050110 4105"),
    ('1', "112026 1636"),
    ('2', "0110304142050646"),
    ('3', "0040234536160504"),
    ('4', "36300444"),
    ('5', "400003334445361605"),
    ('6', "3010010516364544331304"),
    ('7', "004016"),
    ('8', "103041423313020110 133344453616050413"),
    ('9', "4231132201103041453616"),
    (' ', ""),
    ('-', "0343"),
    ('.', "2526"),
    ('+', "0343 2125"),
    ('/', "0640"),
];

/// A line of the silk screen between two points.
pub type Stroke = (Point, Point);

/// Returns the strokes of a text, given the middle of the text and the height of its capitals.
pub fn text(words: &str, at: Point, height: i64) -> Vec<Stroke> {
    let unit = height / 6;
    let wide = 6 * unit;
    let count = words.chars().count() as i64;
    let left = at.x - (count * wide - 2 * unit) / 2;
    let mut strokes = Vec::new();
    for (index, letter) in (0..).zip(words.chars()) {
        let letter = letter.to_ascii_uppercase();
        let found = GLYPHS.iter().find(|(own, _)| *own == letter);
        for line in found.map_or("", |(_, lines)| lines).split(' ') {
            let corners: Vec<_> = line
                .as_bytes()
                .chunks_exact(2)
                .map(|pair| {
                    let [x, y] = [pair[0], pair[1]].map(|digit| i64::from(digit - b'0'));
                    Point::new(left + index * wide + x * unit, at.y + (y - 3) * unit)
                })
                .collect();
            strokes.extend(corners.windows(2).map(|ends| (ends[0], ends[1])));
        }
    }
    strokes
}

/// Returns the legends of the board, each as position, height and text.
pub fn legends(design: &Design) -> Vec<(Point, i64, String)> {
    let mut found = vec![
        (Point::new(59_000, 62_000), 1800, "HWBARR KIT 1".to_owned()),
        (
            Point::new(59_000, 65_000),
            1000,
            "MIT OR APACHE-2.0".to_owned(),
        ),
        (Point::new(103_500, 41_460), 1000, "+5V".to_owned()),
        (Point::new(103_500, 46_540), 1000, "GND".to_owned()),
        (Point::new(16_000, 58_600), 1000, "ICESTICK J1".to_owned()),
        (Point::new(25_000, 54_000), 1000, "PMOD".to_owned()),
    ];
    for part in &design.parts {
        let Some(footprint) = part.footprint else {
            continue;
        };
        let below = match part.turn {
            180 | 90 => 1,
            _ => -1,
        };
        match footprint {
            Footprint::Dsub25 => {
                let middle = part.at.plus(Point::new(-16_620, 0).turned(part.turn));
                let at = Point::new(middle.x + 10_000, middle.y + below * 3200);
                found.push((at, 1200, part.value.clone()));
            }
            Footprint::Header1x3 => {
                let middle = part.at.plus(Point::new(0, 2540).turned(part.turn));
                let at = Point::new(middle.x, middle.y + below * 2400);
                found.push((at, 1000, part.value.clone()));
            }
            Footprint::TestPoint => {
                let at = Point::new(part.at.x, part.at.y + 2200);
                found.push((at, 800, part.value.clone()));
            }
            _ => {}
        }
    }
    found
}

/// Returns all strokes of the silk screen: bodies, pin 1 markers, references and legends.
pub fn strokes(design: &Design) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    for part in &design.parts {
        let Some(footprint) = part.footprint else {
            continue;
        };
        let placed = |at: Point| part.at.plus(at.turned(part.turn));
        let (low, high) = footprint.body();
        let around = [
            low,
            Point::new(high.x, low.y),
            high,
            Point::new(low.x, high.y),
        ];
        for index in 0..4 {
            strokes.push((placed(around[index]), placed(around[(index + 1) % 4])));
        }
        if matches!(
            footprint,
            Footprint::Soic14 | Footprint::Soic16 | Footprint::Soic20w
        ) {
            let notch = Point::new(low.x + 600, low.y);
            strokes.push((placed(notch), placed(Point::new(low.x, low.y + 600))));
        }
        let at = placed(footprint.label());
        let words = text(&part.reference, at, 1000);
        let is_upright = part.turn.rem_euclid(180) != 0;
        let turned = |p: Point| match is_upright {
            true => at.plus(Point::new(p.x - at.x, p.y - at.y).turned(90)),
            false => p,
        };
        strokes.extend(words.into_iter().map(|(a, b)| (turned(a), turned(b))));
    }
    for (at, height, words) in legends(design) {
        strokes.extend(text(&words, at, height));
    }
    strokes
}
