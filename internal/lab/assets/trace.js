// A trace to look at closely: a canvas that shows tiles of it, which the program makes for each zoom, and the same as text.

import {answered, ask, reach} from './lab.js';
import {html, legend, table, ticks} from './svg.js';
import {time, digits} from './units.js';

const row = 18, axis = 20, most = 33; // pixels of a lane and of the scale; lanes that are seen at once
const room = 96 << 20; // bytes of tiles that are kept

const ns = v => time(v / 1e9);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = hex => [1, 3, 5].map(i => parseInt((hex.length < 7 ? hex.replace(/[0-9a-f]/g, '$&$&') : hex).slice(i, i + 2), 16));

// Tile is a part of the trace at a zoom; the program says what its marks are.
class Tile {
  constructor(buffer, lanes) {
    const n = new Uint32Array(buffer, 0, 1)[0];
    this.size = buffer.byteLength;
    this.half = new Uint16Array(buffer, 4, 8 * n);
    this.whole = new Uint32Array(buffer, 4, 4 * n);
    this.names = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4 + 16 * n)));
    this.begins = new Uint32Array(lanes + 1);
    for (let i = 0; i < n; i++) this.begins[this.half[8 * i] + 1] = i + 1;
    for (let l = 0; l < lanes; l++) this.begins[l + 1] = Math.max(this.begins[l + 1], this.begins[l]);
  }
  // first is the first mark of a lane that ends behind a tick.
  first(lane, tick) {
    let low = this.begins[lane], high = this.begins[lane + 1];
    while (low < high) {
      const m = low + high >> 1;
      if (this.half[8 * m + 2] <= tick) low = m + 1;
      else high = m;
    }
    return low;
  }
}

class View {
  constructor(place, more, file, about) {
    Object.assign(this, about, {place, more, at: `/api/trace/${file}`, tiles: new Map(), held: 0, asking: new Set(), from: 0, to: about.span_ns || 1, top: 0});
    const button = (text, does) => { const b = html('button', {type: 'button'}, text); b.addEventListener('click', does); return b; };
    this.canvas = html('canvas', {tabindex: '0', role: 'application', 'aria-label': 'timeline. Arrow keys move, plus and minus zoom, Home shows all, full stop and comma choose the next and the previous event, F follows from a launch to its kernel'});
    this.tip = html('div', {class: 'tip', hidden: ''});
    this.status = html('p', {class: 'note', role: 'status'});
    this.chosen = html('div', {'aria-live': 'polite', class: 'chosen'});
    this.found = html('div');
    this.names = html('div');
    const name = html('input', {type: 'text', 'aria-label': 'part of a name', placeholder: 'part of a name', spellcheck: 'false', autocomplete: 'off', 'data-find': ''});
    name.addEventListener('keydown', e => { if (e.key === 'Enter') this.search(name.value); });
    place.replaceChildren(html('p', {class: 'actions'}, button('earlier', () => this.move(-0.3)), button('nearer', () => this.zoom(0.5)), button('farther', () => this.zoom(2)), button('later', () => this.move(0.3)), button('all', () => this.show(0, this.span_ns)),
      name, button('find', () => this.search(name.value))), html('div', {class: 'trace'}, this.canvas, this.tip), legend(about.looks.map((l, i) => [i, l])), this.status, this.chosen, this.found);
    more.prepend(html('h3', {}, 'What the window shows'), this.names);
    this.colours();
    this.listen();
    const kept = !shown && /^#at=(\d+),(\d+)$/.exec(location.hash);
    if (kept) [this.from, this.to] = [+kept[1], Math.max(+kept[2], +kept[1] + 1)];
    this.size();
    this.show(this.from, this.to);
  }

