package ir

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
)

// class is the set of dtypes an operand may have.
type class uint8

const (
	anyType class = iota
	floats
	numbers // all but bool
	bools
	indices // i64
)

var classNames = [...]string{"a dtype", "a floating dtype", "a numeric dtype", "bool", "i64"}

func (c class) has(t dtype.DType) bool {
	switch c {
	case floats:
		return t.IsFloat()
	case numbers:
		return t.Valid() && t != dtype.Bool
	case bools:
		return t == dtype.Bool
	case indices:
		return t == dtype.I64
	}
	return t.Valid()
}

// row is what the table knows of a code.
type row struct {
	name   string
	min    int // operands
	max    int // operands; many: no limit
	class  class
	params int // launch parameters
	infer  func(o *Op) ([]*Type, error)
}

const many = 1 << 30

var table [codeCount]row

func init() {
	unary := func(c class, codes ...Code) {
		for _, code := range codes {
			table[code] = row{min: 1, max: 1, class: c, infer: same}
		}
	}
	binary := func(c class, f func(*Op) ([]*Type, error), codes ...Code) {
		for _, code := range codes {
			table[code] = row{min: 2, max: 2, class: c, infer: f}
		}
	}
	unary(numbers, Neg, Abs, Sign, ReLU)
	unary(floats, Floor, Ceil, Round, Trunc, Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tanh, Sigmoid, Erf, GELU, GELUTanh, SiLU, Softmax, LogSoftmax)
	unary(bools, Not)
	binary(numbers, equal, Add, Sub, Mul, Div, Rem)
	binary(floats, equal, Pow, ReLUGrad, GELUGrad, GELUTanhGrad, SiLUGrad, SoftmaxGrad, LogSoftmaxGrad)
	binary(anyType, equal, Maximum, Minimum)
	binary(anyType, compare, Eq, Ne, Lt, Le)
	binary(bools, equal, And, Or, Xor)
	for code, r := range map[Code]row{
		Reshape: {"reshape", 1, 1, anyType, 0, inferReshape},
		Permute: {"permute", 1, 1, anyType, 0, inferPermute},
		Expand:  {"expand", 1, 1, anyType, 0, inferExpand},
		Slice:   {"slice", 1, 1, anyType, 0, inferSlice},

		Full:    {"full", 0, 0, anyType, 1, given},
		Iota:    {"iota", 0, 0, numbers, 2, given},
		Uniform: {"uniform", 0, 0, floats, 3, given},
		Normal:  {"normal", 0, 0, floats, 3, given},
		RandInt: {"rand_int", 0, 0, numbers, 3, given},

		Copy:      {"copy", 1, 1, anyType, 0, inferCopy},
		Cast:      {"cast", 1, 1, anyType, 0, inferCast},
		Affine:    {"affine", 1, 1, numbers, 2, same},
		PowScalar: {"pow_scalar", 1, 1, floats, 1, same},
		Clamp:     {"clamp", 1, 1, numbers, 2, same},
		Dropout:   {"dropout", 1, 1, floats, 2, same},
		Axpy:      {"axpy", 2, 2, numbers, 1, equal},
		Lerp:      {"lerp", 2, 2, floats, 1, equal},
		Where:     {"where", 3, 3, anyType, 0, inferWhere},

		Sum:       {"sum", 1, 1, numbers, 0, inferReduce},
		Prod:      {"prod", 1, 1, numbers, 0, inferReduce},
		ReduceMax: {"reduce_max", 1, 1, anyType, 0, inferReduce},
		ReduceMin: {"reduce_min", 1, 1, anyType, 0, inferReduce},
		ArgMax:    {"arg_max", 1, 1, numbers, 0, inferArg},
		ArgMin:    {"arg_min", 1, 1, numbers, 0, inferArg},
		CumSum:    {"cumsum", 1, 1, numbers, 0, inferAlong},

		MatMul:           {"matmul", 2, 2, numbers, 0, inferMatMul},
		Conv2d:           {"conv2d", 2, 3, floats, 0, inferConv},
		Conv2dGradInput:  {"conv2d_grad_input", 2, 2, floats, 0, inferConvGradInput},
		Conv2dGradWeight: {"conv2d_grad_weight", 2, 2, floats, 0, inferConvGradWeight},
		MaxPool2d:        {"max_pool2d", 1, 1, floats, 0, inferMaxPool},
		MaxPool2dGrad:    {"max_pool2d_grad", 2, 2, anyType, 0, inferMaxPoolGrad},
		AvgPool2d:        {"avg_pool2d", 1, 1, floats, 0, inferAvgPool},
		AvgPool2dGrad:    {"avg_pool2d_grad", 1, 1, floats, 0, inferAvgPoolGrad},

		Gather:        {"gather", 2, 2, anyType, 0, inferGather},
		ScatterAdd:    {"scatter_add", 3, 3, anyType, 0, inferScatterAdd},
		Embedding:     {"embedding", 2, 2, anyType, 0, inferEmbedding},
		EmbeddingGrad: {"embedding_grad", 2, 2, anyType, 0, inferEmbeddingGrad},
		Cat:           {"cat", 1, many, anyType, 0, inferCat},
		Pad:           {"pad", 1, 1, anyType, 1, inferPad},

		Linear:           {"linear", 2, 3, floats, 0, inferLinear},
		CrossEntropy:     {"cross_entropy", 2, 2, anyType, 2, inferCrossEntropy},
		CrossEntropyGrad: {"cross_entropy_grad", 4, 4, anyType, 2, inferCrossEntropyGrad},
		LayerNorm:        {"layer_norm", 1, 3, floats, 1, inferLayerNorm},
		LayerNormGrad:    {"layer_norm_grad", 4, 5, floats, 0, inferLayerNormGrad},
		RMSNorm:          {"rms_norm", 1, 2, floats, 1, inferRMSNorm},
		RMSNormGrad:      {"rms_norm_grad", 3, 4, floats, 0, inferRMSNormGrad},
		BatchNorm:        {"batch_norm", 3, 3, floats, 1, inferBatchNorm},
		BatchNormGrad:    {"batch_norm_grad", 5, 5, floats, 1, inferBatchNormGrad},
		BatchNormEval:    {"batch_norm_eval", 5, 5, floats, 1, inferBatchNormEval},
		Attention:        {"attention", 3, 4, anyType, 1, inferAttention},
		AttentionGrad:    {"attention_grad", 6, 7, anyType, 1, inferAttentionGrad},
		SumSquares:       {"sum_squares", 1, many, floats, 0, inferSumSquares},
		SGD:              {"sgd", 1, many, floats, 3, inferSGD},
		AdamW:            {"adamw", 1, many, floats, 7, inferAdamW},
	} {
		table[code] = r
	}
	names := [...]string{Neg: "neg", Abs: "abs", Sign: "sign", Floor: "floor", Ceil: "ceil", Round: "round", Trunc: "trunc",
		Sqrt: "sqrt", Rsqrt: "rsqrt", Exp: "exp", Expm1: "expm1", Log: "log", Log1p: "log1p", Sin: "sin", Cos: "cos", Tanh: "tanh",
		Sigmoid: "sigmoid", Erf: "erf", ReLU: "relu", Not: "not", Add: "add", Sub: "sub", Mul: "mul", Div: "div", Pow: "pow", Rem: "rem",
		Maximum: "maximum", Minimum: "minimum", Eq: "eq", Ne: "ne", Lt: "lt", Le: "le", And: "and", Or: "or", Xor: "xor",
		GELU: "gelu", GELUTanh: "gelu_tanh", SiLU: "silu", ReLUGrad: "relu_grad", GELUGrad: "gelu_grad", GELUTanhGrad: "gelu_tanh_grad",
		SiLUGrad: "silu_grad", Softmax: "softmax", LogSoftmax: "log_softmax", SoftmaxGrad: "softmax_grad", LogSoftmaxGrad: "log_softmax_grad"}
	for code, name := range names {
		if name != "" {
			table[code].name = name
		}
	}
}

