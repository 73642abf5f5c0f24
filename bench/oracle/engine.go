package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim/mutate"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// engineOp is an op that the engine is asked for, with the types of its operands.
type engineOp struct {
	code   ir.Code
	attr   ir.Attr
	params ir.Params
	in     []*ir.Type
	skip   int // elements of the last operand's allocation ahead of it
}

func of(code ir.Code, attr ir.Attr, params ir.Params, in ...*ir.Type) engineOp {
	return engineOp{code, attr, params, in, 0}
}

// engineOps have sizes for which a kernel takes several blocks, and each of the stages that copies run ahead in more than
// once; the last blocks, tiles and stages are not full. Rows of products are a multiple of 16 bytes, of 4 bytes, or an odd
// number of elements, which kernels load in three ways; rows of A and of B are odd together and each alone. The grids of
// products differ, for of one grid the recorder keeps one launch.
func engineOps(dt dtype.DType) []engineOp {
	d := func(shape ...int) *ir.Type { return ir.Dense(dt, shape...) }
	turned := func(m, n int) *ir.Type { return ir.Strided(dt, []int{m, n}, []int{1, m}) }
	stats := func(n int) *ir.Type { return ir.Dense(ir.Wide(dt), n) }
	causal, relu, scale, eps := ir.Attr{Causal: true}, ir.Attr{Act: ir.ActReLU}, ir.Scalars(0.2), ir.Scalars(1e-5)
	products, keys := [][3]int{{70, 212, 40}, {33, 149, 33}}, 133
	if dt != dtype.F32 {
		products, keys = [][3]int{{70, 424, 40}, {34, 300, 34}, {33, 301, 133}, {34, 300, 261}, {34, 301, 386}}, 277
	}
	list := []engineOp{
		of(ir.Softmax, ir.Attr{}, ir.Params{}, d(11, 100)),
		of(ir.Softmax, ir.Attr{}, ir.Params{}, d(2, 2051)),
		of(ir.LayerNorm, ir.Attr{}, eps, d(11, 100), d(100), d(100)),
		of(ir.LayerNorm, ir.Attr{}, eps, d(2, 2051), d(2051), d(2051)),
		of(ir.BatchNorm, relu, eps, d(5, 3, 1004), stats(3), stats(3), d(5, 3, 1004)),
		of(ir.BatchNorm, relu, eps, d(70, 40, 5), stats(40), stats(40)),
		of(ir.BatchNormGrad, ir.Attr{Flag: ir.Residual}, eps, d(5, 3, 1004), d(5, 3, 1004), stats(3), stats(3), stats(3), d(5, 3, 1004)),
		of(ir.BatchNormGrad, ir.Attr{}, eps, d(70, 40, 5), d(70, 40, 5), stats(40), stats(40), stats(40), d(70, 40, 5)),
		of(ir.Sum, ir.Attr{Axes: 2}, ir.Params{}, d(5, 301)),
		of(ir.Sum, ir.Attr{Axes: 2}, ir.Params{}, d(2, 9001)),
		of(ir.Sum, ir.Attr{Axes: 1}, ir.Params{}, d(1301, 70)),
		of(ir.ReduceMax, ir.Attr{Axes: 2}, ir.Params{}, d(5, 301)),
		of(ir.ReduceMax, ir.Attr{Axes: 2}, ir.Params{}, d(2, 9001)),
		of(ir.ArgMax, ir.Attr{Axis: 1}, ir.Params{}, d(5, 301)),
		of(ir.ArgMax, ir.Attr{Axis: 1}, ir.Params{}, d(2, 9001)),
		of(ir.CumSum, ir.Attr{Axis: 1}, ir.Params{}, d(11, 301)),
		of(ir.CumSum, ir.Attr{Axis: 1}, ir.Params{}, d(2, 2051)),
		of(ir.Copy, ir.Attr{}, ir.Params{}, turned(45, 67)),
		of(ir.Attention, causal, scale, d(1, 1, keys, 24), d(1, 1, keys, 24), d(1, 1, keys, 29)),
		of(ir.Attention, ir.Attr{}, scale, d(1, 1, 70, 40), d(1, 1, keys, 40), d(1, 1, keys, 64), d(1, 1, 70, keys)),
	}
	for _, z := range products {
		m, k, n := z[0], z[1], z[2]
		for _, a := range []*ir.Type{d(m, k), turned(m, k)} {
			for _, b := range []*ir.Type{d(k, n), turned(k, n)} {
				list = append(list, of(ir.MatMul, ir.Attr{}, ir.Params{}, a, b))
			}
		}
	}
	list = append(list, fusedOps(dt)...)
	if dt == dtype.F32 {
		return append(list, of(ir.MatMul, ir.Attr{}, ir.Params{}, d(30, 75), d(75, 31)))
	}
	late := of(ir.MatMul, ir.Attr{}, ir.Params{}, d(34, 300), turned(300, 450))
	late.skip = 1 // rows of A and B begin at even elements and at odd ones
	return append(list, late)
}

