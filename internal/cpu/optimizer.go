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
	offer(prepareGradNorm, ir.GradNorm)
	offer(prepareLossScale, ir.LossScale)
	offer(prepareTrackMoments, ir.TrackMoments)
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
		convert(buf[:n], values[dtype.Float16](a, n))
	case dtype.BF16:
		convert(buf[:n], values[dtype.BFloat16](a, n))
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
		convert(values[dtype.Float16](a, len(x)), x)
	case dtype.BF16:
		convert(values[dtype.BFloat16](a, len(x)), x)
	}
}

type squaresArgs struct {
	in    []device.Arg
	parts []float64
}

// squaring adds the squares of operands in float64: a sum per piece, and these in their order. sum takes the operands and
// what scratch memory it asked for.
func squaring(k *device.Kernel, types []*ir.Type) (sum func(in []device.Arg, work device.Arg) float64, err error) {
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
	return func(in []device.Arg, work device.Arg) float64 {
		if len(list) == 0 {
			return 0
		}
		a := each.run(len(list), 1, squaresArgs{in, workspace[float64](work, 0, len(list))})
		return sumInOrder(a.parts)
	}, nil
}

// workOf is a launch's workspace, if it has one.
func workOf(k *device.Kernel, args []device.Arg) (a device.Arg) {
	if k.Workspace > 0 {
		a = args[len(k.Out)+k.Op.NumIn()]
	}
	return a
}

func prepareSumSquares(k *device.Kernel) (run, error) {
	sum, err := squaring(k, k.Op.Ins())
	return func(args []device.Arg, _ *device.Params) error {
		putNumber(args[0], k.Out[0].DType, sum(args[1:], workOf(k, args)))
		return nil
	}, err
}

// putNumber writes an operand of one element, f32 or f64.
func putNumber(a device.Arg, dt dtype.DType, v float64) {
	if dt == dtype.F64 {
		values[float64](a, 1)[0] = v
	} else {
		values[float32](a, 1)[0] = float32(v)
	}
}

// prepareGradNorm clips as torch.nn.utils.clip_grad_norm_ does.
func prepareGradNorm(k *device.Kernel) (run, error) {
	sum, err := squaring(k, k.Op.Ins()[2:])
	dt, n := k.Out[0].DType, k.Out[3].Size()
	return func(args []device.Arg, p *device.Params) error {
		clip, factor := scalar(p, 0), scalar(p, 1)
		norm, scale := factor*math.Sqrt(sum(args[len(k.Out)+2:], workOf(k, args))), factor
		if clip > 0 {
			scale *= min(clip/(norm+1e-6), 1)
		}
		putNumber(args[0], dt, norm)
		putNumber(args[1], dt, scale)
		rounded, skip := numberAt(args[0], dt), int64(0)
		if param(p, 2) != 0 && rounded-rounded != 0 {
			skip = 1
		}
		values[int64](args[2], 1)[0] = skip
		if n == 0 {
			return nil
		}
		counts, before, turn := values[int64](args[3], n), values[int64](args[4], n), values[int64](args[5], n)
		for i := range counts {
			counts[i] = before[i] + (1-skip)*turn[i]
		}
		return nil
	}, err
}

// usable reports whether gradients can be multiplied by v and divided again.
func usable(v float32) bool {
	inverse := inverse(v)
	return v > 0 && v-v == 0 && inverse-inverse == 0
}

// inverse is 1/v, rounded once from float64 as PyTorch does.
func inverse(v float32) float32 { return float32(1 / float64(v)) }

