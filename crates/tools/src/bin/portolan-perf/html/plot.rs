//! Plots with logarithmic scales, drawn as SVG.

use crate::format::{bytes, number};
use maud::{Markup, html};

#[derive(Debug)]
pub struct PlotLine {
    /// Name in the legend.
    pub name: String,
    /// Whether the line is a bound. Bounds are dashed.
    pub bound: bool,
    /// Size in bytes, median, and the values at the first and third quartiles of the time.
    pub points: Vec<(f64, f64, f64, f64)>,
}

#[derive(Debug)]
pub struct Plot<'a> {
    /// Name for screen readers.
    pub name: &'a str,
    pub unit: &'a str,
    pub lines: &'a [PlotLine],
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 180.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
/// The Okabe-Ito palette without yellow, which is hard to see on white, and with grey for black.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// A logarithmic scale that maps values to coordinates of the drawing.
struct LogScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl LogScale {
    /// Between the powers of `base` that enclose the values. Ignores values that it cannot show.
    fn new(values: impl Iterator<Item = f64>, base: f64, (start, end): (f64, f64)) -> LogScale {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|v| *v > 0.0 && v.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        let (mut from, mut to) = (low.log(base).floor(), high.log(base).ceil());
        if from == to {
            (from, to) = (from - 1.0, to + 1.0);
        }
        from *= base.log10();
        to *= base.log10();
        LogScale { from, to, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let log = value.max(f64::MIN_POSITIVE).log10().clamp(self.from, self.to);
        self.start + (log - self.from) / (self.to - self.from) * (self.end - self.start)
    }
}

fn power(n: i32) -> String {
    match n {
        -3..=5 => format!("{}", 10f64.powi(n)),
        _ => format!("1e{n}"),
    }
}

impl Plot<'_> {
    pub fn svg(&self) -> Markup {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = LogScale::new(points().map(|p| p.0), 2.0, (LEFT, WIDTH - RIGHT));
        let y = LogScale::new(points().map(|p| p.1), 10.0, (HEIGHT - BOTTOM, TOP));
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.name) {
                (self.axes(&x, &y))
                @for (place, line) in self.lines.iter().enumerate() {
                    (draw(place, line, (&x, &y), self.unit))
                }
            }
        }
    }

    fn axes(&self, x: &LogScale, y: &LogScale) -> Markup {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let powers = (x.to - x.from) / 2f64.log10();
        let step = (powers / 9.0).ceil().max(1.0) as usize;
        let first = (x.from / 2f64.log10()).round() as i32;
        let sizes = (first..=first + powers.round() as i32).step_by(step).filter(|n| *n >= 0);
        let turned = format!("translate(14 {}) rotate(-90)", (TOP + bottom) / 2.0);
        html! {
            @for n in y.from.round() as i32..=y.to.round() as i32 {
                @let at = y.place(10f64.powi(n));
                path.grid d=(format!("M{LEFT} {at:.1}H{right}")) {}
                text.tick x=(LEFT - 8.0) y=(fixed(at + 4.0)) text-anchor="end" { (power(n)) }
            }
            @for size in sizes.map(|n| 2f64.powi(n)) {
                @let at = x.place(size);
                path.grid d=(format!("M{at:.1} {TOP}V{bottom}")) {}
                text.tick x=(fixed(at)) y=(bottom + 18.0) text-anchor="middle" { (bytes(size as usize)) }
            }
            text.axis x=((LEFT + right) / 2.0) y=(HEIGHT - 8.0) text-anchor="middle" { "size of an operation" }
            text.axis transform=(turned) text-anchor="middle" { (self.unit) }
        }
    }
}

fn fixed(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws a line with its markers and quartiles, and its entry in the legend.
fn draw(place: usize, line: &PlotLine, (x, y): (&LogScale, &LogScale), unit: &str) -> Markup {
    let colour = COLOURS[place % COLOURS.len()];
    let dash = line.bound.then(|| format!("{} 4", 4 + 3 * place));
    let corners: Vec<String> = line
        .points
        .iter()
        .map(|(size, value, ..)| format!("{:.1} {:.1}", x.place(*size), y.place(*value)))
        .collect();
    let top = TOP + 16.0 + 22.0 * place as f64;
    let left = WIDTH - RIGHT + 16.0;
    html! {
        g.line data-line=(place) stroke=(colour) fill=(colour) {
            path fill="none" stroke-width="2" stroke-dasharray=[&dash] d={ "M" (corners.join("L")) } {}
            @for (size, value, low, high) in &line.points {
                @let (at, middle) = (x.place(*size), y.place(*value));
                path stroke-width="1" d=(format!("M{at:.1} {:.1}V{:.1}", y.place(*low), y.place(*high))) {}
                (mark(place, at, middle))
                circle.hit cx=(fixed(at)) cy=(fixed(middle)) r="9" {
                    title { (line.name) ": " (bytes(*size as usize)) ", " (number(*value)) " " (unit) }
                }
            }
        }
        g.key tabindex="0" role="button" data-key=(place) stroke=(colour) fill=(colour) {
            path stroke-width="2" stroke-dasharray=[&dash] d=(format!("M{left} {:.1}h28", top - 4.0)) {}
            (mark(place, left + 14.0, top - 4.0))
            text stroke="none" x=(left + 36.0) y=(fixed(top)) { (line.name) }
        }
    }
}

/// Returns the marker of a line. Markers distinguish the lines without colour.
fn mark(place: usize, x: f64, y: f64) -> Markup {
    let path = match place % 4 {
        0 => return html! { circle cx=(fixed(x)) cy=(fixed(y)) r="3.5" {} },
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
        _ => format!("M{x:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", y - 4.5),
    };
    html! { path d=(path) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = LogScale::new([1.0, 1000.0].into_iter(), 10.0, (0.0, 300.0));
        assert!((scale.place(10.0) - 100.0).abs() < 1e-9);
        assert!((scale.place(100.0) - 200.0).abs() < 1e-9);
        assert!((scale.place(1e9) - 300.0).abs() < 1e-9, "what is outside stays at the border");
        let sizes = LogScale::new([1.0, 256.0].into_iter(), 2.0, (0.0, 80.0));
        assert!((sizes.place(2.0) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn one_value_and_none_have_a_scale() {
        for values in [vec![], vec![8.0], vec![0.0, f64::NAN]] {
            let scale = LogScale::new(values.into_iter(), 10.0, (0.0, 100.0));
            assert!(scale.place(8.0).is_finite());
        }
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(power(-2), "0.01");
        assert_eq!(power(3), "1000");
        assert_eq!(power(7), "1e7");
    }
}
