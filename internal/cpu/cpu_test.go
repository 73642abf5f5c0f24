package cpu

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
)

// guard is the number of bytes around a result that must not change.
const guard = 64

// buffer is device memory between guard bytes.
type buffer struct {
	arg  device.Arg
	data []byte // with guards
}

func newBuffer(t testing.TB, n int64) buffer {
	t.Helper()
	m, err := New().Alloc(n + 2*guard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { New().Free(m) })
	b := buffer{device.Arg{Mem: m, Offset: guard}, values[byte](device.Arg{Mem: m}, int(m.Size))}
	for i := range b.data {
		b.data[i] = 0xa5
	}
	return b
}

// check reports changed guards.
func (b buffer) check(t testing.TB) {
	t.Helper()
	for i := range guard {
		if b.data[i] != 0xa5 || b.data[len(b.data)-1-i] != 0xa5 {
			t.Errorf("bytes around a result of %d were written", len(b.data)-2*guard)
			return
		}
	}
}

// bytesOf is the size of a view's memory.
func bytesOf(t *ir.Type) int64 { return int64(t.Span()) * int64(t.DType.Size()) }

// write stores numbers, in row-major order, in the elements of a view.
func write(a device.Arg, t *ir.Type, v []float64) {
	size := t.DType.Size()
	eachPlace(t, func(i, off int) {
		b := values[byte](device.Arg{Mem: a.Mem, Offset: a.Offset + int64(off*size)}, size)
		for k := range b {
			b[k] = byte(t.DType.Encode(v[i]) >> (8 * k))
		}
	})
}

// read is the inverse of write.
func read(a device.Arg, t *ir.Type) []float64 {
	v, size := make([]float64, t.Size()), t.DType.Size()
	eachPlace(t, func(i, off int) {
		var bits uint64
		for k, b := range values[byte](device.Arg{Mem: a.Mem, Offset: a.Offset + int64(off*size)}, size) {
			bits |= uint64(b) << (8 * k)
		}
		v[i] = t.DType.Decode(bits)
	})
	return v
}

// eachPlace calls f with the number of each element and its offset.
func eachPlace(t *ir.Type, f func(i, off int)) {
	for i := range t.Size() {
		off, rest := 0, i
		for d := t.Rank() - 1; d >= 0; d-- {
			off += rest % t.Dim(d) * t.Strides()[d]
			rest /= t.Dim(d)
		}
		f(i, off)
	}
}

// launched is what a test sees of a launch.
type launched struct {
	in, out [][]float64 // as numbers, in row-major order; inputs as their dtypes hold them
	bytes   [][]byte    // of the results
}

// launch runs an op over numbers and returns its results.
func launch(t testing.TB, op ir.Op, p ir.Params, in ...[]float64) ([][]float64, error) {
	t.Helper()
	l, err := observe(t, op, p, in...)
	return l.out, err
}

// observe runs an op over numbers, each operand in guarded memory.
func observe(t testing.TB, op ir.Op, p ir.Params, in ...[]float64) (launched, error) {
	t.Helper()
	k, err := New().Prepare(op)
	if err != nil {
		t.Fatalf("prepare %s of %v: %v", op.Code, op.Ins(), err)
	}
	var args []device.Arg
	var outs []buffer
	var res launched
	for _, y := range k.Out {
		b := newBuffer(t, bytesOf(y))
		outs = append(outs, b)
		args = append(args, b.arg)
	}
	for i, x := range op.Ins() {
		b := newBuffer(t, bytesOf(x))
		write(b.arg, x, in[i])
		res.in = append(res.in, read(b.arg, x))
		args = append(args, b.arg)
	}
	if k.Workspace > 0 {
		args = append(args, newBuffer(t, k.Workspace).arg)
	}
	q, _ := New().NewQueue()
	var dp device.Params
	dp.Set(&p)
	if err := q.Launch(k, args, &dp); err != nil {
		return res, err
	}
	for i, y := range k.Out {
		outs[i].check(t)
		res.out = append(res.out, read(args[i], y))
		res.bytes = append(res.bytes, outs[i].data[guard:len(outs[i].data)-guard])
	}
	return res, nil
}

