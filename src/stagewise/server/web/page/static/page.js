// Refreshes the page every few seconds while it is visible, replaces the parts that have changed, and draws the charts.
"use strict";
(() => {
  const CATCH_UP_MS = 50, TIMEOUT_MS = 8000, SMALL = 150, TALL = 210;
  const page = document.body.dataset, rendered = new Map(), charts = new Map();
  let figures = null, colours = {}, refreshed = null, timer = 0;

  // --- formatting
  const clock = new Intl.DateTimeFormat(undefined, { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hourCycle: "h23", hour: "2-digit", minute: "2-digit" });
  const formatTime = (at) => (Math.abs(Date.now() / 1000 - at) < 72000 ? clock : day).format(new Date(at * 1000));
  const formatAxis = (plot) => {
    const span = plot.scales.x.max - plot.scales.x.min;
    const style = span < 600 ? { minute: "2-digit", second: "2-digit" } : { minute: "2-digit" };
    const format = new Intl.DateTimeFormat(undefined, span < 1.5e5 ? { hour: "2-digit", hourCycle: "h23", ...style } : { day: "numeric", month: "short" });
    return (at) => format.format(new Date(at * 1000));
  };
  const formatNumber = (value) => {
    if (Math.abs(value) < 5e-7) return "0";
    const digits = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 6);
    return value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  };
  const formatPercent = (value) => (value == null ? "–" : `${formatNumber(100 * value)} %`);
  const amountFormat = (signal) => (value) => (value == null ? "–" : signal.least === 0 && signal.most === 1 ? formatPercent(value) : formatNumber(value));
  const get = (object, name) => (Object.hasOwn(object, name) ? object[name] : null); // a name may be "constructor"
  const getColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const createNode = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // --- parts
  function activate(root) {
    for (const time of root.querySelectorAll("time[data-time]")) {
      time.textContent = formatTime(Number(time.dataset.time));
      time.title = new Date(Number(time.dataset.time) * 1000).toString();
    }
    for (const details of root.querySelectorAll("details[data-explain]")) details.addEventListener("toggle", () => explain(details));
  }

  // The list of decisions is not replaced while somebody reads it, points at it or has a decision open.
  const isInUse = (part) => part.dataset.part === "last" && part.matches(":hover, :focus-within, :has(details[open])");

  function replace(part, html) {
    if (rendered.get(part.dataset.part) === html || isInUse(part)) return;
    rendered.set(part.dataset.part, html);
    const open = [...part.querySelectorAll("details[open][data-key]")].map((details) => details.dataset.key);
    const focused = part.contains(document.activeElement) ? getSelector(document.activeElement) : null;
    part.innerHTML = html; // rendered and escaped by the server
    for (const details of part.querySelectorAll("details[data-key]")) details.open = open.includes(details.dataset.key);
    activate(part);
    if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  }

  // Finds the focused element again after its part was replaced.
  function getSelector(element) {
    const details = element.closest("details[data-key]");
    if (details) return `details[data-key="${CSS.escape(details.dataset.key)}"] ${element.tagName.toLowerCase()}`;
    if (element.dataset.name) return `[data-open="${element.dataset.open}"][data-name="${CSS.escape(element.dataset.name)}"]`;
    return element.dataset.open ? `[data-open="${element.dataset.open}"]` : element.tagName.toLowerCase();
  }

  async function explain(details) {
    const target = details.querySelector(".explanation");
    if (!details.open) return;
    try {
      const response = await fetch(details.dataset.explain, { cache: "no-store", credentials: "same-origin" });
      if (!response.ok) throw new Error();
      target.innerHTML = await response.text(); // rendered and escaped by the server
      activate(target);
    } catch {
      target.textContent = "The explanation could not be loaded; close and open it again.";
    }
  }

  // --- charts
  // Averages each interval with the ones before it until they have enough weight: one interval alone is too noisy.
  function smooth(series, getValue, getWeight, fraction) {
    const needed = fraction * series.reduce((sum, interval) => sum + (getWeight(interval) || 0), 0);
    return series.map((interval, i) => {
      if (!interval.actions) return null;
      let sum = 0, total = 0;
      for (let j = i; j >= 0 && (j > i - 3 || total < needed); j -= 1) {
        if (!series[j].actions) break;
        const weight = getWeight(series[j]) || 0;
        if (weight > 0) { sum += weight * getValue(series[j]); total += weight; }
      }
      return total > 0 ? sum / total : null;
    });
  }

  // The series, with an empty interval where there were no decisions for a while, so that lines are interrupted there.
  const buildSeries = () => {
    const gap = 2.5 * (figures.bucket_s || 1), series = [];
    for (const interval of figures.series) {
      const last = series[series.length - 1];
      if (last && last.actions && interval.at - last.at > gap) series.push({ at: (interval.at + last.at) / 2 });
      series.push(interval);
    }
    return series;
  };

  function buildChart(element) {
    const kind = element.dataset.chart, series = buildSeries(), at = series.map((interval) => interval.at);
    const line = (name, values, stroke, more = {}) => ({ name, values, stroke, ...more });
    const getDecisions = (interval) => interval.decisions;
    if (kind === "actions") {
      const names = Object.keys(colours), sums = at.map(() => 0);
      const lines = names.map((name) => {
        const shares = smooth(series, (interval) => get(interval.actions, name) || 0, getDecisions, 0.025);
        const top = shares.map((share, i) => (share == null ? null : (sums[i] += share)));
        return line(name, top, `--c${colours[name]}`, { shares, fill: true });
      });
      return { at, lines: lines.reverse(), format: formatPercent, ends: [0, 1], legend: [...lines].reverse() };
    }
    if (kind === "kinds") {
      return { at, format: formatPercent, ends: [0, null], lines: [
        line("exploring", smooth(series, (interval) => interval.exploring, getDecisions, 0.05), "--c1"),
        line("safe action, for a reason", smooth(series, (interval) => interval.with_reason, getDecisions, 0.05), "--c6", { dash: [6, 4] }),
      ] };
    }
    if (kind === "reward") {
      const safe = figures.reward.safe.mean;
      return { at, format: amountFormat(figures.reward), ends: [figures.reward.least === 0 ? 0 : null, null], lines: [
        line(figures.reward.name, smooth(series, (interval) => interval.reward, (interval) => interval.rewards, 0.08), "--c1"),
        line("safe action, overall", at.map(() => safe), "--quiet", { dash: [6, 4] }),
      ] };
    }
    const name = Object.keys(figures.limits)[Number(element.dataset.index)], limit = figures.limits[name];
    const getColumn = (key) => series.map((interval) => (interval.actions && get(interval.limits, name) ? interval.limits[name][key] : null));
    const shadow = getColumn("shadow"), hasShadow = shadow.some((value) => value != null), observed = getColumn("so_far");
    return { at, format: amountFormat(limit), ends: [limit.at_most ? limit.least : null, limit.at_most ? null : limit.most],
      cap: limit.at_most ? Math.max(limit.least + 3 * (limit.threshold - limit.least), ...observed.filter((value) => value != null)) : null, lines: [
      line("observed so far", observed, "--c1"),
      line("pessimistic", getColumn("pessimistic_cost"), "--ink", { dash: [2, 3] }),
      ...(hasShadow ? [line("policy in shadow", shadow, "--c6", { dash: [2, 3] })] : []),
      line("limit", at.map(() => limit.threshold), "--bad", { dash: [9, 4] }),
    ], band: [getColumn("high"), getColumn("low")] };
  }

  function getRange(chart) {
    const values = chart.lines.flatMap((line) => line.values).filter((value) => value != null);
    let low = Math.min(...values), high = Math.max(...values);
    if (chart.cap != null) high = Math.min(high, chart.cap);
    const margin = 0.08 * (high - low) || Math.abs(high) * 0.1 || 0.1;
    return [chart.ends[0] ?? low - margin, chart.ends[1] ?? high + margin];
  }

  function draw(element) {
    const existing = charts.get(element);
    if (!figures.series.length) {
      if (!element.querySelector(".none")) element.replaceChildren(createNode("p", "none", "No decisions yet."));
      charts.delete(element);
      return;
    }
    const chart = buildChart(element), table = [chart.at, ...chart.lines.map((line) => line.values), ...(chart.band || [])];
    if (existing && existing.chart.lines.length !== chart.lines.length) existing.plot.destroy();
    else if (existing) {
      existing.chart = chart;
      existing.plot.setData(table);
      drawLegend(existing, null);
      return;
    }
    element.replaceChildren();
    const entry = { chart, legend: createNode("div", "legend"), plot: null };
    element.append(entry.legend);
    const ink = getColour("--quiet"), grid = { stroke: getColour("--grid"), width: 1 }, height = element.classList.contains("tall") ? TALL : SMALL;
    entry.plot = new uPlot({
      width: element.clientWidth, height, legend: { show: false }, padding: [8, 22, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: true }, y: { range: () => getRange(entry.chart) } },
      series: [{}, ...chart.lines.map((line) => ({
        label: line.name, stroke: getColour(line.stroke), width: line.fill ? 1 : 2, dash: line.dash, points: { show: chart.at.length === 1, size: 7 },
        fill: line.fill ? getColour(line.stroke) : undefined,
      })), ...(chart.band || []).map(() => ({ width: 0, points: { show: false } }))],
      bands: chart.band ? [{ series: [chart.lines.length + 1, chart.lines.length + 2], fill: getColour("--band") }] : undefined,
      axes: [
        { stroke: ink, grid: { show: false }, ticks: grid, font: "12px system-ui, sans-serif", size: 28, space: 80, values: (plot, marks) => marks.map(formatAxis(plot)) },
        { stroke: ink, grid, ticks: { show: false }, font: "12px system-ui, sans-serif", size: 54, space: 34, values: (_, marks) => marks.map(chart.format) },
      ],
      hooks: { setCursor: [(plot) => drawLegend(entry, plot.cursor.idx)] },
    }, table, element);
    charts.set(element, entry);
    drawLegend(entry, null);
    resizeObserver.observe(element);
  }

  function drawLegend(entry, index) {
    const { chart } = entry, i = index == null ? chart.at.length - 1 : index;
    const items = (chart.legend || chart.lines).map((line) => {
      const item = createNode("span"), key = createNode("i", line.fill ? "key swatch" : `key rule${line.dash ? " dashed" : ""}`);
      key.style[line.fill ? "background" : "borderColor"] = `var(${line.stroke})`;
      const values = line.shares || line.values;
      let j = i;
      while (index == null && j > 0 && values[j] == null) j -= 1; // the newest value
      item.append(key, line.name, createNode("b", "", chart.format(values[j])));
      return item;
    });
    entry.legend.replaceChildren(...items, createNode("span", "at", index == null ? "" : formatTime(chart.at[i])));
  }

  const resizeObserver = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const entry = charts.get(target);
      if (entry && entry.plot.width !== target.clientWidth && target.clientWidth > 0) entry.plot.setSize({ width: target.clientWidth, height: entry.plot.height });
    }
  });

  const drawAll = () => figures && document.querySelectorAll("[data-chart]").forEach(draw);

  function redraw() {
    for (const entry of charts.values()) entry.plot.destroy();
    charts.clear();
    drawAll();
  }

  // --- refreshing
  function showUnavailable(message) {
    const notice = document.getElementById("unavailable");
    notice.hidden = message === null;
    if (message !== null) notice.querySelector("span").textContent = message;
  }

  async function refresh() {
    clearTimeout(timer);
    if (document.hidden || !page.url) return; // not every page is refreshed
    try {
      const response = await fetch(page.url, { cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (response.status === 401) return location.assign("/login?next=" + encodeURIComponent(location.pathname));
      const data = await response.json();
      if (!response.ok) throw new Error(data.message);
      refreshed = Date.now() / 1000;
      showUnavailable(null);
      if (data.figures && String(data.figures.version) !== page.version) return location.reload();
      for (const part of document.querySelectorAll("[data-part]")) if (part.dataset.part in data.parts) replace(part, data.parts[part.dataset.part]);
      if (data.figures) {
        ({ figures, colours } = data);
        document.querySelector("main").classList.toggle("fresh", figures.decisions === 0);
        drawAll();
      }
      document.documentElement.dataset.refreshed = String(refreshed);
    } catch (error) {
      const why = error instanceof TypeError || error.name === "TimeoutError" ? "The server does not answer." : error.message;
      showUnavailable(`${why} ${refreshed ? `These figures are from ${formatTime(refreshed)}.` : ""} Retrying…`);
    }
    timer = setTimeout(refresh, figures?.lag_rows && refreshed ? CATCH_UP_MS : 1000 * Number(page.every));
  }

  document.addEventListener("visibilitychange", refresh);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // --- dialogs
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]"), closer = event.target.closest("[data-close]");
    if (closer) closer.closest("dialog").close();
    if (!opener) return;
    const dialog = document.getElementById(opener.dataset.open);
    for (const field of dialog.querySelectorAll("[data-fill]")) {
      if (field.tagName === "INPUT") field.value = opener.dataset[field.dataset.fill];
      else field.textContent = opener.dataset[field.dataset.fill];
    }
    dialog.showModal();
    dialog.querySelector("textarea")?.focus();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.closest("dialog")) for (const button of event.target.querySelectorAll("button:not([type])")) button.disabled = true;
  });

  activate(document);
  refresh();
})();
