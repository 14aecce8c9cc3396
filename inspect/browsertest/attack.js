// Tries to read or change what is at the address "target", by all ways that a page of another origin
// has, and returns what each of them came to: "refused", or what it has read.
async (target) => {
  const results = {};
  const within = (promise) => Promise.race([promise, new Promise((_, no) => setTimeout(no, 3000, new Error("time")))]);
  const attempt = async (name, run) => {
    try {
      results[name] = String(await within(run())).slice(0, 50000) || "nothing";
    } catch (error) {
      results[name] = error.message === "time" ? "time" : "refused";
    }
  };
  const element = (tag, attributes) => new Promise((yes, no) => {
    const e = document.createElement(tag);
    e.onload = () => yes(e);
    e.onerror = () => no(new Error("error"));
    Object.assign(e, attributes);
    document.body.append(e);
  });
  const page = target + "table?table=orders";
  const readable = (frame) => { // text of another window, where that may be read
    const text = frame.document.body.innerText;
    if (!text) throw new Error("empty");
    return text;
  };
  const form = (method) => async () => {
    const frame = document.createElement("iframe");
    frame.name = "to-" + method;
    document.body.append(frame);
    const loaded = new Promise((yes) => frame.addEventListener("load", yes));
    const f = document.createElement("form");
    Object.assign(f, { action: page, method, target: frame.name });
    f.append(Object.assign(document.createElement("input"), { name: "table", value: "orders" }));
    document.body.append(f);
    f.submit();
    await loaded;
    return readable(frame.contentWindow);
  };
  await Promise.all([
    attempt("fetch", async () => (await fetch(page, { credentials: "include" })).text()),
    attempt("fetch as JSON", async () => (await fetch(page, { credentials: "include", headers: { Accept: "application/json" } })).text()),
    attempt("fetch, opaque", async () => (await fetch(page, { credentials: "include", mode: "no-cors" })).type),
    attempt("fetch, POST", async () => (await fetch(page, { credentials: "include", mode: "no-cors", method: "POST", body: "x=1" })).type),
    attempt("fetch, DELETE", async () => (await fetch(page, { credentials: "include", method: "DELETE" })).text()),
    attempt("script", () => element("script", { src: target + "static/steps.js" }).then(() => "loaded")),
    attempt("style", () => element("link", { rel: "stylesheet", href: target + "static/style.css" }).then(() => "loaded")),
    attempt("image", () => element("img", { src: target + "static/icon.svg" }).then((e) => "width " + e.width)),
    attempt("frame", () => element("iframe", { src: page }).then((e) => readable(e.contentWindow))),
    attempt("object", () => element("object", { type: "text/html", data: page }).then((e) => readable(e.contentWindow))),
    attempt("form, POST", form("post")),
    attempt("form, GET", form("get")),
    attempt("socket", () => new Promise((yes, no) => {
      const socket = new WebSocket(target.replace("http", "ws"));
      socket.onopen = () => yes("open");
      socket.onerror = () => no(new Error("error"));
    })),
    attempt("events", () => new Promise((yes, no) => {
      const source = new EventSource(page, { withCredentials: true });
      source.onopen = () => yes("open");
      source.onerror = () => { source.close(); no(new Error("error")); };
    })),
    attempt("beacon", async () => { navigator.sendBeacon(page, "x=1"); throw new Error("sent"); }),
  ]);
  await attempt("window", async () => {
    const other = open(page);
    for (let i = 0; i < 60; i++) {
      await new Promise((yes) => setTimeout(yes, 10));
      if (other.closed) throw new Error("closed");
      if (other.location.href !== "about:blank" && other.document.readyState === "complete") break; // throws if the origin differs
    }
    const text = readable(other);
    other.close();
    return text;
  });
  return results;
}
