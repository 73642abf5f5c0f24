package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareBatchNorm[float32], prepareBatchNorm[float64]), ir.BatchNorm)
	offer(forFloats(prepareBatchNormGrad[float32], prepareBatchNormGrad[float64]), ir.BatchNormGrad)
	offer(forFloats(prepareBatchNormEval[float32], prepareBatchNormEval[float64]), ir.BatchNormEval)
}

const (
	normWidth = 1024 // places of a piece at most
	normRows  = 64   // rows of a piece at most: so many terms are added up before sums go on in float64, and a second reading finds them in the cache
)

// channels is x[n,c,s] cut into groups of neighbouring channels, whose places lie side by side, and those into pieces.
type channels struct {
	n, c, s int
	per     int // channels of a group
}

func channelsOf(t *ir.Type) channels {
	g := channels{n: t.Dim(0), c: t.Dim(1), s: t.Dim(2)}
	const few, much = 8, 1 << 18 // groups, elements
	if g.per = max(1, normWidth/max(g.s, 1)); t.Size() > much {
		g.per = min(g.per, max(1, g.c/few))
	}
	return g
}

func (g *channels) groups() int { return (g.c + g.per - 1) / g.per }

// batchArgs are of one launch: per channel mean, variance, weight and bias, and their gradients. In the gradient y is x's,
// r that of what was added, and result what tells where the activation let values pass.
type batchArgs[T kernels.Float] struct {
	y, x, g, r, result, mean, variance, w, b, dw, db []T
	eps                                              float64
	floor                                            T
}

// maybe is the elements of optional operand i, nil where there is none.
func maybe[T kernels.Float](k *device.Kernel, args []device.Arg, i int) []T {
	if i >= k.Op.NumIn() {
		return nil
	}
	return elems[T](args[len(k.Out)+i], k.Op.In(i))
}

// floorOf is the least result of an activation.
func floorOf[T kernels.Float](a ir.Act) T {
	if a == ir.ActReLU {
		return 0
	}
	return kernels.NoFloor[T]()
}

// channelGroup is one launch's work on a group: its channels lo to hi, the loops' fields, and for each channel statistics.
type channelGroup[T kernels.Float] struct {
	*channels
	args   *batchArgs[T]
	lo, hi int
	loops  kernels.Norm[T]
	sums   [2][normWidth]T
	params [4][normWidth]T // M, P, Q and R of the loops

	count  float64               // values of a channel so far
	totals [2][normWidth]float64 // their mean and Σ (x-mean)²; in the gradient Σ g and Σ g·(x-mean)
	folded [2][normWidth]float64 // the same of a piece
	values [3][normWidth]T       // parameters of channels
}

// newGroups is a loop over groups.
func newGroups[T kernels.Float](g channels, body func(b *channelGroup[T])) *loop[batchArgs[T]] {
	spares := newSpare(func() channelGroup[T] { return channelGroup[T]{channels: &g} })
	return newLoop(func(a *batchArgs[T], lo, hi int) {
		b := spares.get()
		for i := lo; i < hi; i++ {
			b.begin(a, i)
			body(b)
		}
		b.args, b.loops = nil, kernels.Norm[T]{}
		spares.put(b)
	})
}

// begin turns to a group.
func (b *channelGroup[T]) begin(a *batchArgs[T], group int) {
	b.args, b.lo = a, group*b.per
	b.hi = min(b.lo+b.per, b.c)
	b.loops = kernels.Norm[T]{Stride: b.c * b.s, One: b.one(), Floor: a.floor}
	n := (b.hi - b.lo) * b.s
	if b.one() {
		n = normWidth
	}
	n = min(n, normWidth)
	b.loops.Sum, b.loops.More = b.sums[0][:n], b.sums[1][:n]
	b.loops.M, b.loops.P, b.loops.Q, b.loops.R = b.params[0][:], b.params[1][:], b.params[2][:], b.params[3][:]
	b.count = 0
	clear(b.totals[0][:b.hi-b.lo])
	clear(b.totals[1][:b.hi-b.lo])
}

// one reports that a group is one channel, whose places are cut into pieces.
func (b *channelGroup[T]) one() bool { return b.per == 1 }

// each calls body for each piece of the group, with the place of its first element.
func (b *channelGroup[T]) each(body func(at int)) {
	width := (b.hi - b.lo) * b.s
	for from := 0; from < width; from += normWidth {
		b.loops.N = min(width-from, normWidth)
		for i := 0; i < b.n; i += normRows {
			b.loops.Rows = min(normRows, b.n-i)
			body((i*b.c+b.lo)*b.s + from)
		}
	}
}

