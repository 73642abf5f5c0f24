'use strict';
// The page of a training that is under way. It draws what the program tells, and asks nobody else.

const $ = id => document.getElementById(id);
const points = []; // [step, loss, milliseconds, bytes used, bytes reserved]
const kinds = [];  // {seconds, of: {kind: bytes}}
const looks = [];  // {step, modules}
let start = null, trace = null, timeline = 0, shown = '', source = null, ended = false;

const colors = {
  parameter: '#4f7cff', gradient: '#e0803a', 'optimizer state': '#9a62d8', activation: '#36a26b', workspace: '#c9a227', batch: '#3aa6b9', buffer: '#8895a7', other: '#b0b0b8',
  compute: '#4f7cff', copy: '#e0803a', host: '#9aa3b2', wait: '#d0453b', step: '#c9a227',
};
const color = name => colors[name] || colors.other;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1024; i++; }
  return (i ? n.toPrecision(3) : n) + ' ' + units[i];
}
function time(s) {
  if (!isFinite(s)) return '–';
  if (s === 0) return '0';
  if (s < 1e-3) return (s * 1e6).toPrecision(3) + ' µs';
  if (s < 1) return (s * 1e3).toPrecision(3) + ' ms';
  if (s < 100) return s.toPrecision(3) + ' s';
  const m = Math.floor(s / 60);
  return m < 60 ? m + ' min ' + Math.round(s % 60) + ' s' : Math.floor(m / 60) + ' h ' + m % 60 + ' min';
}
const number = x => Math.abs(x) >= 1000 || x !== 0 && Math.abs(x) < 0.01 ? x.toPrecision(3) : x.toFixed(x < 10 ? 3 : 1);

// canvas sizes one to its place and returns how to draw on it.
function canvas(id, height) {
  const c = $(id), scale = window.devicePixelRatio || 1, width = c.clientWidth;
  if (height) c.style.height = height + 'px';
  height = c.clientHeight;
  c.width = Math.round(width * scale);
  c.height = Math.round(height * scale);
  const g = c.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.font = '11px system-ui, sans-serif';
  g.clearRect(0, 0, width, height);
  return {g, width, height};
}

// axes draws the frame of a plot and returns how values become places.
function axes(p, x0, x1, y0, y1, label) {
  const left = 52, bottom = p.height - 18, top = 6, right = p.width - 6;
  if (y1 <= y0) y1 = y0 + 1;
  if (x1 <= x0) x1 = x0 + 1;
  const X = x => left + (x - x0) / (x1 - x0) * (right - left), Y = y => bottom - (y - y0) / (y1 - y0) * (bottom - top);
  p.g.strokeStyle = css('--line');
  p.g.fillStyle = css('--faint');
  p.g.lineWidth = 1;
  p.g.textAlign = 'right';
  p.g.textBaseline = 'middle';
  for (let i = 0; i <= 3; i++) {
    const y = y0 + (y1 - y0) * i / 3;
    p.g.beginPath();
    p.g.moveTo(left, Y(y));
    p.g.lineTo(right, Y(y));
    p.g.stroke();
    p.g.fillText(label(y), left - 4, Math.max(Y(y), 8));
  }
  return {X, Y, left, right, bottom};
}
function ends(p, a, from, to) {
  p.g.fillStyle = css('--faint');
  p.g.textBaseline = 'bottom';
  p.g.textAlign = 'left';
  p.g.fillText(from, a.left, p.height);
  p.g.textAlign = 'right';
  p.g.fillText(to, a.right, p.height);
}

function smoothed(list) {
  const out = [];
  let s = list[0];
  for (const v of list) { s += (v - s) / Math.min(out.length + 1, 20); out.push(s); }
  return out;
}

// rates are steps a second, of several together: a device that is ahead tells of some at once.
function rates() {
  return smoothed(points.map(p => p[2])).map(ms => ms > 0 ? 1e3 / ms : 0);
}

