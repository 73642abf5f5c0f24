package ir

import (
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
)

// Wide is the dtype in which statistics and losses of t are kept: f32 for narrower floating dtypes, else t's own.
func Wide(t dtype.DType) dtype.DType { return t.Wide() }

func inferLinear(o *Op) ([]*Type, error) {
	x, w := o.In(0), o.In(1)
	if err := sameDType(x, w); err != nil {
		return nil, err
	}
	if x.Rank() < 1 || w.Rank() != 2 || x.Dim(-1) != w.shape[1] {
		return nil, fmt.Errorf("input %v with weight %v: the last size of both must agree", x.shape, w.shape)
	}
	if o.NumIn() == 3 {
		if b := o.In(2); !slices.Equal(b.shape, w.shape[:1]) {
			return nil, fmt.Errorf("bias %v for weight %v", b.shape, w.shape)
		} else if b.DType != Wide(x.DType) {
			if err := sameDType(x, b); err != nil {
				return nil, err
			}
		}
	}
	shape := slices.Clone(x.shape)
	shape[len(shape)-1] = w.shape[0]
	out, err := dense(x.DType, shape...)
	if err == nil && o.Attr.Flag&Before != 0 {
		out = append(out, out[0])
	}
	return out, err
}

func inferBiasGrad(o *Op) ([]*Type, error) {
	g := o.In(0)
	if g.Rank() != 2 {
		return nil, fmt.Errorf("gradient %v must have 2 dimensions", g.shape)
	}
	dt, err := sumsIn(o.Attr.DType, g.DType)
	if err != nil {
		return nil, err
	}
	out, err := dense(dt, g.shape[1])
	if o.NumIn() == 1 || err != nil {
		if o.Attr.Act != NoAct {
			return nil, fmt.Errorf("activation %s without its operand", o.Attr.Act)
		}
		return out, err
	}
	if x := o.In(1); x.DType != g.DType || !x.SameShape(g) || o.Attr.Act == NoAct {
		return nil, fmt.Errorf("gradient %s of activation %s of %s", g, o.Attr.Act, x)
	}
	return append(out, g.AsDense()), nil
}

// inferCrossEntropy: of the statistics of a row, the first is its largest logit m, the second log Σ exp(x-m). Their sum would
// lose what tells classes apart where logits are large.
func inferCrossEntropy(o *Op) ([]*Type, error) {
	x, y := o.In(0), o.In(1)
	if err := wantIndices(y); err != nil {
		return nil, err
	}
	if x.Rank() != 2 || !slices.Equal(y.shape, x.shape[:1]) {
		return nil, fmt.Errorf("logits %v with labels %v", x.shape, y.shape)
	}
	n, wide := x.shape[0], Wide(x.DType)
	if o.Attr.Flag&Mean != 0 {
		return []*Type{Dense(wide), Dense(wide, 2, n), Dense(wide)}, nil
	}
	return []*Type{Dense(wide, n), Dense(wide, 2, n)}, nil
}

func inferCrossEntropyGrad(o *Op) ([]*Type, error) {
	ce := New(CrossEntropy, o.Attr, o.In(0), o.In(1))
	out, err := inferCrossEntropy(&ce)
	if err != nil {
		return nil, err
	}
	want := append([]*Type{out[1], out[0]}, out[2:]...)
	if len(want) != o.NumIn()-2 {
		return nil, fmt.Errorf("%d operands, want %d", o.NumIn(), 2+len(want))
	}
	for i, w := range want {
		if t := o.In(2 + i); t.DType != w.DType || !t.SameShape(w) {
			return nil, fmt.Errorf("%s where %s is needed", t, w)
		}
	}
	return same(o)
}

func inferLinearCrossEntropy(o *Op) ([]*Type, error) {
	x, w := o.In(0), o.In(1)
	if err := checkHead(o); err != nil {
		return nil, err
	}
	n, wide := x.shape[0], Wide(x.DType)
	switch o.Attr.Flag & (Mean | Total) {
	case 0:
		if o.Attr.Flag != 0 {
			return nil, fmt.Errorf("flag %s without mean or total: of losses apart the gradients are not known", o.Attr.Flag)
		}
		return dense(wide, n)
	case Mean | Total:
		return nil, errors.New("the loss is a mean or a total, not both")
	}
	return append([]*Type{Dense(wide), Dense(wide)}, headGrads(o, x.As(wide), w.As(wide))...), nil
}

func inferLinearCrossEntropyGrad(o *Op) ([]*Type, error) {
	if err := checkHead(o); err != nil {
		return nil, err
	}
	if o.Attr.Flag == 0 {
		return nil, errors.New("neither the gradient of x nor that of w is asked for")
	}
	x := o.In(0)
	if err := vectors(o, 3, x.shape[0], Wide(x.DType)); err != nil {
		return nil, err
	}
	return headGrads(o, x, o.In(1)), nil
}

