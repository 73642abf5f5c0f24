package prof

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// WriteTrace writes the window as the Chrome trace that PyTorch's profiler writes, for Perfetto, HTA and TensorBoard; gzip
// where the path ends in .gz. The file is there whole or not at all.
func (p *Profile) WriteTrace(path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		if !strings.HasSuffix(path, ".gz") {
			return p.Trace(w, filepath.Base(path))
		}
		z := gzip.NewWriter(w)
		if err := p.Trace(z, filepath.Base(path)); err != nil {
			return err
		}
		return z.Close()
	})
}

// WriteTensorBoard writes the trace to a folder, under the name by which TensorBoard's plugin and HTA find it,
// WORKER.NANOSECONDS.pt.trace.json.gz, and returns its path. Without a worker it is the host and the process.
func (p *Profile) WriteTensorBoard(dir, worker string) (path string, err error) {
	if worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("prof: no name for the worker: %w", err)
		}
		worker = fmt.Sprintf("%s_%d", host, p.pid())
	}
	if strings.ContainsAny(worker, "/\\") {
		return "", fmt.Errorf("prof: %q is no worker's name: it has a slash", worker)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path = filepath.Join(dir, fmt.Sprintf("%s.%d.pt.trace.json.gz", worker, time.Now().UnixNano()))
	return path, p.WriteTrace(path)
}

// Trace writes the trace under a name.
//
// Times are microseconds since the window's beginning, with three decimals. The host's slices lie on as many rows as it takes
// for them to nest: which goroutine did what is not recorded.
func (p *Profile) Trace(w io.Writer, name string) error {
	b := bufio.NewWriterSize(w, 1<<16)
	t := &tracer{w: b, p: p, pid: p.pid()}
	t.head()
	for _, e := range t.slices() {
		t.slice(e)
	}
	t.flows()
	t.memory()
	t.emit(event{ph: "i", name: "Record Window End", scope: "g", pid: `""`, tid: `""`, ts: int64(p.Took)})
	fmt.Fprintf(b, "\n],\"traceName\":%s}\n", quoted(name))
	if t.err != nil {
		return t.err
	}
	return b.Flush()
}

// pid is the process in a trace: this one, or 1 where times are a model's, so that the trace is the same in every run.
func (p *Profile) pid() int {
	if slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Modelled }) {
		return 1
	}
	return os.Getpid()
}

// tracer writes a trace.
type tracer struct {
	w     *bufio.Writer
	p     *Profile
	pid   int
	n     int              // events written
	open  [][]int64        // ends of the slices that are open, by row of the host
	ops   map[uint64]bound // forward operations by their number
	links []link
	err   error
}

// bound is where a slice lies, for flows.
type bound struct {
	pid, tid string
	ts       int64
}

type link struct {
	from, to bound
	name     string
	id       int
}

// event is one of the trace. pid and tid are JSON; no dur is -1.
type event struct {
	ph, cat, name, scope string
	pid, tid             string
	ts, dur              int64
	id                   int
	args                 []arg
}

type arg struct {
	key   string
	value any
}

func (t *tracer) emit(e event) {
	if t.n++; t.n > 1 {
		t.w.WriteByte(',')
	}
	fmt.Fprintf(t.w, "\n{\"ph\":%q,\"name\":%s,\"pid\":%s,\"tid\":%s,\"ts\":%s", e.ph, quoted(e.name), e.pid, e.tid, micros(e.ts))
	if e.cat != "" {
		fmt.Fprintf(t.w, ",\"cat\":%q", e.cat)
	}
	if e.ph == "X" {
		fmt.Fprintf(t.w, ",\"dur\":%s", micros(e.dur))
	}
	if e.scope != "" {
		fmt.Fprintf(t.w, ",\"s\":%q", e.scope)
	}
	if e.id != 0 {
		fmt.Fprintf(t.w, ",\"id\":%d", e.id)
	}
	if e.ph == "f" {
		t.w.WriteString(`,"bp":"e"`)
	}
	for i, a := range e.args {
		t.w.WriteString(map[bool]string{true: `,"args":{`, false: ","}[i == 0])
		text, err := json.Marshal(a.value)
		t.err = cmp.Or(t.err, err)
		fmt.Fprintf(t.w, "%s:%s", quoted(a.key), text)
		if i == len(e.args)-1 {
			t.w.WriteByte('}')
		}
	}
	t.w.WriteByte('}')
}

