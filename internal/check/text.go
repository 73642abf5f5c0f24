package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/render"
)

// Text is the report for people.
func (rep *Report) Text(width int) string {
	var b strings.Builder
	b.WriteString(wrapped(width, "%s", rep.title()) + "\n")
	t := render.Table{
		Header: []string{"part", "name", "cases", "gradients", "failed", "lowered", "worst", "time"},
		Right:  []bool{false, false, true, true, true, true, true, true},
		Spare:  []int{5, 3, 0, 2, 7, 6}, // never the name and the failures
	}
	for _, r := range rep.merged() {
		t.Rows = append(t.Rows, []string{r.Part, r.Name, fmt.Sprint(r.Cases), count(r.gradients), count(r.Failed), count(r.Lowered), share(r.Worst), took(r.Seconds)})
	}
	b.WriteString(t.String(width))
	b.WriteString("\n" + wrapped(width, "worst: the greatest error as a share of what the tolerance table allows"))
	for _, r := range rep.Rows {
		if r.Failed > 0 {
			b.WriteString(wrapped(width, "FAILED %s %s: %d of %d: %s", r.Part, r.Name, r.Failed, r.Cases, r.First))
		}
		if r.Skipped != "" {
			b.WriteString(wrapped(width, "NOT RUN %s %s: %s", r.Part, r.Name, r.Skipped))
		}
	}
	b.WriteString(wrapped(width, "%s", rep.verdict()))
	return b.String()
}

// title is the device and what it is.
func (rep *Report) title() string {
	title := rep.Device + ": " + rep.Model
	if rep.Compute != "" {
		title += ", compute capability " + rep.Compute
	}
	if rep.SMs > 0 {
		title += fmt.Sprintf(", %d multiprocessors", rep.SMs)
	}
	title += ", " + render.Bytes(rep.Memory)
	if rep.Wider != "" {
		title += "; " + rep.Wider
	}
	return title
}

// wrapped is a paragraph, broken at words.
func wrapped(width int, format string, args ...any) string {
	line := strings.NewReplacer("\r", "", "\n", "; ")
	return render.Wrap(line.Replace(strings.TrimSpace(fmt.Sprintf(format, args...))), width, 2) + "\n"
}

// merged is a row with what belongs to the same operation.
type merged struct {
	Row
	gradients int
}

// merged joins the rows of operations with those of their gradient rules.
func (rep *Report) merged() (list []merged) {
	at := map[string]int{}
	for _, r := range rep.Rows {
		switch i, ok := at[r.Name]; {
		case r.Cases == 0:
		case r.Part == "gradient" && ok:
			m := &list[i]
			m.gradients += r.Cases
			m.Failed += r.Failed
			m.Worst, m.Seconds = max(m.Worst, r.Worst), m.Seconds+r.Seconds
		default:
			at[r.Name] = len(list)
			list = append(list, merged{Row: r})
		}
	}
	return list
}

// again is what else the same cases are asked for by.
func (rep *Report) again() string {
	if rep.Share == "" {
		return ""
	}
	return " --part " + rep.Share
}

func (rep *Report) verdict() string {
	took := took(rep.Seconds)
	switch {
	case rep.Broken != "":
		further := "--skip " + rep.Broken
		if slices.ContainsFunc(rep.Rows, func(r Row) bool { return r.Name == rep.Broken && strings.HasPrefix(r.Part, "device") }) {
			further = "--ops NAME" // without the device's promises
		}
		return fmt.Sprintf("%d of %d cases failed in %s, and the device is out of use since %s: the rest was not run; go on with %s%s (seed %d)", rep.Failed, rep.Cases, took, rep.Broken, further, rep.again(), rep.Seed)
	case rep.Failed > 0:
		return fmt.Sprintf("%d of %d cases failed in %s; repeat with --seed %d%s", rep.Failed, rep.Cases, took, rep.Seed, rep.again())
	case rep.Cut:
		return fmt.Sprintf("interrupted: the %d cases until then passed in %s (seed %d%s)", rep.Cases, took, rep.Seed, rep.again())
	}
	return fmt.Sprintf("all %d cases passed in %s (seed %d%s)", rep.Cases, took, rep.Seed, rep.again())
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func share(v float64) string {
	switch {
	case v == 0:
		return "exact"
	case v >= 1000:
		return fmt.Sprintf("%.0e", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func took(seconds float64) string {
	return render.Duration(time.Duration(seconds * float64(time.Second)))
}

// Text is the comparison for people.
func (t *Torch) Text(width int) string {
	table := render.Table{
		Header: []string{"job", "shape", "dtype", "kernels", "here", "PyTorch", "speed ratio", "apart", "allowed"},
		Right:  []bool{false, false, false, true, true, true, true, true, true},
		Spare:  []int{8, 7, 3, 5, 4}, // never the ratio
	}
	var failures strings.Builder
	for _, c := range t.Rows {
		row := []string{c.Job, c.Shape, c.DType, strconv.FormatInt(c.Work.Kernels, 10), took(c.Ours), took(c.Theirs), fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.1e", c.Apart), fmt.Sprintf("%.0e", c.Allowed)}
		switch {
		case c.Error != "":
			row = append(row[:3], "", "failed", "", "", "", "")
			failures.WriteString(wrapped(width, "FAILED %s %s: %s", c.Job, c.Shape, c.Error))
		case c.Failed():
			failures.WriteString(wrapped(width, "FAILED %s %s %s: the results are %.2e apart, allowed is %.0e", c.Job, c.Shape, c.DType, c.Apart, c.Allowed))
		}
		table.Rows = append(table.Rows, row)
	}
	return "\n" + wrapped(width, "beside PyTorch %s on %s, same inputs, TF32 off; a ratio above 1: faster here", t.Version, t.Device) +
		"\n" + table.String(width) + failures.String()
}
