// The page: its sections, their list, and its appearance.

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

// In a notebook, a link to a section would open the notebook inside the frame of the page.
function links() {
  if (location.protocol !== "about:") return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    const target = document.querySelector(link.getAttribute("href"));
    target.tabIndex = -1;
    target.scrollIntoView({ behavior: "instant" });
    target.focus({ preventScroll: true });
  });
}

// The appearance is remembered while the page is open, also after a reload.
function appearance() {
  const select = byId("theme");
  select.value = remembered("theme") ?? "auto";
  if (!select.value) select.value = "auto"; // the remembered value is not an appearance
  show(select.value);
  select.addEventListener("change", () => {
    show(select.value);
    remember("theme", select.value);
  });
}

function show(theme) {
  const { dataset } = document.documentElement;
  if (theme === "auto") delete dataset.theme;
  else dataset.theme = theme;
}

// Some browsers refuse to store anything for a file or a frame.
function stored(work) {
  try {
    return work(sessionStorage);
  } catch {
    return null;
  }
}

const remembered = (name) => stored((storage) => storage.getItem(`deciban-${name}`));
const remember = (name, value) => stored((storage) => storage.setItem(`deciban-${name}`, value));

async function build() {
  appearance();
  links();
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
