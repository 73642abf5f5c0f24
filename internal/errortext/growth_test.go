package errortext

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

var readingForm = regexp.MustCompile(`(?i)\b(?:max[ _]?mem(?:ory)?|gpu[ _]?mem(?:ory)?|mem(?:ory)?(?:[ _]?(?:allocated|used|alloc))?|allocated)\b['"]?\s*[:=]?\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|[MG]\b)?`)

// TestReading compares figures of memory with those that an expression finds, in lines put together of parts of such lines.
func TestReading(t *testing.T) {
	parts := []string{"max", "gpu", "mem", "memory", "Mem", "GPU", "allocated", "alloc", "used", "_", " ", " ", ":", "=", "'", "\"", "1", "2.5", "31.", "G", "GB", "GiB", "gib", "MiB", "M", "K", "x", ",", "\t", "é"}
	r := testutil.Rand(t)
	for range 200_000 {
		line := ""
		for range 2 + r.IntN(10) {
			line += parts[r.IntN(len(parts))]
		}
		want, has := 0.0, false
		if m := readingForm.FindStringSubmatch(line); m != nil {
			want, _ = strconv.ParseFloat(m[1], 64)
			if m[2] != "" && m[2][0]|0x20 == 'g' {
				want *= 1024
			}
			has = true
		}
		if got, ok := reading(line); got != want || ok != has {
			t.Fatalf("%q: %g %v, want %g %v", line, got, ok, want, has)
		}
	}
}

// TestCheckedNumbers: figures are called well only where all that was printed is.
func TestCheckedNumbers(t *testing.T) {
	for last, well := range map[string]int{"step 31 loss 2.1 grad_norm 1.2": 2, "step 31 loss nan grad_norm nan": 0, "step 31 loss 2.1 grad_norm 40": 1} {
		var w Numbers
		for i := range 30 {
			w.Add("step "+strconv.Itoa(i+1)+" loss 2.1 grad_norm 1.1", int64(i+1))
		}
		w.Add(last, 31)
		if got := w.Checked(); len(got) != well {
			t.Errorf("%s: well are %q", last, got)
		}
	}
}
