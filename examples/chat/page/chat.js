"use strict";

const form = document.querySelector("form");
const list = document.querySelector("#said");
const link = document.querySelector("#link");
let socket = null;

function show(state) {
  link.dataset.state = link.textContent = state;
}

function open(name) {
  show("connecting");
  const address = new URL(`/rooms/lobby?name=${encodeURIComponent(name)}`, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const opened = new WebSocket(address);
  opened.onopen = () => {
    list.replaceChildren();
    show("live");
  };
  opened.onmessage = (message) => {
    const said = JSON.parse(message.data);
    const item = document.createElement("li");
    item.textContent = `${said.name}: ${said.text}`;
    list.append(item);
  };
  opened.onclose = () => {
    if (opened !== socket) return;
    show("reconnecting");
    setTimeout(() => opened === socket && (socket = open(name)), 1000);
  };
  return opened;
}

form.name.addEventListener("change", () => {
  socket?.close();
  socket = open(form.name.value);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (socket?.readyState !== WebSocket.OPEN) return;
  socket.send(JSON.stringify({ text: form.text.value }));
  form.text.value = "";
});

show("give your name");
