"use strict";

// The page of `streamsparql serve`: it reads the interface of the server, and keeps nothing itself.

const MOST_ROWS = 200, LANES = 24, PERIOD = 2000;
const byId = (id) => document.getElementById(id);
const state = { chosen: null, queries: [], events: null, rows: [], columns: [], checking: 0 };

function headers(more) {
  const token = byId("token").value;
  return token ? { authorization: `Bearer ${token}`, ...more } : { ...more };
}

async function ask(method, path, body, more) {
  const answer = await fetch(path, { method, body, headers: headers(more) });
  const text = await answer.text();
  let content = text;
  if ((answer.headers.get("content-type") || "").includes("json") && text) content = JSON.parse(text);
  if (!answer.ok) throw new Error(content.error || `${answer.status} ${answer.statusText}`);
  return content;
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const number = (value) => value.toLocaleString("en");
const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
const pathOf = (name) => `queries/${encodeURIComponent(name)}`;
const moment = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/(\.000)?Z$/, "");

function duration(ms) {
  const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"], [1, "ms"]];
  const [size, unit] = units.find(([size]) => Math.abs(ms) >= size) || [1, "ms"];
  return `${Math.round(ms / size)} ${unit}`;
}

// -- queries ---------------------------------------------------------------------------------------

function showQueries() {
  byId("queries").replaceChildren(...state.queries.map((query) => {
    const rows = query.failure ? "failed" : number(query.rows);
    const button = element("button", { type: "button", "aria-current": query.name === state.chosen },
      element("span", { title: query.streams.join(" ") }, query.name), element("em", {}, rows));
    button.onclick = () => choose(query.name);
    return element("li", query.failure ? { class: "failed" } : {}, button);
  }));
}

function choose(name) {
  const query = state.queries.find((each) => each.name === name);
  state.chosen = query ? name : null;
  byId("name").value = query ? query.name : "";
  byId("text").value = query ? query.text : "";
  byId("report").value = (query && query.options.report) || "";
  byId("every").value = (query && query.options.every) || "";
  byId("save").textContent = query ? "Replace" : "Register";
  byId("remove").hidden = !query;
  showQueries();
  listen(query);
  diagnose();
}

async function save(event) {
  event.preventDefault();
  const name = byId("name").value.trim();
  const options = new URLSearchParams();
  for (const key of ["report", "every"]) if (byId(key).value.trim()) options.set(key, byId(key).value.trim());
  try {
    await ask("PUT", `${pathOf(name)}?${options}`, byId("text").value, { "content-type": "text/plain" });
    await refresh();
    choose(name);
  } catch (error) { complain(error.message); }
}

async function remove() {
  try {
    await ask("DELETE", pathOf(state.chosen));
    await refresh();
    choose(state.queries.length ? state.queries[0].name : null);
  } catch (error) { complain(error.message); }
}

function complain(text, severity = "error") {
  byId("diagnostics").textContent = text;
  byId("diagnostics").className = severity;
  byId("text").className = severity;
}

async function diagnose() {
  const text = byId("text").value, turn = ++state.checking;
  if (!text.trim()) return complain("", "");
  let found = [];
  try { found = await ask("POST", "check", text); } catch (error) { return complain(error.message); }
  if (turn !== state.checking) return;
  complain(found.map((each) => each.text).join("\n\n"), found.length ? found[0].severity : "");
}

// -- results ---------------------------------------------------------------------------------------

function listen(query) {
  if (state.events) state.events.close();
  state.events = null;
  state.rows = [];
  state.columns = [];
  showRows();
  if (!query) return;
  const after = Math.max(0, query.rows - MOST_ROWS);
  const events = new EventSource(`${pathOf(query.name)}/results?after=${after}`);
  events.onmessage = (event) => {
    const row = JSON.parse(event.data);
    for (const name of Object.keys(row)) if (!state.columns.includes(name)) state.columns.push(name);
    state.rows.push(row);
    if (state.rows.length > MOST_ROWS) state.rows.shift();
    later(showRows);
  };
  events.addEventListener("end", (event) => {
    events.close();
    const failure = JSON.parse(event.data);
    if (failure) complain(failure);
  });
  state.events = events;
}

let drawing = false;
function later(draw) {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; draw(); });
}

function cell(value) {
  const shown = value === undefined || value === null ? "" : typeof value === "number" ? number(value) : String(value);
  return element("td", typeof value === "number" ? { class: "number" } : {}, shown);
}

