package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/counts"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/render"
)

// judge prints, by program and by kernel, how far times by the table are from those by what was counted, on one card.
func judge(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	card, _ := cards.Find("a100-80")
	programs, kernels := verdicts{}, verdicts{}
	lines := json.NewDecoder(f)
	for {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		again, known := counts.Recount(l.Kernel, &l.Facts, l.Work)
		counted, _ := estimate.Seconds(&card, &l.Work)
		table, _ := estimate.Seconds(&card, &again)
		programs.add(l.Program, float64(l.Times)*counted, float64(l.Times)*table, !known)
		kernels.add(l.Kernel, float64(l.Times)*counted, float64(l.Times)*table, !known)
	}
	programs.print("program")
	fmt.Println()
	kernels.print("kernel")
	return nil
}

// verdict is how long launches take, in seconds, by what was counted and by the table, and how far the launches are off one by one.
type verdict struct {
	name                string
	counted, table, off float64
	missing             bool // the table has no row of it
}

func (v *verdict) row() []string {
	table := fmt.Sprintf("%+.1f %%", 100*(v.table/v.counted-1))
	if v.missing {
		table = "no row"
	}
	return []string{v.name, render.Duration(time.Duration(1e9 * v.counted)), table, fmt.Sprintf("%.1f %%", 100*v.off/v.counted)}
}

// verdicts are by name.
type verdicts map[string]*verdict

func (v verdicts) add(name string, counted, table float64, missing bool) {
	if v[name] == nil {
		v[name] = &verdict{name: name}
	}
	x := v[name]
	x.counted, x.table, x.off, x.missing = x.counted+counted, x.table+table, x.off+math.Abs(table-counted), x.missing || missing
}

// print writes a table, what is farthest off first.
func (v verdicts) print(title string) {
	t := render.Table{Header: []string{title, "counted", "table", "one by one"}, Right: []bool{false, true, true, true}}
	for _, x := range slices.SortedFunc(maps.Values(v), func(a, b *verdict) int { return cmp.Compare(b.off, a.off) }) {
		t.Rows = append(t.Rows, x.row())
	}
	fmt.Print(t.String(100))
}
