package train

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

// situation is what of a step matters to memory, beside what the step finds there.
type situation struct {
	samples     int // of its batch
	look, score bool
}

// situations tells those of a session's steps, from 0.
func (s *session) situations(perEpoch int) func(step int) situation {
	c := &s.Data
	short := 0
	if !c.Wrap && !c.Draw && !c.DropLast && c.Sampler == nil {
		short = s.samples % c.Size
	}
	return func(step int) situation {
		q := situation{c.Size, s.Statistics > 0 && (step+1)%s.Statistics == 0, s.task.score != nil && s.scored(step+1)}
		if short > 0 && step%perEpoch == perEpoch-1 {
			q.samples = short
		}
		return q
	}
}

// position is where a step's batch is.
func position(c *data.Config, perEpoch, step int) data.Position {
	if c.Wrap || c.Draw {
		return data.Position{Batch: step}
	}
	return data.Position{Epoch: step / perEpoch, Batch: step % perEpoch}
}

// visited are the turns of the steps that a dry run makes.
func (s *session) visited(ctx context.Context, env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		perEpoch, err := s.epoch()
		if err != nil {
			yield(turn{}, err)
			return
		}
		v := newVisits(s.Steps, s.situations(perEpoch), s.Capture)
		i, more := v.next(ctx, layout(s.env.Device()))
		for more {
			at := position(&c, perEpoch, i)
			s.queued, s.done = i, i
			c.Steps, c.Done, c.Epoch, c.Skip = s.Steps, i, at.Epoch, at.Batch
			for t, err := range s.batches.turns(env, c) {
				if !yield(t, err) {
					return
				}
				before := i
				if i, more = v.next(ctx, layout(s.env.Device())); !more || i != before+1 {
					break
				}
			}
		}
		if err := ctx.Err(); err != nil {
			yield(turn{}, err)
			return
		}
		s.queued, s.done, s.made, s.drifts = s.Steps, s.Steps, len(v.made), v.drifts
	}
}

var layoutSeed = maphash.MakeSeed()

// layout is a fingerprint of how a device's memory is divided.
func layout(d *tensor.Device) uint64 {
	var h maphash.Hash
	h.SetSeed(layoutSeed)
	var word [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(word[:], v)
		h.Write(word[:])
	}
	d.Inventory(func(v *tensor.Inventory) {
		for i := range v.Segments {
			s := &v.Segments[i]
			put(uint64(s.Queue)<<8 | uint64(s.Pool))
			put(s.Owner[0])
			put(s.Owner[1])
			for _, b := range s.Blocks {
				put(b.Mem.Addr)
				put(uint64(b.Mem.Size))
				put(uint64(b.Requested))
				put(uint64(b.State))
			}
		}
	})
	return h.Sum64()
}

// memory is what a step finds on the device. A captured step finds recordings, too, which its first batches of a size make.
type memory struct {
	layout      uint64
	whole, rest int // steps that were made with a whole batch and with another, of those that count
}

// move is a step in a situation from a memory.
type move struct {
	from memory
	by   situation
}

// arc is a move that was made.
type arc struct {
	move
	to   memory
	step int
}

// visits chooses the steps of a run that are made where nothing is computed. What a step does to memory follows from what it finds there
// and from its situation: of steps that are alike in both, the first is made, and what the others do is known. So the peaks are those of
// all steps, however many there are.
type visits struct {
	steps    int
	of       func(step int) situation
	recorded int    // steps with batches of a size of which each may do something else
	step     int    // that the run is at: those before are made, or known
	there    memory // then
	here     memory // of the device, behind the steps that were made
	under    arc    // the step that is made
	fresh    bool   // it is the run's next
	arcs     []arc
	made     []situation // of the steps that were made
	drifts   bool        // memory goes other ways than the steps that were made tell: the peaks are theirs
}