function curve(id, values, from0) {
  const p = canvas(id);
  if (values.length === 0) return;
  const smooth = smoothed(values);
  const sorted = values.slice().sort((a, b) => a - b);
  const low = from0 ? 0 : sorted[0], high = sorted[Math.ceil((sorted.length - 1) * 0.995)];
  const a = axes(p, points[0][0], points[points.length - 1][0], low, high, number);
  p.g.save();
  p.g.beginPath();
  p.g.rect(a.left, 0, a.right - a.left, a.bottom + 1);
  p.g.clip();
  for (const [list, alpha, width] of [[values, 0.25, 1], [smooth, 1, 2]]) {
    p.g.globalAlpha = alpha;
    p.g.lineWidth = width;
    p.g.strokeStyle = css('--accent');
    p.g.beginPath();
    list.forEach((v, i) => p.g[i ? 'lineTo' : 'moveTo'](a.X(points[i][0]), a.Y(v)));
    p.g.stroke();
  }
  p.g.restore();
  ends(p, a, 'step ' + points[0][0], points[points.length - 1][0]);
}

function drawKinds() {
  const p = canvas('kinds');
  if (kinds.length === 0) return;
  const names = [...new Set(kinds.flatMap(k => Object.keys(k.of)))].sort((a, b) => Object.keys(colors).indexOf(a) - Object.keys(colors).indexOf(b));
  const total = k => names.reduce((s, n) => s + (k.of[n] || 0), 0);
  const a = axes(p, kinds[0].seconds, kinds[kinds.length - 1].seconds, 0, Math.max(...kinds.map(total)) * 1.05, bytes);
  const below = kinds.map(() => 0);
  for (const n of names) {
    p.g.fillStyle = color(n);
    p.g.beginPath();
    kinds.forEach((k, i) => p.g[i ? 'lineTo' : 'moveTo'](a.X(k.seconds), a.Y(below[i] + (k.of[n] || 0))));
    for (let i = kinds.length - 1; i >= 0; i--) p.g.lineTo(a.X(kinds[i].seconds), a.Y(below[i]));
    p.g.fill();
    kinds.forEach((k, i) => { below[i] += k.of[n] || 0; });
  }
  ends(p, a, time(kinds[0].seconds), time(kinds[kinds.length - 1].seconds));
  const last = kinds[kinds.length - 1];
  legend('kindlegend', names.map(n => [n, n + ' ' + bytes(last.of[n] || 0)]));
}

function legend(id, entries) {
  $(id).replaceChildren(...entries.map(([name, text]) => {
    const s = document.createElement('span'), i = document.createElement('i');
    i.style.background = color(name);
    s.append(i, text);
    return s;
  }));
}

// lanes are the rows of a timeline: steps, what the host asked for, what it waited for, and each queue of each device.
function lanes(events) {
  const rows = new Map(), names = {};
  for (const e of events) if (e.ph === 'M' && e.name === 'process_name') names[e.pid] = e.args.name;
  const device = events.some(e => e.cat === 'kernel'); // without, the host is the device
  const put = (key, kind, e) => { if (!rows.has(key)) rows.set(key, []); rows.get(key).push({kind, name: e.name, at: e.ts, took: e.dur}); };
  for (const e of events) {
    if (e.ph !== 'X') continue;
    if (e.cat === 'user_annotation') { if (e.name.startsWith('ProfilerStep')) put('steps', 'step', e); }
    else if (e.cat === 'kernel') put(names[e.pid] + ', queue ' + e.tid, 'compute', e);
    else if (e.cat === 'gpu_memcpy' || e.cat === 'gpu_memset') put(names[e.pid] + ', queue ' + e.tid, 'copy', e);
    else if (e.cat === 'cuda_runtime' && /Synchronize|Wait/.test(e.name)) put('host waits', 'wait', e);
    else if (e.cat === 'cpu_op') put('host', e.name.startsWith('Mem') ? 'copy' : device ? 'host' : 'compute', e);
  }
  return [...rows].sort(([a], [b]) => order(a) - order(b) || (a < b ? -1 : 1));
}
const first = ['steps', 'host', 'host waits'];
const order = name => first.indexOf(name) < 0 ? first.length : first.indexOf(name);

