// The communication matrix: origins from top to bottom, targets from left to right.
"use strict";

class Matrix {
  constructor(values) {
    const info = report.matrix;
    Object.assign(this, info); // size, tile, measures, pairs
    this.cells = info.size * info.size;
    // Values are encoded as 1000 * log2(value + 1) by `scaled` in blobs.rs.
    const scaled = new Uint16Array(values.buffer);
    this.planes = info.measures.map((_, k) => scaled.subarray(k * this.cells, (k + 1) * this.cells));
    this.measure = 0;
    this.view = { x: 0, y: 0, n: info.size };
    this.chosen = null;
    this.canvas = document.getElementById("matrix");
    this.draw = drawnOnce(() => this.drawNow());
    this.listen();
    this.draw();
  }

  value(measure, row, column) {
    return Math.pow(2, this.planes[measure][row * this.size + column] / 1000) - 1;
  }

  frame(width, height) {
    const side = Math.max(10, Math.min(width - 64, height - 28));
    return { left: 56, top: 22, side, cell: side / this.view.n };
  }

  drawNow() {
    const { pen, width, height } = fitted(this.canvas), look = theme(), view = this.view;
    const { left, top, side, cell } = this.frame(width, height);
    pen.fillStyle = look.back;
    pen.fillRect(0, 0, width, height);
    const plane = this.planes[this.measure];
    let most = 0, least = 65535;
    for (const value of plane) {
      if (value > most) most = value;
      if (value > 0 && value < least) least = value;
    }
    this.scale = { least: Math.min(least, most), most };
    const span = Math.max(1, most - this.scale.least);
    const picture = new ImageData(view.n, view.n), pixels = picture.data;
    for (let y = 0; y < view.n; y++) {
      for (let x = 0; x < view.n; x++) {
        const value = plane[(y + view.y) * this.size + x + view.x], at = 4 * (y * view.n + x);
        const colour = value === 0 ? look.rowRgb : cividis((value - this.scale.least) / span);
        pixels[at] = colour[0]; pixels[at + 1] = colour[1]; pixels[at + 2] = colour[2]; pixels[at + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(view.n, view.n);
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = cell < 1;
    pen.drawImage(small, left, top, side, side);
    this.drawHosts(pen, look, left, top, side, cell);
    if (this.chosen) {
      const [row, column] = this.chosen;
      pen.strokeStyle = look.mark;
      pen.lineWidth = 2;
      pen.strokeRect(left + (column - view.x) * cell - 1, top + (row - view.y) * cell - 1, Math.max(cell, 3) + 2, Math.max(cell, 3) + 2);
    }
    pen.fillStyle = look.text;
    pen.font = "12px system-ui, sans-serif";
    pen.fillText("target →", left, top - 8);
    pen.textAlign = "right";
    pen.fillText("origin ↓", left - 6, top - 8);
    const step = Math.max(1, Math.ceil(24 / cell));
    pen.fillStyle = look.faint;
    for (let k = 0; k < view.n; k += step) {
      pen.fillText(String((k + view.y) * this.tile), left - 6, top + (k + 0.5) * cell + 4);
    }
    pen.textAlign = "left";
    this.drawScale();
  }

  // Draws a square for each host. Transfers inside it do not leave the host.
  drawHosts(pen, look, left, top, side, cell) {
    const view = this.view;
    pen.save();
    pen.beginPath();
    pen.rect(left - 1, top - 1, side + 2, side + 2);
    pen.clip();
    pen.lineWidth = 1.5;
    pen.strokeStyle = look.dark ? "#ffffff" : "#d55e00";
    for (const [first, count] of report.hostRanges) {
      const from = first / this.tile, size = count / this.tile;
      pen.strokeRect(left + (from - view.x) * cell, top + (from - view.y) * cell, size * cell, size * cell);
    }
    pen.restore();
  }

  text(measure, value) {
    return measure === 0 ? bytesText(value) : measure === 1 ? countText(value) : timeText(value);
  }

  drawScale() {
    const canvas = document.getElementById("matrix-scale");
    const { pen, width, height } = fitted(canvas), look = theme();
    pen.fillStyle = look.back;
    pen.fillRect(0, 0, width, height);
    // If all cells have the same value, the scale has one colour.
    const { least, most } = this.scale, equal = least === most;
    for (let x = 0; x < width; x++) {
      pen.fillStyle = `rgb(${cividis(equal ? 0 : x / width).join()})`;
      pen.fillRect(x, 0, 1, 12);
    }
    const back = (q) => Math.pow(2, q / 1000) - 1;
    pen.fillStyle = look.text;
    pen.font = "12px system-ui, sans-serif";
    if (most === 0) { pen.fillText("nothing was sent", 0, 26); return; }
    pen.fillText(this.text(this.measure, back(least)) + (equal ? " in each cell that is not empty" : ""), 0, 26);
    if (equal) return;
    pen.textAlign = "center";
    pen.fillText(this.text(this.measure, back((least + most) / 2)), width / 2, 26);
    pen.textAlign = "right";
    pen.fillText(this.text(this.measure, back(most)), width, 26);
    pen.textAlign = "left";
  }

  at(event) {
    const { left, top, cell } = this.frame(this.canvas.clientWidth, this.canvas.clientHeight);
    const [x, y] = placeOf(event);
    const column = Math.floor((x - left) / cell), row = Math.floor((y - top) / cell), n = this.view.n;
    if (column < 0 || row < 0 || column >= n || row >= n) return null;
    return [row + this.view.y, column + this.view.x];
  }

  describe([row, column]) {
    const who = (k) => ranksText(k * this.tile, this.tile, report.ranks);
    const values = report.matrix.measures.map((_, k) => this.value(k, row, column));
    if (values[1] < 0.5) return [`${who(row)} → ${who(column)}: nothing`];
    return [
      `${who(row)} → ${who(column)}`,
      `${bytesText(values[0])} in ${countText(values[1])} calls, ${timeText(values[2])} each`,
    ];
  }

  choose(cell) {
    this.chosen = cell;
    this.draw();
    const out = document.getElementById("matrix-chosen");
    out.replaceChildren();
    if (!cell) return;
    const text = document.createElement("p");
    text.textContent = this.describe(cell).join(": ");
    out.append(text);
    const [row, column] = cell, tile = this.tile;
    if (tile > 1) {
      const pairs = report.matrix.pairs.filter(([from, to]) =>
        Math.floor(from / tile) === row && Math.floor(to / tile) === column);
      const list = document.createElement("p");
      list.textContent = pairs.slice(0, 12).map(([from, to, bytes, calls]) =>
        `${from} → ${to}: ${bytesText(bytes)} in ${countText(calls)}`).join("; ");
      out.append(list);
    }
    const button = document.createElement("button");
    button.textContent = "show the origin in the timeline";
    button.addEventListener("click", () => timeline.showRank(row * tile));
    out.append(button);
  }

  // Zooms by a factor around a cell.
  zoom(factor, [row, column]) {
    const old = this.view.n;
    const n = Math.max(Math.min(8, this.size), Math.min(this.size, Math.round(old * factor)));
    const move = (at, from) => Math.round(at - (at - from) * n / old);
    this.view = { n, x: move(column, this.view.x), y: move(row, this.view.y) };
    this.keepInside();
  }

  keepInside() {
    const room = this.size - this.view.n;
    this.view.x = Math.min(Math.max(this.view.x, 0), room);
    this.view.y = Math.min(Math.max(this.view.y, 0), room);
    this.draw();
  }

  listen() {
    const canvas = this.canvas;
    for (const input of document.querySelectorAll("[name=measure]")) {
      input.addEventListener("change", () => { this.measure = Number(input.value); this.draw(); });
    }
    canvas.addEventListener("mousemove", (event) => {
      const cell = this.at(event);
      showHint(cell ? this.describe(cell) : [], event);
    });
    canvas.addEventListener("mouseleave", (event) => showHint([], event));
    canvas.addEventListener("click", (event) => { canvas.focus(); this.choose(this.at(event)); });
    canvas.addEventListener("dblclick", (event) => { const cell = this.at(event); if (cell) this.zoom(0.5, cell); });
    canvas.addEventListener("wheel", (event) => {
      const cell = this.at(event);
      if (!cell || !(event.ctrlKey || document.activeElement === canvas)) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.4 : 1 / 1.4, cell);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const last = this.size - 1, [row, column] = this.chosen || [0, 0];
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (move) {
      const inside = (v) => Math.min(Math.max(v, 0), last);
      const cell = this.chosen ? [inside(row + move[0]), inside(column + move[1])] : [0, 0];
      const { x, y, n } = this.view, near = (at, from) => at < from ? at : at >= from + n ? at - n + 1 : from;
      this.view = { n, x: near(cell[1], x), y: near(cell[0], y) };
      this.choose(cell);
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(0.5, [row, column]);
    } else if (event.key === "-") {
      this.zoom(2, [row, column]);
    } else if (event.key === "Home" || event.key === "0") {
      this.view = { x: 0, y: 0, n: this.size };
      this.draw();
    } else if (event.key === "Escape") {
      this.choose(null);
    } else {
      return;
    }
    event.preventDefault();
  }
}