// NumParams is the number of launch parameters of a code.
func (c Code) NumParams() int { return table[c].params }

// Infer verifies the op and returns the types of its results.
func (o *Op) Infer() ([]*Type, error) {
	if o.Code == Invalid || o.Code >= codeCount {
		return nil, fmt.Errorf("%s is no operation", o.Code)
	}
	r := &table[o.Code]
	if n := o.NumIn(); n < r.min || n > r.max {
		return nil, fmt.Errorf("%s: takes %s, got %d", o.Code, operands(r), n)
	}
	if r.min > 0 && !r.class.has(o.In(0).DType) {
		return nil, fmt.Errorf("%s: %w", o.Code, badDType("needs %s, got %s", classNames[r.class], o.In(0).DType))
	}
	if err := o.checkAttr(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Code, err)
	}
	out, err := r.infer(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Code, err)
	}
	return out, nil
}

// DTypeError says that an op does not take an operand for its dtype, whatever its shape.
type DTypeError struct{ text string }

// Error says which dtypes met.
func (e *DTypeError) Error() string { return e.text }

func badDType(format string, args ...any) error { return &DTypeError{fmt.Sprintf(format, args...)} }

func operands(r *row) string {
	switch {
	case r.max == many:
		return fmt.Sprintf("%d or more operands", r.min)
	case r.min == r.max:
		return fmt.Sprintf("%d operands", r.min)
	}
	return fmt.Sprintf("%d to %d operands", r.min, r.max)
}

