package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// precise makes p, a product of its first two operands, serve every precision: operands are rounded into the workspace,
// and multiplied as f32, whose products of so few bits are exact.
func precise(p prepare) prepare {
	return func(k *device.Kernel) (run, error) {
		round := rounding[k.Op.Attr.Precision]
		if round == nil {
			return p(k)
		}
		attr := k.Op.Attr
		attr.Precision = ir.Highest
		inner := device.Kernel{Op: ir.New(k.Op.Code, attr, k.Op.Ins()...), Out: k.Out}
		f, err := p(&inner)
		if err != nil {
			return nil, err
		}
		r := &rounded{inner: f, outs: len(k.Out), ins: k.Op.Ins(), loop: newLoop(round), needs: inner.Workspace > 0}
		r.second = aligned(4 * int64(r.ins[0].Span()))
		r.tail = r.second + aligned(4*int64(r.ins[1].Span()))
		if k.Workspace = r.tail + inner.Workspace; k.Workspace == 0 {
			return f, nil // of nothing: no workspace is given
		}
		return r.run, nil
	}
}

// rounded is a product of rounded operands around that of f32.
type rounded struct {
	inner        run
	outs         int
	ins          []*ir.Type
	second, tail int64 // where the second operand and the product's own workspace begin
	needs        bool  // it has one
	loop         *loop[rounds]
}

func (r *rounded) run(args []device.Arg, p *device.Params) error {
	n := r.outs + len(r.ins)
	space := args[n]
	used := append(make([]device.Arg, 0, n+1), args[:n]...)
	for i, at := range []int64{0, r.second} {
		to := device.Arg{Mem: space.Mem, Offset: space.Offset + at}
		span := r.ins[i].Span()
		r.loop.run(span, 1<<14, rounds{workspace[float32](to, 0, span), elems[float32](args[r.outs+i], r.ins[i])})
		used[r.outs+i] = to
	}
	if r.needs {
		used = append(used, device.Arg{Mem: space.Mem, Offset: space.Offset + r.tail})
	}
	return r.inner(used, p)
}

type rounds struct{ to, from []float32 }

// rounding is what each precision does to operands.
var rounding = [...]func(v *rounds, lo, hi int){
	ir.High: func(v *rounds, lo, hi int) {
		for i, x := range v.from[lo:hi] {
			v.to[lo+i] = tf32(x)
		}
	},
	ir.Medium: func(v *rounds, lo, hi int) {
		for i, x := range v.from[lo:hi] {
			v.to[lo+i] = dtype.BF16FromFloat32(x).Float32()
		}
	},
}

// tf32 is x rounded as cvt.rna.tf32.f32 does: the carry of half a unit goes up into the exponent, and from the largest to
// infinity. A NaN stays one.
func tf32(x float32) float32 {
	const half, below = 1 << 12, 1<<13 - 1
	if x != x {
		return math.Float32frombits(math.MaxInt32)
	}
	return math.Float32frombits((math.Float32bits(x) + half) &^ below)
}
