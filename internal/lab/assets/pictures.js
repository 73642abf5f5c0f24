// What the widgets look like: a picture of an answer, and what their buttons do.

import {picture, axes, line, bars, legend, table, html} from './svg.js';
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