// mustLaunch launches on one thread and on two, whose results must have the same bits.
func mustLaunch(t testing.TB, op ir.Op, p ir.Params, in ...[]float64) launched {
	t.Helper()
	defer par.SetThreads(par.Threads())
	par.SetThreads(1)
	one, err := observe(t, op, p, in...)
	if err != nil {
		t.Fatal(err)
	}
	par.SetThreads(2)
	two, err := observe(t, op, p, in...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range one.bytes {
		if !bytes.Equal(one.bytes[i], two.bytes[i]) {
			t.Errorf("%s of %v: one thread and two give different bits", op.Code, op.Ins())
		}
	}
	return one
}

// compare demands |got-want| ≤ tol·(|want| + scale), and NaN and infinities as wanted.
func compare(t testing.TB, op ir.Op, got, want []float64, tol, scale float64) {
	t.Helper()
	for i, w := range want {
		g := got[i]
		if g == w || g != g && w != w || math.Abs(g-w) <= tol*(math.Abs(w)+scale) {
			continue
		}
		t.Errorf("%s of %v: result %d is %v, want %v", op.Code, op.Ins(), i, g, w)
		return
	}
}

// precision is a few units in the last place of a dtype, and more of f64, in which the references round too.
func precision(dt dtype.DType) float64 {
	if dt == dtype.F64 {
		return 2e-14
	}
	return 2 * dt.Epsilon()
}

// numbersFor draws numbers of a dtype.
func numbersFor(r *rand.Rand, t *ir.Type) []float64 {
	v := make([]float64, t.Size())
	for i := range v {
		switch {
		case t.DType == dtype.Bool:
			v[i] = float64(r.IntN(2))
		case t.DType == dtype.U8:
			v[i] = float64(r.IntN(256))
		case t.DType.IsInt():
			v[i] = float64(r.IntN(41) - 20)
		default:
			v[i] = 2 * r.NormFloat64()
		}
	}
	return v
}

// randomView makes a type of a shape whose strides may be those of a permuted, sliced or expanded tensor.
func randomView(r *rand.Rand, dt dtype.DType, shape []int) *ir.Type {
	if r.IntN(4) == 0 {
		return ir.Dense(dt, shape...)
	}
	n := len(shape)
	strides := make([]int, n)
	step := 1 + r.IntN(2)
	for _, d := range r.Perm(n) {
		strides[d] = step
		step *= max(shape[d], 1)
		step += r.IntN(3)
	}
	if n > 0 && r.IntN(3) == 0 {
		strides[r.IntN(n)] = 0
	}
	return ir.Strided(dt, shape, strides)
}

// randomShape has awkward sizes.
func randomShape(r *rand.Rand) []int {
	sizes := []int{0, 1, 2, 3, 5, 8, 17, 31, 64, 300}
	shape := make([]int, r.IntN(5))
	n := 1
	for i := range shape {
		d := sizes[r.IntN(len(sizes))]
		if n*d > 40000 || d == 0 && r.IntN(4) > 0 {
			d = 3
		}
		shape[i] = d
		n *= max(d, 1)
	}
	return shape
}

func TestInfo(t *testing.T) {
	i := New().Info()
	if i.Name != "cpu" || !i.Host || i.Null || i.Model == "" || len(i.DTypes) != len(dtype.All()) || i.Alignment != 64 {
		t.Errorf("%+v", i)
	}
}

func TestAlloc(t *testing.T) {
	d := New()
	m, err := d.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free(m)
	if m.Addr%64 != 0 || m.Size != 100 || !m.Host {
		t.Errorf("%+v", m)
	}
	if _, err := d.Alloc(math.MaxInt64); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("an impossible allocation: %v", err)
	}
}

func TestQueue(t *testing.T) {
	q, err := New().NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	src, dst := newBuffer(t, 10), newBuffer(t, 10)
	copy(src.data[guard:], "0123456789")
	if err := q.Copy(dst.arg, src.arg, 10); err != nil || string(dst.data[guard:guard+10]) != "0123456789" {
		t.Errorf("copy gave %q, %v", dst.data[guard:guard+10], err)
	}
	if err := q.Copy(dst.arg, src.arg, 1000); err == nil {
		t.Error("a copy beyond the memory was accepted")
	}
	e, err := q.Record()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := e.Done(); !ok || err != nil {
		t.Errorf("event: %v, %v", ok, err)
	}
	if q.Wait(e) != nil || q.Sync() != nil || q.Close() != nil {
		t.Error("an idle queue failed")
	}
}

// Launch must refuse what it cannot reach rather than write elsewhere.
func TestLaunchRefuses(t *testing.T) {
	x := ir.Dense(dtype.F32, 100)
	k, err := New().Prepare(ir.New(ir.Neg, ir.Attr{}, x))
	if err != nil {
		t.Fatal(err)
	}
	q, _ := New().NewQueue()
	big, small := newBuffer(t, 400).arg, newBuffer(t, 200).arg
	for name, args := range map[string][]device.Arg{
		"missing":   {big},
		"too small": {big, small},
		"negative":  {big, {Mem: big.Mem, Offset: -4}},
	} {
		if err := q.Launch(k, args, nil); err == nil || !strings.Contains(err.Error(), "neg") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := q.Launch(&device.Kernel{Op: k.Op, Impl: 1}, []device.Arg{big, big}, nil); err == nil {
		t.Error("a foreign kernel was launched")
	}
}

func TestPrepareRefuses(t *testing.T) {
	x := ir.Dense(dtype.F32, 2)
	if _, err := New().Prepare(ir.New(ir.Add, ir.Attr{}, x, ir.Dense(dtype.F32, 3))); err == nil {
		t.Error("an invalid op was prepared")
	}
	if _, err := New().Prepare(ir.New(ir.Permute, ir.Attr{}, x)); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("a view: %v", err)
	}
}

// bench launches an op over prepared memory.
func bench(b *testing.B, op ir.Op, p ir.Params) {
	b.Helper()
	k, err := New().Prepare(op)
	if err != nil {
		b.Fatal(err)
	}
	var args []device.Arg
	r := rand.New(rand.NewPCG(1, 2))
	for _, ts := range [][]*ir.Type{k.Out, op.Ins()} {
		for _, x := range ts {
			a := newBuffer(b, bytesOf(x)).arg
			v := make([]float64, x.Size())
			for i := range v {
				v[i] = r.NormFloat64()
				if x.DType == dtype.I64 {
					v[i] = float64(r.IntN(60))
				}
			}
			write(a, x, v)
			args = append(args, a)
		}
	}
	if k.Workspace > 0 {
		args = append(args, newBuffer(b, k.Workspace).arg)
	}
	q, _ := New().NewQueue()
	var dp device.Params
	dp.Set(&p)
	n := k.Out[0].Size()
	for _, x := range op.Ins() {
		n = max(n, x.Size())
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Launch(k, args, &dp); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/elem")
}

func BenchmarkAdd4(b *testing.B) {
	x := ir.Dense(dtype.F32, 4)
	bench(b, ir.New(ir.Add, ir.Attr{}, x, x), ir.Params{})
}

func BenchmarkPrepare(b *testing.B) {
	x := ir.Dense(dtype.F32, 64, 64)
	op := ir.New(ir.Add, ir.Attr{}, x, x)
	d := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Prepare(op); err != nil {
			b.Fatal(err)
		}
	}
}
