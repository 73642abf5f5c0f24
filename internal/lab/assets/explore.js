// Widgets: controls make a question, the program answers, and what it answers is shown. The latest question wins.

import {ask, reach, refusal} from './lab.js';
import {figure} from './units.js';
import {pictures} from './pictures.js';

const widgets = new Map();

// at is a part of an answer by its path.
const at = (value, path) => path.split('.').reduce((v, k) => v == null ? v : k === '#' ? v.length : v[k], value);

export class Widget {
  constructor(section) {
    this.section = section;
    this.id = section.dataset.widget;
    this.inputs = [...section.querySelectorAll('[data-control]')];
    this.first = this.settings();
    this.slow = 'slow' in section.dataset;
    this.needs = section.dataset.needs;
    this.draw = pictures[this.id] || {};
    this.place = section.querySelector('[data-picture]');
    this.more = section.querySelector('[data-more]');
    for (const input of this.inputs) {
      input.addEventListener('input', () => { this.echo(input); this.changed(input); });
    }
    for (const input of section.querySelectorAll('[data-file]')) input.addEventListener('change', () => this.send(input));
    for (const button of section.querySelectorAll('[data-action]')) button.addEventListener('click', () => this.act(button.dataset.action));
    for (const button of section.querySelectorAll('[data-preset]')) {
      button.addEventListener('click', () => { this.set(Object.fromEntries(new URLSearchParams(button.dataset.preset))); this.restart(); });
    }
    section.addEventListener('dragover', e => { if (section.querySelector('[data-file]')) e.preventDefault(); });
    section.addEventListener('drop', e => {
      const input = section.querySelector('[data-file]');
      if (!input) return;
      e.preventDefault();
      input.files = e.dataTransfer.files;
      this.send(input);
    });
  }

  input(name) { return this.inputs.find(i => i.dataset.control === name); }
  get(name) { const i = this.input(name); return i.type === 'checkbox' ? String(i.checked) : i.value; }

  settings() {
    return Object.fromEntries(this.inputs.map(i => [i.dataset.control, i.type === 'checkbox' ? String(i.checked) : i.value]));
  }

  set(values) {
    for (const [name, v] of Object.entries(values)) {
      const i = this.input(name);
      if (!i) continue;
      if (i.type === 'checkbox') i.checked = v === 'true';
      else i.value = v;
      this.echo(i);
    }
  }

  // echo is what stands beside an input at once.
  echo(input) {
    const picker = input.nextElementSibling; // of a file, whose name is hidden
    const out = picker?.dataset.file ? picker.nextElementSibling : input.id && this.section.querySelector(`output[for="${input.id}"]`);
    if (out) out.textContent = input.value + (input.dataset.unit ? ' ' + input.dataset.unit : '');
  }

