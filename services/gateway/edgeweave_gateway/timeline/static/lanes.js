// The picture: a lane for each engine, and for the request that is followed one of its own and one for the link.
//
// Knows the library that draws. Times are milliseconds of the wall clock, on the axis seconds since `origin`.

import { clockTime, duration, wordsOf } from "/timeline/files/spans.js";
import { KINDS, OF_REQUESTS, isBubble } from "/timeline/files/kinds.js";
import { COLUMNS as STACK_COLUMNS, stacksOf } from "/timeline/files/stacks.js";

const LANES = { request: 3, edge: 2, link: 1, cloud: 0 };
const HALF = 0.38;
const DIMMED = 0.13;
const COLUMNS = ["left", "right", "bottom", "top", "alpha", "kind", "length", "words"];
const SHORTEST_VIEW_S = 0.0002;

export class Lanes {
  constructor(target, { maxSpans, onClick, onMove }) {
    this.target = target;
    this.maxSpans = maxSpans;
    this.onClick = onClick;
    this.onMove = onMove;
    this.origin = null;
    this.followed = null;
    this.known = {}; // by kind: the spans of a source, in its order
    this.hidden = new Set();
    this.isStacked = false;
  }

  // Build the empty picture.
  async open() {
    const { Plotting, Range1d } = Bokeh;
    this.x = new Range1d({ start: 0, end: 1, min_interval: SHORTEST_VIEW_S });
    const wheel = new Bokeh.WheelZoomTool({ dimensions: "width" });
    const pan = new Bokeh.PanTool({ dimensions: "width" });
    const box = new Bokeh.BoxZoomTool({ dimensions: "width" });
    this.hover = new Bokeh.HoverTool({
      tooltips: [["", "@kind"], ["took", "@length"], ["", "@words"]],
      renderers: [],
    });
    this.figure = Plotting.figure({
      tools: [pan, wheel, box, this.hover],
      x_range: this.x,
      y_range: new Range1d({ start: -0.6, end: 3.6 }),
      height: 340,
      sizing_mode: "stretch_width",
      output_backend: "webgl",
      x_axis_label: "seconds",
    });
    this.figure.toolbar.logo = null;
    this.figure.toolbar.active_scroll = wheel;
    this.figure.toolbar.active_drag = pan;
    this._axes();
    this.sources = {};
    this.renderers = {};
    for (const [kind, { colour }] of Object.entries({ ...KINDS, ...OF_REQUESTS })) this._add(kind, colour);
    this.stack = new Bokeh.ColumnDataSource({ data: emptied(STACK_COLUMNS) });
    const at = (field) => ({ field });
    this.stacked = this.figure.quad(at("left"), at("right"), at("bottom"), at("top"), {
      source: this.stack, fill_color: at("colour"), line_color: at("colour"), visible: false,
    });
    this.hover.renderers = [...Object.values(this.renderers), this.stacked];
    this.path = new Bokeh.ColumnDataSource({ data: { x: [], y: [] } });
    this.figure.line({ field: "x" }, { field: "y" }, {
      source: this.path, line_color: "#1d2733", line_width: 1, line_alpha: 0.5,
    });
    this.figure.on_event("tap", (event) => this._tapped(event));
    this.x.change.connect(() => this.onMove());
    this.view = await Plotting.show(this.figure, this.target);
  }

  // Draw more spans of engines.
  draw(spans) {
    if (this.origin === null && spans.length) this._setOrigin(spans[0].begin);
    this._stream(spans);
  }

  // Show one request: its units bright, its way through them, and what is known of it beside the engines.
  follow(trace, units, beside) {
    this.followed = trace;
    for (const kind of Object.keys(OF_REQUESTS)) this._clear(kind);
    for (const [kind, spans] of Object.entries(this.known)) {
      this.sources[kind].data.alpha = spans.map((span) => this._alpha(span));
      this.sources[kind].change.emit();
    }
    this._stream(beside);
    const way = [...units, ...beside.filter((span) => span.kind === "hop")].sort((one, other) => one.begin - other.begin);
    this.path.data = {
      x: way.flatMap((span) => [this._seconds(span.begin), this._seconds(span.end)]),
      y: way.flatMap((span) => [LANES[span.lane], LANES[span.lane]]),
    };
  }

  // Hide a kind, or show it again.
  toggle(kind) {
    if (!this.hidden.delete(kind)) this.hidden.add(kind);
    this._showRenderers();
  }

