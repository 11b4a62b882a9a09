//! Packs the data that the script draws.
//!
//! The data are arrays of little-endian numbers of one width each, stored one after the other. The
//! script reads them in the same order (`data.js`, `main.js`).

use crate::analyse::chosen::Chosen;
use crate::analyse::levels::WHOLE;
use crate::model::{Activity, RankState, TraceSpan};
use crate::run::AnalysedRun;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use portolan_trace_format::kinds::PathTaken;
use serde_json::{Value, json};
use std::io::Write;

/// Represents an absent rank in an array of ranks.
const NOBODY: u32 = u32::MAX;

pub struct Blobs {
    pub json: String,
    pub packed: Vec<(&'static str, String)>,
}

impl Blobs {
    pub fn of(
        run: &AnalysedRun,
        levels: &[(usize, Vec<u8>)],
        chosen: &Chosen,
    ) -> Result<Blobs, String> {
        let cells: Vec<u8> = levels.iter().flat_map(|(_, cells)| cells).copied().collect();
        let packed = vec![
            ("matrix", pack(&matrix(run))?),
            ("levels", pack(&cells)?),
            ("events", pack(&events(run, chosen))?),
        ];
        // The JSON is inside a script element, so it must not contain an end tag.
        let json = data(run, levels, chosen).to_string().replace('<', "\\u003c");
        Ok(Blobs { json, packed })
    }
}

fn pack(bytes: &[u8]) -> Result<String, String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).map_err(|e| e.to_string())?;
    Ok(STANDARD.encode(encoder.finish().map_err(|e| e.to_string())?))
}

/// Encodes a value as 1000 * log2(value + 1), which keeps three significant digits at any size.
pub fn scaled(value: f64) -> u16 {
    ((value + 1.0).log2() * 1000.0).round().min(65535.0) as u16
}

fn matrix(run: &AnalysedRun) -> Vec<u8> {
    let cells = &run.analysis.matrix.cells;
    let measures: [fn(&crate::analyse::matrix::TransferTotals) -> f64; 3] =
        [|c| c.bytes as f64, |c| c.calls as f64, |c| c.latency()];
    let all = measures.iter().flat_map(|of| cells.iter().map(|cell| scaled(of(cell))));
    all.flat_map(u16::to_le_bytes).collect()
}

fn events(run: &AnalysedRun, chosen: &Chosen) -> Vec<u8> {
    let (each, spans) = (run.analysis.levels.grid.each as u32, &chosen.spans);
    let mut bytes: Vec<u8> = Vec::with_capacity(spans.len() * 42);
    let mut doubles = |of: fn(&TraceSpan) -> u64| {
        spans.iter().for_each(|s| bytes.extend((of(s) as f64).to_le_bytes()));
    };
    doubles(|s| s.begin);
    doubles(|s| s.end);
    doubles(|s| s.bytes);
    let mut words = |of: &dyn Fn(&TraceSpan) -> u32| {
        spans.iter().for_each(|s| bytes.extend(of(s).to_le_bytes()));
    };
    words(&|s| s.rank / each);
    words(&|s| s.rank);
    words(&|s| s.peer.unwrap_or(NOBODY));
    words(&|s| s.site.unwrap_or(NOBODY));
    bytes.extend(spans.iter().map(|s| s.what.number()));
    bytes.extend(spans.iter().map(|s| s.state() as u8));
    bytes.extend(spans.iter().map(|s| s.path as u8));
    bytes.extend(&chosen.depths);
    bytes.extend(spans.iter().map(TraceSpan::moves));
    bytes
}

fn data(run: &AnalysedRun, levels: &[(usize, Vec<u8>)], chosen: &Chosen) -> Value {
    let (trace, analysis) = (&run.trace, &run.analysis);
    let states: Vec<Value> = RankState::all()
        .map(|state| {
            let light = matches!(
                state,
                RankState::WaitCompletion
                    | RankState::WaitOthers
                    | RankState::Atomic
                    | RankState::WaitRoom
                    | RankState::Beside
            );
            json!({
                "name": state.name(), "colour": state.colour(),
                "beside": state == RankState::Beside, "light": light,
            })
        })
        .collect();
    let mut at = 0;
    let levels: Vec<Value> = levels
        .iter()
        .map(|(columns, cells)| {
            let level = json!({"columns": columns, "at": at});
            at += cells.len();
            level
        })
        .collect();
    let waits: Vec<Value> = analysis
        .waits()
        .iter()
        .map(|s| json!([s.rank, s.begin, s.end, s.what.number(), s.peer]))
        .collect();
    let pairs: Vec<Value> =
        if analysis.matrix.tile > 1 { analysis.matrix.pairs() } else { Vec::new() }
            .iter()
            .map(|(from, to, cell)| json!([from, to, cell.bytes, cell.calls, cell.ns]))
            .collect();
    let longest = analysis.regions.longest();
    let regions: Vec<Value> =
        longest.iter().map(|r| json!([r.rank, r.name, r.begin, r.begin + r.length])).collect();
    json!({
        "ranks": trace.ranks,
        "hostRanges": trace.host_ranges(),
        "states": states,
        "names": Activity::all().map(Activity::name).collect::<Vec<_>>(),
        "prepositions": Activity::all().map(Activity::preposition).collect::<Vec<_>>(),
        "sites": analysis.sites.lines,
        "paths": PathTaken::ALL.iter().map(|path| path.name()).collect::<Vec<_>>(),
        "matrix": {
            "size": analysis.matrix.size, "tile": analysis.matrix.tile,
            "measures": ["bytes", "calls", "time"], "pairs": pairs,
        },
        "timeline": {
            "rows": analysis.levels.grid.rows, "each": analysis.levels.grid.each,
            "wall": trace.wall, "whole": WHOLE, "levels": levels,
        },
        "events": {"shown": chosen.spans.len(), "windows": chosen.windows},
        "regions": {"names": analysis.regions.names, "spans": regions},
        "waits": waits,
    })
}
