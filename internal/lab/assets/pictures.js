// What the widgets look like: a picture of an answer, and what their buttons do.

import {ask, post, reach, refusal} from './lab.js';
import {picture, axes, line, bars, legend, table, html, make} from './svg.js';
import {bytes, time, digits, figure, rate} from './units.js';

export const pictures = {};

// play moves a widget on until its step says that there is no more.
function play(w, every, step) {
  clearInterval(w.playing);
  w.playing = setInterval(async () => {
    if (w.waiting) return;
    w.waiting = true;
    const goes = await step();
    w.waiting = false;
    if (!goes) clearInterval(w.playing);
  }, every);
}

// Architecture: a box for each multiprocessor with its cores, and the memories below.

const cells = 3200; // more cores are drawn as shares

pictures.architecture = {
  restart(w) { clearInterval(w.playing); w.set({step: '0'}); },
  changed(w, input) { if (input.dataset.control !== 'step') this.restart(w); },
  act(w, name) {
    const go = async by => {
      const n = Math.min(Math.max(+w.get('step') + by, 0), (w.data?.steps || 1) - 1), moved = n !== +w.get('step');
      w.set({step: String(n)});
      if (moved) await w.ask();
      return n < w.data.steps - 1;
    };
    const stride = Math.max(1, Math.round((w.data?.steps || 1) / 120));
    switch (name) {
    case 'start': if (+w.get('step') >= w.data.steps - 1) w.set({step: '0'}); play(w, 120, () => go(stride)); break;
    case 'pause': clearInterval(w.playing); break;
    case 'step': clearInterval(w.playing); go(1); break;
    case 'back': clearInterval(w.playing); go(-1); break;
    case 'reset': this.restart(w); w.set(w.first); w.ask(); break;
    }
  },
  draw(w, d) {
    const wide = Math.max(w.place.clientWidth, 240);
    const columns = Math.min(d.sms, Math.max(1, Math.floor(wide / (d.sms <= 16 ? 128 : 54))));
    const size = Math.min(wide / columns, 210), rows = Math.ceil(d.sms / columns), each = d.total_cores <= cells;
    const inside = size - 12, across = Math.ceil(Math.sqrt(d.cores_per_sm)), side = inside / across;
    const tall = each ? Math.ceil(d.cores_per_sm / across) * side : 24, label = size >= 70 ? 18 : 0;
    const box = tall + 12 + label, below = rows * box + 12, levels = d.levels.slice(2), level = 36;
    const p = picture(w.place, below + 20 + levels.length * level, `${d.sms} multiprocessors of ${d.cores_per_sm} cores; ${d.active} cores active, ${d.idle} idle in step ${d.step}`);
    for (let i = 0; i < d.sms; i++) {
      const x = (i % columns) * size, y = Math.floor(i / columns) * box;
      p.put('rect', {x: x + 2, y: y + 2, width: size - 4, height: box - 4, rx: 4, class: 'box'});
      if (label) p.put('text', {x: x + 8, y: y + 16}, size >= 110 ? `SM ${i}: ${d.cores_per_sm} cores` : `SM ${i}`);
      const n = d.active_by_sm[i];
      if (!each) {
        p.put('rect', {x: x + 6, y: y + 6 + label, width: inside, height: tall, class: 'idle'});
        p.put('rect', {x: x + 6, y: y + 6 + label, width: inside * n / d.cores_per_sm, height: tall, class: 'f0'});
        continue;
      }
      for (let c = 0; c < d.cores_per_sm; c++) {
        p.put('rect', {x: x + 6 + (c % across) * side, y: y + 6 + label + Math.floor(c / across) * side, width: Math.max(side - 1, 1), height: Math.max(side - 1, 1), class: c < n ? 'f0' : 'idle'});
      }
    }
    p.put('text', {x: 2, y: below + 10}, 'memory bus');
    levels.forEach((l, i) => {
      const y = below + 16 + i * level;
      p.put('rect', {x: 2, y, width: p.width - 4, height: level - 6, rx: 4, class: 'box'});
      p.put('text', {x: 10, y: y + 20}, [l.name, l.bytes ? bytes(l.bytes) : '', l.bytes_per_second ? rate(l.bytes_per_second, 'B/s') : ''].filter(Boolean).join('  ·  '));
    });
    w.more.replaceChildren(legend([[0, `active: ${digits(d.active)} cores`], ['idle', `idle: ${digits(d.idle)} cores`]]),
      table(['memory', '>in all', '>each', '>clocks', '>a second'], d.levels.map(l => [l.name, l.bytes ? bytes(l.bytes) : '–', l.each_bytes ? `${bytes(l.each_bytes)}, of an ${l.of}` : '–', l.clocks || '–', l.bytes_per_second ? rate(l.bytes_per_second, 'B/s') : '–']), 'levels of the memory'),
      html('p', {class: 'note'}, `${d.model}. ${d.note}.`));
  },
};

// Race: two teams of cores, how far they are, and Amdahl's curve.

const wall = 4000; // milliseconds that a race is shown in

pictures.race = {
  changed(w) { this.stop(w); },
  restart(w) { this.stop(w); },
  stop(w) { clearInterval(w.playing); w.frame = 0; w.raced = false; },
  after(w) { return w.raced ? 'done' : 'idle'; },
  act(w, name) {
    this.stop(w);
    if (name === 'reset') { w.set(w.first); w.ask(); return; }
    const begin = performance.now(), last = w.data.cpu.frames.length - 1;
    const quiet = matchMedia('(prefers-reduced-motion: reduce)').matches;
    w.state('running');
    w.playing = setInterval(() => {
      w.frame = quiet ? last : Math.min(last, Math.round((performance.now() - begin) / wall * last));
      this.draw(w, w.data);
      if (w.frame < last) return;
      clearInterval(w.playing);
      w.raced = true;
      w.state('done');
    }, 50);
  },
  draw(w, d) {
    const f = w.frame || 0, sides = [['cpu', d.cpu, 0], ['gpu', d.gpu, 1]];
    for (const [name, s] of sides) {
      w.value('completed', name, s.frames[f].completed);
      w.value('percent', name, s.frames[f].percent);
      w.value('active', name, s.frames[f].active);
    }
    const wide = Math.max(w.place.clientWidth, 240), two = wide > 640, width = two ? wide / 2 - 8 : wide, tall = 172;
    const p = picture(w.place, two ? tall : 2 * tall + 8, `after ${time(d.cpu.frames[f].seconds)}: ${sides.map(([n, s]) => `${s.name} ${s.frames[f].completed} of ${d.tasks}`).join(', ')}`);
    sides.forEach(([name, s, kind], i) => {
      const x0 = two ? i * (width + 16) : 0, y0 = two ? 0 : i * (tall + 8), frame = s.frames[f];
      p.put('rect', {x: x0, y: y0, width, height: tall - 4, rx: 6, class: 'box'});
      p.put('text', {x: x0 + 10, y: y0 + 20, class: 'strong'}, `${s.name}: ${s.cores} cores`);
      const shown = Math.min(s.cores, 512), across = Math.ceil(Math.sqrt(shown * (width - 20) / 70)), side = Math.min((width - 20) / across, 70 / Math.ceil(shown / across), 26);
      for (let c = 0; c < shown; c++) {
        p.put('rect', {x: x0 + 10 + (c % across) * side, y: y0 + 30 + Math.floor(c / across) * side, width: Math.max(side - 1, 0.8), height: Math.max(side - 1, 0.8), class: c < frame.active * shown / s.cores ? 'f' + kind : 'idle'});
      }
      const y = y0 + 112;
      p.put('rect', {x: x0 + 10, y, width: width - 20, height: 14, class: 'idle'});
      p.put('rect', {x: x0 + 10, y, width: (width - 20) * frame.completed / d.tasks, height: 14, class: 'f' + kind});
      p.put('text', {x: x0 + 10, y: y + 32}, `${digits(frame.completed)} of ${digits(d.tasks)}, ${digits(frame.percent, 3)} %`);
      p.put('text', {x: x0 + 10, y: y + 48}, frame.completed === d.tasks ? `in ${time(s.elapsed)}` : `at ${time(frame.seconds)}`);
    });
    this.under(w, d);
  },
  under(w, d) {
    if (w.under === d) return;
    w.under = d;
    const parts = html('div'), curve = html('div');
    const kinds = {serial: 3, rounds: 0, launch: 1, 'copy to device': 2, 'copy back': 4};
    w.more.replaceChildren(html('h3', {}, 'Where the time goes'), parts, legend([[3, 'one after the other'], [0, 'side by side'], [1, 'launch'], [2, 'copy to the device'], [4, 'copy back']]),
      html('h3', {}, 'Amdahl’s law: cores of one kind'), curve, html('p', {class: 'note'}, d.note + '.'));
    bars(parts, 'time of both sides by what it is spent on', [d.cpu, d.gpu].map(s => ({label: s === d.cpu ? 'CPU' : 'GPU', value: s.elapsed, text: time(s.elapsed), parts: s.phases.map(x => ({value: x.seconds, kind: kinds[x.name], name: `${x.name}: ${time(x.seconds)}`}))})));
    const most = Math.max(...d.amdahl.curve.map(c => c[1]), 2);
    const p = picture(curve, 200, `speed-up by cores, ${digits(100 * d.amdahl.p)} % parallel: ${digits(d.amdahl.cpu_cores_speedup)} with ${d.cpu.cores}, ${digits(d.amdahl.gpu_cores_speedup)} with ${d.gpu.cores} cores`);
    const a = axes(p, {low: 1, high: 65536, log: true, label: 'cores', text: v => v.toLocaleString('en')}, {low: most > 100 ? 1 : 0, high: most * 1.1, log: most > 100, label: 'speed-up'});
    line(p, a, d.amdahl.curve.map(([x, y]) => [x, Math.max(y, most > 100 ? 1 : 0)]), 0);
    for (const [n, s, kind] of [[d.cpu.cores, d.amdahl.cpu_cores_speedup, 0], [d.gpu.cores, d.amdahl.gpu_cores_speedup, 1]]) p.put('circle', {cx: a.X(n), cy: a.Y(s), r: 5, class: 'f' + kind});
  },
};

pictures['race-run'] = {
  draw(w, d) {
    const sides = d.filter(x => 'ms' in x), crossings = d.filter(x => 'crossover_n' in x);
    bars(w.place, 'time of a step by size and device', sides.map(s => ({label: `${s.n}, ${s.device}`, value: s.ms, text: time(s.ms / 1e3) + (s.modelled ? ', modelled' : ', measured'), kind: s.modelled ? 1 : 0})));
    w.more.replaceChildren(table(['size', 'device', '>a step', '>from', '>to', '>speed-up', 'how'], sides.map(s => [String(s.n), s.device, time(s.ms / 1e3), time(s.low_ms / 1e3), time(s.high_ms / 1e3), figure(s.speedup, 'x'), s.modelled ? 'modelled' : 'measured']), 'steps'),
      ...crossings.map(c => html('p', {class: 'note'}, c.always ? `${c.device} is quicker at all of these sizes` : c.crossover_n == null ? `${c.device} is quicker at none of these sizes` : `${c.device} is quicker from ${digits(c.crossover_n, 3)} on`)));
  },
};

// Transfer: what is where, and a console.

const names = ['batch', 'weight', 'bias'];

