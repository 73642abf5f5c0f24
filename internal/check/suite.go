package check

import (
	"context"
	"fmt"

	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// suite runs the conformance cases of each op code.
type suite struct {
	runner  *conform.Runner
	share   Part
	options conform.Options
	codes   []ir.Code
	tell    func(piece string) // tells of what is under way in a part
}

func newSuite(dev device.Device, c Config, codes []ir.Code) (*suite, error) {
	r, err := conform.NewRunner(dev)
	if err != nil {
		return nil, err
	}
	return &suite{runner: r, share: c.Part, options: conform.Options{Seed: c.Seed, Short: c.Short}, codes: codes, tell: func(string) {}}, nil
}

// telling is progress that is also told of the cases inside a part; nil stays nil.
func (s *suite) telling(progress func(done, all int, name string)) func(done, all int, name string) {
	if progress == nil {
		return nil
	}
	return func(done, all int, name string) {
		s.tell = func(piece string) { progress(done, all, name+piece) }
		s.tell("")
	}
}

// takes reports whether the case with that name is in the share that is asked for.
func (s *suite) takes(name string) bool { return s.share.takes(s.options.Seed, name) }

func (s *suite) close() error { return s.runner.Close() }

// parts is a part per op code and one per gradient rule.
func (s *suite) parts() (parts []part) {
	for _, code := range s.codes {
		o := s.options
		o.Codes = []ir.Code{code}
		parts = append(parts, part{Row{Part: "op", Name: code.String()}, func(ctx context.Context, row *Row) error { return s.cases(ctx, row, o) }})
	}
	for _, code := range s.codes {
		o := s.options
		o.Codes = []ir.Code{code}
		parts = append(parts, part{Row{Part: "gradient", Name: code.String()}, func(ctx context.Context, row *Row) error { return s.gradients(ctx, row, o) }})
	}
	return parts
}

func (s *suite) cases(ctx context.Context, row *Row, o conform.Options) error {
	o.Takes = s.takes
	for c := range conform.Cases(o) {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.tell(fmt.Sprintf(", case %d", row.Cases+1)) // how many there are only making them tells, which takes half of the time
		res := s.runner.Run(c)
		row.Cases++
		row.Worst = max(row.Worst, res.Share())
		switch res.Status {
		case conform.Failed:
			row.fail(res.String())
		case conform.Lowered:
			row.Lowered++
		case conform.Unsupported:
			row.Unsupported++
			row.fail(res.String())
		}
		if outOfUse(res.Err) {
			row.broken = true
			return nil
		}
	}
	return nil
}

func (s *suite) gradients(ctx context.Context, row *Row, o conform.Options) error {
	for _, g := range conform.GradCases(o) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !s.takes(g.Name) {
			continue
		}
		s.tell(fmt.Sprintf(", gradient case %d", row.Cases+1))
		res := s.runner.Grad(g)
		row.Cases++
		row.Worst = max(row.Worst, res.Share())
		if res.Status != conform.Passed {
			row.fail(res.String())
		}
		if outOfUse(res.Err) {
			row.broken = true
			return nil
		}
	}
	return nil
}
