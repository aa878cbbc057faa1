// What stands beside the picture: shares of the time that is shown, the unit that was clicked, and requests.
//
// Knows the document. Every text goes into it as text.

import { clockTime, counted, duration, wordsOf } from "/timeline/files/spans.js";
import { KINDS } from "/timeline/files/kinds.js";
import { ENGINES, shareOf } from "/timeline/files/history.js";

export const NUM_REQUESTS = 15;

// Make an element: attributes that are functions are listeners, others properties.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(attribute, value);
    else made[attribute] = value;
  }
  made.append(...children);
  return made;
}

// The shares of each engine: legend, accounts, and the switch of each kind.
export function showShares(section, sums, hidden, onSwitch) {
  const shares = ENGINES.map((engine) => shareOf(sums[engine]));
  const percent = (time, { told }) => (told ? `${((100 * time) / told).toFixed(1)}%` : "");
  const row = (className, label, values, attributes = {}) =>
    element("tr", { className, ...attributes }, element("td", {}, ...label),
      ...values.map((value) => element("td", { className: "number", textContent: value })));
  const rows = Object.keys(KINDS)
    .filter((kind) => ENGINES.some((engine) => sums[engine][kind]) || hidden.has(kind))
    .map((kind) => row(`kind${hidden.has(kind) ? " hidden" : ""}`, [chip(kind), kind],
      ENGINES.map((engine, place) => (sums[engine][kind] ? percent(sums[engine][kind], shares[place]) : "")),
      { title: KINDS[kind].what, click: () => onSwitch(kind) }));
  section.replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, element("th", { textContent: "time that is shown" }),
      ...ENGINES.map((engine) => element("th", { className: "number", textContent: engine })))),
    element("tbody", {},
      row("sum", ["busy"], shares.map((share) => percent(share.busy, share))),
      row("sum", ["bubbles"], shares.map((share) => percent(share.bubble, share))),
      ...rows)));
}

// What was clicked, and the requests that it worked for.
export function showUnit(section, span, requests, onFollow) {
  const facts = [["took", duration(span.end - span.begin)], ["on", span.lane]];
  const words = wordsOf(span);
  if (words) facts.push(["did", words]);
  if (span.attributes.plan !== undefined) facts.push(["plan", `number ${span.attributes.plan}`]);
  if (KINDS[span.kind]) facts.push(["means", KINDS[span.kind].what]);
  const links = span.requests.map((trace) =>
    element("button", { textContent: nameOf(trace, requests), click: () => onFollow(trace) }));
  const followed = links.length ? [element("p", {}, "for ", ...between(links, ", "))] : [];
  section.replaceChildren(element("h2", {}, ...(KINDS[span.kind] ? [chip(span.kind)] : []), span.kind), list(facts), ...followed);
}

// What is known of the request that is followed.
export function showRequest(section, trace, { units, beside, requests }, onStop) {
  const own = requests.get(trace);
  const named = (kind) => beside.filter((span) => span.kind === kind);
  const spent = (spans) => spans.reduce((sum, span) => sum + span.end - span.begin, 0);
  const facts = [["on the edge", `${duration(spent(units.filter((span) => span.lane === "edge")))} of units that it was in`],
    ["in the cloud", `${duration(spent(units.filter((span) => span.lane === "cloud")))} of units that it was in`]];
  if (own) {
    facts.unshift(["took", duration(own.end - own.begin)]);
    if (own.attributes.num_steps !== undefined) facts.push(["steps", own.attributes.num_steps.toLocaleString("en")]);
  }
  for (const queue of named("queue")) facts.push(["queued", duration(queue.end - queue.begin)]);
  if (named("hop").length) facts.push(["on the link", `${duration(spent(named("hop")))} in ${counted(named("hop").length, "hop")}`]);
  facts.push(["trace", trace]);
  section.replaceChildren(
    element("h2", { textContent: `request ${nameOf(trace, requests)}` }), list(facts),
    element("p", {}, element("button", { id: "stop", textContent: "stop following", click: onStop })));
}

// The newest requests.
export function showRequests(section, latest, followed, onFollow) {
  const rows = latest.map((request) => element("tr", { className: request.trace === followed ? "followed" : "" },
    element("td", {}, requestButton(request, onFollow)),
    element("td", { className: "number", textContent: clockTime(request.begin) }),
    element("td", { className: "number", textContent: duration(request.end - request.begin) })));
  section.replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, element("th", { textContent: "newest requests" }),
      element("th", { className: "number", textContent: "begun" }), element("th", { className: "number", textContent: "took" }))),
    element("tbody", {}, ...rows)));
}

function requestButton({ trace, attributes }, onFollow) {
  const name = attributes.request_id ?? trace.slice(0, 12);
  return element("button", { textContent: name, title: name, click: () => onFollow(trace) });
}

export function nameOf(trace, requests) {
  return requests.get(trace)?.attributes.request_id ?? `trace ${trace.slice(0, 12)}, open`;
}

function chip(kind) {
  const made = element("span", { className: "chip" });
  made.style.background = KINDS[kind].colour;
  return made;
}

function list(facts) {
  return element("dl", {}, ...facts.flatMap(([name, value]) =>
    [element("dt", { textContent: name }), element("dd", { textContent: value })]));
}

function between(items, separator) {
  return items.flatMap((item, place) => (place ? [separator, item] : [item]));
}
