package cabi

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// streamState is what a stream was made with.
type streamState struct {
	ctx      driver.Context
	flags    uint32
	priority int
}

func event(w uint64) driver.Event { return driver.Event(w) }

var _ = add(map[string]handler{
	"cuStreamCreate": func(t *Thread, a *Args) driver.Result { return t.createStream(a[0], a.u32(1), 0) },
	"cuStreamCreateWithPriority": func(t *Thread, a *Args) driver.Result {
		return t.createStream(a[0], a.u32(1), a.int(2))
	},
	"cuStreamDestroy": destroyStream, "cuStreamDestroy_v2": destroyStream,
	"cuStreamSynchronize": func(t *Thread, a *Args) driver.Result { return t.StreamSynchronize(t.stream(a[0])) },
	"cuStreamQuery":       func(t *Thread, a *Args) driver.Result { return t.StreamQuery(t.stream(a[0])) },
	"cuStreamWaitEvent": func(t *Thread, a *Args) driver.Result {
		return t.StreamWaitEvent(t.stream(a[0]), event(a[1]))
	},
	"cuStreamGetFlags": func(t *Thread, a *Args) driver.Result {
		s, r := t.made(a[0])
		return give[uint32](t, a[1])(s.flags, r)
	},
	"cuStreamGetPriority": func(t *Thread, a *Args) driver.Result {
		s, r := t.made(a[0])
		return give[int](t, a[1])(s.priority, r)
	},
	"cuStreamGetCtx": func(t *Thread, a *Args) driver.Result {
		s, r := t.made(a[0])
		return give[driver.Context](t, a[1])(s.ctx, r)
	},
	"cuStreamGetId":       func(t *Thread, a *Args) driver.Result { return give[uint64](t, a[1])(a[0], driver.Success) },
	"cuStreamAddCallback": afterStream, "cuLaunchHostFunc": afterStream,

	"cuEventCreate": func(t *Thread, a *Args) driver.Result {
		return give[driver.Event](t, a[0])(t.EventCreate(a.u32(1)))
	},
	"cuEventDestroy": destroyEvent, "cuEventDestroy_v2": destroyEvent,
	"cuEventRecord":          record,
	"cuEventRecordWithFlags": record,
	"cuEventSynchronize":     func(t *Thread, a *Args) driver.Result { return t.EventSynchronize(event(a[0])) },
	"cuEventQuery":           func(t *Thread, a *Args) driver.Result { return t.EventQuery(event(a[0])) },
	"cuEventElapsedTime":     elapsed, "cuEventElapsedTime_v2": elapsed,

	"cuStreamBeginCapture_v2": func(t *Thread, a *Args) driver.Result {
		return t.StreamBeginCapture(t.stream(a[0]), driver.CaptureMode(a.int(1)))
	},
	"cuStreamEndCapture": func(t *Thread, a *Args) driver.Result {
		return give[driver.Graph](t, a[1])(t.StreamEndCapture(t.stream(a[0])))
	},
	"cuStreamIsCapturing": func(t *Thread, a *Args) driver.Result {
		return give[driver.CaptureStatus](t, a[1])(t.StreamIsCapturing(t.stream(a[0])))
	},
	"cuStreamGetCaptureInfo": func(t *Thread, a *Args) driver.Result {
		c, r := t.StreamGetCaptureInfo(t.stream(a[0]))
		return giveTwo[driver.CaptureStatus, uint64](t, a[1], a[2])(c.Status, c.ID, r)
	},
	"cuStreamGetCaptureInfo_v2": captureInfo,
	"cuThreadExchangeStreamCaptureMode": func(t *Thread, a *Args) driver.Result {
		p, r := t.read(a[0], 4)
		if r != driver.Success {
			return r
		}
		return give[driver.CaptureMode](t, a[0])(t.ThreadExchangeStreamCaptureMode(driver.CaptureMode(p[0])))
	},
})

func (t *Thread) createStream(at uint64, flags uint32, priority int) driver.Result {
	s, r := t.StreamCreateWithPriority(flags, priority)
	if r != driver.Success {
		return r
	}
	c, _ := t.CtxGetCurrent()
	t.mu.Lock()
	t.streams[s] = streamState{c, flags, priority}
	t.mu.Unlock()
	return t.write(at, encoded(s))
}

func destroyStream(t *Thread, a *Args) driver.Result {
	t.mu.Lock()
	delete(t.streams, driver.Stream(a[0]))
	t.mu.Unlock()
	return t.StreamDestroy(driver.Stream(a[0]))
}

// made is what a stream was made with; a default one belongs to the current context.
func (t *Thread) made(w uint64) (streamState, driver.Result) {
	if s := t.stream(w); s <= driver.StreamPerThread {
		c, r := t.CtxGetCurrent()
		return streamState{ctx: c}, r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.streams[driver.Stream(w)]
	if !ok {
		return s, t.refuse(driver.InvalidHandle, "there is no such stream")
	}
	return s, driver.Success
}

// afterStream lets the caller run a function of its own once the stream has come to it.
func afterStream(t *Thread, a *Args) driver.Result {
	s := t.stream(a[0])
	status, r := t.StreamIsCapturing(s)
	switch {
	case r != driver.Success:
		return r
	case status != driver.CaptureNone:
		return t.refuse(driver.NotSupported, "functions of the host in a capture are not simulated: call them when the graph has run")
	}
	return t.StreamSynchronize(s)
}

func destroyEvent(t *Thread, a *Args) driver.Result { return t.EventDestroy(event(a[0])) }

func record(t *Thread, a *Args) driver.Result { return t.EventRecord(event(a[0]), t.stream(a[1])) }

func elapsed(t *Thread, a *Args) driver.Result {
	ms, r := t.EventElapsedTime(event(a[1]), event(a[2]))
	return give[uint32](t, a[0])(math.Float32bits(ms), r)
}

// captureInfo gives no list of nodes, which would have to be memory of the driver in the caller.
func captureInfo(t *Thread, a *Args) driver.Result {
	c, r := t.StreamGetCaptureInfo(t.stream(a[0]))
	switch {
	case r != driver.Success:
		return r
	case a[4] != 0 && c.Status == driver.CaptureActive:
		return t.refuse(driver.NotSupported, "the nodes that the next one waits for are not told: ask without dependencies_out")
	}
	if r := giveTwo[driver.CaptureStatus, uint64](t, a[1], a[2])(c.Status, c.ID, r); r != driver.Success {
		return r
	}
	return giveTwo[driver.Graph, int64](t, a[3], a[5])(c.Graph, int64(len(c.Dependencies)), r)
}
