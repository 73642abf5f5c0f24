package cuda

import (
	"errors"
	"fmt"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Transfer implements [device.Linked], with memory, a stream and events of its own.
func (d *Device) Transfer(n int64, toDevice, pinned bool, times int) (took []time.Duration, err error) {
	if n <= 0 || times <= 0 {
		return nil, fmt.Errorf("%s: %d copies of %d bytes", d.info.Name, times, n)
	}
	if n > d.info.Memory {
		return nil, d.outOfMemory(n)
	}
	t := &transfer{probe: probe{api: d.api}, bytes: n, toDevice: toDevice}
	if !pinned {
		b, err := hostmem.Alloc(int(n))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.Free()) }()
		t.host = b.Addr
		clear(hostmem.Bytes(t.host, int(n))) // its pages are there
	}
	r := d.api.Do(d.ctx, func() driver.Result {
		t.open(pinned)
		for i := -1; i < times && t.result == driver.Success; i++ { // the first is a warm-up
			if ms := t.once(); i >= 0 {
				took = append(took, time.Duration(float64(ms)*1e6))
			}
		}
		t.close(pinned)
		return t.result
	})
	if r == driver.OutOfMemory {
		return nil, d.outOfMemory(n)
	}
	return took, d.failed(t.call, r)
}

// transfer is copies of one kind. The call that failed first is kept, as that of a probe.
type transfer struct {
	probe
	bytes      int64
	toDevice   bool
	start, end driver.Event
}

func (t *transfer) open(pinned bool) {
	t.step("cuStreamCreate", func() (r driver.Result) {
		t.stream, r = t.api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
		return r
	})
	for _, e := range []*driver.Event{&t.start, &t.end} {
		t.step("cuEventCreate", func() (r driver.Result) { *e, r = t.api.EventCreate(driver.EventBlockingSync); return r })
	}
	t.step("cuMemAlloc", func() (r driver.Result) { t.in, r = t.api.MemAlloc(t.bytes); return r })
	if pinned {
		t.step("cuMemHostAlloc", func() (r driver.Result) { t.host, r = t.api.MemHostAlloc(t.bytes, 0); return r })
	}
	t.step("cuMemsetD8Async", func() driver.Result { return t.api.MemsetD8Async(t.in, 0, t.bytes, t.stream) })
	t.step("cuStreamSynchronize", func() driver.Result { return t.api.StreamSynchronize(t.stream) })
}

// once copies and returns the device's milliseconds.
func (t *transfer) once() (ms float32) {
	t.step("cuEventRecord", func() driver.Result { return t.api.EventRecord(t.start, t.stream) })
	if t.toDevice {
		t.step("cuMemcpyHtoDAsync", func() driver.Result { return t.api.MemcpyHtoDAsync(t.in, t.host, t.bytes, t.stream) })
	} else {
		t.step("cuMemcpyDtoHAsync", func() driver.Result { return t.api.MemcpyDtoHAsync(t.host, t.in, t.bytes, t.stream) })
	}
	t.step("cuEventRecord", func() driver.Result { return t.api.EventRecord(t.end, t.stream) })
	t.step("cuEventSynchronize", func() driver.Result { return t.api.EventSynchronize(t.end) })
	t.step("cuEventElapsedTime", func() (r driver.Result) { ms, r = t.api.EventElapsedTime(t.start, t.end); return r })
	return ms
}

func (t *transfer) close(pinned bool) {
	give := func(call string, r driver.Result) { t.step(call, func() driver.Result { return r }) }
	if pinned && t.host != 0 {
		give("cuMemFreeHost", t.api.MemFreeHost(t.host))
	}
	for _, e := range []driver.Event{t.start, t.end} {
		if e != 0 {
			give("cuEventDestroy", t.api.EventDestroy(e))
		}
	}
	t.probe.close()
}
