package simrun

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// Comparison is another kernel under the same arguments, counter by counter.
type Comparison struct {
	File     string    `json:"file"`
	Kernel   string    `json:"kernel"`
	Grid     [3]int    `json:"grid"`
	Block    [3]int    `json:"block"`
	Found    int       `json:"findings"`
	Counters []Counter `json:"counters"`
}

// Counter is one figure of two kernels.
type Counter struct {
	Name  string  `json:"name"`
	This  float64 `json:"this"`
	Other float64 `json:"other"`
}

// against runs the other kernel of a config and compares the results. Nothing of it is written.
func against(ctx context.Context, c Config, r *Result) (*Comparison, error) {
	o := c
	o.File, o.Outs, o.Against, o.Device, o.Registers = c.Against, nil, "", "", 0 // registers were told of the first
	o.Grid, o.Block, o.Meta = cmp.Or(c.AgainstGrid, c.Grid), cmp.Or(c.AgainstBlock, c.Block), cmp.Or(c.AgainstMeta, c.Meta)
	o.AgainstGrid, o.AgainstBlock, o.AgainstMeta = "", "", ""
	other, err := Run(ctx, o)
	if err != nil && c.Kernel != "" && other == nil {
		o.Kernel = "" // the only one of the other file may have another name
		if again, failed := Run(ctx, o); failed == nil {
			other, err = again, nil
		}
	}
	if err != nil {
		return nil, err
	}
	x := &Comparison{File: c.Against, Kernel: other.Kernel, Grid: other.Grid, Block: other.Block, Found: other.Found, Counters: []Counter{}}
	mine, theirs := r.figures(), other.figures()
	for i, f := range mine {
		x.Counters = append(x.Counters, Counter{f.Name, f.This, theirs[i].This})
	}
	return x, nil
}

// figures are what two results are compared by.
func (r *Result) figures() []Counter {
	list := []Counter{{Name: "instructions", This: float64(r.Instructions)}, {Name: "lane instructions", This: float64(r.LaneInstructions)}}
	for _, name := range classNames() {
		n := 0.0
		for _, c := range r.Classes {
			if c.Name == name {
				n = float64(c.Count)
			}
		}
		list = append(list, Counter{Name: name, This: n})
	}
	add := func(name string, v float64) { list = append(list, Counter{Name: name, This: v}) }
	add("divergent branches", float64(r.Divergent))
	add("global requests", float64(r.GlobalRequests))
	add("global sectors", float64(r.GlobalSectors))
	add("shared requests", float64(r.SharedRequests))
	add("shared wavefronts", float64(r.SharedWavefronts))
	add("bank conflicts", float64(r.BankConflicts))
	add("registers", float64(r.Registers))
	add("shared bytes", float64(r.Shared))
	add("warps of a multiprocessor", float64(r.Occupancy.Warps))
	m := r.Model
	if m == nil {
		m = &Model{}
	}
	add("memory bytes, modelled", m.DRAM)
	add("nanoseconds, modelled", 1e9*m.Seconds)
	return list
}

// text is a table of the figures that either kernel has.
func (x *Comparison) text(width int) string {
	t := render.Table{Header: []string{"", "this", "other", "this ÷ other"}, Right: []bool{false, true, true, true}}
	for _, c := range x.Counters {
		if c.This == 0 && c.Other == 0 {
			continue
		}
		ratio := "–"
		if c.Other != 0 {
			ratio = fmt.Sprintf("%.2f", c.This/c.Other)
		}
		t.Rows = append(t.Rows, []string{c.Name, fmt.Sprintf("%.0f", c.This), fmt.Sprintf("%.0f", c.Other), ratio})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "against %s of %s: %s blocks of %s threads\n%s", x.Kernel, x.File, dims(x.Grid), dims(x.Block), t.String(width))
	if x.Found > 0 {
		fmt.Fprintf(&b, "the other has %s, which a run of its own shows\n", plural(x.Found, "finding"))
	}
	return b.String()
}
