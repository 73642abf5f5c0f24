// Package devicetest runs the conformance suite on an engine within a test, and checks what package device promises of
// every Device and Queue.
package devicetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// Variant is a way to run an engine: an instruction set, a number of threads.
type Variant struct {
	Name   string
	Use    func() (restore func())
	SameAs string // an earlier variant, whose results must have the same bits: only large cases are run again
}

// shown is how many failed cases of a code are printed.
const shown = 5

// Run runs the contract, and with a subtest per op code the suite, gradient rules and lowerings, in each variant if there
// are any. The operands come from a fresh seed, or from that of testutil.SeedEnv, which a test that fails prints; with
// -short the large shapes are left out. open returns a new device or a shared one.
func Run(t *testing.T, open func() device.Device, variants ...Variant) {
	t.Helper()
	Contract(t, open)
	if variants == nil {
		variants = []Variant{{Use: func() func() { return func() {} }}}
	}
	dev := open()
	defer closing(t, dev.Close)
	r, err := conform.NewRunner(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, r.Close)
	s := &suite{r, conform.Options{Seed: seed(t), Short: testing.Short()}, variants}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		t.Run(code.String(), func(t *testing.T) { s.run(t, code) })
	}
}

// seed is that of the environment, or a fresh one.
func seed(t *testing.T) uint64 {
	t.Helper()
	v := rand.Uint64()
	if text := os.Getenv(testutil.SeedEnv); text != "" {
		var err error
		if v, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%s: %v", testutil.SeedEnv, text, err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with %s=%d", testutil.SeedEnv, v)
		}
	})
	return v
}

type suite struct {
	runner   *conform.Runner
	options  conform.Options
	variants []Variant
}

// run makes the cases of one code, of which all codes' would fill gigabytes, and runs them in each variant.
func (s *suite) run(t *testing.T, code ir.Code) {
	o := s.options
	o.Codes = []ir.Code{code}
	cases, grads := slices.Collect(conform.Cases(o)), conform.GradCases(o)
	sums := map[string]map[string]uint64{}
	for _, v := range s.variants {
		restore := v.Use()
		if v.SameAs != "" {
			got := s.cases(t, v.Name, slices.DeleteFunc(slices.Clone(cases), small))
			for name, sum := range got {
				if sum != sums[v.SameAs][name] {
					t.Errorf("%s: the bits of %s and %s differ", name, v.Name, v.SameAs)
				}
			}
		} else {
			sums[v.Name] = s.cases(t, v.Name, cases)
			s.grads(t, v.Name, code, grads)
		}
		restore()
	}
	if code.Fused() {
		s.lowered(t, cases)
	}
}

// small reports a case that no engine gives to several threads.
func small(c *conform.Case) bool {
	const elements = 1 << 10
	out, err := c.Op.Infer()
	return err != nil || !slices.ContainsFunc(slices.Concat(c.Op.Ins(), out), func(t *ir.Type) bool { return t.Size() > elements })
}

// cases runs cases and returns the sums of the results' bytes, by name.
func (s *suite) cases(t *testing.T, variant string, cases []*conform.Case) map[string]uint64 {
	t.Helper()
	sums := map[string]uint64{}
	failed := 0
	for _, c := range cases {
		res := s.runner.Run(c)
		sums[c.Name] = res.Sum
		if res.Status != conform.Failed && res.Status != conform.Unsupported {
			continue
		}
		if failed++; failed <= shown {
			t.Error(variant, res.String())
		}
	}
	if failed > shown {
		t.Errorf("%s: %d of %d cases failed", variant, failed, len(cases))
	}
	return sums
}

