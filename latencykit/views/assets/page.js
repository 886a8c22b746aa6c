// A page of its own: the model is in the document, the view in its address.

import { wireAddress } from "./controls.js";
import { mount } from "./main.js";
document.getElementById("static")?.remove(); // where the style sheet does not hide it
let write = () => {};
const heard = () => write();
// A frame sees the system's theme only: who frames the page may say which it has.
let themed = () => {};
addEventListener("message", ({ source, data }) => {
  if (source !== parent || !["light", "dark"].includes(data?.theme)) return;
  document.documentElement.dataset.theme = data.theme;
  themed();
});
mount(document, JSON.parse(document.getElementById("model").textContent), { host: document.documentElement, onSelect: heard, onView: heard }).then(
  (handle) => {
    write = wireAddress(handle.page, handle);
    themed = handle.redraw;
    document.documentElement.dataset.ready = performance.now().toFixed(0);
    window.latencykit = handle; // for the console and for checks
  },
  (error) => {
    const note = document.getElementById("trouble");
    note.hidden = false;
    note.textContent = `This browser could not draw the charts (${error.message}); the numbers are in the tables.`;
    throw error;
  },
);