pictures.transfer = {
  leave(w) { return w.moving ? [] : names.map(n => 'tensor-' + n); },
  restart(w) { w.set({device: ''}); },
  start(w) {
    this.logs = {};
    const consoles = html('div', {class: 'two'});
    for (const [kind, title] of [['go', 'Go'], ['pytorch', 'PyTorch']]) {
      this.logs[kind] = html('div', {role: 'log', tabindex: '0', 'aria-label': 'console, ' + title, 'data-console': kind});
      consoles.append(html('div', {}, html('h3', {}, title), this.logs[kind]));
    }
    this.note = html('p', {class: 'note'});
    w.more.replaceChildren(consoles, this.note);
  },
  async act(w, name) {
    if (name === 'reset') {
      w.set(w.first);
      for (const log of Object.values(this.logs)) log.replaceChildren();
      w.ask();
      return;
    }
    w.moving = true;
    const d = await w.ask();
    w.moving = false;
    if (!d) return;
    for (const kind of ['go', 'pytorch']) {
      for (const text of d[kind]) this.logs[kind].append(html('div', {}, text));
      if (d.error) this.logs[kind].append(html('div', {class: 'bad'}, (kind === 'go' ? 'batch.MatMul(weight)  // ' : 'batch @ weight  # ') + d.error[kind]));
    }
    w.set({device: d.on_device.join(',')});
    for (const n of names) w.set({['tensor-' + n]: 'false'});
    w.input('device').dispatchEvent(new Event('moved'));
  },
  draw(w, d) {
    const wide = Math.max(w.place.clientWidth, 240), p = picture(w.place, 190, `on the host ${d.tensors.filter(t => t.at === 'host').map(t => t.name).join(', ') || 'nothing'}; on the device ${d.on_device.join(', ') || 'nothing'}`);
    const side = (wide - Math.max(80, wide / 5)) / 2, gap = wide - 2 * side;
    for (const [at, x, title, total] of [['host', 0, 'host memory', d.host_bytes], ['device', side + gap, d.card, d.device_bytes]]) {
      p.put('rect', {x, y: 2, width: side, height: 184, rx: 6, class: 'box'});
      p.put('text', {x: x + 8, y: 20, class: 'strong'}, title);
      p.put('text', {x: x + 8, y: 178}, bytes(total));
      d.tensors.filter(t => t.at === at).forEach((t, i) => {
        const room = side - 16, width = Math.max(room * Math.log2(t.bytes) / 26, 20), kind = names.indexOf(t.name);
        p.put('rect', {x: x + 8, y: 32 + i * 44, width: Math.min(width, room), height: 20, rx: 3, class: 'f' + Math.max(kind, 0)});
        p.put('text', {x: x + 8, y: 66 + i * 44}, side > 200 ? `${t.name} (${t.shape.join(', ')}) ${bytes(t.bytes)}` : `${t.name} ${bytes(t.bytes)}`);
      });
    }
    p.put('line', {x1: side, x2: side + gap, y1: 95, y2: 95, class: 'bus'});
    p.put('text', {x: side + gap / 2, y: 86, 'text-anchor': 'middle'}, digits(d.link_gbps) + ' GB/s');
    this.note.textContent = d.note + '.';
  },
};

// Timeline: who works when.

pictures.timeline = {
  draw(w, d) {
    const end = Math.max(d.true_ms, d.timer_ms), p = picture(w.place, 170, `host: ${d.host.length} spans; device: ${d.device.length} spans; a timer that does not wait tells ${digits(d.timer_ms)} ms, one that does ${digits(d.true_ms)} ms`);
    const a = axes(p, {low: 0, high: end * 1.02, label: 'ms'}, {low: 0, high: 1, text: () => ''}, {left: 56, right: 8, top: 4, bottom: 34});
    p.svg.querySelectorAll('.grid').forEach(g => { if (g.getAttribute('x1') !== g.getAttribute('x2')) g.remove(); });
    for (const [name, spans, y] of [['host', d.host, 20], ['device', d.device, 72]]) {
      p.put('text', {x: 0, y: y + 22}, name);
      for (const s of spans) {
        const width = Math.max(a.X(s.end_ms) - a.X(s.start_ms) - 0.5, 0.5);
        p.put('rect', {x: a.X(s.start_ms), y, width, height: 34, class: s.what === 'launch' ? 'f1' : s.what === 'wait' ? 'waits' : 'f0'});
        if (width > 24) p.put('text', {x: a.X(s.start_ms) + 4, y: y + 22, class: 'on'}, width > 70 ? `${s.what} ${s.step}` : String(s.step));
      }
    }
    for (const [v, kind] of [[d.timer_ms, 7], [d.true_ms, 2]]) p.put('line', {x1: a.X(v), x2: a.X(v), y1: 4, y2: 134, class: 'mark s' + kind});
    w.more.replaceChildren(legend([[1, 'launching'], ['waits', 'waiting'], [0, 'computing'], [7, `a timer that does not wait stops: ${digits(d.timer_ms)} ms`], [2, `one that waits: ${digits(d.true_ms)} ms`]]),
      html('details', {}, html('summary', {}, 'in numbers'), table(['who', 'what', '>step', '>from ms', '>to ms'], [...d.host.map(s => ['host', s]), ...d.device.map(s => ['device', s])].map(([who, s]) => [who, s.what, String(s.step), digits(s.start_ms), digits(s.end_ms)]), 'host and device')),
      html('p', {class: 'note'}, d.note + '.'));
  },
};

// Memory: a budget against a card, the same by a dry run, and who held it over time.

const terms = ['weights', 'gradients', 'optimizer', 'casts', 'gathered', 'activations', 'logits', 'workspace', 'context'];

function budget(place, title, parts, has) {
  const total = parts.reduce((s, p) => s + p.value, 0);
  bars(place, title, [{label: 'needed', value: total, text: bytes(total), parts}, {label: 'the card has', value: has, text: bytes(has), kind: 6}]);
}

pictures.memory = {
  draw(w, d) {
    const card = d.cards[0], parts = terms.filter(t => d[t] > 0).map((t, i) => ({value: d[t], kind: i % 8, name: `${t}: ${bytes(d[t])}`, term: t}));
    budget(w.place, `${d.what} on ${card.card}: needs ${bytes(d.total)} of ${bytes(card.has)}`, parts, card.has);
    w.more.replaceChildren(legend(parts.map(p => [p.kind, `${p.term} ${bytes(p.value)}`])),
      html('p', {class: 'note'}, d.floor ? 'The floor: weights, gradients and optimizer. Activations, workspace and the driver come on top.'
        : `At most at once ${d.when}; ${bytes(d.range[0])} to ${bytes(d.range[1])} by the range of the formulas. Nothing was run.`
          + (d.apart > 0 ? ` The bar makes ${bytes(d.apart)} more: gradients come as activations go, and are never there with all of them.` : '')));
  },
};

