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

// Table is how rows are shown.
type Table struct {
	By      By
	Sort    string // the name of a column; "" is "self"
	Top     int    // rows; 0 is 20, below 0 all
	Width   int    // of the text, in columns; 0 is 120
	Explain bool   // what each column is, and what to do if it is high
}

// column is one of a table's.
type column struct {
	name    string
	text    func(r *Row, of time.Duration) string
	less    func(a, b *Row) int // highest first
	explain string
}

var columns = []column{
	{"calls", func(r *Row, _ time.Duration) string { return fmt.Sprint(r.Calls) }, func(a, b *Row) int { return cmp.Compare(b.Calls, a.Calls) },
		"launches. Many short ones cost the host more than the device: fuse them (nn.Linear.Act, LinearCrossEntropy), or take larger batches"},
	{"self", func(r *Row, _ time.Duration) string { return render.Duration(r.Self) }, func(a, b *Row) int { return cmp.Compare(b.Self, a.Self) },
		"time of the device in this row alone. Begin with the highest"},
	{"share", func(r *Row, of time.Duration) string { return render.Percent(fraction(r.Self, of)) }, func(a, b *Row) int { return cmp.Compare(b.Self, a.Self) },
		"self of all work: what the step would gain at most if it were free"},
	{"total", func(r *Row, _ time.Duration) string { return render.Duration(r.Total) }, func(a, b *Row) int { return cmp.Compare(b.Total, a.Total) },
		"self, and of a module what the modules within it did. High beside a low self: look at those"},
	{"mean", func(r *Row, _ time.Duration) string { return render.Duration(r.Mean()) }, func(a, b *Row) int { return cmp.Compare(b.Mean(), a.Mean()) },
		"self for each call. Below some microseconds on a GPU a launch costs more than its work"},
	{"host", func(r *Row, _ time.Duration) string { return render.Duration(r.Host) }, func(a, b *Row) int { return cmp.Compare(b.Host, a.Host) },
		"time in which the host asked for it. Above self, the device waits for the host: fewer and larger operations"},
	{"GB/s", func(r *Row, _ time.Duration) string { return number(r.Bandwidth() / 1e9) }, func(a, b *Row) int { return cmp.Compare(b.Bandwidth(), a.Bandwidth()) },
		"bytes that its plan reads and writes, for its time. Near the memory's own it is as fast as it gets: move fewer bytes (16-bit dtypes, fused operations)"},
	{"GFLOP/s", func(r *Row, _ time.Duration) string { return number(r.Speed() / 1e9) }, func(a, b *Row) int { return cmp.Compare(b.Speed(), a.Speed()) },
		"arithmetic for its time. Low in products: odd sizes or float32 where bfloat16 would do (env.Autocast)"},
	{"roof", func(r *Row, _ time.Duration) string { return class(r) }, func(a, b *Row) int { return cmp.Compare(b.Self-b.Roof, a.Self-a.Roof) },
		"what binds it, and the share of self that the card's published figures would need for the bytes or the arithmetic. memory: move fewer bytes; compute: 16-bit dtypes; latency: fewer and larger operations. Sorted by what lies above the roof"},
}

// Columns are the names that Table.Sort takes.
func Columns() (names []string) {
	for i := range columns {
		names = append(names, columns[i].name)
	}
	return names
}

// class is the class of a row with its share of the roof; "" where the card is not known.
func class(r *Row) string {
	if r.Bound == "" {
		return ""
	}
	return r.Bound + " " + render.Percent(fraction(r.Roof, r.Self))
}

func fraction(a, of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return float64(a) / float64(of)
}

func number(f float64) string {
	switch {
	case f == 0:
		return ""
	case f < 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// WriteTable writes rows as text. A column that there is none of is an error, and nothing is written.
func (p *Profile) WriteTable(w io.Writer, t Table) error {
	by := slices.IndexFunc(columns, func(c column) bool { return c.name == cmp.Or(t.Sort, "self") })
	if by < 0 {
		return advice.Failf("sort by one of "+strings.Join(Columns(), ", "), "prof: no column %q%s", t.Sort, advice.Meant(t.Sort, Columns()))
	}
	if int(t.By) >= len(byNames) {
		return fmt.Errorf("prof: no rows of kind %d", t.By)
	}
	rows := p.Rows(t.By)
	sorting.By(rows, func(a, b Row) int { return columns[by].less(&a, &b) })
	_, err := io.WriteString(w, p.text(rows, t))
	return err
}

func (p *Profile) text(rows []Row, t Table) string {
	s := p.Summary()
	out := render.Table{Header: []string{t.By.String()}, Right: []bool{false}}
	for i := range columns {
		out.Header, out.Right = append(out.Header, columns[i].name), append(out.Right, true)
	}
	out.Header, out.Right = append(out.Header, "mostly"), append(out.Right, false)
	out.Spare = t.spare()
	most := cmp.Or(t.Top, 20)
	for i := range rows {
		if most >= 0 && i == most {
			break
		}
		r := &rows[i]
		cells := []string{r.Name}
		for j := range columns {
			cells = append(cells, columns[j].text(r, s.Sum))
		}
		out.Rows = append(out.Rows, append(cells, mostly(r, t.By)))
	}
	var b strings.Builder
	b.WriteString(out.String(cmp.Or(t.Width, 120)))
	if left := len(rows) - len(out.Rows); left > 0 {
		fmt.Fprintf(&b, "and %d more\n", left)
	}
	fmt.Fprintf(&b, "\n%s\n", s)
	if p.Dropped > 0 {
		fmt.Fprintf(&b, "%d events came after the first %d and are not in it: record fewer steps, or set Config.Events\n", p.Dropped, len(p.all))
	}
	if p.cold {
		b.WriteString("the first step is in it, which also pays for what is made once: give Config a Warmup\n")
	}
	if s := p.shapes(); s != "" {
		b.WriteString(s + "\n")
	}
	for _, d := range p.Devices {
		if !d.Timed {
			fmt.Fprintf(&b, "%s tells no times\n", d.Name)
		}
	}
	if t.Explain {
		for i := range columns {
			fmt.Fprintf(&b, "%-8s %s\n", columns[i].name, columns[i].explain)
		}
	}
	return b.String()
}

// spare are the columns that go first where a line has no room for the names of rows. The one that rows are sorted by stays.
func (t *Table) spare() (all []int) {
	for _, name := range []string{"total", "mostly", "mean", "GFLOP/s"} {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		switch {
		case i < 0:
			all = append(all, len(columns)+1) // mostly, the last
		case name != t.Sort && (name != "total" || t.By != Module):
			all = append(all, i+1)
		}
	}
	return all
}

// mostly is where, or what, most of a row is.
func mostly(r *Row, by By) string {
	if by == Line || by == Module {
		return r.Op
	}
	return r.Line
}

// String is the summary on one line.
func (s Summary) String() string {
	return fmt.Sprintf("%s for %d steps: devices busy %s (%s), of it copies alone %s, idle %s; the host waited %s", render.Duration(s.Took), s.Steps,
		render.Duration(s.Busy), render.Percent(fraction(s.Busy, s.Took)), render.Duration(s.Copies), render.Duration(s.Idle), render.Duration(s.Waits))
}