func one(t *Type) ([]*Type, error) { return []*Type{t}, nil }

// dense is one row-major result, whose shape follows from the operands' and may be more than a type can have.
func dense(dt dtype.DType, shape ...int) ([]*Type, error) {
	if err := CheckShape(shape); err != nil {
		return nil, fmt.Errorf("the result: %w", err)
	}
	return one(Dense(dt, shape...))
}

func same(o *Op) ([]*Type, error) { return one(o.In(0).AsDense()) }

// agree checks that all operands have the first one's dtype and shape.
func agree(o *Op) error {
	a := o.In(0)
	for _, b := range o.Ins()[1:] {
		if a.DType != b.DType {
			return badDType("operands of dtypes %s and %s", a.DType, b.DType)
		}
		if !a.SameShape(b) {
			return fmt.Errorf("operands of shapes %v and %v", a.shape, b.shape)
		}
	}
	return nil
}

func equal(o *Op) ([]*Type, error) {
	if err := agree(o); err != nil {
		return nil, err
	}
	return same(o)
}

func compare(o *Op) ([]*Type, error) {
	if err := agree(o); err != nil {
		return nil, err
	}
	return one(o.In(0).As(dtype.Bool))
}

// given is the rule of ops whose result type is an attribute.
func given(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	if c := table[o.Code].class; !c.has(o.Attr.Out.DType) {
		return nil, badDType("needs %s, got %s", classNames[c], o.Attr.Out.DType)
	}
	return one(o.Attr.Out)
}

func (o *Op) wantOut() error {
	if o.Attr.Out == nil {
		return fmt.Errorf("the result type is missing")
	}
	return nil
}

func inferReshape(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	x, y := o.In(0), o.Attr.Out
	if x.size != y.size {
		return nil, fmt.Errorf("%v has %d elements, %v has %d", x.shape, x.size, y.shape, y.size)
	}
	strides, ok := ReshapeStrides(x, y.shape)
	if !ok {
		return nil, fmt.Errorf("%s has no view of shape %v", x, y.shape)
	}
	return one(Strided(x.DType, y.shape, strides))
}

func inferPermute(o *Op) ([]*Type, error) {
	x := o.In(0)
	n := x.Rank()
	var shape, strides [MaxRank]int
	seen := 0
	for i := range n {
		d := int(o.Attr.Dims[i])
		if d < 0 || d >= n || seen>>d&1 == 1 {
			return nil, fmt.Errorf("%v is no permutation of %d dimensions", o.Attr.Dims[:n], n)
		}
		seen |= 1 << d
		shape[i], strides[i] = x.shape[d], x.strides[d]
	}
	return one(Strided(x.DType, shape[:n], strides[:n]))
}