pictures.floor = pictures.memory;

pictures.dryrun = {
  draw(w, d) {
    const kinds = Object.entries(d.peak_by_kind).sort((a, b) => b[1] - a[1]);
    const parts = [...kinds.map(([k, v], i) => ({value: v, kind: i % 8, name: `${k}: ${bytes(v)}`, term: k})), {value: d.context_bytes, kind: 6, name: 'driver', term: 'the driver'}];
    budget(w.place, `on ${d.card}: ${bytes(d.peak_reserved)} reserved at the peak`, parts, d.limit_bytes);
    w.more.replaceChildren(legend(parts.map(p => [p.kind, `${p.term} ${bytes(p.value)}`])),
      html('p', {class: 'note'}, `Largest batch ${digits(d.largest_batch)}, limited by ${d.limited_by}. A step ${time(d.step_ms / 1e3)}, modelled, ${time(d.step_ms_low / 1e3)} to ${time(d.step_ms_high / 1e3)}.`));
  },
};

function findings(list) {
  if (!list.length) return [html('p', {}, 'Nothing wrong was found.')];
  return list.map(f => html('article', {}, html('h3', {}, `${f.title} `, html('span', {class: 'note'}, f.rule)), html('ul', {}, ...(f.evidence || []).map(e => html('li', {}, e.text))), html('p', {}, html('b', {}, 'To do: '), f.fix || '–')));
}

// over draws memory over time by owner, one on the other.
function over(place, m) {
  const last = m.at_seconds.length - 1, sums = m.at_seconds.map((_, i) => m.bytes.reduce((s, o) => s + o[i], 0));
  const p = picture(place, 240, `memory over ${time(m.at_seconds[last])}, peak ${bytes(m.peak)} at ${time(m.peak_at_seconds)}`);
  const a = axes(p, {low: m.at_seconds[0], high: Math.max(m.at_seconds[last], m.at_seconds[0] + 1e-9), text: time}, {low: 0, high: Math.max(...sums, 1) * 1.05, text: bytes}, {left: 76, right: 10, top: 12, bottom: 26});
  const below = m.at_seconds.map(() => 0);
  m.owners.forEach((_, k) => {
    const up = m.at_seconds.map((t, i) => [a.X(t), a.Y(below[i] + m.bytes[k][i])]), down = m.at_seconds.map((t, i) => [a.X(t), a.Y(below[i])]).reverse();
    p.put('path', {d: 'M' + [...up, ...down].map(([x, y]) => x.toFixed(1) + ' ' + y.toFixed(1)).join('L') + 'Z', class: 'f' + k % 8});
    m.bytes[k].forEach((b, i) => { below[i] += b; });
  });
}

pictures.snapshot = {
  draw(w, d) {
    const devices = d.pictures?.[0]?.memory || [];
    w.place.replaceChildren();
    w.more.replaceChildren();
    for (const m of devices) {
      const place = html('div');
      w.place.append(html('h3', {}, m.name || 'memory'), place, legend(m.owners.map((o, k) => [k % 8, o])));
      over(place, m);
      const r = m.reserved, held = html('div');
      w.more.append(html('h3', {}, 'What the allocator has at the end'), held, legend([[0, 'in use'], [7, 'free, stuck beside live blocks'], [2, 'free, whole segments']]));
      bars(held, 'reserved memory at the end', [{label: 'reserved', value: r.in_use + r.stuck + r.reclaimable, text: bytes(r.in_use + r.stuck + r.reclaimable), parts: [{value: r.in_use, kind: 0}, {value: r.stuck, kind: 7}, {value: r.reclaimable, kind: 2}]}]);
      w.more.append(html('h3', {}, 'Who holds it at the peak'), table(['line', 'kind', '>bytes', '>blocks'], (m.holders || []).map(h => [h.line || '–', h.kind || '–', bytes(h.bytes), String(h.blocks)]), 'holders at the peak'));
    }
    w.more.append(html('h3', {}, 'Findings'), ...findings(d.files?.[0]?.findings || []));
    if (!devices.length) w.place.append(html('p', {class: 'note'}, 'The file has nothing over time that could be drawn.'));
  },
};

// Blocks: what the allocator of the training that runs has at this moment.

const rows = 24; // segments that are drawn

