//! Draws the layers: one band per layer, one box per module, and one arrow for all imports of one
//! module from another. Arrows that go up would be red; the test allows none.

use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: usize = 1080;
const BAND: usize = 92;
const BOX_HEIGHT: usize = 34;
const LEFT: usize = 130;

struct Place {
    x: usize,
    y: usize,
    width: usize,
    layer: usize,
}

pub fn draw(layers: &[(&str, &[&str])], arrows: &BTreeMap<(String, String), usize>) -> String {
    let used = |module: &str| arrows.keys().any(|(from, to)| from == module || to == module);
    let height = layers.len() * BAND + 16;
    let mut places: BTreeMap<&str, Place> = BTreeMap::new();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>The layers of Portolan; each imports only those below it</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    for (layer, (name, modules)) in layers.iter().enumerate() {
        let top = (layers.len() - 1 - layer) * BAND + 8;
        let fill = if layer % 2 == 0 { "#f2f5f9" } else { "#e6ecf4" };
        let _ = writeln!(
            out,
            "<rect x=\"4\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>\n\
             <text x=\"14\" y=\"{}\" font-weight=\"bold\">{name}</text>",
            WIDTH - 8,
            BAND - 6,
            top + BAND / 2
        );
        let here: Vec<&str> = modules.iter().copied().filter(|module| used(module)).collect();
        let room = (WIDTH - LEFT - 16) / here.len().max(1);
        for (n, module) in here.into_iter().enumerate() {
            let width = (room - 10).min(150);
            let x = LEFT + n * room + (room - width) / 2;
            places.insert(module, Place { x, y: top + (BAND - 6 - BOX_HEIGHT) / 2, width, layer });
        }
    }
    for ((from, to), count) in arrows {
        let (Some(a), Some(b)) = (places.get(from.as_str()), places.get(to.as_str())) else {
            continue;
        };
        let (x1, x2) = (a.x + a.width / 2, b.x + b.width / 2);
        let (color, y1, y2) = match a.layer.cmp(&b.layer) {
            std::cmp::Ordering::Greater => ("#8fa3bf", a.y + BOX_HEIGHT, b.y),
            std::cmp::Ordering::Equal => ("#c2b280", a.y + BOX_HEIGHT, b.y + BOX_HEIGHT),
            std::cmp::Ordering::Less => ("#cc0000", a.y, b.y + BOX_HEIGHT),
        };
        let bend = if a.layer == b.layer { y1 + 18 } else { (y1 + y2) / 2 };
        let thick = 0.6 + (*count as f64).ln() * 0.45;
        let _ = writeln!(
            out,
            "<path d=\"M{x1} {y1} C{x1} {bend} {x2} {bend} {x2} {y2}\" fill=\"none\" \
             stroke=\"{color}\" stroke-width=\"{thick:.1}\" opacity=\"0.55\">\
             <title>{from} takes {count} names from {to}</title></path>"
        );
    }
    for (module, place) in &places {
        let Place { x, y, width, .. } = place;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"5\" \
             fill=\"#ffffff\" stroke=\"#34495e\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{module}</text>",
            x + width / 2,
            y + BOX_HEIGHT / 2 + 5
        );
    }
    out.push_str("</svg>\n");
    out
}
