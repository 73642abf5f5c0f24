package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// Report is what a program needs on a card that nobody has at hand. Bytes are exact: those of the same program on that card, under
// the settings that the environment has for the allocator, if it had memory without end.
type Report struct {
	Card    string // its name, as "h100-80"
	Limit   int64  // bytes that its driver reports
	Context int64  // bytes of them that the driver takes for itself, nominally

	Requested int64            // the most bytes of values and of kernels' scratch memory at once
	Allocated int64            // the most that the allocator has given for them, rounded
	Reserved  int64            // the most that the allocator has taken of the card
	ByKind    map[string]int64 // Requested, by what the memory served for: package device has the labels

	PeaksOf int // steps of a longer run, whose memory did not come back to what it was: others may need more; 0: the peaks are of all

	Parts int // in which a batch is taken, of a program that chooses; 0: nobody asked

	LargestBatch int    // that fits, of those that were tried; 0: not even one sample; -1: nobody asked
	LimitedBy    string // what would have most of the memory at one sample more, or "samples" where more make no sense

	Step       *Step    // how long a step takes by the model; nil where nothing updates parameters twice, and for the host
	NotCounted []string // kernels of which Step knows by their bytes and operations only
	Loader     float64  // seconds that this machine takes for the data of a step; negative: nobody asked

	Unknown map[string]int // lines of the program that read what nothing computed, with how often: what follows them may go another way

	host bool // the device is the host's processor
}

// Fits tells whether the card has memory for the program.
func (r *Report) Fits() bool { return r.left() >= 0 }

// left is the bytes of the card beside the program. On the host it is values that are limited, and not what is kept ready for them.
func (r *Report) left() int64 {
	if r.host {
		return r.Limit - r.Requested
	}
	return r.Limit - r.Context - r.Reserved
}

// MarshalJSON writes one line for machines, in bytes and milliseconds. What was not asked for, or is not known, is null.
func (r *Report) MarshalJSON() ([]byte, error) {
	line := struct {
		DryRun       bool             `json:"dry_run"`
		Card         string           `json:"card"`
		Fits         bool             `json:"fits"`
		Limit        int64            `json:"limit_bytes"`
		Context      int64            `json:"context_bytes"`
		Requested    int64            `json:"peak_requested"`
		Allocated    int64            `json:"peak_allocated"`
		Reserved     int64            `json:"peak_reserved"`
		ByKind       map[string]int64 `json:"peak_by_kind"`
		PeaksOf      int              `json:"peaks_of_steps,omitempty"`
		Parts        int              `json:"accumulate,omitempty"`
		LargestBatch *int             `json:"largest_batch"`
		LimitedBy    *string          `json:"limited_by"`
		stepLine
	}{DryRun: true, Card: r.Card, Fits: r.Fits(), Limit: r.Limit, Context: r.Context, Requested: r.Requested, Allocated: r.Allocated,
		Reserved: r.Reserved, ByKind: r.ByKind, PeaksOf: r.PeaksOf, Parts: r.Parts}
	if r.LargestBatch >= 0 {
		line.LargestBatch, line.LimitedBy = &r.LargestBatch, &r.LimitedBy
	}
	line.stepLine = r.stepLine()
	return json.Marshal(line)
}

// stepLine is what the line for machines has of time, in milliseconds.
type stepLine struct {
	Step       *float64           `json:"step_ms"`
	Low        *float64           `json:"step_ms_low"`
	High       *float64           `json:"step_ms_high"`
	Parts      map[string]float64 `json:"parts_ms"`
	Loader     *float64           `json:"loader_ms"`
	NotCounted []string           `json:"not_counted"`
}

func (r *Report) stepLine() (l stepLine) {
	ms := func(seconds float64) *float64 {
		v := math.Round(1e9*seconds) / 1e6
		return &v
	}
	if s := r.Step; s != nil {
		l.Step, l.Low, l.High = ms(s.Total), ms(s.Low), ms(s.High)
		l.Parts = map[string]float64{"compute": *ms(s.Compute), "memory": *ms(s.Memory), "launch": *ms(s.Launch), "copies": *ms(s.Copies)}
	}
	if r.Loader >= 0 {
		l.Loader = ms(r.Loader)
	}
	l.NotCounted = append([]string{}, r.NotCounted...)
	return l
}

// DryRun finds what a program needs on a card of a name, as "h100-80" or "null:h100-80", by running it on a device that imitates
// the card's memory and its engine's kernels, and computes nothing. Like a [Program]'s Run, f makes all that it has on the device
// in env and makes some steps. The error is f's, or that of the name, with the
// nearest one.
func DryRun(card string, f func(env *tensor.Env) error) (*Report, error) {
	c, err := Card(card)
	if err != nil {
		return nil, err
	}
	return rehearsed("null:"+c.Name, f)
}

