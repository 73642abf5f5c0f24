package mutate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// testSuites are opened once for all tests.
var testSuites = sync.OnceValues(func() ([]*Suite, error) {
	return TestSuites(func(path string) (string, error) {
		b, err := os.ReadFile("../../../" + path)
		return string(b), err
	})
})

// TestCampaign tries a sample of the mutants of half of the test kernels, and all of a suite of which that is next to none; all of them
// with WARPLINE_MUTANTS=all. bench/oracle writes the report.
func TestCampaign(t *testing.T) {
	suites, err := testSuites()
	if err != nil {
		t.Fatal(err)
	}
	every := 11
	if os.Getenv("WARPLINE_MUTANTS") == "all" {
		every = 1
	} else {
		suites = half(t, suites)
	}
	for _, s := range suites {
		results, err := s.Run(every)
		all := every == 1
		if few := 5; err == nil && len(results) < few && !all {
			results, err = s.Run(1)
			all = true
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(results) == 0 {
			t.Errorf("%s has no mutants", s.Name)
		}
		if err := s.Judge(results, all); err != nil {
			t.Error(err)
		}
	}
}

// half are the suites that a run tries.
func half(t *testing.T, suites []*Suite) []*Suite {
	return testutil.Some(testutil.NewSpread(t, testutil.Seed(t), 2), suites, func(s *Suite) string { return s.Name })
}

// beside gives each buffer an allocation as a program does, one after the other.
type beside struct{}

func (beside) place(d *gpusim.Device, bufs []*Buffer) (addrs []uint64, err error) {
	for i, b := range bufs {
		at, err := d.Alloc(b.size(), fmt.Sprintf("buffer %d", i))
		if err == nil {
			err = d.Write(at, b.Data)
		}
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, at)
	}
	return addrs, nil
}

func (beside) read(*gpusim.Device) error { return nil }

// TestNeighbours: mutants seen to leave their buffers are reported where another buffer is next. A run tries half of the suites.
func TestNeighbours(t *testing.T) {
	suites, err := testSuites()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range half(t, suites) {
		n := neighbours(t, s, 7)
		if n == 0 { // a sample of few
			n = neighbours(t, s, 1)
		}
		if (n == 0) != inside[s.Name] {
			t.Errorf("%d mutants of %s leave their buffers", n, s.Name)
		}
	}
}

// inside are the suites of whose mutants none leaves its buffers.
var inside = map[string]bool{"examples/sim/softmax.ptx": true, "internal/gpusim/testdata/cluster.ptx": true, "internal/ptx/testdata/mma.ptx": true, "internal/ptx/testdata/triton.ptx": true}

func neighbours(t *testing.T, s *Suite, every int) (n int) {
	for _, c := range s.Cases {
		n += reported(t, s.Source, c, every)
	}
	return n
}

// reported counts those of every n-th mutant that leave their buffers.
func reported(t *testing.T, source string, c *Case, every int) (n int) {
	o, err := open(source, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range o.Mutants {
		if m.Kind.Synchronises() || m.Kind.Values() || i%every != 0 {
			continue
		}
		if o.limit == 0 { // all Seeds are TestCampaign's
			if err := o.openUnder(Seeds[0]); err != nil {
				t.Fatal(err)
			}
		}
		m.set(true)
		if o.leaves() {
			n++
			if rep, _, err := o.run(gpusim.Options{Checks: gpusim.AllChecks}, beside{}); !errors.As(err, new(*gpusim.Fault)) && (err != nil || len(rep.Findings) == 0) {
				t.Errorf("%s reaches the next buffer and no check reports it, error %v", m.ID, err)
			}
		}
		m.set(false)
	}
	return n
}

// TestRecorder records a launch on another device, with a pointer into the middle of an allocation, and judges its mutants.
func TestRecorder(t *testing.T) {
	d := gpusim.NewDevice(gpusim.A100(), true)
	m, err := ptx.Parse(skewed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{PerKernel: 2}
	d.Observe(r.Observe)
	addr, err := d.Alloc(160, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(addr, make([]byte, 160)); err != nil {
		t.Fatal(err)
	}
	params := binary.LittleEndian.AppendUint64(nil, addr+80)
	params = binary.LittleEndian.AppendUint32(params, 20)
	for _, threads := range []int{32, 32, 40, 64} {
		if _, err := d.Launch(p.Kernel("k"), [3]int{1, 1, 1}, [3]int{threads, 1, 1}, 0, params, gpusim.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	suites := r.Suites()
	if len(suites) != 1 || len(suites[0].Cases) != 2 || suites[0].Cases[1].Block[0] != 40 || binary.LittleEndian.Uint32(suites[0].Cases[1].buffers[0].Data[80:]) != 2 {
		t.Fatalf("%+v", suites)
	}
	results, err := suites[0].Run(1)
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	if err := suites[0].Judge(results, true); err != nil {
		t.Error(err)
	}
	r = &Recorder{MaxBytes: 100}
	d.Observe(r.Observe)
	if _, err := d.Launch(p.Kernel("k"), [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, params, gpusim.Options{}); err != nil || len(r.suites) > 0 && len(r.suites[0].Cases) > 0 {
		t.Error(r.suites, err)
	}
}

const skewed = `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) {
	.reg .b64 %a, %b; .reg .b32 %i, %n, %v; .reg .pred %p;
	ld.param.u64 %a, [x]; ld.param.u32 %n, [n];
	mov.u32 %i, %tid.x; mul.wide.u32 %b, %i, 4; add.s64 %a, %a, %b;
	setp.lt.u32 %p, %i, %n;
	@%p ld.global.u32 %v, [%a];
	@%p add.u32 %v, %v, 1;
	@%p st.global.u32 [%a], %v;
	ret;
}`

// TestOracle: the oracle of bounds sees reads and writes beyond a buffer without memcheck, and Judge what is missed.
func TestOracle(t *testing.T) {
	c := &Case{Kernel: "k", Grid: row(1), Block: row(32), Args: []any{In(make([]uint32, 20)), int32(20)}}
	s := &Suite{Name: "skewed", Source: skewed, Cases: []*Case{c}}
	results, err := s.Run(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 { // the comparison, and the guards of load and store
		t.Fatalf("%d mutants", len(results))
	}
	for _, r := range results {
		if r.Outcome != Reported || r.By != "memcheck" {
			t.Errorf("%s: %+v", r.ID, r.Verdict)
		}
		if leaves := r.Kind == Bound || strings.Contains(r.What, "st."); r.Leaves != leaves {
			t.Errorf("%s: leaves %v", r.ID, r.Leaves) // a load whose value nobody keeps cannot be seen from outside
		}
	}
	results[0].Missed, results[1].Outcome, results[2].Outcome = true, Values, Survived
	err = s.Judge(results, true)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
	s.Known = map[string]string{results[1].ID: "in bounds", results[2].ID: "equivalent", "k bound 9: none": "gone"}
	results[1].Known, results[2].Known, results[0].Missed = "in bounds", "equivalent", false
	err = s.Judge(results, true)
	if err == nil || !strings.Contains(err.Error(), `"k bound 9: none"`) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if _, err := Open(skewed, &Case{Kernel: "k", Grid: row(1), Block: row(32), Args: []any{In(make([]uint32, 19)), int32(20)}}); err == nil {
		t.Error("a kernel that is wrong was taken for correct")
	}
}
