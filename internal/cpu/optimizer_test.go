package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/testutil"
)

func TestSumSquares(t *testing.T) {
	r := testutil.Rand(t)
	for _, dts := range [][]dtype.DType{{dtype.F32}, {dtype.F64, dtype.BF16}, {dtype.F16, dtype.F32, dtype.BF16}} {
		var in []value
		want := 0.
		for i, n := range []int{0, 1, 7, pieceSize, 3*pieceSize + 11, 513} {
			x := normals(t, r, 2, ir.Dense(dts[i%len(dts)], n))
			for _, v := range x.v {
				want += v * v
			}
			in = append(in, x)
		}
		near(t, fmt.Sprint(dts), evaluate(t, ir.SumSquares, ir.Attr{}, ir.Params{}, in...)[0], []float64{want}, 1e-6, 0, 0)
	}
	near(t, "empty", evaluate(t, ir.SumSquares, ir.Attr{}, ir.Params{}, value{ir.Dense(dtype.F32, 0), nil})[0], []float64{0}, 0, 0, 0)
}

// step launches an optimizer in place, as programs do, over groups of n operands behind the scale, on a number of
// threads, and replaces the values.
func step(t *testing.T, threads int, code ir.Code, flag ir.Flag, p ir.Params, n int, in []value) []value {
	t.Helper()
	defer par.SetThreads(par.Threads())
	par.SetThreads(threads)
	var types []*ir.Type
	var ins, outs []device.Arg
	var all []buffer
	for i, x := range in {
		b := newBuffer(t, bytesOf(x.t))
		write(b.arg, x.t, x.v)
		types, ins, all = append(types, x.t), append(ins, b.arg), append(all, b)
		if i > 0 && (i-1)%n != 1 && (i-1)%n != 4 {
			outs = append(outs, b.arg)
		}
	}
	k, err := New().Prepare(ir.New(code, ir.Attr{Flag: flag}, types...))
	if err != nil {
		t.Fatal(err)
	}
	var dp device.Params
	dp.Set(&p)
	q, _ := New().NewQueue()
	if err := q.Launch(k, slices.Concat(outs, ins), &dp); err != nil {
		t.Fatal(err)
	}
	var got []value
	for i, b := range all {
		b.check(t)
		got = append(got, value{types[i], read(ins[i], types[i])})
	}
	return got
}

// refSGD and refAdamW are the definitions, one element at a time, on p, g and state.
func refSGD(flag ir.Flag, c []float64, scale float64, x []float64) {
	g := scale*x[1] + c[2]*x[0]
	if flag&ir.Momentum != 0 {
		x[2] = c[1]*x[2] + g
		if flag&ir.Nesterov != 0 {
			g += c[1] * x[2]
		} else {
			g = x[2]
		}
	}
	x[0] -= c[0] * c[3] * g
}

func refAdamW(flag ir.Flag, c []float64, scale float64, x []float64) {
	g, rate := scale*x[1], c[0]*c[5]
	if flag&ir.Coupled != 0 {
		g += c[4] * x[0]
	} else {
		x[0] *= 1 - rate*c[4]
	}
	x[2] = c[1]*x[2] + (1-c[1])*g
	x[3] = c[2]*x[3] + (1-c[2])*g*g
	x[0] -= rate / (1 - math.Pow(c[1], x[4])) * x[2] / (math.Sqrt(x[3]/(1-math.Pow(c[2], x[4]))) + c[3])
}

func TestOptimizers(t *testing.T) {
	adam := []float64{0.01, 0.9, 0.99, 1e-6, 0.1, 0.5, 0}
	for _, c := range []struct {
		code    ir.Code
		flag    ir.Flag
		group   int
		scalars []float64
		ref     func(ir.Flag, []float64, float64, []float64)
	}{
		{ir.SGD, 0, 2, []float64{0.1, 0, 0, 1, 0}, refSGD},
		{ir.SGD, 0, 2, []float64{0.1, 0, 0.3, 0.5, 0}, refSGD},
		{ir.SGD, ir.Momentum, 3, []float64{0.1, 0.9, 0.3, 1, 0}, refSGD},
		{ir.SGD, ir.Momentum, 3, []float64{0.1, 0.9, 0, 2, 0}, refSGD},
		{ir.SGD, ir.Momentum | ir.Nesterov, 3, []float64{0.1, 0.9, 0.1, 1, 0}, refSGD},
		{ir.AdamW, 0, numbered, adam, refAdamW},
		{ir.AdamW, ir.Coupled, numbered, adam, refAdamW},
	} {
		r := testutil.Rand(t)
		in := []value{of(t, ir.Dense(dtype.F32), []float64{0.5})}
		for i, n := range []int{0, 1, 600, pieceSize + 5} {
			for j := range c.group {
				if j == 4 {
					in = append(in, of(t, ir.Dense(dtype.I64), []float64{float64(2 + i)}))
					continue
				}
				x := normals(t, r, 1, ir.Dense(floatTypes[(i+len(floatTypes)-1)%4], n))
				for l, v := range x.v {
					if j == 3 {
						x.v[l] = v * v
					}
				}
				in = append(in, of(t, x.t, x.v))
			}
		}
		name := fmt.Sprint(c.code, c.flag)
		got := step(t, 1, c.code, c.flag, ir.Scalars(c.scalars...), c.group, in)
		two := step(t, 2, c.code, c.flag, ir.Scalars(c.scalars...), c.group, in)
		for i := 1; i < len(in); i += c.group {
			var want [numbered][]float64
			for e := range in[i].v {
				var x []float64
				for j := range c.group {
					x = append(x, in[i+j].v[e%len(in[i+j].v)])
				}
				c.ref(c.flag, c.scalars, 0.5, x)
				for j, v := range x {
					want[j] = append(want[j], v)
				}
			}
			for j := range min(c.group, 4) {
				near(t, fmt.Sprint(name, " operand ", i+j), got[i+j], want[j], 1e-6, 2, 0.51)
				if !slices.Equal(got[i+j].v, two[i+j].v) {
					t.Errorf("%s: operand %d differs between one and two threads", name, i+j)
				}
			}
		}
	}
}