// countedCaptured is how many batches of a size differ in a captured run: the first step makes what stays, two are recorded, and the next
// takes memory for the launches. countedPlain is that of others, where a step leaves all that it makes in memory.
const countedCaptured, countedPlain = 5, 1

// mostVisits bounds the steps of a run whose memory never comes back to what it was. Behind them each situation is made twice, unless it was,
// from whatever memory there is.
var mostVisits = 100

func newVisits(steps int, of func(step int) situation, captured bool) *visits {
	v := &visits{steps: steps, of: of, recorded: countedPlain}
	if captured {
		v.recorded = countedCaptured
	}
	return v
}

// glances is how often a long walk looks whether it is to end: each so many steps.
const glances = 1 << 16

// next is the step to make, if there is one more, where the device's memory has a layout behind the one before.
func (v *visits) next(ctx context.Context, layout uint64) (step int, more bool) {
	v.arrive(layout)
	var idle move // from a memory to the same, as most steps of a long run
	for ; v.step < v.steps; v.step++ {
		if v.step%glances == 0 && ctx.Err() != nil {
			return 0, false
		}
		m := move{v.there, v.of(v.step)}
		if m == idle {
			continue
		}
		if a := v.known(m); a != nil {
			if v.there = a.to; a.to == m.from {
				idle = m
			}
			continue
		}
		v.drifts = v.drifts || len(v.made) >= mostVisits
		switch {
		case len(v.made) >= mostVisits && v.times(m.by) > 1:
			continue
		case len(v.made) < mostVisits && v.there != v.here:
			return v.make(v.way(), false)
		}
		v.step++
		return v.make(v.step-1, true)
	}
	if len(v.made) < mostVisits && v.there != v.here {
		return v.make(v.way(), false)
	}
	v.drifts = v.drifts || v.there != v.here
	return 0, false
}

func (v *visits) make(step int, fresh bool) (int, bool) {
	v.under, v.fresh = arc{move: move{v.here, v.of(step)}, step: step}, fresh
	v.made = append(v.made, v.under.by)
	return step, true
}

// arrive takes in what the step under way has led to.
func (v *visits) arrive(layout uint64) {
	now := memory{layout, v.here.whole, v.here.rest}
	switch q := &v.under.by; {
	case len(v.made) == 0:
		v.here, v.there = now, now
		return
	case q.samples == v.of(0).samples:
		now.whole = min(now.whole+1, v.recorded)
	default:
		now.rest = min(now.rest+1, v.recorded)
	}
	v.here, v.under.to = now, now
	switch a := v.known(v.under.move); {
	case a == nil:
		v.arcs = append(v.arcs, v.under)
	case a.to != now: // something else than steps has changed the memory
		*a, v.there, v.drifts = v.under, now, true
	}
	if v.fresh {
		v.there = now
	}
}

// known is a move that was made, with what it led to last, or nil.
func (v *visits) known(m move) *arc {
	for i := range v.arcs {
		if v.arcs[i].move == m {
			return &v.arcs[i]
		}
	}
	return nil
}

// times is how many steps were made in a situation.
func (v *visits) times(by situation) (n int) {
	for i := range v.made {
		if v.made[i] == by {
			n++
		}
	}
	return n
}

// way is the first step of the shortest way from what the device's memory has to what the run's has, by moves that were made: the run's
// own are one.
func (v *visits) way() (step int) {
	type end struct {
		at    memory
		first int
	}
	reached := []end{{at: v.here}}
	for i := 0; i < len(reached); i++ {
		for _, a := range v.arcs {
			if a.from != reached[i].at || slices.ContainsFunc(reached, func(e end) bool { return e.at == a.to }) {
				continue
			}
			e := end{a.to, reached[i].first}
			if i == 0 {
				e.first = a.step
			}
			if e.at == v.there {
				return e.first
			}
			reached = append(reached, e)
		}
	}
	panic("train: the steps of a dry run lead nowhere")
}