// prepareLossScale is the update of PyTorch's GradScaler.
func prepareLossScale(k *device.Kernel) (run, error) {
	skips := k.Op.NumIn() - 3
	return func(args []device.Arg, p *device.Params) error {
		in := args[3:]
		scale, good := values[float32](in[0], 1)[0], max(values[int64](in[2], 1)[0], 0)+1
		found := false
		for _, a := range in[3 : 3+skips] {
			found = found || values[int64](a, 1)[0] != 0
		}
		up, down := float32(float64(scale)*scalar(p, 0)), float32(float64(scale)*scalar(p, 1))
		switch {
		case found && usable(down):
			scale, good = down, 0
		case found:
			good = -1
		case good >= int64(param(p, 2)):
			if good = 0; usable(up) {
				scale = up
			}
		}
		values[float32](args[0], 1)[0], values[float64](args[1], 1)[0], values[int64](args[2], 1)[0] = scale, float64(inverse(scale)), good
		return nil
	}, nil
}

func prepareTrackMoments(k *device.Kernel) (run, error) {
	n := k.Out[0].Size()
	switch k.Out[0].DType {
	case dtype.F32:
		return trackMoments[float32](n), nil
	case dtype.F64:
		return trackMoments[float64](n), nil
	}
	return nil, unsupported(&k.Op, k.Out[0].DType)
}

// trackMoments moves the running statistics of n channels.
func trackMoments[T float32 | float64](n int) run {
	return func(args []device.Arg, p *device.Params) error {
		out, in := args[:3], args[3:]
		towards(out[0], in[0], in[3], n, T(scalar(p, 0)), 1)
		towards(out[1], in[1], in[4], n, T(scalar(p, 0)), T(scalar(p, 1)))
		values[int64](out[2], 1)[0] = values[int64](in[2], 1)[0] + 1
		return nil
	}
}

// towards writes x moved by f towards y times a factor, from the nearer of the two: x + (y-x) need not be y.
func towards[T float32 | float64](to, from, y device.Arg, n int, f, factor T) {
	if n == 0 {
		return
	}
	dst, x, goal := values[T](to, n), values[T](from, n), values[T](y, n)
	for i := range dst {
		v := goal[i] * factor
		if f < 0.5 {
			dst[i] = x[i] + f*(v-x[i])
		} else {
			dst[i] = v - (1-f)*(v-x[i])
		}
	}
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
	args   []device.Arg
	p      [7]float64
	scale  float64
	flag   ir.Flag
	skip   bool
	c1, c2 float64 // 1-β1ᵗ and 1-β2ᵗ of one parameter
}

// optimizer updates many parameters, piece by piece. A group of operands is p, g and state; all but g are written. The
// fifth of a group, if there is one, is the number of the parameter's update.
type optimizer struct {
	params []*ir.Type
	list   []piece
	group  int // operands
	outs   int // of which written
	f32    func(u *update, x *[4][]float32)
	f64    func(u *update, x *[4][]float64)
	space  *spare[optimizerSpace]
	each   *loop[update]
}

// optimizerSpace is what a chunk works in: operands of one strip or piece, and 16-bit ones widened.
type optimizerSpace struct {
	u   update // with what one parameter adds
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
	return newOptimizer(k, numbered, adamW[float32], adamW[float64]).run(k), nil
}

// numbered is the size of a group whose last operand is the number of the update.
const numbered = 5

func newOptimizer(k *device.Kernel, group int, f32 func(*update, *[4][]float32), f64 func(*update, *[4][]float64)) *optimizer {
	o := &optimizer{group: group, outs: min(group-1, 3), f32: f32, f64: f64, space: newSpare(func() (s optimizerSpace) { return s })}
	for i := 1; i < k.Op.NumIn(); i += group {
		o.params = append(o.params, k.Op.In(i))
	}
	o.list = pieces(o.params)
	o.each = newLoop(o.chunk)
	return o
}