// fusedOps are those that do more than one thing in a kernel: products with an activation behind them, or cut along k; the
// head with its loss and both gradients; attention to packed parts, and its gradient; a sum with its norm, and the gradient
// of both.
func fusedOps(dt dtype.DType) []engineOp {
	d := func(shape ...int) *ir.Type { return ir.Dense(dt, shape...) }
	wide := func(shape ...int) *ir.Type { return ir.Dense(ir.Wide(dt), shape...) }
	labels := ir.Dense(dtype.I64, 70)
	causal, scale, eps, smoothing := ir.Attr{Causal: true}, ir.Scalars(0.2), ir.Scalars(1e-5), ir.Scalars(0.1, 3)
	gelu, before, relu := ir.Attr{Act: ir.ActGELU}, ir.Attr{Act: ir.ActGELUTanh, Flag: ir.Before}, ir.Attr{Act: ir.ActReLU}
	all := ir.Attr{Flag: ir.Mean | ir.GradX | ir.GradW}
	low := ir.Attr{}
	if dt != ir.Wide(dt) {
		low.DType = dt
	}
	list := []engineOp{
		of(ir.Linear, before, ir.Params{}, d(70, 104), d(72, 104), wide(72)),
		of(ir.Linear, relu, ir.Params{}, d(33, 101), d(131, 101), d(131)),
		of(ir.MatMul, ir.Attr{}, ir.Params{}, d(40, 2104), d(2104, 48)),
		of(ir.BiasGrad, ir.Attr{}, ir.Params{}, d(301, 70)),
		of(ir.BiasGrad, gelu, ir.Params{}, d(301, 70), d(301, 70)),
		of(ir.LinearCrossEntropy, all, smoothing, d(70, 40), d(301, 40), labels),
		of(ir.LinearCrossEntropy, ir.Attr{}, smoothing, d(70, 40), d(301, 40), labels),
		of(ir.AddNorm, low, eps, wide(11, 100), wide(100), wide(100), d(11, 100)),
		of(ir.AddNorm, low, eps, wide(2, 2051), wide(2051), wide(2051), d(2, 2051)),
		of(ir.AddNormGrad, low, ir.Params{}, wide(101, 100), d(101, 100), wide(101), wide(101), wide(100), wide(101, 100)), // columns in several ranges
		of(ir.AddNormGrad, low, ir.Params{}, wide(2, 2051), d(2, 2051), wide(2), wide(2), wide(2051), wide(2, 2051)),
	}
	for _, z := range [][2]int{{133, 24}, {70, 40}} { // positions, width of a head
		t, w := z[0], z[1]
		list = append(list,
			of(ir.SelfAttention, causal, scale, d(1, t, 3, 2, w)),
			of(ir.SelfAttentionGrad, causal, scale, d(1, t, 2, w), d(1, t, 3, 2, w), d(1, t, 2, w), wide(1, 2, t)))
	}
	return append(list, of(ir.SelfAttention, ir.Attr{}, scale, d(1, 70, 3, 2, 24), d(1, 2, 70, 70)),
		of(ir.SelfAttentionGrad, ir.Attr{}, scale, d(1, 70, 2, 24), d(1, 70, 3, 2, 24), d(1, 70, 2, 24), wide(1, 2, 70), d(1, 2, 70, 70)))
}