// Results beside the operands must leave these as they were.
func TestOptimizerCopies(t *testing.T) {
	r := testutil.Rand(t)
	x := ir.Dense(dtype.F32, 700)
	one := []float64{1}
	var v [4][]float64
	for i := range v {
		v[i] = normals(t, r, 1, x).v
	}
	got, err := launch(t, ir.New(ir.SGD, ir.Attr{Flag: ir.Momentum}, ir.Dense(dtype.F32), x, x, x), ir.Scalars(0.5, 0.5, 0, 1, 0), one, v[0], v[1], v[2])
	if err != nil {
		t.Fatal(err)
	}
	for i := range v[0] {
		buf := 0.5*v[2][i] + v[1][i]
		v[3][i], v[2][i] = v[0][i]-0.5*buf, buf
	}
	near(t, "p", value{x, got[0]}, v[3], 1e-6, 1, 0)
	near(t, "buf", value{x, got[1]}, v[2], 1e-6, 1, 0)
}

// A launch in steady state leaves the Go heap alone.
func TestLaunchAllocates(t *testing.T) {
	x, w, b := ir.Dense(dtype.F32, 64, 48), ir.Dense(dtype.F32, 48), ir.Dense(dtype.BF16, 64, 48)
	img, ker := ir.Dense(dtype.F32, 8, 3, 9, 9), ir.Dense(dtype.F32, 4, 3, 3, 3)
	heads := ir.Dense(dtype.F32, 2, 4, 70, 8)
	number, counts := ir.Dense(dtype.I64), ir.Dense(dtype.I64, 5)
	conv := ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}
	for _, op := range []ir.Op{
		ir.New(ir.Linear, ir.Attr{}, x, x), ir.New(ir.Softmax, ir.Attr{}, x), ir.New(ir.Softmax, ir.Attr{}, b), ir.New(ir.LayerNorm, ir.Attr{}, x, w, w),
		ir.New(ir.Conv2d, conv.Attr(), img, ker), ir.New(ir.Attention, ir.Attr{}, heads, heads, heads),
		ir.New(ir.AdamW, ir.Attr{}, ir.Dense(dtype.F32), x, x, x, x, number), ir.New(ir.AdamW, ir.Attr{}, ir.Dense(dtype.F32), b, b, b, b, number),
		ir.New(ir.SumSquares, ir.Attr{}, x, b), ir.New(ir.GradNorm, ir.Attr{}, counts, counts, x, b),
		ir.New(ir.LossScale, ir.Attr{}, ir.Dense(dtype.F32), ir.Dense(dtype.F64), number, number),
	} {
		k, err := New().Prepare(op)
		if err != nil {
			t.Fatal(err)
		}
		var args []device.Arg
		for _, types := range [][]*ir.Type{k.Out, op.Ins()} {
			for _, x := range types {
				args = append(args, newBuffer(t, bytesOf(x)).arg)
			}
		}
		args = append(args, newBuffer(t, k.Workspace).arg)
		q, _ := New().NewQueue()
		p := new(device.Params)
		if n := testutil.Allocations(50, func() {
			if err := q.Launch(k, args, p); err != nil {
				t.Fatal(err)
			}
		}); n >= 1 {
			t.Errorf("%s of %s: %v allocations", op.Code, op.In(0), n)
		}
	}
}

func BenchmarkOptimizer(b *testing.B) {
	x := ir.Dense(dtype.F32, 1<<20)
	s := ir.Dense(dtype.F32)
	b.Run("adamw", func(b *testing.B) {
		rate(b, "GB/s", 28*x.Size(), ir.AdamW, ir.Attr{}, ir.Scalars(1e-3, 0.9, 0.99, 1e-8, 0.1, 1, 0), s, x, x, x, x, ir.Dense(dtype.I64))
	})
	b.Run("sgd", func(b *testing.B) {
		rate(b, "GB/s", 20*x.Size(), ir.SGD, ir.Attr{Flag: ir.Momentum}, ir.Scalars(1e-3, 0.9, 0, 1, 0), s, x, x, x)
	})
	b.Run("sum-squares", func(b *testing.B) { rate(b, "GB/s", 4*x.Size(), ir.SumSquares, ir.Attr{}, ir.Params{}, x) })
}
