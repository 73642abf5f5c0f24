// Pictures: a little of SVG, with axes.

const SVG = 'http://www.w3.org/2000/svg';

// make is an element with attributes and what is in it.
export function make(name, attributes = {}, ...inside) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...inside);
  return e;
}

// html is the same for elements of a page.
export function html(name, attributes = {}, ...inside) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...inside);
  return e;
}

// picture puts an empty one into its place, as wide as that is, and says what it shows.
export function picture(place, height, title) {
  const width = Math.max(place.clientWidth, 240);
  const svg = make('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': title});
  place.replaceChildren(svg);
  return {svg, width, height, put(name, attributes, ...inside) { const e = make(name, attributes, ...inside); svg.append(e); return e; }};
}

// ticks are round numbers between two.
export function ticks(low, high, most = 5) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw) || power;
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) out.push(+v.toPrecision(12));
  return out;
}

// axes draws those of a plot and returns how values become places. X and Y are {low, high, log, label, text, at}.
export function axes(p, x, y, at = {left: 62, right: 10, top: 12, bottom: 34}) {
  const left = at.left, right = p.width - at.right, top = at.top, bottom = p.height - at.bottom;
  const place = (a, from, to) => {
    const f = a.log ? Math.log10 : v => v, low = f(a.low), high = f(a.high);
    return v => from + (f(v) - low) / ((high - low) || 1) * (to - from);
  };
  const X = place(x, left, right), Y = place(y, bottom, top);
  const marks = a => {
    if (a.at) return a.at;
    if (!a.log) return ticks(a.low, a.high);
    const out = [];
    for (let e = Math.ceil(Math.log10(a.low) - 1e-9); e <= Math.log10(a.high) + 1e-9; e++) out.push(10 ** e);
    const stride = Math.ceil(out.length / 8);
    return out.filter((_, i) => i % stride === 0);
  };
  for (const v of marks(y)) {
    p.put('line', {x1: left, x2: right, y1: Y(v), y2: Y(v), class: 'grid'});
    p.put('text', {x: left - 6, y: Y(v) + 4, 'text-anchor': 'end'}, (y.text || String)(v));
  }
  for (const v of marks(x)) {
    p.put('line', {x1: X(v), x2: X(v), y1: bottom, y2: bottom + 4, class: 'grid'});
    const text = (x.text || String)(v);
    p.put('text', {x: Math.min(X(v), p.width - 4 * text.length), y: bottom + 16, 'text-anchor': 'middle'}, text); // none is cut at the edge
  }
  if (x.label) p.put('text', {x: right, y: p.height - 4, 'text-anchor': 'end'}, x.label);
  if (y.label) p.put('text', {x: 2, y: 10}, y.label);
  return {X, Y, left, right, top, bottom};
}

// line draws a curve through points.
export function line(p, a, points, kind) {
  p.put('path', {d: points.map(([x, y], i) => (i ? 'L' : 'M') + a.X(x).toFixed(1) + ' ' + a.Y(y).toFixed(1)).join(''), class: 'line s' + kind});
}

// bars draws a row for each {label, value, text, kind} and, where it has parts, these beside each other.
export function bars(place, title, rows) {
  const narrow = place.clientWidth <= 560, row = narrow ? 42 : 30, p = picture(place, rows.length * row + 6, title);
  const most = Math.max(...rows.map(r => r.value), 1e-300);
  const left = narrow ? 0 : 190, room = p.width - (narrow ? 0 : left + 170);
  rows.forEach((r, i) => {
    const y = i * row + (narrow ? 20 : 4);
    let x = left;
    for (const part of r.parts || [{value: r.value, kind: r.kind || 0}]) {
      const w = part.value / most * room;
      const box = p.put('rect', {x, y, width: Math.max(w, 0.5), height: narrow ? 16 : 22, class: 'f' + part.kind});
      if (part.name) box.append(make('title', {}, part.name));
      x += w;
    }
    if (narrow) {
      p.put('text', {x: 0, y: y - 5}, `${r.label}: ${r.text}`);
      return;
    }
    p.put('text', {x: left - 8, y: y + 16, 'text-anchor': 'end'}, r.label);
    p.put('text', {x: x + 6, y: y + 16}, r.text);
  });
}

// legend is what colours mean.
export function legend(entries) {
  return html('p', {class: 'legend'}, ...entries.map(([kind, text]) => html('span', {}, html('i', {class: 'b' + kind}), text)));
}

// table is one of texts; the first row is its head, and columns of numbers are told by a leading >.
export function table(head, rows, caption) {
  const right = head.map(h => h.startsWith('>'));
  const cell = (name, text, i, extra = {}) => html(name, {...extra, ...(right[i] ? {class: 'n'} : {})}, text ?? '–');
  return html('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption}, html('table', {},
    html('thead', {}, html('tr', {}, ...head.map((h, i) => cell('th', h.replace(/^>/, ''), i, {scope: 'col'})))),
    html('tbody', {}, ...rows.map(r => html('tr', {}, ...r.map((t, i) => cell('td', t, i)))))));
}