// record launches ops on a simulated GPU and returns the launches by module.
func record(dtypes ...dtype.DType) ([]*mutate.Suite, error) {
	s, err := simcuda.New(simcuda.Config{})
	if err != nil {
		return nil, err
	}
	dev, err := cuda.New(s.API(), 0, "sim:0", cuda.Options{})
	if err != nil {
		return nil, err
	}
	q, err := dev.NewQueue()
	if err != nil {
		return nil, err
	}
	rec := &mutate.Recorder{PerKernel: 6} // the products of engineOps by one kernel
	s.Observe(rec.Observe)
	r := rand.New(rand.NewPCG(1, 0))
	for _, dt := range dtypes {
		for _, op := range engineOps(dt) {
			if err := op.launch(dev, q, r); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", op.code, dt, err)
			}
		}
	}
	s.Observe(nil)
	suites := rec.Suites()
	for _, u := range suites {
		u.Cases = crowd(u.Cases)
	}
	return suites, errors.Join(q.Close(), dev.Close())
}

// crowd makes blocks go through several rows, squares or tiles, of which the engine gives them more than one only where
// operands are large: launches of such kernels come again with one block for all.
func crowd(cases []*mutate.Case) []*mutate.Case {
	for _, c := range cases {
		for _, name := range []string{"softmax_block", "layernorm_block", "layernormgrad_block", "transpose", "gemm64"} {
			if strings.HasPrefix(c.Kernel, name) && c.Grid[0] > 1 {
				again := *c
				again.Grid = [3]int{1, 1, 1}
				cases = append(cases, &again)
			}
		}
	}
	return cases
}

// launch runs an op on random operands. Each operand and result has an allocation of its own.
func (op *engineOp) launch(dev device.Device, q device.Queue, r *rand.Rand) error {
	k, err := dev.Prepare(ir.New(op.code, op.attr, op.in...))
	if err != nil {
		return err
	}
	var args []device.Arg
	alloc := func(n int64) error {
		m, err := dev.Alloc(n)
		args = append(args, device.Arg{Mem: m})
		return err
	}
	for _, t := range k.Out {
		err = errors.Join(err, alloc(int64(t.Span()*t.DType.Size())))
	}
	for i, t := range op.in {
		n := t.Span()
		if i == len(op.in)-1 {
			n += op.skip
		}
		err = errors.Join(err, alloc(int64(n*t.DType.Size())))
		if err == nil {
			to := &args[len(args)-1]
			err = fill(q, *to, t.DType, n, r)
			to.Offset = int64((n - t.Span()) * t.DType.Size())
		}
	}
	if k.Workspace > 0 {
		err = errors.Join(err, alloc(k.Workspace))
	}
	if err == nil {
		var p device.Params
		p.Set(&op.params)
		err = errors.Join(q.Launch(k, args, &p), q.Sync())
	}
	for _, a := range args {
		dev.Free(a.Mem)
	}
	return err
}

// fill copies n normal numbers to a device, as float32 or bfloat16, or small indices.
func fill(q device.Queue, to device.Arg, dt dtype.DType, n int, r *rand.Rand) error {
	var image []byte
	for range n {
		x := float32(r.NormFloat64())
		switch dt {
		case dtype.I64:
			image = binary.LittleEndian.AppendUint64(image, uint64(r.IntN(30)))
		case dtype.BF16:
			image = binary.LittleEndian.AppendUint16(image, uint16(dtype.BF16FromFloat32(x)))
		default:
			image = binary.LittleEndian.AppendUint32(image, math.Float32bits(x))
		}
	}
	h, err := hostmem.Alloc(len(image))
	if err != nil {
		return err
	}
	copy(hostmem.Bytes(h.Addr, len(image)), image)
	from := device.Arg{Mem: device.Mem{Addr: uint64(h.Addr), Size: int64(len(image)), Host: true}}
	return errors.Join(q.Copy(to, from, int64(len(image))), q.Sync(), h.Free())
}
