// The keys ← and → follow the links to the older and the newer step.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  if (!rel || event.target.closest("input, select, textarea, [tabindex='0']")) return;
  const link = document.querySelector("#job a[rel=" + rel + "]");
  if (link) {
    event.preventDefault();
    link.click();
  }
});
