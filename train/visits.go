package train

import (
	"encoding/binary"
	"hash/maphash"
	"iter"

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
func (s *session) visited(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		perEpoch, err := s.epoch()
		if err != nil {
			yield(turn{}, err)
			return
		}
		v := newVisits(s.Steps, s.situations(perEpoch), s.Capture)
		i, more := v.next(layout(s.env.Device()))
		for more {
			at := position(&c, perEpoch, i)
			s.queued, s.done = i, i
			c.Steps, c.Done, c.Epoch, c.Skip = s.Steps, i, at.Epoch, at.Batch
			for t, err := range s.batches.turns(env, c) {
				if !yield(t, err) {
					return
				}
				before := i
				if i, more = v.next(layout(s.env.Device())); !more || i != before+1 {
					break
				}
			}
		}
		s.queued, s.done = s.Steps, s.Steps
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
			for _, b := range v.Segments[i].Blocks {
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

// visits chooses the steps of a run that are made where nothing is computed. What a step does to memory follows from what it finds there
// and from its situation: of steps that are alike in both, the first is made, and what the others do is known. So the peaks are those of
// all steps, however many there are.
type visits struct {
	steps    int
	of       func(step int) situation
	recorded int               // steps with batches of a size of which each may do something else
	step     int               // that the run is at: those before are made, or known
	there    memory            // then
	here     memory            // of the device, behind the steps that were made
	under    move              // the step that is made
	fresh    bool              // it is the run's next
	found    map[move]memory   // where steps led to
	moves    []move            // of found
	sample   map[situation]int // a step of each
	made     map[situation]int // steps of each
	total    int
}

// countedCaptured is how many batches of a size differ in a captured run: the first step makes what stays, two are recorded, and the next
// takes memory for the launches. countedPlain is that of others, where a step leaves all that it makes in memory.
const countedCaptured, countedPlain = 5, 1

// mostVisits bounds the steps of a run whose memory never comes back to what it was; of situations each is made twice all the same.
const mostVisits = 100

func newVisits(steps int, of func(step int) situation, captured bool) *visits {
	v := &visits{steps: steps, of: of, recorded: countedPlain, found: map[move]memory{}, sample: map[situation]int{}, made: map[situation]int{}}
	if captured {
		v.recorded = countedCaptured
	}
	return v
}

// next is the step to make, if there is one more, where the device's memory has a layout behind the one before.
func (v *visits) next(layout uint64) (step int, more bool) {
	v.arrive(layout)
	var idle move // from a memory to the same, as most steps of a long run
	for ; v.step < v.steps; v.step++ {
		q := v.of(v.step)
		m := move{v.there, q}
		if m == idle {
			continue
		}
		to, known := v.found[m]
		switch {
		case known:
			if v.there = to; to == m.from {
				idle = m
			}
			continue
		case v.total >= mostVisits && v.made[q] > 1:
			continue
		case v.there != v.here:
			return v.make(v.sample[v.way()], false)
		}
		v.sample[q] = v.step
		v.step++
		return v.make(v.step-1, true)
	}
	if v.there != v.here {
		return v.make(v.sample[v.way()], false)
	}
	return 0, false
}

func (v *visits) make(step int, fresh bool) (int, bool) {
	q := v.of(step)
	v.under, v.fresh = move{v.here, q}, fresh
	v.made[q]++
	v.total++
	return step, true
}

// arrive takes in what the step under way has led to.
func (v *visits) arrive(layout uint64) {
	if v.total == 0 {
		v.here.layout = layout
		v.there = v.here
		return
	}
	now := memory{layout, v.here.whole, v.here.rest}
	if count := &now.whole; v.under.by.samples == v.of(0).samples {
		*count = min(*count+1, v.recorded)
	} else {
		now.rest = min(now.rest+1, v.recorded)
	}
	if _, known := v.found[v.under]; !known {
		v.moves = append(v.moves, v.under)
	}
	lost := !v.fresh && v.found[v.under] != now // something else than steps has changed the memory
	v.found[v.under], v.here = now, now
	if v.fresh || lost {
		v.there = now
	}
}

// way is the situation of the first step of the shortest way from what the device's memory has to what the run's has, by steps that are
// known: those of the run are one.
func (v *visits) way() situation {
	first := map[memory]situation{}
	for queue := []memory{v.here}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for _, m := range v.moves {
			to := v.found[m]
			if _, met := first[to]; met || m.from != from || to == v.here {
				continue
			}
			if first[to] = m.by; from != v.here {
				first[to] = first[from]
			}
			if to == v.there {
				return first[to]
			}
			queue = append(queue, to)
		}
	}
	panic("train: the steps of a dry run lead nowhere")
}
