// The newest spans, in order of time: what is drawn, summed up and looked up.
//
// Knows lanes and requests. Does not know a screen.

import { KINDS, isBubble } from "/timeline/files/kinds.js";

export const ENGINES = ["edge", "cloud"];

export class History {
  constructor(maxSpans) {
    this.maxSpans = maxSpans;
    this.lanes = Object.fromEntries(ENGINES.map((engine) => [engine, []]));
    this.requests = new Map(); // by trace: the span of the request itself
  }

  // Take spans; returns those that belong on the lanes of engines.
  add(spans) {
    const drawn = [];
    for (const span of spans) {
      if (span.kind === "generate") this.requests.set(span.trace, span);
      else if (span.lane in this.lanes && span.kind in KINDS) {
        this.lanes[span.lane].push(span);
        drawn.push(span);
      }
    }
    for (const lane of Object.values(this.lanes)) inOrder(lane, this.maxSpans);
    while (this.requests.size > this.maxSpans) this.requests.delete(this.requests.keys().next().value);
    return drawn;
  }

  get size() {
    return ENGINES.reduce((sum, engine) => sum + this.lanes[engine].length, 0);
  }

  // Begin and end of all that is known, or null.
  get bounds() {
    const lanes = Object.values(this.lanes).filter((lane) => lane.length);
    if (!lanes.length) return null;
    return [Math.min(...lanes.map((lane) => lane[0].begin)), Math.max(...lanes.map((lane) => lane.at(-1).end))];
  }

  // The span of an engine at a time, or null. On a lane nothing overlaps.
  at(engine, time) {
    const lane = this.lanes[engine];
    const span = lane[firstAfter(lane, time) - 1];
    return span !== undefined && time <= span.end ? span : null;
  }

  // All that engines ran for a request.
  ofRequest(trace) {
    return ENGINES.flatMap((engine) => this.lanes[engine].filter((span) => span.requests.includes(trace)));
  }

  // Milliseconds of each kind on a lane between two times.
  sums(engine, begin, end) {
    const lane = this.lanes[engine];
    const sums = {};
    for (let place = Math.max(0, firstAfter(lane, begin) - 1); place < lane.length; place++) {
      const span = lane[place];
      if (span.begin >= end) break;
      const inside = Math.min(span.end, end) - Math.max(span.begin, begin);
      if (inside > 0) sums[span.kind] = (sums[span.kind] ?? 0) + inside;
    }
    return sums;
  }

  // How many spans the lanes have between two times.
  count(begin, end) {
    return ENGINES.reduce((sum, engine) => sum + firstAfter(this.lanes[engine], end) - firstAfter(this.lanes[engine], begin), 0);
  }

  // The same sums for each of `number` equal parts of a time.
  parts(engine, begin, end, number) {
    const length = (end - begin) / number;
    return Array.from({ length: number }, (_, place) => {
      const from = begin + place * length;
      return { begin: from, end: from + length, sums: this.sums(engine, from, from + length) };
    });
  }

  // Requests, newest first.
  latest(number) {
    return [...this.requests.values()].slice(-number).reverse();
  }
}

// Busy and bubble of sums, in milliseconds.
export function shareOf(sums) {
  let busy = 0, bubble = 0, idle = 0;
  for (const [kind, time] of Object.entries(sums)) {
    if (kind === "idle") idle += time;
    else if (isBubble(kind)) bubble += time;
    else busy += time;
  }
  return { busy, bubble, idle, told: busy + bubble + idle };
}

// Sort what came last to its place, and forget the oldest.
function inOrder(lane, most) {
  let place = lane.length - 1;
  while (place > 0 && lane[place - 1].begin <= lane[place].begin) place--;
  if (place > 0) lane.sort((one, other) => one.begin - other.begin);
  if (lane.length > most) lane.splice(0, lane.length - most);
}

// The place of the first span that begins after a time.
function firstAfter(lane, time) {
  let low = 0, high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle].begin <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
