// Mouse, wheel, keyboard, touch and search controls of the timeline.
"use strict";

Object.assign(Timeline.prototype, {
  // Shows a time range and, if given, a range of rows. Both are clamped to the job.
  show(from, to, top = this.view.top, rows = this.view.rows) {
    const least = Math.min(this.wall, 200);
    const span = Math.min(Math.max(to - from, least), this.wall);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - span / 2, 0), this.wall - span);
    const shown = Math.min(Math.max(rows, Math.min(2, this.rows)), this.rows);
    this.view = {
      from: begin, to: begin + span,
      top: Math.min(Math.max(top, 0), this.rows - shown), rows: shown,
    };
    this.draw();
  },

  zoom(factor, around = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.show(around - (around - from) * factor, around + (to - around) * factor);
  },

  zoomRows(factor, around = this.view.top + this.view.rows / 2) {
    const { from, to, top, rows } = this.view;
    const shown = Math.min(Math.max(rows * factor, 2), this.rows);
    this.show(from, to, around - (around - top) * shown / rows, shown);
  },

  pan(part) {
    const { from, to } = this.view, by = (to - from) * part;
    this.show(from + by, to + by);
  },

  panRows(rows) { this.show(this.view.from, this.view.to, this.view.top + rows); },

  all() { this.mark = null; this.show(0, this.wall, 0, this.rows); },

  showRank(rank) {
    const row = Math.floor(rank / this.each);
    this.lane = rank;
    this.show(this.view.from, this.view.to, row - 4, Math.min(this.rows, 12));
    this.canvas.scrollIntoView({ block: "nearest" });
    this.canvas.focus({ preventScroll: true });
  },

  // Centres the view on a time range of a rank, and marks the range if `marked` is true.
  showSpan(rank, from, to, marked = true) {
    const row = Math.floor(rank / this.each), rows = Math.min(this.rows, 16);
    const room = Math.max((to - from) * 0.25, 100);
    this.mark = marked ? { row, from, to } : null;
    this.lane = rank;
    this.show(from - room, to + room, row - rows / 2, rows);
    this.canvas.scrollIntoView({ block: "nearest" });
    this.canvas.focus({ preventScroll: true });
  },

  listen() {
    const canvas = this.canvas;
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus();
      const [x, y] = placeOf(event);
      const strip = y > canvas.clientHeight - STRIP;
      grip = { x, y, strip, chosen: event.shiftKey && !strip, view: { ...this.view }, moved: false };
      canvas.setPointerCapture(event.pointerId);
      if (strip) this.goTo(x);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = placeOf(event);
      if (!grip) { showHint(this.describe(x, y), event); return; }
      showHint([], event);
      grip.moved = grip.moved || Math.abs(x - grip.x) + Math.abs(y - grip.y) > 3;
      if (grip.strip) { this.goTo(x); return; }
      if (grip.chosen) { this.drawChoice(grip.x, x); return; }
      const { view } = grip, by = (grip.x - x) / this.plot().width * (view.to - view.from);
      this.show(view.from + by, view.to + by, view.top + (grip.y - y) / this.rowHeight());
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = placeOf(event);
      if (grip && grip.chosen && grip.moved) {
        this.show(this.time(Math.min(x, grip.x)), this.time(Math.max(x, grip.x)));
      } else if (grip && !grip.moved && !grip.strip) {
        this.choose(x, y);
      }
      grip = null;
    });
    canvas.addEventListener("pointerleave", (event) => showHint([], event));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(placeOf(event)[0])));
    canvas.addEventListener("wheel", (event) => {
      // Without focus, the wheel scrolls the page.
      if (!(event.ctrlKey || document.activeElement === canvas)) return;
      event.preventDefault();
      const [x, y] = placeOf(event), factor = event.deltaY > 0 ? 1.25 : 0.8;
      if (event.shiftKey) this.zoomRows(factor, (y - this.plot().top) / this.rowHeight() + this.view.top);
      else this.zoom(factor, this.time(x));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const button of document.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => this.key({ key: button.dataset.do, preventDefault() {} }));
    }
    for (const link of document.querySelectorAll("[data-show]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const [rank, from, to] = link.dataset.show.split(" ").map(Number);
        this.showSpan(rank, from, to, false);
      });
    }
    this.listenSearch();
  },

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const actions = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), a: () => this.pan(-0.2), d: () => this.pan(0.2),
      ArrowUp: () => this.panRows(-Math.max(1, this.view.rows / 8)), ArrowDown: () => this.panRows(Math.max(1, this.view.rows / 8)),
      PageUp: () => this.panRows(-this.view.rows), PageDown: () => this.panRows(this.view.rows),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), w: () => this.zoom(0.5), "-": () => this.zoom(2), s: () => this.zoom(2),
      "[": () => this.zoomRows(0.5), "]": () => this.zoomRows(2),
      Home: () => this.all(), 0: () => this.all(),
      n: () => this.step(1), p: () => this.step(-1),
      Escape: () => { this.mark = null; this.draw(); },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  },

  // Centres the view at the point where the overview strip was touched.
  goTo(x) {
    const { left, width } = this.plot(), middle = (x - left) / width * this.wall;
    const half = (this.view.to - this.view.from) / 2;
    this.show(middle - half, middle + half);
  },

  drawChoice(from, to) {
    this.drawNow();
    const pen = this.canvas.getContext("2d"), { top, height } = this.plot();
    pen.globalAlpha = 0.25;
    pen.fillStyle = theme().mark;
    pen.fillRect(Math.min(from, to), top, Math.abs(to - from), height);
    pen.globalAlpha = 1;
  },

  // Returns the index of the innermost event at a point, or -1.
  eventAt(row, time) {
    const slack = (this.view.to - this.view.from) / this.plot().width * 2;
    const [a, b] = this.eventsIn(row, time - slack, time + slack);
    const complete = this.isComplete(this.view.from, this.view.to);
    let found = -1;
    for (let k = a; k < b; k++) {
      const { begin, end } = this.events;
      if (begin[k] > time + slack || end[k] < time - slack) continue;
      if (!complete && this.x(end[k]) - this.x(begin[k]) < 3) continue;
      const inside = begin[k] <= time && time <= end[k];
      if (found < 0 || inside) found = k;
    }
    return found;
  },

  describe(x, y) {
    const plot = this.plot(), row = this.rowAt(y), time = this.time(x);
    if (x < plot.left || x > plot.left + plot.width || y < plot.top || y > plot.top + plot.height || row >= this.rows) return [];
    const who = `${ranksText(row * this.each, this.each, report.ranks)} at ${timeText(time)}`;
    const k = this.rowHeight() >= 3 ? this.eventAt(row, time) : -1;
    if (k >= 0) return [who, ...this.eventText(k)];
    if (this.isComplete(this.view.from, this.view.to)) return [who, "outside of calls"];
    const level = this.levelFor(this.view.from, this.view.to, plot.width), { columns } = this.levels[level];
    const column = Math.min(columns - 1, Math.floor(time / this.wall * columns));
    const parts = report.states.map((state, s) => [this.part(level, s, row, column), state.name]);
    const lines = parts.filter(([part]) => part > 0).sort((a, b) => b[0] - a[0])
      .map(([part, name]) => `${Math.round(part * 100)} % ${name}`);
    const sum = parts.reduce((all, [part], s) => all + (report.states[s].beside ? 0 : part), 0);
    if (sum < 0.99) lines.push(`${Math.round((1 - sum) * 100)} % outside of calls`);
    return [who, ...lines];
  },

  eventText(k) {
    const { begin, end, name, peer, bytes, path, rank } = this.events, lines = [];
    const to = peer[k] === NO_PEER ? "" : ` ${report.prepositions[name[k]]} rank ${peer[k]}`;
    lines.push(`rank ${rank[k]}: ${report.names[name[k]]}${to}`);
    lines.push(`${timeText(end[k] - begin[k])} from ${timeText(begin[k])}`);
    if (bytes[k] > 0) lines.push(bytesText(bytes[k]) + (path[k] ? `, path ${report.paths[path[k]]}` : ""));
    else if (path[k]) lines.push(`path ${report.paths[path[k]]}`);
    const site = this.siteOf(k);
    if (site) lines.push(`called at ${site}`);
    return lines;
  },

  // Returns the place in the program of a call, or of the call that contains a wait.
  siteOf(k) {
    const { begin, end, row, rank, site } = this.events;
    for (let n = k; n >= Math.max(0, k - 50) && row[n] === row[k]; n--) {
      const contains = rank[n] === rank[k] && begin[n] <= begin[k] && end[n] >= end[k];
      if (contains && site[n] !== NO_PEER) return report.sites[site[n]];
    }
    return "";
  },

  choose(x, y) {
    const row = this.rowAt(y);
    if (row < 0 || row >= this.rows) return;
    this.lane = row * this.each;
    const k = this.eventAt(row, this.time(x));
    this.mark = k < 0 ? null : { row, from: this.events.begin[k], to: this.events.end[k] };
    document.getElementById("timeline-chosen").textContent = k < 0 ? "" : this.eventText(k).join("; ");
    this.draw();
  },

  // --- The longest waits.

  listenSearch() {
    this.found = report.waits.map((_, k) => k);
    this.place = -1;
    const input = document.getElementById("search");
    input.addEventListener("input", () => this.search(input.value));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.step(event.shiftKey ? -1 : 1); input.focus(); }
    });
    this.search("");
  },

  waitText(k) {
    const [rank, from, to, name, peer] = report.waits[k];
    const whom = peer === null ? "" : ` ${report.prepositions[name]} rank ${peer}`;
    return `rank ${rank} ${report.names[name]}${whom}: ${timeText(to - from)} at ${timeText(from)}`;
  },

  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    // A number matches only a whole number: "rank 7" does not match rank 70.
    const has = (line, word) => /^\d+$/.test(word) ? line.split(/[^0-9]+/).includes(word) : line.includes(word);
    this.found = report.waits.map((_, k) => k).filter((k) => {
      const line = this.waitText(k).split(": ")[0].toLowerCase();
      return words.every((word) => has(line, word));
    });
    this.place = -1;
    this.listFound();
  },

  step(by) {
    if (!this.found.length) return;
    this.place = (this.place + by + this.found.length) % this.found.length;
    const [rank, from, to] = report.waits[this.found[this.place]];
    this.showSpan(rank, from, to);
    this.listFound();
  },

  listFound() {
    const list = document.getElementById("waits");
    list.replaceChildren(...this.found.slice(0, 50).map((k, place) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.textContent = this.waitText(k);
      if (place === this.place) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => { this.place = place - 1; this.step(1); });
      item.append(button);
      return item;
    }));
    document.getElementById("waits-count").textContent =
      report.waits.length === 0 ? "No wait was recorded." : `${this.found.length} of the ${report.waits.length} longest waits`;
  },
});
