package gpusim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// rig is a device with a loaded module.
type rig struct {
	t    testing.TB
	dev  *Device
	prog *Program
}

func source(t testing.TB) string {
	t.Helper()
	return fileText(t, "testdata/kernels.ptx")
}

func newRig(t testing.TB, src string, track bool) *rig {
	t.Helper()
	m, err := ptx.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDevice(A100(), track)
	p, err := d.load(NewSource(m), nil) // tests have forms that a card's assembler refuses
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, p}
}

// wrap makes a kernel out of a body that stores results by "out", a register with the address of the lane's 8 bytes.
func wrap(regs, body string) string {
	return ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n" +
		".reg .b64 %in, %out, %at; .reg .b32 %lane; .reg .pred %p, %q;\n" + regs +
		"ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\nmov.u32 %lane, %tid.x; mul.wide.u32 %at, %lane, 8;\n" +
		"add.s64 %out, %out, %at; mul.wide.u32 %at, %lane, 32; add.s64 %in, %in, %at;\n" + body + "\nret;\n}\n"
}

func (r *rig) upload(data any, tag string) uint64 {
	r.t.Helper()
	n := binary.Size(data)
	addr, err := r.dev.Alloc(n, tag)
	if err != nil {
		r.t.Fatal(err)
	}
	b, _ := binary.Append(nil, binary.LittleEndian, data)
	if err := r.dev.Write(addr, b); err != nil {
		r.t.Fatal(err)
	}
	return addr
}

func (r *rig) alloc(n int, tag string) uint64 {
	r.t.Helper()
	addr, err := r.dev.Alloc(n, tag)
	if err != nil {
		r.t.Fatal(err)
	}
	return addr
}

func download[T any](r *rig, addr uint64, n int) []T {
	r.t.Helper()
	out := make([]T, n)
	b := make([]byte, binary.Size(out))
	if err := r.dev.Read(b, addr); err != nil {
		r.t.Fatal(err)
	}
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// pack lays out arguments as the kernel's parameter buffer.
func pack(k *Kernel, args ...any) []byte {
	buf := make([]byte, k.Params)
	for i, a := range args {
		b, err := binary.Append(nil, binary.LittleEndian, a)
		if err != nil || len(b) != k.Sizes[i] {
			panic(fmt.Sprintf("argument %d of %s: %d bytes for %d (%v)", i, k.Name, len(b), k.Sizes[i], err))
		}
		copy(buf[k.Offsets[i]:], b)
	}
	return buf
}

func (r *rig) try(name string, grid, block [3]int, o Options, args ...any) (*Report, error) {
	r.t.Helper()
	k := r.prog.Kernel(name)
	if k == nil {
		r.t.Fatalf("no kernel %s", name)
	}
	return r.dev.Launch(k, grid, block, 0, pack(k, args...), o)
}

// launch expects neither an error nor a finding.
func (r *rig) launch(name string, grid, block [3]int, o Options, args ...any) *Report {
	r.t.Helper()
	rep, err := r.try(name, grid, block, o, args...)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	for _, f := range rep.Findings {
		r.t.Errorf("%s: %v", name, f)
	}
	return rep
}

func d1(n int) [3]int    { return [3]int{n, 1, 1} }
func d2(x, y int) [3]int { return [3]int{x, y, 1} }

func randoms(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// near compares with a float64 reference: the error relative to the greatest magnitude.
func near(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	var scale float64
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tol*max(scale, 1)) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// mutate replaces the n-th occurrence in the text of a kernel.
func mutate(t testing.TB, src, kernel, old, new string, n int) (string, int) {
	t.Helper()
	at := strings.Index(src, ".entry "+kernel+"(")
	for range n {
		i := strings.Index(src[at+1:], old)
		if i < 0 {
			t.Fatalf("%s has no %q", kernel, old)
		}
		at += 1 + i
	}
	return src[:at] + new + src[at+len(old):], 1 + strings.Count(src[:at], "\n")
}

// inBlock is the checks for kernels of which all blocks write the same places.
const inBlock = AllChecks &^ Globalcheck

func fileText(t testing.TB, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}
