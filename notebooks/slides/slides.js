// One slide at a time, scaled to the screen; keys, buttons and the address move.
(() => {
  const slides = [...document.querySelectorAll("section")], place = document.getElementById("place");
  let at = 0;

  // A slide is as large as fits; what is still too high scrolls.
  function fit() {
    const box = slides[at].firstElementChild;
    box.style.transform = "";
    const width = window.innerWidth - 48, height = window.innerHeight - 72;
    const scale = Math.min(2, Math.max(0.55, Math.min(width / box.offsetWidth, height / box.scrollHeight)));
    box.style.transform = `scale(${scale})`;
    slides[at].style.setProperty("--height", `${box.scrollHeight * scale}px`);
  }

  function show(number) {
    at = Math.min(slides.length - 1, Math.max(0, number));
    slides.forEach((slide, k) => slide.classList.toggle("shown", k === at));
    place.textContent = `${at + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${at + 1}`);
    window.scrollTo(0, 0);
    fit();
  }

  document.getElementById("back").addEventListener("click", () => show(at - 1));
  document.getElementById("next").addEventListener("click", () => show(at + 1));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, canvas, button, [tabindex], iframe, a")) return;
    const to = { ArrowRight: at + 1, PageDown: at + 1, " ": at + 1, ArrowLeft: at - 1, PageUp: at - 1, Home: 0, End: slides.length - 1 }[event.key];
    if (to !== undefined) show(to);
    else if (event.key === "n") document.body.classList.toggle("notes");
    else if (event.key === "f") document.documentElement.requestFullscreen?.();
    else return;
    event.preventDefault();
    fit();
  });
  window.addEventListener("resize", fit);
  window.addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1 || 0));
  new ResizeObserver(fit).observe(document.querySelector("main"));
  window.addEventListener("load", fit);
  show(Number(location.hash.slice(1)) - 1 || 0);
})();
