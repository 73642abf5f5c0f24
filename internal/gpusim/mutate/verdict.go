package mutate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Outcome is what became of a mutant.
type Outcome string

// The outcomes, from best to worst.
const (
	Reported Outcome = "reported" // by a check, or as a deadlock, an endless loop or a trap
	Values   Outcome = "values"   // only the results are wrong
	Survived Outcome = "survived" // nothing shows
	Refused  Outcome = "refused"  // the module does not load
)

// Verdict is the outcome of a mutant with what reported it.
type Verdict struct {
	Outcome Outcome
	By      string // the check, or what else ended the kernel
	Seed    uint64 // of the schedule that showed it
	Leaves  bool   // the mutant was seen to touch memory outside of all buffers, without the help of memcheck
}

// Try runs a mutant under the Seeds until a check reports it. For mutants of bounds it also asks whether the mutant
// leaves its buffers.
func (o *Opened) Try(m *Mutant) Verdict {
	m.set(true)
	defer m.set(false)
	v := Verdict{Outcome: Survived}
	for _, seed := range Seeds {
		rep, out, err := o.run(seed, &apart{})
		var f *gpusim.Fault
		switch {
		case errors.As(err, &f):
			v.Outcome, v.By, v.Seed = Reported, by(f.Finding, f.Code), seed.Seed
		case err != nil:
			v.Outcome, v.By = Refused, err.Error()
		case len(rep.Findings) > 0:
			v.Outcome, v.By, v.Seed = Reported, by(rep.Findings[0], 0), seed.Seed
		case !o.right(out):
			v.Outcome, v.Seed = Values, seed.Seed
		}
		if v.Outcome == Reported || v.Outcome == Refused {
			break
		}
	}
	if !m.Kind.Synchronises() && !m.Kind.Values() && v.Outcome != Refused {
		v.Leaves = o.leaves()
	}
	return v
}

func by(f gpusim.Finding, c gpusim.Code) string {
	if f.Check != 0 {
		return f.Check.String()
	}
	return c.String()
}

// leaves runs the kernel, as it is set, in a single allocation in which the buffers lie far apart. It touched what lies
// between if that changed, or if the results depend on what is there.
func (o *Opened) leaves() bool {
	var results [2][][]byte
	for i := range results {
		l := &together{fill: byte(0x5a ^ i*0xff)}
		_, out, err := o.run(gpusim.Options{}, l)
		if err != nil {
			return !errors.As(err, new(*gpusim.Fault)) || l.changed // a fault is memcheck's word, which does not count here
		}
		if l.changed {
			return true
		}
		results[i] = out
	}
	return !slices.EqualFunc(results[0], results[1], bytes.Equal)
}

// together puts the buffers into one allocation full of a byte.
type together struct {
	fill    byte
	base    uint64
	image   []byte
	spans   [][2]int
	changed bool
}

func (l *together) place(d *gpusim.Device, bufs []*Buffer) (addrs []uint64, err error) {
	size := gap
	for _, b := range bufs {
		l.spans = append(l.spans, [2]int{size, size + b.size()})
		size = (size + b.size() + gap + 255) &^ 255
	}
	if l.base, err = d.Alloc(size, "together"); err != nil {
		return nil, err
	}
	l.image = bytes.Repeat([]byte{l.fill}, size)
	for i, b := range bufs {
		at := l.image[l.spans[i][0]:l.spans[i][1]]
		clear(at)
		copy(at, b.Data)
		addrs = append(addrs, l.base+uint64(l.spans[i][0]))
	}
	return addrs, d.Write(l.base, l.image)
}

func (l *together) read(d *gpusim.Device) error {
	after := make([]byte, len(l.image))
	if err := d.Read(after, l.base); err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	for _, s := range l.spans {
		copy(l.image[s[0]:s[1]], after[s[0]:s[1]])
	}
	l.changed = !bytes.Equal(l.image, after)
	return nil
}
