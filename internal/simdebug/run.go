package simdebug

import (
	"context"
	"errors"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// run is one launch. Its goroutine and the session's take turns: while one works the other waits for it, so neither locks what
// both look at.
type run struct {
	s      *Session
	target *simrun.Target
	code   *warp.Code

	quit   chan struct{} // closed to end the launch
	pauses chan pause
	resume chan goal
	over   chan struct{} // closed behind result and err

	result *simrun.Result
	err    error

	event   int64 // instructions of warps so far: what a replay counts
	goal    goal
	blocks  []*warp.CTA // by the order of the grid, once begun
	w       *warp.Warp  // whose instruction is next, or under way
	p       *warp.Point
	ended   bool
	aborted bool
}

// goal is what a launch runs to.
type goal struct {
	kind  goalKind
	event int64 // of toEvent
	block int   // the block, warp and lane in focus
	warp  uint32
	w     *warp.Warp
	lane  int
	line  line    // where the lane was
	past  []int64 // of toEvent: the last events of the warp in focus, a ring
	seen  int64   // how many there were
}

type goalKind int

const (
	toStop  goalKind = iota // a breakpoint, a watch, a finding
	toEvent                 // an event, whatever comes in between
	toLine                  // the lane's next line
	toInstruction
	toBlock // the block's next instruction
)

// pause is why a launch waits.
type pause struct {
	reason  string
	finding *gpusim.Finding
	at      *warp.CTA // of the finding
	lane    *int      // whose access it is; nil: nobody's
}

// begin launches the target; the first goal decides where it waits.
func (s *Session) begin(g goal) error {
	t, err := simrun.Open(s.config)
	if err != nil {
		return err
	}
	grid := t.Grid()
	n := grid[0] * grid[1] * grid[2]
	if n > maxBlocks {
		n = maxBlocks
	}
	r := &run{s: s, target: t, quit: make(chan struct{}), pauses: make(chan pause), resume: make(chan goal), over: make(chan struct{}),
		goal: g, blocks: make([]*warp.CTA, n)}
	s.run = r
	go func() {
		defer close(r.over)
		r.result, r.err = t.Launch(r.quit, r)
	}()
	return nil
}

// maxBlocks is how many blocks of a grid are listed.
const maxBlocks = 1 << 16

// wait lets the launch run until it waits or ends.
func (r *run) wait(ctx context.Context) (pause, error) {
	select {
	case p := <-r.pauses:
		return p, nil
	case <-r.over:
		r.ended = true
		if r.err != nil && !errors.Is(r.err, context.Canceled) {
			return pause{}, r.err
		}
		return pause{reason: "end"}, nil
	case <-ctx.Done():
		r.end()
		return pause{}, ctx.Err()
	}
}

// end stops the launch and waits until nothing of it is left.
func (r *run) end() {
	if !r.ended {
		close(r.quit)
		for done := false; !done; {
			select {
			case <-r.pauses:
			case <-r.over:
				done = true
			}
		}
		r.ended = true
	}
}

// At implements warp.Debugger.
func (r *run) At(w *warp.Warp, p *warp.Point) {
	if r.stopped() {
		w.CTA.Stop(w, p.Site, 0, memory.LaunchTimeout, 0, "the debugger has ended it")
		return
	}
	if w.CTA.Fault != nil {
		return // the rest of a basic block, which comes to nothing
	}
	r.event++
	r.w, r.p, r.code = w, p, w.Code
	first := false
	if i := w.CTA.Index; i < len(r.blocks) {
		first = r.blocks[i] == nil
		r.blocks[i] = w.CTA
	}
	if why := r.why(w, p, first); why.reason != "" {
		r.pause(why)
	}
}

// Found implements warp.Debugger.
func (r *run) Found(c *warp.CTA, f *gpusim.Finding) {
	if !r.stopped() && r.goal.kind != toEvent && r.s.findings {
		r.pause(pause{reason: "finding", finding: f, at: c})
	}
}

func (r *run) stopped() bool {
	if r.aborted {
		return true
	}
	select {
	case <-r.quit:
		r.aborted = true
	default:
	}
	return r.aborted
}

func (r *run) pause(p pause) {
	select {
	case r.pauses <- p:
	case <-r.quit:
		r.aborted = true
		return
	}
	select {
	case r.goal = <-r.resume:
	case <-r.quit:
		r.aborted = true
	}
}

// why is the reason to wait before an instruction; empty for none.
func (r *run) why(w *warp.Warp, p *warp.Point, first bool) pause {
	g := &r.goal
	if r.s.interrupted.Load() {
		return pause{reason: "paused"}
	}
	if g.kind == toEvent {
		if len(g.past) > 0 && w.CTA.Index == g.block && w.Id == g.warp && r.event < g.event {
			g.past[g.seen%int64(len(g.past))] = r.event
			g.seen++
		}
		if r.event == g.event {
			return pause{reason: "event"}
		}
		return pause{}
	}
	if why := r.s.hits(w, p, first); why.reason != "" {
		return why
	}
	return pause{reason: g.reached(w, p)}
}

// reached is why a step is over.
func (g *goal) reached(w *warp.Warp, p *warp.Point) string {
	if g.kind == toStop {
		return ""
	}
	same := w.CTA.Index == g.block && w.Id == g.warp
	switch {
	case g.kind == toBlock && w.CTA.Index == g.block,
		g.kind == toInstruction && same,
		g.kind == toLine && same && w.Mask>>g.lane&1 != 0 && lineOf(p) != g.line:
		return "step"
	}
	// Blocks are used again for others of the grid.
	if g.w.CTA == nil || g.w.CTA.Index != g.block || g.kind != toBlock && g.w.Live()>>g.lane&1 == 0 || g.kind == toBlock && g.w.CTA.Alive == 0 {
		return "exited"
	}
	return ""
}
