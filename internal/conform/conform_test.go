package conform

import (
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/null"
	"github.com/warpline-ml/warpline/internal/ref"
)

// TestCoverage demands cases, a reference and a tolerance of every code, and of every dtype that a code takes a case
// with results.
func TestCoverage(t *testing.T) {
	seen := map[ir.Code]map[dtype.DType]bool{}
	names := map[string]bool{}
	at := 0
	for c := range Cases(Options{Seed: 1, Short: true}) {
		if names[c.Name] {
			t.Errorf("two cases are named %s", c.Name)
		}
		names[c.Name] = true
		if seen[c.Op.Code] == nil {
			seen[c.Op.Code] = map[dtype.DType]bool{}
		}
		seen[c.Op.Code][c.dt] = true
		if at++; !c.Fails && at%16 != 0 {
			continue // the suite on the CPU asks the reference for the results of all
		}
		if _, _, err := c.Want(); (err != nil) != c.Fails {
			t.Errorf("%s must fail: %v; the reference says %v", c.Name, c.Fails, err)
		}
	}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if !ref.Has(code) {
			t.Errorf("%s has no reference", code)
		}
		if row, ok := Tolerance(code); !ok || row.Reason == "" {
			t.Errorf("%s has no tolerance with a reason", code)
		}
		for _, dt := range dtypes(code) {
			if !seen[code][dt] {
				t.Errorf("%s has no case of %s", code, dt)
			}
		}
		if len(seen[code]) == 0 {
			t.Errorf("%s has no case", code)
		}
	}
}

// TestSame demands that equal options give equal cases.
func TestSame(t *testing.T) {
	o := Options{Seed: 7, Short: true}
	a, b := slices.Collect(Cases(o)), slices.Collect(Cases(o))
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d and %d cases", len(a), len(b))
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Params != b[i].Params || !slices.EqualFunc(a[i].image, b[i].image, slices.Equal) {
			t.Errorf("case %d is %s, then %s", i, a[i].Name, b[i].Name)
		}
	}
}

// TestNull runs all cases on a device without memory.
func TestNull(t *testing.T) {
	card, ok := cards.Find(cards.Default)
	if !ok {
		t.Fatal("no default card")
	}
	n := all(t, null.New("null", card), Cases(Options{Seed: 3, Short: true}), Passed)
	if n < 5000 {
		t.Errorf("%d passed", n)
	}
}

// all runs cases of which each must come out as want, and returns how many there were.
func all(t *testing.T, dev device.Device, cases iter.Seq[*Case], want Status) (n int) {
	t.Helper()
	r, err := NewRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	for c := range cases {
		if res := r.Run(c); res.Status != want {
			t.Errorf("want %s: %s", want, res.String())
		}
		n++
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return n
}

// spoiled is a device that does something wrong after each launch, or instead of it.
type spoiled struct {
	device.Device
	harm func(k *device.Kernel, args []device.Arg) error
}

type spoiledQueue struct {
	device.Queue
	harm func(k *device.Kernel, args []device.Arg) error
}

func (d spoiled) NewQueue() (device.Queue, error) {
	q, err := d.Device.NewQueue()
	return spoiledQueue{q, d.harm}, err
}

func (q spoiledQueue) Launch(k *device.Kernel, args []device.Arg, p *device.Params) error {
	if err := q.Queue.Launch(k, args, p); err != nil {
		return err
	}
	return q.harm(k, args)
}

// hit flips the lowest bit of a byte at an offset from an argument's data.
func hit(a device.Arg, offset int64) {
	hostmem.Bytes(uintptr(a.Mem.Addr)+uintptr(a.Offset+offset), 1)[0] ^= 1
}

// TestDetects demands that each kind of mistake is found.
func TestDetects(t *testing.T) {
	bytesOf := func(k *device.Kernel) int64 { return k.Out[0].Bytes() }
	for _, c := range []struct {
		name, words string
		harm        func(k *device.Kernel, args []device.Arg) error
	}{
		{"a wrong bit", "element", func(k *device.Kernel, a []device.Arg) error { hit(a[0], 0); return nil }},
		{"a wrong last element", "element", func(k *device.Kernel, a []device.Arg) error { hit(a[0], bytesOf(k)-4); return nil }},
		{"a byte after the result", "result 0", func(k *device.Kernel, a []device.Arg) error { hit(a[0], bytesOf(k)); return nil }},
		{"a byte before the result", "result 0", func(k *device.Kernel, a []device.Arg) error { hit(a[0], -1); return nil }},
		{"an operand", "operand 1", func(k *device.Kernel, a []device.Arg) error { hit(a[2], 5); return nil }},
		{"an error", "worn out", func(k *device.Kernel, a []device.Arg) error { return errors.New("worn out") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := ir.Dense(dtype.I32, 61)
			g := &gen{r: newRand(5, 0), code: ir.Add, dt: dtype.I32}
			g.add("", ir.Attr{}, ir.Params{}, operand{x, whole}, operand{x, whole})
			r, err := NewRunner(spoiled{cpu.New(), c.harm})
			if err != nil {
				t.Fatal(err)
			}
			if res := r.Run(g.cases[0]); res.Status != Failed || !strings.Contains(res.String(), c.words) {
				t.Errorf("got %s", res.String())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMissing demands an error where an engine ignores a bad index, and a lowering where it has no kernel.
func TestMissing(t *testing.T) {
	only := func(code ir.Code) iter.Seq[*Case] {
		return Cases(Options{Seed: 2, Short: true, Codes: []ir.Code{code}})
	}
	if n := all(t, lacking{cpu.New(), ir.SiLU}, only(ir.SiLU), Lowered); n == 0 {
		t.Error("no case of an op without a kernel")
	}
	if n := all(t, lacking{cpu.New(), ir.Add}, only(ir.Add), Unsupported); n == 0 {
		t.Error("no case of an op without kernel and lowering")
	}
	careless := slices.Collect(only(ir.Gather))
	for _, c := range careless {
		c.Fails = !c.Fails
	}
	if n := all(t, cpu.New(), slices.Values(careless), Failed); n == 0 {
		t.Error("no case of an index out of range")
	}
}

// lacking is a device without a kernel for one code.
type lacking struct {
	device.Device
	code ir.Code
}

func (d lacking) Prepare(op ir.Op) (*device.Kernel, error) {
	if op.Code == d.code {
		return nil, device.ErrUnsupported
	}
	return d.Device.Prepare(op)
}

// TestSettle pins the comparison at the ends of the range.
func TestSettle(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		dt                        dtype.DType
		got, want, allowed, terms float64
		ok                        bool
	}{
		{dtype.F16, inf, 70000, 100, 70000, true},
		{dtype.F16, -inf, 70000, 100, 70000, false},
		{dtype.F16, 65504, 65519, 0, 65519, true},
		{dtype.F16, inf, 60000, 10, 60000, false},
		{dtype.F32, nan, 1, inf, inf, true}, // a step overflowed
		{dtype.F32, nan, 1, 1, 10, false},
		{dtype.F32, 1, nan, 1, 10, false},
		{dtype.F32, nan, nan, 0, nan, true},
		{dtype.F32, 1, 1.5, 0.25, 1, false},
		{dtype.F32, 1.25, 1.5, 0.25, 1, true},
		{dtype.F32, 3, inf, inf, inf, false},
	} {
		w := Worst{Got: c.got, Want: c.want, Allowed: c.allowed}
		w.settle(ir.Dense(c.dt), c.terms)
		if ok := w.excess() <= 1; ok != c.ok {
			t.Errorf("%+v: accepted %v", c, ok)
		}
	}
}
