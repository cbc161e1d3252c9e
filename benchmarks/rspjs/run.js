// rsp-js as a peer: one query over one history, slide by slide (see rspjs.py, which starts this).
//
// Standard input is JSON: `query`, `stream` (an IRI), `variables`, `graph` and `static` (triples of
// its graph), `slides` (lists of [s, p, o, timestamp]), `ends` (of the slides), `rows` (whether to
// return rows, or only their number), and when to stop: after `budget` seconds, or after `enough`
// seconds and `least` steps, or once `least` steps cannot fit into the budget. Terms are in N-Triples
// syntax. Standard output is JSON: for each window that was reached, its wall and processor seconds,
// the number of its rows and, if requested, the rows.
//
// A step pushes a slide and the element after it, which makes rsp-js close the window: it has no
// other way to advance time. The step ends when all rows have been emitted.
"use strict";

const fs = require("fs");

// rsp-js logs several lines per element and window, which would distort the measurement.
console.debug = console.info = console.log = () => {};

const N3 = require("n3");
const { RSPEngine } = require("rsp-js");

const { namedNode, literal, quad } = N3.DataFactory;

function termOf(text) {
  if (text[0] === "<") return namedNode(text.slice(1, -1));
  const quote = text.indexOf('"', 1);
  return literal(text.slice(1, quote), namedNode(text.slice(quote + 4, -1)));
}

function textOf(term) {
  if (term === undefined) return null;
  return term.termType === "NamedNode" ? `<${term.value}>` : `"${term.value}"`;
}

// rsp-js computes windows from `t0` and advances it with every row that it emits, which loses
// windows. Here it stays constant.
function fixWindowOrigin(window) {
  const t0 = window.t0;
  Object.defineProperty(window, "t0", { get: () => t0, set: () => {} });
}

// An open query. `settled` waits until all pushed items have been evaluated and returns the rows:
// rsp-js does not signal that a window is complete, so this awaits the streams of its evaluation.
function openQuery({ query, stream, graph, static: facts }) {
  const engine = new RSPEngine(query);
  engine.logger.setLoggableClasses([]);
  engine.windows.forEach(fixWindowOrigin);
  const target = graph && namedNode(graph);
  for (const [s, p, o] of facts) engine.addStaticData(quad(termOf(s), termOf(p), termOf(o), target));

  let running = [];
  const execute = engine.r2r.execute.bind(engine.r2r);
  engine.r2r.execute = (content) => {
    const bindings = execute(content);
    running.push(
      bindings.then((rows) => new Promise((done, fail) => rows.on("end", done).on("error", fail))),
    );
    return bindings;
  };
  let rows = [];
  engine.register().on("RStream", (row) => rows.push(row.bindings));
  const source = engine.getStream(stream);
  return {
    push: ([s, p, o, stamp]) => source.add(quad(termOf(s), termOf(p), termOf(o)), stamp),
    settled: async () => {
      await Promise.all(running);
      const settledRows = rows;
      running = [];
      rows = [];
      return settledRows;
    },
  };
}

function isOver({ budget, enough, least }, steps, spent) {
  if (steps >= least) return spent > Math.min(enough, budget);
  const hopeless = steps > 2 && (spent / steps) * least > budget;
  return hopeless || spent > budget;
}

async function main() {
  const request = JSON.parse(fs.readFileSync(0, "utf8"));
  const { slides, ends, variables } = request;
  const open = openQuery(request);
  const out = { wall: [], cpu: [], counts: [], rows: [] };
  const began = process.hrtime.bigint();
  for (const [k, slide] of slides.entries()) {
    const last = slide[slide.length - 1];
    const next = slides[k + 1]?.[0] ?? [...last.slice(0, 3), ends[k] + 1];
    const cpu = process.cpuUsage();
    const wall = process.hrtime.bigint();
    for (const item of k ? slide.slice(1) : slide) open.push(item);
    open.push(next);
    const rows = await open.settled();
    out.counts.push(rows.length);
    const now = process.hrtime.bigint();
    out.wall.push(Number(now - wall) / 1e9);
    const { user, system } = process.cpuUsage(cpu);
    out.cpu.push((user + system) / 1e6);
    if (request.rows) out.rows.push(rows.map((row) => variables.map((v) => textOf(row.get(v)))));
    if (isOver(request, k + 1, Number(now - began) / 1e9)) break;
  }
  process.stdout.write(JSON.stringify(out));
}

main();