// spread makes each channel's number of values[i] the parameter of its places.
func (b *channelGroup[T]) spread(param []T, i int) {
	values := b.values[i][:b.hi-b.lo]
	if b.one() {
		fill(param[:kernels.NormVector], values[0])
		return
	}
	for _, v := range values {
		places := param[:b.s]
		for j := range places {
			places[j] = v
		}
		param = param[b.s:]
	}
}

// fold adds up a piece's sums, or the other ones, over the places of each channel.
func (b *channelGroup[T]) fold(i int) []float64 {
	out, places := b.folded[i][:b.hi-b.lo], b.sums[i][:b.loops.N]
	if b.one() || b.s >= 16 {
		n := min(b.s, len(places))
		for c := range out {
			out[c] = sumOf(places[c*n:][:n])
		}
		return out
	}
	for c := range out {
		var v T
		for _, w := range places[:b.s] {
			v += w
		}
		out[c], places = float64(v), places[b.s:]
	}
	return out
}

func prepareBatchNorm[T kernels.Float](k *device.Kernel) (run, error) {
	x, floor := k.Op.In(0), floorOf[T](k.Op.Attr.Act)
	g := channelsOf(x)
	groups := newGroups(g, func(b *channelGroup[T]) {
		b.moments()
		b.normalize()
	})
	return func(args []device.Arg, p *device.Params) error {
		groups.run(g.groups(), grainOf(3*g.per*g.n*g.s), batchArgs[T]{y: elems[T](args[0], x), mean: values[T](args[1], g.c), variance: values[T](args[2], g.c),
			x: elems[T](args[3], x), w: values[T](args[4], g.c), b: values[T](args[5], g.c), r: maybe[T](k, args, 3), eps: scalar(p, 0), floor: floor})
		return nil
	}, nil
}

// moments computes the mean of each channel and Σ (x-mean)²: of each piece around the mean of its first row, or where that
// lies far away around the piece's own. Those of pieces are joined (Chan, Golub and LeVeque).
func (b *channelGroup[T]) moments() {
	b.each(func(at int) {
		b.loops.X = b.args.x[at:]
		count := float64(b.loops.Rows * min(b.s, b.loops.N))
		b.around()
		if b.deviations(); b.far(count) {
			b.spread(b.loops.M, 0)
			b.deviations()
		}
		b.join(count)
	})
	for c, v := range b.totals[0][:b.hi-b.lo] {
		b.args.mean[b.lo+c], b.args.variance[b.lo+c] = T(v), T(b.totals[1][c]/b.count)
	}
}

// deviations folds a piece's distances from M and their squares.
func (b *channelGroup[T]) deviations() {
	clear(b.loops.Sum)
	clear(b.loops.More)
	b.loops.Deviations()
	b.fold(0)
	b.fold(1)
}

// far reports a channel whose Σ (x-mean)² would lose more than four bits, and then moves values[0] to the means.
func (b *channelGroup[T]) far(count float64) (found bool) {
	sum, more := b.folded[0][:b.hi-b.lo], b.folded[1][:b.hi-b.lo]
	for c, v := range sum {
		found = found || more[c]-v*v/count < more[c]/16
	}
	if found {
		for c, v := range sum {
			b.values[0][c] += orZero(T(v / count))
		}
	}
	return found
}

// orZero is v, or 0 where distances from v would be none.
func orZero[T kernels.Float](v T) T {
	if v-v != 0 {
		return 0
	}
	return v
}

// around makes the mean of a piece's first row what moments are taken around.
func (b *channelGroup[T]) around() {
	row := b.loops
	row.Rows = 1
	clear(row.Sum)
	row.Add()
	for c, v := range b.fold(0) {
		b.values[0][c] = orZero(T(v / float64(min(b.s, row.N))))
	}
	b.spread(row.M, 0)
}

// join adds a piece's moments, around values[0], to those so far.
func (b *channelGroup[T]) join(count float64) {
	sum, more := b.folded[0][:b.hi-b.lo], b.folded[1]
	before := b.count
	b.count += count
	part, weight := count/b.count, count*before/b.count
	for c, v := range sum {
		off := v / count
		mean := float64(b.values[0][c]) + off
		apart := mean - b.totals[0][c]
		if apart-apart != 0 { // one of them is infinite, and so is their mean
			b.totals[0][c] += mean
		} else {
			b.totals[0][c] += apart * part
		}
		b.totals[1][c] += more[c] - v*off + apart*apart*weight
	}
}