pictures.blocks = {
  start(w) { this.poll(w); },
  async act(w, name) {
    w.problem('');
    try {
      if (name === 'pause') { await reach('/api/training', {method: 'DELETE'}); return; }
      w.command((await post('/api/training', {query: w.query()})).command);
      this.poll(w);
    } catch (e) { w.problem(e.message); w.state('error'); }
  },
  // poll looks at the run that there is, whoever began it.
  async poll(w) {
    clearTimeout(w.polling);
    try {
      const run = await ask('/api/training?from=' + (w.known || 0)); // its lines are the training page's
      w.known = run.from + run.lines.length;
      if (run.error) w.problem(refusal(run));
      if (run.state !== 'running') {
        if (run.state) w.state(run.state);
        return;
      }
      w.state('running');
      w.command(run.command);
      if (run.view) {
        const r = await reach(run.view + 'blocks.json');
        if (r.ok) { w.data = await r.json(); this.draw(w, w.data); }
      }
    } catch (e) { w.problem(e.message); w.state('error'); return; }
    w.polling = setTimeout(() => this.poll(w), 500);
  },
  draw(w, d) {
    for (const [name, v] of [['requested', d.requested], ['allocated', d.allocated], ['reserved', d.reserved], ['peak', d.peak], ['free', d.free_blocks]]) w.value(name, '', v);
    const kinds = {}, shown = d.segments.slice(0, rows), most = Math.max(...d.segments.map(s => s.bytes), 1);
    for (const s of d.segments) for (const b of s.blocks) {
      const k = kinds[b.state === 'in use' ? b.kind || 'other' : b.state] ||= {bytes: 0, blocks: 0};
      k.bytes += b.bytes;
      k.blocks++;
    }
    const names = Object.keys(kinds).filter(k => k !== 'free').sort(), colour = b => b.state === 'free' ? 'idle' : 'f' + Math.max(names.indexOf(b.state === 'in use' ? b.kind || 'other' : b.state), 0) % 8;
    const tall = 26, left = w.place.clientWidth > 560 ? 130 : 0, p = picture(w.place, shown.length * (tall + (left ? 0 : 16)) + 4, `${d.segments.length} segments, ${bytes(d.allocated)} of ${bytes(d.reserved)} handed out`);
    shown.forEach((s, i) => {
      const y = i * (tall + (left ? 0 : 16)) + (left ? 2 : 18), room = p.width - left - 2;
      p.put('text', left ? {x: 0, y: y + 15} : {x: 0, y: y - 4}, `${s.pool}, ${bytes(s.bytes)}`);
      let x = left;
      for (const b of s.blocks) {
        const wide = b.bytes / most * room;
        const box = p.put('rect', {x: x.toFixed(2), y, width: Math.max(wide - (wide > 3 ? 1 : 0), 0.4).toFixed(2), height: tall - 5, class: colour(b)});
        if (wide > 2) box.append(make('title', {}, `${bytes(b.bytes)}, ${b.state}${b.kind ? ', ' + b.kind : ''}${b.op ? ', made by ' + b.op : ''}`));
        x += wide;
      }
    });
    const left2 = d.segments.length - shown.length + d.segments_left;
    w.more.replaceChildren(legend([...names.map((k, i) => [i % 8, k]), ['idle', 'free']]), ...(left2 ? [html('p', {class: 'note'}, `and ${left2} more segments`)] : []),
      table(['what', '>blocks', '>bytes'], Object.entries(kinds).sort((a, b) => b[1].bytes - a[1].bytes).map(([k, v]) => [k, digits(v.blocks), bytes(v.bytes)]), 'blocks by what they serve for'));
  },
};

// Traces: all events, to be looked at closely, and where the time goes.

pictures.trace = {
  // look shows the events while the report is still being made.
  async look(w) {
    const file = w.get('file');
    if (!file || w.looked === file) return;
    w.looked = file;
    this.timeline = html('div');
    this.window = html('div');
    w.place.replaceChildren(html('h3', {}, 'Timeline'), this.timeline);
    w.more.replaceChildren(this.window);
    const {look} = await import('./trace.js');
    await look(this.timeline, this.window, file);
  },
  restart(w) { this.looking = this.look(w); },
  start(w) { this.looking = this.look(w); },
  draw(w, d) {
    const x = d.pictures?.[0], parts = [];
    if (x?.shares?.length) {
      const place = html('div');
      parts.push(html('h3', {}, x.steps ? 'Where a step goes' : 'Where the time goes'), place);
      w.more.replaceChildren(this.window, ...parts);
      bars(place, 'where the time goes', x.shares.map((s, i) => ({label: s.name, value: s.seconds, text: `${time(s.seconds)}, ${digits(100 * s.share, 3)} %`, kind: s.idle ? 7 : i % 7})));
    }
    if (x?.kernels?.length) parts.push(html('h3', {}, 'What the device computes'), table(['kernel', 'family', '>calls', '>time', '>share'], x.kernels.map(k => [k.name, k.family || '–', digits(k.calls), time(k.seconds), digits(100 * k.share, 3) + ' %']), 'kernels'));
    w.more.replaceChildren(this.window, ...parts, html('h3', {}, 'Findings'), ...findings(d.files?.[0]?.findings || []));
  },
};

// Kernels: what a launch is bound by, its place under the roof, and what its lines did.

pictures.kernel = {
  draw(w, d) {
    const list = Array.isArray(d) ? d : [d], r = list.find(x => x.final) || list.at(-1), m = r.model;
    this.offer(w.input('card'), r.target);
    w.place.replaceChildren();
    if (m) {
      const place = html('div'), roof = html('div');
      w.place.append(html('h3', {}, 'What its time is bound by, modelled'), place, html('h3', {}, 'Under the roof'), roof);
      bars(place, `modelled ${time(m.seconds)}, bound by ${m.limiter}`, [['launch', m.launch_seconds, m.limiter === 'launch'], ...m.terms.map((t, i) => [t.name, t.seconds, !i && m.limiter !== 'launch'])]
        .map(([label, value, bounds]) => ({label, value, text: time(value), kind: bounds ? 0 : 6})));
      if (m.operations_per_byte > 0 && m.operations > 0) {
        const x = m.operations_per_byte, ridge = m.peak_operations / m.memory_bytes_per_second;
        const low = Math.min(x, ridge) / 30, high = Math.max(x, ridge) * 30, p = picture(roof, 210, `${digits(x)} operations a byte: ${rate(m.operations, 'FLOP/s')} of at most ${rate(m.roof_operations, 'FLOP/s')}; the roof is flat at ${rate(m.peak_operations, 'FLOP/s')} from ${digits(ridge)} operations a byte on`);
        const a = axes(p, {low, high, log: true, label: 'operations a byte', text: v => digits(v, 2)}, {low: Math.min(m.operations / 10, m.memory_bytes_per_second * low), high: m.peak_operations * 3, log: true, label: 'operations a second', text: v => rate(v, '')}, {left: 62, right: 12, top: 16, bottom: 34});
        line(p, a, [[low, m.memory_bytes_per_second * low], [ridge, m.peak_operations], [high, m.peak_operations]], 6);
        p.put('text', {x: a.X(high) - 4, y: a.Y(m.peak_operations) - 6, 'text-anchor': 'end'}, rate(m.peak_operations, 'FLOP/s'));
        p.put('text', {x: a.X(ridge) + 6, y: a.Y(m.peak_operations) + 18}, `ridge: ${digits(ridge, 3)}`);
        p.put('line', {x1: a.X(x), x2: a.X(x), y1: a.Y(m.roof_operations), y2: a.Y(m.operations), class: 'mark s0'});
        p.put('circle', {cx: a.X(x), cy: a.Y(m.roof_operations), r: 4, class: 'f6'});
        p.put('circle', {cx: a.X(x), cy: a.Y(m.operations), r: 6, class: 'f0'});
      } else {
        roof.append(html('p', {class: 'note'}, m.operations > 0 ? `Nothing comes from memory: at most ${rate(m.roof_operations, 'FLOP/s')}; it runs at ${rate(m.operations, 'FLOP/s')}.` : 'It has no floating-point operations.'));
      }
    }
    const lines = r.lines || [], most = Math.max(...lines.map(l => l.instructions), 1), heat = v => 'heat h' + Math.min(8, Math.ceil(8 * v / most));
    const body = lines.map(l => html('tr', {class: heat(l.instructions)}, ...[[l.ptx_line], [l.ptx, 'code'], [l.source || ''], [digits(l.instructions), 'n'], [digits(100 * l.lanes, 3) + ' %', 'n'], [l.global_sectors || '', 'n'], [l.bank_conflicts || '', 'n'], [l.divergent_branches || '', 'n']].map(([t, kind]) => kind === 'code' ? html('td', {}, html('code', {}, t)) : html('td', kind ? {class: kind} : {}, String(t)))));
    const head = ['line', 'PTX', 'source', '>instructions', '>lanes', '>sectors', '>bank conflicts', '>divergent'];
    const whole = table(head, [], 'lines of the kernel, by what they did');
    whole.querySelector('tbody').append(...body);
    w.more.replaceChildren(legend([[0, 'what bounds it, and what it reaches'], [6, 'other terms, and the roof']]), ...(m?.change?.length ? [html('h3', {}, 'What would change it'), html('ul', {}, ...m.change.map(c => html('li', {}, c)))] : []),
      ...list.filter(x => x.finding === true).map(f => html('article', {}, html('h3', {class: 'bad'}, `${f.check}: ${f.message}`), html('p', {}, `thread ${f.thread.join(', ')} of block ${f.block.join(', ')}, ${f.source || 'PTX line ' + f.ptx_line}: `, html('code', {}, f.source_text || f.ptx)))),
      ...this.sources(lines), html('h3', {}, 'Its lines: the warmer, the more of its instructions'), whole, table(['instructions of', '>count'], r.classes.map(c => [c.name, digits(c.count)]), 'instructions by class'));
  },
};