// grads runs a gradient rule, and demands that most of its elements can be checked.
func (s *suite) grads(t *testing.T, variant string, code ir.Code, grads []*conform.GradCase) {
	t.Helper()
	smooth, all := 0, 0
	for _, g := range grads {
		if res := s.runner.Grad(g); res.Status != conform.Passed {
			t.Error(variant, res.String())
		}
		n, of := g.Checked()
		smooth, all = smooth+n, all+of
	}
	if autograd.Of(code) != nil && 2*smooth < all+1 {
		t.Errorf("%d of %d gradients could be checked", smooth, all)
	}
}

// lowered runs the lowering of a fused op in place of its kernel.
func (s *suite) lowered(t *testing.T, cases []*conform.Case) {
	t.Helper()
	for _, c := range cases {
		if res := s.runner.Lower(c); res.Status != conform.Lowered {
			t.Error(res.String())
		}
	}
}

func closing(t *testing.T, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

// Contract checks what package device promises of memory, queues and events.
func Contract(t *testing.T, open func() device.Device) {
	for _, test := range []struct {
		name string
		f    func(t *testing.T, dev device.Device)
	}{
		{"info", checkInfo}, {"memory", checkMemory}, {"copy", checkCopy}, {"queues", checkQueues}, {"prepare", checkPrepare}, {"launch", checkLaunch},
	} {
		t.Run("contract/"+test.name, func(t *testing.T) {
			dev := open()
			defer closing(t, dev.Close)
			test.f(t, dev)
		})
	}
}

func checkInfo(t *testing.T, dev device.Device) {
	info := dev.Info()
	if info.Name == "" || info.Model == "" || len(info.DTypes) == 0 {
		t.Errorf("info %+v", info)
	}
	if a := info.Alignment; a <= 0 || a&(a-1) != 0 {
		t.Errorf("alignment %d is no power of two", a)
	}
}

// checkMemory demands aligned blocks that do not overlap, and memory that can be had again once it is freed.
func checkMemory(t *testing.T, dev device.Device) {
	var all []device.Mem
	for _, n := range []int64{1, 7, 64, 4095, 4097, 1 << 20} {
		m, err := dev.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if m.Size != n || m.Addr%uint64(dev.Info().Alignment) != 0 {
			t.Errorf("%d bytes: got %d at %#x", n, m.Size, m.Addr)
		}
		for _, o := range all {
			if m.Addr < o.Addr+uint64(o.Size) && o.Addr < m.Addr+uint64(m.Size) {
				t.Errorf("%+v and %+v overlap", m, o)
			}
		}
		all = append(all, m)
	}
	for _, m := range all {
		dev.Free(m)
	}
	if _, err := dev.Alloc(1 << 59); err == nil {
		t.Error("2^59 bytes were allocated")
	}
}

// host returns n bytes that any device may copy from and to.
func host(t *testing.T, n int) ([]byte, device.Mem) {
	t.Helper()
	b, err := hostmem.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, b.Free) })
	return hostmem.Bytes(b.Addr, n), device.Mem{Addr: uint64(b.Addr), Size: int64(n), Host: true}
}

func queue(t *testing.T, dev device.Device) device.Queue {
	t.Helper()
	q, err := dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, q.Close) })
	return q
}

func alloc(t *testing.T, dev device.Device, n int64) device.Mem {
	t.Helper()
	m, err := dev.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Free(m) })
	return m
}