// micros is nanoseconds as microseconds with three decimals; what lies before the window begins with it.
func micros(ns int64) string {
	ns = max(ns, 0)
	return fmt.Sprintf("%d.%03d", ns/1000, ns%1000)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always has a form
	return string(b)
}

// stream is the number of a queue among streams: 7 is CUPTI's for the first.
func stream(queue uint8) int { return 7 + int(queue) }

// head writes what comes before the events, and the names of their rows.
func (t *tracer) head() {
	t.w.WriteString(`{"schemaVersion":1,"deviceProperties":[`)
	for i, d := range t.p.Devices {
		q := d.Properties
		fmt.Fprintf(t.w, "%s{\"id\":%d,\"name\":%s,\"totalGlobalMem\":%d,\"computeMajor\":%d,\"computeMinor\":%d,\"numSms\":%d,\"warpSize\":%d}",
			map[bool]string{true: ",", false: ""}[i > 0], i, quoted(cmp.Or(q.Model, q.Name)), q.Memory, q.Compute[0], q.Compute[1], q.Multiprocessors, q.Warp)
	}
	fmt.Fprintf(t.w, "],\"distributedInfo\":{\"backend\": \"none\",\"rank\": 0,\"world_size\": 1},\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,\"traceEvents\":[")
	program := filepath.Base(os.Args[0])
	t.process(strconv.Itoa(t.pid), program, "CPU", t.pid)
	for i, d := range t.p.Devices {
		if !t.hosted(i) {
			t.process(strconv.Itoa(i), d.Name, fmt.Sprintf("GPU %d", i), 5000000+i)
		}
	}
}

func (t *tracer) process(pid, name, label string, order int) {
	for _, a := range []struct {
		name string
		arg  arg
	}{{"process_name", arg{"name", name}}, {"process_labels", arg{"labels", label}}, {"process_sort_index", arg{"sort_index", order}}} {
		t.emit(event{ph: "M", name: a.name, pid: pid, tid: "0", args: []arg{a.arg}})
	}
}

// hosted reports whether device i is the host's processor.
func (t *tracer) hosted(i int) bool { return t.p.Devices[i].Properties.Multiprocessors == 0 }

// piece is a slice of the host's rows.
type piece struct {
	began, ended int64
	e            *entry // nil: a step
	step         int
	call         int // of the driver, for the step of a launch's plan; -1: the operation, or range, itself
	id           int // of the operation; of a call that of its work
}

// slices are those of the host in the order in which they nest.
func (t *tracer) slices() []piece {
	var all []piece
	for i, s := range t.p.steps {
		end := int64(t.p.Took)
		if i+1 < len(t.p.steps) {
			end = t.p.steps[i+1].at
		}
		all = append(all, piece{began: s.at, ended: end, step: s.step, call: -1})
	}
	for i := range t.p.all {
		e := t.p.at(i)
		began, ended := e.start, e.start+e.took
		if e.Step == 0 || e.kernel == nil {
			all = append(all, piece{began: began, ended: ended, e: &e, call: -1, id: i + 1})
		}
		if e.Hosted || e.kind == device.KindRange {
			continue
		}
		c := e.calls()
		all = append(all, piece{began: c.began, ended: c.ended, e: &e, call: int(e.Step), id: i + 1})
	}
	sorting.By(all, func(a, b piece) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(b.ended, a.ended)) })
	return all
}

// lane is the first of the host's rows on which a slice nests.
func (t *tracer) lane(s piece) int {
	for i, l := range t.open {
		for len(l) > 0 && l[len(l)-1] <= s.began {
			l = l[:len(l)-1]
		}
		if t.open[i] = l; len(l) == 0 || l[len(l)-1] >= s.ended {
			t.open[i] = append(l, s.ended)
			return i
		}
	}
	t.open = append(t.open, []int64{s.ended})
	return len(t.open) - 1
}

// slice writes a slice of the host, and of a call what the device did for it.
func (t *tracer) slice(s piece) {
	at := bound{strconv.Itoa(t.pid), strconv.Itoa(t.pid + t.lane(s)), s.began}
	e := event{ph: "X", pid: at.pid, tid: at.tid, ts: s.began, dur: s.ended - s.began}
	switch {
	case s.e == nil:
		e.cat, e.name = "user_annotation", fmt.Sprintf("ProfilerStep#%d", s.step)
	case s.e.kind == device.KindRange:
		e.cat, e.name, e.args = "user_annotation", t.p.ranges[s.e.part-1].Name, []arg{{"Ev Idx", s.id}}
	case s.call >= 0:
		t.call(s, e, at)
		return
	case s.e.kind == device.KindWait:
		return // its call says all
	default:
		e.cat, e.name, e.args = "cpu_op", s.e.op(), t.operation(s)
		t.number(s.e, at)
	}
	t.emit(e)
}

// number links the work of a recorded operation with that of its gradient.
func (t *tracer) number(e *entry, at bound) {
	if t.ops == nil {
		t.ops = map[uint64]bound{}
	}
	from, forward := t.ops[e.seq]
	switch {
	case e.seq == 0:
	case !e.Backward && !forward:
		t.ops[e.seq] = at
	case e.Backward && forward:
		t.links = append(t.links, link{from, at, "fwdbwd", int(e.seq)})
		delete(t.ops, e.seq) // one arrow for each
	}
}

// operation is what is known of an operation.
func (t *tracer) operation(s piece) []arg {
	e := s.e
	out := []arg{{"External id", s.id}, {"Ev Idx", s.id}}
	if e.kernel != nil {
		var dims [][]int
		var types []string
		for _, in := range e.kernel.Ins {
			dims, types = append(dims, in.Dims), append(types, in.Type)
		}
		out = append(out, arg{"Input Dims", dims}, arg{"Input type", types})
	}
	if e.seq > 0 {
		out = append(out, arg{"Sequence number", e.seq})
	}
	if e.Backward {
		out = append(out, arg{"Fwd thread id", t.pid})
	}
	if s := &t.p.sites[e.Site]; len(s.Frames) > 0 {
		out = append(out, arg{"Call stack", s.String()})
	}
	if e.part > 0 {
		out = append(out, arg{"Module Hierarchy", t.p.hierarchy(e.part)})
	}
	if e.kernel != nil && e.Text != "" {
		out = append(out, arg{"Parameters", e.Text})
	}
	return out
}

// String is the frames as PyTorch's traces have them, the outermost last.
func (s *stack) String() string {
	var out []string
	for _, f := range s.Frames {
		out = append(out, fmt.Sprintf("%s(%d): %s", filepath.Base(f.File), f.Line, f.Function))
	}
	return strings.Join(out, ";")
}

