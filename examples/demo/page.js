"use strict";

const element = (id) => document.getElementById(id);
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(2)} s`;
const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

for (const origin of document.querySelectorAll(".origin")) origin.textContent = location.origin;

// The core's numbers

const ASK_EVERY = 500;
const TRACE_LENGTH = 120;
const trace = [];

async function ask() {
  if (document.hidden) return;
  let told = "The server does not answer.";
  try {
    const answer = await fetch("/numbers", { signal: AbortSignal.timeout(5_000) });
    if (answer.ok) {
      show(await answer.json());
      told = "";
    } else {
      told = await answer.text();
    }
  } catch {
    // The server is away; the next question may find it.
  }
  if (element("numbers-told").textContent !== told) element("numbers-told").textContent = told;
}

function show(numbers) {
  const busy = numbers.workers.filter((worker) => worker.busy).length;
  element("parked").textContent = numbers.parked;
  element("busy").textContent = `${busy} of ${numbers.workers.length}`;
  element("queued").textContent = numbers.queued;
  element("connections").textContent = numbers.connections;
  const bytes = numbers.resident_bytes;
  element("memory").textContent = bytes === null ? "unknown" : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  for (const cell of document.querySelectorAll("#wash-numbers dd")) cell.textContent = numbers.jobs[cell.dataset.state];
  for (const cell of document.querySelectorAll("#count-numbers dd")) cell.textContent = numbers.queries[cell.dataset.state];
  trace.push(numbers.parked);
  if (trace.length > TRACE_LENGTH) trace.shift();
  draw();
}

function draw() {
  const top = Math.max(12, ...trace);
  const start = TRACE_LENGTH - trace.length;
  const points = trace.map((parked, at) => `${start + at},${(38 - (34 * parked) / top).toFixed(1)}`).join(" L");
  element("most").textContent = `at most ${Math.max(...trace)}`;
  document.querySelector("#trace .line").setAttribute("d", `M${points}`);
  document.querySelector("#trace .area").setAttribute("d", `M${start},40 L${points} L${TRACE_LENGTH - 1},40 Z`);
}

async function askForEver() {
  await ask();
  setTimeout(askForEver, ASK_EVERY);
}
askForEver();

// Delayed echoes

// A browser opens six connections to a host. On the machine that serves it, a page can still hold 200: every name under
// .localhost is this machine, and to the browser each is another host.
const CONNECTIONS_PER_HOST = 6;
// Elsewhere the auction's stream needs one of the six, and so do the car's, and the numbers and a bid.
const CONNECTIONS_FOR_ECHOES = 3;

const lane = (number) => `http://e${number}.localhost:${location.port || 80}`;
const lanes = findLanes();
let leaving = null;

async function findLanes() {
  const isHere = location.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
  const answers = isHere && (await fetch(`${lane(1)}/here`, { signal: AbortSignal.timeout(3_000) }).catch(() => null));
  element("lanes-told").textContent = answers?.ok
    ? "A browser opens six connections to a host, so this page asks the same server under many names: e1.localhost, e2.localhost … Each echo has a connection of its own."
    : `A browser opens six connections to a host, so from here ${CONNECTIONS_FOR_ECHOES} echoes go at a time. To park 200 at once, use a terminal, below.`;
  return Boolean(answers?.ok);
}

element("echo").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (leaving !== null) return;
  leaving = new AbortController();
  element("leave").disabled = false;
  const buttons = document.querySelectorAll("#echo button[value]");
  for (const button of buttons) button.disabled = true;
  await send(Number(event.submitter?.value ?? 1), event.target.word.value, await lanes, leaving.signal);
  for (const button of buttons) button.disabled = false;
  element("leave").disabled = true;
  leaving = null;
});

element("leave").addEventListener("click", () => leaving?.abort());

async function send(number, word, hasLanes, signal) {
  const bays = Array.from({ length: number }, () => document.createElement("i"));
  element("bays").replaceChildren(...bays);
  const waits = [];
  const state = { back: 0, failed: 0, left: 0 };
  element("echo-told").textContent = `${count(number, "echo", "echoes")} on the way.`;

  async function echo(at) {
    const host = hasLanes ? lane(1 + Math.floor(at / CONNECTIONS_PER_HOST)) : "";
    const began = performance.now();
    bays[at].className = "parked";
    let end = "failed";
    try {
      const answer = await fetch(`${host}/echo?word=${encodeURIComponent(word)}`, { signal, cache: "no-store" });
      if (answer.ok && (await answer.text()) === `You said: ${word}`) end = "back";
    } catch {
      if (signal.aborted) end = "left";
    }
    if (end === "back") waits.push(performance.now() - began);
    bays[at].className = end;
    state[end] += 1;
  }

  const queue = bays.keys();
  const runner = async () => {
    for (const at of queue) await echo(at);
  };
  await Promise.all(Array.from({ length: hasLanes ? number : CONNECTIONS_FOR_ECHOES }, runner));
  element("echo-told").textContent = summary(state, waits, word);
}

