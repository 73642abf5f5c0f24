// Package tracetest makes traces as PyTorch's profiler writes them, for tests and benchmarks: a small machine of one host
// thread and a device with streams runs the steps of a training, and every time follows from what it does.
//
// A launch takes LaunchCost on the host, and no more than 1,024 may be queued. A kernel begins 4 µs behind its launch at the
// earliest, 1 µs behind the one before on its stream, and where it waits for another stream, behind that. Products take
// FLOP / (312e12 x 0.6) seconds, what only moves memory bytes / (1.555e12 x 0.8): an A100 with mixed precision that runs
// well. Two trainings are built on that, ResNet and GPT, that have nothing wrong with them; each field of Options breaks one
// thing.
package tracetest

import (
	"bytes"
	"fmt"
	"strconv"
)

// Times in nanoseconds.
const (
	us = 1_000
	ms = 1_000_000
)

const (
	tensorRate = 312e12 * 0.6 / 1e9 // FLOP per ns
	plainRate  = 19.5e12 * 0.8 / 1e9
	memoryRate = 1.555e12 * 0.8 / 1e9 // bytes per ns
	queueLimit = 1024
)

// Machine is the host, the device and what they write.
type Machine struct {
	LaunchCost int64 // of the host, ns
	now        int64
	free       map[int]int64 // by stream, when it is
	begins     []int64       // of what was launched
	id         int
	out        bytes.Buffer
	Meta       string // members of the outer object before the events
	noDevice   bool
	volta      bool
	Old        bool // names of 2021, whole microseconds since 1970
}

const host = 4242

// event writes one event of the trace.
func (m *Machine) event(cat, name string, pid, tid int, start, dur int64, args string) {
	if m.noDevice && pid == 0 {
		return
	}
	if m.out.Len() > 0 {
		m.out.WriteString(",\n")
	}
	if m.Old {
		old := map[string]string{"cpu_op": "Operator", "user_annotation": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
		fmt.Fprintf(&m.out, `{"ph": "X", "cat": %q, "name": %q, "pid": %d, "tid": "%d", "ts": %d, "dur": %d, "args": {%s}}`,
			old[cat], name, pid, tid, 1623142623460111+start/us, (start+dur)/us-start/us, args)
		return
	}
	fmt.Fprintf(&m.out, `{"ph": "X", "cat": %q, "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %s, "args": {%s}}`,
		cat, name, pid, tid, micro(start), micro(dur), args)
}

func micro(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

// Work lets the host do something that the trace does not see.
func (m *Machine) Work(ns int64) { m.now += ns }

// Range is a range or operator around what inside does.
func (m *Machine) Range(cat, name, args string, inside func()) {
	start := m.now
	m.now += us
	inside()
	m.now += us
	m.id++
	if args != "" {
		args = ", " + args
	}
	m.event(cat, name, host, host, start, m.now-start, `"External id": `+strconv.Itoa(m.id)+args)
}

// Op is an operator with operands of the given shapes and types.
func (m *Machine) Op(name, shapes, types string, inside func()) {
	m.Range("cpu_op", name, fmt.Sprintf(`"Input Dims": %s, "Input type": %s, "Call stack": "train.py(41): step;torch/nn/modules/module.py(1518): _call_impl"`, shapes, types), inside)
}

// call is a call of the runtime; it gives the correlation.
func (m *Machine) call(name string, cost int64) int {
	m.id++
	m.event("cuda_runtime", name, host, host, m.now, cost, `"cbid": 211, "correlation": `+strconv.Itoa(m.id))
	m.now += cost
	return m.id
}

// enqueue gives the beginning of work of a duration on a stream that waits for other streams.
func (m *Machine) enqueue(stream int, dur int64, after ...int) int64 {
	begin := max(m.now+4*us, m.free[stream]+us)
	for _, s := range after {
		begin = max(begin, m.free[s]+us)
	}
	m.free[stream] = begin + dur
	m.begins = append(m.begins, begin)
	return begin
}

// Launch launches a kernel; after names streams that it waits for.
func (m *Machine) Launch(name string, stream int, dur int64, extra string, after ...int) {
	cost := m.LaunchCost
	if n := len(m.begins); n >= queueLimit && m.begins[n-queueLimit] > m.now {
		cost += m.begins[n-queueLimit] - m.now
	}
	id := m.call("cudaLaunchKernel", cost)
	if extra == "" {
		extra = `"blocks per SM": 8.0`
	}
	m.event("kernel", name, 0, stream, m.enqueue(stream, dur, after...), dur,
		fmt.Sprintf(`"device": 0, "stream": %d, "correlation": %d, %s`, stream, id, extra))
}

// Copy copies without waiting; a pageable copy holds the host until it is over.
func (m *Machine) Copy(kind string, stream int, bytes int64, rate float64, wait bool) {
	dur := int64(float64(bytes)/rate) + 1500
	at := m.now
	begin := m.enqueue(stream, dur)
	cost := m.LaunchCost
	if wait {
		cost = begin + dur - at + 2*us
	}
	id := m.call("cudaMemcpyAsync", cost)
	m.event("gpu_memcpy", "Memcpy "+kind, 0, stream, begin, dur,
		fmt.Sprintf(`"device": 0, "stream": %d, "correlation": %d, "bytes": %d, "memory bandwidth (GB/s)": %.3f`, stream, id, bytes, float64(bytes)/float64(dur)))
}

// Sync waits until a stream is free.
func (m *Machine) Sync(stream int) {
	m.call("cudaStreamSynchronize", max(m.free[stream]-m.now, 0)+3*us)
}

// Call is a call of the runtime that takes a time.
func (m *Machine) Call(name string, ns int64) { m.call(name, ns) }

// Product is a matrix product or convolution of some FLOP.
func (m *Machine) Product(op, shapes, types, kernel string, flop, rate float64) {
	m.Op(op, shapes, types, func() { m.Launch(kernel, 7, int64(flop/rate)+2*us, "") })
}

// Move is an operation that only moves memory.
func (m *Machine) Move(op, kernel string, bytes float64) {
	m.Op(op, "[]", "[]", func() { m.Launch(kernel, 7, int64(bytes/memoryRate)+2*us, "") })
}

// JSON is the trace.
func (m *Machine) JSON() []byte {
	meta := m.Meta
	if !m.Old {
		meta += `"displayTimeUnit": "ms", "baseTimeNanoseconds": 1759874214000000000, `
	}
	card := `"name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85094825984, "computeMajor": 8, "numSms": 108`
	if m.volta {
		card = `"name": "Tesla V100-SXM2-32GB", "totalGlobalMem": 34084028416, "computeMajor": 7, "numSms": 80`
	}
	return []byte(`{"schemaVersion": 1, "deviceProperties": [{"id": 0, ` + card + `, "computeMinor": 0, "warpSize": 32}], ` +
		meta + "\"traceEvents\": [\n" + m.out.String() + "\n]}\n")
}
