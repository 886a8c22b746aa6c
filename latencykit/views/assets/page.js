// A page of its own: the model is in the document.

import { mount } from "./main.js";
mount(document, JSON.parse(document.getElementById("model").textContent), { host: document.documentElement }).then(
  (handle) => {
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