// checkHead checks hidden values x[n,k], weights w[c,k] and labels of rows.
func checkHead(o *Op) error {
	x, w, labels := o.In(0), o.In(1), o.In(2)
	if err := sameDType(x, w); err != nil {
		return err
	}
	if err := wantIndices(labels); err != nil {
		return err
	}
	if x.Rank() != 2 || w.Rank() != 2 || x.shape[1] != w.shape[1] {
		return fmt.Errorf("input %v with weight %v: both have two dimensions, the last of one size", x.shape, w.shape)
	}
	if !slices.Equal(labels.shape, x.shape[:1]) {
		return fmt.Errorf("input %v with labels %v", x.shape, labels.shape)
	}
	return nil
}

// headGrads are the gradients that are asked for, of the given types.
func headGrads(o *Op, x, w *Type) (out []*Type) {
	if o.Attr.Flag&GradX != 0 {
		out = append(out, x.AsDense())
	}
	if o.Attr.Flag&GradW != 0 {
		out = append(out, w.AsDense())
	}
	return out
}

// vectors checks that operands from i on are vectors of n numbers of dtype dt.
func vectors(o *Op, i, n int, dt dtype.DType) error { return vectorsAmong(o, i, o.NumIn(), n, dt) }

// vectorsAmong is vectors of the operands before the last one given.
func vectorsAmong(o *Op, i, last, n int, dt dtype.DType) error {
	for ; i < last; i++ {
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

// roundedTo is the dtype of x's rounded form: x's own, or a 16-bit one of f32.
func roundedTo(want dtype.DType, x *Type) (dtype.DType, error) {
	if want == 0 || want == x.DType {
		return x.DType, nil
	}
	if !want.IsFloat() || want.IsStorage() || Wide(want) != x.DType {
		return want, badDType("%s in %s", x, want)
	}
	return want, nil
}

func inferAddNorm(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := wantRank(x, 2); err != nil {
		return nil, err
	}
	dt, err := roundedTo(o.Attr.DType, x)
	if err != nil {
		return nil, err
	}
	if err := vectorsAmong(o, 1, 3, x.shape[1], x.DType); err != nil {
		return nil, err
	}
	stat := Dense(Wide(x.DType), x.shape[0])
	out := []*Type{x.As(dt).AsDense(), stat, stat}
	if o.NumIn() < 4 {
		return out, nil
	}
	if f := o.In(3); !f.SameShape(x) || f.DType != x.DType && f.DType != dt {
		return nil, fmt.Errorf("%s added to %s", f, x)
	}
	return append(out, x.AsDense()), nil
}

func inferAddNormGrad(o *Op) ([]*Type, error) {
	x, g := o.In(0), o.In(1)
	if err := wantRank(x, 2); err != nil {
		return nil, err
	}
	if dt, err := roundedTo(g.DType, x); err != nil || dt != g.DType || !g.SameShape(x) {
		return nil, fmt.Errorf("gradient %s of %s", g, x)
	}
	for i := 2; i < 4; i++ {
		if t := o.In(i); t.DType != Wide(x.DType) || t.Rank() != 1 || t.shape[0] != x.shape[0] {
			return nil, fmt.Errorf("statistics %s for %s", t, x)
		}
	}
	if err := vectorsAmong(o, 4, 5, x.shape[1], x.DType); err != nil {
		return nil, err
	}
	if o.NumIn() == 6 && (!o.In(5).SameShape(x) || o.In(5).DType != x.DType) {
		return nil, fmt.Errorf("%s added to the gradient of %s", o.In(5), x)
	}
	w := Dense(x.DType, x.shape[1])
	out := []*Type{x.AsDense(), w, w}
	if o.Attr.DType == 0 {
		return out, nil
	}
	dt, err := roundedTo(o.Attr.DType, x)
	return append(out, x.As(dt).AsDense()), err
}

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

// perChannel checks that operands from i on are vectors of x[n,c,s]'s channels, but for one more after n of them, which is
// like x.
func perChannel(o *Op, x *Type, i, n int) error {
	if err := wantRank(x, 3); err != nil {
		return err
	}
	if o.NumIn() > i+n {
		if t := o.In(i + n); t.DType != x.DType || !t.SameShape(x) {
			return fmt.Errorf("operand %d is %s, not like %s", i+n, t, x)
		}
	}
	return vectorsAmong(o, i, i+n, x.shape[1], Wide(x.DType))
}

// reluOnly refuses the activations that norms do not have.
func reluOnly(o *Op) error {
	if o.Attr.Act > ActReLU {
		return fmt.Errorf("the activation is %s; a norm has none or relu", o.Attr.Act)
	}
	return nil
}

func inferBatchNorm(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := perChannel(o, x, 1, 2); err != nil {
		return nil, err
	}
	if x.shape[0]*x.shape[2] == 0 {
		return nil, fmt.Errorf("%v has no values per channel", x.shape)
	}
	stat := Dense(Wide(x.DType), x.shape[1])
	return []*Type{x.AsDense(), stat, stat}, reluOnly(o)
}

func inferBatchNormGrad(o *Op) ([]*Type, error) {
	g, x := o.In(0), o.In(1)
	if g.DType != x.DType || !g.SameShape(x) {
		return nil, fmt.Errorf("gradient %s of %s", g, x)
	}
	if err := perChannel(o, x, 2, 3); err != nil {
		return nil, err
	}
	w := Dense(Wide(x.DType), x.shape[1])
	out := []*Type{x.AsDense(), w, w}
	if o.Attr.Flag&Residual != 0 {
		if o.NumIn() < 6 {
			return nil, fmt.Errorf("without an activation the gradient of what was added is %s itself", g)
		}
		out = append(out, x.AsDense())
	}
	return out, nil
}

func inferBatchNormEval(o *Op) ([]*Type, error) {
	if err := perChannel(o, o.In(0), 1, 4); err != nil {
		return nil, err
	}
	if err := reluOnly(o); err != nil {
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
	return []*Type{q.AsDense(), k.AsDense(), v.AsDense()}, wantResults(out, g, o.In(4), o.In(5))
}

// inferSelfAttention: the result of attention to qkv's three parts, laid out as they are.
func inferSelfAttention(o *Op) ([]*Type, error) {
	qkv := o.In(0)
	if err := wantRank(qkv, 5); err != nil {
		return nil, err
	}
	b, t, h := qkv.shape[0], qkv.shape[1], qkv.shape[3]
	if qkv.shape[2] != 3 {
		return nil, fmt.Errorf("%v where [batch, positions, 3, heads, width] is needed", qkv.shape)
	}
	if o.NumIn() == 2 {
		part := Dense(qkv.DType, b, h, t, qkv.shape[4])
		if err := attentionShapes(part, part, part, o.In(1)); err != nil {
			return nil, err
		}
	}
	return []*Type{Dense(qkv.DType, b, t, h, qkv.shape[4]), Dense(Wide(qkv.DType), b, h, t)}, nil
}

func inferSelfAttentionGrad(o *Op) ([]*Type, error) {
	fwd := New(SelfAttention, o.Attr, append([]*Type{o.In(1)}, o.Ins()[4:]...)...)
	out, err := inferSelfAttention(&fwd)
	if err != nil {
		return nil, err
	}
	return []*Type{o.In(1).AsDense()}, wantResults(out, o.In(0), o.In(2), o.In(3))
}

// wantResults checks that the gradient g of an attention's first result, that result and the second have their types.
func wantResults(out []*Type, g, o, lse *Type) error {
	for i, t := range []*Type{g, o, lse} {
		want := out[max(i-1, 0)]
		if t.DType != want.DType || !t.SameShape(want) {
			return fmt.Errorf("%s where %s is needed", t, want)
		}
	}
	return nil
}

func inferSumSquares(o *Op) ([]*Type, error) {
	dt, err := squaresOf(o.Ins())
	if err != nil {
		return nil, err
	}
	return one(Dense(dt))
}

// squaresOf is the dtype of a sum of squares: f64 if one of the operands is, else f32.
func squaresOf(in []*Type) (dtype.DType, error) {
	dt := dtype.F32
	for _, t := range in {
		if !Floats.Has(t.DType) {
			return dt, badDType("operand %s is not floating", t)
		}
		if t.DType == dtype.F64 {
			dt = dtype.F64
		}
	}
	return dt, nil
}

func inferGradNorm(o *Op) ([]*Type, error) {
	counts, turn := o.In(0), o.In(1)
	if counts.DType != dtype.I64 {
		return nil, badDType("counts are %s, not i64", counts)
	}
	if counts.Rank() != 1 || !counts.IsDense() || turn != counts {
		return nil, fmt.Errorf("counts %s with turn %s: both are vectors of one length", counts, turn)
	}
	dt, err := squaresOf(o.Ins()[2:])
	if err != nil {
		return nil, err
	}
	return []*Type{Dense(dt), Dense(dt), Dense(dtype.I64), counts}, nil
}

func inferCastAll(o *Op) ([]*Type, error) {
	if !Floats.Has(o.Attr.DType) {
		return nil, badDType("%s is not floating", o.Attr.DType)
	}
	out := make([]*Type, o.NumIn())
	for i, t := range o.Ins() {
		if !Floats.Has(t.DType) {
			return nil, badDType("operand %s is not floating", t)
		}
		out[i] = Dense(o.Attr.DType, t.Shape()...)
	}
	return out, nil
}

func inferTrackMoments(o *Op) ([]*Type, error) {
	mean, count := o.In(0), o.In(2)
	if mean.Rank() != 1 || !mean.IsDense() {
		return nil, fmt.Errorf("the mean is %s, not a row-major vector", mean)
	}
	if count != Dense(dtype.I64) {
		return nil, fmt.Errorf("the count is %s, not i64[]", count)
	}
	for i, t := range o.Ins() {
		if i != 2 && t != mean {
			return nil, fmt.Errorf("operand %d is %s beside a mean %s", i, t, mean)
		}
	}
	return []*Type{mean, mean, count}, nil
}

func inferLossScale(o *Op) ([]*Type, error) {
	f32, f64, i64 := Dense(dtype.F32), Dense(dtype.F64), Dense(dtype.I64)
	out := []*Type{f32, f64, i64}
	for i, t := range o.Ins() {
		if want := out[min(i, 2)]; t != want {
			return nil, fmt.Errorf("operand %d is %s, not %s", i, t, want)
		}
	}
	return out, nil
}

// updates checks (scale, then groups of n operands per parameter) and returns the types of those written. A group is the
// parameter, its gradient and state of the same type; of five, the last is the number of the update.
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
			switch {
			case j == 4:
				if t != Dense(dtype.I64) {
					return nil, fmt.Errorf("the number of an update is %s, not i64[]", t)
				}
				continue
			case !t.DType.IsFloat() || !t.SameShape(rest[i]) || t.DType != rest[i].DType:
				return nil, fmt.Errorf("parameter %s with %s", rest[i], t)
			case !t.IsDense():
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

func inferAdamW(o *Op) ([]*Type, error) { return updates(o, 5) }

// Moments of [Adam8bit] are codes of a byte: values of a table from -1 to 1, of which the first half is for second moments and the
// other for first ones, times the largest of a block.
const (
	CodeValues = 256 // of a half
	CodeBlock  = 256 // elements
)

// Adam8bitGroup is the number of operands of a parameter, which follow the scale and the table.
const Adam8bitGroup = 7

func inferAdam8bit(o *Op) (out []*Type, err error) {
	table := Dense(dtype.F64, 2*CodeValues)
	switch s := o.In(0); {
	case s.Rank() != 0 || !s.DType.IsFloat():
		return nil, fmt.Errorf("the scale is %s, not one floating number", s)
	case o.In(1) != table:
		return nil, fmt.Errorf("the codes are %s, not %s", o.In(1), table)
	}
	rest := o.Ins()[2:]
	if len(rest)%Adam8bitGroup != 0 {
		return nil, fmt.Errorf("%d operands in groups of %d", len(rest), Adam8bitGroup)
	}
	for in := range slices.Chunk(rest, Adam8bitGroup) {
		p := in[0]
		if !p.DType.IsFloat() || !p.IsDense() {
			return nil, fmt.Errorf("parameter %s must be floating and row-major", p)
		}
		codes, largest := Dense(dtype.U8, p.Shape()...), Dense(dtype.F32, (p.Size()+CodeBlock-1)/CodeBlock)
		for i, want := range []*Type{p, p, codes, codes, largest, largest, Dense(dtype.I64)} {
			if in[i] != want {
				return nil, fmt.Errorf("operand %d of parameter %s is %s, not %s", i, p, in[i], want)
			}
		}
		out = append(out, p, codes, codes, largest, largest)
	}
	return out, nil
}

// gatesOf is the type of the four gates of a cell c[n,h].
func gatesOf(c *Type) (*Type, error) {
	if err := wantRank(c, 2); err != nil {
		return nil, err
	}
	return Dense(c.DType, c.shape[0], 4*c.shape[1]), nil
}

// alike requires operands of one shape and dtype.
func alike(o *Op, want *Type, operands ...int) error {
	for _, i := range operands {
		switch t := o.In(i); {
		case !t.SameShape(want):
			return fmt.Errorf("operand %d is %s, not %s", i, t, want)
		case t.DType != want.DType:
			return badDType("operand %d is %s, not %s", i, t, want)
		}
	}
	return nil
}

func inferLSTMStep(o *Op) ([]*Type, error) {
	c := o.In(2)
	gates, err := gatesOf(c)
	if err != nil {
		return nil, err
	}
	return []*Type{c.AsDense(), c.AsDense(), gates}, alike(o, gates, 0, 1)
}

func inferLSTMStepGrad(o *Op) ([]*Type, error) {
	c := o.In(0)
	gates, err := gatesOf(c)
	if err != nil {
		return nil, err
	}
	if err := alike(o, gates, 2); err != nil {
		return nil, err
	}
	return []*Type{gates, c.AsDense()}, alike(o, c, 1, 3, 4)
}