// checkCopy moves odd numbers of bytes at odd offsets to the device, within it and back.
func checkCopy(t *testing.T, dev device.Device) {
	const size = 5003
	q := queue(t, dev)
	src, from := host(t, size)
	dst, to := host(t, size)
	a, b := alloc(t, dev, size), alloc(t, dev, size)
	for i := range src {
		src[i] = byte(i * 7)
	}
	for _, c := range []struct{ at, n int64 }{{0, size}, {1, 1}, {3, 4999}, {17, 64}, {5002, 1}, {5, 0}} {
		clear(dst)
		err := q.Copy(device.Arg{Mem: a, Offset: c.at}, device.Arg{Mem: from, Offset: c.at}, c.n)
		if err == nil {
			err = q.Copy(device.Arg{Mem: b, Offset: size - c.at - c.n}, device.Arg{Mem: a, Offset: c.at}, c.n)
		}
		if err == nil {
			err = q.Copy(device.Arg{Mem: to, Offset: 1}, device.Arg{Mem: b, Offset: size - c.at - c.n}, min(c.n, size-1))
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if err := q.Sync(); err != nil {
			t.Fatal(err)
		}
		n := min(c.n, size-1)
		want := make([]byte, size)
		if copy(want[1:1+n], src[c.at:]); !dev.Info().Null && !bytes.Equal(dst, want) {
			t.Errorf("%d bytes at %d came back wrong", c.n, c.at)
		}
	}
}

// checkQueues makes one queue wait for another, and demands that what was recorded is done after a Sync.
func checkQueues(t *testing.T, dev device.Device) {
	const n = 1 << 16
	one, two := queue(t, dev), queue(t, dev)
	src, from := host(t, n)
	dst, to := host(t, n)
	m := alloc(t, dev, n)
	for i := range src {
		src[i] = byte(i>>3) | 1
	}
	if err := one.Copy(device.Arg{Mem: m}, device.Arg{Mem: from}, n); err != nil {
		t.Fatal(err)
	}
	e, err := one.Record()
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Wait(e); err != nil {
		t.Fatal(err)
	}
	if err := two.Copy(device.Arg{Mem: to}, device.Arg{Mem: m}, n); err != nil {
		t.Fatal(err)
	}
	for _, q := range []device.Queue{two, one} {
		if err := q.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("after Sync an event is done: %v, error %v", done, err)
	}
	if !dev.Info().Null && !bytes.Equal(dst, src) {
		t.Error("the second queue did not wait for the first")
	}
}

// checkPrepare demands an error for an op that is none, and equal results for one that is prepared twice.
func checkPrepare(t *testing.T, dev device.Device) {
	bad := ir.New(ir.Add, ir.Attr{}, ir.Dense(dtype.F32, 2), ir.Dense(dtype.F32, 3))
	if k, err := dev.Prepare(bad); err == nil {
		t.Errorf("a sum of 2 and 3 elements was prepared: %v", k.Out)
	}
	good := ir.New(ir.Add, ir.Attr{}, ir.Dense(dtype.F32, 2), ir.Dense(dtype.F32, 2))
	k, err := dev.Prepare(good)
	if err != nil {
		t.Fatal(err)
	}
	if k.Op != good || len(k.Out) != 1 || k.Out[0] != good.In(0) {
		t.Errorf("kernel of %v with results %v", k.Op, k.Out)
	}
}

// checkLaunch launches kernels one after another: each sees what the one before has written.
func checkLaunch(t *testing.T, dev device.Device) {
	const n = 1 << 10
	typ := ir.Dense(dtype.F32, n)
	q := queue(t, dev)
	full, err := dev.Prepare(ir.New(ir.Full, ir.Attr{Out: typ}))
	if err != nil {
		t.Fatal(err)
	}
	double, err := dev.Prepare(ir.New(ir.Add, ir.Attr{}, typ, typ))
	if err != nil {
		t.Fatal(err)
	}
	x := device.Arg{Mem: alloc(t, dev, 4*n)}
	one := ir.Scalars(1)
	var p device.Params
	p.Set(&one)
	if err := q.Launch(full, []device.Arg{x}, &p); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := q.Launch(double, []device.Arg{x, x, x}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, to := host(t, 4*n)
	if err := q.Copy(device.Arg{Mem: to}, x, 4*n); err != nil {
		t.Fatal(err)
	}
	if err := q.Sync(); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{0, 0, 0x80, 0x44}, n) // 1024
	if !dev.Info().Null && !bytes.Equal(got, want) {
		t.Errorf("ten doublings of 1 gave the bytes %s", fmt.Sprintf("% x", got[:4]))
	}
}
