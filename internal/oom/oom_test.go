package oom_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/oom"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// report is one with all there is, and names longer than the screen is wide.
func report() *oom.Report {
	r := &oom.Report{Device: "cuda:0", Op: "matmul", Line: "train.go:31", Module: "transformer.h.11.mlp.c_fc", Asked: 3 << 30, Allocated: 70 << 30, Reserved: 78 << 30,
		LargestFree: 2 << 30, Limit: 79 << 30, Free: 1 << 30, Stuck: 8 << 30, Rehearsed: true, Batch: 64, LargestBatch: 48, Needed: 90 << 30, Least: 20 << 30}
	for i, kind := range []string{"activation", "optimizer state", "parameter", "gradient", "batch", "workspace", "other", "buffer"} {
		r.Holders = append(r.Holders, oom.Holder{Kind: kind, Module: "transformer.h." + kind[:3] + ".attention.output.projection", Line: kind[:3] + "_and_a_long_name.go:1234", Bytes: 1 << (36 - i), Values: 3, Turns: 1})
	}
	r.Suggest(oom.Lever{Flag: "--amp", Saves: 1 << 30, Cost: "bf16"}, oom.Lever{Flag: "--batch 48", Saves: 20 << 30, Cost: "fewer samples", Tried: true, Fits: true},
		oom.Lever{Flag: "--recompute", Saves: 40 << 30, Cost: "one more forward pass", Tried: true, Fits: true},
		oom.Lever{Flag: "--context 512", Saves: 50 << 30, Cost: "shorter sight", Tried: true},
		oom.Lever{Flag: "let go of what " + strings.Repeat("very_", 20) + "long.go:1 keeps", Saves: 1 << 20, Cost: strings.Repeat("nothing ", 20), Fault: true},
		oom.Lever{Flag: "--amp", Saves: 2 << 30, Cost: "products in bf16", Tried: true})
	return r
}

// TestOrder: mistakes come first, then what is known to suffice, then the rest, each by what it saves; a lever is told once.
func TestOrder(t *testing.T) {
	var got []string
	for _, l := range report().Levers {
		got = append(got, strings.Fields(l.Flag)[0])
	}
	if want := "let --recompute --batch --context --amp"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestScreen: whatever there is to tell, it is one screen.
func TestScreen(t *testing.T) {
	full, few := report(), report()
	few.Holders, few.Levers, few.Rehearsed, few.Stuck, few.Module = nil, nil, false, 0, ""
	none := report()
	none.LargestBatch, none.Levers = 0, nil
	var all strings.Builder
	for _, r := range []*oom.Report{full, few, none, {}} {
		var text strings.Builder
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if len(lines) > 19 {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Errorf("%d columns: %s", n, l)
			}
		}
		all.WriteString(text.String() + "\n")
	}
	testutil.Golden(t, "testdata/screens.txt", []byte(all.String()))
	broken := errors.New("broken")
	if err := full.WriteText(failing{broken}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestJSON: the names and their order, all sizes in bytes; nothing is null.
func TestJSON(t *testing.T) {
	r := &oom.Report{Device: "cpu", Op: "add", Line: "a.go:1", Module: "m", Asked: 1, Allocated: 2, Reserved: 3, LargestFree: 4, Limit: 5,
		Holders: []oom.Holder{{Kind: "batch", Module: "m", Line: "a.go:1", Bytes: 2}}, LargestBatch: 6}
	for _, c := range []struct{ want string }{
		{`{"device":"cpu","op":"add","line":"a.go:1","module":"m","asked":1,"allocated":2,"reserved":3,"largest_free":4,"limit":5,` +
			`"by_kind":{"batch":2},"by_module":{"m":2},"by_line":{"a.go:1":2},"largest_batch":6,"levers":[]}`},
		{`{"device":"cpu","op":"add","line":"a.go:1","module":"m","asked":1,"allocated":2,"reserved":3,"largest_free":4,"limit":5,` +
			`"by_kind":{"batch":2},"by_module":{"m":2},"by_line":{"a.go:1":2},"largest_batch":6,"levers":[{"flag":"--amp","saves_bytes":7,"cost":"bf16"}]}`},
	} {
		raw, err := json.Marshal(r)
		if err != nil || string(raw) != c.want {
			t.Errorf("%s, %v", raw, err)
		}
		r.Suggest(oom.Lever{Flag: "--amp", Saves: 7, Cost: "bf16", Fits: true})
	}
}
