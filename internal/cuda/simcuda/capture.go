package simcuda

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// capture is a graph in the making. Streams take part from the wait for an event of it on until it ends.
type capture struct {
	sys         *System
	id          uint64
	graph       *graph
	mode        driver.CaptureMode
	thread      uint64    // that began it
	streams     []*stream // the one that it began in first
	invalidated string    // by what; nothing more is captured then
}

// add makes what a stream is given a node.
func (p *capture) add(st *stream, t task) {
	if p.invalidated == "" {
		st.tips = []*node{p.graph.add(typeOf(t), st.ctx, t, st.tips)}
	}
}

// addGraph makes the launch of a graph a node.
func (p *capture) addGraph(st *stream, g *graph) {
	n := p.graph.add(driver.NodeGraph, nil, nil, st.tips)
	n.insert(g)
	st.tips = []*node{n}
}

// invalidate ends the use of a capture but for its end. The first reason stays.
func (p *capture) invalidate(why string) {
	if p.invalidated == "" {
		p.invalidated = why
	}
}

// join lets a stream take part.
func (p *capture) join(st *stream, after []*node) {
	st.capture, st.tips = p, slices.Clone(after)
	p.streams = append(p.streams, st)
}

// end takes the streams out.
func (p *capture) end() {
	for _, st := range p.streams {
		st.capture, st.tips = nil, nil
	}
	p.graph.capture = nil
	s := p.sys
	s.captures = slices.DeleteFunc(s.captures, func(q *capture) bool { return q == p })
}

// unjoined is a stream with a node that the first stream does not wait for; nil if there is none.
func (p *capture) unjoined() *stream {
	joined := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if !joined[n] {
			joined[n] = true
			for _, d := range n.deps {
				visit(d)
			}
		}
	}
	for _, n := range p.streams[0].tips {
		visit(n)
	}
	for _, st := range p.streams[1:] {
		if slices.ContainsFunc(public(st.tips), func(n *node) bool { return !joined[n] }) {
			return st
		}
	}
	return nil
}

// alive reports whether the capture is under way, if only to be ended.
func (p *capture) alive() bool { return slices.Contains(p.sys.captures, p) }

// name is what messages call a stream.
func (st *stream) name() string {
	if st.handle == 0 {
		return "a default stream"
	}
	return fmt.Sprintf("stream %#x", uintptr(st.handle))
}

// implicit is a capture that work in the legacy stream would depend on: of a stream that is ordered with it.
func (c *context) implicit() *capture {
	for _, q := range c.queues {
		if q.blocking && q.capture != nil {
			return q.capture
		}
	}
	return nil
}

// open refuses what a stream cannot be given because of a capture.
func (c *context) open(st *stream) driver.Result {
	switch p := st.capture; {
	case p != nil && p.invalidated != "":
		return c.refuse(driver.StreamCaptureInvalidated, "%s takes part in a capture that was invalidated by %s; end it", st.name(), p.invalidated)
	case st == st.ctx.legacy:
		if p := st.ctx.implicit(); p != nil {
			p.invalidate("a use of the legacy stream, which is ordered with " + p.streams[0].name())
			return c.refuse(driver.StreamCaptureImplicit, "the legacy stream is ordered with a stream that captures; make streams with StreamNonBlocking")
		}
	}
	return driver.Success
}

// uncaptured finds a stream for a call that no capturing one permits.
func (c *context) uncaptured(h driver.Stream, what string) (*stream, driver.Result) {
	st, r := c.stream(h)
	if r == driver.Success {
		r = c.open(st)
	}
	if r != driver.Success {
		return nil, r
	}
	if st.capture != nil {
		st.capture.invalidate(what)
		return nil, c.refuse(driver.StreamCaptureUnsupported, "%s captures, which does not permit %s", st.name(), what)
	}
	return st, driver.Success
}

// waitable finds a stream for a call that waits for it, or asks about it.
func (c *context) waitable(h driver.Stream, call string) (*stream, driver.Result) {
	st, r := c.uncaptured(h, call)
	if r == driver.Success {
		r = c.quiet(call)
	}
	return st, r
}

// uncapturing refuses to wait for all streams while one of them captures.
func (c *context) uncapturing() driver.Result {
	const call = "CtxSynchronize"
	found := false
	for _, q := range c.queues {
		if q.capture != nil {
			q.capture.invalidate(call)
			found = true
		}
	}
	if found {
		return c.refuse(driver.StreamCaptureUnsupported, "a stream of the context captures, which does not permit %s", call)
	}
	return c.quiet(call)
}

// quiet refuses a call that may disturb captures where the thread's mode and theirs do not permit it.
func (c *context) quiet(call string) driver.Result {
	s := c.dev.sys
	id := thread()
	mode := s.modes[id]
	if mode == driver.CaptureRelaxed {
		return driver.Success
	}
	found := false
	for _, p := range s.captures {
		own := p.thread == id && p.mode != driver.CaptureRelaxed
		if own || mode == driver.CaptureGlobal && p.mode == driver.CaptureGlobal {
			p.invalidate(call)
			found = true
		}
	}
	if found {
		return c.refuse(driver.StreamCaptureUnsupported, "%s may disturb the capture under way; make the call before it, or capture in mode relaxed", call)
	}
	return driver.Success
}

// executed refuses to wait for an event, or to ask about it, where a capture does not permit that.
func (c *context) executed(e *event, h driver.Event, call string) driver.Result {
	if e.capture != nil {
		return c.captured(e, h, call)
	}
	return c.quiet(call)
}

// captured refuses a call about an event that was recorded in a capture.
func (c *context) captured(e *event, h driver.Event, call string) driver.Result {
	e.capture.invalidate(call + " of an event that was recorded in it")
	return c.refuse(driver.CapturedEvent, "event %#x was recorded in a capture, and stands for nothing that runs", uintptr(h))
}

