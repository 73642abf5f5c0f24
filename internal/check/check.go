// Package check is what warpline check does: it runs the conformance suite on any device, compares it with the float64
// reference, and tries what package device promises, one device alone and several together.
package check

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	_ "github.com/warpline-ml/warpline/internal/engines" // the devices
	"github.com/warpline-ml/warpline/internal/ir"
)

// UnknownError is a name in Config.Ops or Config.Skip that is none of Ops.
type UnknownError struct{ Name string }

// Error says which name.
func (e *UnknownError) Error() string { return fmt.Sprintf("there is no operation %q", e.Name) }

// Config says what to check.
type Config struct {
	Device string   // as device.Open takes it
	Seed   uint64   // of the operands; 0: a fresh one
	Short  bool     // without the large shapes
	Part   Part     // of the cases of operations
	Ops    []string // only these, in any case, without the device's promises; none: all
	Skip   []string // not these
	// Progress is told of each part before it runs, and of an operation's before each case; may be nil.
	Progress func(done, all int, name string)
}

// Part is a share of the cases of operations and gradients: 1 of 3, 2 of 3 and 3 of 3 are all of them, and none twice. The zero
// value is all.
type Part struct{ I, Of int }

// mostParts leaves each a case of most operations.
const mostParts = 100

// ParsePart reads "1/3".
func ParsePart(s string) (Part, error) {
	var p Part
	first, last, _ := strings.Cut(s, "/")
	i, err := strconv.Atoi(first)
	n, err2 := strconv.Atoi(last)
	if p = (Part{i, n}); err != nil || err2 != nil || i < 1 || i > n || n > mostParts {
		return Part{}, advice.Failf("give --part I/N with I from 1 to N: 1/3, 2/3 and 3/3 are all cases", "--part %q is no share", s)
	}
	return p, nil
}

// String is "1/3", or nothing of all.
func (p Part) String() string {
	if p.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.I, p.Of)
}

// takes reports whether the case with that name is in it, of a run with a seed: which of the shares it is in differs by seed.
func (p Part) takes(seed uint64, name string) bool {
	return p.Of < 2 || crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %s", seed, name))%uint32(p.Of) == uint32(p.I-1)
}

// Row is the outcome of one part: a promise, an operation, a gradient rule.
type Row struct {
	Part        string  `json:"part"` // "device", "op", "gradient", "devices"
	Name        string  `json:"name"`
	Cases       int     `json:"cases"`
	Failed      int     `json:"failed"`                // Unsupported among them
	Lowered     int     `json:"lowered"`               // computed by simpler operations
	Unsupported int     `json:"unsupported,omitempty"` // not computed at all
	Worst       float64 `json:"worst"`                 // the greatest error as a share of what is allowed
	Seconds     float64 `json:"seconds"`
	First       string  `json:"first,omitempty"`   // the first failure
	Skipped     string  `json:"skipped,omitempty"` // why it was not run

	broken bool // the device is out of use since
}

// Report is the outcome of a check.
type Report struct {
	Device  string  `json:"device"`
	Model   string  `json:"model"`
	Compute string  `json:"compute,omitempty"` // capability
	Memory  int64   `json:"memory"`            // bytes
	SMs     int     `json:"sms,omitempty"`
	Clock   int64   `json:"clock,omitempty"` // Hz
	Wider   string  `json:"wider,omitempty"` // what is computed in a wider type than asked for
	Seed    uint64  `json:"seed"`
	Share   string  `json:"share,omitempty"` // of the cases: "1/3"
	Rows    []Row   `json:"-"`
	Cases   int     `json:"cases"`
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"`
	Cut     bool    `json:"interrupted,omitempty"` // before all was done
	Broken  string  `json:"broken,omitempty"`      // the part with which the device went out of use; those after it were not run

	stuck bool // the last part did not come to its end
}

// part is a piece of the work. Its error, other than the context's, is a failure of the device.
type part struct {
	row Row
	run func(ctx context.Context, row *Row) error
}

// Run checks a device. The error is one that keeps the check from running; failures are in the Report. A cancelled
// context ends it, with a Report of what was done, and so does a card that does not answer.
func Run(ctx context.Context, c Config) (*Report, error) {
	codes, err := c.codes()
	if err != nil {
		return nil, err
	}
	name, dev, err := open(c.Device)
	if err != nil {
		return nil, err
	}
	if dev.Info().Null {
		return nil, advice.Failf("give --device cuda:N, cpu or sim:N", "%s computes nothing, so there is nothing to check", name)
	}
	for c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	rep := newReport(name, dev, c)
	s, err := newSuite(dev, c, codes)
	if err != nil {
		return nil, err
	}
	parts := s.parts()
	if len(c.Ops) == 0 {
		parts = slices.Concat(compiling(name, dev), promises(dev), parts, together(name, dev))
	}
	rep.run(ctx, parts, patienceWith(name), s.telling(c.Progress))
	if rep.stuck {
		return rep, nil // the suite's queue is in use
	}
	if rep.Cases == 0 && c.Part != (Part{}) && !rep.Cut {
		return nil, errors.Join(advice.Failf("ask for a larger share, or for more operations", "part %s has no case of what is to be checked", c.Part), s.close())
	}
	if err := watch(ctx, patienceWith(name), s.close); err != nil && rep.Broken == "" { // a broken device refuses everything
		rep.keep(Row{Part: "device", Name: "close", Cases: 1}, err)
	}
	return rep, nil
}

