package simcuda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// world runs random work on several streams of two devices, with the waits that make it right and no others. A model on
// plain slices runs the same work in the order of the calls.
type world struct {
	*rig
	rand    *rand.Rand
	streams []worldStream
	buffers []*buffer
	scale   [2]driver.Function
	add     [2]driver.Function
}

type worldStream struct {
	device int
	handle driver.Stream
}

// buffer is device memory, or pinned host memory, with what has to happen before it is used again.
type buffer struct {
	device int // -1 for the host
	ptr    driver.Ptr
	host   uintptr
	mem    []float32 // at host
	model  []float32
	writer *use
	reads  []use
}

// use is work on a buffer: the stream, and an event that was recorded after it.
type use struct {
	stream int
	event  driver.Event
}

const elements = 33

func newWorld(t *testing.T, c Config, rng *rand.Rand) *world {
	c.Devices = 2
	w := &world{rig: newRig(t, c), rand: rng}
	for d := range 2 {
		w.scale[d], w.add[d] = w.kernel(d, "scale"), w.kernel(d, "add")
		for i := range 3 {
			flags := uint32(driver.StreamNonBlocking)
			if i == 2 {
				flags = 0
			}
			w.streams = append(w.streams, worldStream{d, w.stream(d, flags)})
		}
		w.streams = append(w.streams, worldStream{d, driver.StreamLegacy})
		for range 4 {
			v := w.values()
			w.buffers = append(w.buffers, &buffer{device: d, ptr: w.upload(d, v), model: v})
		}
		w.do(d, w.api.CtxSynchronize)
	}
	for range 3 {
		h, v := pinnedFloats(w.rig, elements)
		copy(v, w.values())
		w.buffers = append(w.buffers, &buffer{device: -1, host: h, mem: v, model: slices.Clone(v)})
	}
	return w
}

func (w *world) values() []float32 {
	return floats(elements, func(int) float32 { return float32(w.rand.IntN(1000)) })
}

// pick is a random buffer on the host or on a device.
func (w *world) pick(host bool, device int) *buffer {
	for {
		b := w.buffers[w.rand.IntN(len(w.buffers))]
		if host && b.device < 0 || !host && b.device == device {
			return b
		}
	}
}

// before lets a stream wait for what conflicts with its using b.
func (w *world) before(stream int, b *buffer, write bool) {
	wait := func(u use) {
		if u.stream != stream {
			w.do(w.streams[stream].device, func() driver.Result { return w.api.StreamWaitEvent(w.streams[stream].handle, u.event) })
		}
	}
	if b.writer != nil {
		wait(*b.writer)
	}
	if write {
		for _, u := range b.reads {
			wait(u)
		}
	}
}

// after notes that a stream has been given work on b.
func (w *world) after(stream int, b *buffer, write bool) {
	s := w.streams[stream]
	u := use{stream, w.event(s.device, driver.EventDisableTiming)}
	w.do(s.device, func() driver.Result { return w.api.EventRecord(u.event, s.handle) })
	if write {
		b.writer, b.reads = &u, nil
		return
	}
	b.reads = append(b.reads, u)
}

// hostUse waits for what conflicts with the host's using b.
func (w *world) hostUse(b *buffer) {
	uses := b.reads
	if b.writer != nil {
		uses = append(uses, *b.writer)
	}
	for _, u := range uses {
		d := w.streams[u.stream].device
		switch w.rand.IntN(3) {
		case 0:
			w.do(d, func() driver.Result { return w.api.EventSynchronize(u.event) })
		case 1:
			w.do(d, func() driver.Result { return w.api.StreamSynchronize(w.streams[u.stream].handle) })
		default:
			for w.api.Do(w.ctx[d], func() driver.Result { return w.api.EventQuery(u.event) }) == driver.NotReady {
			}
		}
	}
	b.writer, b.reads = nil, nil
}

