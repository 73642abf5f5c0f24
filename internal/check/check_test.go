package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/render"
)

// lost is a CPU that prepares no products, as if an earlier launch had failed.
type lost struct{ device.Device }

func (l lost) Prepare(op ir.Op) (*device.Kernel, error) {
	if op.Code == ir.Mul {
		return nil, fmt.Errorf("lost: %w", &driver.Error{Call: "cuModuleLoadDataEx", Result: driver.IllegalAddress})
	}
	return l.Device.Prepare(op)
}

func init() {
	device.Register("lost", device.Engine{Open: func(device.Name) (device.Device, error) { return lost{cpu.New()}, nil }})
	device.Register("broken", device.Engine{Open: func(device.Name) (device.Device, error) { return devicetest.Subtracting(cpu.New()), nil }})
}

func TestReport(t *testing.T) {
	var parts []string
	inside := map[string]int{}
	rep, err := Run(t.Context(), Config{Device: "cpu", Seed: 7, Short: true, Ops: []string{"add", " exp"}, Progress: func(done, all int, name string) {
		part, piece, in := strings.Cut(name, ", ")
		if !in {
			parts = append(parts, part)
		} else if inside[piece]++; part != parts[done] {
			t.Errorf("%s in part %s", name, parts[done])
		}
		if done != len(parts)-1 || all != 4 {
			t.Errorf("part %d of %d: %s", done, all, name)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) != 4 || len(parts) != 4 || rep.Failed != 0 || rep.Cut || rep.Seed != 7 {
		t.Errorf("%+v", rep)
	}
	cases := 0
	for _, r := range rep.Rows {
		cases += r.Cases
		piece := map[string]string{"op": "case", "gradient": "gradient case"}[r.Part]
		if last := fmt.Sprintf("%s %d", piece, r.Cases); inside[last] == 0 {
			t.Errorf("%s %s: no word of %s in %v", r.Part, r.Name, last, inside)
		}
		if r.Cases == 0 || r.Failed != 0 || r.Part == "op" && (r.Worst <= 0 || r.Worst > 1) {
			t.Errorf("%+v", r)
		}
	}
	text := rep.Text(100)
	if cases != rep.Cases || !strings.Contains(text, "all ") || !strings.Contains(text, "(seed 7)") || strings.Contains(text, "FAILED") {
		t.Errorf("%d cases\n%s", cases, text)
	}
}

// TestNoOpsIsAll: an empty list is not a check of nothing.
func TestNoOpsIsAll(t *testing.T) {
	codes, err := (&Config{Ops: []string{}}).codes()
	if err != nil || len(codes) != len(Ops()) {
		t.Errorf("%d operations, %v; want %d", len(codes), err, len(Ops()))
	}
}

// TestBroken: a wrong result is a failure that names its case.
func TestBroken(t *testing.T) {
	rep, err := Run(t.Context(), Config{Device: "broken", Seed: 7, Short: true, Ops: []string{"add", "mul"}})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Row{}
	for _, r := range rep.Rows {
		byName[r.Part+" "+r.Name] = r
	}
	add, mul := byName["op add"], byName["op mul"]
	if add.Failed == 0 || add.Failed > add.Cases || !strings.Contains(add.First, "add/") || mul.Failed != 0 || rep.Failed < add.Failed {
		t.Errorf("%+v\n%+v\n%d failed", add, mul, rep.Failed)
	}
	for width := 34; width < 100; width++ { // narrow, a name or a number of failures is never cut
		table, _, _ := strings.Cut(rep.Text(width), "\nworst:")
		for line := range strings.Lines(table) {
			if render.Width(strings.TrimSuffix(line, "\n")) > width || strings.Contains(line, "…") {
				t.Fatalf("in %d columns: %s", width, line)
			}
		}
		if !strings.Contains(table, "failed") {
			t.Fatalf("in %d columns\n%s", width, table)
		}
	}
	if text := rep.Text(100); !strings.Contains(text, "FAILED op add: ") || !strings.Contains(text, "repeat with --seed 7") {
		t.Error(text)
	}
}

// TestPromises tries what is checked beside operations where it passes, and on a device that adds wrongly.
func TestPromises(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0", "null:0"} {
		n, dev, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		two := together(n, dev)
		if want := name == "cpu"; (len(two) == 0) != want {
			t.Errorf("%s: %d parts with another device", name, len(two))
		}
		var rep Report
		for _, p := range append(promises(dev), two...) {
			rep.add(t.Context(), &p, 0)
		}
		if rep.Failed != 0 || rep.Cases != len(rep.Rows) {
			t.Errorf("%s:\n%s", name, rep.Text(100))
		}
	}
	var rep Report
	for _, p := range promises(devicetest.Subtracting(cpu.New())) {
		rep.add(t.Context(), &p, 0)
	}
	for _, r := range rep.Rows {
		if (r.Name == "launch") != (r.Failed == 1) {
			t.Errorf("%+v", r)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rep, err := Run(ctx, Config{Device: "cpu", Short: true, Progress: func(done, all int, name string) {
		if done == 2 {
			cancel()
		}
	}})
	if err != nil || !rep.Cut || rep.Failed != 0 || len(rep.Rows) != 3 || rep.Seed == 0 {
		t.Errorf("%v, %+v", err, rep)
	}
	if text := rep.Text(100); !strings.Contains(text, "interrupted: the ") {
		t.Error(text)
	}
}

// TestBrokenDevice: after an error that a card stays in, no more is tried.
func TestBrokenDevice(t *testing.T) {
	rep, err := Run(t.Context(), Config{Device: "lost", Seed: 7, Short: true, Ops: []string{"add", "mul", "sub"}, Skip: []string{"add"}})
	if err != nil || rep.Broken != "mul" || len(rep.Rows) != 1 || rep.Failed != 1 || rep.Cases != 1 {
		t.Fatalf("%v, %+v", err, rep)
	}
	if text := rep.Text(200); !strings.Contains(text, "out of use since mul: the rest was not run; go on with --skip mul (seed 7)") {
		t.Error(text)
	}
}

// TestOnward: what is no operation cannot be skipped.
func TestOnward(t *testing.T) {
	rep := &Report{Broken: "kernels", Rows: []Row{{Part: "device", Name: "kernels", Cases: 1, Failed: 1}}}
	if text := rep.Text(200); !strings.Contains(text, "go on with --ops NAME") {
		t.Error(text)
	}
}

func TestUnknown(t *testing.T) {
	for _, c := range []Config{{Device: "nowhere"}, {Device: "cpu:1"}, {Device: "sim:abacus"}} {
		if rep, err := Run(t.Context(), c); rep != nil || err == nil || !strings.Contains(err.Error(), c.Device) {
			t.Errorf("%+v: %v, %v", c, rep, err)
		}
	}
	var unknown *UnknownError
	if _, err := Run(t.Context(), Config{Device: "cpu", Ops: []string{"Add", "mtmul"}}); !errors.As(err, &unknown) || unknown.Name != "mtmul" {
		t.Error(err)
	}
	for _, c := range []Config{{Device: "null:t4", Ops: []string{"add"}}, {Device: "cpu", Ops: []string{"add"}, Skip: []string{"ADD"}}} {
		var e *advice.Error
		if rep, err := Run(t.Context(), c); rep != nil || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%+v: nothing to check gives %v, %v", c, rep, err)
		}
	}
	if names := Ops(); len(names) < 50 || names[0] == "" {
		t.Error(names)
	}
}

// TestPartsOfEveryOperation walks the names of all cases: each is in one share, and the cases are made with their operands.
func TestPartsOfEveryOperation(t *testing.T) {
	shares := []Part{{1, 3}, {2, 3}, {3, 3}}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		all := map[string]int{}
		for c := range conform.Cases(conform.Options{Seed: 1, Short: true, Codes: []ir.Code{code}}) {
			all[c.Name]++
		}
		for _, p := range shares {
			takes := func(name string) bool { return p.takes(1, name) }
			for c := range conform.Cases(conform.Options{Seed: 1, Short: true, Codes: []ir.Code{code}, Takes: takes}) {
				if all[c.Name]--; c.Op.NumIn() != len(c.In) {
					t.Errorf("%s, part %s: %d operands", c.Name, p, len(c.In))
				}
			}
		}
		for name, n := range all {
			if n != 0 {
				t.Errorf("%s: %d cases are in none of %v", name, n, shares)
			}
		}
	}
}

// TestPart: the parts of the cases are all of them together, and none is in two; what is no share is refused.
func TestPart(t *testing.T) {
	run := func(share string) *Report {
		c := Config{Device: "cpu", Seed: 7, Short: true, Ops: []string{"add", "softmax"}}
		if share != "" {
			var err error
			if c.Part, err = ParsePart(share); err != nil {
				t.Fatal(err)
			}
		}
		rep, err := Run(t.Context(), c)
		if err != nil || rep.Failed != 0 || rep.Share != share {
			t.Fatalf("%s: %+v, error %v", share, rep, err)
		}
		return rep
	}
	all := run("")
	for _, n := range []int{1, 3} {
		sums := make([]int, len(all.Rows))
		for i := range n {
			share := fmt.Sprintf("%d/%d", i+1, n)
			rep := run(share)
			for j, r := range rep.Rows {
				if sums[j] += r.Cases; r.Part == "op" && n > 1 && (r.Cases < all.Rows[j].Cases/n/2 || r.Cases > all.Rows[j].Cases*2/n) {
					t.Errorf("%s: %d of %d cases of %s", share, r.Cases, all.Rows[j].Cases, r.Name)
				}
			}
			if v := rep.verdict(); !strings.Contains(v, "(seed 7 --part "+share+")") {
				t.Errorf("%s: %s", share, v)
			}
		}
		for j, r := range all.Rows {
			if sums[j] != r.Cases {
				t.Errorf("%d parts have %d cases of %s %s, which has %d", n, sums[j], r.Part, r.Name, r.Cases)
			}
		}
	}
	for _, bad := range []string{"0/3", "4/3", "1", "/", "1/", "1/0", "-1/2", "1/3/5", "a/b", "1/101", "1/4294967296", "2/4294967297", ""} {
		if p, err := ParsePart(bad); err == nil || p != (Part{}) {
			t.Errorf("%q is part %v, error %v", bad, p, err)
		}
	}
}
