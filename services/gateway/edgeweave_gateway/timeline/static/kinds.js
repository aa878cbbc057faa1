// What there is to see, with its colour: work is cool, bubbles are warm, idle is pale.
//
// A bubble fills the lower half of a lane, so that what waits and what runs differ without colour too.

export const KINDS = {
  segment: { colour: "#2f6fb3", what: "body layers of a prefill chunk" },
  body: { colour: "#86b9e8", what: "the body of a decode step" },
  head: { colour: "#3f8f5b", what: "first layers of a prefill chunk" },
  tail: { colour: "#9ccf9f", what: "last layers of a prefill chunk" },
  turnaround: { colour: "#2c8c8c", what: "tail of a step, sampling, head of the next" },
  "bubble await_decode_hidden": { colour: "#d9412e", what: "a step was outside, and there was no prefill to run" },
  "bubble await_prefill_hidden": { colour: "#f28a1e", what: "a chunk was announced, its hidden states were not here" },
  "bubble link": { colour: "#8c4a2f", what: "hidden states were queued behind others on the link" },
  "bubble grace": { colour: "#b56bb0", what: "the engine chose to wait for a step that was due" },
  "bubble await_task": { colour: "#f0cb4a", what: "nothing could have arrived" },
  "bubble lost": { colour: "#222222", what: "the session broke" },
  idle: { colour: "#dfe4ea", what: "no open sequence; no bubble" },
};

// What a followed request shows beside the units of the engines.
export const OF_REQUESTS = {
  queue: { colour: "#c9ced6" },
  chunk: { colour: "#2f6fb3" },
  step: { colour: "#86b9e8" },
  hop: { colour: "#6b5b95" },
};

export const isBubble = (kind) => kind.startsWith("bubble");