  changed(input) {
    this.draw.changed?.(this, input);
    remember();
    if (this.slow) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), 20);
  }

  restart() {
    this.draw.restart?.(this);
    remember();
    if (!this.slow) this.ask();
  }

  // query is what the controls ask; a picture may leave some out.
  query() {
    const q = new URLSearchParams(this.settings());
    for (const name of this.draw.leave?.(this) || []) q.delete(name);
    return q.toString();
  }

  state(s) {
    this.section.dataset.state = s;
    const busy = s === 'running';
    this.section.setAttribute('aria-busy', String(busy));
  }

  problem(text) {
    const p = this.section.querySelector('.problem');
    p.hidden = !text;
    p.textContent = text || '';
  }

  // command shows what does the same in a terminal.
  command(line) {
    if (!line) return;
    this.section.querySelector('[data-command]').replaceChildren(...line.split(' ').flatMap((w, i) => {
      const span = document.createElement('span');
      span.textContent = w;
      return i ? [' ', span] : [span];
    }));
  }

  // ask asks the program and shows what it says. Whoever asks again ends what was asked before.
  async ask() {
    if (this.draw.ask) return this.draw.ask(this);
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    const query = this.query();
    this.state('running');
    try {
      const r = await reach(`/api/widgets/${this.id}?${query}`, {signal: asked.signal});
      const text = await r.text();
      if (asked.signal.aborted) return null;
      const command = r.headers.get('Warpline-Command');
      this.command(command);
      this.section.dataset.query = query;
      this.section.toggleAttribute('data-refused', !r.ok);
      if (!r.ok) {
        this.problem(refusal(JSON.parse(text)));
        this.state('error');
        return null;
      }
      const lines = /ndjson/.test(r.headers.get('Content-Type'));
      this.data = lines ? text.trim().split('\n').filter(Boolean).map(l => JSON.parse(l)) : JSON.parse(text);
      this.problem('');
      this.show();
      this.state(this.draw.after?.(this) || 'done');
      return this.data;
    } catch (e) {
      if (e.name === 'AbortError') return null;
      this.problem(e.message);
      this.state('error');
      throw e;
    }
  }

  // show fills in figures and draws.
  show() {
    const last = Array.isArray(this.data) ? this.data.at(-1) : this.data; // findings come before what they are of
    for (const out of this.section.querySelectorAll('output[data-path]')) {
      if (out.dataset.path) this.figure(out, at(last, out.dataset.path));
    }
    this.draw.draw?.(this, this.data);
  }

  figure(out, v) {
    out.dataset.raw = v ?? '';
    out.textContent = figure(v, out.dataset.unit);
  }

  value(name, side, v) {
    const out = this.section.querySelector(`output[data-value="${name}"]` + (side ? `[data-side="${side}"]` : ''));
    if (out) this.figure(out, v);
  }

  act(name) {
    if (this.draw.act) this.draw.act(this, name);
    else if (name === 'start') this.ask();
    else if (name === 'reset') { this.set(this.first); this.restart(); }
  }

  // send keeps a file with the program and asks about it.
  async send(input) {
    const chosen = input.files[0];
    if (!chosen) return;
    this.state('running');
    let answer;
    try {
      answer = await ask('/api/files?name=' + encodeURIComponent(chosen.name), {method: 'POST', body: chosen});
    } catch (e) {
      this.problem(e.message);
      this.state('error');
      return;
    }
    this.set({[input.dataset.file]: answer.file});
    input.parentElement.querySelector('.echo').textContent = chosen.name;
    this.draw.restart?.(this);
    remember();
    this.ask();
  }
}

// The state of a page is in its address, so that a link has it.

const pack = v => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(v)))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const unpack = s => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(s.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0))));

let remembering;
export function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const state = {};
    for (const w of widgets.values()) {
      const now = w.settings(), changed = Object.keys(now).filter(k => now[k] !== w.first[k]);
      if (changed.length) state[w.id] = Object.fromEntries(changed.map(k => [k, now[k]]));
    }
    const to = new URL(location.href);
    if (Object.keys(state).length) to.searchParams.set('s', pack(state));
    else to.searchParams.delete('s');
    history.replaceState(null, '', to);
  }, 150);
}

function recall() {
  const s = new URLSearchParams(location.search).get('s');
  if (!s) return;
  try {
    for (const [id, values] of Object.entries(unpack(s))) widgets.get(id)?.set(values);
  } catch {
    document.querySelector('.share [role=status]').textContent = 'the link has no state that can be read';
  }
}

for (const section of document.querySelectorAll('section[data-widget]')) {
  const w = new Widget(section);
  widgets.set(w.id, w);
}
recall();
for (const w of widgets.values()) {
  for (const i of w.inputs) w.echo(i);
  w.draw.start?.(w);
  if (!w.slow || w.needs && w.get(w.needs)) w.ask();
}

document.querySelector('[data-share]')?.addEventListener('click', async e => {
  const status = e.target.parentElement.querySelector('[role=status]');
  await new Promise(done => setTimeout(done, 200)); // the address has the last change
  try {
    await navigator.clipboard.writeText(location.href);
    status.textContent = 'copied';
  } catch {
    status.textContent = location.href;
  }
});

let resizing;
addEventListener('resize', () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { for (const w of widgets.values()) if (w.data) w.draw.draw?.(w, w.data); }, 100);
});