// waitCaptured lets a stream wait where the stream or the event, or both, belong to a capture.
func (c *context) waitCaptured(st *stream, ev *event) driver.Result {
	p, q := st.capture, ev.capture
	switch {
	case q == nil || p != nil && !q.alive():
		return c.refuse(driver.StreamCaptureIsolation, "%s captures; the event was not recorded in its capture", st.name())
	case !q.alive():
		return c.refuse(driver.CapturedEvent, "the event was recorded in a capture that has ended")
	case p == nil && q.invalidated != "":
		return c.refuse(driver.InvalidValue, "the event was recorded in a capture that was invalidated by %s", q.invalidated)
	case st == st.ctx.legacy:
		q.invalidate("a wait of the legacy stream for an event of it")
		return c.refuse(driver.StreamCaptureImplicit, "the legacy stream cannot take part in a capture")
	case p == nil:
		q.join(st, ev.tips)
	case p != q:
		q.invalidate("a wait of another capture for an event of it")
		return c.refuse(driver.StreamCaptureMerge, "%s takes part in another capture than the event", st.name())
	default:
		st.tips = union(st.tips, ev.tips)
	}
	return driver.Success
}

// union is a list with what it lacks of another.
func union(a, b []*node) []*node {
	list := slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func validMode(m driver.CaptureMode) bool {
	return m >= driver.CaptureGlobal && m <= driver.CaptureRelaxed
}

func (s *System) beginCapture(h driver.Stream, mode driver.CaptureMode) driver.Result {
	return s.in(func(c *context) driver.Result {
		st, r := c.stream(h)
		switch {
		case r != driver.Success:
			return r
		case !validMode(mode):
			return c.refuse(driver.InvalidValue, "capture mode %d", mode)
		case st == st.ctx.legacy:
			return c.refuse(driver.StreamCaptureUnsupported, "the legacy stream cannot capture; make a stream")
		case st.capture != nil:
			return c.refuse(driver.IllegalState, "%s captures already", st.name())
		}
		s.captured++
		p := &capture{sys: s, id: s.captured, graph: s.newGraph(), mode: mode, thread: thread()}
		p.graph.capture = p
		p.join(st, nil)
		s.captures = append(s.captures, p)
		return driver.Success
	})
}

func (s *System) endCapture(h driver.Stream) (g driver.Graph, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		st, r := c.stream(h)
		if r != driver.Success {
			return r
		}
		p := st.capture
		switch {
		case p == nil:
			return c.refuse(driver.IllegalState, "%s does not capture", st.name())
		case st != p.streams[0]:
			p.invalidate("an attempt to end it in another stream")
			return c.refuse(driver.StreamCaptureUnmatched, "the capture began in %s, and must end there", p.streams[0].name())
		case p.mode != driver.CaptureRelaxed && p.thread != thread():
			p.invalidate("an attempt to end it on another thread")
			return c.refuse(driver.StreamCaptureWrongThread, "the capture began on another thread; only one in mode relaxed may end elsewhere")
		}
		g, r = p.close(c)
		return r
	})
	return g, r
}

// close ends a capture, and gives its graph if that is whole.
func (p *capture) close(c *context) (driver.Graph, driver.Result) {
	loose := p.unjoined()
	p.end()
	switch {
	case p.invalidated != "":
		p.graph.destroy()
		return 0, c.refuse(driver.StreamCaptureInvalidated, "the capture was invalidated by %s", p.invalidated)
	case loose != nil:
		p.graph.destroy()
		return 0, c.refuse(driver.StreamCaptureUnjoined, "%s has captured what %s did not wait for; record an event behind it and wait for that", loose.name(), p.streams[0].name())
	}
	return p.graph.handle, driver.Success
}

// abandon ends the captures in which a context takes part, when that ends.
func (s *System) abandon(c *context) {
	for _, p := range slices.Clone(s.captures) {
		if slices.ContainsFunc(p.streams, func(st *stream) bool { return st.ctx == c }) {
			p.invalidate("the end of a context")
			p.end()
			p.graph.destroy()
		}
	}
}

func (s *System) isCapturing(h driver.Stream) (status driver.CaptureStatus, r driver.Result) {
	info, r := s.captureInfo(h)
	return info.Status, r
}

// captureInfo tells of the legacy stream only where no capture depends on it.
func (s *System) captureInfo(h driver.Stream) (info driver.CaptureInfo, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		st, r := c.stream(h)
		switch {
		case r != driver.Success:
			return r
		case st == st.ctx.legacy && st.ctx.implicit() != nil:
			return c.refuse(driver.StreamCaptureImplicit, "the legacy stream is ordered with a stream that captures")
		}
		switch p := st.capture; {
		case p == nil:
		case p.invalidated != "":
			info.Status = driver.CaptureInvalidated
		default:
			info = driver.CaptureInfo{Status: driver.CaptureActive, ID: p.id, Graph: p.graph.handle, Dependencies: handles(public(st.tips))}
		}
		return driver.Success
	})
	return info, r
}

// exchangeMode needs no context.
func (s *System) exchangeMode(mode driver.CaptureMode) (old driver.CaptureMode, r driver.Result) {
	r = s.enter()
	defer s.mu.Unlock()
	switch {
	case r != driver.Success:
		return 0, r
	case !validMode(mode):
		s.why = fmt.Sprintf("capture mode %d", mode)
		return 0, driver.InvalidValue
	}
	id := thread()
	old = s.modes[id]
	if s.modes[id] = mode; mode == driver.CaptureGlobal {
		delete(s.modes, id)
	}
	return old, driver.Success
}
