// A widget in a notebook: the same under a shadow root. The model and the selection are traits.

import { mount } from "./main.js";
async function render({ model, el }) {
  const root = el.shadowRoot || el.attachShadow({ mode: "open" }), style = document.createElement("style");
  style.textContent = model.get("_style");
  root.replaceChildren(style);
  root.append(document.createRange().createContextualFragment(model.get("_html")));
  // JupyterLab's own keys would take those of sliders and buttons, and move to another cell.
  el.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.stopPropagation());
  // JupyterLab's theme, not the system's.
  const theme = () => {
    const light = document.body.dataset.jpThemeLight;
    if (light !== undefined) el.dataset.theme = light === "true" ? "light" : "dark";
  };
  theme();
  const parsed = JSON.parse(model.get("_model"));
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const onSelect = (span) => {
    if (same(span, model.get("selection"))) return;
    model.set("selection", span);
    model.save_changes();
  };
  const handle = await mount(root, parsed, { host: el, onSelect, ask: (span) => model.send({ finer: span }), explain: (span) => model.send({ explain: span }) });
  const receive = (message) => {
    if ("explained" in message) handle.explained(message.explained);
    if (message.finer) handle.addFiner(message.finer);
  };
  model.on("msg:custom", receive);
  const follow = () => {
    const span = model.get("selection");
    if (!same(span, handle.selection())) handle.follow(span);
  };
  follow();
  model.on("change:selection", follow);
  const watch = new MutationObserver(() => (theme(), handle.redraw()));
  watch.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  el.dataset.ready = "true";
  return () => {
    watch.disconnect();
    model.off("change:selection", follow);
    model.off("msg:custom", receive);
    handle.close();
  };
}

export default { render };
