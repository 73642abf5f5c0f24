package ir

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
)

// Wide is the dtype in which statistics and losses of t are kept: f32 for the 16-bit types, else t's own.
func Wide(t dtype.DType) dtype.DType {
	if t == dtype.F16 || t == dtype.BF16 {
		return dtype.F32
	}
	return t
}

func inferLinear(o *Op) ([]*Type, error) {
	x, w := o.In(0), o.In(1)
	if err := sameDType(o.Ins()...); err != nil {
		return nil, err
	}
	if x.Rank() < 1 || w.Rank() != 2 || x.Dim(-1) != w.shape[1] {
		return nil, fmt.Errorf("input %v with weight %v: the last size of both must agree", x.shape, w.shape)
	}
	if o.NumIn() == 3 && !slices.Equal(o.In(2).shape, w.shape[:1]) {
		return nil, fmt.Errorf("bias %v for weight %v", o.In(2).shape, w.shape)
	}
	shape := slices.Clone(x.shape)
	shape[len(shape)-1] = w.shape[0]
	return dense(x.DType, shape...)
}

func inferCrossEntropy(o *Op) ([]*Type, error) {
	x, y := o.In(0), o.In(1)
	if !x.DType.IsFloat() {
		return nil, badDType("logits are %s, not floating", x.DType)
	}
	if err := wantIndices(y); err != nil {
		return nil, err
	}
	if x.Rank() != 2 || !slices.Equal(y.shape, x.shape[:1]) {
		return nil, fmt.Errorf("logits %v with labels %v", x.shape, y.shape)
	}
	t := Dense(Wide(x.DType), x.shape[0])
	return []*Type{t, t}, nil
}

func inferCrossEntropyGrad(o *Op) ([]*Type, error) {
	ce := New(CrossEntropy, Attr{}, o.In(0), o.In(1))
	out, err := inferCrossEntropy(&ce)
	if err != nil {
		return nil, err
	}
	for _, t := range []*Type{o.In(2), o.In(3)} {
		if t.DType != out[0].DType || !t.SameShape(out[0]) {
			return nil, fmt.Errorf("%s where %s is needed", t, out[0])
		}
	}
	return same(o)
}

// vectors checks that operands from i on are vectors of n numbers of dtype dt.
func vectors(o *Op, i, n int, dt dtype.DType) error {
	for ; i < o.NumIn(); i++ {
		switch t := o.In(i); {
		case t.Rank() != 1 || t.shape[0] != n:
			return fmt.Errorf("operand %d is %s, not %s[%d]", i, t, dt, n)
		case t.DType != dt:
			return badDType("operand %d is %s, not %s[%d]", i, t, dt, n)
		}
	}
	return nil
}

func wantRank(t *Type, n int) error {
	if t.Rank() != n {
		return fmt.Errorf("%v must have %d dimensions", t.shape, n)
	}
	return nil
}

func inferLayerNorm(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := wantRank(x, 2); err != nil {
		return nil, err
	}
	if err := vectors(o, 1, x.shape[1], x.DType); err != nil {
		return nil, err
	}
	stat := Dense(Wide(x.DType), x.shape[0])
	return []*Type{x.AsDense(), stat, stat}, nil
}

func inferLayerNormGrad(o *Op) ([]*Type, error) { return normGrad(o, 2) }

// normGrad is the rule of (g, x, stats…, optionally w) → dx and, with w, a gradient per affine parameter.
func normGrad(o *Op, stats int) ([]*Type, error) {
	g, x := o.In(0), o.In(1)
	if err := wantRank(x, 2); err != nil {
		return nil, err
	}
	if g.DType != x.DType || !g.SameShape(x) {
		return nil, fmt.Errorf("gradient %s of %s", g, x)
	}
	for i := 2; i < 2+stats; i++ {
		if t := o.In(i); t.DType != Wide(x.DType) || t.Rank() != 1 || t.shape[0] != x.shape[0] {
			return nil, fmt.Errorf("statistics %s for %s", t, x)
		}
	}
	if err := vectors(o, 2+stats, x.shape[1], x.DType); err != nil {
		return nil, err
	}
	out := []*Type{x.AsDense()}
	for range stats {
		out = append(out, Dense(x.DType, x.shape[1]))
	}
	return out, nil
}

func inferRMSNorm(o *Op) ([]*Type, error) {
	out, err := inferLayerNorm(o)
	if err != nil {
		return nil, err
	}
	return out[:2], nil
}

func inferRMSNormGrad(o *Op) ([]*Type, error) { return normGrad(o, 1) }

// perChannel checks that operands from i on are vectors of x[n,c,s]'s channels.
func perChannel(o *Op, x *Type, i int) error {
	if err := wantRank(x, 3); err != nil {
		return err
	}
	return vectors(o, i, x.shape[1], Wide(x.DType))
}