func inferExpand(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	x, y := o.In(0), o.Attr.Out
	off := y.Rank() - x.Rank()
	if off < 0 {
		return nil, fmt.Errorf("%v to fewer dimensions %v", x.shape, y.shape)
	}
	strides := make([]int, y.Rank())
	for i, d := range x.shape {
		switch {
		case d == y.shape[off+i]:
			strides[off+i] = x.strides[i]
		case d != 1:
			return nil, fmt.Errorf("%v does not broadcast to %v", x.shape, y.shape)
		}
	}
	return one(Strided(x.DType, y.shape, strides))
}

func inferSlice(o *Op) ([]*Type, error) {
	x := o.In(0)
	axis, start, n, step := int(o.Attr.Axis), int(o.Attr.Dims[0]), int(o.Attr.Dims[1]), int(o.Attr.Dims[2])
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	if step < 1 || start < 0 || n < 0 || n > 0 && start+(n-1)*step >= x.shape[axis] {
		return nil, fmt.Errorf("%d elements from %d in steps of %d of a dimension of %d", n, start, step, x.shape[axis])
	}
	var shape, strides [MaxRank]int
	copy(shape[:], x.shape)
	copy(strides[:], x.strides)
	shape[axis], strides[axis] = n, x.strides[axis]*step
	return one(Strided(x.DType, shape[:x.Rank()], strides[:x.Rank()]))
}

func (o *Op) wantAxis(x *Type) error {
	if a := int(o.Attr.Axis); a < 0 || a >= x.Rank() {
		return fmt.Errorf("dimension %d of a value with %d", a, x.Rank())
	}
	return nil
}

func inferCopy(o *Op) ([]*Type, error) {
	if o.Attr.Out == nil {
		return same(o)
	}
	if x, y := o.In(0), o.Attr.Out; x.DType != y.DType || !x.SameShape(y) {
		return nil, fmt.Errorf("%s into %s", x, y)
	}
	return one(o.Attr.Out)
}

func inferCast(o *Op) ([]*Type, error) {
	if !o.Attr.DType.Valid() {
		return nil, badDType("%s is no dtype", o.Attr.DType)
	}
	return one(o.In(0).As(o.Attr.DType))
}

func inferWhere(o *Op) ([]*Type, error) {
	c, x, y := o.In(0), o.In(1), o.In(2)
	if c.DType != dtype.Bool {
		return nil, badDType("the condition is %s, not bool", c.DType)
	}
	if x.DType != y.DType || !x.SameShape(y) || !c.SameShape(x) {
		return nil, fmt.Errorf("operands %s, %s and %s", c, x, y)
	}
	return one(x.AsDense())
}

func inferReduce(o *Op) ([]*Type, error) {
	x, axes := o.In(0), o.Attr.Axes
	if int(axes)>>x.Rank() != 0 {
		return nil, fmt.Errorf("dimensions %b of a value with %d", axes, x.Rank())
	}
	var shape [MaxRank]int
	n := 0
	for i, d := range x.shape {
		if axes>>i&1 == 0 {
			shape[n] = d
			n++
			continue
		}
		if d == 0 && o.Code != Sum && o.Code != Prod && x.size == 0 {
			return nil, fmt.Errorf("dimension %d of %v is empty: there is no extreme value", i, x.shape)
		}
		if o.Attr.Keep {
			shape[n] = 1
			n++
		}
	}
	return one(Dense(x.DType, shape[:n]...))
}

func inferArg(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	if x.shape[o.Attr.Axis] == 0 {
		return nil, fmt.Errorf("dimension %d of %v is empty", o.Attr.Axis, x.shape)
	}
	r := New(Sum, Attr{Axes: 1 << o.Attr.Axis, Keep: o.Attr.Keep}, x)
	out, err := inferReduce(&r)
	if err != nil {
		return nil, err
	}
	return one(out[0].As(dtype.I64))
}

func inferAlong(o *Op) ([]*Type, error) {
	if err := o.wantAxis(o.In(0)); err != nil {
		return nil, err
	}
	return same(o)
}