let drawn = null; // what the pointer may be on
let zoom = [0, 1]; // the part of the timeline that is shown
function zoomBy(factor, at) {
  const middle = zoom[0] + at * (zoom[1] - zoom[0]), width = Math.min(1, (zoom[1] - zoom[0]) * factor);
  const left = Math.max(0, Math.min(1 - width, middle - at * width));
  zoom = [left, left + width];
  drawTimeline();
}
function shift(by) {
  const width = zoom[1] - zoom[0], left = Math.max(0, Math.min(1 - width, zoom[0] + by * width));
  zoom = [left, left + width];
  drawTimeline();
}
function drawTimeline() {
  const rows = trace ? lanes(trace.traceEvents || []) : [];
  const p = canvas('timeline', Math.max(60, rows.length * 34 + 22));
  if (rows.length === 0) return;
  const all = rows.flatMap(([, list]) => list);
  const end = all.reduce((m, s) => Math.max(m, s.at + s.took), 0);
  const from = zoom[0] * end, to = zoom[1] * end, right = p.width - 6, X = t => 6 + (t - from) / (to - from) * (right - 6);
  drawn = [];
  rows.forEach(([name, list], r) => {
    const top = r * 34;
    p.g.fillStyle = css('--faint');
    p.g.textAlign = 'left';
    p.g.textBaseline = 'top';
    p.g.fillText(name, 6, top + 1);
    for (const s of list) {
      if (s.at > to || s.at + s.took < from) continue;
      const x = Math.max(X(s.at), 6), w = Math.max(Math.min(X(s.at + s.took), right) - x, 0.6);
      p.g.fillStyle = color(s.kind);
      p.g.globalAlpha = s.kind === 'step' ? 0.5 : 1;
      p.g.fillRect(x, top + 15, s.kind === 'step' ? Math.max(w - 1, 1) : w, 15);
      p.g.globalAlpha = 1;
      drawn.push({x, w, top: top + 15, s});
    }
  });
  p.g.textBaseline = 'bottom';
  p.g.fillStyle = css('--faint');
  p.g.fillText(time(from / 1e6), 6, p.height);
  p.g.textAlign = 'right';
  p.g.fillText(time(to / 1e6), right, p.height);
  legend('lanelegend', [['compute', 'compute'], ['copy', 'copies'], ['host', 'host'], ['wait', 'waits']]);
}

function point(event) {
  if (!drawn) return;
  const box = $('timeline').getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null;
  for (const d of drawn) {
    if (y < d.top - 4 || y > d.top + 19 || x < d.x - 3 || x > d.x + d.w + 3) continue;
    if (!best || d.w < best.w) best = d;
  }
  if (best) $('slice').textContent = best.s.name + ': ' + time(best.s.took / 1e6) + ', from ' + time(best.s.at / 1e6) + ' on';
}

function showFigures(n) {
  const last = points[points.length - 1];
  if (!start || !last) return;
  const recent = points.slice(-20).map(p => p[2]).filter(ms => ms > 0);
  const pace = recent.reduce((a, b) => a + b, 0) / recent.length / 1e3;
  $('progress').value = last[0] / start.steps;
  $('step').textContent = last[0] + ' of ' + start.steps;
  $('loss').textContent = start.computed ? smoothed(points.slice(-200).map(p => p[1])).pop().toFixed(4) : '–';
  $('rate').textContent = pace > 0 ? number(1 / pace) : '–';
  $('left').textContent = n.scoring[1] ? 'scoring ' + Math.round(100 * n.scoring[0] / n.scoring[1]) + ' %' : time((start.steps - last[0]) * pace);
  if (n.memory) $('peak').textContent = bytes(n.memory.peak);
  document.title = last[0] + '/' + start.steps + ' ' + start.task;
}

function showScores(scores) {
  if (!scores || scores.length === 0) return;
  const s = scores[scores.length - 1];
  $('held').textContent = s.accuracy != null ? (100 * s.accuracy).toFixed(2) + ' %' : 'loss ' + s.val_loss.toFixed(4);
}

