package counts

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// kernel is an addition of n floats in a plan of one kernel.
func kernel(name string, n int) *device.Kernel {
	op := ir.New(ir.Add, ir.Attr{}, ir.Dense(dtype.F32, n), ir.Dense(dtype.F32, n))
	return &device.Kernel{Op: op, Out: []*ir.Type{ir.Dense(dtype.F32, n)}, FLOPs: int64(n), Bytes: 12 * int64(n),
		Steps: []device.Step{{Name: name, Grid: [3]int{(n + 1023) / 1024, 1, 1}, Block: [3]int{256, 1, 1}, Numbers: []int32{int32(n / 4), 1 << 20, -1}}}}
}

// TestCounted: an addition of twice as many numbers does twice as much.
func TestCounted(t *testing.T) {
	l, counted := Of(kernel("add_f32", 64<<10), 0)
	if !counted || l.Blocks != 64 || l.Threads != 256 || l.Requested <= 0 || l.Unique <= 0 {
		t.Errorf("%v: %+v", counted, l)
	}
	twice, _ := Of(kernel("add_f32", 128<<10), 0)
	if r := twice.Instructions[ptx.PipeInteger] / l.Instructions[ptx.PipeInteger]; math.Abs(r-2) > 0.1 {
		t.Errorf("twice the work is %v times the instructions", r)
	}
}

// TestNotCounted: a kernel that the table has not moves its bytes, and says so.
func TestNotCounted(t *testing.T) {
	k := kernel("add_tomorrow", 1<<20)
	l, counted := Of(k, 0)
	if counted || l.Unique != float64(k.Bytes)/32 || l.Instructions[ptx.PipeFloat32] == 0 || l.GlobalWaits == 0 {
		t.Errorf("%v: %+v", counted, l)
	}
}

// TestFeatures: names of features mean what bench/dryrun/fit.py takes them for.
func TestFeatures(t *testing.T) {
	k := kernel("add_f32", 5000)
	f := FactsOf(k, &k.Steps[0])
	for name, want := range map[string]float64{"B": 5, "x": 5, "z": 1, "Y": 60000, "F": 5000, "O": 5000, "I": 10000, "p0": 1250, "p1": 0, "p2": 0, "p7": 0,
		"B*p0": 6250, "B*p0/p0": 5, "p0*p0^64": 1250 * 20} {
		if got := newFeature(name)(f); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestSumsInOrder: the terms of a quantity are added in one order, whatever order the table's map has: all figures are the same bits
// each time.
func TestSumsInOrder(t *testing.T) {
	rates := map[string]float64{"B": 0.1, "Y": 1e9, "F": 1e-9, "O": 1. / 3, "I": 1e5, "p0": 7e-3, "x": 0.7}
	k := kernel("add_f32", 5000)
	want := newSum(rates).of(FactsOf(k, &k.Steps[0]))
	for range 50 {
		if got := newSum(maps.Clone(rates)).of(FactsOf(k, &k.Steps[0])); got != want {
			t.Fatalf("%v, and %v another time", got, want)
		}
	}
}

// TestTable: all rows are of quantities and features that are known, with numbers that add.
func TestTable(t *testing.T) {
	quantity := regexp.MustCompile(`^(i\d+|t\d|Wavefronts|Requested|Unique|Own|Lone|Part|GlobalWaits|SharedWaits|Barriers|Hottest)$`)
	feature := regexp.MustCompile(`^([BYFOIxyz]|p\d+|B\*p\d+(/p\d+)?|p\d+\*p\d+\^(64|128))$`)
	var rows map[string]map[string]map[string]float64
	if err := json.Unmarshal([]byte(tableText()), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 100 {
		t.Errorf("%d rows", len(rows))
	}
	for name, row := range rows {
		if !strings.Contains(name, "/") || len(row) == 0 {
			t.Errorf("row %q: %v", name, row)
		}
		for q, rates := range row {
			for f, rate := range rates {
				if !quantity.MatchString(q) || !feature.MatchString(f) || rate <= 0 {
					t.Errorf("%s: %s by %s: %v", name, q, f, rate)
				}
			}
		}
	}
}