// hierarchy is the ranges around one and its own, the outermost first.
func (p *Profile) hierarchy(number uint32) string {
	var names []string
	for ; number > 0; number = p.ranges[number-1].Parent {
		names = append(names, p.ranges[number-1].Name)
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// torchName is PyTorch's word for a dtype in traces.
func torchName(dt dtype.DType) string {
	if name, ok := map[dtype.DType]string{dtype.F32: "float", dtype.F64: "double", dtype.F16: "c10::Half", dtype.BF16: "c10::BFloat16", dtype.I64: "long",
		dtype.I32: "int", dtype.U8: "unsigned char", dtype.Bool: "bool"}[dt]; ok {
		return name
	}
	return dt.String()
}

// call writes a call of the driver and the work that it began.
func (t *tracer) call(s piece, e event, at bound) {
	e.cat, e.name = "cuda_runtime", t.runtime(s.e)
	correlation := t.n + 1
	e.args = []arg{{"correlation", correlation}, {"External id", s.id}}
	t.emit(e)
	if !s.e.work() || !s.e.known {
		return
	}
	gpu := bound{strconv.Itoa(int(s.e.Device)), strconv.Itoa(stream(s.e.Queue)), s.e.began}
	t.emit(event{ph: "X", cat: t.category(s.e), name: s.e.deed(), pid: gpu.pid, tid: gpu.tid, ts: gpu.ts, dur: s.e.ended - s.e.began,
		args: t.workArgs(s, correlation)})
	t.links = append(t.links, link{at, gpu, "ac2g", correlation})
}

// runtime is the call that asks for such work.
func (t *tracer) runtime(e *entry) string {
	switch e.kind {
	case device.KindLaunch:
		return "cudaLaunchKernel"
	case device.KindFill:
		return "cudaMemsetAsync"
	case device.KindCopy:
		return "cudaMemcpyAsync"
	}
	if e.Text == device.WaitQueue {
		return "cudaStreamWaitEvent"
	}
	return "cudaStreamSynchronize"
}

func (t *tracer) category(e *entry) string {
	switch e.kind {
	case device.KindFill:
		return "gpu_memset"
	case device.KindCopy:
		return "gpu_memcpy"
	}
	return "kernel"
}

// workArgs are those of a kernel, a copy or a fill.
func (t *tracer) workArgs(s piece, correlation int) []arg {
	e := s.e
	out := []arg{{"External id", s.id}, {"device", e.Device}, {"context", 1}, {"stream", stream(e.Queue)}, {"correlation", correlation}}
	if e.kind != device.KindLaunch {
		out = append(out, arg{"bytes", e.Bytes})
		if d := e.worked(); d > 0 {
			out = append(out, arg{"memory bandwidth (GB/s)", float64(e.Bytes) / float64(d)})
		}
		return out
	}
	if int(e.Step) < len(e.kernel.Steps) {
		k := &e.kernel.Steps[e.Step]
		out = append(out, arg{"queued", 0}, arg{"grid", k.Grid}, arg{"block", k.Block}, arg{"shared memory", k.Shared + k.Static})
		out = append(out, t.occupancy(k, &t.p.Devices[e.Device])...)
	}
	return out
}

// occupancy is how a kernel fills the multiprocessors of a device: how many blocks and warps each gets, and by the model how many of
// the warps that it can hold are there at a time. Registers that are not known do not count.
func (t *tracer) occupancy(k *device.Step, d *Device) (out []arg) {
	if k.Registers > 0 {
		out = append(out, arg{"registers per thread", k.Registers})
	}
	sms := d.Properties.Multiprocessors
	threads := k.Block[0] * k.Block[1] * k.Block[2]
	if sms == 0 || threads == 0 {
		return out
	}
	blocks := float64(k.Blocks()) / float64(sms)
	warps := float64((threads + cards.Warp - 1) / cards.Warp)
	out = append(out, arg{"blocks per SM", blocks}, arg{"warps per SM", blocks * warps})
	if m := cards.SMOf(d.Properties.Compute); threads <= cards.ThreadsPerBlock {
		fit := estimate.Occupy(m, k.Registers, threads, k.Shared+k.Static)
		share := min(blocks, float64(fit.Blocks)) * warps / float64(m.Threads/cards.Warp)
		out = append(out, arg{"est. achieved occupancy %", int(100 * share)})
	}
	return out
}

// flows writes the arrows from calls to their work, and from operations to their gradients.
func (t *tracer) flows() {
	for _, l := range t.links {
		t.emit(event{ph: "s", cat: l.name, name: l.name, pid: l.from.pid, tid: l.from.tid, ts: l.from.ts, id: l.id})
		t.emit(event{ph: "f", cat: l.name, name: l.name, pid: l.to.pid, tid: l.to.tid, ts: l.to.ts, id: l.id})
	}
}
