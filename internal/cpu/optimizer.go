package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareSumSquares, ir.SumSquares)
	offer(prepareSGD, ir.SGD)
	offer(prepareAdamW, ir.AdamW)
}

const (
	pieceSize = 1 << 14 // elements of a tensor that are one step of a loop
	strip     = 512     // 16-bit elements that are widened at a time
)

// piece is a range of one tensor.
type piece struct{ tensor, lo, hi int }

// pieces cuts tensors, each of which may be large or small, into steps of a loop.
func pieces(tensors []*ir.Type) (list []piece) {
	for i, t := range tensors {
		for lo := 0; lo < t.Size(); lo += pieceSize {
			list = append(list, piece{i, lo, min(lo+pieceSize, t.Size())})
		}
	}
	return list
}

// widen returns elements lo to hi of a dense operand as T: in place, or converted into buf.
func widen[T kernels.Float](a device.Arg, dt dtype.DType, lo, hi int, buf []T) []T {
	size := int64(dt.Size())
	a.Offset += int64(lo) * size
	n := hi - lo
	switch dt {
	case dtype.F16:
		dtype.Convert(buf[:n], values[dtype.Float16](a, n))
	case dtype.BF16:
		dtype.Convert(buf[:n], values[dtype.BFloat16](a, n))
	default:
		return values[T](a, n)
	}
	return buf[:n]
}

// narrowInto stores x at lo of a dense operand, rounded if it is of a 16-bit type; else x is there already.
func narrowInto[T kernels.Float](a device.Arg, dt dtype.DType, lo int, x []T) {
	a.Offset += int64(lo) * int64(dt.Size())
	switch dt {
	case dtype.F16:
		dtype.Convert(values[dtype.Float16](a, len(x)), x)
	case dtype.BF16:
		dtype.Convert(values[dtype.BFloat16](a, len(x)), x)
	}
}

type squaresArgs struct {
	in    []device.Arg
	parts []float64
}

// prepareSumSquares adds in float64: a sum per piece, and these in their order.
func prepareSumSquares(k *device.Kernel) (run, error) {
	types := k.Op.Ins()
	for _, t := range types {
		if !t.IsDense() {
			return nil, unsupported(&k.Op, t.DType)
		}
	}
	list, buf := pieces(types), newBuffers[float32](strip)
	each := newLoop(func(a *squaresArgs, lo, hi int) {
		b := buf.get()
		defer buf.put(b)
		for i := lo; i < hi; i++ {
			p := list[i]
			a.parts[i] = squares(a.in[p.tensor], types[p.tensor].DType, p, *b)
		}
	})
	k.Workspace = int64(len(list)) * 8
	return func(args []device.Arg, _ *device.Params) error {
		var total float64
		if len(list) > 0 {
			a := each.run(len(list), 1, squaresArgs{args[1:], workspace[float64](args[1+len(types)], 0, len(list))})
			total = sumInOrder(a.parts)
		}
		if k.Out[0].DType == dtype.F64 {
			values[float64](args[0], 1)[0] = total
		} else {
			values[float32](args[0], 1)[0] = float32(total)
		}
		return nil
	}, nil
}

func sumInOrder(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}

// squares is the sum over a piece of one tensor.
func squares(a device.Arg, dt dtype.DType, p piece, buf []float32) (total float64) {
	if dt == dtype.F64 {
		return deviation(widen[float64](a, dt, p.lo, p.hi, nil), 0)
	}
	for lo := p.lo; lo < p.hi; lo += strip {
		total += deviation(widen(a, dt, lo, min(lo+strip, p.hi), buf), 0)
	}
	return total
}

// update is one launch of an optimizer: its arguments and scalars.
type update struct {
	args  []device.Arg
	p     [7]float64
	scale float64
	flag  ir.Flag
}

// optimizer updates many parameters, piece by piece. A group of operands is p, g and state; all but g are written.
type optimizer struct {
	params []*ir.Type
	list   []piece
	group  int // operands
	f32    func(u *update, x *[4][]float32)
	f64    func(u *update, x *[4][]float64)
	space  *spare[optimizerSpace]
	each   *loop[update]
}

// optimizerSpace is what a chunk works in: operands of one strip or piece, and 16-bit ones widened.
type optimizerSpace struct {
	buf [4 * strip]float32
	x32 [4][]float32
	x64 [4][]float64
}

func prepareSGD(k *device.Kernel) (run, error) {
	group := 2
	if k.Op.Attr.Flag&ir.Momentum != 0 {
		group = 3
	}
	return newOptimizer(k, group, sgd[float32], sgd[float64]).run(k), nil
}

func prepareAdamW(k *device.Kernel) (run, error) {
	return newOptimizer(k, 4, adamW[float32], adamW[float64]).run(k), nil
}

func newOptimizer(k *device.Kernel, group int, f32 func(*update, *[4][]float32), f64 func(*update, *[4][]float64)) *optimizer {
	o := &optimizer{group: group, f32: f32, f64: f64, space: newSpare(func() (s optimizerSpace) { return s })}
	for i := 1; i < k.Op.NumIn(); i += group {
		o.params = append(o.params, k.Op.In(i))
	}
	o.list = pieces(o.params)
	o.each = newLoop(o.chunk)
	return o
}

