package prof

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Change is a row of two profiles: the work of a name in each, for a step.
type Change struct {
	Name   string        `json:"name"`
	Before time.Duration `json:"before_ns"` // self, of a step
	After  time.Duration `json:"after_ns"`
	Calls  [2]float64    `json:"calls"` // of a step, before and after
}

// Difference is what a step takes longer, below 0 what it takes less.
func (c *Change) Difference() time.Duration { return c.After - c.Before }

// Against are the rows of p beside those of before, a step of each, what changed most first. Names that only one of them has
// count as nothing in the other.
func (p *Profile) Against(before *Profile, by By) []Change {
	at := map[string]*Change{}
	add := func(q *Profile, i int) {
		for _, r := range q.Rows(by) {
			c := at[r.Name]
			if c == nil {
				c = &Change{Name: r.Name}
				at[r.Name] = c
			}
			c.Calls[i] = float64(r.Calls) / float64(max(1, len(q.steps)))
			*[]*time.Duration{&c.Before, &c.After}[i] = r.Self / time.Duration(max(1, len(q.steps)))
		}
	}
	add(before, 0)
	add(p, 1)
	var all []Change
	for _, c := range at {
		all = append(all, *c)
	}
	sorting.By(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Difference().Abs(), a.Difference().Abs()), cmp.Compare(b.After, a.After), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// WriteAgainst writes p beside before as a table, of which t says the rows, how many, and how wide: a step of each, what
// changed most first.
func (p *Profile) WriteAgainst(w io.Writer, before *Profile, t Table) error {
	if t.Sort != "" {
		return advice.Failf("leave it out", "prof: differences are in their own order, not by %q", t.Sort)
	}
	if int(t.By) >= len(byNames) {
		return fmt.Errorf("prof: no rows of kind %d", t.By)
	}
	all := p.Against(before, t.By)
	out := render.Table{Header: []string{t.By.String(), "before", "after", "difference", "ratio", "calls before", "after"}, Right: []bool{false, true, true, true, true, true, true}}
	most := cmp.Or(t.Top, 20)
	for i := range all {
		if most >= 0 && i == most {
			break
		}
		c := &all[i]
		out.Rows = append(out.Rows, []string{c.Name, render.Duration(c.Before), render.Duration(c.After), render.Signed(c.Difference()), render.Ratio(c.Before, c.After), number(c.Calls[0]), number(c.Calls[1])})
	}
	var b strings.Builder
	b.WriteString(out.String(cmp.Or(t.Width, 120)))
	if left := len(all) - len(out.Rows); left > 0 {
		fmt.Fprintf(&b, "and %d more\n", left)
	}
	from, to := before.step(), p.step()
	fmt.Fprintf(&b, "\na step: %s on %s before, %s on %s after, %s (%s)\n", render.Duration(from), before.where(), render.Duration(to), p.where(), render.Signed(to-from), render.Ratio(from, to))
	_, err := io.WriteString(w, b.String())
	return err
}

// step is how long one takes.
func (p *Profile) step() time.Duration { return p.Took / time.Duration(max(1, len(p.steps))) }

// where names the devices.
func (p *Profile) where() string {
	var names []string
	for _, d := range p.Devices {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// ByName is the kind of rows of a name, or an error that names them all.
func ByName(name string) (By, error) {
	if i := slices.Index(byNames, name); i >= 0 {
		return By(i), nil
	}
	return 0, advice.Failf(advice.Meant(name, byNames)+"choose one of "+strings.Join(byNames, ", "), "there are no rows by %q", name)
}
