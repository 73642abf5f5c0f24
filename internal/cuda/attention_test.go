package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// attentionSize is q[b,h,t,d], k[b,h,s,d], v[b,h,s,e]; mask is none, bool or the dtype of q.
type attentionSize struct {
	b, h, t, s, d, e int
	causal           bool
	mask             dtype.DType
}

// attentionSizes reach every kernel: widths of 64 and 128 and beyond, several tiles on both sides, rows that are no
// multiple of 16 bytes, heads of which the last queries or keys stand alone.
var attentionSizes = []attentionSize{
	{b: 1, h: 2, t: 17, s: 70, d: 64, e: 64},
	{b: 1, h: 1, t: 65, s: 97, d: 64, e: 40, causal: true},
	{b: 1, h: 1, t: 70, s: 65, d: 128, e: 128, causal: true},
	{b: 1, h: 1, t: 17, s: 65, d: 72, e: 128, mask: dtype.Bool},
	{b: 1, h: 1, t: 20, s: 33, d: 127, e: 65, causal: true, mask: dtype.F32},
	{b: 1, h: 1, t: 17, s: 33, d: 33, e: 64, mask: dtype.F32},
	{b: 1, h: 1, t: 3, s: 35, d: 160, e: 200},
}

// round makes an array hold what its dtype can.
func round(a ref.Array) ref.Array {
	b := make([]byte, a.Type.Size()*a.Type.DType.Size())
	ref.Encode(b, a.Type, a)
	return ref.Decode(b, a.Type)
}

// drawn has numbers of a standard normal distribution; a bool is true two times of three.
func drawn(r *rand.Rand, dt dtype.DType, shape ...int) ref.Array {
	t := ir.Dense(dt, shape...)
	if dt == dtype.Bool {
		v := make([]int64, t.Size())
		for i := range v {
			v[i] = int64(min(r.IntN(3), 1))
		}
		return ref.Ints(t, v...)
	}
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return round(ref.Floats(t, v...))
}

// operands draws q, k, v and perhaps a mask.
func (z *attentionSize) operands(r *rand.Rand, dt dtype.DType) []ref.Array {
	in := []ref.Array{drawn(r, dt, z.b, z.h, z.t, z.d), drawn(r, dt, z.b, z.h, z.s, z.d), drawn(r, dt, z.b, z.h, z.s, z.e)}
	switch z.mask {
	case dtype.Bool:
		in = append(in, drawn(r, dtype.Bool, z.b, z.h, z.t, z.s))
	case dtype.F32:
		in = append(in, drawn(r, dt, z.b, z.h, z.t, z.s))
	}
	return in
}

// evaluate is the reference's results, rounded.
func evaluate(t *testing.T, code ir.Code, a ir.Attr, p ir.Params, in []ref.Array) []ref.Array {
	t.Helper()
	types := make([]*ir.Type, len(in))
	for i := range in {
		types[i] = in[i].Type
	}
	op := ir.New(code, a, types...)
	out, err := ref.Eval(&op, &p, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i] = round(out[i])
	}
	return out
}

// launched is a device's results.
func launched(t *testing.T, l *conform.Launcher, code ir.Code, a ir.Attr, p ir.Params, in []ref.Array) (out []ref.Array) {
	t.Helper()
	defer l.Release()
	if err := l.Try(func() {
		var values []ir.Value
		for _, x := range in {
			values = append(values, l.Put(x.Type, x))
		}
		for _, v := range l.Emit(code, a, p, values...) {
			out = append(out, l.Get(v))
		}
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// near allows one rounding to the dtype, and a few in the precision of the arithmetic: 64 next to 1, which grow with the
// square root of the number of operand x's elements to one of the result.
func near(t *testing.T, what string, x *ir.Type, got, want []ref.Array) {
	t.Helper()
	for i := range want {
		dt := want[i].Type.DType
		terms := max(1, float64(x.Size())/float64(max(want[i].Type.Size(), 1)))
		testutil.Close(t, got[i].Data, want[i].Data, dt.Epsilon(), 64*math.Sqrt(terms)*ir.Wide(dt).Epsilon())
		if t.Failed() {
			t.Fatalf("%s: result %d of %s is off", what, i, want[i].Type)
		}
	}
}

// TestAttentionSizes compares attention and its gradient with the float64 reference, with tensor cores that round,
// sum exactly and cut off, for sizes that the conformance suite leaves out. A run takes one in two.
func TestAttentionSizes(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 2)
	for _, c := range []struct {
		config simcuda.Config
		dtypes []dtype.DType
	}{
		{simcuda.Config{Checks: gpusim.AllChecks}, []dtype.DType{dtype.F32, dtype.BF16}},
		{simcuda.Config{Numerics: gpusim.Exact}, []dtype.DType{dtype.BF16}},
		{simcuda.Config{Numerics: gpusim.Truncating}, []dtype.DType{dtype.F16, dtype.BF16}},
	} {
		dev := opener(t, c.config)()
		for _, dt := range c.dtypes {
			for i := range attentionSizes {
				if spread.Takes(fmt.Sprint(c.config.Numerics, dt, i)) {
					testAttention(t, dev, dt, &attentionSizes[i])
				}
			}
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testAttention(t *testing.T, dev device.Device, dt dtype.DType, z *attentionSize) {
	l, err := conform.NewLauncher(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := testutil.Rand(t)
	a, p := ir.Attr{Causal: z.causal}, ir.Scalars(1/math.Sqrt(float64(z.d)))
	in := z.operands(r, dt)
	what := fmt.Sprintf("%s %+v", dt, *z)
	want := evaluate(t, ir.Attention, a, p, in)
	near(t, what, in[0].Type, launched(t, l, ir.Attention, a, p, in), want)
	g := drawn(r, dt, z.b, z.h, z.t, z.e)
	in = append([]ref.Array{g, in[0], in[1], in[2], want[0], want[1]}, in[3:]...)
	near(t, "gradient of "+what, g.Type, launched(t, l, ir.AttentionGrad, a, p, in), evaluate(t, ir.AttentionGrad, a, p, in))
}

// TestAttentionBanks demands that the tiled kernels' accesses of shared memory take no pass more than their width needs.
func TestAttentionBanks(t *testing.T) {
	seen := map[string]bool{}
	dev := opener(t, simcuda.Config{Counters: true, OnLaunch: func(kernel string, r *gpusim.Report) {
		if seen[kernel] = true; r.Counters.SharedConflicts > 0 {
			t.Errorf("%s: %d of %d wavefronts are conflicts", kernel, r.Counters.SharedConflicts, r.Counters.SharedWavefronts)
		}
	}})()
	for _, dt := range []dtype.DType{dtype.F32, dtype.BF16} {
		for _, d := range []int{32, 64, 128} {
			testAttention(t, dev, dt, &attentionSize{b: 1, h: 1, t: 64, s: 64, d: d, e: d})
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if len(seen) < 3*3+3*3+1 {
		t.Errorf("only %d kernels ran", len(seen))
	}
}