// normalize writes act((x-m)/√(v+eps)·w + b + r).
func (b *channelGroup[T]) normalize() {
	n, a := &b.loops, b.args
	for i := range b.hi - b.lo {
		c := b.lo + i
		b.values[0][i], b.values[1][i], b.values[2][i] = a.mean[c], T(float64(a.w[c])*a.rstd(c)), a.b[c]
	}
	b.spread(n.M, 0)
	b.spread(n.P, 1)
	b.spread(n.Q, 2)
	b.each(func(at int) {
		n.X, n.Y = a.x[at:], a.y[at:]
		n.Other = from(a.r, at)
		n.Apply()
	})
}

// from is x from an element on, nil of nil.
func from[T any](x []T, at int) []T {
	if x == nil {
		return nil
	}
	return x[at:]
}

func prepareBatchNormEval[T kernels.Float](k *device.Kernel) (run, error) {
	x, floor := k.Op.In(0), floorOf[T](k.Op.Attr.Act)
	g := channelsOf(x)
	groups := newGroups(g, (*channelGroup[T]).normalize)
	return func(args []device.Arg, p *device.Params) error {
		groups.run(g.groups(), grainOf(g.per*g.n*g.s), batchArgs[T]{y: elems[T](args[0], x), x: elems[T](args[1], x), mean: values[T](args[2], g.c),
			variance: values[T](args[3], g.c), w: values[T](args[4], g.c), b: values[T](args[5], g.c), r: maybe[T](k, args, 5), eps: scalar(p, 0), floor: floor})
		return nil
	}, nil
}

// prepareBatchNormGrad computes, with x̂ = (x-mean)·rstd, db = Σ g, dw = Σ g·x̂ and dx = w·rstd·(g - (db + x̂·dw)/count).
func prepareBatchNormGrad[T kernels.Float](k *device.Kernel) (run, error) {
	x := k.Op.In(1)
	g := channelsOf(x)
	groups := newGroups(g, func(b *channelGroup[T]) {
		b.gradSums()
		b.gradient()
	})
	return func(args []device.Arg, p *device.Params) error {
		a := batchArgs[T]{y: elems[T](args[0], x), dw: values[T](args[1], g.c), db: values[T](args[2], g.c), result: maybe[T](k, args, 5), eps: scalar(p, 0)}
		if len(k.Out) > 3 {
			a.r = elems[T](args[3], x)
		}
		args = args[len(k.Out):]
		a.g, a.x = elems[T](args[0], x), elems[T](args[1], x)
		a.mean, a.variance, a.w = values[T](args[2], g.c), values[T](args[3], g.c), values[T](args[4], g.c)
		groups.run(g.groups(), grainOf(4*g.per*g.n*g.s), a)
		return nil
	}, nil
}

// rstd is 1/√(variance+eps).
func (a *batchArgs[T]) rstd(c int) float64 { return 1 / math.Sqrt(float64(a.variance[c])+a.eps) }

// gradSums computes dw and db, and the gradient of what was added.
func (b *channelGroup[T]) gradSums() {
	n, a := &b.loops, b.args
	copy(b.values[0][:], a.mean[b.lo:b.hi])
	b.spread(n.M, 0)
	b.each(func(at int) {
		n.X, n.G, n.Result, n.Other = a.x[at:], a.g[at:], from(a.result, at), from(a.r, at)
		clear(n.Sum)
		clear(n.More)
		n.GradSums()
		sum, more := b.fold(0), b.fold(1)
		for c, v := range sum {
			b.totals[0][c] += v
			b.totals[1][c] += more[c]
		}
	})
}

// gradient writes dx, dw and db. The gradient of what was added is the one behind the activation.
func (b *channelGroup[T]) gradient() {
	n, a := &b.loops, b.args
	count := float64(b.n) * float64(b.s)
	for i := range b.hi - b.lo {
		c := b.lo + i
		rstd := a.rstd(c)
		db, dw, slope := b.totals[0][i], b.totals[1][i]*rstd, float64(a.w[c])*rstd
		a.db[c], a.dw[c] = T(db), T(dw)
		b.values[0][i], b.values[1][i], b.values[2][i] = T(slope), T(slope*rstd*dw/count), T(slope*db/count)
	}
	b.spread(n.P, 0)
	b.spread(n.Q, 1)
	b.spread(n.R, 2)
	g, result := a.g, a.result
	if a.r != nil {
		g, result = a.r, nil
	}
	b.each(func(at int) {
		n.X, n.G, n.Y, n.Result = a.x[at:], g[at:], a.y[at:], from(result, at)
		n.GradApply()
	})
}
