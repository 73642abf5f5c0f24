package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

func prepareAttentionGrad[T kernels.Float](k *device.Kernel) (run, error) {
	op := &k.Op
	h := headsOf(op.In(1), op.In(3), op.Attr.Causal)
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

// backward computes the gradients of whole heads: the sums over queries and those over keys stay within one.
func (f *attending[T]) backward(a *attentionArgs[T], lo, hi int) {
	s := f.space.get()
	defer f.space.put(s)
	for head := lo; head < hi; head++ {
		clear(a.dq[head*f.t*f.d:][:f.t*f.d])
		clear(a.dk[head*f.s*f.d:][:f.s*f.d])
		clear(a.dv[head*f.s*f.e:][:f.s*f.e])
		for q0 := 0; q0 < f.t; q0 += queryBlock {
			f.queriesGrad(a, s, head, q0, min(q0+queryBlock, f.t))
		}
	}
}

func (f *attending[T]) queriesGrad(a *attentionArgs[T], s *attentionSpace[T], head, q0, q1 int) {
	f.scaled(a, s, head, q0, q1)
	for i := range q1 - q0 {
		at := (head*f.t + q0 + i) * f.e
		s.delta[i] = T(dotOf(a.g[at:][:f.e], a.o[at:][:f.e]))
	}
	last := f.sees(q1 - 1)
	for k0 := 0; k0 < last; k0 += keyBlock {
		f.blockGrad(a, s, &scoreBlock{head, q0, q1, k0, min(k0+keyBlock, last)})
	}
	times(a.dq[(head*f.t+q0)*f.d:(head*f.t+q1)*f.d], a.scale)
}

// blockGrad adds what a block of probabilities P gives: dv += Pᵀ·g, and with dS = P∘(g·vᵀ - delta), dq += dS·k and
// dk += dSᵀ·(scale·q).
func (f *attending[T]) blockGrad(a *attentionArgs[T], s *attentionSpace[T], b *scoreBlock) {
	rows, n := b.q1-b.q0, b.width()
	row, col := b.head*f.t+b.q0, b.head*f.s+b.k0
	f.score(a, s, b)
	for i := range rows {
		p := s.scores[i*n:][:n]
		expInto(p, p, finite(a.lse[row+i]))
	}
	p, ds := rowsOf(s.scores, n), rowsOf(s.grads, n)
	g, v := rowsOf(a.g[row*f.e:], f.e), rowsOf(a.v[col*f.e:], f.e)
	gemm(n, f.e, rows, p.t(), g, a.dv[col*f.e:], f.e, true)
	gemm(rows, n, f.e, g, v.t(), s.grads, n, false)
	for i := range rows {
		ds := s.grads[i*n:][:n]
		weigh(ds, s.scores[i*n:][:n], ds, s.delta[i])
	}
	gemm(rows, f.d, n, ds, rowsOf(a.k[col*f.d:], f.d), a.dq[row*f.d:], f.d, true)
	gemm(n, f.d, rows, ds.t(), rowsOf(s.q, f.d), a.dk[col*f.d:], f.d, true)
}
