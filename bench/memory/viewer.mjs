// Steps PyTorch's viewer of memory snapshots through a file, in Chromium, and fails on any error of its console:
//
//	node viewer.mjs SNAPSHOT VIEWER OUT
//
// VIEWER is a folder with torch/utils/viz/MemoryViz.js (and process_alloc_data.js, where it imports that) and an installed
// d3 (npm install d3@7 esbuild ws). OUT gets a picture of each view. Nothing is fetched: what the page imports is served from
// the folder.
import {spawn, execFileSync} from 'node:child_process';
import {createServer} from 'node:http';
import {readFileSync, writeFileSync, mkdirSync, existsSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join, resolve} from 'node:path';

const [snapshot, folder, out] = process.argv.slice(2).map(p => resolve(p));
const require = createRequire(join(folder, 'package.json'));
const WebSocket = require('ws');
mkdirSync(out, {recursive: true});

const script = readFileSync(join(folder, 'MemoryViz.js'), 'utf8');
const imports = {};
for (const [, names, url] of script.matchAll(/import (.*?) from "(https:\/\/[^"]*\/(?:npm\/)?d3[^"]*)"/g)) {
  imports[url] = '/d3.js';
}
if (!existsSync(join(folder, 'd3.bundle.js'))) {
  execFileSync(join(folder, 'node_modules/.bin/esbuild'), ['--bundle', '--format=esm', `--outfile=${join(folder, 'd3.bundle.js')}`],
    {cwd: folder, input: 'export * from "d3"'});
}
const page = view => `<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({imports})}</script></head><body><script type="module">
import {add_local_files} from "./MemoryViz.js";
add_local_files([{name: "snapshot.pickle", base64: "${readFileSync(snapshot).toString('base64')}"}], ${JSON.stringify(view)});
</script></body></html>`;
const server = createServer((q, r) => {
  const {pathname, searchParams} = new URL(q.url, 'http://x');
  const name = pathname === '/d3.js' ? 'd3.bundle.js' : pathname.slice(1);
  if (pathname === '/') { r.setHeader('content-type', 'text/html'); r.end(page(searchParams.get('view'))); }
  else if (/^[\w.]+\.js$/.test(name) && existsSync(join(folder, name))) { r.setHeader('content-type', 'text/javascript'); r.end(readFileSync(join(folder, name))); }
  else { r.statusCode = 404; r.end(); }
}).listen(0, '127.0.0.1');
await new Promise(f => server.on('listening', f));
const base = `http://127.0.0.1:${server.address().port}/`;

const chromium = spawn('chromium', ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0', '--window-size=1400,900', `--user-data-dir=${out}/profile`, 'about:blank']);
const endpoint = await new Promise(f => chromium.stderr.on('data', d => { const m = /ws:\/\/\S+/.exec(d); if (m) f(m[0]); }));
const socket = new WebSocket(endpoint, {perMessageDeflate: false, maxPayload: 1 << 30});
await new Promise(f => socket.on('open', f));
let id = 0, failed = [];
const waiting = new Map();
socket.on('message', text => {
  const m = JSON.parse(text);
  if (waiting.has(m.id)) { waiting.get(m.id)(m); waiting.delete(m.id); }
  if (m.method === 'Runtime.exceptionThrown') failed.push(m.params.exceptionDetails.exception?.description ?? m.params.exceptionDetails.text);
  if (m.method === 'Runtime.consoleAPICalled' && m.params.type === 'error') failed.push(JSON.stringify(m.params.args));
  if (m.method === 'Log.entryAdded' && m.params.entry.level === 'error') failed.push(m.params.entry.text);
});
const stop = why => {
  for (const f of new Set([why, ...failed])) console.error(f);
  chromium.kill();
  process.exit(1);
};
const send = (method, params = {}, sessionId) => new Promise((f, fail) => {
  waiting.set(++id, m => m.error ? fail(new Error(method + ': ' + m.error.message)) : f(m.result));
  socket.send(JSON.stringify({id, method, params, sessionId}));
});
const {targetInfos} = await send('Target.getTargets');
const {sessionId} = await send('Target.attachToTarget', {targetId: targetInfos.find(t => t.type === 'page').targetId, flatten: true});
for (const domain of ['Page', 'Runtime', 'Log']) await send(domain + '.enable', {}, sessionId);
const run = async expression => {
  const r = await send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true}, sessionId);
  if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
  return r.result.value;
};
const picture = async name => writeFileSync(join(out, name + '.png'), Buffer.from((await send('Page.captureScreenshot', {}, sessionId)).data, 'base64'));
const until = async (what, expression) => {
  for (let i = 0; i < 300; i++) { if (await run(expression).catch(() => false)) return; await new Promise(f => setTimeout(f, 100)); }
  stop(`${what} did not come`);
};
const open = async view => {
  await send('Page.navigate', {url: base + '?view=' + encodeURIComponent(view)}, sessionId);
};

// Timeline: every allocation that is drawn is pointed at, from the first to the last.
await open('Active Memory Timeline');
await until('the timeline', 'document.querySelectorAll("svg polygon").length > 0');
const drawn = await run(`(() => { let n = 0; for (const p of document.querySelectorAll('svg polygon')) { for (const t of ['mouseover', 'mouseout']) p.dispatchEvent(new MouseEvent(t, {bubbles: true, view: window})); n++; } return n; })()`);
await picture('timeline');
console.log(`timeline: ${drawn} allocations`);

// State: every event is selected in turn, by the arrow key as a person would.
await open('Allocator State History');
await until('the events', 'location.href.includes("State") && [...document.querySelectorAll("pre")].filter(p => /^(alloc|free|segment)/.test(p.textContent)).length > 0');
const stepped = await run(`(() => {
  const events = [...document.querySelectorAll('pre')].filter(p => /^(alloc|free|segment|snapshot|OOM)/.test(p.textContent));
  events[0].dispatchEvent(new MouseEvent('mousedown', {bubbles: true, view: window}));
  let n = 1;
  for (; n < events.length; n++) {
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
    if (!events[n].getAttribute('style')) return 'event ' + n + ' is not selected: ' + events[n].textContent;
    if (n === Math.floor(events.length * 0.6)) window.middle = n;
  }
  return n;
})()`);
await picture('state-last');
if (typeof stepped !== 'number') failed.push(stepped);
await run(`for (let i = 0; i < ${Math.floor(0.3 * (Number(stepped) || 0))}; i++) document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))`);
await picture('state-middle');
console.log(`state: ${stepped} events`);

socket.close();
chromium.kill();
server.close();
for (const f of new Set(failed)) console.error(f);
process.exit(failed.length > 0 ? 1 : 0);