// spark draws logarithms of a quantity over the looks.
function spark(c, values) {
  const scale = window.devicePixelRatio || 1, width = 90, height = 22, g = c.getContext('2d');
  c.width = width * scale;
  c.height = height * scale;
  g.setTransform(scale, 0, 0, scale, 0, 0);
  const logs = values.map(v => v > 0 ? Math.log(v) : NaN), known = logs.filter(isFinite);
  if (known.length < 2) return;
  const low = Math.min(...known), high = Math.max(...known), middle = (low + high) / 2, span = Math.max(high - low, 0.5);
  g.strokeStyle = css('--accent');
  g.lineWidth = 1.5;
  g.beginPath();
  let down = false;
  logs.forEach((v, i) => {
    if (!isFinite(v)) { down = false; return; }
    g[down ? 'lineTo' : 'moveTo'](1 + i / (logs.length - 1) * (width - 2), height / 2 - (v - middle) / span * (height - 4));
    down = true;
  });
  g.stroke();
}

const figure = x => x == null ? 'not finite' : x === 0 ? '0' : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(1) : x.toPrecision(3);
function drawModules() {
  if (looks.length === 0) return;
  const last = looks[looks.length - 1];
  const history = (m, what) => looks.map(l => { const o = l.modules.find(o => o.path === m.path && o.kind === m.kind); return o && o[what] ? o[what].rms : NaN; });
  $('modulesection').hidden = false;
  $('looked').textContent = 'at step ' + last.step + '; outputs, weights and gradients by the root of their mean square, over the last ' + looks.length + (looks.length === 1 ? ' look' : ' looks') + ' by its logarithm; ratio: of the gradient to the weights; idle: units whose weights had no gradient';
  $('modules').replaceChildren(...last.modules.map(m => {
    const row = document.createElement('tr'), cell = (words, bad) => row.append(text('td', words, bad ? 'bad' : ''));
    const rms = v => cell(v ? figure(v.rms) : '', v && v.rms == null);
    const line = what => { const td = document.createElement('td'), c = document.createElement('canvas'); if (m[what]) { td.append(c); spark(c, history(m, what)); } row.append(td); };
    cell(m.path || '(model)');
    cell(m.kind);
    rms(m.output);
    line('output');
    cell(m.output && m.output.zeros != null ? (100 * m.output.zeros).toFixed(0) + ' %' : '');
    rms(m.gradient);
    line('gradient');
    rms(m.weights);
    rms(m.weight_gradients);
    cell(m.weight_gradients && m.weights && m.weights.rms > 0 && m.weight_gradients.rms != null ? figure(m.weight_gradients.rms / m.weights.rms) : '');
    cell(m.units ? (m.idle || []).length + ' of ' + m.units : '', (m.idle || []).length > 0);
    return row;
  }));
}

function text(tag, words, name) {
  const e = document.createElement(tag);
  e.textContent = words;
  if (name) e.className = name;
  return e;
}

function showFindings(n) {
  if (!n.findings) return;
  const key = JSON.stringify(n.findings);
  $('summary').textContent = n.summary;
  if (key === shown) return;
  shown = key;
  if (n.findings.length === 0) {
    $('findings').replaceChildren(text('p', 'Nothing found. Looked for: ' + n.checked + '.'));
    return;
  }
  $('findings').replaceChildren(...n.findings.map(f => {
    const a = document.createElement('article'), list = document.createElement('ul');
    for (const e of f.evidence || []) list.append(text('li', e));
    a.append(text('h3', f.rule + ': ' + f.text), list, text('p', 'To do: ' + f.fix));
    if (f.line) a.append(text('p', f.line, 'note'));
    if (f.gain_ns > 0) a.append(text('p', 'Gain: some ' + time(f.gain_ns / 1e9) + ' a step' + (f.modelled ? ', as modelled' : '') + ' (' + f.formula + ')', 'note'));
    return a;
  }));
}