func inferBatchNorm(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := perChannel(o, x, 1); err != nil {
		return nil, err
	}
	if x.shape[0]*x.shape[2] == 0 {
		return nil, fmt.Errorf("%v has no values per channel", x.shape)
	}
	stat := Dense(Wide(x.DType), x.shape[1])
	return []*Type{x.AsDense(), stat, stat}, nil
}

func inferBatchNormGrad(o *Op) ([]*Type, error) {
	g, x := o.In(0), o.In(1)
	if g.DType != x.DType || !g.SameShape(x) {
		return nil, fmt.Errorf("gradient %s of %s", g, x)
	}
	if err := perChannel(o, x, 2); err != nil {
		return nil, err
	}
	w := Dense(Wide(x.DType), x.shape[1])
	return []*Type{x.AsDense(), w, w}, nil
}

func inferBatchNormEval(o *Op) ([]*Type, error) {
	if err := perChannel(o, o.In(0), 1); err != nil {
		return nil, err
	}
	return same(o)
}

// attentionShapes checks q[b,h,t,d], k[b,h,s,d], v[b,h,s,e] and the optional mask[b,h,t,s], which is bool (true: seen)
// or of q's dtype (added to the scores).
func attentionShapes(q, k, v, mask *Type) error {
	if err := sameDType(q, k, v); err != nil {
		return err
	}
	if !q.DType.IsFloat() {
		return badDType("queries are %s, not floating", q.DType)
	}
	for _, t := range []*Type{q, k, v} {
		if err := wantRank(t, 4); err != nil {
			return err
		}
	}
	if !slices.Equal(q.shape[:2], k.shape[:2]) || !slices.Equal(k.shape[:3], v.shape[:3]) || q.shape[3] != k.shape[3] {
		return fmt.Errorf("queries %v, keys %v, values %v", q.shape, k.shape, v.shape)
	}
	want := []int{q.shape[0], q.shape[1], q.shape[2], k.shape[2]}
	if mask != nil && (mask.DType != dtype.Bool && mask.DType != q.DType || !slices.Equal(mask.shape, want)) {
		return fmt.Errorf("mask %s where bool or %s %v is needed", mask, q.DType, want)
	}
	return nil
}

func inferAttention(o *Op) ([]*Type, error) {
	q, k, v := o.In(0), o.In(1), o.In(2)
	var mask *Type
	if o.NumIn() == 4 {
		mask = o.In(3)
	}
	if err := attentionShapes(q, k, v, mask); err != nil {
		return nil, err
	}
	out, err := dense(q.DType, q.shape[0], q.shape[1], q.shape[2], v.shape[3])
	if err != nil {
		return nil, err
	}
	return append(out, Dense(Wide(q.DType), q.shape[:3]...)), nil
}

func inferAttentionGrad(o *Op) ([]*Type, error) {
	g, q, k, v := o.In(0), o.In(1), o.In(2), o.In(3)
	in := append([]*Type{q, k, v}, o.Ins()[6:]...)
	fwd := New(Attention, o.Attr, in...)
	out, err := inferAttention(&fwd)
	if err != nil {
		return nil, err
	}
	for i, t := range []*Type{g, o.In(4), o.In(5)} {
		want := out[max(i-1, 0)]
		if t.DType != want.DType || !t.SameShape(want) {
			return nil, fmt.Errorf("%s where %s is needed", t, want)
		}
	}
	return []*Type{q.AsDense(), k.AsDense(), v.AsDense()}, nil
}

func inferSumSquares(o *Op) ([]*Type, error) {
	dt := dtype.F32
	for _, t := range o.Ins() {
		if !t.DType.IsFloat() {
			return nil, badDType("operand %s is not floating", t)
		}
		if t.DType == dtype.F64 {
			dt = dtype.F64
		}
	}
	return one(Dense(dt))
}

// updates checks (scale, then groups of n equal types per parameter) and returns the types of those written: all but
// the gradient, which comes second in a group.
func updates(o *Op, n int) ([]*Type, error) {
	if s := o.In(0); s.Rank() != 0 || !s.DType.IsFloat() {
		return nil, fmt.Errorf("the scale is %s, not one floating number", s)
	}
	rest := o.Ins()[1:]
	if len(rest)%n != 0 {
		return nil, fmt.Errorf("%d operands in groups of %d", len(rest), n)
	}
	var out []*Type
	for i := 0; i < len(rest); i += n {
		for j, t := range rest[i : i+n] {
			if !t.DType.IsFloat() || !t.SameShape(rest[i]) || t.DType != rest[i].DType {
				return nil, fmt.Errorf("parameter %s with %s", rest[i], t)
			}
			if !t.IsDense() {
				return nil, fmt.Errorf("%s must be row-major", t)
			}
			if j != 1 {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

func inferSGD(o *Op) ([]*Type, error) {
	if o.Attr.Flag&Momentum != 0 {
		return updates(o, 3)
	}
	return updates(o, 2)
}

func inferAdamW(o *Op) ([]*Type, error) { return updates(o, 4) }
