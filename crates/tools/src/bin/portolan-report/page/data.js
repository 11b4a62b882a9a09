// Reads the data embedded in the page: one JSON text, and arrays of numbers as base64-encoded raw
// deflate.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);

async function bytesOf(name) {
  const text = document.getElementById("blob-" + name).textContent;
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Splits bytes into consecutive arrays of equal length. `kinds` is [["begin", Float64Array], ...].
function columnsOf(bytes, length, kinds) {
  const columns = {};
  let at = 0;
  for (const [name, kind] of kinds) {
    const size = length * kind.BYTES_PER_ELEMENT;
    columns[name] = new kind(bytes.slice(at, at + size).buffer);
    at += size;
  }
  return columns;
}

// --- Formatting of numbers.

function three(value) {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 3));
}

function timeText(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return three(ns / 1e9) + " s";
  if (size >= 1e6) return three(ns / 1e6) + " ms";
  if (size >= 1e3) return three(ns / 1e3) + " µs";
  return Math.round(ns) + " ns";
}

function bytesText(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit += 1; }
  return (unit === 0 ? Math.round(n) : three(n)) + " " + units[unit];
}

function countText(n) {
  return Math.round(n).toLocaleString("en").replace(/,/g, " ");
}

// Returns the label of the ranks of a row or a tile.
function ranksText(first, each, ranks) {
  const last = Math.min(first + each, ranks) - 1;
  return last > first ? `ranks ${first}–${last}` : `rank ${first}`;
}

// --- Colours. Those of the states are from Okabe and Ito; the matrix uses the cividis scale.

const CIVIDIS = [
  [0, 32, 77], [0, 48, 111], [57, 71, 108], [87, 93, 109], [112, 113, 115],
  [138, 135, 121], [166, 157, 117], [196, 181, 108], [228, 207, 91], [255, 234, 70],
];

function cividis(part) {
  const at = Math.min(Math.max(part, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.floor(at), rest = at - low;
  const a = CIVIDIS[low], b = CIVIDIS[Math.min(low + 1, CIVIDIS.length - 1)];
  return a.map((v, k) => Math.round(v + (b[k] - v) * rest));
}

function rgbOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

const STATE_RGB = report.states.map((state) => rgbOf(state.colour));

let printing = false;

function theme() {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  return dark
    ? { dark, back: "#16181b", row: "#26292e", rowRgb: [38, 41, 46], text: "#e4e4e4", faint: "#8a8f96", line: "#3b4047", mark: "#ffffff" }
    : { dark, back: "#ffffff", row: "#e9ebee", rowRgb: [233, 235, 238], text: "#1a1a1a", faint: "#666666", line: "#c9ccd1", mark: "#000000" };
}

// --- Helpers that the matrix and the timeline share.

// Sizes a canvas to its element in device pixels. Returns its context, and its size in CSS pixels.
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height };
}

const hint = document.getElementById("hint");

function showHint(lines, event) {
  if (!lines.length) { hint.hidden = true; return; }
  hint.replaceChildren(...lines.map((text) => {
    const line = document.createElement("div");
    line.textContent = text;
    return line;
  }));
  hint.hidden = false;
  const room = document.documentElement.clientWidth - hint.offsetWidth - 8;
  hint.style.left = Math.max(4, Math.min(event.clientX + 14, room)) + "px";
  const below = event.clientY + 16;
  const fits = below + hint.offsetHeight < window.innerHeight;
  hint.style.top = (fits ? below : event.clientY - hint.offsetHeight - 12) + "px";
}

function placeOf(event) {
  const box = event.target.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// Returns a function that draws at most once per frame, however often it is called.
function drawnOnce(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}
