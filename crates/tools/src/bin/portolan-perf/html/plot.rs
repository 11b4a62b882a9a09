//! Plots with logarithmic scales, drawn as SVG.

use crate::format::{bytes, escaped, number};
use std::fmt::Write;

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
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = LogScale::new(points().map(|p| p.0), 2.0, (LEFT, WIDTH - RIGHT));
        let y = LogScale::new(points().map(|p| p.1), 10.0, (HEIGHT - BOTTOM, TOP));
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(self.name)
        );
        self.axes(&mut svg, &x, &y);
        for (place, line) in self.lines.iter().enumerate() {
            draw(&mut svg, place, line, (&x, &y), self.unit);
        }
        svg + "</svg>\n"
    }

    fn axes(&self, svg: &mut String, x: &LogScale, y: &LogScale) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for n in y.from.round() as i32..=y.to.round() as i32 {
            let at = y.place(10f64.powi(n));
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                power(n)
            );
        }
        let powers = (x.to - x.from) / 2f64.log10();
        let step = (powers / 9.0).ceil().max(1.0) as usize;
        let first = (x.from / 2f64.log10()).round() as i32;
        for n in (first..=first + powers.round() as i32).step_by(step).filter(|n| *n >= 0) {
            let size = 2f64.powi(n);
            let at = x.place(size);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>\
                 <text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                bytes(size as usize)
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">size of an operation</text>\
             <text class=\"axis\" transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            (TOP + bottom) / 2.0,
            escaped(self.unit)
        );
    }
}

/// Draws a line with its markers and quartiles, and its entry in the legend.
fn draw(
    svg: &mut String,
    place: usize,
    line: &PlotLine,
    (x, y): (&LogScale, &LogScale),
    unit: &str,
) {
    let colour = COLOURS[place % COLOURS.len()];
    let dash = if line.bound {
        format!(" stroke-dasharray=\"{} 4\"", 4 + 3 * place)
    } else {
        String::new()
    };
    let _ = write!(
        svg,
        "<g class=\"line\" data-line=\"{place}\" stroke=\"{colour}\" fill=\"{colour}\">"
    );
    let mut path = String::new();
    for (n, (size, value, ..)) in line.points.iter().enumerate() {
        let letter = if n == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{:.1} {:.1}", x.place(*size), y.place(*value));
    }
    let _ = write!(svg, "<path fill=\"none\" stroke-width=\"2\"{dash} d=\"{path}\"/>");
    for (size, value, low, high) in &line.points {
        let (at, middle) = (x.place(*size), y.place(*value));
        let (low_at, high_at) = (y.place(*low), y.place(*high));
        let _ = write!(
            svg,
            "<path stroke-width=\"1\" d=\"M{at:.1} {low_at:.1}V{high_at:.1}\"/>{}",
            mark(place, at, middle)
        );
        let _ = write!(
            svg,
            "<circle class=\"hit\" cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"9\"><title>{}: {}, {} {unit}</title></circle>",
            escaped(&line.name),
            bytes(*size as usize),
            number(*value)
        );
    }
    *svg += "</g>\n";
    let top = TOP + 16.0 + 22.0 * place as f64;
    let left = WIDTH - RIGHT + 16.0;
    let _ = writeln!(
        svg,
        "<g class=\"key\" tabindex=\"0\" role=\"button\" data-key=\"{place}\" stroke=\"{colour}\" fill=\"{colour}\">\
         <path stroke-width=\"2\"{dash} d=\"M{left} {:.1}h28\"/>{}\
         <text stroke=\"none\" x=\"{}\" y=\"{top:.1}\">{}</text></g>",
        top - 4.0,
        mark(place, left + 14.0, top - 4.0),
        left + 36.0,
        escaped(&line.name)
    );
}

/// Returns the marker of a line. Markers distinguish the lines without colour.
fn mark(place: usize, x: f64, y: f64) -> String {
    match place % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
        1 => format!("<path d=\"M{:.1} {:.1}h7v7h-7z\"/>", x - 3.5, y - 3.5),
        2 => format!("<path d=\"M{x:.1} {:.1}l4.5 8h-9z\"/>", y - 5.0),
        _ => format!("<path d=\"M{x:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z\"/>", y - 4.5),
    }
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