// run runs parts, each for no longer than a limit if that is not 0, until the device fails or the context ends.
func (rep *Report) run(ctx context.Context, parts []part, limit time.Duration, progress func(done, all int, name string)) {
	start := time.Now()
	for i := range parts {
		if progress != nil {
			progress(i, len(parts), parts[i].row.Name)
		}
		if rep.add(ctx, &parts[i], limit); rep.Cut || rep.Broken != "" {
			break
		}
	}
	rep.Seconds = time.Since(start).Seconds()
}

func newReport(name device.Name, dev device.Device, c Config) *Report {
	info := dev.Info()
	rep := &Report{Device: name.String(), Model: info.Model, Memory: info.Memory, SMs: info.SMs, Clock: info.Clock, Wider: info.Wider, Seed: c.Seed, Share: c.Part.String()}
	if info.Compute[0] > 0 {
		rep.Compute = fmt.Sprintf("%d.%d", info.Compute[0], info.Compute[1])
	}
	return rep
}

// add runs a part and keeps its row, of a part that was interrupted as far as it went.
func (rep *Report) add(ctx context.Context, p *part, limit time.Duration) {
	start := time.Now()
	row := p.row
	inner, cancel := context.WithCancel(ctx)
	defer cancel() // what is left to itself ends before its next case
	err := watch(ctx, limit, func() error { return p.run(inner, &row) })
	if rep.stuck = stuck(err); !rep.stuck {
		p.row = row
	}
	if rep.Cut = ctx.Err() != nil; rep.Cut && !rep.stuck {
		err = nil // that of the context
	}
	p.row.Seconds = time.Since(start).Seconds()
	rep.keep(p.row, err)
}

// keep adds the row of a part that ended with err.
func (rep *Report) keep(row Row, err error) {
	if err != nil {
		row.Cases = max(row.Cases, 1)
		row.fail(err.Error())
	}
	if row.broken || outOfUse(err) || stuck(err) {
		rep.Broken = row.Name
	}
	rep.Cases += row.Cases
	rep.Failed += row.Failed
	rep.Rows = append(rep.Rows, row)
}

// outOfUse reports whether an error is one after which a device does nothing more in this process.
func outOfUse(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Result.Sticky()
}

func (r *Row) fail(why string) {
	if r.Failed++; r.Failed == 1 {
		r.First = why
	}
}

// codes are those of the operations to check.
func (c *Config) codes() ([]ir.Code, error) {
	all := make([]ir.Code, 0, ir.Codes)
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		all = append(all, code)
	}
	only, err := parse(all, c.Ops)
	if err != nil {
		return nil, err
	}
	skip, err := parse(all, c.Skip)
	if err != nil {
		return nil, err
	}
	if len(c.Ops) == 0 {
		only = all
	}
	only = slices.DeleteFunc(only, func(code ir.Code) bool { return slices.Contains(skip, code) })
	if len(c.Ops) > 0 && len(only) == 0 {
		return nil, advice.Failf("name other operations; warpline check --list has them all", "--skip leaves none of --ops to check")
	}
	return only, nil
}

// parse finds op codes by their names.
func parse(all []ir.Code, names []string) (codes []ir.Code, err error) {
	for _, n := range names {
		i := slices.IndexFunc(all, func(code ir.Code) bool { return strings.EqualFold(code.String(), strings.TrimSpace(n)) })
		if i < 0 {
			return nil, &UnknownError{n}
		}
		codes = append(codes, all[i])
	}
	return codes, nil
}

// Ops lists the names of the operations that have cases.
func Ops() []string {
	var names []string
	for c := ir.Code(1); int(c) < ir.Codes; c++ {
		names = append(names, c.String())
	}
	return names
}

// compiling is the part in which the driver of a card compiles all kernels: side by side that takes a small part of the time
// that each would on its first use.
func compiling(name device.Name, dev device.Device) []part {
	c, ok := device.As[device.Compiler](dev)
	if !ok || name.Kind != "cuda" {
		return nil
	}
	return []part{{Row{Part: "device", Name: "kernels"}, func(ctx context.Context, row *Row) error {
		c.Compile(ctx, func(_ string, err error) {
			row.Cases++
			if err != nil {
				row.fail(err.Error())
				row.broken = row.broken || outOfUse(err)
			}
		})
		return ctx.Err()
	}}}
}

// promises are the parts about memory, queues and events.
func promises(dev device.Device) []part {
	var parts []part
	for _, p := range conform.Promises() {
		parts = append(parts, part{Row{Part: "device", Name: p.Name, Cases: 1}, func(context.Context, *Row) error {
			if err := p.Check(dev); err != nil {
				return fmt.Errorf("%s: %w", p.What, err)
			}
			return nil
		}})
	}
	return parts
}
