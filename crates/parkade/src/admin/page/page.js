"use strict";

// Texts of clients and applications become text nodes only, never HTML.

const $ = (selector) => document.querySelector(selector);

/** What the server has told last. */
let latest = null;
/** Who may change something: "off", "local" or "token". */
let writes = "off";
let token = sessionStorage.getItem("parkade-token") ?? "";
let isUnlocked = false;

const chosen = { kind: null, state: "", settings: false };
const opened = new Map();

// Words

const number = new Intl.NumberFormat("en");

function time(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.00095) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 0.0095) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${(seconds * 1e3).toFixed(0)} ms`;
  return age(seconds);
}

function age(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1048576) return `${(bytes / 1024).toFixed(0)} KiB`;
  if (bytes < 1073741824) return `${(bytes / 1048576).toFixed(1)} MiB`;
  return `${(bytes / 1073741824).toFixed(1)} GiB`;
}

function rate(perSecond) {
  return perSecond >= 100 ? number.format(Math.round(perSecond)) : perSecond.toFixed(perSecond === 0 ? 0 : 1);
}

const count = (many, one, some = `${one}s`) => `${number.format(many)} ${many === 1 ? one : some}`;

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

function moment(seconds) {
  const then = new Date(seconds * 1000);
  return then.toDateString() === new Date().toDateString() ? clock(seconds) : then.toLocaleString([], { hour12: false });
}

const since = (seconds) => Math.max(0, Date.now() / 1000 - seconds);

// Elements

/** An element with attributes and children; texts become text nodes. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "click") element.addEventListener("click", value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function say(target, text) {
  const element = typeof target === "string" ? $(target) : target;
  if (element.textContent !== text) element.textContent = text;
}

const pill = (state) => make("span", { class: "pill", "data-state": state }, state);

/** A cell: `label` stands before it where there is no head of the table. */
function cell(content, { label, kind } = {}) {
  const children = Array.isArray(content) ? content : [content];
  return make("td", { class: kind, "data-label": label }, ...children);
}

/**
 * Shows one row for each item. A row whose item looks the same is left alone, so that focus and selection stay.
 * `shape`: all that a row shows; `live`: cells whose text changes all the time, by their place.
 */
function rows(body, items, { key, shape, cells, live = () => ({}) }) {
  const before = new Map([...body.children].filter((row) => row.dataset.key).map((row) => [row.dataset.key, row]));
  const wanted = [];
  for (const item of items) {
    const name = String(key(item));
    const look = JSON.stringify(shape(item));
    let row = before.get(name);
    before.delete(name);
    if (!row) {
      row = make("tr", { "data-key": name });
    }
    if (row.look !== look) {
      const place = row.contains(document.activeElement) ? [...row.querySelectorAll("button")].indexOf(document.activeElement) : -1;
      row.replaceChildren(...cells(item));
      row.look = look;
      if (place >= 0) row.querySelectorAll("button")[place]?.focus();
    }
    for (const [place, text] of Object.entries(live(item))) say(row.children[place], text);
    wanted.push(row);
    if (row.more) wanted.push(row.more);
  }
  for (const row of before.values()) {
    row.more?.remove();
    row.remove();
  }
  wanted.forEach((row, place) => {
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
}

/** Buttons of which one is chosen. */
function chips(group, items, selected, choose) {
  for (const [place, { kind, text, many }] of items.entries()) {
    let chip = group.children[place];
    if (!chip) {
      chip = make("button", { type: "button", click: () => choose(chip.dataset.kind) }, "", make("b"));
      group.append(chip);
    }
    chip.dataset.kind = kind;
    chip.dataset.count = many;
    say(chip.lastChild, many === null ? "" : ` ${number.format(many)}`);
    if (chip.firstChild.textContent !== text) chip.firstChild.textContent = text;
    chip.setAttribute("aria-pressed", String(kind === selected));
  }
}

// Actions

let toldTimer = 0;

function tell(text) {
  say("#told", text);
  clearTimeout(toldTimer);
  toldTimer = setTimeout(() => say("#told", ""), 6000);
}

/** Asks the server to change something; returns its answer, or null. */
async function ask(method, path) {
  try {
    const answer = await fetch(path, { method, headers: { authorization: `Bearer ${token}` }, redirect: "error" });
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) return told;
    if (answer.status === 401) lock();
    tell(told.error ?? `The server answered ${answer.status}.`);
  } catch {
    tell("The server cannot be reached.");
  }
  return null;
}

/** A button that has to be pressed twice. */
function action(word, what, act, { sure = true } = {}) {
  let timer = 0;
  const calm = () => {
    clearTimeout(timer);
    button.classList.remove("sure");
    say(button, word);
  };
  const button = make("button", {
    type: "button",
    "aria-label": `${word} ${what}`,
    click: async () => {
      if (sure && !button.classList.contains("sure")) {
        button.classList.add("sure");
        say(button, "Sure?");
        timer = setTimeout(calm, 4000);
        return;
      }
      calm();
      button.disabled = true;
      await act();
      button.disabled = false;
    },
  }, word);
  button.addEventListener("blur", calm);
  return button;
}

const acts = (...buttons) => cell(isUnlocked ? buttons : [], { kind: "act" });

async function cancelRequest({ id, route }) {
  if (await ask("POST", `requests/${id}/cancel`)) tell(`The request ${id} (${route}) is cancelled.`);
}

async function cancelQuery(id) {
  if (await ask("POST", `queries/${id}/cancel`)) tell(`Query ${id} is being cancelled.`);
}

async function changeJob(word, job) {
  const ways = { Cancel: ["POST", "/cancel"], Retry: ["POST", "/retry"], Drop: ["DELETE", ""] };
  const done = { Cancel: "is being cancelled", Retry: "will run again", Drop: "is deleted" };
  const [method, end] = ways[word];
  if (await ask(method, `jobs/${job.id}${end}`)) tell(`The job ${job.name} ${done[word]}.`);
  await loadJobs(true);
}

// Graphs

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 80;

function drawn(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** The next round number. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= value);
}

/** A graph of the last five minutes. `logarithmic`: from this number on, which is the lowest that is shown. */
class Graph {
  constructor(figure, title, names, words, { logarithmic = 0, area = false } = {}) {
    this.words = words;
    this.lowest = logarithmic;
    this.area = area;
    this.place = null;
    this.values = names.map((name, at) => make("span", { class: `c${at + 1}` }, `${name} `, make("b")));
    this.caption = make("figcaption", {}, title, make("span", { class: "keys" }, ...this.values));
    this.svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.svg.append(
      ...[0, HEIGHT / 2, HEIGHT].map((y) => drawn("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y })),
    );
    this.lines = names.map((_, at) => {
      const line = drawn("path", { class: `c${at + 1}` });
      const under = drawn("path", { class: `area c${at + 1}` });
      this.svg.append(under, line);
      return [line, under];
    });
    this.cursor = drawn("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.svg.append(this.cursor);
    this.top = make("span");
    this.when = make("span", {}, "now");
    figure.append(this.caption, this.svg, make("div", { class: "scale" }, make("span", {}, "5 min ago"), this.top, this.when));
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      this.place = Math.round(((event.clientX - box.left) / box.width) * (WIDTH - 1));
      this.read();
    });
    this.svg.addEventListener("pointerleave", () => {
      this.place = null;
      this.read();
    });
    this.title = title;
  }

  show(series) {
    this.series = series;
    const values = series.flat().filter((value) => value !== null);
    const { lowest } = this;
    const most = ceiling(Math.max(lowest * 10, ...values));
    say(this.top, lowest ? `${this.words(lowest)} to ${this.words(most)}, logarithmic` : `0 to ${this.words(most)}`);
    const share = (value) => (lowest ? Math.log(Math.max(value, lowest) / lowest) / Math.log(most / lowest) : value / most);
    const y = (value) => (HEIGHT - share(value) * HEIGHT).toFixed(2);
    series.forEach((numbers, at) => {
      const first = WIDTH - numbers.length;
      let path = "";
      let under = "";
      let begun = null;
      numbers.forEach((value, place) => {
        const x = first + place;
        if (value === null) {
          if (begun !== null) under += `L${x - 1},${HEIGHT}Z`;
          begun = null;
          return;
        }
        path += `${begun === null ? "M" : "L"}${x},${y(value)}`;
        under += begun === null ? `M${x},${HEIGHT}L${x},${y(value)}` : `L${x},${y(value)}`;
        // A lone second is a dot.
        if (begun === null && (numbers[place + 1] ?? null) === null) path += `L${x + 0.5},${y(value)}`;
        begun = x;
      });
      if (begun !== null) under += `L${begun},${HEIGHT}Z`;
      const [line, filled] = this.lines[at];
      line.setAttribute("d", path);
      filled.setAttribute("d", this.area ? under : "");
    });
    this.read();
  }

  /** The numbers under the pointer, or the last ones. */
  read() {
    if (!this.series) return;
    const length = this.series[0].length;
    const index = this.place === null ? length - 1 : this.place - (WIDTH - length);
    const seen = this.series.map((numbers) => numbers[index] ?? null);
    seen.forEach((value, at) => say(this.values[at].lastChild, value === null ? "–" : this.words(value)));
    this.cursor.setAttribute("visibility", this.place === null || index < 0 ? "hidden" : "visible");
    this.cursor.setAttribute("x1", this.place ?? 0);
    this.cursor.setAttribute("x2", this.place ?? 0);
    const ago = length - 1 - index;
    say(this.when, this.place === null || ago <= 0 ? "now" : `${age(ago)} ago`);
    this.svg.setAttribute("aria-label", `${this.title}, now: ${this.caption.lastChild.textContent}`);
  }
}

const graphs = {
  requests: new Graph($("#graph-requests"), "Requests per second", ["all", "5xx"], rate, { area: true }),
  latency: new Graph($("#graph-latency"), "Latency, waits included", ["p50", "p99"], time, { logarithmic: 0.0001 }),
  load: new Graph($("#graph-load"), "Open requests", ["parked", "queued", "running"], (value) => number.format(value), { area: true }),
};

// The parts of the page

function showHead({ report }) {
  say("#target", report.target.split("/").slice(-2).join("/") || "Parkade");
  document.title = `${report.target.split("/").pop()} · Parkade admin`;
  $("#target").title = report.target;
  $("#state").hidden = false;
  $("#state").dataset.state = report.state;
  say("#state", report.state);
  say("#about", `Parkade ${report.version} · process ${report.pid} · up ${age(report.uptime)} · ${report.addresses.join(", ")}`);
  const { lives, rates } = report;
  say("#parked", number.format(lives.parked));
  say("#running", number.format(lives.running));
  say("#queued", number.format(lives.queued));
  say("#rate", rate(rates.requests));
  say("#errors", rate(rates.errors));
  $("#errors").classList.toggle("bad", rates.errors > 0);
  say("#p50", time(rates.work?.p50));
  say("#p99", time(rates.work?.p99));
  say("#connections", number.format(report.connections.http1 + report.connections.http2));
  say("#memory", size(report.memory.resident_bytes));
}

/** What an operator should know at once. */
function showAlerts({ report }) {
  const alerts = [];
  if (report.state === "not ready") alerts.push(["The server is not ready: new requests are not served now.", "#workers"]);
  if (report.state === "draining") alerts.push(["The server is stopping: it finishes what it has.", "#requests"]);
  for (const app of report.applications.filter((app) => app.state === "failed")) alerts.push([`The application at ${app.mount} does not load: ${app.error}`, "#workers"]);
  if (report.code.last_reload === "aborted") alerts.push(["The last reload was aborted; the old code serves.", "#workers"]);
  for (const [name, database] of Object.entries(report.databases)) {
    if (["down", "denied"].includes(database.state)) alerts.push([`The database ${name} is ${database.state}: ${database.why ?? ""}`, "#queries"]);
  }
  if (report.jobs.dead > 0) alerts.push([`${count(report.jobs.dead, "job is", "jobs are")} dead: every attempt failed.`, "#jobs"]);
  if (report.jobs.unknown > 0) alerts.push([`${count(report.jobs.unknown, "job is", "jobs are")} unknown: the application has no function of that name.`, "#jobs"]);
  const look = JSON.stringify(alerts);
  if ($("#alerts").look === look) return;
  $("#alerts").look = look;
  $("#alerts").replaceChildren(...alerts.map(([text, place]) => make("p", {}, `${text} `, make("a", { href: place }, "Look"))));
}

const KINDS = { timer: "timer", next: "long poll", stream: "stream", query: "query", job: "job", file: "file", several: "several waits", script: "script" };

function showRequests({ report, requests }) {
  const groups = Object.entries(KINDS).map(([kind, text]) => ({ kind, text, many: report.waits[kind]?.count ?? 0 }));
  groups.push({ kind: "running", text: "running", many: report.lives.running });
  groups.push({ kind: "queued", text: "queued", many: report.lives.queued });
  groups.push({ kind: "runs", text: "runs of jobs", many: Math.max(report.jobs.running, requests.runs?.length ?? 0) });
  const busiest = groups.reduce((most, group) => (group.many > most.many ? group : most));
  const kind = chosen.kind ?? busiest.kind;
  chips($("#request-kinds"), groups, kind, (other) => {
    chosen.kind = other;
    showRequests(latest);
  });
  const listed = requests[kind] ?? [];
  const group = groups.find((one) => one.kind === kind);
  rows($("#request-rows"), listed, {
    key: (row) => row.id,
    shape: (row) => [row.method, row.route, row.path, row.client, row.target, row.worker, isUnlocked],
    live: (row) => ({ 0: age(row.age) }),
    cells: (row) => [
      cell(age(row.age), { kind: "number" }),
      cell([
        row.job ? null : make("span", { class: "method" }, `${row.method} `),
        make("span", { class: "mono" }, row.route),
        row.path && row.path !== row.route ? make("span", { class: "sub mono" }, row.path) : null,
        row.client ? make("span", { class: "sub" }, row.client) : null,
        row.request_id ? make("span", { class: "sub mono" }, row.request_id) : null,
      ], { kind: "main" }),
      cell(waitOf(kind, row), { kind: "soft" }),
      cell(row.job ?? row.id, { kind: "mono soft", label: row.job ? "job" : "id" }),
      row.job ? acts(action("Cancel", `the job ${row.route}`, () => changeJob("Cancel", { id: row.job, name: row.route })))
        : acts(action("Cancel", `the request ${row.id}`, () => cancelRequest(row))),
    ],
  });
  const beyond = group.many - listed.length;
  say("#requests-note", beyond > 0 ? `the oldest ${listed.length} of ${number.format(group.many)}` : "the oldest first");
  const words = { running: "No worker runs a request.", queued: "Nothing waits for a worker.", runs: "No job runs on this server.", next: "No long poll is open.", stream: "No stream is open.", file: "No file is being sent.", several: "No request waits for several things.", script: "No script has a transaction open." };
  say("#request-none", listed.length ? "" : words[kind] ?? `No request waits for a ${KINDS[kind]}.`);
}

function waitOf(kind, row) {
  if (row.worker !== null) return `worker ${row.worker}`;
  if (row.target === null) return { timer: "its timer", queued: "a worker", job: "jobs to be stored" }[kind] ?? "–";
  if (kind === "next" || kind === "stream") return ["channel ", make("span", { class: "mono" }, row.target)];
  return row.target;
}

function showQueries({ report }) {
  const databases = Object.entries(report.databases);
  const running = databases.flatMap(([name, database]) => database.running.map((query) => ({ ...query, database: name })));
  running.sort((one, other) => other.age - one.age);
  const list = $("#databases");
  const look = JSON.stringify(databases.map(([name, { product, state, why, slots, queued }]) => [name, product, state, why, slots, queued]));
  if (list.look !== look) {
    list.look = look;
    list.replaceChildren(...databases.map(([name, database]) => {
      const slots = Object.entries(database.slots).map(([state, many]) => `${many} ${state}`).join(", ");
      const queued = database.queued ? `${database.queued} queued` : "";
      const about = [database.product, slots, queued, database.why].filter(Boolean).join(" · ");
      return make("li", {}, make("b", {}, name), pill(database.state), make("span", { class: "soft" }, about));
    }));
  }
  rows($("#query-rows"), running, {
    key: (query) => query.id,
    shape: (query) => [query.database, query.state, query.cancelled, query.statement, query.waiting, isUnlocked],
    live: (query) => ({ 0: age(query.age) }),
    cells: (query) => [
      cell(age(query.age), { kind: "number" }),
      cell(query.database),
      cell(pill(query.cancelled ? "cancelling" : query.state), { kind: "tight" }),
      cell(query.statement, { kind: "mono wide" }),
      cell(count(query.waiting, "request"), { kind: "number soft" }),
      cell(String(query.id), { kind: "mono soft number", label: "id" }),
      acts(action("Cancel", `query ${query.id}`, () => cancelQuery(query.id))),
    ],
  });
  say("#queries-note", running.length ? `${running.length} shown, the oldest first` : "");
  say("#query-none", running.length ? "" : "No query runs.");
}

// Jobs are asked for, because the list depends on what is chosen.

const STATES = ["scheduled", "ready", "running", "dead", "unknown", "completed", "cancelled"];
const ENDED = ["dead", "unknown", "completed", "cancelled"];
let jobs = [];
let jobsLook = "";
let jobsAsked = 0;

function showJobs({ report, runs }) {
  const counts = report.jobs;
  const all = STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  const items = [{ kind: "", text: "all", many: all }, ...STATES.map((state) => ({ kind: state, text: state, many: counts[state] ?? 0 }))];
  chips($("#job-states"), items, chosen.state, (state) => {
    chosen.state = state;
    showJobs(latest);
    loadJobs(true);
  });
  const queues = Object.entries(report.jobs.queues).filter(([, depth]) => depth > 0);
  queues.sort((one, other) => other[1] - one[1]);
  const depths = queues.slice(0, 6).map(([name, depth]) => `${name} ${number.format(depth)}`);
  const oldest = report.jobs.oldest ? `the oldest has been ready for ${age(report.jobs.oldest)}` : "";
  say("#jobs-note", [oldest, depths.length ? `queues: ${depths.join(", ")}` : ""].filter(Boolean).join(" · "));
  const look = JSON.stringify([counts, runs.map((run) => run.count)]);
  if (look !== jobsLook) {
    jobsLook = look;
    loadJobs();
  }
  $("#runs").hidden = runs.length === 0;
  rows($("#run-rows"), runs, {
    key: (run) => run.job,
    shape: (run) => run,
    cells: (run) => [
      cell(run.job, { kind: "mono wide" }),
      cell(number.format(run.completed), { kind: "number", label: "completed" }),
      cell(number.format(run.retried), { kind: "number", label: "retried" }),
      cell(number.format(run.dead), { kind: run.dead ? "number error" : "number", label: "dead" }),
      cell(run.count ? time(run.seconds / run.count) : "–", { kind: "number", label: "mean" }),
    ],
  });
  listJobs();
}

/** Not more than once a second, unless somebody waits for it. */
async function loadJobs(isWanted = false) {
  const now = performance.now();
  if (!isWanted && now - jobsAsked < 1000) {
    jobsLook = "";
    return;
  }
  jobsAsked = now;
  const state = chosen.state;
  try {
    const answer = await fetch(`jobs?count=50${state ? `&state=${state}` : ""}`);
    if (!answer.ok || state !== chosen.state) return;
    jobs = (await answer.json()).jobs;
    listJobs();
    for (const id of opened.keys()) showJob(id);
  } catch {
    // The link says it.
  }
}

function whenOf(job) {
  if (job.state === "scheduled" && job.due) {
    const wait = job.due - Date.now() / 1000;
    return wait > 0 ? `due in ${age(wait)}` : "due now";
  }
  if (job.state === "running" && job.started) return `for ${age(since(job.started))}`;
  if (job.ended) return `${age(since(job.ended))} ago`;
  return `enqueued ${age(since(job.enqueued))} ago`;
}

function listJobs() {
  rows($("#job-rows"), jobs, {
    key: (job) => job.id,
    shape: (job) => [job.state, job.name, job.queue, job.key, job.attempt, job.error, opened.has(job.id), isUnlocked],
    live: (job) => ({ 3: whenOf(job) }),
    cells: (job) => [
      cell(pill(job.state), { kind: "tight" }),
      cell([
        make("button", { type: "button", class: "plain mono", "aria-expanded": String(opened.has(job.id)), click: () => toggleJob(job.id) }, job.name),
        job.queue === "default" ? null : make("span", { class: "sub" }, `queue ${job.queue}`),
        job.key ? make("span", { class: "sub" }, `key ${job.key}`) : null,
      ]),
      cell(String(job.attempt), { kind: "number", label: "attempt" }),
      cell(whenOf(job), { kind: "tight soft" }),
      cell(job.error ? job.error.trim().split("\n").pop() : "", { kind: job.state === "dead" ? "error wide" : "soft wide" }),
      acts(...buttonsOf(job)),
    ],
  });
  say("#job-none", jobs.length ? "" : chosen.state ? `No job is ${chosen.state}.` : "There are no jobs.");
}

function buttonsOf(job) {
  const words = [];
  if (["scheduled", "ready", "running"].includes(job.state)) words.push("Cancel");
  if (ENDED.includes(job.state)) words.push("Retry", "Drop");
  return words.map((word) => action(word, `the job ${job.name}`, () => changeJob(word, job), { sure: word !== "Retry" }));
}

const rowOf = (id) => [...$("#job-rows").children].find((row) => row.dataset.key === id);

function toggleJob(id) {
  if (opened.has(id)) {
    const row = rowOf(id);
    row?.more?.remove();
    if (row) row.more = null;
    opened.delete(id);
    listJobs();
  } else {
    opened.set(id, true);
    listJobs();
    showJob(id);
  }
}

/** As it would stand in Python, but with the values of JSON. */
function callOf({ name, arguments_shown: told }) {
  const [positional, named] = Array.isArray(told) ? told.slice(-2) : [];
  if (!Array.isArray(positional) || typeof named !== "object" || named === null) return JSON.stringify(told, null, 1);
  const values = positional.map((value) => JSON.stringify(value));
  const all = [...values, ...Object.entries(named).map(([key, value]) => `${key}=${JSON.stringify(value)}`)];
  const line = all.join(", ");
  return line.length > 100 ? `${name}(\n  ${all.join(",\n  ")}\n)` : `${name}(${line})`;
}

/** Arguments, errors and times of one job, under its row. */
async function showJob(id) {
  const row = rowOf(id);
  if (!row) {
    opened.delete(id);
    return;
  }
  const answer = await fetch(`jobs/${id}`).catch(() => null);
  if (!answer?.ok || !opened.has(id)) return;
  const text = await answer.text();
  if (row.more?.look === text) return;
  const job = JSON.parse(text);
  const history = [
    `enqueued ${moment(job.enqueued)}`,
    job.due ? `due ${moment(job.due)}` : null,
    job.started ? `attempt ${job.attempt} began ${moment(job.started)}` : null,
    job.ended ? `${job.state} ${moment(job.ended)}` : null,
  ].filter(Boolean).join(" → ");
  const entries = [
    ["id", make("span", { class: "mono" }, job.id)],
    ["history", history],
    ["request", job.request_id ? make("span", { class: "mono" }, job.request_id) : null],
    ["priority", job.priority ? String(job.priority) : null],
    ["call", job.arguments_shown ? make("pre", { tabindex: 0 }, callOf(job)) : null],
    ["result", job.shown !== null ? make("pre", { tabindex: 0 }, JSON.stringify(job.shown, null, 1)) : null],
    ["last error", job.error ? make("pre", { class: "error", tabindex: 0 }, job.error) : null],
  ].filter(([, value]) => value !== null);
  const list = make("dl", {}, ...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  row.more?.remove();
  row.more = make("tr", { class: "more" }, make("td", { colspan: 6 }, list));
  row.more.look = text;
  row.after(row.more);
}

function showChannels({ report }) {
  const { busiest, count: many, messages, bytes } = report.channels;
  rows($("#channel-rows"), busiest, {
    key: (channel) => channel.name,
    shape: ({ oldest, ...channel }) => channel,
    live: (channel) => ({ 3: age(channel.oldest) }),
    cells: (channel) => [
      cell(channel.name, { kind: "mono wide" }),
      cell(number.format(channel.next), { kind: "number", label: "long polls" }),
      cell(number.format(channel.stream), { kind: "number", label: "streams" }),
      cell(age(channel.oldest), { kind: "number", label: "oldest" }),
      cell(number.format(channel.messages), { kind: "number", label: "messages" }),
      cell(size(channel.bytes), { kind: "number" }),
      cell(channel.cursor, { kind: "mono soft", label: "cursor" }),
    ],
  });
  const held = messages ? `${count(messages, "message")} kept, ${size(bytes)}` : "";
  const listed = many > busiest.length ? `${busiest.length} of ${number.format(many)}, those with the most waiting requests` : "";
  say("#channels-note", [listed, held].filter(Boolean).join(" · "));
  say("#channel-none", busiest.length ? "" : "No channel is in use.");
}

function showWorkers({ report, requests }) {
  const held = [...(requests.running ?? []), ...(requests.runs ?? [])];
  rows($("#worker-rows"), report.workers, {
    key: (worker) => worker.id,
    shape: ({ age: _, resident_bytes: __, requests: ___, jobs: ____, ...worker }) => [worker, held.filter((row) => row.worker === worker.id).map((row) => row.id)],
    live: (worker) => ({ 4: doneOf(worker), 5: size(worker.resident_bytes), 6: age(worker.age) }),
    cells: (worker) => {
      const runs = held.filter((row) => row.worker === worker.id);
      const shown = runs.slice(0, 3).map((row) => make("span", { class: "sub mono" }, `${row.method} ${row.route}`.trim()));
      const rest = worker.held - shown.length;
      return [
        cell([String(worker.id), make("span", { class: "sub" }, worker.pid ? `process ${worker.pid}` : "")], { kind: "tight" }),
        cell([pill(worker.state), worker.role === "jobs" ? make("span", { class: "sub" }, "for jobs") : null, worker.mount ? make("span", { class: "sub" }, `at ${worker.mount}`) : null], { kind: "tight" }),
        cell(shown.length ? [...shown, rest > 0 ? make("span", { class: "sub" }, `and ${rest} more`) : null] : worker.held ? String(worker.held) : "–"),
        cell(String(worker.awaiting), { kind: "number", label: "parked in it" }),
        cell(doneOf(worker), { kind: "number", label: "done" }),
        cell(size(worker.resident_bytes), { kind: "number" }),
        cell(age(worker.age), { kind: "number", label: "age" }),
        cell(`gen. ${worker.generation}`, { kind: "number soft" }),
      ];
    },
  });
  const { counts, code } = report;
  const killed = Object.values(counts.workers_killed).reduce((sum, many) => sum + many, 0);
  const told = [`${counts.workers_started} started`, `${counts.workers_died} died`, `${killed} killed`, `${counts.workers_recycled} replaced as planned`];
  say("#workers-note", told.join(" · "));
  $("#reload").hidden = !isUnlocked;
  $("#reload").disabled = code.reloading || report.state === "draining";
  const last = code.last_reload ? ` The last reload was ${code.last_reload === "done" ? "done" : "aborted: the old code serves"}.` : "";
  say("#reload-told", code.reloading ? "New workers are loading the code; the old ones are still serving." : `Generation ${code.generation} of the code serves.${last}`);
  $("#reload-error").hidden = !code.error;
  say("#reload-error pre", code.error ?? "");
}

const doneOf = (worker) => (worker.role === "jobs" ? count(worker.jobs, "job") : number.format(worker.requests));

const writtenAt = ({ handler, source }) => {
  const told = [handler?.split(":").pop(), source].filter(Boolean).join(" · ");
  return told ? [make("div", { class: "note mono", title: handler ?? source }, told)] : [];
};

function showRoutes({ routes }) {
  rows($("#route-rows"), routes, {
    key: (route) => `${route.method} ${route.route}`,
    shape: (route) => route,
    cells: (route) => {
      const all = route.queued + route.running + route.parked;
      const words = `queue ${time(route.queued / route.requests)}, worker ${time(route.running / route.requests)}, parked ${time(route.parked / route.requests)} on average`;
      const bar = make("div", { class: "share", role: "img", "aria-label": words, title: words });
      for (const part of ["queued", "running", "parked"]) {
        const piece = make("i", { class: { queued: "queue", running: "run", parked: "park" }[part] });
        piece.style.flexBasis = `${all > 0 ? (100 * route[part]) / all : 0}%`;
        bar.append(piece);
      }
      return [
        cell([make("span", { class: "method" }, `${route.method} `), make("span", { class: "mono" }, route.route), ...writtenAt(route)], { kind: "wide" }),
        cell(number.format(route.requests), { kind: "number", label: "requests" }),
        cell(number.format(route.client_errors), { kind: "number", label: "4xx" }),
        cell(number.format(route.errors), { kind: route.errors ? "number error" : "number", label: "5xx" }),
        cell(time(all / route.requests), { kind: "number", label: "mean" }),
        cell(time(route.p99), { kind: "number", label: "p99" }),
        cell(bar, { kind: "wide" }),
      ];
    },
  });
  say("#route-none", routes.length ? "" : "No request has ended yet.");
}

// Settings and access

let settings = [];

async function loadSettings() {
  const answer = await fetch("settings").catch(() => null);
  if (!answer?.ok) return;
  const told = await answer.json();
  settings = told.settings;
  writes = told.writes ?? "off";
  showSettings();
  if (writes === "token" && token) await unlock();
  showAccess();
}

function showSettings() {
  const listed = settings.filter((setting) => chosen.settings || setting.origin !== "default");
  rows($("#setting-rows"), listed, {
    key: (setting) => setting.name,
    shape: (setting) => setting,
    cells: (setting) => [
      cell(setting.name, { kind: "mono" }),
      cell(setting.value || "–", { kind: "mono wide" }),
      cell(setting.origin, { kind: "soft" }),
    ],
  });
  const set = settings.filter((setting) => setting.origin !== "default").length;
  say("#settings-note", `${set} of ${settings.length} are set, the others have their defaults; secrets are masked`);
  $("#settings-all").setAttribute("aria-pressed", String(chosen.settings));
}

function showAccess() {
  const words = {
    off: "This page is read-only.",
    local: "This page is read-only. To cancel, retry, drop and reload here, start the server with --admin-writes token.",
    token: isUnlocked ? "Actions are unlocked in this tab." : "This page is read-only until you enter the admin token.",
  };
  say("#access", words[writes]);
  $("#unlock").hidden = writes !== "token" || isUnlocked;
  if (latest) show(latest);
}

async function unlock() {
  const answer = await fetch("access", { method: "POST", headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  isUnlocked = Boolean(answer?.ok);
  if (isUnlocked) sessionStorage.setItem("parkade-token", token);
  else lock();
  return isUnlocked;
}

function lock() {
  isUnlocked = false;
  token = "";
  sessionStorage.removeItem("parkade-token");
  showAccess();
}

$("#unlock").addEventListener("submit", async (event) => {
  event.preventDefault();
  token = $("#unlock").token.value.trim();
  $("#unlock").reset();
  tell((await unlock()) ? "Actions are unlocked." : "That is not the token.");
  showAccess();
});

$("#settings-all").addEventListener("click", () => {
  chosen.settings = !chosen.settings;
  showSettings();
});

$("#reload").addEventListener("click", async () => {
  if (await ask("POST", "reload")) tell("New workers are loading the code.");
});

// The link to the server

function show(snapshot) {
  latest = snapshot;
  showHead(snapshot);
  showAlerts(snapshot);
  const { graph } = snapshot;
  graphs.requests.show([graph.requests, graph.errors]);
  graphs.latency.show([graph.p50, graph.p99]);
  graphs.load.show([graph.parked, graph.queued, graph.running]);
  showRequests(snapshot);
  showQueries(snapshot);
  showJobs(snapshot);
  showChannels(snapshot);
  showWorkers(snapshot);
  showRoutes(snapshot);
}

let source = null;
let heard = 0;
let pid = null;

function stands(state, text) {
  const link = $("#link");
  link.dataset.state = state;
  say(link, text);
  document.body.dataset.link = state;
}

function connect() {
  if (source || document.hidden) return;
  source = new EventSource("events");
  source.addEventListener("message", (event) => {
    heard = performance.now();
    const snapshot = JSON.parse(event.data);
    if (snapshot.report.pid !== pid) {
      // Another process may have other settings.
      pid = snapshot.report.pid;
      loadSettings();
      loadJobs(true);
    }
    stands("live", "live");
    show(snapshot);
  });
  source.addEventListener("silent", () => {
    heard = performance.now();
    stands("lost", "the core does not respond");
  });
  source.addEventListener("error", () => {
    // A connection lasts for a minute and a half; a new one follows within a second.
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, 2000);
    }
  });
}

setInterval(() => {
  if (source && heard && performance.now() - heard > 5000) stands("lost", "connection lost; trying again");
}, 1000);

// Nobody sees a hidden page, so the server computes nothing for it.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else {
    heard = performance.now();
    connect();
  }
});

connect();