// offer leaves those cards to be chosen that a module for sm_80 or sm_90a runs on.
pictures.kernel.offer = (list, target) => {
  const [, sm, own] = /^sm_(\d+)(a?)/.exec(target);
  for (const o of list.options) o.disabled = own ? o.dataset.sm !== sm : Number(o.dataset.sm) < Number(sm);
};

// sources are the lines of the source from which those of the PTX came, as far as it tells.
pictures.kernel.sources = lines => {
  const all = new Map();
  for (const l of lines) {
    if (!l.source) continue;
    const s = all.get(l.source) || {source: l.source, n: 0, sectors: 0, conflicts: 0, divergent: 0, lanes: 0};
    all.set(l.source, s);
    s.n += l.instructions; s.lanes += l.lanes * l.instructions; s.sectors += l.global_sectors; s.conflicts += l.bank_conflicts; s.divergent += l.divergent_branches;
  }
  if (!all.size) return [];
  const rows = [...all.values()].sort((a, b) => a.source.localeCompare(b.source, 'en', {numeric: true})), most = Math.max(...rows.map(s => s.n), 1);
  const whole = table(['source', '>instructions', '>lanes', '>sectors', '>bank conflicts', '>divergent'], rows.map(s => [s.source, digits(s.n), digits(100 * s.lanes / (s.n || 1), 3) + ' %', s.sectors ? digits(s.sectors) : '', s.conflicts ? digits(s.conflicts) : '', s.divergent ? digits(s.divergent) : '']), 'lines of the source, by what they did');
  whole.querySelectorAll('tbody tr').forEach((tr, i) => { tr.className = 'heat h' + Math.min(8, Math.ceil(8 * rows[i].n / most)); });
  return [html('h3', {}, 'The source: the warmer, the more of its instructions'), whole];
};

// GPUs: how a training scales, this machine, and the table of cards.

pictures.scaling = {
  draw(w, d) {
    const c = d.cards[0], parts = terms.filter(t => d[t] > 0).map((t, i) => ({value: d[t], kind: i % 8, name: `${t}: ${bytes(d[t])}`, term: t})), held = html('div');
    w.curve = html('div');
    w.place.replaceChildren(html('h3', {}, `Memory of each of ${d.settings.devices} ${d.settings.devices === 1 ? 'card' : 'cards'}`), held, html('h3', {}, 'How it scales'), w.curve);
    budget(held, `memory of each of ${d.settings.devices} cards`, parts, c.has);
    w.more.replaceChildren(legend(parts.map(p => [p.kind, `${p.term} ${bytes(p.value)}`])), html('p', {class: 'note'}, c.step_range ? `A step ${time(c.step_range[0])} to ${time(c.step_range[1])}, by a roofline of products, memory and links. Nothing was run.` : 'Nothing was run.'));
    this.scale(w, d);
  },
  // scale asks the same for each number of cards, and draws what they do beside as many times what one does.
  async scale(w, d) {
    const here = w.curve, query = new URLSearchParams(w.query()), counts = [...w.input('devices').options].map(o => o.value);
    let points;
    try {
      points = await Promise.all(counts.map(async n => {
        query.set('devices', n);
        query.set('zero', n === '1' ? '0' : w.get('zero')); // one card shares nothing
        const got = +n === d.settings.devices ? d : await ask(`/api/widgets/scaling?${query}`);
        return [+n, got.cards[0].per_second, got.cards[0].step_seconds];
      }));
    } catch (e) { here.replaceChildren(html('p', {class: 'note'}, e.message)); return; }
    points = points.filter(([, v]) => v > 0);
    if (here !== w.curve || points.length < 2) return; // another question has come
    const [first, last] = [points[0], points.at(-1)], ideal = points.map(([n]) => [n, first[1] * n / first[0]]), share = ([n, v]) => v / (first[1] * n / first[0]);
    const plot = html('div');
    here.replaceChildren(plot, legend([[0, 'as modelled'], [6, 'as many times what one card does']]), table(['>cards', '>a step', '>tokens or samples a second', '>of ideal'], points.map(p => [String(p[0]), time(p[2]), digits(p[1]), digits(100 * share(p), 3) + ' %']), 'throughput by the number of cards'));
    const p = picture(plot, 220, `${last[0]} cards do ${digits(last[1])} a second, ${digits(100 * share(last), 3)} % of ${last[0]} times what one does`);
    const a = axes(p, {low: first[0], high: last[0], log: true, at: points.map(([n]) => n), label: 'cards', text: v => digits(v)}, {low: first[1] / 1.5, high: ideal.at(-1)[1] * 1.5, log: true, label: 'a second', text: v => rate(v, '')});
    line(p, a, ideal, 6);
    line(p, a, points, 0);
    for (const [n, v] of points) p.put('circle', {cx: a.X(n), cy: a.Y(v), r: n === d.settings.devices ? 6 : 3.5, class: 'f0'});
  },
};

