package oom

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// The screen is of this size at most: a terminal of 24 rows has room for what a command says after it, and for a prompt.
const (
	columns = 80
	rows    = 19
)

// screen is lines for people, cut at the columns.
type screen struct {
	lines []string
}

func (s *screen) say(format string, args ...any) {
	s.lines = append(s.lines, render.Truncate(fmt.Sprintf(format, args...), columns))
}

// wrap says a text that may take up to two lines.
func (s *screen) wrap(indent int, text string) {
	lines := strings.Split(strings.TrimRight(render.Wrap(text, columns-indent, 0), "\n"), "\n")
	for _, l := range lines[:min(len(lines), 2)] {
		s.say("%s%s", strings.Repeat(" ", indent), l)
	}
}

// WriteText writes one screen for people.
func (r *Report) WriteText(w io.Writer) error {
	s := &screen{}
	r.head(s)
	r.holders(s)
	r.fitting(s)
	r.levers(s)
	_, err := io.WriteString(w, strings.Join(s.lines[:min(len(s.lines), rows)], "\n")+"\n")
	return err
}

// head says what was asked for, and what there is.
func (r *Report) head(s *screen) {
	where := ""
	if r.Module != "" {
		where = " (module " + r.Module + ")"
	}
	s.wrap(0, fmt.Sprintf("out of memory on %s: %s at %s%s asked for %s", r.Device, r.Op, r.Line, where, render.Bytes(r.Asked)))
	limit := "no known limit"
	if r.Limit > 0 {
		limit = "limit " + render.Bytes(r.Limit)
	}
	s.say("  %s, allocated %s, reserved %s, largest free %s", limit, render.Bytes(r.Allocated), render.Bytes(r.Reserved), render.Bytes(r.LargestFree))
	switch {
	case r.Stuck > 0:
		s.say("  fragmented: %s free in pieces too small; in one piece they would do", render.Bytes(r.Stuck))
	case r.Rehearsed && r.Needed > r.Limit:
		s.say("  fragments are not the cause: the program needs more than the limit")
	case r.Free >= r.Asked:
		s.say("  not fragmented: the %s left are less than what the allocator takes at once", render.Bytes(r.Free))
	default:
		s.say("  not fragmented: what is free would not do in one piece either")
	}
}

// holders says who holds the memory.
func (r *Report) holders(s *screen) {
	kinds := r.ByKind()
	total := int64(0)
	for _, n := range kinds {
		total += n
	}
	if total == 0 {
		return
	}
	s.say("")
	s.say("who holds %s", render.Bytes(total))
	var bars []render.Bar
	for i, kind := range Largest(kinds, 4) {
		share := float64(kinds[kind]) / float64(max(total, 1))
		if i > 1 && share < 0.005 {
			break
		}
		bars = append(bars, render.Bar{Label: "  " + kind, Value: share, Text: fmt.Sprintf("%10s %3.0f %%", render.Bytes(kinds[kind]), 100*share)})
	}
	s.lines = append(s.lines, strings.Split(strings.TrimRight(render.Bars(bars, 72), "\n"), "\n")...)
	s.modules(r.ByModule())
	s.list("lines", r.ByLine(), 1)
}

// modules says the largest modules, by as much of their paths as leaves room for two.
func (s *screen) modules(sums map[string]int64) {
	delete(sums, "")
	for depth := 6; depth > 1; depth-- {
		if s.list("modules", shortened(sums, depth), min(2, len(shortened(sums, depth)))) {
			return
		}
	}
	s.list("modules", shortened(sums, 1), 1)
}

// shortened adds up the modules that share the first elements of their paths.
func shortened(sums map[string]int64, depth int) map[string]int64 {
	short := map[string]int64{}
	for path, n := range sums {
		parts := strings.Split(path, ".")
		short[strings.Join(parts[:min(depth, len(parts))], ".")] += n
	}
	return short
}

// list says the largest of a sum in one line, if there is room for as many as are wanted.
func (s *screen) list(name string, sums map[string]int64, want int) bool {
	line, n := fmt.Sprintf("  %-8s", name), 0
	for _, key := range Largest(sums, 4) {
		part := fmt.Sprintf(" %s %s", cmp.Or(key, "elsewhere"), render.Bytes(sums[key]))
		if n > 0 {
			part = "," + part
		}
		if render.Width(line+part) > columns {
			break
		}
		line, n = line+part, n+1
	}
	if n < want || n == 0 {
		return false
	}
	s.say("%s", line)
	return true
}

// Largest are the keys of up to n entries, largest first, but for those of none.
func Largest(sums map[string]int64, n int) []string {
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(k string) bool { return sums[k] == 0 })
	return keys[:min(n, len(keys))]
}

// fitting says what would have fitted.
func (r *Report) fitting(s *screen) {
	s.say("")
	switch {
	case !r.Rehearsed:
		return
	case r.Batch == 0:
		s.wrap(0, fmt.Sprintf("As it is the program needs %s (found by runs that compute nothing)", render.Bytes(r.Needed)))
	case r.LargestBatch >= r.Batch:
		s.wrap(0, fmt.Sprintf("The program fits as it is, with its %d samples a step, where nothing else is in memory.", r.Batch))
	case r.LargestBatch > 0:
		s.wrap(0, fmt.Sprintf("%s a step fit, not %d, which need %s (found by runs that compute nothing)", samples(r.LargestBatch), r.Batch, render.Bytes(r.Needed)))
	default:
		s.wrap(0, fmt.Sprintf("No batch fits: %s need %s; one with all that helps needs %s (found by runs that compute nothing)", samples(r.Batch), render.Bytes(r.Needed), render.Bytes(r.Least)))
	}
}

func samples(n int) string {
	if n == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", n)
}

// levers says what to do: of as many as there is room for.
func (r *Report) levers(s *screen) {
	if len(r.Levers) == 0 && r.Rehearsed && r.LargestBatch >= r.Batch {
		s.wrap(0, "Let go of what else is in memory.")
		return
	}
	if len(r.Levers) == 0 && r.Rehearsed {
		s.wrap(0, "Nothing that could be tried saves memory: take a device with more, or a smaller model.")
		return
	}
	if len(r.Levers) == 0 {
		s.wrap(0, "What helps: a smaller batch (data.Split), nn.Recompute around blocks, or a device with more memory.")
		return
	}
	s.say("what to do")
	for i, l := range r.Levers {
		fits := ""
		switch {
		case l.Fits:
			fits = ", fits"
		case l.Tried:
			fits = ", not enough"
		}
		gain := fmt.Sprintf("saves %s%s; costs %s", render.Bytes(l.Saves), fits, l.Cost)
		if line := fmt.Sprintf(" %d. %-16s %s", i+1, l.Flag, gain); render.Width(line) <= columns {
			s.say("%s", line)
			continue
		}
		if len(s.lines)+2 > rows {
			return
		}
		s.say(" %d. %s", i+1, l.Flag)
		s.say("    %s", gain)
	}
}
