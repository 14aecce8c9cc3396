// Returns what is wrong with the page as it is shown, as a list of sentences.
(() => {
  const wrong = [];
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.getAttribute("class") ? "." + e.getAttribute("class").replaceAll(" ", ".") : "") +
    " " + JSON.stringify((e.textContent || "").trim().slice(0, 40));

  // Nothing makes the document wider than the window.
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    const wide = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll"));
    wrong.push(`the document is ${root.scrollWidth} px wide in ${innerWidth} px: ${wide.slice(0, 3).map(name).join(", ")}`);
  }

  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) {
    if (ids.has(e.id)) wrong.push(`the id ${e.id} is used twice`);
    ids.add(e.id);
  }
  for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for], a[href^='#']"))
    for (const attribute of ["aria-labelledby", "aria-describedby", "for", "href"])
      for (const id of (e.getAttribute(attribute) || "").split(" ")) {
        const target = attribute === "href" ? id.startsWith("#") && id.slice(1) : id;
        if (target && !ids.has(target)) wrong.push(`${name(e)}: ${attribute} names ${target}, which is not there`);
      }

  // Controls have names, tables have heads, headings do not skip a level.
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!e.labels.length && !e.ariaLabel) wrong.push(`${name(e)} has no label`);
  for (const e of document.querySelectorAll("a[href], button, summary"))
    if (!(e.textContent.trim() || e.getAttribute("aria-label") || e.querySelector("title"))) wrong.push(`${name(e)} has no text`);
  let level = 0;
  for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = +e.tagName[1];
    if (next > level + 1) wrong.push(`${name(e)} follows a heading of level ${level}`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("the page has not one heading of level 1");

  // Contrast of text with what it is on: 4.5 to 1, of large text 3 to 1 (WCAG 2.2 AA).
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const color = (text) => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const base = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const ground = (e) => {
    if (!e) return base;
    const own = color(getComputedStyle(e).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(e.parentElement));
  };
  const opacity = (e) => e ? +getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
  // What an SVG text is on: the last shape before it that contains its middle.
  const behind = (e) => {
    const box = e.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    let found = ground(e.ownerSVGElement);
    for (const shape of e.ownerSVGElement.querySelectorAll("rect, path, polygon")) {
      if (!(shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const b = shape.getBoundingClientRect(), style = getComputedStyle(shape);
      if (style.fill !== "none" && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) found = over(color(style.fill), found);
    }
    return found;
  };
  let texts = 0;
  const check = (e, style, what) => {
    const svg = e instanceof SVGElement;
    const below = svg ? behind(e) : ground(e);
    const paint = color(svg ? style.fill : style.color).slice();
    paint[3] *= opacity(e);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && +style.fontWeight >= 700;
    const got = contrast(over(paint, below), below);
    texts++;
    if (got < (large ? 3 : 4.5)) wrong.push(`${what} ${name(e)}: contrast ${got.toFixed(2)} of ${svg ? style.fill : style.color} on ${below.map(Math.round)}`);
    if (size < 10.5) wrong.push(`${what} ${name(e)}: ${size} px is too small`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (seen.has(e) || !walker.currentNode.data.trim() || e.closest("title, .sr, .skip, script, style, noscript") || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    seen.add(e);
    check(e, getComputedStyle(e), "text of");
  }
  for (const e of document.querySelectorAll("input[placeholder]")) if (e.checkVisibility()) check(e, getComputedStyle(e, "::placeholder"), "placeholder of");
  if (texts < 3) wrong.push(`only ${texts} texts are visible`);

  // Without wishes for less motion nothing moves either, except to a part of the page.
  if (document.getAnimations().length) wrong.push("something moves");
  if (matchMedia("(prefers-reduced-motion: reduce)").matches && getComputedStyle(root).scrollBehavior !== "auto") wrong.push("scrolling moves");

  // What one clicks is at least 24 by 24 px, except in text and tables (WCAG 2.2 AA).
  for (const e of document.querySelectorAll("button, input:not([type=hidden]):not([type=checkbox]), select")) {
    const box = e.getBoundingClientRect();
    if (e.checkVisibility() && (box.width < 24 || box.height < 24)) wrong.push(`${name(e)} is ${box.width} by ${box.height} px`);
  }
  // Text does not run out of what it is in: a cell, an item, a paragraph that hides nothing.
  for (const e of document.querySelectorAll("td, th, dd, dt, p, li, h1, h2, h3, a, button, pre.part"))
    if (e.checkVisibility() && !e.matches(".sr, .sr *") && getComputedStyle(e).display !== "inline" && e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).overflowX === "visible")
      wrong.push(`${name(e)} is ${e.scrollWidth} px wide in ${e.clientWidth} px`);
  return wrong;
})()
