//! Points, shapes and distances on a board, in micrometres.

/// A position on the board in um from its upper left corner; x grows to the right and y downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The distance from the left edge, um.
    pub x: i64,
    /// The distance from the upper edge, um.
    pub y: i64,
}

impl Point {
    /// Returns the point at these coordinates.
    pub const fn new(x: i64, y: i64) -> Self {
        Self { x, y }
    }

    /// Returns the point rotated about the origin, anticlockwise as in KiCad.
    /// `degrees` must be a multiple of 90.
    #[must_use]
    pub const fn turned(self, degrees: i64) -> Self {
        match degrees.rem_euclid(360) {
            90 => Self::new(self.y, -self.x),
            180 => Self::new(-self.x, -self.y),
            270 => Self::new(-self.y, self.x),
            _ => self,
        }
    }

    /// Returns the sum of two points, taken as vectors.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

/// The outline of a piece of copper or of a hole, seen from above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// All points within `radius` of the segment between two points; a circle if both points are equal.
    Line {
        /// The first end of the line.
        from: Point,
        /// The second end of the line.
        to: Point,
        /// Half of the line's width, um.
        radius: i64,
    },
    /// A rectangle parallel to the axes.
    Rectangle {
        /// The centre of the rectangle.
        centre: Point,
        /// Half of the rectangle's width and half of its height, um.
        half: (i64, i64),
    },
}

impl Shape {
    /// Returns a circle of this centre and radius.
    pub const fn circle(centre: Point, radius: i64) -> Self {
        Self::Line {
            from: centre,
            to: centre,
            radius,
        }
    }

    /// Returns the smallest and the largest x and y of the shape.
    pub fn bounds(&self) -> (Point, Point) {
        match *self {
            Self::Line { from, to, radius } => (
                Point::new(from.x.min(to.x) - radius, from.y.min(to.y) - radius),
                Point::new(from.x.max(to.x) + radius, from.y.max(to.y) + radius),
            ),
            Self::Rectangle { centre, half } => (
                Point::new(centre.x - half.0, centre.y - half.1),
                Point::new(centre.x + half.0, centre.y + half.1),
            ),
        }
    }

    /// Returns false only if the bounding boxes show that the shapes are more than `reach` um apart.
    pub fn may_be_within(&self, other: &Self, reach: i64) -> bool {
        let ((a, b), (c, d)) = (self.bounds(), other.bounds());
        let apart = (c.x - b.x).max(a.x - d.x).max(c.y - b.y).max(a.y - d.y);
        apart <= reach
    }

    /// Returns the distance between two shapes, um; zero if they overlap.
    pub fn distance(&self, other: &Self) -> f64 {
        let between = match (*self, *other) {
            (
                Self::Line {
                    from: a,
                    to: b,
                    radius,
                },
                Self::Line {
                    from: c,
                    to: d,
                    radius: other,
                },
            ) => segments((a, b), (c, d)) - (radius + other) as f64,
            (Self::Line { from, to, radius }, Self::Rectangle { .. }) => {
                segment_to_rectangle((from, to), other.bounds()) - radius as f64
            }
            (Self::Rectangle { .. }, Self::Line { from, to, radius }) => {
                segment_to_rectangle((from, to), self.bounds()) - radius as f64
            }
            (Self::Rectangle { .. }, Self::Rectangle { .. }) => {
                let ((a, b), (c, d)) = (self.bounds(), other.bounds());
                let gap = |low: i64, high: i64| low.max(high).max(0) as f64;
                gap(c.x - b.x, a.x - d.x).hypot(gap(c.y - b.y, a.y - d.y))
            }
        };
        between.max(0.0)
    }
}

type Segment = (Point, Point);

fn point_to_segment(point: Point, (a, b): Segment) -> f64 {
    let (dx, dy) = ((b.x - a.x) as f64, (b.y - a.y) as f64);
    let (px, py) = ((point.x - a.x) as f64, (point.y - a.y) as f64);
    let length = dx * dx + dy * dy;
    let along = match length > 0.0 {
        true => ((px * dx + py * dy) / length).clamp(0.0, 1.0),
        false => 0.0,
    };
    (px - along * dx).hypot(py - along * dy)
}

/// Returns the orientation of a triangle's corners: the sign of twice its signed area.
const fn sense(a: Point, b: Point, c: Point) -> i64 {
    ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)).signum()
}

fn cross(one: Segment, other: Segment) -> bool {
    sense(one.0, one.1, other.0) * sense(one.0, one.1, other.1) < 0
        && sense(other.0, other.1, one.0) * sense(other.0, other.1, one.1) < 0
}

fn segments(one: Segment, other: Segment) -> f64 {
    if cross(one, other) {
        return 0.0;
    }
    point_to_segment(one.0, other)
        .min(point_to_segment(one.1, other))
        .min(point_to_segment(other.0, one))
        .min(point_to_segment(other.1, one))
}

fn segment_to_rectangle(segment: Segment, (low, high): Segment) -> f64 {
    let within = |p: Point| (low.x..=high.x).contains(&p.x) && (low.y..=high.y).contains(&p.y);
    if within(segment.0) || within(segment.1) {
        return 0.0;
    }
    let corners = [
        low,
        Point::new(high.x, low.y),
        high,
        Point::new(low.x, high.y),
    ];
    (0..4)
        .map(|i| segments(segment, (corners[i], corners[(i + 1) % 4])))
        .fold(f64::MAX, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_between_the_edges_of_two_shapes() {
        let line = |a: (i64, i64), b: (i64, i64), radius| Shape::Line {
            from: Point::new(a.0, a.1),
            to: Point::new(b.0, b.1),
            radius,
        };
        let boxed = |x, y, half| Shape::Rectangle {
            centre: Point::new(x, y),
            half,
        };
        let across = line((0, 0), (1000, 0), 100);
        assert_eq!(across.distance(&line((500, 500), (500, 900), 100)), 300.0);
        assert_eq!(across.distance(&line((500, -500), (500, 500), 1)), 0.0);
        assert_eq!(
            across.distance(&Shape::circle(Point::new(1300, 400), 100)),
            300.0
        );
        assert_eq!(across.distance(&boxed(500, 700, (200, 300))), 300.0);
        assert_eq!(boxed(500, 0, (50, 50)).distance(&across), 0.0);
        assert_eq!(
            boxed(0, 0, (100, 100)).distance(&boxed(500, 600, (100, 200))),
            300.0f64.hypot(300.0)
        );
        assert_eq!(Point::new(3, 1).turned(90), Point::new(1, -3));
    }
}
