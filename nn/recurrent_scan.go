package nn

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// scan runs all steps of one direction as one operation with a gradient of its own. What does not wait for the step before
// is one product for all steps: inputs times weights, and the gradients of inputs and weights.
type scan struct {
	unit                    unit
	reverse                 bool
	hidden, width           int
	mask                    *tensor.Tensor // bool [t, n, 1], or nil
	wih, whh, bih, bhh, whr *tensor.Tensor // the last three may be nil
}

// operands are those of the operation: x[t,n,in], h[n,width], c[n,hidden] or nil, then the weights.
type operands struct{ x, h, c, wih, whh, bih, bhh, whr *tensor.Tensor }

// list has the operands that are there.
func (o *operands) list() (all []*tensor.Tensor) {
	for _, p := range o.places() {
		if *p != nil {
			all = append(all, *p)
		}
	}
	return all
}

func (o *operands) places() []**tensor.Tensor {
	return []**tensor.Tensor{&o.x, &o.h, &o.c, &o.wih, &o.whh, &o.bih, &o.bhh, &o.whr}
}

// with is the same operands with other values.
func (o operands) with(values []*tensor.Tensor) operands {
	for _, p := range o.places() {
		if *p != nil {
			*p, values = values[0], values[1:]
		}
	}
	return o
}

// trace is what a run leaves behind for its gradient: of each step in the order of the run.
type trace struct {
	H      []*tensor.Tensor   // before each step, and after the last; where there are States, after the last alone, which these have
	C      []*tensor.Tensor   // the same, of units that have it
	Kept   [][]*tensor.Tensor // of the unit
	Raw    []*tensor.Tensor   // results before a projection
	Y      []*tensor.Tensor   // results
	States *tensor.Tensor     // [t+1, n, width], H in the order of time; [t, n, width] where only results are wanted
}

// list has what the gradient needs; with puts it back.
func (t *trace) list() (all []*tensor.Tensor) {
	if t.States == nil {
		all = append(all, t.H...)
	}
	all = append(append(all, t.C...), t.Raw...)
	for _, k := range t.Kept {
		all = append(all, k...)
	}
	return some(all, t.States)
}

func (t *trace) with(values []*tensor.Tensor) *trace {
	take := func(n int) (out []*tensor.Tensor) {
		out, values = values[:n], values[n:]
		return out
	}
	u := &trace{H: take(len(t.H)), C: take(len(t.C)), Raw: take(len(t.Raw))}
	for _, k := range t.Kept {
		u.Kept = append(u.Kept, take(len(k)))
	}
	if len(values) > 0 {
		u.States = values[0]
	}
	return u
}

// shape is a trace without its values, which the graph keeps.
func (t *trace) shape() *trace {
	s := &trace{C: make([]*tensor.Tensor, len(t.C)), Raw: make([]*tensor.Tensor, len(t.Raw))}
	if t.States == nil {
		s.H = make([]*tensor.Tensor, len(t.H))
	}
	for _, k := range t.Kept {
		s.Kept = append(s.Kept, make([]*tensor.Tensor, len(k)))
	}
	return s
}

// apply gives results [t, n, width] and the states after the last step. h and c may be nil.
func (s *scan) apply(x, h, c *tensor.Tensor) []*tensor.Tensor {
	n := x.Dim(1)
	if h == nil {
		h = x.Env().FullOf(x.DType(), 0, n, s.width)
	}
	if c == nil && s.unit.cell() {
		c = x.Env().FullOf(x.DType(), 0, n, s.hidden)
	}
	given := operands{x, h, c, s.wih, s.whh, s.bih, s.bhh, s.whr}
	all := given.list()
	keep := tensor.Join(all[0], all[1:]...).Env().Recording()
	var shape *trace
	f := tensor.Func{
		Forward: func(call *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			t := s.forward(given.with(in), keep)
			if keep {
				call.Save(in...)
				call.Save(t.list()...)
				shape = t.shape()
			}
			return s.results(t)
		},
		Backward: func(call *tensor.Call, grads []*tensor.Tensor) []*tensor.Tensor {
			saved := call.Saved()
			in := given.with(saved)
			t := shape.with(saved[len(given.list()):])
			if in.x.Env().Recording() { // a second derivative goes through all that the trace was made of
				t = s.forward(in, true)
			}
			return s.backward(in, t, grads)
		},
	}
	return f.Apply(all...)
}

