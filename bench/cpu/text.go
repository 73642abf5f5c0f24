package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/internal/cpufeat"
)

func header() {
	fmt.Println("| case | threads | PyTorch | as people run it | ours | ratio | at least | bar | |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
}

func (r *runner) line(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

// judge counts a bar.
func (r *runner) judge(met bool) string {
	if met {
		r.passed++
		return "met"
	}
	r.missed++
	return "**missed**"
}

func (r *runner) verdict() { fmt.Printf("\n%d bars are met, %d are missed.\n", r.passed, r.missed) }

// slack is what a bar is less, for noise.
const slack = 0.02

func (r *row) title() string {
	name := fmt.Sprintf("%s %s %d", r.bench, r.name, r.n)
	if r.dtype != "f32" {
		name += " " + r.dtype
	}
	return name
}

// tell prints the lines of a row, one for each bar.
func (r *runner) tell(res *result) {
	row, ours := res.row, peer.Median(res.ours)
	name, threads := row.title(), fmt.Sprint(res.threads)
	people := ""
	if len(res.people) > 0 {
		people = duration(res.scaled(peer.Median(res.people)))
	}
	mine := duration(res.scaled(ours))
	if res.flops > 0 {
		mine += fmt.Sprintf(", %.0f GFLOP/s", res.flops/ours/1e9)
	}
	if row.most > 0 {
		beside := ""
		if l := res.theirs[row.layouts[0]]; l != nil {
			beside = duration(res.scaled(peer.Median(l)))
		}
		r.line(name, threads, beside, people, mine, "", "", fmt.Sprintf("≤ %.0f ns", row.most), r.judge(1e9*res.scaled(ours) <= row.most))
		return
	}
	layouts := []string{""}
	for _, b := range row.bars {
		if b.layout != "" && !slices.Contains(layouts, b.layout) {
			layouts = append(layouts, b.layout)
		}
	}
	for _, l := range layouts {
		if want, ok := row.of(res.threads, l); ok {
			r.beside(res, name, threads, people, mine, l, want)
		}
	}
	if c := res.theirs["compiled"]; c != nil {
		r.line(name, threads, duration(peer.Median(c))+" compiled", "", mine, fmt.Sprintf("%.2f", peer.Median(c)/ours), "", "", "")
	}
	r.limits(res, name, threads, mine, ours)
}

// beside prints the line of a bar beside PyTorch in a layout, or in its better one.
func (r *runner) beside(res *result, name, threads, people, mine, layout string, want float64) {
	l := cmp.Or(layout, res.layout())
	if len(res.theirs[l]) == 0 {
		r.line(name, threads, "", "", mine, "", "", fmt.Sprintf("%.2f", want), "")
		return
	}
	mean, lower := res.ratio(l)
	theirs := duration(res.scaled(peer.Median(res.theirs[l])))
	if len(res.row.layouts) > 1 {
		theirs += map[string]string{"nchw": " NCHW", "cl": " channels_last"}[l]
	}
	verdict := ""
	switch {
	case amx(res.row):
		verdict = "shown: PyTorch has AMX here"
	case !res.row.better: // else the line of all threads is the verdict
		verdict = r.judge(lower >= want-slack)
	}
	r.line(name, threads, theirs, people, mine, fmt.Sprintf("%.2f", mean), fmt.Sprintf("%.2f", lower), fmt.Sprintf("%.2f", want), verdict)
	if !res.row.better {
		return
	}
	key := res.row
	t, o := peer.Median(res.theirs[l]), peer.Median(res.ours)
	if before, ok := r.best[key]; ok {
		ratio := min(t, before) / min(o, r.single[key])
		r.line(name, "better", "", "", "", fmt.Sprintf("%.2f", ratio), "", fmt.Sprintf("%.2f", want), r.judge(ratio >= want-slack))
	}
	r.best[key] = t
	r.single[key] = o
}

// amx tells whether PyTorch has instructions for a row that no program without the system's leave may use.
func amx(row *row) bool {
	return row.dtype == "bf16" && slices.Contains(cpufeat.Describe().Features, "amx-bf16")
}

// limits prints the lines of a row whose bars are of the machine's own limits.
func (r *runner) limits(res *result, name, threads, mine string, ours float64) {
	row := res.row
	if row.share > 0 && res.threads == 1 && len(res.ceiling) > 0 {
		r.single[row] = ours
		ceiling := slices.Max(res.ceiling)
		share := res.flops / slices.Min(res.ours) / ceiling
		r.line(name+", of the ceiling", threads, fmt.Sprintf("%.0f GFLOP/s", ceiling/1e9), "", mine, fmt.Sprintf("%.2f", share), "", fmt.Sprintf("%.2f", row.share), r.judge(share >= row.share-slack))
	}
	if row.scale > 0 && res.threads == 2 && r.single[row] > 0 {
		ratio := r.single[row] / ours
		r.line(name+", beside one thread", threads, "", "", mine, fmt.Sprintf("%.2f", ratio), "", fmt.Sprintf("%.2f", row.scale), r.judge(ratio >= row.scale-slack))
	}
}

// scaled is the seconds of what people count: of one operation, one batch, one token.
func (r *result) scaled(s float64) float64 {
	switch {
	case r.row.most > 0:
		return s / 32 // operations in a turn
	case r.row.bench == "data":
		return s / 50 // batches in a turn
	case strings.HasPrefix(r.row.name, "generate"):
		return s / float64(r.row.n)
	}
	return s
}

func duration(s float64) string {
	switch {
	case s < 1e-6:
		return fmt.Sprintf("%.0f ns", 1e9*s)
	case s < 1e-3:
		return fmt.Sprintf("%.1f µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.2f ms", 1e3*s)
	}
	return fmt.Sprintf("%.2f s", s)
}
