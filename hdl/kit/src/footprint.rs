//! Footprints: the pads and outlines of the kit's packages.
//!
//! Pitches and pad sizes are those of KiCad's footprints of the same packages.

use crate::geometry::Point;

/// The package of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Footprint {
    /// A right-angled socket of 25 contacts whose face is 10.54 mm from the row of pin 1.
    Dsub25,
    /// A small-outline package, 3.9 mm wide.
    Soic14,
    /// A small-outline package of sixteen pins, 3.9 mm wide.
    Soic16,
    /// A small-outline package, 7.5 mm wide.
    Soic20w,
    /// A resistor of 2.0 x 1.25 mm.
    Resistor0805,
    /// A capacitor of 2.0 x 1.25 mm.
    Capacitor0805,
    /// A pin header of one row of ten pins.
    Header1x10,
    /// A pin header of one row of three pins.
    Header1x3,
    /// A pin header of two rows of six pins, numbered like a Pmod connector: 1 to 6, then 7 to 12.
    Header2x6,
    /// A screw terminal of two contacts.
    Terminal2,
    /// A test point: a round pad without a part.
    TestPoint,
    /// A mounting hole for a screw of 3 mm, without copper.
    HoleM3,
}

/// The outline of a pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outline {
    /// A circular pad.
    Round,
    /// A rectangular pad.
    Square,
}

/// A pad of a footprint, relative to the footprint's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PadOf {
    /// The pin's number, 0 for the shell of a connector; `None` for a mounting hole.
    pub pin: Option<usize>,
    /// The centre of the pad from the footprint's origin.
    pub at: Point,
    /// Width and height of the pad's copper, um; zero for a hole without copper.
    pub size: (i64, i64),
    /// The outline of the pad's copper.
    pub outline: Outline,
    /// The diameter of the pad's hole, um; `None` for a pad on the upper side only.
    pub drill: Option<i64>,
}

const NAMES: [(Footprint, &str); 12] = [
    (Footprint::Dsub25, "DSUB25_Female"),
    (Footprint::Soic14, "SOIC14"),
    (Footprint::Soic16, "SOIC16"),
    (Footprint::Soic20w, "SOIC20W"),
    (Footprint::Resistor0805, "R_0805"),
    (Footprint::Capacitor0805, "C_0805"),
    (Footprint::Header1x10, "Header_1x10"),
    (Footprint::Header1x3, "Header_1x3"),
    (Footprint::Header2x6, "Header_2x6"),
    (Footprint::Terminal2, "Terminal_2"),
    (Footprint::TestPoint, "TestPoint"),
    (Footprint::HoleM3, "Hole_M3"),
];

impl Footprint {
    /// Returns the footprint with this name, if any.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, own)| *own == name).map(|(f, _)| *f)
    }

    /// Returns all footprints.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(footprint, _)| *footprint)
    }

    /// Returns the name of the footprint.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(own, _)| *own == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the pads of the footprint.
    pub fn pads(self) -> Vec<PadOf> {
        match self {
            Self::Dsub25 => dsub25(),
            Self::Soic14 => small_outline(14, 2475, (1950, 600)),
            Self::Soic16 => small_outline(16, 2475, (1950, 600)),
            Self::Soic20w => small_outline(20, 4650, (2050, 600)),
            Self::Resistor0805 | Self::Capacitor0805 => chip(),
            Self::Header1x10 => header(1, 10),
            Self::Header1x3 => header(1, 3),
            Self::Header2x6 => header(2, 6),
            Self::Terminal2 => (0..2)
                .map(|i| through(i + 1, Point::new(0, 5080 * i as i64), 2600, 1300))
                .collect(),
            Self::TestPoint => vec![PadOf {
                pin: Some(1),
                at: Point::new(0, 0),
                size: (2000, 2000),
                outline: Outline::Round,
                drill: None,
            }],
            Self::HoleM3 => vec![PadOf {
                pin: None,
                at: Point::new(0, 0),
                size: (0, 0),
                outline: Outline::Round,
                drill: Some(3200),
            }],
        }
    }

    /// Returns two opposite corners of the body's outline on the silk screen.
    pub fn body(self) -> (Point, Point) {
        let (a, b) = match self {
            // The outline ends a little before the edge of the board.
            Self::Dsub25 => ((-43_230, -1860), (9990, 9900)),
            Self::Soic14 => ((-1300, -4350), (1300, 4350)),
            Self::Soic16 => ((-1300, -4985), (1300, 4985)),
            Self::Soic20w => ((-3300, -6450), (3300, 6450)),
            Self::Resistor0805 | Self::Capacitor0805 => ((-1850, -1000), (1850, 1000)),
            Self::Header1x10 => ((-1330, -1330), (1330, 24_190)),
            Self::Header1x3 => ((-1330, -1330), (1330, 6410)),
            Self::Header2x6 => ((-1330, -1330), (3870, 14_030)),
            Self::Terminal2 => ((-5400, -3000), (4800, 8080)),
            Self::TestPoint => ((-1300, -1300), (1300, 1300)),
            Self::HoleM3 => ((-3200, -3200), (3200, 3200)),
        };
        (Point::new(a.0, a.1), Point::new(b.0, b.1))
    }

    /// Returns the position of the reference text, relative to the origin of the unrotated footprint.
    pub fn label(self) -> Point {
        match self {
            Self::Dsub25 => Point::new(-16_620, -3200),
            Self::Soic14 | Self::Soic16 | Self::Soic20w => Point::new(0, 0),
            Self::Resistor0805 | Self::Capacitor0805 => Point::new(0, -1900),
            Self::Header1x10 | Self::Header1x3 => Point::new(0, -2300),
            Self::Header2x6 => Point::new(1270, -2300),
            Self::Terminal2 => Point::new(0, -4000),
            Self::TestPoint => Point::new(0, -2200),
            Self::HoleM3 => Point::new(0, -4200),
        }
    }

    /// Returns true if the part is surface-mounted (all its pads are without holes).
    pub fn is_on_surface(self) -> bool {
        self.pads().iter().all(|pad| pad.drill.is_none())
    }
}

fn through(pin: usize, at: Point, size: i64, drill: i64) -> PadOf {
    PadOf {
        pin: Some(pin),
        at,
        size: (size, size),
        outline: match pin {
            1 => Outline::Square,
            _ => Outline::Round,
        },
        drill: Some(drill),
    }
}

fn header(columns: usize, rows: usize) -> Vec<PadOf> {
    let pins = 0..columns * rows;
    pins.map(|i| {
        let at = Point::new(2540 * (i / rows) as i64, 2540 * (i % rows) as i64);
        through(i + 1, at, 1700, 1000)
    })
    .collect()
}

fn small_outline(pins: usize, column: i64, size: (i64, i64)) -> Vec<PadOf> {
    let half = pins / 2;
    let top = 1270 * (half as i64 - 1) / 2;
    let pad = |pin: usize| {
        let at = match pin <= half {
            true => Point::new(-column, 1270 * (pin as i64 - 1) - top),
            false => Point::new(column, 1270 * (pins - pin) as i64 - top),
        };
        PadOf {
            pin: Some(pin),
            at,
            size,
            outline: Outline::Square,
            drill: None,
        }
    };
    (1..=pins).map(pad).collect()
}

fn chip() -> Vec<PadOf> {
    let pad = |pin: usize, x: i64| PadOf {
        pin: Some(pin),
        at: Point::new(x, 0),
        size: (1025, 1400),
        outline: Outline::Square,
        drill: None,
    };
    vec![pad(1, -913), pad(2, 913)]
}

fn dsub25() -> Vec<PadOf> {
    let contact = |pin: usize| {
        let at = match pin {
            1..=13 => Point::new(-2770 * (pin as i64 - 1), 0),
            _ => Point::new(-1385 - 2770 * (pin as i64 - 14), 2840),
        };
        through(pin, at, 1600, 1000)
    };
    let shell = |x: i64| PadOf {
        pin: Some(0),
        at: Point::new(x, 1420),
        size: (4000, 4000),
        outline: Outline::Round,
        drill: Some(3200),
    };
    let shells = [shell(-40_170), shell(6930)];
    (1..=25).map(contact).chain(shells).collect()
}