// results are those of the operation.
func (s *scan) results(t *trace) []*tensor.Tensor {
	out := []*tensor.Tensor{nil, t.H[len(t.H)-1]}
	if t.States != nil {
		out[0] = s.after(t.States, len(t.Y))
	} else {
		out[0] = tensor.Stack(0, s.inTime(t.Y)...)
	}
	if s.unit.cell() {
		out = append(out, t.C[len(t.C)-1])
	}
	return out
}

// after are the states after each of so many steps, in the order of time, of all that there are.
func (s *scan) after(all *tensor.Tensor, steps int) *tensor.Tensor {
	if s.reverse {
		return all.Slice(0, 0, steps)
	}
	return all.Slice(0, all.Dim(0)-steps, all.Dim(0))
}

// before are those before each, where the one before the first is among all.
func (s *scan) before(all *tensor.Tensor, steps int) *tensor.Tensor {
	if s.reverse {
		return all.Slice(0, 1, 1+steps)
	}
	return all.Slice(0, 0, steps)
}

// room is where a unit that takes it writes its states of a dtype one behind the other, which then are the results, and which begin with h if they
// are kept; or nil.
func (s *scan) room(e *tensor.Env, h *tensor.Tensor, dt dtype.DType, steps int, keep bool) *tensor.Tensor {
	switch {
	case s.mask != nil || s.whr != nil || e.Recording():
		return nil
	case !keep:
		return tensor.LSTMStateRoom(h.In(e), dt, steps)
	}
	room := tensor.LSTMStateRoom(h.In(e), dt, steps+1)
	room.Select(0, s.at(0, steps+1)).CopyInPlace(h)
	return room
}

// at is the time of step k of n.
func (s *scan) at(k, n int) int {
	if s.reverse {
		return n - 1 - k
	}
	return k
}

// inTime is a list by steps as one by time.
func (s *scan) inTime(list []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(list))
	for k, v := range list {
		out[s.at(k, len(list))] = v
	}
	return out
}

// stepped is what a step leaves.
type stepped struct {
	H, C, Raw, Y *tensor.Tensor
	Kept         []*tensor.Tensor
}

// forward runs all steps. Unless their trace is to be kept, it has the results and the last states alone.
func (s *scan) forward(in operands, keep bool) *trace {
	return tensor.Do(in.x.Env(), func(e *tensor.Env) *trace {
		t, inner, outer := &trace{}, in.bhh, in.bih
		if in.bih != nil && !s.unit.apart() { // one sum for both
			inner, outer = nil, in.bih.Add(in.bhh)
		}
		xp, whh := in.x.In(e).Linear(in.wih, outer), spread(in.whh.In(e).Transpose(0, 1))
		last := stepped{H: in.h, C: in.c}
		if in.c != nil && !keep {
			last.C = in.c.In(e).Clone()
		}
		t.states(&last, keep)
		for k, steps := 0, in.x.Dim(0); k < steps; k++ {
			last = tensor.Do(e, func(inside *tensor.Env) stepped {
				hp := last.H.In(inside).MatMul(whh)
				if inner != nil {
					hp = hp.AddInPlace(inner)
				}
				if k == 0 && s.unit.takes() {
					t.States = s.room(e, in.h, dtype.Promote(dtype.Promote(xp.DType(), hp.DType()), last.C.DType()), steps, keep)
				}
				var to *tensor.Tensor
				if t.States != nil {
					n := t.States.Dim(0)
					to = t.States.Select(0, s.at(n-steps+k, n))
				}
				r := s.step(in, s.at(k, steps), xp.Select(0, s.at(k, steps)), hp, last.H, last.C, to)
				if !keep {
					r.forget(last.C)
				}
				return r
			})
			t.states(&last, keep)
			t.Y = append(t.Y, last.Y)
			if keep {
				t.Kept, t.Raw = append(t.Kept, last.Kept), some(t.Raw, last.Raw)
			}
		}
		return t
	})
}

