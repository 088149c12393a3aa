// What moves: pages ask for their parts every two seconds, and charts are drawn of releases.
// Everything shown here is also in the page's tables, for whoever has no scripts.
"use strict";

(() => {
  const PAUSE = 2000;
  const page = document.querySelector("[data-live]");
  const charts = [];

  // --- theme -------------------------------------------------------------------------------
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const label = () => {
    const button = document.querySelector("#theme");
    const text = dark() ? "Use the light theme" : "Use the dark theme";
    button.setAttribute("aria-label", text);
    button.title = text;
  };

  const themed = () => { label(); charts.forEach((one) => one.draw()); };

  const switchTheme = () => {
    const next = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("discreet-theme", next); } catch { /* for this page only */ }
    themed();
  };

  // --- times in the reader's own zone ----------------------------------------------------------
  const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const localTimes = (root) => {
    for (const one of root.querySelectorAll("time[datetime]")) {
      one.title = one.dateTime;
      one.textContent = zoned.format(new Date(one.dateTime));
    }
  };

  // --- charts ----------------------------------------------------------------------------------
  const count = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });
  const short = (value) =>
    Math.abs(value) >= 10000
      ? value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 })
      : value.toLocaleString("en", { maximumFractionDigits: 3 });
  const percent = (value) =>
    value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}%`;

  const axis = (label, values, size) => ({
    label,
    labelSize: 20,
    labelGap: 2,
    labelFont: "12px system-ui, sans-serif",
    stroke: colour("muted"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    ...(size ? { size } : {}),
    ...(values ? { values: (_, all) => all.map((one) => (one === null ? "" : values(one))) } : {}),
  });

  // Ticks of a time line: as much of a time as neighbours differ in.
  const ticks = (_, splits, __, ___, step) => {
    const [first, last] = [splits[0], splits[splits.length - 1]].map((at) => new Date(at * 1000));
    const days = first.toDateString() !== last.toDateString();
    const written = new Intl.DateTimeFormat(undefined, {
      ...(days ? { month: "short", day: "numeric" } : {}),
      ...(step < 86400 ? { hour: "2-digit", minute: "2-digit" } : {}),
      ...(step < 60 ? { second: "2-digit" } : {}),
    });
    return splits.map((at) => written.format(new Date(at * 1000)));
  };

  const veiled = (hex, share) =>
    hex + Math.round(255 * share).toString(16).padStart(2, "0");

  // Each curve is three series: the upper end of its band, the lower end, and the estimate.
  const banded = (curves, write) => {
    const series = [{ label: "rows", value: (_, value) => (value === null ? "–" : count(value)) }];
    const bands = [];
    for (const curve of curves) {
      const stroke = colour(curve.colour);
      const at = series.length;
      const edge = { stroke: "transparent", points: { show: false }, width: 0, spanGaps: true };
      series.push(
        { ...edge, label: `${curve.name}, high`, class: "edge" },
        { ...edge, label: `${curve.name}, low`, class: "edge" },
        {
          label: curve.name,
          stroke,
          width: 2,
          points: { show: curve.data.estimate.length < 40, size: 5, fill: stroke },
          value: (self, value, _, index) => {
            if (value === null || index === null) return write(value);
            const [high, low] = [self.data[at][index], self.data[at + 1][index]];
            return `${write(value)} (${write(low)} to ${write(high)})`;
          },
        },
      );
      bands.push({ series: [at, at + 1], fill: veiled(stroke, curves.length > 1 ? 0.14 : 0.2) });
    }
    return { series, bands };
  };

  const columns = (rows, curves) =>
    [rows, ...curves.flatMap(({ data }) => [data.high, data.low, data.estimate])];

  const range = (low, high) => {
    const room = (high - low) * 0.04 || 0.5;
    return [low - room, high + room];
  };

  const shapes = {
    mean(chart, element) {
      if (!chart.mean || chart.rows.length < 1) return null;
      const curves = [{ name: "mean reward", colour: "accent", data: chart.mean }];
      const digits = Number(element.dataset.digits);
      const write = (value) =>
        value === null || value === undefined
          ? "–"
          : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
      const [low, high] = range(Number(element.dataset.low), Number(element.dataset.high));
      return {
        data: columns(chart.rows, curves),
        options: {
          ...banded(curves, write),
          scales: { x: { time: false }, y: { range: [low, high] } },
          axes: [axis("rows", short), axis("mean reward", short, 52)],
        },
      };
    },
    shares(chart) {
      if (!chart.actions.length || chart.rows.length < 1) return null;
      const curves = chart.actions.map((one, at) => ({
        name: one.name, colour: `series-${at + 1}`, data: one,
      }));
      return {
        data: columns(chart.rows, curves),
        options: {
          ...banded(curves, percent),
          scales: { x: { time: false }, y: { range: [0, 1] } },
          axes: [axis("rows", short), axis("share of rows", (value) => `${Math.round(100 * value)}%`, 52)],
        },
      };
    },
    timeline(chart) {
      if (!chart.made.length) return null;
      const stroke = colour("accent");
      return {
        data: [chart.made, chart.rows],
        options: {
          scales: { x: { time: true }, y: { range: (_, __, most) => [0, most * 1.08 || 1] } },
          axes: [{ ...axis("made"), values: ticks, space: 100 }, axis("rows", short, 56)],
          series: [
            { label: "made", value: (_, at) => (at === null ? "–" : zoned.format(new Date(at * 1000))) },
            {
              label: "rows",
              stroke,
              fill: veiled(stroke, 0.1),
              width: 2,
              paths: uPlot.paths.stepped({ align: 1 }),
              points: { show: true, size: 6, fill: stroke },
              value: (_, value) => (value === null ? "–" : count(value)),
            },
          ],
        },
      };
    },
  };

  class Chart {
    constructor(element) {
      this.element = element;
      this.chart = null;
      this.plot = null;
      new ResizeObserver(() => this.resize()).observe(element);
    }

    size() {
      const width = Math.max(200, Math.floor(this.element.clientWidth));
      return { width, height: width < 480 ? 220 : 280 };
    }

    resize() { if (this.plot) this.plot.setSize(this.size()); }

    update(chart) { this.chart = chart; this.draw(); }

    draw() {
      if (!this.chart) return;
      const shape = shapes[this.element.dataset.chart](this.chart, this.element);
      if (this.plot) this.plot.destroy();
      this.plot = null;
      this.element.closest("figure").hidden = shape === null;
      if (shape === null) return;
      const options = { ...this.size(), cursor: { drag: { x: false, y: false } }, ...shape.options };
      const last = shape.data[0].length - 1;
      const rest = (plot) => { if (plot.cursor.idx == null) plot.setLegend({ idx: last }, false); };
      this.plot = new uPlot({ ...options, hooks: { setCursor: [rest] } }, shape.data, this.element);
      this.plot.setLegend({ idx: last }, false);
    }
  }

  // --- what is new ---------------------------------------------------------------------------
  let stamp = "";
  const status = document.querySelector("#connection");

  const show = (news) => {
    stamp = news.stamp;
    for (const [name, html] of Object.entries(news.parts)) {
      const part = document.querySelector(`#part-${name}`);
      if (!part) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement : null;
      const again = focused && focused.getAttribute("href");
      part.innerHTML = html;
      localTimes(part);
      if (again) part.querySelector(`[href="${CSS.escape(again)}"]`)?.focus();
    }
    if (news.chart) charts.forEach((one) => one.update(news.chart));
  };

  const ask = async () => {
    const address = new URL(page.dataset.live, location.href);
    for (const [name, value] of new URLSearchParams(location.search)) {
      address.searchParams.set(name, value);
    }
    address.searchParams.set("stamp", stamp);
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.status === 200) show(await answer.json());
    if (status) status.hidden = answer.ok;
  };

  const follow = async () => {
    if (!document.hidden) {
      try { await ask(); } catch { if (status) status.hidden = false; }
    }
    setTimeout(follow, PAUSE);
  };

  // --- start -----------------------------------------------------------------------------------
  document.querySelector("#theme")?.addEventListener("click", switchTheme);
  if (document.querySelector("#theme")) label();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
  localTimes(document);
  for (const element of document.querySelectorAll("[data-chart]")) charts.push(new Chart(element));
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const field = document.querySelector(button.dataset.copy);
      try { await navigator.clipboard.writeText(field.value); } catch { field.select(); document.execCommand("copy"); }
      button.textContent = "Copied";
    });
  }
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.confirm)) event.preventDefault();
    });
  }
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  document.querySelector("[aria-invalid=true]")?.focus();
  if (page) follow();
})();
