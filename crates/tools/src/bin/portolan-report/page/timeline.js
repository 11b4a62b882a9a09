// The timeline: ranks from top to bottom, time from left to right.
//
// Zoomed out, a row consists of columns of a precomputed level, which hold the fraction of time in
// each state. Zoomed in, the events that the page contains are drawn individually: all events if
// the trace is short or a finding points to this range, otherwise the longest of each rank.
"use strict";

const GUTTER = 92, AXIS = 24, STRIP = 26, LANE = 16;
const NO_PEER = 0xffffffff, BESIDE = 9;

class Timeline {
  constructor(levels, events) {
    Object.assign(this, report.timeline); // rows, each, levels: [{columns, at}], wall
    this.planes = levels;
    this.events = events;
    this.canvas = document.getElementById("timeline");
    this.status = document.getElementById("timeline-status");
    this.view = { from: 0, to: this.wall, top: 0, rows: this.rows };
    this.mark = null; // an event, or a wait found by the search
    this.lane = 0; // the rank whose regions are shown above the rows
    this.indexEvents();
    this.draw = drawnOnce(() => this.drawNow());
    this.draw();
  }

  // Indexes the events, which are sorted by row and start. The running maximum of their ends finds
  // the events that reach into a view.
  indexEvents() {
    const { row, begin, end } = this.events, count = row.length;
    this.first = new Uint32Array(this.rows + 1).fill(count);
    this.latest = new Float64Array(count);
    for (let k = count - 1; k >= 0; k--) this.first[row[k]] = k;
    for (let r = this.rows - 1; r >= 0; r--) this.first[r] = Math.min(this.first[r], this.first[r + 1]);
    for (let k = 0; k < count; k++) {
      const fresh = k === 0 || row[k] !== row[k - 1];
      this.latest[k] = fresh ? end[k] : Math.max(this.latest[k - 1], end[k]);
    }
  }

  // Returns the index range of the events of a row that may overlap a time range.
  eventsIn(row, from, to) {
    const search = (values, low, high, wanted, beyond) => {
      while (low < high) {
        const middle = (low + high) >> 1;
        if (beyond ? values[middle] <= wanted : values[middle] < wanted) low = middle + 1; else high = middle;
      }
      return low;
    };
    const begin = search(this.latest, this.first[row], this.first[row + 1], from, false);
    const end = search(this.events.begin, begin, this.first[row + 1], to, true);
    return [begin, end];
  }

  // Returns whether the page contains all events of a time range.
  isComplete(from, to) {
    return report.events.windows.some(([a, b]) => a <= from && to <= b);
  }