// states takes in those after a step, or in place of those before.
func (t *trace) states(r *stepped, keep bool) {
	if !keep || t.States != nil {
		t.H = nil
	}
	if !keep {
		t.C = nil
	}
	t.H, t.C = append(t.H, r.H), some(t.C, r.C)
}

// some is a list with one more value, unless that is nil.
func some(list []*tensor.Tensor, v *tensor.Tensor) []*tensor.Tensor {
	if v == nil {
		return list
	}
	return append(list, v)
}

// forget leaves the result and the states, that of the cell in the place of c.
func (r *stepped) forget(c *tensor.Tensor) {
	if r.Kept, r.Raw = nil, nil; c != nil {
		r.C = c.CopyInPlace(r.C)
	}
}

// step is one step at a time; of samples that it does not count for, the state stays.
func (s *scan) step(in operands, time int, xp, hp, h, c, to *tensor.Tensor) (r stepped) {
	r.H, r.C, r.Kept = s.unit.forward(xp, hp, h, c, to)
	if in.whr != nil {
		r.Raw, r.H = r.H, r.H.Linear(in.whr, nil)
	}
	if r.Y = r.H; s.mask == nil {
		return r
	}
	m := s.mask.Select(0, time)
	r.Y = tensor.Where(m, r.H, number(r.H, 0))
	if r.H = tensor.Where(m, r.H, h); c != nil {
		r.C = tensor.Where(m, r.C, c)
	}
	return r
}

// back is what a step's gradient leaves.
type back struct{ DH, DC, DXP, DHP, DOut *tensor.Tensor }

// spread is a matrix that is contiguous but for a line of a processor's cache between rows, where those have a power of two
// bytes or some: a few columns of all rows, which a product reads again and again in every step, would all fall into the
// same few sets of the cache otherwise, and each step would read them from further away.
func spread(w *tensor.Tensor) *tensor.Tensor {
	const line, few = 64, 1024
	size, n := w.DType().Size(), w.Dim(1)
	if n == 0 || n*size%few != 0 {
		return w.Contiguous()
	}
	return tensor.Cat(1, w, w.Slice(1, 0, line/size)).Slice(1, 0, n)
}

// backward gives the gradient of each operand; those of results may be nil.
func (s *scan) backward(in operands, t *trace, grads []*tensor.Tensor) []*tensor.Tensor {
	steps := len(t.Kept)
	or := func(g, like *tensor.Tensor) *tensor.Tensor {
		if g == nil && like != nil {
			return like.ZerosLike()
		}
		return g
	}
	dh := or(grads[1], in.h)
	var dc *tensor.Tensor
	if s.unit.cell() {
		dc = or(grads[2], in.c)
	}
	xs, hs, outs := make([]*tensor.Tensor, steps), make([]*tensor.Tensor, steps), make([]*tensor.Tensor, steps)
	whole := in.whh
	in.whh = spread(whole)
	var all *tensor.Tensor // the gradients of xp, one behind the other
	if s.unit.takes() && !dh.Env().Recording() {
		all = tensor.LSTMGradRoom(t.Kept[0][0], steps)
	}
	for k := steps - 1; k >= 0; k-- {
		var to *tensor.Tensor
		if all != nil {
			to = all.Select(0, s.at(k, steps))
		}
		b := tensor.Do(dh.Env(), func(e *tensor.Env) back { return s.stepBack(in, t, k, grads[0], dh.In(e), dc, to) })
		dh, dc = b.DH, b.DC
		xs[k], hs[k], outs[k] = b.DXP, b.DHP, b.DOut
	}
	in.whh = whole
	if all == nil {
		all = tensor.Cat(0, s.inTime(xs)...)
	}
	return s.gather(in, t, operands{h: dh, c: dc}, all.Reshape(-1, all.Dim(-1)), hs, outs)
}

