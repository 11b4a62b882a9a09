// Draws the matrix and the timeline when their data has been unpacked.
"use strict";

let matrix = null, timeline = null;

const EVENT_COLUMNS = [
  ["begin", Float64Array], ["end", Float64Array], ["bytes", Float64Array], ["row", Uint32Array],
  ["rank", Uint32Array], ["peer", Uint32Array], ["site", Uint32Array], ["name", Uint8Array], ["state", Uint8Array],
  ["path", Uint8Array], ["depth", Uint8Array], ["moves", Uint8Array],
];

async function start() {
  const [cells, levels, events] = await Promise.all([bytesOf("matrix"), bytesOf("levels"), bytesOf("events")]);
  matrix = new Matrix(cells);
  timeline = new Timeline(levels, columnsOf(events, report.events.shown, EVENT_COLUMNS));
  timeline.listen();
  const again = () => { matrix.draw(); timeline.draw(); };
  new ResizeObserver(again).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  const print = (on) => () => { printing = on; matrix.drawNow(); timeline.drawNow(); };
  window.addEventListener("beforeprint", print(true));
  window.addEventListener("afterprint", print(false));
  document.body.dataset.ready = "yes";
}

start().catch((error) => {
  const line = document.getElementById("fault");
  line.hidden = false;
  line.textContent = `The pictures cannot be drawn by this browser: ${error.message}`;
  throw error;
});
