const element = (id) => document.getElementById(id);
const form = document.querySelector("form");
let leader = null;

// The rule. Bids come in the same order to everybody, so everybody comes to the same leader.
function take(bid) {
  const leads = leader === null || bid.amount > leader.amount;
  if (leads) leader = bid;
  element("leader").textContent = `${leader.bidder} leads with ${leader.amount}.`;
  const line = document.createElement("li");
  const led = document.querySelector("#bids .leads");
  if (leads && led !== null) [led.className, led.querySelector("em").textContent] = ["", "outbid"];
  line.className = leads ? "leads" : "low";
  line.append(cell("span", bid.bidder), cell("b", bid.amount), cell("em", leads ? "leads" : "too low"));
  element("bids").prepend(line);
}

function cell(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function link(state) {
  element("link").dataset.state = element("link").textContent = state;
}

const bids = new EventSource("/auction/7/bids");
bids.onopen = () => link("live");
bids.onerror = () => link("reconnecting"); // by the browser; what is shown may be old until it is live again
bids.onmessage = (event) => take(JSON.parse(event.data));
// Some bids are no longer held; all that are held follow.
bids.addEventListener("gap", () => {
  leader = null;
  element("leader").textContent = "No bids yet.";
  element("bids").replaceChildren();
});

form.onsubmit = async (event) => {
  event.preventDefault();
  const bid = { bidder: form.bidder.value, amount: form.amount.valueAsNumber };
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/auction/7", { method: "POST", headers, body: JSON.stringify(bid) }).catch(() => null);
  element("told").textContent = answer?.status === 202 ? "" : "The bid was not taken.";
};