// stepBack goes back by a step, from the gradients of the state after it.
func (s *scan) stepBack(in operands, t *trace, k int, dy, dh, dc, to *tensor.Tensor) (b back) {
	steps := len(t.Kept)
	var h, c, restH, restC *tensor.Tensor
	if t.States == nil {
		h = t.H[k]
	}
	if s.unit.cell() {
		c = t.C[k]
	}
	total := dh
	switch {
	case dy != nil && s.mask == nil && k+1 < steps: // it is the step's behind, and of nobody else
		total = dh.AddInPlace(dy.Select(0, s.at(k, steps)))
	case dy != nil:
		total = dh.Add(dy.Select(0, s.at(k, steps)))
	}
	if s.mask != nil {
		m := s.mask.Select(0, s.at(k, steps))
		zero := number(dh, 0)
		total, restH = tensor.Where(m, total, zero), tensor.Where(m, zero, dh)
		if dc != nil {
			dc, restC = tensor.Where(m, dc, zero), tensor.Where(m, zero, dc)
		}
	}
	if in.whr != nil {
		b.DOut = total
		total = total.MatMul(in.whr)
	}
	var direct *tensor.Tensor
	b.DXP, b.DHP, direct, b.DC = s.unit.backward(t.Kept[k], h, c, total, dc, to)
	b.DH = b.DHP.MatMul(in.whh)
	for _, more := range []*tensor.Tensor{direct, restH} {
		if more != nil {
			b.DH = b.DH.AddInPlace(more)
		}
	}
	if restC != nil {
		b.DC = b.DC.Add(restC)
	}
	return b
}

// gather makes the gradients of inputs and weights from those of all steps: dx, of xp, in the order of time, others in that of the run.
func (s *scan) gather(in operands, t *trace, d operands, dx *tensor.Tensor, hs, outs []*tensor.Tensor) []*tensor.Tensor {
	steps := len(hs)
	rows := func(list []*tensor.Tensor) *tensor.Tensor { return tensor.Cat(0, list...) }
	product := func(g, v *tensor.Tensor) *tensor.Tensor { return g.Transpose(0, 1).MatMul(v) }
	var before *tensor.Tensor
	if t.States != nil {
		before = s.before(t.States, steps).Reshape(-1, s.width)
	} else {
		before = rows(s.inTime(t.H[:steps]))
	}
	dhp := dx
	if s.unit.apart() {
		dhp = rows(s.inTime(hs))
	}
	d.x = dx.MatMul(in.wih).Reshape(in.x.Shape()...)
	d.wih, d.whh = product(dx, in.x.Reshape(-1, in.x.Dim(2))), product(dhp, before)
	if in.bih != nil {
		d.bih = dx.Sum(0)
		if d.bhh = d.bih; s.unit.apart() {
			d.bhh = dhp.Sum(0)
		}
	}
	if in.whr != nil {
		d.whr = product(rows(outs), rows(t.Raw))
	}
	of := in.places()
	for i, p := range d.places() { // products with weights of float32 are that, of operands in 16 bits too
		if *p != nil {
			*p = (*p).Cast((*of[i]).DType())
		}
	}
	return d.list()
}

// unit is what a recurrent layer does in a step, by its gates.
type unit interface {
	gates() int
	cell() bool  // it has a state c beside h
	apart() bool // what comes of h is not only added to what comes of x
	takes() bool // forward writes h, and backward the gradient of xp, to where it is told; neither looks at the h before
	// forward gives h and c from the sums xp of inputs and hp of h, [n, gates·hidden] each, and what backward needs.
	// hp is its own. to may be nil.
	forward(xp, hp, h, c, to *tensor.Tensor) (h2, c2 *tensor.Tensor, kept []*tensor.Tensor)
	// backward gives the gradients of xp and hp, what of h's does not go through hp, and c's. to may be nil.
	backward(kept []*tensor.Tensor, h, c, dh, dc, to *tensor.Tensor) (dxp, dhp, direct, dc2 *tensor.Tensor)
}