pictures.machine = {
  draw(w, d) {
    w.more.replaceChildren(table(['device', 'kind', 'name', '>memory'], (d.devices || []).map(x => [x.id, x.kind, x.name, x.values?.memory_total_bytes ? bytes(x.values.memory_total_bytes) : '–']), 'devices'),
      ...(d.no_cards ? [html('p', {class: 'note'}, `${d.no_cards}: ${d.hint}.`)] : []));
  },
};

pictures.cards = {
  draw(w, d) {
    const gpus = d.filter(x => x.kind === 'gpu'), cpus = d.filter(x => x.kind === 'cpu'), flops = v => v ? digits(v / 1e12, 3) : '–';
    w.more.replaceChildren(html('h3', {}, 'GPUs'),
      table(['card', '>SMs', '>MHz', '>TFLOP/s float32', '>half', '>GB/s', '>memory', '>L2', '>host GB/s', 'source'], gpus.map(g => [g.model, String(g.multiprocessors), String(g.clock_mhz), flops(g.float32_flops), flops(g.tensor_operations.float16), digits(g.memory_bytes_per_second / 1e9), bytes(g.memory_bytes), bytes(g.l2_bytes), digits(g.host_bytes_per_second / 1e9), g.source]), 'cards'),
      html('h3', {}, 'Processors'),
      table(['processor', '>cores', '>MHz', '>TFLOP/s float32', '>GB/s', 'how', 'source'], cpus.map(c => [c.model, String(c.cores), String(c.clock_mhz), flops(c.float32_flops), digits(c.memory_bytes_per_second / 1e9), c.measured ? 'measured here' : 'published', c.source.split(';')[0]]), 'processors'));
  },
};

// Steps: a launch that waits, and what there is to see of it. Commands are those of warpline sim debug.

// touched is what accesses come to.
const touched = all => all?.map(a => a.wavefronts ? `${a.wavefronts} ${a.wavefronts === 1 ? 'pass' : 'passes'} over the banks` : `${a.sectors} ${a.sectors === 1 ? 'sector' : 'sectors'} (${a.least} at least)`).join(', ') || 'none';

const looks = [['lanes'], ['warps'], ['registers'], ['list'], ['shared'], ['breaks']];

