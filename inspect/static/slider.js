// The slider of the page of rows. It loads the same page for another time and takes its rows over;
// without it, the form and the links do the same.
"use strict";
(() => {
  const box = document.getElementById("slider");
  const slide = document.getElementById("slide");
  const previous = document.getElementById("previous");
  const form = document.querySelector("form[data-slider]");
  const status = document.getElementById("status");
  const marking = document.getElementById("marking");
  const times = document.getElementById("times");
  const choices = document.getElementById("choices");
  let state = document.getElementById("state");
  if (!box || !slide || !form || !status || !marking || !times || !choices || !state || !window.fetch || !window.BigInt) return;
  box.hidden = marking.hidden = false;

  const steps = BigInt(slide.max);
  let loading = null; // AbortController of the page that is being loaded
  let timer = 0;

  // Timestamps have up to 64 bits, so they are BigInts.
  const at = (position) => {
    const first = BigInt(state.dataset.first), last = BigInt(state.dataset.last);
    return position >= steps ? last : first + (last - first) * position / steps;
  };

  const parameters = (ts) => {
    const values = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...values]) if (value === "") values.delete(name);
    values.set("at", ts.toString());
    if (previous.checked && state.dataset.at !== ts.toString()) values.set("since", state.dataset.at);
    return values;
  };

  const say = (text) => { status.textContent = text; };

  // load shows the state at a timestamp.
  const load = async (ts) => {
    if (loading) loading.abort();
    const mine = loading = new AbortController();
    const values = parameters(ts);
    const url = form.action + "?" + values;
    state.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" }, signal: mine.signal, credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.getElementById("state");
      if (!next) {
        const why = page.querySelector("main .lead");
        say(why ? why.textContent : "The page could not be loaded.");
        return;
      }
      status.replaceChildren(...page.getElementById("status").childNodes);
      times.replaceChildren(...page.getElementById("times").childNodes);
      choices.replaceChildren(...page.getElementById("choices").childNodes);
      state.replaceWith(next);
      state = next;
      for (const name of ["at", "since"]) form.elements[name].value = values.get(name) || "";
      history.replaceState(null, "", url);
    } catch (error) {
      if (error.name !== "AbortError") say("The page could not be loaded: " + error.message);
    } finally {
      if (loading === mine) state.removeAttribute("aria-busy");
    }
  };

  slide.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => load(at(BigInt(slide.value))), 60);
  });
})();