  size() {
    const wide = this.place.clientWidth, dpr = this.dpr = Math.min(devicePixelRatio || 1, 2);
    this.left = wide > 600 ? 170 : 84;
    this.rows = Math.max(1, Math.min(this.lanes.length, most));
    const tall = axis + this.rows * row;
    this.wide = Math.max(wide - this.left, 100);
    Object.assign(this.canvas, {width: Math.round((this.left + this.wide) * dpr), height: Math.round(tall * dpr)});
    this.canvas.style.height = tall + 'px';
    this.context = this.canvas.getContext('2d', {alpha: false});
    this.image = this.context.createImageData(Math.round(this.wide * dpr), Math.round(this.rows * row * dpr));
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.context.font = '11px ui-monospace, Menlo, monospace';
    this.letter = this.context.measureText('m').width;
    this.draw();
  }

  // colours are those of the page: each at eight shares over what is behind.
  colours() {
    this.ink = css('--ink'); this.back = css('--back'); this.faint = css('--faint'); this.line = css('--line');
    const behind = rgb(this.back), word = c => (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0;
    this.empty = word(behind);
    this.paint = new Uint32Array(8 * 256);
    for (let k = 0; k < 8; k++) {
      const c = rgb(css('--c' + k));
      for (let s = 0; s < 256; s++) {
        const a = s === 255 ? 1 : 0.2 + 0.7 * s / 255; // nothing is invisible
        this.paint[k << 8 | s] = word(c.map((v, i) => Math.round(v * a + behind[i] * (1 - a))));
      }
    }
  }

  // show shows a window of time.
  show(from, to) {
    const width = Math.min(Math.max(to - from, 20), Math.max(this.span_ns, 20));
    this.from = Math.max(0, Math.min(from, this.span_ns - width));
    this.to = this.from + width;
    this.draw();
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell(), 200);
  }
  move(by) { const w = this.to - this.from; this.show(this.from + by * w, this.to + by * w); }
  zoom(factor, at = 0.5) {
    const w = this.to - this.from, next = Math.min(Math.max(w * factor, 20), Math.max(this.span_ns, 20)), middle = this.from + w * at;
    this.show(middle - next * at, middle + next * (1 - at));
  }
  scroll(by) { this.top = Math.max(0, Math.min(this.lanes.length - this.rows, this.top + by)); this.draw(); }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.render(); });
  }

  tile(level, index, block) { return this.tiles.get(`${level}/${index}/${block}`); }
  span(level) { return Math.max(Math.ceil(this.span_ns / 2 ** level), 1); }

  // need asks for a tile that is not there.
  async need(level, index, block) {
    const key = `${level}/${index}/${block}`;
    if (this.tiles.has(key) || this.asking.has(key) || this.asking.size >= 6) return;
    this.asking.add(key);
    try {
      const r = await reach(`${this.at}/tile?level=${level}&index=${index}&block=${block}`);
      if (!r.ok) return await answered(r);
      const t = new Tile(await r.arrayBuffer(), this.tile_lanes);
      this.tiles.set(key, t);
      this.held += t.size;
      for (const [k, old] of this.tiles) {
        if (this.held < room) break;
        if (k.startsWith('0/')) continue;
        this.tiles.delete(k);
        this.held -= old.size;
      }
    } catch (e) {
      this.status.textContent = e.message;
      return;
    } finally {
      this.asking.delete(key);
    }
    this.draw();
  }

  render() {
    const c = this.context, dpr = this.dpr, wide = this.image.width, place = l => Math.round((l - this.top) * row * dpr);
    const level = Math.max(0, Math.min(this.levels - 1, Math.ceil(Math.log2(this.span_ns / (this.to - this.from) * this.wide / 1024))));
    this.pixels.fill(this.empty);
    this.labels = [];
    let whole = true;
    for (let l = this.top; l < Math.min(this.top + this.rows, this.lanes.length); l++) {
      const y = place(l), tall = place(l + 1) - y;
      if (!this.strip(l, y + 1, this.from, this.to, level, true)) whole = false;
      const begin = (y + 1) * wide;
      for (let k = 1; k < tall - 2; k++) this.pixels.copyWithin(begin + k * wide, begin, begin + wide);
    }
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    c.fillStyle = this.back;
    c.fillRect(0, 0, this.left + this.wide, axis + this.rows * row);
    c.putImageData(this.image, Math.round(this.left * dpr), Math.round(axis * dpr));
    this.words(c);
    this.canvas.dataset.from = this.from;
    this.canvas.dataset.to = this.to;
    this.canvas.dataset.ready = whole;
  }

  // strip paints what a lane has in a window, of the tiles of a level or, until these are there, of coarser ones; it reports whether they were.
  strip(lane, y, from, to, level, wanted) {
    const span = this.span(level), block = Math.floor(lane / this.tile_lanes);
    let whole = true;
    for (let i = Math.max(0, Math.floor(from / span)); i * span < to && i < 2 ** level; i++) {
      const t = this.tile(level, i, block), a = Math.max(from, i * span), b = Math.min(to, (i + 1) * span);
      if (t) { this.marks(t, lane, y, i * span, span, a, b); continue; }
      if (wanted) this.need(level, i, block);
      whole = false;
      if (level > 0) this.strip(lane, y, a, b, level - 1, level === 1);
    }
    return whole;
  }

  marks(t, lane, y, start, span, from, to) {
    const {half, whole} = t, per = this.image.width / (this.to - this.from), tick = span / this.tile_ticks, l = lane % this.tile_lanes;
    const base = y * this.image.width, zero = (start - this.from) * per, each = tick * per, low = (from - this.from) * per, high = Math.min((to - this.from) * per, this.image.width);
    const end = t.begins[l + 1];
    for (let i = t.first(l, (from - start) / tick); i < end; i++) {
      let x = zero + half[8 * i + 1] * each, till = zero + half[8 * i + 2] * each;
      if (x >= high) break;
      x = Math.max(x, low, 0) | 0;
      till = Math.max(Math.min(till, high) | 0, x + 1);
      const mark = half[8 * i + 3], colour = this.paint[(mark & 7) << 8 | mark >> 8];
      if (till - x === 1) { this.pixels[base + x] = colour; continue; }
      const name = whole[4 * i + 3], last = this.labels.at(-1);
      if (last?.event === whole[4 * i + 2] && last.y === y) last.wide = till - last.x; // it goes on in the next tile
      else if (name && till - x > 36 * this.dpr && this.labels.length < 400) this.labels.push({x, y, wide: till - x, text: t.names[name], event: whole[4 * i + 2]});
      if (mark >> 8 === 255 && till - x > 3 && half[8 * i + 2] < this.tile_ticks) till--; // its neighbour is told apart
      this.pixels.fill(colour, base + x, base + till);
    }
  }

  // words are the scale, the names of lanes and of what is wide enough, what was chosen, and what it launched.
  words(c) {
    const dpr = this.dpr, X = t => this.left + (t - this.from) / (this.to - this.from) * this.wide, Y = lane => axis + (lane - this.top) * row;
    c.font = '11px ui-monospace, Menlo, monospace';
    c.textBaseline = 'middle';
    c.fillStyle = dark.matches ? '#10131a' : '#fff';
    for (const {x, y, wide, text} of this.labels) {
      const n = Math.floor((wide / dpr - 8) / this.letter);
      c.fillText(text.length > n ? text.slice(0, n - 1) + '…' : text, this.left + x / dpr + 4, axis + y / dpr + row / 2);
    }
    c.strokeStyle = this.line;
    c.fillStyle = this.faint;
    c.beginPath();
    const marks = ticks(this.from / 1e9, this.to / 1e9, Math.max(3, Math.floor(this.wide / 130)));
    for (const v of marks) {
      const x = X(v * 1e9);
      c.moveTo(x, 14); c.lineTo(x, axis);
      c.fillText(this.stamp(v, marks), Math.min(x + 3, this.left + this.wide - 60), 9);
    }
    c.stroke();
    c.font = '12px system-ui, sans-serif';
    for (let l = this.top; l < Math.min(this.top + this.rows, this.lanes.length); l++) {
      if (this.lanes[l].depth && l > this.top) continue;
      let text = this.lanes[l].name;
      const n = Math.floor((this.left - 8) / 6.2);
      if (text.length > n) text = text.slice(0, n - 1) + '…';
      c.fillStyle = this.ink;
      c.fillText(text, 2, Y(l) + row / 2, this.left - 6);
      c.fillStyle = this.line;
      c.fillRect(0, Y(l) - 0.5, this.left + this.wide, 1);
    }
    if (this.event) this.outline(c, X, Y);
  }

  // stamp is a time of the scale with as many digits as tell it from its neighbours.
  stamp(v, all) {
    const end = this.to / 1e9, [unit, name] = end >= 1 ? [1, 's'] : end >= 1e-3 ? [1e3, 'ms'] : [1e6, 'µs'], step = (all[1] - all[0] || v || 1) * unit;
    return (v * unit).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)))) + ' ' + name;
  }

  outline(c, X, Y) {
    const edge = this.left, box = e => [Math.max(X(e.start_ns), edge), Y(e.lane), X(e.start_ns + e.dur_ns)];
    c.save();
    c.beginPath();
    c.rect(edge, axis, this.wide, this.rows * row);
    c.clip();
    c.strokeStyle = this.ink;
    c.lineWidth = 2;
    const [x, y, end] = box(this.event.event);
    c.strokeRect(x, y + 1, Math.max(end - x, 2), row - 3);
    c.lineWidth = 1.3;
    for (const o of this.event.linked || []) {
      const [call, work] = this.lanes[o.lane].device ? [this.event.event, o] : [o, this.event.event];
      const from = X(call.start_ns), to = X(work.start_ns), y1 = Y(call.lane) + row / 2, y2 = Y(work.lane) + row / 2;
      c.beginPath();
      c.moveTo(from, y1);
      c.bezierCurveTo(from + 40, y1, to - 40, y2, to, y2);
      c.stroke();
      c.strokeRect(...box(o).slice(0, 2).map((v, i) => v + i), Math.max(box(o)[2] - box(o)[0], 2), row - 3);
    }
    c.restore();
  }

  // tell tells the window as text.
  async tell() {
    const from = Math.round(this.from), to = Math.round(this.to), turn = this.turn = (this.turn || 0) + 1;
    history.replaceState(null, '', from || to < this.span_ns ? `#at=${from},${to}` : location.pathname + location.search);
    try {
      const d = await ask(`${this.at}/top?from=${from}&to=${to}`);
      if (turn !== this.turn) return;
      this.status.textContent = `${ns(from)} to ${ns(to)} of ${ns(this.span_ns)}: ${digits(d.events)} of ${digits(this.events)} events` + (this.left_out || '');
      this.names.replaceChildren(table(['name', '>time', '>events', 'what'], d.names.map(n => [n.name || '(no name)', ns(n.ns), digits(n.calls), this.looks[n.look]]), 'names that take most time in the window'));
    } catch (e) { this.status.textContent = e.message; }
  }

  // search lists events by a part of their names: the first, and then those behind an event.
  async search(name, behind) {
    if (!name) { this.found.replaceChildren(); return; }
    try {
      const d = await ask(`${this.at}/find?name=${encodeURIComponent(name)}${behind === undefined ? '' : '&behind=' + behind}`), list = html('ul', {class: 'hits'});
      for (const e of d.found) list.append(html('li', {}, this.go(e, e.name), ` ${ns(e.dur_ns)}, at ${ns(e.start_ns)}`));
      const next = html('button', {type: 'button'}, 'later ones');
      next.addEventListener('click', () => this.search(name, d.found.at(-1).event));
      this.found.replaceChildren(html('p', {role: 'status', class: 'note'}, `${digits(d.all)} events have “${name}” in their name`), list, ...(d.found.length >= 50 ? [next] : []));
      if (d.found.length && behind === undefined) this.choose(d.found[0].event, true);
    } catch (e) { this.found.replaceChildren(html('p', {class: 'bad'}, e.message)); }
  }

  // go is a button that shows an event.
  go(e, text) {
    const b = html('button', {type: 'button', class: 'plain'}, text.length > 90 ? text.slice(0, 90) + '…' : text || '(no name)');
    b.addEventListener('click', () => this.choose(e.event, true));
    return b;
  }

  // choose tells all of an event, and shows where it is if it is asked to.
  async choose(event, shown) {
    this.choosing?.abort();
    const {signal} = this.choosing = new AbortController();
    let d;
    try {
      d = await ask(`${this.at}/event?event=${event}`, {signal});
    } catch (e) { if (!signal.aborted) this.chosen.replaceChildren(html('p', {class: 'bad'}, e.message)); return; }
    this.event = d;
    const e = d.event, lane = this.lanes[e.lane], first = this.lanes[e.lane - lane.depth];
    if (e.lane < this.top || e.lane >= this.top + this.rows) this.top = Math.max(0, Math.min(this.lanes.length - this.rows, e.lane - (this.rows >> 1)));
    const w = Math.max(e.dur_ns * 6, 200);
    if (shown) this.show(e.start_ns + e.dur_ns / 2 - w, e.start_ns + e.dur_ns / 2 + w);
    else this.draw();
    const list = (title, all, count = all?.length) => count ? [html('p', {}, title + ' ', ...all.flatMap(x => [this.go(x, x.name), ' ']), count > all.length ? `and ${digits(count - all.length)} more` : '')] : [];
    const value = v => Array.isArray(v) && !v.some(x => typeof x === 'object') ? v.join(', ') : typeof v === 'object' ? JSON.stringify(v) : String(v);
    this.chosen.replaceChildren(html('h3', {}, e.name || '(no name)'), html('p', {}, `${ns(e.dur_ns)}, from ${ns(e.start_ns)} on, ${this.looks[e.look]}, ${first.name}`),
      ...list(lane.device ? 'launched by' : 'launches', d.linked, d.links), ...list('within', d.around),
      ...(d.args && Object.keys(d.args).length ? [html('details', {open: ''}, html('summary', {}, 'what the file tells of it'), table(['argument', 'value'], Object.entries(d.args).map(([k, v]) => [k, value(v).slice(0, 2000)]), 'arguments'))] : []));
  }

  // near is the lane and the time at a place of the canvas.
  near(e) {
    const lane = this.top + Math.floor((e.offsetY - axis) / row), x = e.offsetX - this.left;
    if (x < 0 || e.offsetY < axis || lane >= this.lanes.length) return null;
    const per = (this.to - this.from) / this.wide;
    return `lane=${lane}&at=${Math.max(0, Math.round(this.from + x * per))}&near=${Math.ceil(2 * per)}`;
  }

  // leave ends what is asked of what is under the pointer, and what is told of it.
  leave() { this.asked?.abort(); this.tip.hidden = true; }

  async hover(e) {
    this.leave();
    const where = this.near(e), {signal} = this.asked = new AbortController();
    if (!where) return;
    await new Promise(done => setTimeout(done, 60));
    if (signal.aborted) return;
    const d = await ask(`${this.at}/event?${where}`, {signal}).catch(() => null);
    if (!d || signal.aborted) return;
    const x = d.event, lane = this.lanes[x.lane], text = [`${x.name.slice(0, 200) || '(no name)'}`, `${ns(x.dur_ns)}, ${this.looks[x.look]}, ${this.lanes[x.lane - lane.depth].name}`];
    const put = () => {
      this.tip.replaceChildren(...text.map(t => html('div', {}, t)));
      this.tip.hidden = false;
      this.tip.style.left = Math.max(0, Math.min(e.offsetX + 12, this.left + this.wide - this.tip.offsetWidth)) + 'px';
      this.tip.style.top = e.offsetY + 16 + 'px';
    };
    put();
    await new Promise(done => setTimeout(done, 250));
    if (signal.aborted) return;
    const more = await ask(`${this.at}/event?event=${x.event}`, {signal}).catch(() => null);
    if (!more?.args || signal.aborted) return;
    text.push(...Object.entries(more.args).slice(0, 10).map(([k, v]) => `${k}: ${JSON.stringify(v)}`.slice(0, 120)));
    put();
  }

  listen() {
    const c = this.canvas, down = new Map();
    let moved = 0;
    c.addEventListener('wheel', e => {
      if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), Math.min(1, Math.max(0, (e.offsetX - this.left) / this.wide))); return; }
      const by = e.shiftKey ? e.deltaY || e.deltaX : e.deltaX;
      if (by) { e.preventDefault(); this.move(by / this.wide); return; }
      const was = this.top;
      this.scroll(Math.sign(e.deltaY) * 2);
      if (this.top !== was) e.preventDefault();
    }, {passive: false});
    c.addEventListener('pointerdown', e => { this.leave(); down.set(e.pointerId, e); moved = 0; c.setPointerCapture(e.pointerId); });
    c.addEventListener('pointermove', e => {
      const was = down.get(e.pointerId);
      if (!was) { this.hover(e); return; }
      down.set(e.pointerId, e);
      const dx = e.offsetX - was.offsetX, dy = e.offsetY - was.offsetY;
      moved += Math.abs(dx) + Math.abs(dy);
      if (down.size === 2) {
        const other = [...down.entries()].find(([id]) => id !== e.pointerId)[1], before = Math.abs(was.offsetX - other.offsetX), now = Math.abs(e.offsetX - other.offsetX);
        if (before > 10 && now > 10) this.zoom(before / now, Math.min(1, Math.max(0, ((e.offsetX + other.offsetX) / 2 - this.left) / this.wide)));
        return;
      }
      if (dx) this.move(-dx / this.wide);
      this.dragged = (this.dragged || 0) - dy;
      if (Math.abs(this.dragged) >= row) { this.scroll(Math.trunc(this.dragged / row)); this.dragged %= row; }
    });
    for (const name of ['pointerup', 'pointercancel']) {
      c.addEventListener(name, async e => {
        down.delete(e.pointerId);
        if (name === 'pointercancel' || moved > 4) return;
        const where = this.near(e), d = where && await ask(`${this.at}/event?${where}`).catch(() => null);
        if (d) this.choose(d.event.event, false);
        else { this.choosing?.abort(); this.event = null; this.chosen.replaceChildren(); this.draw(); }
      });
    }
    c.addEventListener('pointerleave', () => this.leave());
    c.addEventListener('dblclick', e => this.zoom(0.25, Math.min(1, Math.max(0, (e.offsetX - this.left) / this.wide))));
    const keys = {ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15), ArrowUp: () => this.scroll(-1), ArrowDown: () => this.scroll(1), '+': () => this.zoom(0.7), '=': () => this.zoom(0.7), '-': () => this.zoom(1.4),
      Home: () => this.show(0, this.span_ns), '.': () => this.next(1), ',': () => this.next(-1), f: () => this.event?.linked?.length && this.choose(this.event.linked[0].event, true)};
    c.addEventListener('keydown', e => {
      const does = keys[e.key] || keys[e.key.toLowerCase()];
      if (!does || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      does();
    });
  }

  // next chooses the event beside the one that is chosen, or the one in the middle of the uppermost lane that is seen.
  async next(by) {
    if (this.event) { this.choose(Math.max(0, Math.min(this.events - 1, this.event.event.event + by)), true); return; }
    const d = await ask(`${this.at}/event?lane=${this.top}&at=${Math.round((this.from + this.to) / 2)}&near=${Math.round((this.to - this.from) / 2)}`).catch(() => null);
    if (d) this.choose(d.event.event, false);
  }
}

// The view that is shown; those that files before it had are gone with their tiles.
let shown;
let resizing;
addEventListener('resize', () => { clearTimeout(resizing); resizing = setTimeout(() => { if (shown?.canvas.isConnected) shown.size(); }, 60); });
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => { shown?.colours(); shown?.draw(); });

// look shows a trace that the program has.
export async function look(place, more, file) {
  place.replaceChildren(html('p', {class: 'note', role: 'status'}, 'the events are read'));
  try {
    const about = await ask('/api/trace/' + file);
    if (!place.isConnected) return; // another file has come
    clearTimeout(shown?.telling);
    about.left_out = (about.left ? `, and ${digits(about.left)} that are too many or have no time` : '') + (about.cut ? `; the file is ${about.cut}` : '');
    if (!about.events) { place.replaceChildren(html('p', {class: 'note'}, 'No event of the file took time.')); return; }
    shown = new View(place, more, file, about);
  } catch (e) { place.replaceChildren(html('p', {class: 'bad'}, e.message)); }
}
