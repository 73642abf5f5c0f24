package diagnose

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
)

// Against reads a trace and an earlier one of the same training, tells the newer one's report, and then one of both, whose
// Figures have the rows as "against" and whose Detail is them.
func (c *Config) Against(ctx context.Context, name, before string, tell Tell) error {
	var both [2]*finding.Report
	for i, file := range []string{before, name} {
		var err error
		if both[i], err = c.trace(ctx, file); err != nil {
			return err
		}
	}
	if err := tell(tidied(both[1]), false); err != nil {
		return err
	}
	rows := kineto.Against(both[0], both[1])
	r := &finding.Report{File: name + " against " + before, Kind: "group", Members: []string{before, name}, Detail: rows,
		Figures: map[string]any{"against": rows}, Notes: kineto.Unlike(both[0], both[1])}
	return tell(tidied(r), false)
}

// trace reads a file that must be one.
func (c *Config) trace(ctx context.Context, name string) (*finding.Report, error) {
	var report *finding.Report
	err := c.opened(ctx, name, func(s *stream) (err error) {
		if report, err = kineto.Diagnose(ctx, name, s); err == nil {
			report.Notes = append(s.notes(), report.Notes...)
		}
		return err
	})
	return report, err
}

// opened gives use the content of a file that must be a trace.
func (c *Config) opened(ctx context.Context, name string, use func(s *stream) error) error {
	if name == Stdin {
		return advice.Failf("give the file's name: it is read twice, or beside another", "the standard input cannot be compared or annotated")
	}
	if isFolder(name) {
		return advice.Failf("give one rank's trace of it", "%s is a folder, and one trace is compared or annotated", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return advice.Explain(err, "give the file of a trace")
	}
	defer f.Close()
	size := int64(0)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	s, err := c.open(ctx, name, f, size)
	if err != nil {
		return err
	}
	if !kineto.Is(s.head) {
		return advice.Failf("give a trace of PyTorch's profiler, as prof.export_chrome_trace writes it", "%s is no trace", name)
	}
	if err := use(s); err != nil {
		return advice.Explain(fmt.Errorf("%s: %w", name, err), "is it whole?")
	}
	return nil
}

// Annotatable is why out cannot be written from a trace, as far as that shows before anything is read.
func Annotatable(name, out string) error {
	switch dir := filepath.Dir(out); {
	case !isFolder(dir):
		return advice.Failf("make it, or give another name", "%s cannot be written: there is no folder %s", out, dir)
	case isFolder(out):
		return advice.Failf("give a file's name, as in "+filepath.Join(out, "queues.json.gz"), "%s cannot be written: it is a folder", out)
	case same(name, out):
		return advice.Failf("give another name", "%s would be written over itself", name)
	}
	return nil
}

// same tells that two names are of one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// Annotate writes a trace again, with counters added of what is queued and of what is busy, for viewers; compressed where the
// new name ends in .gz.
func (c *Config) Annotate(ctx context.Context, name, out string) error {
	if err := Annotatable(name, out); err != nil {
		return err
	}
	var t *kineto.Trace
	if err := c.opened(ctx, name, func(s *stream) (err error) {
		t, err = kineto.Read(ctx, s)
		return err
	}); err != nil {
		return err
	}
	return durable.WriteFile(out, func(w io.Writer) error {
		return c.opened(ctx, name, func(s *stream) error {
			if !strings.HasSuffix(out, ".gz") {
				return t.Annotate(w, s)
			}
			z := gzip.NewWriter(w)
			if err := t.Annotate(z, s); err != nil {
				return err
			}
			return z.Close()
		})
	})
}

// Look reads a trace to be looked at.
func (c *Config) Look(ctx context.Context, name string) (v *kineto.View, err error) {
	err = c.opened(ctx, name, func(s *stream) (err error) {
		v, err = kineto.Look(ctx, s)
		return err
	})
	return v, err
}

// Event is an event of a trace as it stands in the file, decompressed, at a place that a view tells; nil where it is longer than anybody
// reads.
func (c *Config) Event(ctx context.Context, name string, place int64) (raw json.RawMessage, err error) {
	err = c.opened(ctx, name, func(s *stream) error {
		if _, err := io.CopyN(io.Discard, s, place); err != nil {
			return err
		}
		if json.NewDecoder(io.LimitReader(s, longestEvent)).Decode(&raw) != nil {
			raw = nil
		}
		return nil
	})
	return raw, err
}

const longestEvent = 1 << 16

// span is microseconds.
func span(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// mostRows are shown of what changed.
const mostRows = 12

// Comparison shows what changed between two traces, at most width columns wide.
func Comparison(w io.Writer, rows []kineto.Change, width int) error {
	t := render.Table{Header: []string{"a step of", "before", "after", "difference", "ratio", "calls before", "after"},
		Right: []bool{false, true, true, true, true, true, true}, Spare: []int{4}}
	kernels := 0
	for i := range rows {
		c := &rows[i]
		name, calls := c.Name, []string{"", ""}
		if c.What == "kernel" {
			if kernels++; kernels > mostRows {
				continue
			}
			name = kineto.ShortName(name)
			calls = []string{fmt.Sprintf("%.4g", c.Calls[0]), fmt.Sprintf("%.4g", c.Calls[1])}
		} else if c.Before == 0 && c.After == 0 {
			continue
		}
		from, to := span(c.Before), span(c.After)
		t.Rows = append(t.Rows, append([]string{name, render.Duration(from), render.Duration(to), render.Signed(to - from), render.Ratio(from, to)}, calls...))
	}
	text := t.String(width)
	if kernels > mostRows {
		text += fmt.Sprintf("and %d more kernels: --json has all\n", kernels-mostRows)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}
