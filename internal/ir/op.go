package ir

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
)

// Act is an activation that a product may apply to its result.
type Act uint8

// The fused activations.
const (
	NoAct Act = iota
	ActReLU
	ActGELU
	ActGELUTanh
	ActSiLU
)

var actNames = [...]string{"none", "relu", "gelu", "gelu_tanh", "silu"}

// actCodes are the ops that the activations are, and those of their gradients.
var actCodes = [...][2]Code{ActReLU: {ReLU, ReLUGrad}, ActGELU: {GELU, GELUGrad}, ActGELUTanh: {GELUTanh, GELUTanhGrad}, ActSiLU: {SiLU, SiLUGrad}}

// Code is the elementwise op that an activation is; [Invalid] of [NoAct].
func (a Act) Code() Code { return actCodes[a][0] }

// GradCode is the op (x, g) that is an activation's gradient, (y, g) of [ActReLU]; [Invalid] of [NoAct].
func (a Act) GradCode() Code { return actCodes[a][1] }

// Acts are all activations, [NoAct] first.
func Acts() (list []Act) {
	for i := range actNames {
		list = append(list, Act(i))
	}
	return list
}

// String is the activation's name in the text form.
func (a Act) String() string { return actNames[a] }

// Code names an operation. Its meaning, operands, attributes and parameters are documented where it is declared, beside its
// [Row], and enforced by the shape rules; x, y, … are operands, p0, p1, … launch parameters (float64 bits unless said
// otherwise).
type Code uint8

// Invalid is no operation.
const Invalid Code = 0

// Attr specialises an op's kernel. What varies from launch to launch (a rate, a scale, a random key) is in [Params].
// Each code reads the fields that its comment names; the verifier rejects others that are set.
type Attr struct {
	Out    *Type          // result type, where operands do not determine it
	DType  dtype.DType    // Cast and CastAll; MatMul: f32 for 16-bit operands, if set; BiasGrad: of the sum; AddNorm and its gradient
	Axis   int8           // a dimension, never negative
	Axes   uint16         // reduced dimensions, bit i for dimension i
	Keep   bool           // reductions keep dimensions of size 1
	Causal bool           // Attention: position i sees up to i
	Act    Act            // Linear, BiasGrad, BatchNorm, BatchNormEval
	Flag   Flag           // SGD, AdamW, losses and their gradients, BatchNormGrad, Linear, Sort
	Dims   [MaxRank]int32 // small sizes, in the order that the code's comment gives

	Precision Precision // of a product of f32 operands: MatMul, Linear, convolutions and their gradients
}

// Flag selects a form of an op.
type Flag uint16

// The forms of SGD, AdamW, losses, BatchNormGrad, Linear and Sort.
const (
	Nesterov   Flag = 1 << iota // SGD looks ahead
	Momentum                    // SGD keeps a buffer per parameter
	Coupled                     // weight decay is added to the gradient (Adam), not to the weight (AdamW)
	Mean                        // one loss: the mean over the labels that are not ignored, whose number is a result too
	Residual                    // BatchNormGrad: the gradient of what was added is a result too
	Total                       // one loss: the sum, with the number of labels that are not ignored
	GradX                       // LinearCrossEntropy gives the gradient of x too
	GradW                       // and that of w
	Before                      // Linear gives what it applied its activation to, too
	Descending                  // Sort begins with the largest, LastAt takes the least
)

// Op is an operation as data: a code, its attributes and the types of its operands. Ops are comparable.
type Op struct {
	Code Code
	Attr Attr
	n    uint8
	in   [inline]*Type
	rest *list // all operand types, when there are more than inline
}

const inline = 4

// list is an interned list of types.
type list struct{ types []*Type }

var lists = struct {
	sync.Mutex
	byIDs map[string]*list
}{byIDs: map[string]*list{}}

// New makes an op over operand types. Verify or Infer tells whether it is a valid one.
func New(code Code, attr Attr, in ...*Type) Op {
	o := Op{Code: code, Attr: attr, n: uint8(min(len(in), inline+1))}
	if len(in) <= inline {
		copy(o.in[:], in)
		return o
	}
	o.rest = internList(in)
	return o
}

// internList returns the one list that holds these types. Lists are few (cat, multi-tensor updates); when they become
// many, the table starts over, which costs a kernel cache misses and nothing else.
func internList(in []*Type) *list {
	k := make([]byte, 0, 8*len(in))
	for _, t := range in {
		k = binary.LittleEndian.AppendUint64(k, t.id)
	}
	lists.Lock()
	defer lists.Unlock()
	if l := lists.byIDs[string(k)]; l != nil {
		return l
	}
	if len(lists.byIDs) >= 1<<12 {
		clear(lists.byIDs)
	}
	l := &list{types: slices.Clone(in)}
	lists.byIDs[string(k)] = l
	return l
}

// NumIn is the number of operands.
func (o *Op) NumIn() int {
	if o.rest != nil {
		return len(o.rest.types)
	}
	return int(o.n)
}

// In is the type of operand i.
func (o *Op) In(i int) *Type {
	if o.rest != nil {
		return o.rest.types[i]
	}
	if i >= int(o.n) {
		panic(fmt.Sprintf("ir: operand %d of %s, which has %d", i, o.Code, o.n))
	}
	return o.in[i]
}

// Ins returns the operand types. The caller must not change them.
func (o *Op) Ins() []*Type {
	if o.rest != nil {
		return o.rest.types
	}
	return o.in[:o.n]
}

// Hash mixes what usually tells ops apart. Equal ops have equal hashes.
func (o *Op) Hash() uint64 {
	const prime = 0x100000001b3
	h := uint64(o.Code) | uint64(o.Attr.Axes)<<8 | uint64(uint8(o.Attr.Axis))<<24 | uint64(o.Attr.DType)<<32 | uint64(o.Attr.Flag)<<40 | uint64(o.Attr.Act)<<56 | uint64(o.Attr.Precision)<<60
	for _, t := range o.Ins() {
		h = (h ^ t.id) * prime
	}
	if o.Attr.Out != nil {
		h = (h ^ o.Attr.Out.id) * prime
	}
	if o.Attr.Dims != [MaxRank]int32{} {
		for i := 0; i < MaxRank; i += 2 {
			h = (h ^ uint64(uint32(o.Attr.Dims[i]))<<32 ^ uint64(uint32(o.Attr.Dims[i+1]))) * prime
		}
	}
	return h ^ h>>29
}

// MaxParams is the number of launch parameters an op may have.
const MaxParams = 10

// Params are the scalars of one launch: float64 bits, or an integer where the code says so. A new value is no new
// kernel. N counts those that are set.
type Params struct {
	Value [MaxParams]uint64
	N     int
}

// Scalars makes parameters from numbers.
func Scalars(v ...float64) (p Params) {
	for i, f := range v {
		p.Value[i] = Float(f)
	}
	p.N = len(v)
	return p
}

// Integers makes parameters from integers, for the codes that say so.
func Integers(v ...int64) (p Params) {
	for i, n := range v {
		p.Value[i] = uint64(n)
	}
	p.N = len(v)
	return p
}

// ViewOffset is the distance, in elements, from the operand's first element to the view's.
func (o *Op) ViewOffset() int {
	if o.Code != Slice || o.In(0).Size() == 0 || o.Attr.Dims[1] == 0 {
		return 0
	}
	return int(o.Attr.Dims[0]) * o.In(0).Strides()[o.Attr.Axis]
}