function summary({ back, failed, left }, waits, word) {
  const told = [];
  if (back === 1) told.push(`Back after ${seconds(waits[0])}: “You said: ${word}”.`);
  if (back > 1) {
    const together = waits.reduce((sum, wait) => sum + wait, 0);
    told.push(`${back} are back, the first after ${seconds(Math.min(...waits))}, the last after ${seconds(Math.max(...waits))}.`);
    told.push(`Together they waited ${Math.round(together / 1000)} s.`);
  }
  if (left > 0) told.push(`You walked away from ${left}: the core let go of ${left === 1 ? "it" : "them"} at once.`);
  if (failed > 0) told.push(`${failed} failed.`);
  return told.join(" ");
}

// The auction

const BEGINNING = "beginning";
const BIDS_SHOWN = 8;
const BIDS_KEPT = 500;
const CATCH_UP = 500; // what comes so soon after a connection was opened had happened before
const RETRY = 3_000;

let stream = null;
let cursor = null; // of the last bid that this page saw
let bids = []; // the latest first
let leader = null;
let missed = null; // while catching up: how many came

function connect() {
  link("connecting");
  const own = new EventSource(`/auction?since=${encodeURIComponent(cursor ?? BEGINNING)}`);
  stream = own;
  stream.addEventListener("open", opened);
  stream.addEventListener("message", (event) => {
    cursor = event.lastEventId;
    const bid = parse(event.data);
    if (bid !== null) take(bid);
  });
  stream.addEventListener("gap", (event) => {
    // Bids after our cursor are no longer held. All that are held follow, as for every other page: count from them.
    if (cursor !== null) {
      const isAnew = epoch(event.lastEventId) !== epoch(cursor);
      element("auction-told").textContent = isAnew
        ? "The server was started anew, and the auction with it: a channel lives in its memory."
        : "Some bids are no longer held. The list begins with those that are.";
      document.querySelector("#bid [name=amount]").value = 10;
    }
    cursor = null;
    bids = [];
    leader = null;
    missed = null;
    list();
  });
  stream.addEventListener("error", () => {
    element("auction-told").textContent = "";
    link("reconnecting"); // by the browser, with its Last-Event-ID; only a refusal ends its patience
    if (own.readyState === EventSource.CLOSED) setTimeout(() => stream === own && connect(), RETRY);
  });
}

function opened() {
  link("live");
  if (cursor === null) return;
  missed = 0;
  setTimeout(() => {
    if (missed !== null) element("auction-told").textContent = `Connected again: ${count(missed, "bid", "bids")} came meanwhile, none is missing.`;
    missed = null;
  }, CATCH_UP);
}

function link(state) {
  element("link").dataset.state = state;
  element("link").textContent = state;
}

/** The first part of a cursor: it changes when the server is started anew. */
const epoch = (cursor) => cursor.split(".")[0];

/** Anybody may publish anything on a channel: what is no bid is left out. */
function parse(text) {
  try {
    const { bidder, amount } = JSON.parse(text);
    if (typeof bidder === "string" && Number.isSafeInteger(amount) && amount > 0) return { bidder: bidder.slice(0, 24), amount };
  } catch {
    // It is no JSON.
  }
  return null;
}

/** The rule: a bid leads if it is higher than all before it. All pages see the same order, so all agree. */
function take({ bidder, amount }) {
  const bid = { bidder, amount, isLow: leader !== null && amount <= leader.amount };
  if (!bid.isLow) leader = bid;
  if (missed !== null) missed += 1;
  bids.unshift(bid);
  bids.length = Math.min(bids.length, BIDS_KEPT);
  list();
}

function list() {
  const told = leader === null ? "No bids yet." : `${leader.bidder} leads with ${leader.amount}`;
  if (element("leader").textContent !== told) element("leader").textContent = told;
  element("bids").replaceChildren(...bids.slice(0, BIDS_SHOWN).map(line));
  const amount = document.querySelector("#bid [name=amount]");
  if (leader !== null && document.activeElement !== amount && amount.valueAsNumber <= leader.amount) amount.value = leader.amount + 10;
}

function line(bid) {
  const item = document.createElement("li");
  item.className = bid === leader ? "leads" : bid.isLow ? "low" : "";
  item.append(cell("span", bid.bidder), cell("b", bid.amount), cell("em", bid === leader ? "leads" : bid.isLow ? "too low" : "outbid"));
  return item;
}

function cell(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

element("bid").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const bid = { bidder: form.bidder.value.trim(), amount: form.amount.valueAsNumber };
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/auction", { method: "POST", headers, body: JSON.stringify(bid) }).catch(() => null);
  element("auction-told").textContent = answer?.status === 202 ? "" : await refused(answer);
});

async function refused(answer) {
  if (answer === null) return "The server does not answer: the bid was not taken.";
  if (answer.status !== 422) return `The bid was not taken (${answer.status}).`;
  const { parameters } = await answer.json();
  return `The bid was not taken: ${parameters.map(({ name, reason }) => `${name}: ${reason}`).join("; ")}.`;
}

element("away").addEventListener("click", (event) => {
  if (stream === null) {
    connect();
  } else {
    stream.close();
    stream = null;
    missed = null;
    element("auction-told").textContent = "";
    link("away");
  }
  event.target.textContent = stream === null ? "Connect again" : "Disconnect";
});

