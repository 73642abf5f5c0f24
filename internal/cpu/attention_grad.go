package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

func prepareAttentionGrad[T kernels.Float](k *device.Kernel) (run, error) {
	op := &k.Op
	h := headsOf(op.In(1), op.In(2), op.In(3), op.Attr.Causal)
	units := newLoop(newAttending[T](h).backward)
	return func(args []device.Arg, p *device.Params) error {
		a := attentionArgs[T]{dq: elems[T](args[0], k.Out[0]), dk: elems[T](args[1], k.Out[1]), dv: elems[T](args[2], k.Out[2]),
			g: elems[T](args[3], op.In(0)), q: elems[T](args[4], op.In(1)), k: elems[T](args[5], op.In(2)), v: elems[T](args[6], op.In(3)),
			o: elems[T](args[7], op.In(4)), lse: elems[T](args[8], op.In(5)), scale: T(scalar(p, 0))}
		if op.NumIn() == 7 {
			a.setMask(args[9], op.In(6))
		}
		units.run(h.count, 1, a)
		return nil
	}, nil
}

func prepareSelfAttentionGrad[T kernels.Float](k *device.Kernel) (run, error) {
	op := &k.Op
	h := selfHeads(op.In(1), op.Attr.Causal)
	units := newLoop(newAttending[T](h).backward)
	return func(args []device.Arg, p *device.Params) error {
		a := attentionArgs[T]{g: elems[T](args[1], op.In(0)), o: elems[T](args[3], op.In(2)), lse: elems[T](args[4], op.In(3)), scale: T(scalar(p, 0))}
		a.dq, a.dk, a.dv = thirds(h, elems[T](args[0], k.Out[0]))
		a.q, a.k, a.v = thirds(h, elems[T](args[2], op.In(1)))
		if op.NumIn() == 5 {
			a.setMask(args[5], op.In(4))
		}
		units.run(h.count, 1, a)
		return nil
	}, nil
}

// backward computes the gradients of whole heads: the sums over queries and those over keys stay within one.
func (f *attending[T]) backward(a *attentionArgs[T], lo, hi int) {
	s := f.space.get()
	defer f.space.put(s)
	for head := lo; head < hi; head++ {
		for i := range f.t {
			clear(a.dq[f.q.at(head, i):][:f.d])
		}
		for i := range f.s {
			clear(a.dk[f.k.at(head, i):][:f.d])
			clear(a.dv[f.v.at(head, i):][:f.e])
		}
		for q0 := 0; q0 < f.t; q0 += queryBlock {
			f.queriesGrad(a, s, head, q0, min(q0+queryBlock, f.t))
		}
	}
}

func (f *attending[T]) queriesGrad(a *attentionArgs[T], s *attentionSpace[T], head, q0, q1 int) {
	f.scaled(a, s, head, q0, q1)
	for i := range q1 - q0 {
		at := f.o.at(head, q0+i)
		s.delta[i] = T(dotOf(a.g[at:][:f.e], a.o[at:][:f.e]))
	}
	last := f.sees(q1 - 1)
	for k0 := 0; k0 < last; k0 += keyBlock {
		f.blockGrad(a, s, &scoreBlock{head, q0, q1, k0, min(k0+keyBlock, last)})
	}
	for i := q0; i < q1; i++ {
		times(a.dq[f.q.at(head, i):][:f.d], a.scale)
	}
}

// blockGrad adds what a block of probabilities P gives: dv += Pᵀ·g, and with dS = P∘(g·vᵀ - delta), dq += dS·k and
// dk += dSᵀ·(scale·q).
func (f *attending[T]) blockGrad(a *attentionArgs[T], s *attentionSpace[T], b *scoreBlock) {
	rows, n := b.q1-b.q0, b.width()
	query, key, value, out := f.q.at(b.head, b.q0), f.k.at(b.head, b.k0), f.v.at(b.head, b.k0), f.o.at(b.head, b.q0)
	f.score(a, s, b)
	for i := range rows {
		p := s.scores[i*n:][:n]
		expInto(p, p, finite(a.lse[b.head*f.t+b.q0+i]))
	}
	p, ds := rowsOf(s.scores, n), rowsOf(s.grads, n)
	g, v := rowsOf(a.g[out:], f.o.row), rowsOf(a.v[value:], f.v.row)
	gemm(n, f.e, rows, p.t(), g, a.dv[value:], f.v.row, true)
	gemm(rows, n, f.e, g, v.t(), s.grads, n, false)
	for i := range rows {
		ds := s.grads[i*n:][:n]
		weigh(ds, s.scores[i*n:][:n], ds, s.delta[i])
	}
	gemm(rows, f.d, n, ds, rowsOf(a.k[key:], f.k.row), a.dq[query:], f.q.row, true)
	gemm(n, f.d, rows, ds.t(), rowsOf(s.q, f.d), a.dk[key:], f.k.row, true)
}
