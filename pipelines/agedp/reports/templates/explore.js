"use strict";
// The charts of explore.html: a panel draws the chosen lines of one of its tables by BokehJS. Texts are set, never HTML.
(() => {
  const DAY = 864e5, MOST = 6, DASHES = ["solid", "7 3", "2 3", "10 3 2 3", "5 2 5 6", "12 5"];
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, text = "", properties = {}) =>
    Object.assign(document.createElement(tag), {textContent: text}, properties);
  const ink = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const dayText = day => new Date(day * DAY).toISOString().slice(0, 10);
  const sample = style => {
    const [picture, path] = ["svg", "path"].map(tag => document.createElementNS("http://www.w3.org/2000/svg", tag));
    picture.setAttribute("class", "sample");
    picture.setAttribute("viewBox", "0 0 28 12");
    picture.setAttribute("aria-hidden", "true");
    path.setAttribute("class", `line s${style}`);
    path.setAttribute("d", "M0 6h28");
    picture.append(path);
    return picture;
  };

  function panel(section, tables, first, {logarithmic}) {
    const part = name => section.querySelector(`[data-of=${name}]`);
    let table, chosen, numbers, figure, view, pointer, lines = [], cursor = 0, drawing = 0;

    const numberText = value => {
      if (value === null) return "–";
      const unit = 10 ** (Math.floor(Math.log10(Math.abs(value) || 1)) - 3);
      const digits = logarithmic ? Math.ceil(value / unit - 1e-9) : Math.round(value / unit);  // losses up
      return Number((digits * unit).toPrecision(12)).toLocaleString("en", {maximumFractionDigits: 9});
    };
    const place = () => Number(part("place").value);  // -1: all places of one period
    const isOverTime = () => place() >= 0;
    const periodText = ([first, last]) => first === last ? dayText(first) : `${dayText(first)} to ${dayText(last)}`;
    const spans = () => isOverTime() ? table.periods.map(([first, last]) => [first * DAY, (last + 1) * DAY])
      : table.places.map((_, i) => [i - 0.5, i + 0.5]);

    // A line has a value, or null, for each span of the axis.
    function chosenLines() {
      const period = Number(part("period").value), shown = [];
      for (const group of chosen) for (const colour of table.colours.keys()) {
        const of = (kind, where) => {
          const number = numbers.get(`${group},${colour},${where}`);
          return number === undefined ? () => null : i => table[kind][number][i];
        };
        const along = kind => isOverTime() ? table.periods.map((_, i) => of(kind, place())(i))
          : table.places.map((_, i) => of(kind, i)(period));
        const name = [table.groups[group], table.colours[colour]].filter(Boolean).join(", ");
        shown.push({name, style: shown.length % MOST, values: along("values"), low: along("low"), high: along("high"), days: table.days ? along("days") : []});
      }
      return shown;
    }

    function ends() {
      const all = spans();
      return [all[0][0], all.at(-1)[1]];
    }

    function fitValues() {
      const {start, end} = figure.x_range, seen = [];
      spans().forEach(([from, to], i) => {
        if (to < start || from > end) return;
        for (const line of lines) if (line.values[i] !== null) seen.push(line.low[i], line.high[i]);
      });
      const usable = logarithmic ? seen.filter(value => value > 0) : seen;
      if (!usable.length) return;
      const [low, high] = usable.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      const room = (high - low || Math.abs(high) || 1) * 0.06;
      figure.y_range.setv(logarithmic ? {start: low / 1.3, end: high * 1.3} : {start: low - room, end: high + room});
    }

    function zoomTo(start, end) {
      const [first, last] = ends(), width = Math.max(Math.min(end - start, last - first), isOverTime() ? 2 * DAY : 2);
      const from = Math.max(first, Math.min(start, last - width));
      figure.x_range.setv({start: from, end: from + width});
      afterZoom();
    }

    function zoomBy(factor, shift = 0) {
      const {start, end} = figure.x_range, middle = (start + end) / 2 + shift * (end - start);
      zoomTo(middle - factor * (end - start) / 2, middle + factor * (end - start) / 2);
    }

    function afterZoom() {
      fitValues();
      if (!isOverTime()) return;
      part("from").value = dayText(Math.floor(figure.x_range.start / DAY));
      part("to").value = dayText(Math.ceil(figure.x_range.end / DAY) - 1);
    }

    async function draw({keepsZoom = false} = {}) {
      const old = keepsZoom && figure ? figure.x_range : null, [first, last] = ends(), number = ++drawing;
      lines = chosenLines();
      figure = Bokeh.Plotting.figure({
        height: 330, sizing_mode: "stretch_width", x_axis_type: isOverTime() ? "datetime" : "linear",
        y_axis_type: logarithmic ? "log" : "linear", tools: "xpan,xbox_zoom,xwheel_zoom,reset,save",
        x_range: new Bokeh.Range1d({start: old ? old.start : first, end: old ? old.end : last, bounds: [first, last]}),
        y_range: new Bokeh.Range1d({start: logarithmic ? 0.1 : 0, end: 1}),
        background_fill_color: null, border_fill_color: null, outline_line_color: ink("rule"),
      });
      figure.toolbar.logo = null;
      for (const axis of [...figure.below, ...figure.left]) axis.setv({
        axis_line_color: ink("soft"), major_tick_line_color: ink("soft"), minor_tick_line_color: null,
        major_label_text_color: ink("soft"), axis_label_text_color: ink("soft"), major_label_text_font_size: "12px",
        axis_label_text_font_size: "12px", axis_label_text_font_style: "normal",
      });
      for (const grid of figure.center) grid.setv({grid_line_color: ink("rule"), grid_line_alpha: 0.6});
      figure.left[0].axis_label = logarithmic ? `${table.unit} (each step: ten times)` : table.unit;
      if (!isOverTime()) {
        const labels = new Map(table.places.map((text, i) => [i, text]));
        figure.below[0].setv({ticker: new Bokeh.FixedTicker({ticks: shownPlaces()}), major_label_overrides: labels});
      }
      else figure.below[0].formatter = new Bokeh.DatetimeTickFormatter({
        days: "%e %b", months: "%b", years: "%Y", context_which: "all",
        context: new Bokeh.DatetimeTickFormatter({days: "%Y", months: "%Y", years: "", hide_repeats: true}),
      });
      for (const line of lines) addLine(line);
      pointer = new Bokeh.Span({dimension: "height", line_color: ink("ink"), line_width: 1, location: first - 1e12});
      figure.add_layout(pointer);
      figure.on_event("rangesupdate", afterZoom);
      figure.on_event("reset", () => zoomTo(...ends()));
      for (const event of ["mousemove", "tap"]) figure.on_event(event, ({x}) => {
        if (nearest(x) !== cursor) point(nearest(x));
      });
      const canvas = part("canvas"), target = make("div");
      const made = await Bokeh.Plotting.show(figure, target), before = view;
      if (number !== drawing) return discard(made);  // another drawing has begun
      view = made;
      canvas.replaceChildren(target);
      if (before) discard(before);
      afterZoom();
      cursor = Math.min(cursor, spans().length - 1);
      point(cursor);
    }

    function discard(drawn) {
      const number = Bokeh.documents.indexOf(drawn.model.document);
      drawn.remove();
      if (number >= 0) Bokeh.documents.splice(number, 1);
    }

    function shownPlaces() {
      const step = Math.ceil(table.places.length * Math.max(...table.places.map(text => text.length)) * 9 / part("canvas").clientWidth);
      return table.places.map((_, i) => i).filter(i => i % step === 0);
    }

    function addLine(line) {
      const all = spans(), some = all.map((_, i) => i).filter(i => line.values[i] !== null), colour = ink(`s${line.style}`);
      const pick = list => some.map(i => list[i]), left = some.map(i => all[i][0]), right = some.map(i => all[i][1]);
      if (!logarithmic) figure.quad({left, right, bottom: pick(line.low), top: pick(line.high), fill_color: colour, fill_alpha: 0.16, line_color: null});
      const middles = all.map(([from, to]) => (from + to) / 2), x = [], y = [];
      all.forEach(([from], i) => {
        if (logarithmic && line.values[i] === null) return;  // a bound is computed on some days; its line joins them
        if (i && !logarithmic && from > all[i - 1][1]) x.push(from), y.push(NaN);
        x.push(middles[i]), y.push(line.values[i] ?? NaN);
      });
      const dashed = {line_color: colour, line_width: 2, line_dash: DASHES[line.style]};
      if (isOverTime() ? table.period === "day" : table.isJoined) figure.line(x, y, dashed);
      else figure.segment({x0: left, x1: right, y0: pick(line.values), y1: pick(line.values), ...dashed, line_width: 3});
      if (some.length <= 120) figure.scatter(some.map(i => middles[i]), pick(line.values), {size: 5, fill_color: colour, line_color: null});
    }

    const nearest = x => {
      const middles = spans().map(([from, to]) => Math.abs((from + to) / 2 - x));
      return middles.indexOf(Math.min(...middles));
    };

    function point(number) {
      cursor = Math.max(0, Math.min(number, spans().length - 1));
      const [from, to] = spans()[cursor];
      pointer.location = (from + to) / 2;
      const where = isOverTime() ? periodText(table.periods[cursor])
        : `${periodText(table.periods[Number(part("period").value)])}, ${table.places[cursor]}`;
      const all = isOverTime() && place() >= 0 && table.places.length > 1 ? `, ${table.places[place()]}` : "";
      const shown = make("table"), head = make("tr"), body = make("tbody");
      const kinds = ["values", ...(logarithmic ? [] : ["low", "high"]), ...(table.days ? ["days"] : [])];
      for (const text of ["", table.unit, ...kinds.slice(1)]) head.append(make("th", text, {scope: "col"}));
      for (const line of lines) {
        const row = make("tr"), name = make("th", "", {scope: "row"});
        name.append(sample(line.style), line.name);
        row.append(name);
        for (const kind of kinds) row.append(make("td", numberText(line[kind][cursor])));
        body.append(row);
      }
      shown.append(make("caption", where + all), head, body);
      const rows = make("thead");
      rows.append(head);
      shown.insertBefore(rows, body);
      part("readout").replaceChildren(lines.length ? shown : make("p", "Choose a line above."));
    }

    function showGroups() {
      const list = part("groups");
      list.classList.toggle("notes", "notes" in table);
      list.replaceChildren(...table.groups.map((name, group) => {
        const item = make("li"), label = make("label"), box = make("input", "", {type: "checkbox", checked: chosen.has(group), value: group});
        label.append(box, ` ${name}`);
        if (table.notes) label.append(make("small", ` · ${table.notes[group]}`));
        item.append(label);
        return item;
      }));
      search();
    }

    function search() {
      const words = part("search").value.toLowerCase();
      let count = 0;
      [...part("groups").children].forEach((item, group) => {
        item.hidden = !table.groups[group].toLowerCase().includes(words);
        count += !item.hidden;
      });
      part("count").textContent = `${chosen.size} chosen, ${count} of ${table.groups.length} listed`;
    }

    const mostGroups = () => Math.max(1, Math.floor(MOST / table.colours.length));

    function chooseTable() {
      table = tables[Number(part("table").value)];
      numbers = new Map(table.lines.map((key, i) => [key.join(), i]));
      chosen = new Set(table.start.slice(0, mostGroups()));
      const places = table.places.length > 1 ? [[-1, "all, of one period"], ...table.places.map((text, i) => [i, `${text}, over time`])] : [[0, ""]];
      part("place").replaceChildren(...places.map(([value, text]) => make("option", text, {value})));
      part("place").parentElement.hidden = table.places.length < 2;
      Object.assign(part("period"), {max: table.periods.length - 1, value: table.periods.length - 1});
      part("search").value = "";
      const cut = table.isCut ? `, from ${dayText(table.periods[0][0])} on; the file has all` : "";
      part("source").replaceChildren("Data: ", make("a", table.file, {href: encodeURI(table.file)}), cut);
      showGroups();
      choosePlace();
    }

    function choosePlace() {
      part("period").parentElement.hidden = isOverTime();
      for (const name of ["from", "to"]) {
        part(name).parentElement.hidden = !isOverTime();
        Object.assign(part(name), {min: dayText(table.periods[0][0]), max: dayText(table.periods.at(-1)[1])});
      }
      part("name").textContent = periodText(table.periods[Number(part("period").value)]);
      cursor = spans().length - 1;
      return draw();
    }

    function chooseDates() {
      const [from, to] = ["from", "to"].map(name => Date.parse(part(name).value));
      if (from <= to) zoomTo(from, to + DAY);
    }

    const listen = (name, event, what) => part(name).addEventListener(event, what);
    part("table").replaceChildren(...tables.map((of, value) => make("option", of.label, {value})));
    listen("table", "change", chooseTable);
    listen("place", "change", choosePlace);
    listen("period", "input", () => {
      part("name").textContent = periodText(table.periods[Number(part("period").value)]);
      draw({keepsZoom: true});
    });
    listen("search", "input", search);
    listen("none", "click", () => { chosen.clear(); showGroups(); draw({keepsZoom: true}); });
    listen("groups", "change", ({target}) => {
      const group = Number(target.value);
      if (target.checked) chosen.add(group); else chosen.delete(group);
      while (chosen.size > mostGroups()) {  // the one that was chosen first gives way
        const [first] = chosen;
        chosen.delete(first);
        part("groups").children[first].querySelector("input").checked = false;
      }
      search();
      draw({keepsZoom: true});
    });
    listen("in", "click", () => zoomBy(0.5));
    listen("out", "click", () => zoomBy(2));
    listen("earlier", "click", () => zoomBy(1, -0.4));
    listen("later", "click", () => zoomBy(1, 0.4));
    listen("all", "click", () => zoomTo(...ends()));
    listen("from", "change", chooseDates);
    listen("to", "change", chooseDates);
    listen("canvas", "keydown", event => {
      const keys = {
        ArrowLeft: () => point(cursor - 1), ArrowRight: () => point(cursor + 1), Home: () => point(0),
        End: () => point(Infinity), "+": () => zoomBy(0.5), "-": () => zoomBy(2),
      };
      if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => draw({keepsZoom: true}));
    section.hidden = false;
    part("table").value = first;
    chooseTable();
  }

  Bokeh.set_log_level("warn");
  for (const name of ["values", "losses"])
    if (data[name].length) panel(document.getElementById(name), data[name], name === "values" ? data.first : 0, {logarithmic: name === "losses"});
  document.getElementById("plain").hidden = true;
})();
