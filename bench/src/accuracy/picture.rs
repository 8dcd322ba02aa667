//! The lines of a run as a picture: a small square per cell, its colour the worst second's error.

use serde_json::Value;
use std::fmt::Write as _;

const ROW: usize = 22;
const COLUMN: usize = 58;
const LEFT: usize = 220;
const TOP: usize = 62;

/// An SVG document: a row per workload, a column per percentage, in each cell the mean's error and the worst second's.
#[must_use]
pub fn svg(lines: &[Value]) -> String {
    let cells: Vec<&Value> =
        lines.iter().filter(|line| line["kind"] == "share" && line["percent"].is_u64()).collect();
    let (mut workloads, mut percentages) = (Vec::new(), Vec::new());
    for cell in &cells {
        let (name, percent) =
            (cell["workload"].as_str().unwrap_or_default(), cell["percent"].as_u64());
        if !workloads.contains(&name) {
            workloads.push(name);
        }
        if !percentages.contains(&percent) {
            percentages.push(percent);
        }
    }
    let (width, height) =
        (LEFT + COLUMN * percentages.len() + 10, TOP + ROW * workloads.len() + 10);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"18\" font-size=\"13\">Share of the card's time, simulated, virtual time</text>\n\
         <text x=\"8\" y=\"34\">mean error / worst second, in points; the darker, the worse the worst second</text>"
    );
    for (column, percent) in percentages.iter().enumerate() {
        let x = LEFT + COLUMN * column + COLUMN / 2;
        let percent = percent.unwrap_or_default();
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"54\" text-anchor=\"middle\">{percent} %</text>");
    }
    for (row, name) in workloads.iter().enumerate() {
        let y = TOP + ROW * row + 15;
        let _ = writeln!(svg, "<text x=\"8\" y=\"{y}\">{name}</text>");
    }
    for cell in cells {
        let name = cell["workload"].as_str().unwrap_or_default();
        let row = workloads.iter().position(|known| *known == name).unwrap_or(0);
        let percent = cell["percent"].as_u64();
        let column = percentages.iter().position(|known| *known == percent).unwrap_or(0);
        square(&mut svg, LEFT + COLUMN * column, TOP + ROW * row, cell);
    }
    svg.push_str("</svg>\n");
    svg
}

fn square(svg: &mut String, x: usize, y: usize, cell: &Value) {
    let number = |name: &str| cell[name].as_f64().unwrap_or(0.0);
    let (error, worst) = (number("error"), number("worst_second"));
    // From green to red by way of yellow; red from eight points on.
    let hue = 120.0 * (1.0 - worst.abs() / 8.0).max(0.0);
    let frame = if cell["met"] == true { "white" } else { "black" };
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"hsl({hue:.0},70%,78%)\" \
         stroke=\"{frame}\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"9\">\
         {error:+.1} / {worst:+.1}</text>",
        COLUMN - 2,
        ROW - 2,
        x + COLUMN / 2 - 1,
        y + 14,
    );
}