  plot() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const top = AXIS + (report.regions.spans.length ? LANE : 0);
    return { left: GUTTER, top, width: width - GUTTER - 8, height: height - top - STRIP - 6 };
  }

  x(time) {
    const { left, width } = this.plot();
    return left + (time - this.view.from) / (this.view.to - this.view.from) * width;
  }

  time(x) {
    const { left, width } = this.plot();
    return this.view.from + (x - left) / width * (this.view.to - this.view.from);
  }

  rowHeight() { return this.plot().height / this.view.rows; }

  rowAt(y) { return Math.floor((y - this.plot().top) / this.rowHeight() + this.view.top); }

  // Returns the coarsest level that has a column for each pixel, or the finest level.
  levelFor(from, to, points) {
    const wanted = points / ((to - from) / this.wall);
    const found = this.levels.findIndex((level) => level.columns >= wanted);
    return found < 0 ? this.levels.length - 1 : found;
  }

  // Returns the fraction of a cell's time that was spent in a state, from 0 to 1.
  part(level, state, row, column) {
    const { at, columns } = this.levels[level];
    return this.planes[at + (state * this.rows + row) * columns + column] / report.timeline.whole;
  }

  drawNow() {
    const { pen, width, height } = fitted(this.canvas), look = theme(), plot = this.plot();
    pen.fillStyle = look.back;
    pen.fillRect(0, 0, width, height);
    this.drawAxis(pen, look, plot);
    const level = this.levelFor(this.view.from, this.view.to, plot.width);
    pen.save();
    pen.beginPath();
    pen.rect(plot.left, plot.top, plot.width, plot.height);
    pen.clip();
    const near = this.isComplete(this.view.from, this.view.to);
    const counted = this.countEvents();
    const single = near && counted <= 40000;
    if (single) {
      pen.fillStyle = look.row;
      this.eachRow((row, y, h) => pen.fillRect(plot.left, y + gap(h), plot.width, h - 2 * gap(h)));
    } else {
      this.drawLevel(pen, look, plot, level);
    }
    const drawn = this.drawEvents(pen, look, plot, single);
    const lines = this.drawMessages(pen, look, plot);
    this.drawMark(pen, look, plot);
    pen.restore();
    this.drawRows(pen, look, plot);
    this.drawLane(pen, look, plot);
    this.drawStrip(pen, look, plot, height);
    const first = Math.floor(this.view.top), last = Math.min(this.rows, Math.ceil(this.view.top + this.view.rows));
    this.status.textContent =
      `${timeText(this.view.from)} to ${timeText(this.view.to)}, ` +
      `${ranksText(first * this.each, (last - first) * this.each, report.ranks)}; ` +
      (single ? "all events" : `level ${level + 1} of ${this.levels.length}, ${timeText(this.wall / this.levels[level].columns)} a column`) +
      `; ${countText(drawn)} events, ${countText(lines)} messages drawn`;
  }

  eachRow(action) {
    const height = this.rowHeight(), { top } = this.plot();
    const last = Math.min(this.rows, Math.ceil(this.view.top + this.view.rows));
    for (let row = Math.floor(this.view.top); row < last; row++) {
      action(row, top + (row - this.view.top) * height, height);
    }
  }

  countEvents() {
    let count = 0;
    this.eachRow((row) => { const [a, b] = this.eventsIn(row, this.view.from, this.view.to); count += b - a; });
    return count;
  }

  drawAxis(pen, look, plot) {
    const span = this.view.to - this.view.from;
    const rough = span / Math.max(2, plot.width / 110), power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let time = Math.ceil(this.view.from / step) * step; time <= this.view.to; time += step) {
      const x = this.x(time);
      pen.fillStyle = look.line;
      pen.fillRect(x, AXIS - 6, 1, plot.top - AXIS + 6 + plot.height);
      pen.fillStyle = look.faint;
      pen.fillText(axisText(time, step), Math.min(Math.max(x, plot.left + 20), plot.left + plot.width - 16), AXIS - 10);
    }
    pen.textAlign = "left";
  }

  // Draws the columns of a level: as stacked bars if rows are high, as mixed colours if rows are
  // low.
  drawLevel(pen, look, plot, level) {
    const { columns } = this.levels[level], height = this.rowHeight(), states = report.states.length;
    const from = Math.max(0, Math.floor(this.view.from / this.wall * columns));
    const to = Math.min(columns, Math.ceil(this.view.to / this.wall * columns));
    const wide = plot.width / ((this.view.to - this.view.from) / this.wall * columns);
    const start = this.x(from / columns * this.wall);
    if (height >= 10) {
      this.eachRow((row, y, h) => {
        const low = y + gap(h), room = h - 2 * gap(h);
        pen.fillStyle = look.row;
        pen.fillRect(plot.left, low, plot.width, room);
        for (let state = 0; state < states; state++) {
          pen.fillStyle = report.states[state].colour;
          for (let column = from; column < to; column++) {
            const part = this.part(level, state, row, column);
            if (part === 0) continue;
            let below = 0;
            for (let other = 0; other < state; other++) below += this.part(level, other, row, column);
            if (below >= 1) continue;
            const size = Math.min(part, 1 - below) * room;
            pen.fillRect(start + (column - from) * wide, low + room - below * room - size, wide + 0.3, size);
          }
        }
      });
      return;
    }
    const first = Math.floor(this.view.top), last = Math.min(this.rows, Math.ceil(this.view.top + this.view.rows));
    const picture = new ImageData(Math.max(1, to - from), Math.max(1, last - first)), pixels = picture.data;
    const [r0, g0, b0] = look.rowRgb;
    for (let row = first; row < last; row++) {
      for (let column = from; column < to; column++) {
        let rest = 1, r = 0, g = 0, b = 0;
        for (let state = 0; state < states && rest > 0; state++) {
          const part = Math.min(rest, this.part(level, state, row, column));
          if (part === 0) continue;
          const colour = STATE_RGB[state];
          r += part * colour[0]; g += part * colour[1]; b += part * colour[2];
          rest -= part;
        }
        const at = 4 * ((row - first) * picture.width + column - from);
        pixels[at] = r + rest * r0; pixels[at + 1] = g + rest * g0; pixels[at + 2] = b + rest * b0; pixels[at + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(picture.width, picture.height);
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = height < 1;
    pen.drawImage(small, start, plot.top + (first - this.view.top) * height, (to - from) * wide, (last - first) * height);
  }

  // Draws events in the order of their start times, so that a nested event is drawn over the event
  // that contains it. The nested event has a lower top edge.
  drawEvents(pen, look, plot, all) {
    let drawn = 0;
    const { begin, end, state, depth } = this.events;
    this.eachRow((row, y, h) => {
      if (h < 3) return;
      const [a, b] = this.eventsIn(row, this.view.from, this.view.to);
      let filled = -1;
      for (let k = a; k < b; k++) {
        if (end[k] < this.view.from) continue;
        const from = this.x(begin[k]), to = this.x(end[k]);
        if (!all && to - from < 3) continue;
        if (to - from < 0.7 && to < filled) { drawn += 1; continue; }
        filled = Math.max(to, from + 0.7);
        // Events of other threads are drawn at the bottom of the row.
        const inset = gap(h) + (depth[k] === BESIDE ? h * 0.75 : Math.min(depth[k] * h * 0.16, h * 0.32));
        pen.fillStyle = report.states[state[k]].colour;
        pen.fillRect(from, y + inset, Math.max(to - from, 0.7), h - inset - gap(h));
        if (to - from > 4 && h > 8) {
          pen.strokeStyle = look.back;
          pen.lineWidth = 0.5;
          pen.strokeRect(from, y + inset, to - from, h - inset - gap(h));
        }
        const covered = k + 1 < b && begin[k + 1] < end[k] && depth[k + 1] > depth[k];
        if (to - from > 60 && h > 16 && (!covered || h * 0.16 > 12)) {
          pen.fillStyle = report.states[state[k]].light ? "#000" : "#fff";
          pen.font = "11px system-ui, sans-serif";
          const name = report.names[this.events.name[k]];
          const shown = Math.max(from, plot.left) + 4;
          if (pen.measureText(name).width < to - shown - 4) pen.fillText(name, shown, y + inset + 11);
        }
        drawn += 1;
      }
    });
    return drawn;
  }

  // Draws each transfer as a line from its start at the source to its end at the destination,
  // unless the view contains more than 2000.
  drawMessages(pen, look, plot) {
    const found = [], { begin, end, peer, moves } = this.events, height = this.rowHeight();
    if (height < 8) return 0;
    this.eachRow((row) => {
      const [a, b] = this.eventsIn(row, this.view.from, this.view.to);
      for (let k = a; k < b && found.length <= 2000; k++) {
        if (moves[k] && peer[k] !== NO_PEER && end[k] >= this.view.from) found.push([row, k]);
      }
    });
    if (found.length > 2000) return 0;
    const middle = (row) => plot.top + (row + 0.5 - this.view.top) * height;
    let drawn = 0;
    pen.lineWidth = 1;
    for (const [row, k] of found) {
      const to = Math.floor(peer[k] / this.each);
      if (to === row) continue;
      const reads = moves[k] === 2; // the bytes of a get come from the target
      const [y1, y2] = reads ? [middle(to), middle(row)] : [middle(row), middle(to)];
      const x1 = this.x(begin[k]), x2 = Math.max(this.x(end[k]), x1 + 1);
      pen.strokeStyle = look.mark;
      pen.globalAlpha = 0.55;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      const angle = Math.atan2(y2 - y1, x2 - x1);
      for (const side of [-0.4, 0.4]) {
        pen.moveTo(x2, y2);
        pen.lineTo(x2 - 7 * Math.cos(angle + side), y2 - 7 * Math.sin(angle + side));
      }
      pen.stroke();
      drawn += 1;
    }
    pen.globalAlpha = 1;
    return drawn;
  }

  drawMark(pen, look, plot) {
    if (!this.mark) return;
    const { row, from, to } = this.mark, height = this.rowHeight();
    const x = this.x(from), wide = Math.max(3, this.x(to) - x);
    pen.strokeStyle = look.mark;
    pen.lineWidth = 2;
    pen.strokeRect(x, plot.top + (row - this.view.top) * height, wide, Math.max(3, height));
  }

  drawRows(pen, look, plot) {
    const height = this.rowHeight(), step = Math.max(1, Math.ceil(20 / height));
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillStyle = look.text;
    this.eachRow((row, y, h) => {
      const middle = y + h / 2;
      if (row % step || middle < plot.top || middle > plot.top + plot.height) return;
      pen.fillText(ranksText(row * this.each, this.each, report.ranks), GUTTER - 8, middle + 4);
    });
    pen.textAlign = "left";
    // Lines separate the hosts. They extend into the labels if there is room between these.
    const first = report.hostRanges[1] ? report.hostRanges[1][0] / this.each * height : 0;
    const start = first > 30 ? 4 : plot.left;
    pen.fillStyle = look.text;
    for (const [first] of report.hostRanges) {
      const y = plot.top + (first / this.each - this.view.top) * height;
      if (first > 0 && y > plot.top && y < plot.top + plot.height) pen.fillRect(start, y - 0.5, plot.left + plot.width - start, first > 30 ? 1 : 0.5);
    }
  }

  // Draws the regions of one rank, above the rows.
  drawLane(pen, look, plot) {
    if (!report.regions.spans.length) return;
    pen.save();
    pen.beginPath();
    pen.rect(plot.left, AXIS, plot.width, LANE);
    pen.clip();
    pen.font = "11px system-ui, sans-serif";
    for (const [rank, name, from, to] of report.regions.spans) {
      if (rank !== this.lane || to < this.view.from || from > this.view.to) continue;
      const x = this.x(from), wide = Math.max(1, this.x(to) - x);
      pen.fillStyle = name % 2 ? look.line : look.row;
      pen.fillRect(x, AXIS, wide, LANE - 3);
      pen.fillStyle = look.faint;
      pen.fillRect(x, AXIS, 1, LANE - 3);
      const shown = Math.max(x, plot.left) + 3;
      pen.fillStyle = look.text;
      if (pen.measureText(report.regions.names[name]).width < x + wide - shown) pen.fillText(report.regions.names[name], shown, AXIS + 10);
    }
    pen.restore();
    pen.fillStyle = look.faint;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText(`regions of ${this.lane}`, GUTTER - 8, AXIS + 10);
    pen.textAlign = "left";
  }

  // Draws an overview of the whole job below the rows, and marks the visible part.
  drawStrip(pen, look, plot, height) {
    const top = height - STRIP, { columns } = this.levels[0];
    if (!this.overview) this.overview = this.averages();
    for (let column = 0; column < columns; column++) {
      const x = plot.left + column / columns * plot.width, wide = plot.width / columns + 0.3;
      pen.fillStyle = look.row;
      pen.fillRect(x, top, wide, STRIP - 4);
      let low = top + STRIP - 4;
      report.states.forEach((state, k) => {
        const size = Math.min(this.overview[k * columns + column] * (STRIP - 4), low - top);
        if (size <= 0) return;
        pen.fillStyle = state.colour;
        pen.fillRect(x, low - size, wide, size);
        low -= size;
      });
    }
    const at = (time) => plot.left + time / this.wall * plot.width;
    pen.strokeStyle = look.mark;
    pen.lineWidth = 2;
    pen.strokeRect(at(this.view.from), top - 1, Math.max(3, at(this.view.to) - at(this.view.from)), STRIP - 2);
    pen.fillStyle = look.faint;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText("whole job", GUTTER - 8, top + 15);
    pen.textAlign = "left";
  }

  averages() {
    const { columns } = this.levels[0], all = new Float64Array(report.states.length * columns);
    for (let state = 0; state < report.states.length; state++) {
      for (let row = 0; row < this.rows; row++) {
        for (let column = 0; column < columns; column++) {
          all[state * columns + column] += this.part(0, state, row, column) / this.rows;
        }
      }
    }
    return all;
  }
}

function gap(height) { return height >= 6 ? Math.min(2, height * 0.1) : 0; }

function axisText(time, step) {
  const [unit, size] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = step / size < 1 ? 1 : 0;
  return (time / size).toFixed(digits) + " " + unit;
}