pictures.steps = {
  restart(w) { clearInterval(w.playing); },
  async ask(w) {
    clearInterval(w.playing);
    const turn = w.turn = (w.turn || 0) + 1;
    w.state('running');
    try {
      if (w.sim) fetch('/api/sim/' + w.sim, {method: 'DELETE'});
      const begun = await post('/api/sim', {query: w.query()});
      if (turn !== w.turn) { fetch('/api/sim/' + begun.id, {method: 'DELETE'}); return; }
      w.sim = begun.id;
      w.command(begun.command);
      await this.run(w, ['where']);
    } catch (e) {
      w.sim = null;
      w.problem(e.message);
      w.state('error');
    }
  },
  // run does a command, and looks.
  async run(w, ...commands) {
    w.state('running');
    try {
      const replies = await post('/api/sim/' + w.sim, {commands: [...commands, ...looks]});
      const failed = replies.slice(0, commands.length).find(r => !r.ok);
      w.problem(failed ? failed.error + ': ' + failed.hint : '');
      const stop = replies.slice(0, commands.length).map(r => r.stop).filter(Boolean).pop() || w.stopped;
      w.stopped = stop;
      w.data = {stop, lanes: replies.at(-6).lanes, warps: replies.at(-5).warps, registers: replies.at(-4).registers, source: replies.at(-3), shared: replies.at(-2), breaks: replies.at(-1).breaks || []};
      w.section.dataset.query = w.query();
      w.show();
      w.state('done');
      return !failed && !stop.ended;
    } catch (e) {
      clearInterval(w.playing);
      w.problem(e.message);
      w.state('error');
      return false;
    }
  },
  act(w, name) {
    if (name !== 'start') clearInterval(w.playing);
    if (name === 'reset') { w.set(w.first); w.ask(); return; }
    if (!w.sim) return;
    switch (name) {
    case 'start': play(w, 250, () => this.run(w, ['step', 'warp'])); break;
    case 'step': this.run(w, ['step', 'warp']); break;
    case 'back': this.run(w, ['back']); break;
    case 'continue': this.run(w, ['continue']); break;
    }
  },
  draw(w, d) {
    const s = d.stop, mask = s.ended ? 0 : parseInt(s.active, 16) >>> 0, count = [...mask.toString(2)].filter(b => b === '1').length;
    for (const [name, v] of [['line', s.ptx_line], ['block', s.block], ['warp', s.warp], ['lane', s.lane], ['active', count], ['event', s.event], ['reason', s.ended ? 'the end' : s.reason], ['findings', s.ended ? s.findings : s.finding ? 1 : 0], ['sectors', touched(s.accesses)]]) w.value(name, '', v);
    const wide = w.place.clientWidth, across = wide > 560 ? 32 : 16, side = Math.min(wide / across, 34), rows = 32 / across;
    const p = picture(w.place, rows * side + 26, s.ended ? 'the kernel has ended' : `warp ${s.warp} of block ${s.block}: ${count} of 32 lanes active`);
    p.put('text', {x: 0, y: 14, class: 'strong'}, s.ended ? 'the kernel has ended' : `block ${s.block}, warp ${s.warp}: its lanes`);
    for (let i = 0; i < 32; i++) {
      const l = d.lanes?.[i], x = (i % across) * side, y = 22 + Math.floor(i / across) * side, on = mask >>> i & 1;
      p.put('rect', {x, y, width: side - 2, height: side - 2, rx: 3, class: on ? 'f0' : !l || l.state === 'exited' || l.state === 'none' ? 'box' : 'idle'});
      p.put('text', {x: x + side / 2 - 1, y: y + side / 2 + 4, 'text-anchor': 'middle', class: on ? 'on' : ''}, String(i));
    }
    const focus = (label, name, list, now) => {
      const id = `steps-look-${name}`, select = html('select', {id}, ...list.map(n => html('option', {value: n, ...(n === now ? {selected: ''} : {})}, String(n))));
      select.addEventListener('change', () => this.run(w, [name, select.value]));
      return html('div', {class: 'control'}, html('label', {for: id}, label), select);
    };
    const parts = [legend([[0, 'active'], ['idle', 'waits, or its predicate does not hold']])];
    if (s.finding) parts.push(html('p', {class: 'bad'}, `${s.finding.check}: ${s.finding.message}`));
    if (!s.ended) parts.push(html('div', {class: 'controls'}, focus('look at lane', 'lane', Array.from({length: 32}, (_, i) => i), s.lane), focus('look at warp', 'warp', (d.warps || []).map(x => x.warp), s.warp)));
    if (d.source?.ok) {
      const name = d.source.text.split('\n')[0];
      const lines = d.source.source.map(l => {
        const at = (name.endsWith('.ptx') ? 'ptx:' : '') + l.line, b = html('button', {type: 'button', class: 'stop', 'aria-label': `stop at line ${l.line}`}, String(l.line));
        b.addEventListener('click', () => this.run(w, ['break', at]));
        return html('div', l.next ? {class: 'next', 'aria-current': 'true'} : {}, b, html('code', {}, l.text || ' '));
      });
      parts.push(html('h3', {}, name), html('div', {class: 'listing scroll', tabindex: '0', role: 'region', 'aria-label': 'lines around the next one'}, ...lines), html('p', {class: 'note'}, s.ended ? '' : `PTX line ${s.ptx_line}: ${s.ptx}`));
      if (d.breaks.length) {
        const clear = html('button', {type: 'button'}, 'forget the stops');
        clear.addEventListener('click', () => this.run(w, ['delete']));
        parts.push(html('p', {class: 'note'}, `${d.breaks.length} stops `, clear));
      }
    }
    const two = html('div', {class: 'two'});
    if (d.registers) two.append(html('div', {}, html('h3', {}, `Registers of lane ${s.lane}`), table(['register', 'type', '>value'], d.registers.map(r => [r.name, r.type, r.values.find(v => v !== '') ?? '?']), 'registers')));
    if (d.shared?.ok) two.append(html('div', {}, html('h3', {}, 'Shared memory, by bank'), html('pre', {tabindex: '0', class: 'wide'}, d.shared.text)));
    w.more.replaceChildren(...parts, two);
  },
};

// Training: the loss as it comes, and a link to the live view.

pictures.training = {
  start(w) { w.lines = []; this.poll(w); },
  async act(w, name) {
    w.problem('');
    try {
      if (name === 'pause') { await reach('/api/training', {method: 'DELETE'}); return; }
      w.lines = [];
      w.command((await post('/api/training', {query: w.query()})).command);
      this.poll(w);
    } catch (e) { w.problem(e.message); w.state('error'); }
  },
  async poll(w) {
    clearTimeout(w.polling);
    let d;
    try {
      d = await ask('/api/training?from=' + w.lines.length);
    } catch (e) {
      w.problem(e.message);
      w.state('error');
      return;
    }
    if (d.from < w.lines.length) w.lines = [];
    w.lines.push(...d.lines);
    w.command(d.command);
    w.data = w.lines;
    w.view = d.view;
    this.draw(w);
    if (d.state) w.state(d.state === 'running' ? 'running' : d.state);
    if (d.error) w.problem(refusal(d));
    if (d.state === 'running') w.polling = setTimeout(() => this.poll(w), 400);
  },
  draw(w) {
    const steps = w.lines.filter(l => 'loss' in l && 'ms' in l), last = steps.at(-1), final = w.lines.find(l => l.final), score = w.lines.filter(l => 'accuracy' in l).at(-1);
    w.value('step', '', last?.step);
    w.value('loss', '', last?.loss);
    w.value('step-seconds', '', last && last.ms / 1e3);
    w.value('accuracy', '', score?.accuracy);
    w.value('peak', '', final?.peak_bytes);
    const link = html('a', {href: '/explore/training/live/', target: '_blank'}, 'its live view: memory by kind, timeline, findings, profiles');
    w.more.replaceChildren(...(w.view ? [html('p', {}, link)] : []));
    if (steps.length < 2) { w.place.replaceChildren(); return; }
    const stride = Math.ceil(steps.length / 1000), shown = steps.filter((_, i) => i % stride === 0 || i === steps.length - 1);
    const p = picture(w.place, 240, `loss ${digits(shown[0].loss)} at step ${shown[0].step}, ${digits(last.loss)} at step ${last.step}`);
    const a = axes(p, {low: shown[0].step, high: last.step, label: 'step'}, {low: Math.min(0, ...shown.map(s => s.loss)), high: Math.max(...shown.map(s => s.loss)) * 1.05, label: 'loss', text: v => digits(v, 3)});
    line(p, a, shown.map(s => [s.step, s.loss]), 0);
  },
};
