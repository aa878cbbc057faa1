// The timeline page: reads spans as they come, draws them, and follows a request.
//
// `globalThis.timeline` is there for whoever drives the page by a script.

import { Refused, counted, readSpans } from "/timeline/files/spans.js";
import { ENGINES, History } from "/timeline/files/history.js";
import { OF_REQUESTS } from "/timeline/files/kinds.js";
import { Lanes } from "/timeline/files/lanes.js";
import { NUM_REQUESTS, showRequest, showRequests, showShares, showUnit } from "/timeline/files/panels.js";

const MAX_SPANS = 200_000;
const LIVE_VIEW_MS = 10_000;
const EVERY_MS = 1000;
const MOST_SINGLE = 4000; // more spans than this are narrower than a pixel, and are shown as stacks
const NUM_PARTS = 300;
const KEY = "edgeweave.timeline.key";

class Timeline {
  constructor() {
    this.history = new History(MAX_SPANS);
    this.lanes = new Lanes(part("lanes"), {
      maxSpans: MAX_SPANS,
      onClick: (lane, time) => this.click(lane, time),
      onMove: () => this._moved(),
    });
    this.after = 0;
    this.isLive = true;
    this.followed = null;
    this.hint = [...part("detail").children];
    this.isAsked = true; // whether the newest move of the view was the page's own
  }

  async open() {
    await this.lanes.open();
    part("live").addEventListener("click", () => this._goLive(!this.isLive));
    for (const button of document.querySelectorAll("[data-last-s]")) {
      button.addEventListener("click", () => this._showLast(button.dataset.lastS));
    }
    part("key").addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEY, part("key").querySelector("input").value);
      part("key").hidden = true;
    });
    for (;;) {
      await this.read();
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  // Read what is new, and draw it.
  async read() {
    const isFirst = this.after === 0;
    try {
      const { spans, next } = await readSpans({ after: this.after }, sessionStorage.getItem(KEY));
      this.after = next;
      this.lanes.draw(this.history.add(spans));
      this._tell(counted(this.history.size, "span"));
    } catch (error) {
      part("key").hidden = !(error instanceof Refused && error.status === 401);
      this._tell(error.message, { failed: true });
      return;
    }
    if (this.isLive) this._showNewest(isFirst);
    if (this.followed !== null && !this.history.requests.has(this.followed)) await this._showFollowed();
    this._showPanels();
  }

  // Somebody clicked at a time of a lane.
  click(lane, time) {
    if (!ENGINES.includes(lane)) return;
    const span = this.history.at(lane, time);
    if (span === null) return;
    if (span.requests.length === 1 && span.requests[0] !== this.followed) this.follow(span.requests[0]);
    else showUnit(part("detail"), span, this.history.requests, (trace) => this.follow(trace));
  }

  // Follow a request from engine to engine.
  async follow(trace) {
    this.followed = trace;
    this._goLive(false);
    const spans = await this._showFollowed();
    if (this.followed === trace) this._showAround(spans);
    this._showPanels();
  }

  // Show what is known by now of the request that is followed; returns it.
  async _showFollowed() {
    const trace = this.followed;
    const units = this.history.ofRequest(trace);
    let beside = [];
    try {
      const { spans } = await readSpans({ trace }, sessionStorage.getItem(KEY));
      beside = spans.filter((span) => span.kind in OF_REQUESTS);
    } catch (error) {
      this._tell(error.message, { failed: true });
    }
    if (this.followed === trace) { // else another was clicked meanwhile
      this.lanes.follow(trace, units, beside);
      showRequest(part("detail"), trace, { units, beside, requests: this.history.requests }, () => this.unfollow());
    }
    return [...units, ...beside];
  }

  unfollow() {
    this.followed = null;
    this.lanes.follow(null, [], []);
    part("detail").replaceChildren(...this.hint);
    this._showPanels();
  }

  _showAround(spans) {
    if (!spans.length) return;
    const begin = Math.min(...spans.map((span) => span.begin)), end = Math.max(...spans.map((span) => span.end));
    const margin = Math.max(1, (end - begin) / 50);
    this._move([begin - margin, end + margin]);
  }

  _showNewest(isFirst) {
    const { bounds } = this.history;
    if (bounds === null) return;
    const length = isFirst ? LIVE_VIEW_MS : this.lanes.range[1] - this.lanes.range[0];
    this._move([bounds[1] - length, bounds[1]]);
  }

  _showLast(seconds) {
    const { bounds } = this.history;
    if (bounds === null) return;
    this._move(seconds === "all" ? bounds : [bounds[1] - 1000 * Number(seconds), bounds[1]]);
  }

  _move(range) {
    this.isAsked = true;
    this.lanes.range = range;
    this.isAsked = false;
  }

  // The view moved. Who zooms or drags wants to look, not to be carried on.
  _moved() {
    if (!this.isAsked) this._goLive(false);
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this._show());
  }

  _goLive(isLive) {
    this.isLive = isLive;
    part("live").setAttribute("aria-pressed", isLive);
    if (isLive) this._showNewest(false);
  }

  _showPanels() {
    this._show();
    showRequests(part("requests"), this.history.latest(NUM_REQUESTS), this.followed, (trace) => this.follow(trace));
  }

  // Show the lanes and the shares of the present view.
  _show() {
    if (this.lanes.origin === null) return;
    const [begin, end] = this.lanes.range;
    if (this.followed === null && this.history.count(begin, end) > MOST_SINGLE) {
      const parts = ENGINES.map((engine) => [engine, this.history.parts(engine, begin, end, NUM_PARTS)]);
      this.lanes.showStacks(Object.fromEntries(parts));
    } else {
      this.lanes.showSpans();
    }
    const sums = Object.fromEntries(ENGINES.map((engine) => [engine, this.history.sums(engine, begin, end)]));
    showShares(part("shares"), sums, this.lanes.hidden, (kind) => this._switch(kind));
  }

  _switch(kind) {
    this.lanes.toggle(kind);
    this._show();
  }

  _tell(words, { failed = false } = {}) {
    const status = part("status");
    status.textContent = words;
    status.classList.toggle("failed", failed);
  }
}

function part(id) {
  return document.getElementById(id);
}

addEventListener("DOMContentLoaded", () => {
  globalThis.timeline = new Timeline();
  globalThis.timeline.open();
});
