// The page: all sections, the list of them, and its appearance.

function contents() {
  const sections = [...document.querySelectorAll("main section")];
  const link = ({ id, firstElementChild: title }) => element("a", { href: `#${id}` }, title.textContent);
  const links = new Map(sections.map((section) => [section, link(section)]));
  document.querySelector("#contents ol").append(...[...links.values()].map((one) => element("li", {}, one)));
  const mark = ({ isIntersecting, target }) => {
    if (isIntersecting) links.get(target).setAttribute("aria-current", "true");
    else links.get(target).removeAttribute("aria-current");
  };
  const watch = new IntersectionObserver((entries) => entries.forEach(mark), { rootMargin: "-20% 0px -75% 0px" });
  sections.forEach((section) => watch.observe(section));
}

function appearance() {
  byId("theme").addEventListener("change", ({ target }) => {
    const { dataset } = document.documentElement;
    if (target.value === "auto") delete dataset.theme;
    else dataset.theme = target.value;
  });
}

async function build() {
  appearance();
  head();
  quality();
  evidence();
  linear();
  boundary();
  contents();
  if (byId("threshold")) threshold(Math.round(curveAt().steps / 2));
  await prediction();
}

window.deciban = {
  figures,
  drawings,
  threshold,
  drawAll,
  get scorer() {
    return scorer;
  },
  ready: build(),
};