func (o *optimizer) run(k *device.Kernel) run {
	scale, last := k.Op.In(0).DType, k.Op.Code.NumParams()-1
	return func(args []device.Arg, p *device.Params) error {
		u := update{args: args, scale: numberAt(args[len(k.Out)], scale), flag: k.Op.Attr.Flag, skip: param(p, last) != 0}
		for i := range last {
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
		outs := u.args[p.tensor*o.outs:][:o.outs]
		ins := u.args[len(o.params)*o.outs+1+p.tensor*o.group:][:o.group]
		if s.u = *u; o.group == numbered {
			t := values[int64](ins[4], 1)[0]
			s.u.c1, s.u.c2 = 1-power(u.p[1], t), 1-power(u.p[2], t)
			ins = ins[:4]
		}
		if dt := o.params[p.tensor].DType; dt == dtype.F64 {
			operands(&s.x64, outs, ins, dt, p.lo, p.hi, nil)
			if !u.skip {
				o.f64(&s.u, &s.x64)
			}
		} else {
			step := strip
			if dt == dtype.F32 { // updated where it lies
				step = pieceSize
			}
			for lo := p.lo; lo < p.hi; lo += step {
				operands(&s.x32, outs, ins, dt, lo, min(lo+step, p.hi), s.buf[:])
				if !u.skip {
					o.f32(&s.u, &s.x32)
				}
				commit(&s.x32, outs, dt, lo)
			}
		}
	}
}

// power is xⁿ by squaring: the same bits on every device.
func power(x float64, n int64) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
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

// sgd is PyTorch's update. x is p, g and with momentum the buffer; the scalars are rate, momentum, decay and the factor of
// the rate.
func sgd[T kernels.Float](u *update, x *[4][]T) {
	scale, rate, momentum, decay := T(u.scale), T(u.p[0]*u.p[3]), T(u.p[1]), T(u.p[2])
	p := x[0]
	g, buf := x[1][:len(p)], x[2]
	if f, ok := any(p).([]float32); ok {
		updateSGD(f, any(g).([]float32), any(buf).([]float32), &kernels.SGDRates{Scale: float32(scale), Decay: float32(decay), Rate: float32(rate),
			Momentum: float32(momentum), Nesterov: u.flag&ir.Nesterov != 0})
		return
	}
	for i, v := range p {
		d := g[i]*scale + decay*v
		if buf != nil {
			d = accumulate(&buf[i], d, momentum, u.flag)
		}
		p[i] = v - rate*d
	}
}

func updateSGD(p, g, buf []float32, c *kernels.SGDRates) {
	if buf == nil {
		kernels.SGD(p, g, c.Scale, c.Decay, c.Rate)
	} else {
		kernels.SGDMomentum(p, g, buf, c)
	}
}

// accumulate updates an element of a momentum buffer and returns the direction to go.
func accumulate[T kernels.Float](buf *T, d, momentum T, flag ir.Flag) T {
	*buf = momentum**buf + d
	if flag&ir.Nesterov != 0 {
		return d + momentum**buf
	}
	return *buf
}

// adamW is the update of Loshchilov and Hutter (arXiv 1711.05101) in PyTorch's order of operations, or with the flag
// Coupled that of Kingma and Ba (arXiv 1412.6980) with the decay in the gradient. x is p, g, m and v; the scalars are
// rate, β1, β2, eps, decay and the factor of the rate.
func adamW[T kernels.Float](u *update, x *[4][]T) {
	rate, beta1, beta2, decay := u.p[0]*u.p[5], u.p[1], u.p[2], u.p[4]
	keep, coupled := 1-rate*decay, 0.
	if u.flag&ir.Coupled != 0 {
		keep, coupled = 1, decay
	}
	step, root := rate/u.c1, math.Sqrt(u.c2)
	if f, ok := any(x).(*[4][]float32); ok {
		kernels.Adam(f[0], f[1], f[2], f[3], &kernels.AdamRates{Scale: float32(u.scale), Coupled: float32(coupled), Rest1: float32(1 - beta1),
			Beta2: float32(beta2), Rest2: float32(1 - beta2), Eps: float32(u.p[3]), Root: float32(1 / root), Step: float32(step), Keep: float32(keep)})
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
