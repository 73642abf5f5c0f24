// Figures for people. What scripts read is data-raw.

export function digits(v, n = 4) {
  if (!isFinite(v)) return '–';
  const a = Math.abs(v);
  if (a !== 0 && (a >= 1e9 || a < 1e-3)) return v.toExponential(n - 2);
  if (Number.isInteger(v)) return v.toLocaleString('en');
  return (+v.toPrecision(n)).toLocaleString('en', {maximumFractionDigits: 6});
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0, v = n;
  while (Math.abs(v) >= 1024 && i < units.length - 1) { v /= 1024; i++; }
  return (i ? v.toPrecision(Math.abs(v) >= 1000 ? 4 : 3) : v) + ' ' + units[i];
}

export function time(s) {
  if (s === 0) return '0 s';
  for (const [least, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [0, 'ns']]) {
    if (Math.abs(s) >= least) return digits(s / (unit === 'ns' ? 1e-9 : least)) + ' ' + unit;
  }
}

export function rate(v, unit) {
  for (const [least, letter] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (v >= least) return digits(v / least, 3) + ' ' + letter + unit;
  }
  return digits(v, 3) + ' ' + unit;
}

// figure is a value with its unit, as output[data-value] shows it.
export function figure(v, unit) {
  if (v === null || v === undefined) return unit === 'x' ? 'any' : '–';
  if (typeof v !== 'number') return String(v);
  switch (unit) {
  case 'bytes': return v >= 1024 ? `${bytes(v)} (${v.toLocaleString('en')} B)` : v + ' B';
  case 's': return time(v);
  case 'ms': return digits(v) + ' ms';
  case '%': return digits(v, 3) + ' %';
  case 'share': return digits(100 * v, 3) + ' %';
  case 'x': return digits(v) + ' ×';
  case 'flops': return rate(v, 'FLOP/s');
  case 'B/s': return rate(v, 'B/s');
  case '': case undefined: return digits(v);
  }
  return digits(v) + ' ' + unit;
}
