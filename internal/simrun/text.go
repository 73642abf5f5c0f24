package simrun

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// Text is the result for people, in at most width columns where it is a table.
func (r *Result) Text(width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s blocks of %s threads on %s\n", r.Kernel, dims(r.Grid), dims(r.Block), r.Card)
	b.WriteString(r.sampleText(width))
	if r.Output != "" {
		fmt.Fprintf(&b, "\nprintf\n%s\n", strings.TrimRight(r.Output, "\n"))
	}
	for _, g := range groups(r.Findings) {
		b.WriteString("\n" + g.text())
	}
	if r.Fault != nil {
		fmt.Fprintf(&b, "\nthe kernel was stopped: CUDA error %d, %s; the counts below are those of its block\n", r.Fault.Code, r.Fault.Name)
	}
	b.WriteString("\n" + r.counts(width))
	if r.Model != nil {
		b.WriteString("\n" + r.Model.text(width) + "\n" + linesText(r.Lines, r.shownLines, width))
	}
	for i := range r.Advice {
		b.WriteString(r.Advice[i].Text())
	}
	if r.Against != nil {
		b.WriteString("\n" + r.Against.text(width))
	}
	if r.Device != nil {
		b.WriteString("\n" + r.Device.text(width) + "\n")
	}
	for _, o := range r.Outs {
		more := ""
		if len(o.First) == shown {
			more = " …"
		}
		place := ""
		if o.File != "" {
			place = ", is in " + o.File
		}
		fmt.Fprintf(&b, "argument %d, %s%s%s: %s%s\n", o.Arg, o.Type, shapeText(o.Shape), place, strings.Join(o.First, " "), more)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	b.WriteString(r.Summary() + "\n")
	return b.String()
}

// sampleText says that counts are scaled, and how far off they may be; nothing where all blocks were counted.
func (r *Result) sampleText(width int) string {
	all := r.Grid[0] * r.Grid[1] * r.Grid[2]
	if r.Counted == 0 || r.Counted == all || r.Fault != nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d blocks ran, and all counts are scaled from them. ", r.Counted, all)
	switch e := r.SampleError; {
	case e == nil:
		text += "They are too few to tell how far off that may be."
	case *e == Sampled{}:
		text += "All of these do as much."
	default:
		text += fmt.Sprintf("They differ, so that instructions may be off by %s, sectors by %s and wavefronts by %s (an interval of 95 %%).",
			render.Percent(e.Instructions), render.Percent(e.Sectors), render.Percent(e.Wavefronts))
	}
	return render.Wrap(text, width, 0) + "\n"
}

// Text is the finding for people: several lines, the first with what happened.
func (f *Finding) Text() string { return (&group{Finding: f, count: f.Count}).text() }

// text is the findings for people: several lines, the first with what happened.
func (f *group) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Check, f.Message)
	if f.count > 1 {
		fmt.Fprintf(&b, " (%d times)", f.count)
	}
	b.WriteByte('\n')
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s  %s\n", name, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	if f.Source != "" {
		line("source", "%s  %s", f.Source, f.SourceText)
	}
	for i, c := range f.Callers {
		line("", "inlined into %s  %s", c, f.callerTexts[i])
	}
	if f.Line > 0 {
		line("PTX", "line %d  %s", f.Line, strings.ReplaceAll(f.PTX, "\t", " "))
	}
	switch {
	case f.more > 0 && f.paired:
		line("", "and %s of PTX lines", plural(f.more, "more pair"))
	case f.more > 0:
		line("", "and %s", plural(f.more, "more PTX line"))
	}
	if f.Line > 0 {
		line("thread", "%d,%d,%d of block %d,%d,%d in %s", f.Thread[0], f.Thread[1], f.Thread[2], f.Block[0], f.Block[1], f.Block[2], f.Kernel)
	} else {
		line("by", "a %s", f.Kernel)
	}
	if f.Space != "" {
		line("address", "%s %s, %d bytes", f.Space, f.Address, f.Size)
	}
	if f.Allocation != "" {
		line("memory", "%s", f.Allocation)
	}
	return b.String()
}

func (r *Result) counts(width int) string {
	t := render.Table{Right: []bool{false, true, false}}
	row := func(name string, n uint64, format string, args ...any) {
		t.Rows = append(t.Rows, []string{name, strconv.FormatUint(n, 10), fmt.Sprintf(format, args...)})
	}
	row("instructions", r.Instructions, "of warps; %d of lanes, %s of the lanes active", r.LaneInstructions, render.Percent(r.Lanes))
	for _, c := range r.Classes {
		row("  "+c.Name, c.Count, "%s", render.Percent(share(c.Count, r.Instructions)))
	}
	row("branches", r.Branches, "of warps; %d divergent", r.Divergent)
	row("global requests", r.GlobalRequests, "%d sectors, %.2f a request", r.GlobalSectors, share(r.GlobalSectors, r.GlobalRequests))
	row("shared requests", r.SharedRequests, "%d wavefronts, %.2f a request; %d bank conflicts", r.SharedWavefronts, share(r.SharedWavefronts, r.SharedRequests), r.BankConflicts)
	row("registers", uint64(r.Registers), "a thread, %s", r.RegistersBy)
	row("shared bytes", uint64(r.Shared), "a block")
	o := r.Occupancy
	row("occupancy", uint64(o.Warps), "warps of %d blocks on a multiprocessor, %s; limited by %s", o.Blocks, render.Percent(o.Ratio), o.Limiter)
	if o.Change != "" {
		t.Rows = append(t.Rows, []string{"", "", o.Change})
	}
	return t.String(width)
}

// share is a/b, 0 where b is.
func share(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }
