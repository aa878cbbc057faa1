// Spans from the gateway, and what each of them is on the page.
//
// Knows the lines of JSON that /timeline/spans answers. Does not know how a span is drawn.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// A span as the page has it. Times are milliseconds of the wall clock; `requests` are the traces of the requests that
// it worked for; `kind` is a key of KINDS.
//
// { lane, kind, begin, end, trace, requests, attributes }

// Read spans that `query` asks for. Returns { spans, next }: all of them, or an error and none.
export async function readSpans(query, key) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const answer = await fetch(`/timeline/spans?${new URLSearchParams(query)}`, { headers });
  if (!answer.ok) {
    const body = await answer.json().catch(() => null);
    throw new Refused(answer.status, body?.error?.message ?? `the gateway answered with status ${answer.status}`);
  }
  const spans = [];
  let next = 0;
  for await (const line of linesOf(answer.body)) {
    const batch = JSON.parse(line);
    spans.push(...spansOf(batch));
    next = batch.next;
  }
  return { spans, next };
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    yield* lines;
  }
  if (rest) throw new Error("the answer broke off");
}

function spansOf(batch) {
  return batch.name.map((name, row) => {
    const attributes = {};
    for (const [attribute, column] of Object.entries(batch.attributes)) {
      if (column[row] !== null) attributes[attribute] = column[row];
    }
    return {
      lane: laneOf(name, batch.service[row], attributes),
      kind: name === "bubble" ? `bubble ${attributes.cause}` : name,
      begin: batch.begin_us[row] / 1000,
      end: batch.end_us[row] / 1000,
      trace: batch.traces[batch.trace[row]],
      requests: batch.links[row].map((place) => batch.traces[place]),
      attributes,
    };
  });
}

function laneOf(name, service) {
  return ["chunk", "step", "queue", "generate"].includes(name) ? "request" : service;
}

// What a span was, in words: which part of which unit.
export function wordsOf({ attributes }) {
  const words = [];
  if (attributes.chunk !== undefined) words.push(`chunk ${attributes.chunk}`);
  if (attributes.step !== undefined) words.push(`step ${attributes.step}`);
  if (attributes.start_layer !== undefined) {
    words.push(`layers ${attributes.start_layer} to ${attributes.stop_layer - 1}`);
  }
  if (attributes.direction !== undefined) words.push(`${attributes.lane} lane, ${attributes.direction}`);
  if (attributes.num_rows !== undefined) words.push(counted(attributes.num_rows, "row"));
  if (attributes.num_tokens !== undefined) words.push(counted(attributes.num_tokens, "token"));
  if (attributes.payload_bytes !== undefined) words.push(`${(attributes.payload_bytes / 1e6).toFixed(3)} MB`);
  return words.join(", ");
}

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function clockTime(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString([], { hourCycle: "h23" });
}

export function duration(milliseconds) {
  if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(2)} s`;
  return `${milliseconds.toFixed(milliseconds >= 100 ? 0 : milliseconds >= 10 ? 1 : 2)} ms`;
}
