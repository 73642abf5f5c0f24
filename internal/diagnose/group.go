package diagnose

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// group is what the members of a folder say together.
func (c *Config) group(ctx context.Context, name string, members []*finding.Report) (*finding.Report, error) {
	all := &finding.Report{File: name, Kind: "group", Figures: map[string]any{"files": len(members)}}
	for _, m := range members {
		all.Members = append(all.Members, m.File)
	}
	for _, g := range groupers {
		of := g.among(members)
		if len(of) < g.least {
			continue
		}
		said, err := g.group(ctx, of)
		if err != nil {
			return nil, err
		}
		maps.Copy(all.Figures, said.Figures)
		all.Findings = append(all.Findings, said.Findings...)
		all.Checked = append(all.Checked, said.Checked...)
		all.Notes = append(all.Notes, said.Notes...)
	}
	if n := found(members); n > 0 && len(all.Findings) == 0 {
		all.Notes = append(all.Notes, fmt.Sprintf("what is wrong is told of each file by itself: %d of %d", n, len(members)))
	}
	return all, nil
}

// found is how many reports have findings.
func found(all []*finding.Report) (n int) {
	for _, m := range all {
		if len(m.Findings) > 0 {
			n++
		}
	}
	return n
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// together tells what several files that were named one by one say together, if such files are compared at all.
func (c *Config) together(ctx context.Context, names []string, members []*finding.Report, tell Tell) error {
	comparison := slices.ContainsFunc(groupers, func(g grouper) bool { return len(g.among(members)) >= g.least })
	if !comparison {
		return nil
	}
	group, err := c.group(ctx, fmt.Sprintf("%d files of %s", len(members), filepath.Dir(names[0])), members)
	if err != nil {
		return err
	}
	return told(tell, group, false)
}

// natural orders names with their numbers as numbers: rank2 before rank10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, _ := strconv.ParseUint(a[:x], 10, 64)
			n, _ := strconv.ParseUint(b[:y], 10, 64)
			if m != n {
				return cmp.Compare(m, n)
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many a text begins with, at most 18.
func digits(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	return min(n, 18)
}

// numbersOnly takes figures that JSON cannot hold (NaN, infinities) out, and says so.
func numbersOnly(figures map[string]any) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		if _, err := json.Marshal(figures[name]); err != nil {
			delete(figures, name)
			notes = append(notes, fmt.Sprintf("the figure %s is left out: it is no number", name))
		}
	}
	return notes
}