func (o *optimizer) run(k *device.Kernel) run {
	scale, params := k.Op.In(0).DType, k.Op.Code.NumParams()
	return func(args []device.Arg, p *device.Params) error {
		u := update{args: args, scale: numberAt(args[len(o.params)*(o.group-1)], scale), flag: k.Op.Attr.Flag}
		for i := range params {
			u.p[i] = scalar(p, i)
		}
		o.each.run(len(o.list), 1, u)
		return nil
	}
}

// numberAt reads an operand of one element.
func numberAt(a device.Arg, dt dtype.DType) float64 {
	switch dt {
	case dtype.F16:
		return values[dtype.Float16](a, 1)[0].Float64()
	case dtype.BF16:
		return values[dtype.BFloat16](a, 1)[0].Float64()
	case dtype.F64:
		return values[float64](a, 1)[0]
	}
	return float64(values[float32](a, 1)[0])
}

func (o *optimizer) chunk(u *update, lo, hi int) {
	s := o.space.get()
	defer o.space.put(s)
	for _, p := range o.list[lo:hi] {
		outs := u.args[p.tensor*(o.group-1):][:o.group-1]
		ins := u.args[len(o.params)*(o.group-1)+1+p.tensor*o.group:][:o.group]
		if dt := o.params[p.tensor].DType; dt == dtype.F64 {
			operands(&s.x64, outs, ins, dt, p.lo, p.hi, nil)
			o.f64(u, &s.x64)
		} else {
			for lo := p.lo; lo < p.hi; lo += strip {
				operands(&s.x32, outs, ins, dt, lo, min(lo+strip, p.hi), s.buf[:])
				o.f32(u, &s.x32)
				commit(&s.x32, outs, dt, lo)
			}
		}
	}
}

// operands finds elements lo to hi of a group: the gradient where it lies, the others where they are written, with
// their old values, or all in buf if they are of a 16-bit type.
func operands[T kernels.Float](x *[4][]T, outs, ins []device.Arg, dt dtype.DType, lo, hi int, buf []T) {
	for i, a := range ins {
		x[i] = widen(a, dt, lo, hi, buf[min(i*strip, len(buf)):])
		if i == 1 || dt == dtype.F16 || dt == dtype.BF16 {
			continue
		}
		y := widen(outs[max(i-1, 0)], dt, lo, hi, buf)
		if &y[0] != &x[i][0] {
			copy(y, x[i])
		}
		x[i] = y
	}
}

// commit rounds what an update computed in buffers into its results.
func commit(x *[4][]float32, outs []device.Arg, dt dtype.DType, lo int) {
	for i, a := range outs {
		j := i
		if i > 0 {
			j++
		}
		narrowInto(a, dt, lo, x[j])
	}
}

// sgd is PyTorch's update. x is p, g and with momentum the buffer; p0 is the rate, p1 the momentum, p2 the decay.
func sgd[T kernels.Float](u *update, x *[4][]T) {
	scale, rate, momentum, decay := T(u.scale), T(u.p[0]), T(u.p[1]), T(u.p[2])
	p := x[0]
	g, buf := x[1][:len(p)], x[2]
	for i, v := range p {
		d := g[i]*scale + decay*v
		if buf != nil {
			d = accumulate(&buf[i], d, momentum, u.flag)
		}
		p[i] = v - rate*d
	}
}

// accumulate updates an element of a momentum buffer and returns the direction to go.
func accumulate[T kernels.Float](buf *T, d, momentum T, flag ir.Flag) T {
	if flag&ir.First != 0 {
		*buf = d
	} else {
		*buf = momentum**buf + d
	}
	if flag&ir.Nesterov != 0 {
		return d + momentum**buf
	}
	return *buf
}

// adamW is the update of Loshchilov and Hutter (arXiv 1711.05101) in PyTorch's order of operations, or with the flag
// Coupled that of Kingma and Ba (arXiv 1412.6980) with the decay in the gradient. x is p, g, m and v; the scalars are
// rate, β1, β2, eps, decay, 1-β1ᵗ and 1-β2ᵗ.
func adamW[T kernels.Float](u *update, x *[4][]T) {
	rate, beta1, beta2, decay := u.p[0], u.p[1], u.p[2], u.p[4]
	keep, coupled := 1-rate*decay, 0.
	if u.flag&ir.Coupled != 0 {
		keep, coupled = 1, decay
	}
	step, root := rate/u.p[5], math.Sqrt(u.p[6])
	if f, ok := any(x).(*[4][]float32); ok {
		kernels.Adam(f[0], f[1], f[2], f[3], &kernels.AdamRates{Scale: float32(u.scale), Coupled: float32(coupled), Rest1: float32(1 - beta1),
			Beta2: float32(beta2), Rest2: float32(1 - beta2), Eps: float32(u.p[3]), Root: float32(root), Step: float32(step), Keep: float32(keep)})
		return
	}
	for i, w := range x[0] {
		d := float64(x[1][i])*u.scale + coupled*float64(w)
		m := float64(x[2][i]) + (1-beta1)*(d-float64(x[2][i]))
		v := float64(x[3][i])*beta2 + (1-beta2)*d*d
		x[2][i], x[3][i] = T(m), T(v)
		x[0][i] = T(float64(w)*keep - step*m/(math.Sqrt(v)/root+u.p[3]))
	}
}