// step does one random thing, on the machine and in the model.
func (w *world) step() {
	i := w.rand.IntN(len(w.streams))
	s := w.streams[i]
	x, y, z, h := w.pick(false, s.device), w.pick(false, s.device), w.pick(false, s.device), w.pick(true, 0)
	const bytes = 4 * elements
	work := func(dst *buffer, f func() driver.Result, src ...*buffer) {
		for _, b := range src {
			w.before(i, b, false)
		}
		w.before(i, dst, true)
		w.do(s.device, f)
		for _, b := range src {
			w.after(i, b, false)
		}
		w.after(i, dst, true)
	}
	switch w.rand.IntN(9) {
	case 0:
		work(x, func() driver.Result { return w.api.MemcpyHtoDAsync(x.ptr, h.host, bytes, s.handle) }, h)
		copy(x.model, h.model)
	case 1:
		work(h, func() driver.Result { return w.api.MemcpyDtoHAsync(h.host, x.ptr, bytes, s.handle) }, x)
		copy(h.model, x.model)
	case 2:
		if x != y {
			work(x, func() driver.Result { return w.api.MemcpyDtoDAsync(x.ptr, y.ptr, bytes, s.handle) }, y)
			copy(x.model, y.model)
		}
	case 3:
		work(x, func() driver.Result {
			return w.api.LaunchKernelEx(line(elements, s.handle), w.scale[s.device], pack(x.ptr, uint32(elements)))
		})
		for j := range x.model {
			x.model[j] *= 2
		}
	case 4:
		work(z, func() driver.Result {
			return w.api.LaunchKernelEx(line(elements, s.handle), w.add[s.device], pack(x.ptr, y.ptr, z.ptr, uint32(elements)))
		}, x, y)
		for j := range z.model {
			z.model[j] = x.model[j] + y.model[j]
		}
	case 5:
		work(x, func() driver.Result { return w.api.MemsetD32Async(x.ptr, 0x40400000, elements, s.handle) })
		for j := range x.model {
			x.model[j] = 3
		}
	case 6:
		far := w.pick(false, 1-s.device)
		work(x, func() driver.Result {
			return w.api.MemcpyPeerAsync(x.ptr, w.ctx[s.device], far.ptr, w.ctx[1-s.device], bytes, s.handle)
		}, far)
		copy(x.model, far.model)
	case 7:
		w.hostUse(h)
		if !slices.Equal(h.mem, h.model) {
			w.t.Errorf("host memory is %v, want %v", h.mem, h.model)
		}
		copy(h.mem, w.values())
		copy(h.model, h.mem)
	case 8:
		w.through(i, x)
	}
}

// through copies a buffer to memory of the stream and back, doubled.
func (w *world) through(i int, x *buffer) {
	s := w.streams[i]
	const bytes = 4 * elements
	w.before(i, x, true)
	var p driver.Ptr
	w.do(s.device, func() (res driver.Result) { p, res = w.api.MemAllocAsync(4096, s.handle); return res })
	w.do(s.device, func() driver.Result { return w.api.Annotate(p, 4096, driver.Free, s.handle, "pool") })
	part := p + driver.Ptr(512*w.rand.IntN(8))
	w.do(s.device, func() driver.Result { return w.api.Annotate(part, bytes, driver.Fresh, s.handle, "part") })
	w.do(s.device, func() driver.Result { return w.api.MemcpyDtoDAsync(part, x.ptr, bytes, s.handle) })
	w.do(s.device, func() driver.Result {
		return w.api.LaunchKernelEx(line(elements, s.handle), w.scale[s.device], pack(part, uint32(elements)))
	})
	w.do(s.device, func() driver.Result { return w.api.MemcpyDtoDAsync(x.ptr, part, bytes, s.handle) })
	w.do(s.device, func() driver.Result { return w.api.Annotate(part, bytes, driver.Free, s.handle, "part done") })
	w.do(s.device, func() driver.Result { return w.api.MemFreeAsync(p, s.handle) })
	w.after(i, x, true)
	for j := range x.model {
		x.model[j] *= 2
	}
}

// TestRandomWork compares eager and late machines of several seeds with the model.
func TestRandomWork(t *testing.T) {
	seed := testutil.Rand(t).Uint64()
	for _, c := range []Config{{}, {LateEffects: true}, {LateEffects: true, Seed: 1}, {LateEffects: true, Seed: 2}, {LateEffects: true, Seed: 3},
		{LateEffects: true, Seed: seed | 1, Checks: gpusim.AllChecks, Schedule: gpusim.Independent}} {
		t.Run(fmt.Sprintf("late=%v,seed=%d", c.LateEffects, c.Seed), func(t *testing.T) {
			for round := range uint64(8) {
				w := newWorld(t, c, rand.New(rand.NewPCG(seed, round)))
				for range 60 {
					w.step()
				}
				for d := range 2 {
					w.do(d, w.api.CtxSynchronize)
				}
				for i, b := range w.buffers {
					got := b.mem
					if b.device >= 0 {
						got = w.download(b.device, b.ptr, elements)
					}
					if !slices.Equal(got, b.model) {
						t.Fatalf("round %d, buffer %d: %v, want %v", round, i, got, b.model)
					}
				}
				if found := w.sys.Findings(); len(found) != 0 {
					t.Fatal(found)
				}
			}
		})
	}
}