// rehearsed is the dry run on the device of a name: one that [tensor.Open] opens, or a card's name.
func rehearsed(name string, f func(env *tensor.Env) error) (*Report, error) {
	env, c, err := like(name)
	if err != nil {
		return nil, err
	}
	d := env.Device()
	time := newClock(&c)
	if c.Name != "" {
		defer d.Observe(time.observe, watched...)()
	}
	var kinds []prof.Kind
	_, failed := tensor.Try(env, func(env *tensor.Env) int {
		kinds = prof.MemoryKinds(env, func() { err = f(env) })
		return 0
	})
	if err = cmp.Or(failed, err); err != nil {
		return nil, fmt.Errorf("a dry run on %s: %w", d.Name(), err)
	}
	m := d.Memory()
	r := &Report{Card: c.Name, Limit: d.Properties().Memory, Requested: m.Peak, Allocated: m.Allocated.Peak, Reserved: m.Reserved.Peak,
		ByKind: map[string]int64{}, LargestBatch: -1, Unknown: d.Unknown(), Loader: -1}
	switch {
	case name == "cpu":
		r.host = true
	case c.Name != "":
		r.Context = cards.Context
		r.Step, r.NotCounted = time.step(), time.uncounted()
	}
	for _, k := range kinds {
		r.ByKind[k.Label] += k.Bytes
	}
	return r, nil
}

// like is an env that computes nothing of a device that is like the one of a name, with the card if that is a card's.
func like(name string) (*tensor.Env, cards.Card, error) {
	c, here := cards.Find(strings.TrimPrefix(name, "null:"))
	if here {
		name = "null:" + c.Name
	}
	env, err := tensor.Rehearse(name)
	return env, c, err
}

// Card finds a card by its name, with or without "null:" before it. The error offers the nearest.
func Card(name string) (cards.Card, error) {
	written := strings.TrimPrefix(name, "null:")
	c, ok := cards.Find(written)
	if !ok {
		names := cards.Names()
		return c, advice.Failf(near(written, names)+"there are "+strings.Join(names, ", "), "there is no card %q", written)
	}
	return c, nil
}

// near is "did you mean X? " with the names that what was written begins, or else the nearest.
func near(written string, names []string) string {
	var begun []string
	for _, n := range names {
		if written != "" && strings.HasPrefix(n, strings.ToLower(written)) {
			begun = append(begun, n)
		}
	}
	if len(begun) > 0 {
		return "did you mean " + strings.Join(begun, " or ") + "? "
	}
	return advice.Meant(strings.ToLower(written), names)
}

// Weigh tells what each of a program's levers, and a batch in parts, would save of what the allocator takes of the card for the
// program of the report, by dry runs, and whether it would fit then: the most first, without what saves nothing. The error is the
// program's.
func (r *Report) Weigh(p Program) (found []tensor.Lever, err error) {
	try := func(l Lever, s Setting) (fits bool) {
		x, failed := p.rehearsed(r.Card, s)
		if failed != nil {
			err = failed
			return true
		}
		found = append(found, tensor.Lever{Flag: l.Flag, Saves: r.Reserved - x.Reserved, Fits: x.Fits(), Cost: l.Cost + slower(r.Step, x.Step)})
		return x.Fits()
	}
	for _, l := range p.Levers {
		try(l, Setting{Batch: p.Batch, Parts: 1, Levers: []string{l.Name}})
	}
	for n := 2 * max(1, p.Multiple); p.Split != "" && p.Batch%n == 0; n *= 2 {
		if try(Lever{Flag: fmt.Sprintf(p.Split, n), Cost: costOfParts}, Setting{Batch: p.Batch, Parts: n}) || p.Batch%(2*n) != 0 {
			break
		}
		found = found[:len(found)-1] // more parts save more
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(l tensor.Lever) bool { return l.Saves <= 0 })
	sorting.By(found, func(a, b tensor.Lever) int { return cmp.Compare(b.Saves, a.Saves) })
	return found, nil
}

// rehearsed is the dry run with a setting.
func (p *Program) rehearsed(card string, s Setting) (*Report, error) {
	r, err := rehearsed(card, func(env *tensor.Env) error { return p.Run(env, s) })
	if err != nil || p.Pace == nil {
		return r, err
	}
	x, err := rehearsed(card, func(env *tensor.Env) error { return p.Pace(env, s) })
	if err == nil {
		r.Step, r.NotCounted = x.Step, x.NotCounted
	}
	return r, err
}

// slower tells by how much a lever changes how long a step takes.
func slower(plain, with *Step) string {
	if plain == nil || with == nil {
		return ""
	}
	return fmt.Sprintf("; %.2f times a step", with.Total/plain.Total)
}

// largestKind is the label that has most bytes.
func (r *Report) largestKind() (label string) {
	most := int64(math.MinInt64)
	for l, n := range r.ByKind {
		if n > most || n == most && l < label {
			label, most = l, n
		}
	}
	return label
}

// Kinds lists the labels of ByKind, what lives longest first.
func Kinds() []string { return device.Labels() }
