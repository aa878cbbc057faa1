// A lane from far away, where a span is narrower than a pixel: a stack of shares for each part of the time.
//
// Knows what so much of a part was spent on. Does not know the library that draws.

import { duration } from "/timeline/files/spans.js";
import { KINDS } from "/timeline/files/kinds.js";

export const COLUMNS = ["left", "right", "bottom", "top", "colour", "kind", "length", "words"];

// Columns of rectangles for `parts` of one lane, between `bottom` and `bottom + height`, work lowest.
export function stacksOf(parts, { bottom, height, hidden, place }) {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  for (const part of parts) stackUp(columns, part, { bottom, height, hidden, place });
  return columns;
}

function stackUp(columns, { begin, end, sums }, { bottom, height, hidden, place }) {
  const told = Object.values(sums).reduce((sum, time) => sum + time, 0);
  for (const kind of Object.keys(KINDS)) {
    if (!sums[kind] || hidden.has(kind)) continue;
    const share = sums[kind] / told;
    columns.left.push(place(begin));
    columns.right.push(place(end));
    columns.bottom.push(bottom);
    columns.top.push(bottom + share * height);
    columns.colour.push(KINDS[kind].colour);
    columns.kind.push(kind);
    columns.length.push(duration(sums[kind]));
    columns.words.push(`${(100 * share).toFixed(1)}% of ${duration(end - begin)}`);
    bottom += share * height;
  }
}
