package tensor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/oom"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// What the flags of some levers begin with.
const (
	LeverLetGo  = "let go of "
	LeverNoGrad = "record no gradients while evaluating"
	LeverEarly  = "make what lives long before what comes and goes"
	AllocEnv    = device.AllocEnv // and "=" and a setting
)

// found is what helps, as far as it can be told from who holds the memory.
func (e *OOMError) found(env *Env, v *Inventory) []Lever {
	var levers []Lever
	levers = append(levers, e.keptAcrossTurns()...)
	if l, ok := inVain(env, v); ok {
		levers = append(levers, l)
	}
	if e.Stuck > 0 {
		levers = append(levers, e.pinning(v)...)
	}
	if l, ok := e.split(); ok {
		levers = append(levers, l)
	}
	return levers
}

// leakTurns is in how many turns of a loop a line must have made values that live, to be told as one that keeps them.
const leakTurns = 4

// keptAcrossTurns names the lines whose values of many turns live on. That is the mistake where there would be room without them:
// a few numbers may be kept.
func (e *OOMError) keptAcrossTurns() (levers []Lever) {
	sums := map[string]*Holder{}
	for _, h := range e.Holders {
		if h.Kind != device.LabelOther && h.Kind != device.LabelSaved && h.Kind != device.LabelBatch || h.Line == "" {
			continue
		}
		s := sums[h.Line]
		if s == nil {
			s = &Holder{Line: h.Line}
			sums[h.Line] = s
		}
		s.Bytes, s.Values, s.Turns = s.Bytes+h.Bytes, s.Values+h.Values, max(s.Turns, h.Turns)
	}
	for _, s := range sums {
		if s.Turns >= leakTurns {
			levers = append(levers, Lever{
				Flag:  fmt.Sprintf(LeverLetGo+"%d values kept at %s (keep Item or Floats of them)", s.Values, s.Line),
				Saves: s.Bytes, Cost: "a copy to the host where they are read", Line: s.Line,
				Fault: s.Bytes+max(e.LargestFree, e.Free) >= e.Asked,
			})
		}
	}
	sorting.By(levers, func(a, b Lever) int {
		return cmp.Or(cmp.Compare(b.Saves, a.Saves), cmp.Compare(a.Flag, b.Flag))
	})
	return levers
}

// inVain finds activations that no Backward will use: of a model in evaluation, or of a program whose earlier batches ended with
// about as much of it.
func inVain(env *Env, v *Inventory) (Lever, bool) {
	kept := int64(0)
	for i := range v.Values {
		if x := &v.Values[i]; x.Kind() == device.LabelSaved {
			kept += x.Bytes
		}
	}
	if !env.Recording() || env.Training() && (kept == 0 || 2*v.Dropped < kept) {
		return Lever{}, false
	}
	return Lever{Flag: LeverNoGrad + ": data.Batches(env.NoGrad().Eval(), …)", Saves: kept, Cost: "nothing", Fault: true}, true
}

// pinning is what helps against fragmentation: values that live long, made before those that come and go, and an allocator that
// keeps large pieces whole. Each saves what is missing at least: how much more, only a run tells.
func (e *OOMError) pinning(v *Inventory) (levers []Lever) {
	lines, pins := lineCache{}, map[string]int64{}
	missing := e.Asked - max(e.Free, 0)
	blocks := map[uint64]*Value{}
	for i := range v.Values {
		blocks[v.Values[i].Mem.Addr] = &v.Values[i]
	}
	for _, s := range v.Segments {
		unused := int64(0)
		for _, b := range s.Blocks {
			if b.State == device.Unused {
				unused += b.Mem.Size
			}
		}
		for _, b := range s.Blocks {
			if x := blocks[b.Mem.Addr]; x != nil && unused > 0 {
				pins[lines.of(x.Site)] += unused
			}
		}
	}
	if at := oom.Largest(pins, 2); len(at) > 0 {
		levers = append(levers, Lever{Flag: LeverEarly + ": " + strings.Join(at, ", "),
			Saves: missing, Cost: "nothing", Fault: true})
	}
	for _, conf := range e.dev.unfragmented(e.Asked) {
		levers = append(levers, Lever{Flag: AllocEnv + "=" + conf, Saves: missing, Cost: "segments that are cut otherwise"})
	}
	return levers
}

// split cuts the batch, where there is one.
func (e *OOMError) split() (Lever, bool) {
	kinds := e.ByKind()
	whole := kinds[device.LabelSaved] + kinds[device.LabelBatch]
	if kinds[device.LabelBatch] == 0 {
		return Lever{}, false
	}
	parts := int64(2)
	for parts < 64 && whole-whole/parts < e.Asked {
		parts *= 2
	}
	return Lever{Flag: fmt.Sprintf("data.Split(b, %d): the batch in parts, one Step after all", parts), Saves: whole - whole/parts, Cost: "smaller products; the gradients stay"}, true
}

// unfragmented are settings of the allocator, those that it has with one more, that may leave room for a request in one piece:
// what the device can have, and what keeps pieces of the request's size whole.
func (d *Device) unfragmented(n int64) (confs []string) {
	now := d.alloc.Settings()
	if now.Expandable {
		return nil
	}
	if growing, err := now.With("expandable_segments", "True"); err == nil && growing.CheckFor(d.dev) == nil {
		confs = append(confs, growing.Text)
	}
	if now.MaxSplit > n {
		if whole, err := now.With("max_split_size_mb", strconv.FormatInt(n>>20, 10)); err == nil {
			confs = append(confs, whole.Text)
		}
	}
	return confs
}