connect();

// The car wash

let cars = []; // the paths of the jobs of this page's cars that are not known to be clean, the first one first
let sent = 0; // how many cars there were
let carStream = null;

element("wash").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch(`/wash?cars=${event.submitter?.value ?? 1}`, { method: "POST" }).catch(() => null);
  if (!answer?.ok) {
    element("wash-told").textContent = answer === null ? "The server does not answer: no car was taken." : await answer.text();
    return;
  }
  const { jobs } = await answer.json();
  follow(jobs.map((id) => `/jobs/${id}`), jobs.length);
});

element("drive-off").addEventListener("click", () => Promise.all(cars.map((car) => fetch(car, { method: "DELETE" }).catch(() => null))));

function follow(paths, number) {
  cars = paths;
  sent = number;
  next("waiting for a bay", 0);
}

/** Follows the first car that is left. */
function next(state, fraction) {
  carStream?.close();
  sessionStorage.setItem("cars", JSON.stringify({ cars, sent }));
  tellOfCar(state, fraction);
  const own = new EventSource(cars[0]);
  carStream = own;
  own.addEventListener("message", (event) => own === carStream && hear(own, JSON.parse(event.data)));
  own.addEventListener("error", () => own === carStream && own.readyState === EventSource.CLOSED && carHasEnded());
}

function hear(own, { state, fraction, text, attempt }) {
  if (state === "running") {
    tellOfCar(`${text ?? "in a bay"}${attempt > 1 ? `, for the ${attempt}. time` : ""}`, fraction ?? 0);
  } else if (state !== "ready" && state !== "scheduled") {
    own.close();
    carHasEnded();
  }
}

/** What became of the first car; then the next one is followed. */
async function carHasEnded() {
  const answer = await fetch(cars[0]).catch(() => null);
  const told = { 404: "It is not known here any more.", 410: "You drove off.", 500: "The wash failed." };
  cars.shift();
  if (answer?.status === 200 && cars.length > 0) return next("waiting for a bay", 0);
  carStream.close();
  sessionStorage.removeItem("cars");
  const isClean = answer?.status === 200;
  const all = sent === 1 ? await answer?.text() : `All ${sent} cars are clean.`;
  element("wash-told").textContent = isClean ? all : (told[answer?.status] ?? "Nobody knows where it is.");
  element("wash-bar").value = isClean ? 1 : 0;
  element("drive-off").disabled = true;
  cars = [];
}

function tellOfCar(state, fraction) {
  const which = sent === 1 ? "It is" : `Car ${sent - cars.length + 1} of ${sent} is`;
  element("wash-told").textContent = `${which} ${state}.`;
  element("wash-bar").value = fraction;
  element("drive-off").disabled = false;
}

const known = JSON.parse(sessionStorage.getItem("cars") ?? "null");
if (known !== null) follow(known.cars, known.sent);

// The slow query

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let tab = null;

element("count").addEventListener("click", async () => {
  element("count").disabled = true;
  const own = { gone: new AbortController(), began: performance.now(), query: null };
  tab = own;
  tellOfCount("running", "It begins.");
  const before = (await counting()) ?? [];
  const answer = fetch("/count", { signal: own.gone.signal, cache: "no-store" }).then(counted, () => null);
  answer.then((told) => own === tab && told !== null && endCount("done", told));
  const clock = setInterval(() => {
    if (own !== tab) return clearInterval(clock);
    if (own.query !== null) tellOfCount("running", `Counting in the database: ${((performance.now() - own.began) / 1000).toFixed(1)} s`);
  }, 100);
  // Which of the queries is this one: the one that was not there before.
  while (own === tab && own.query === null) {
    own.query = (await counting())?.find((query) => !before.includes(query)) ?? null;
    await pause(20);
  }
});

element("count-leave").addEventListener("click", async () => {
  const { gone, query } = tab;
  tab = null;
  const left = performance.now();
  gone.abort();
  let running = await counting();
  while (running !== null && running.includes(query)) running = await counting();
  const passed = Math.max(1, Math.ceil(performance.now() - left));
  if (running === null) endCount("failed", "The server does not answer.");
  else if (query === null) endCount("left", "Closed before the database had begun.");
  else endCount("left", `Cancelled after ${passed} ms. The database has stopped counting.`);
});

/** The queries that the database is at; null when nobody tells. */
async function counting() {
  const answer = await fetch("/counting", { cache: "no-store" }).catch(() => null);
  return answer?.ok ? await answer.json() : null;
}

async function counted(answer) {
  if (!answer.ok) return `The server answers ${answer.status}.`;
  return `It counted to ${(await answer.json()).counted.toLocaleString("en")}. You stayed to the end.`;
}

function endCount(state, text) {
  tab = null;
  tellOfCount(state, text);
  element("count").disabled = false;
}

function tellOfCount(state, text) {
  element("count-tab").hidden = false;
  element("count-tab").dataset.state = state;
  element("count-told").textContent = text;
  element("count-leave").disabled = state !== "running";
}
