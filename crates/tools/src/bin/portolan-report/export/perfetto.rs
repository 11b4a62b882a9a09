//! Exports all events in the JSON format of chrome://tracing, which ui.perfetto.dev reads: a
//! process for each rank, a track for each thread, times in microseconds. Events are written block
//! by block, so memory use does not grow.

use crate::model::{Activity, TraceSpan};
use crate::read::{RankFile, StreamItem, Trace};
use portolan_trace_format::kinds::PathTaken;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

struct EventOutput {
    file: BufWriter<File>,
    first: bool,
    failed: Option<std::io::Error>,
}

impl EventOutput {
    fn put(&mut self, event: &str) {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        let done = write!(self.file, "{comma}{event}");
        self.failed = self.failed.take().or(done.err());
    }
}

pub fn write(trace: &Trace, path: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let file = File::create(path).map_err(failed)?;
    let mut out =
        EventOutput { file: BufWriter::with_capacity(1 << 20, file), first: true, failed: None };
    write!(out.file, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[").map_err(failed)?;
    for rank in &trace.files {
        rank_events(rank, trace, &mut out)?;
        out.failed.take().map_or(Ok(()), Err).map_err(failed)?;
    }
    write!(out.file, "\n]}}\n").map_err(failed)?;
    out.file.flush().map_err(failed)
}

fn rank_events(file: &RankFile, trace: &Trace, out: &mut EventOutput) -> Result<(), String> {
    let (rank, host) = (file.rank, &trace.hosts[file.host]);
    let meta = |name: &str, tid: u32, args| json!({"ph": "M", "name": name, "pid": rank, "tid": tid, "args": args});
    out.put(
        &meta("process_name", 0, json!({"name": format!("rank {rank} on {host}")})).to_string(),
    );
    out.put(&meta("process_sort_index", 0, json!({"sort_index": rank})).to_string());
    for (thread, role) in file.threads() {
        let name = json!({"name": format!("{} ({thread})", role.name())});
        out.put(&meta("thread_name", thread, name).to_string());
    }
    let mut open: BTreeMap<u32, u32> = BTreeMap::new();
    let mut end = 0;
    file.stream(
        |_| true,
        |item| match item {
            StreamItem::Span(span) => {
                end = end.max(span.end);
                out.put(&event(&span));
            }
            StreamItem::Begin(time, thread, name) => {
                *open.entry(thread).or_default() += 1;
                let event = json!({"ph": "B", "name": name, "cat": "region", "pid": rank, "tid": thread, "ts": micros(time)});
                out.put(&event.to_string());
            }
            StreamItem::End(time, thread) => {
                let open = open.entry(thread).or_default();
                if *open > 0 {
                    *open -= 1;
                    out.put(&json!({"ph": "E", "pid": rank, "tid": thread, "ts": micros(time)}).to_string());
                }
            }
            StreamItem::Mark(time, text) => {
                let event = json!({"ph": "i", "s": "p", "name": text, "cat": "mark", "pid": rank, "tid": 0, "ts": micros(time)});
                out.put(&event.to_string());
            }
        },
    )?;
    for (thread, open) in open {
        for _ in 0..open {
            out.put(&json!({"ph": "E", "pid": rank, "tid": thread, "ts": micros(end)}).to_string());
        }
    }
    Ok(())
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn event(span: &TraceSpan) -> String {
    let category = match span.what {
        Activity::Call(_) => "call",
        Activity::Wait(_) => "wait",
        Activity::Served(_) => "served",
        Activity::Mpi(_) => "mpi",
    };
    let mut args = serde_json::Map::new();
    if let Some(peer) = span.peer {
        args.insert("peer".into(), peer.into());
    }
    if span.bytes > 0 {
        args.insert("bytes".into(), span.bytes.into());
    }
    if span.path != PathTaken::None {
        args.insert("path".into(), span.path.name().into());
    }
    if span.blocks > 1 {
        args.insert("blocks".into(), span.blocks.into());
    }
    if let Some(place) = span.place {
        args.insert("segment".into(), place.segment.into());
        args.insert("offset".into(), place.offset.into());
    }
    if span.communicator != 0 {
        args.insert("communicator".into(), format!("{:06x}", span.communicator).into());
    }
    json!({
        "ph": "X", "name": span.what.name(), "cat": category, "pid": span.rank, "tid": span.thread,
        "ts": micros(span.begin), "dur": micros(span.length()), "args": args,
    })
    .to_string()
}