function showRows() {
  const table = byId("results"), columns = inOrder(state.columns);
  byId("count").textContent = state.rows.length ? `the last ${state.rows.length}, newest first` : "none yet";
  table.tHead.replaceChildren(element("tr", {}, ...columns.map((name) => element("th", {}, name))));
  const newest = state.rows.slice(-MOST_ROWS).reverse();
  table.tBodies[0].replaceChildren(...newest.map((row) =>
    element("tr", {}, ...columns.map((name) => cell(isTime(name) && row[name] !== null ? moment(row[name]) : row[name])))));
  showTimeline();
}

const isTime = (name) => name === "start" || name === "end" || name === "instant";
const inOrder = (columns) => [...columns.filter(isTime), ...columns.filter((name) => !isTime(name))];

function showTimeline() {
  const svg = byId("timeline"), lanes = new Map();
  for (const row of state.rows.slice().reverse()) {
    const name = Object.entries(row).filter(([key]) => !isTime(key)).map(([, value]) => typeof value === "number" ? number(value) : value).join("  ");
    if (!lanes.has(name)) { if (lanes.size >= LANES) continue; lanes.set(name, []); }
    lanes.get(name).push(row.instant === undefined ? [row.start, row.end] : [row.instant, row.instant]);
  }
  svg.replaceChildren();
  svg.style.height = lanes.size ? `${lanes.size * 18 + 22}px` : 0;
  if (!lanes.size) return;
  const spans = [...lanes.values()].flat();
  const first = Math.min(...spans.map(([start]) => start));
  const last = Math.max(first + 1, ...spans.map(([start, end]) => end === null ? start : end));
  const width = svg.clientWidth || 800, left = Math.min(260, width / 3);
  const x = (t) => left + (width - left - 10) * (t - first) / (last - first);
  const draw = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    svg.append(made);
    return made;
  };
  [...lanes].forEach(([name, spans], lane) => {
    const y = lane * 18 + 4, most = Math.floor(left / 7.5);
    draw("text", { x: 0, y: y + 10, "font-size": 12, fill: "#1c2430" }, name.length > most ? `${name.slice(0, most - 1)}…` : name);
    for (const [start, end] of spans) {
      const wide = Math.max(2, x(end === null ? last : end) - x(start));
      draw("rect", { x: x(start), y, width: wide, height: 11, rx: 2, fill: "#7fb2dd" });
    }
  });
  const y = lanes.size * 18 + 16;
  draw("text", { x: left, y, "font-size": 11, fill: "#5b6573" }, moment(first));
  draw("text", { x: width - 10, y, "font-size": 11, fill: "#5b6573", "text-anchor": "end" }, moment(last));
}

// -- streams, figures, plans -----------------------------------------------------------------------

async function refresh() {
  state.queries = await ask("GET", "queries");
  showQueries();
  const { streams, items } = await ask("GET", "streams");
  const now = Date.now();
  byId("streams").tBodies[0].replaceChildren(...streams.map((each) => element("tr", {},
    cell(each.stream), cell(each.watermark === null ? "none" : moment(each.watermark)),
    cell(each.watermark === null ? "" : duration(now - each.watermark)))));
  const fates = ["accepted", "late", "rejected"].map((fate) => element("tr", {}, element("td", {}, fate), cell(items[fate])));
  byId("items").tBodies[0].replaceChildren(...fates);
  byId("figures").textContent = [
    counted(state.queries.length, "query", "queries"), counted(streams.length, "stream", "streams"), counted(items.read, "item", "items"),
  ].join(", ");
}

async function showPlan() {
  if (!state.queries.length) return byId("plan").replaceChildren(element("p", { class: "none" }, "no query is registered"));
  const svg = await ask("GET", "explain?format=svg");
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  byId("plan").replaceChildren(document.importNode(parsed, true));
}

async function turn() {
  try {
    await refresh();
    if (!document.hidden) await showPlan();
    document.body.classList.remove("lost");
  } catch (error) { byId("figures").textContent = `no answer: ${error.message}`; }
  setTimeout(turn, PERIOD);
}

let typing = 0;
byId("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(diagnose, 300); });
byId("editor").addEventListener("submit", save);
byId("remove").addEventListener("click", remove);
byId("token").form.addEventListener("submit", (event) => event.preventDefault());
byId("new").addEventListener("click", () => choose(null));
window.addEventListener("resize", () => later(showTimeline));
turn().then(() => {
  choose(state.queries.length ? state.queries[0].name : null);
  document.body.dataset.ready = "";
});