  // Show spans, each by itself.
  showSpans() {
    if (!this.isStacked) return;
    this.isStacked = false;
    this._showRenderers();
  }

  // Show parts of the time of each engine as stacks of shares.
  showStacks(parts) {
    const lanes = Object.entries(parts).map(([lane, those]) => stacksOf(those, {
      bottom: LANES[lane] - HALF, height: 2 * HALF, hidden: this.hidden, place: (time) => this._seconds(time),
    }));
    this.stack.data = Object.fromEntries(STACK_COLUMNS.map((name) => [name, lanes.flatMap((lane) => lane[name])]));
    if (this.isStacked) return;
    this.isStacked = true;
    this._showRenderers();
  }

  // Begin and end of what is shown.
  get range() {
    return [this.x.start, this.x.end].map((seconds) => this.origin + seconds * 1000);
  }

  set range([begin, end]) {
    this.x.setv({ start: this._seconds(begin), end: this._seconds(Math.max(end, begin + 0.2)) });
  }

  // Where on the window a time of a lane is: for whoever points at it from outside.
  placeOf(lane, time) {
    const frame = this.view.frame;
    const box = this.view.el.getBoundingClientRect();
    return {
      x: box.left + frame.x_scale.compute(this._seconds(time)),
      y: box.top + frame.y_scale.compute(LANES[lane]),
    };
  }

  _axes() {
    const { figure } = this;
    const [y] = figure.yaxes;
    y.ticker = new Bokeh.FixedTicker({ ticks: Object.values(LANES) });
    y.major_label_overrides = new Map(Object.entries(LANES).map(([lane, place]) => [place, lane]));
    y.major_label_text_font_size = "13px";
    for (const grid of figure.grids) grid.grid_line_alpha = 0.4;
  }

  _add(kind, colour) {
    this.sources[kind] = new Bokeh.ColumnDataSource({ data: emptied(COLUMNS) });
    this.known[kind] = [];
    const at = (field) => ({ field });
    this.renderers[kind] = this.figure.quad(at("left"), at("right"), at("bottom"), at("top"), {
      source: this.sources[kind], fill_color: colour, fill_alpha: at("alpha"), line_color: null,
    });
  }

  _clear(kind) {
    this.known[kind] = [];
    this.sources[kind].data = emptied(COLUMNS);
  }

  _showRenderers() {
    for (const [kind, renderer] of Object.entries(this.renderers)) {
      renderer.visible = !this.isStacked && !this.hidden.has(kind);
    }
    this.stacked.visible = this.isStacked;
  }

  // Give spans to the sources of their kinds, and forget the oldest.
  _stream(spans) {
    for (const [kind, those] of Map.groupBy(spans, (span) => span.kind)) {
      if (!(kind in this.sources)) continue;
      const known = this.known[kind].concat(those);
      this.known[kind] = known.slice(-this.maxSpans);
      this.sources[kind].stream(this._columns(those), this.maxSpans);
    }
  }

  _columns(spans) {
    const bottoms = spans.map((span) => LANES[span.lane] - HALF);
    return {
      left: spans.map((span) => this._seconds(span.begin)),
      right: spans.map((span) => this._seconds(span.end)),
      bottom: bottoms,
      top: spans.map((span, place) => bottoms[place] + (isBubble(span.kind) || span.kind === "idle" ? HALF : 2 * HALF)),
      alpha: spans.map((span) => this._alpha(span)),
      kind: spans.map((span) => span.kind),
      length: spans.map((span) => duration(span.end - span.begin)),
      words: spans.map(wordsOf),
    };
  }

  _alpha(span) {
    const isPartOfIt = this.followed === null || span.trace === this.followed || span.requests.includes(this.followed);
    return isPartOfIt ? 1 : DIMMED;
  }

  _setOrigin(time) {
    this.origin = Math.floor(time / 1000) * 1000;
    this.figure.xaxes[0].axis_label = `seconds since ${clockTime(this.origin)}`;
  }

  _seconds(time) {
    return (time - this.origin) / 1000;
  }

  _tapped({ x, y }) {
    const lane = Object.keys(LANES).find((name) => Math.abs(LANES[name] - y) <= HALF);
    if (lane !== undefined && this.origin !== null) this.onClick(lane, this.origin + x * 1000);
  }
}

function emptied(names) {
  return Object.fromEntries(names.map((name) => [name, []]));
}
