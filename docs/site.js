// What the theme leaves out: wide tables and formulas are scrolled by the keyboard too, and the search has a name.
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
      target.setAttribute("role", "group");
      target.setAttribute("aria-label", target.matches(".formula") ? "Wide formula" : "Wide table");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
    }
  }
});

// The theme wraps tables when the page is ready: they are looked for one frame later.
document$.subscribe(() => requestAnimationFrame(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const element of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset .formula")) sizes.observe(element);
}));