// slope is g·y·(1-y), the gradient of a sigmoid with the result y.
func slope(g, y *tensor.Tensor) *tensor.Tensor {
	v := g.Mul(y)
	return v.Sub(v.Mul(y))
}

// bend is g·(1-y²), the gradient of a tanh with the result y.
func bend(g, y *tensor.Tensor) *tensor.Tensor { return g.Sub(g.Mul(y.Square())) }

// gate is part i of n of the columns of t.
func gate(t *tensor.Tensor, i, n, hidden int) *tensor.Tensor {
	return t.Slice(1, i*hidden, (i+n)*hidden)
}

type lstmUnit struct{}

func (lstmUnit) gates() int  { return 4 }
func (lstmUnit) cell() bool  { return true }
func (lstmUnit) apart() bool { return false }
func (lstmUnit) takes() bool { return true }

func (lstmUnit) forward(xp, hp, _, c, to *tensor.Tensor) (h, c2 *tensor.Tensor, kept []*tensor.Tensor) {
	h, c2, gates := tensor.LSTMStep(xp, hp, c, to)
	return h, c2, []*tensor.Tensor{gates, c2}
}

func (lstmUnit) backward(kept []*tensor.Tensor, _, c, dh, dc, to *tensor.Tensor) (dxp, dhp, direct, dc2 *tensor.Tensor) {
	d, dc2 := tensor.LSTMStepGrad(dh, dc, kept[0], c, kept[1], to)
	return d, d, nil, dc2
}

type gruUnit struct{}

func (gruUnit) gates() int  { return 3 }
func (gruUnit) cell() bool  { return false }
func (gruUnit) apart() bool { return true }
func (gruUnit) takes() bool { return false }

func (gruUnit) forward(xp, hp, h, _, _ *tensor.Tensor) (h2, c2 *tensor.Tensor, kept []*tensor.Tensor) {
	n := h.Dim(1)
	both := gate(xp, 0, 2, n).Add(gate(hp, 0, 2, n)).Sigmoid()
	r, z, inner := gate(both, 0, 1, n), gate(both, 1, 1, n), gate(hp, 2, 1, n)
	m := r.Mul(inner).AddInPlace(gate(xp, 2, 1, n)).Tanh()
	return h.Sub(m).Mul(z).AddInPlace(m), nil, []*tensor.Tensor{both, m, inner}
}

func (gruUnit) backward(kept []*tensor.Tensor, h, _, dh, _, _ *tensor.Tensor) (dxp, dhp, direct, dc2 *tensor.Tensor) {
	m, inner := kept[1], kept[2]
	n := h.Dim(1)
	r, z := gate(kept[0], 0, 1, n), gate(kept[0], 1, 1, n)
	direct = dh.Mul(z)
	dm := bend(dh.Sub(direct), m)
	both := tensor.Cat(1, slope(dm.Mul(inner), r), slope(dh.Mul(h.Sub(m)), z))
	return tensor.Cat(1, both, dm), tensor.Cat(1, both, dm.Mul(r)), direct, nil
}

type rnnUnit struct{ relu bool }

func (rnnUnit) gates() int  { return 1 }
func (rnnUnit) cell() bool  { return false }
func (rnnUnit) apart() bool { return false }
func (rnnUnit) takes() bool { return false }

func (u rnnUnit) forward(xp, hp, _, _, _ *tensor.Tensor) (h, c2 *tensor.Tensor, kept []*tensor.Tensor) {
	if h = hp.AddInPlace(xp); u.relu {
		h = h.ReLU()
	} else {
		h = h.Tanh()
	}
	return h, nil, []*tensor.Tensor{h}
}

func (u rnnUnit) backward(kept []*tensor.Tensor, _, _, dh, _, _ *tensor.Tensor) (dxp, dhp, direct, dc2 *tensor.Tensor) {
	d := bend(dh, kept[0])
	if u.relu {
		d = tensor.Where(kept[0].Gt(number(kept[0], 0)), dh, number(dh, 0))
	}
	return d, d, nil, nil
}
