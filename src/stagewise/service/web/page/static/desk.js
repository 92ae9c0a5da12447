// The page looks again every other second while somebody can see it, replaces the parts that have changed, and draws.
"use strict";
(() => {
  const BEHIND = 50, PATIENCE = 8000, SMALL = 150, TALL = 210;
  const page = document.body.dataset, seen = new Map(), charts = new Map();
  let figures = null, colours = {}, since = null, timer = 0;

  // --- words
  const clock = new Intl.DateTimeFormat(undefined, { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hourCycle: "h23", hour: "2-digit", minute: "2-digit" });
  const moment = (at) => (Math.abs(Date.now() / 1000 - at) < 72000 ? clock : day).format(new Date(at * 1000));
  const axis = (plot) => {
    const span = plot.scales.x.max - plot.scales.x.min;
    const style = span < 600 ? { minute: "2-digit", second: "2-digit" } : { minute: "2-digit" };
    const form = new Intl.DateTimeFormat(undefined, span < 1.5e5 ? { hour: "2-digit", hourCycle: "h23", ...style } : { day: "numeric", month: "short" });
    return (at) => form.format(new Date(at * 1000));
  };
  const trimmed = (value) => {
    if (Math.abs(value) < 5e-7) return "0";
    const places = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 6);
    return value.toFixed(places).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  };
  const percent = (value) => (value == null ? "–" : `${trimmed(100 * value)} %`);
  const amount = (of) => (value) => (value == null ? "–" : of.least === 0 && of.most === 1 ? percent(value) : trimmed(value));
  const own = (of, name) => (Object.hasOwn(of, name) ? of[name] : null); // names are people's: "constructor" is one
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const node = (tag, kind, text) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // --- parts
  function tell(root) {
    for (const one of root.querySelectorAll("time[data-time]")) {
      one.textContent = moment(Number(one.dataset.time));
      one.title = new Date(Number(one.dataset.time) * 1000).toString();
    }
    for (const one of root.querySelectorAll("details[data-explain]")) one.addEventListener("toggle", () => explain(one));
  }

  // A list that moves on by itself is left as it is while somebody reads in it, points at it or has it open.
  const in_use = (part) => part.dataset.part === "last" && part.matches(":hover, :focus-within, :has(details[open])");

  function replace(part, html) {
    if (seen.get(part.dataset.part) === html || in_use(part)) return;
    seen.set(part.dataset.part, html);
    const open = [...part.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key);
    const focused = part.contains(document.activeElement) ? address(document.activeElement) : null;
    part.innerHTML = html; // rendered and escaped by the desk
    for (const one of part.querySelectorAll("details[data-key]")) one.open = open.includes(one.dataset.key);
    tell(part);
    if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  }

  // How to find what had the focus in a part that was rendered anew.
  function address(one) {
    const details = one.closest("details[data-key]");
    if (details) return `details[data-key="${CSS.escape(details.dataset.key)}"] ${one.tagName.toLowerCase()}`;
    if (one.dataset.name) return `[data-open="${one.dataset.open}"][data-name="${CSS.escape(one.dataset.name)}"]`;
    return one.dataset.open ? `[data-open="${one.dataset.open}"]` : one.tagName.toLowerCase();
  }

  async function explain(one) {
    const place = one.querySelector(".explained");
    if (!one.open) return;
    try {
      const answer = await fetch(one.dataset.explain, { cache: "no-store", credentials: "same-origin" });
      if (!answer.ok) throw new Error();
      place.innerHTML = await answer.text(); // rendered and escaped by the desk
      tell(place);
    } catch {
      place.textContent = "The explanation could not be fetched; close and open it again.";
    }
  }

  // --- charts
  // What is drawn at a bucket rests on so many decisions before it, too: a single bucket tells little of a rate.
  function smoothed(told, value, weight, part) {
    const need = part * told.reduce((sum, one) => sum + (weight(one) || 0), 0);
    return told.map((one, i) => {
      if (!one.actions) return null;
      let sum = 0, total = 0;
      for (let j = i; j >= 0 && (j > i - 3 || total < need); j -= 1) {
        if (!told[j].actions) break;
        const w = weight(told[j]) || 0;
        if (w > 0) { sum += w * value(told[j]); total += w; }
      }
      return total > 0 ? sum / total : null;
    });
  }

  const rows = () => {
    const gap = 2.5 * (figures.bucket_s || 1), told = [];
    for (const one of figures.series) {
      const last = told[told.length - 1];
      if (last && last.actions && one.at - last.at > gap) told.push({ at: (one.at + last.at) / 2 });
      told.push(one);
    }
    return told;
  };

  function chart_of(place) {
    const kind = place.dataset.chart, told = rows(), at = told.map((one) => one.at), whole = told.map((one) => Boolean(one.actions));
    const line = (name, values, stroke, more = {}) => ({ name, values, stroke, ...more });
    if (kind === "actions") {
      const names = Object.keys(colours), sums = at.map(() => 0);
      const lines = names.map((name) => {
        const shares = smoothed(told, (one) => own(one.actions, name) || 0, (one) => one.decisions, 0.025);
        const top = shares.map((share, i) => (share == null ? null : (sums[i] += share)));
        return line(name, top, `--c${colours[name]}`, { told: shares, fill: true });
      });
      return { at, lines: lines.reverse(), show: percent, ends: [0, 1], legend: [...lines].reverse() };
    }
    if (kind === "kinds") {
      return { at, show: percent, ends: [0, null], lines: [
        line("exploring", smoothed(told, (one) => one.exploring, (one) => one.decisions, 0.05), "--c1"),
        line("falling back", smoothed(told, (one) => one.fallback, (one) => one.decisions, 0.05), "--c6", { dash: [6, 4] }),
      ] };
    }
    if (kind === "reward") {
      const safe = figures.reward.safe.mean;
      return { at, show: amount(figures.reward), ends: [figures.reward.least === 0 ? 0 : null, null], lines: [
        line(figures.reward.name, smoothed(told, (one) => one.reward, (one) => one.rewards, 0.08), "--c1"),
        line("safe action, so far", at.map(() => safe), "--quiet", { dash: [6, 4] }),
      ] };
    }
    const name = Object.keys(figures.limits)[Number(place.dataset.place)], limit = figures.limits[name];
    const of = (key) => told.map((one, i) => (whole[i] && own(one.limits, name) ? one.limits[name][key] : null));
    const would = of("would"), shadow = would.some((value) => value != null), so_far = of("so_far");
    return { at, show: amount(limit), ends: [limit.at_most ? limit.least : null, limit.at_most ? null : limit.most], must: limit.threshold,
      cap: limit.at_most ? Math.max(limit.least + 3 * (limit.threshold - limit.least), ...so_far.filter((value) => value != null)) : null, lines: [
      line("seen so far", so_far, "--c1"),
      line("pessimistic", of("dearest"), "--ink", { dash: [2, 3] }),
      ...(shadow ? [line("the policy’s, in shadow", would, "--c6", { dash: [2, 3] })] : []),
      line("limit", at.map(() => limit.threshold), "--bad", { dash: [9, 4] }),
    ], band: [of("high"), of("low")] };
  }

  function ends_of(told) {
    const values = told.lines.flatMap((one) => one.values).filter((value) => value != null);
    let low = Math.min(...values), high = Math.max(...values);
    if (told.cap != null) high = Math.min(high, told.cap);
    const margin = 0.08 * (high - low) || Math.abs(high) * 0.1 || 0.1;
    return [told.ends[0] ?? low - margin, told.ends[1] ?? high + margin];
  }

  function draw(place) {
    const kept = charts.get(place);
    if (!figures.series.length) {
      if (!place.querySelector(".none")) place.replaceChildren(node("p", "none", "Nothing to draw yet: it begins with the first decision."));
      charts.delete(place);
      return;
    }
    const told = chart_of(place), table = [told.at, ...told.lines.map((one) => one.values), ...(told.band || [])];
    if (kept && kept.told.lines.length !== told.lines.length) kept.plot.destroy();
    else if (kept) {
      kept.told = told;
      kept.plot.setData(table);
      legend(kept, null);
      return;
    }
    place.replaceChildren();
    const made = { place, told, legend: node("div", "legend"), plot: null };
    place.append(made.legend);
    const ink = colour("--quiet"), grid = { stroke: colour("--grid"), width: 1 }, height = place.classList.contains("tall") ? TALL : SMALL;
    made.plot = new uPlot({
      width: place.clientWidth, height, legend: { show: false }, padding: [8, 22, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: true }, y: { range: () => ends_of(made.told) } },
      series: [{}, ...told.lines.map((one) => ({
        label: one.name, stroke: colour(one.stroke), width: one.fill ? 1 : 2, dash: one.dash, points: { show: told.at.length === 1, size: 7 },
        fill: one.fill ? colour(one.stroke) : undefined,
      })), ...(told.band || []).map(() => ({ width: 0, points: { show: false } }))],
      bands: told.band ? [{ series: [told.lines.length + 1, told.lines.length + 2], fill: colour("--band") }] : undefined,
      axes: [
        { stroke: ink, grid: { show: false }, ticks: grid, font: "12px system-ui, sans-serif", size: 28, space: 80, values: (plot, marks) => marks.map(axis(plot)) },
        { stroke: ink, grid, ticks: { show: false }, font: "12px system-ui, sans-serif", size: 54, space: 34, values: (_, marks) => marks.map(told.show) },
      ],
      hooks: { setCursor: [(plot) => legend(made, plot.cursor.idx)] },
    }, table, place);
    charts.set(place, made);
    legend(made, null);
    watch.observe(place);
  }

  function legend(made, index) {
    const { told } = made, last = told.at.length - 1, order = told.legend || told.lines;
    let i = index == null ? last : index;
    const words = order.map((one) => {
      const entry = node("span"), key = node("i", one.fill ? "key swatch" : `key rule${one.dash ? " dashed" : ""}`);
      key.style[one.fill ? "background" : "borderColor"] = `var(${one.stroke})`;
      let at = i;
      const values = one.told || one.values;
      while (index == null && at > 0 && values[at] == null) at -= 1; // the newest that is known
      entry.append(key, one.name, node("b", "", told.show(values[at])));
      return entry;
    });
    const at = node("span", "at", index == null ? "" : moment(told.at[i]));
    made.legend.replaceChildren(...words, at);
  }

  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const made = charts.get(target);
      if (made && made.plot.width !== target.clientWidth && target.clientWidth > 0) made.plot.setSize({ width: target.clientWidth, height: made.plot.height });
    }
  });

  const draw_all = () => figures && document.querySelectorAll("[data-chart]").forEach(draw);

  function redraw() {
    for (const made of charts.values()) made.plot.destroy();
    charts.clear();
    draw_all();
  }

  // --- looking
  function unreached(words) {
    const notice = document.getElementById("unreached");
    notice.hidden = words === null;
    if (words !== null) notice.querySelector("span").textContent = words;
  }

  async function look() {
    clearTimeout(timer);
    if (document.hidden || !page.look) return; // not every page has something to look at again
    try {
      const answer = await fetch(page.look, { cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE) });
      if (answer.status === 401) return location.assign("/login?next=" + encodeURIComponent(location.pathname));
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.error);
      since = Date.now() / 1000;
      unreached(null);
      if (told.figures && String(told.figures.version) !== page.version) return location.reload();
      for (const part of document.querySelectorAll("[data-part]")) if (part.dataset.part in told.parts) replace(part, told.parts[part.dataset.part]);
      if (told.figures) {
        ({ figures, colours } = told);
        document.querySelector("main").classList.toggle("fresh", figures.decisions === 0);
        draw_all();
      }
      document.documentElement.dataset.looked = String(since);
    } catch (error) {
      const why = error instanceof TypeError || error.name === "TimeoutError" ? "The desk does not answer." : error.message;
      unreached(`${why} ${since ? `These figures are of ${moment(since)}.` : ""} Looking again…`);
    }
    timer = setTimeout(look, figures?.behind && since ? BEHIND : 1000 * Number(page.every));
  }

  document.addEventListener("visibilitychange", look);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // --- dialogs
  document.addEventListener("click", (event) => {
    const opens = event.target.closest("[data-open]"), closes = event.target.closest("[data-close]");
    if (closes) closes.closest("dialog").close();
    if (!opens) return;
    const dialog = document.getElementById(opens.dataset.open);
    for (const one of dialog.querySelectorAll("[data-fill]")) {
      if (one.tagName === "INPUT") one.value = opens.dataset[one.dataset.fill];
      else one.textContent = opens.dataset[one.dataset.fill];
    }
    dialog.showModal();
    dialog.querySelector("textarea")?.focus();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.closest("dialog")) for (const one of event.target.querySelectorAll("button:not([type])")) one.disabled = true;
  });

  tell(document);
  look();
})();