let had = 0;
async function showProfile(p) {
  const busy = p.state === 'waiting' || p.state === 'recording';
  $('record').disabled = busy || ended || !start;
  if (busy) $('profile').textContent = p.state + ' …';
  if (p.state !== 'done') return;
  $('profile').textContent = [p.took_ns ? 'steps from ' + p.first + ' on, ' + time(p.took_ns / 1e9) : '', p.note].filter(Boolean).join('; ');
  if (!p.took_ns || had === p.first || ended) return;
  had = p.first;
  tables.clear();
  try { // kept here, for when the program has ended
    const got = await fetch('profile/trace.json.gz');
    $('trace').href = URL.createObjectURL(await got.blob());
    for (const option of $('by').options) tables.set(option.value, await (await fetch('profile/table.txt?explain&by=' + option.value)).text());
    $('links').hidden = $('table').hidden = false;
    $('table').textContent = tables.get($('by').value);
  } catch (e) {
    $('profile').textContent = 'the profile cannot be read: ' + e.message;
  }
}
const tables = new Map();

async function record() {
  $('record').disabled = true;
  try {
    const answer = await fetch('profile?steps=' + encodeURIComponent($('steps').value), {method: 'POST'});
    const told = await answer.json();
    $('profile').textContent = answer.ok ? 'waiting …' : told.error;
    if (!answer.ok) $('record').disabled = ended;
  } catch (e) {
    $('profile').textContent = 'the program does not answer';
  }
}

async function showTimeline(n) {
  if (n.timeline === timeline || n.ended) return;
  timeline = n.timeline;
  try {
    const got = await fetch('timeline.json');
    if (!got.ok) return;
    trace = await got.json();
    drawTimeline();
  } catch (e) { /* the program has ended meanwhile: the timeline before stays */ }
}

function banner(words, bad) {
  $('banner').textContent = words;
  $('banner').hidden = !words;
  $('banner').classList.toggle('bad', !!bad);
}

function take(n) {
  if (n.start) {
    start = n.start;
    $('title').textContent = start.task + ' on ' + start.device;
    $('model').textContent = start.model + ', ' + start.parameters.toLocaleString('en') + ' parameters, ' + start.batch + ' samples a step' + (start.out ? ', ' + start.out : '');
    $('record').disabled = false;
  }
  points.push(...n.points);
  kinds.push(...n.kinds);
  if (kinds.length > 1200) kinds.splice(0, kinds.length - 1200);
  if (points.length > 8000) for (let i = points.length - 2; i > 0; i -= 2) points.splice(i, 1);
  showFigures(n);
  showScores(n.scores);
  showFindings(n);
  showTimeline(n);
  if (n.notes) {
    $('notesection').hidden = false;
    $('notes').replaceChildren(...n.notes.map(t => text('li', t)));
  }
  if (n.ended) {
    ended = true;
    source.close();
    banner(n.ended.text + '. This page keeps what there was.', n.ended.error);
    $('left').textContent = '–';
  }
  showProfile(n.profile);
  if (n.points.length) { curve('losses', points.map(p => p[1])); curve('rates', rates(), true); }
  if (n.kinds.length) drawKinds();
  if (n.looks) {
    looks.push(...n.looks);
    looks.splice(0, looks.length - 200);
    drawModules();
  }
}

function draw() {
  curve('losses', points.map(p => p[1]));
  curve('rates', rates(), true);
  drawKinds();
  drawTimeline();
  drawModules();
}

function connect() {
  source = new EventSource('events');
  source.onmessage = m => { banner(''); take(JSON.parse(m.data)); };
  source.onerror = () => {
    source.close(); // a new one begins from the first step again
    if (ended) return;
    banner('The program does not answer any more. This page keeps what there was.', true);
    $('record').disabled = true;
  };
}

addEventListener('resize', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
$('timeline').addEventListener('pointermove', point);
$('timeline').addEventListener('pointerdown', point);
$('timeline').addEventListener('dblclick', e => zoomBy(0.5, (e.clientX - $('timeline').getBoundingClientRect().left) / $('timeline').clientWidth));
$('nearer').addEventListener('click', () => zoomBy(0.5, 0.5));
$('farther').addEventListener('click', () => zoomBy(2, 0.5));
$('earlier').addEventListener('click', () => shift(-0.5));
$('later').addEventListener('click', () => shift(0.5));
$('record').addEventListener('click', record);
$('by').addEventListener('change', () => { $('table').textContent = tables.get($('by').value) || ''; });
connect();
