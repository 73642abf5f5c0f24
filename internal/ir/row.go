package ir

import "fmt"

// Row is all that the house knows of an op but its kernels: it is declared once, beside its code, in the file of its
// group (ops_*.go). What other packages have by hand is named here; what they can make follows from here.
type Row struct {
	Name    string // in the text form
	Group   Group
	Class   Class   // dtypes of the first operand, or of the result where there are no operands
	Strides Strides // of operands
	Params  int     // launch parameters
	Fused   bool    // it has a lowering, by hand in package lower or, where there is one, from Value

	// Value is the result of an elementwise op of a floating dtype as an expression (see [Expr]) of its operands and
	// parameters. From it follow the lowering, and the reference and the kernels of engines where those have none by hand.
	Value    string
	ByHand   bool // the reference and the engines have it by hand all the same
	Gradient Gradient
	Rule     *Rule // of an optimizer's update; nil: it has none, or is by hand

	Autocast  Autocast
	keeps     uint8 // operands, a bit each, that [CastLow] leaves in f32
	Tolerance Tolerance

	// What tests keep to.
	Domain [3]Domain // of each operand
	Kink   Kink      // where an elementwise op has no derivative
	Try    []Params  // parameters to try

	min, max int // operands; max 0: as many as min
	infer    func(o *Op) ([]*Type, error)
	reads    reads
	flops    func(o *Op, out []*Type) int64 // nil: none, or as many per element as Value has steps
	takes    bool                           // of the first operand it reads only what the result has
}

const many = 1 << 30 // operands: no limit

// Group is what a kind of ops has in common for those who run them.
type Group uint8

// The groups.
const (
	Views       Group = 1 + iota // another type of the same storage; never launched
	Creation                     // no operands
	Movement                     // elements copied or converted
	Elementwise                  // element i of the result from elements i of the operands
	Reduction                    // along dimensions
	Products                     // sums of products over windows and matrices
	Indexing                     // elements taken, put or joined by places
	Rowwise                      // functions of rows: softmax, norms, losses, attention
	Updates                      // of parameters in place, and what they need
)

// Strides says which strides engines take of an op's operands.
type Strides uint8

// Operands with other strides are made row-major first.
const (
	RowMajor Strides = iota
	AnyStride
)

// Autocast says what a precision policy does with an op's floating operands.
type Autocast uint8

// Ops that no list names run in the dtype they are given.
const (
	CastNone        Autocast = iota
	CastLow                  // to the policy's dtype
	CastWide                 // to f32
	CastWideOnCards          // to f32 by PyTorch's CUDA list, not by its CPU list
)

// Gradient says how an op's gradient is made: by an expression for each operand, by a rule of package autograd, or not at
// all.
type Gradient struct {
	Of   []string // of the operands' names, out, and g, the gradient of the result; "" where there is none
	Rule string   // its name
	None string   // the reason
}

func slopes(of ...string) Gradient   { return Gradient{Of: of} }
func rule(name string) Gradient      { return Gradient{Rule: name} }
func noGradient(why string) Gradient { return Gradient{None: why} }

// Reasons to have no gradient.
const (
	noOperands = "has no operands"
	isBool     = "its result is bool"
	isIndices  = "its result is indices"
	isInteger  = "its operands are integers"
	isUpdate   = "an optimizer's update is not differentiated"
)

// Domain is where an operand of an elementwise op is tried.
type Domain uint8

// The domains.
const (
	Reals     Domain = iota
	Positives        // well above 0
	Fixed            // any, but without a gradient
	Inside           // between -1 and 1
	Above            // above 1
)

// Kink is where an elementwise op has no derivative, which comparisons with differences keep away from.
type Kink uint8

// The kinks.
const (
	Smooth Kink = iota
	AtZero      // of the first operand
	AtIntegers
	AtHalves
	AtBounds    // the launch parameters
	AtTies      // of the operands
	AtQuotients // where the operands' quotient is an integer
	AtPoles     // of the tangent
)

// Tolerance is the class of an op's accuracy, whose figures package conform has.
type Tolerance uint8

// The classes.
const (
	Exact Tolerance = 1 + iota
	Rounded
	Combined
	Elemental
	Powers
	Remainder
	Stepwise // of an expression: the errors of its steps, carried on
	Sums
	Factors
	Norms
	Softmaxes
	Attends
	Updated
	Coded
	RuleSteps // of a rule: as Stepwise
)

// rows are the ops of a file.
type rows map[Code]Row

// table has the row of every code; traits has of it what each dispatch asks for.
var (
	table  [codeCount]Row
	traits [1 << 8]trait
)

type trait uint8

const (
	isView trait = 1 << iota
	isFused
	anyStride
)

// An init function fills the table because shape rules read it.
func init() {
	for _, group := range []rows{viewRows, creationRows, elementwiseRows, reductionRows, productRows, indexRows, activationRows, functionRows, bitRows, rowwiseRows, updateRows} {
		for code, r := range group {
			if table[code].Name != "" {
				panic(fmt.Sprintf("ir: %s and %s are one code", r.Name, table[code].Name))
			}
			table[code] = r.complete()
			traits[code] = r.traits()
		}
	}
	for code := range table {
		if r := &table[code]; r.Value != "" && r.flops == nil {
			r.flops = perResult(steps(Code(code)))
		}
	}
}

// steps is the number of operations of a value; choosing is none.
func steps(code Code) (n int64) {
	e, err := code.ValueExpr(func(Code) bool { return false })
	if err != nil {
		panic("ir: " + code.String() + ": " + err.Error()) // a mistake in the row
	}
	for _, node := range e.Nodes() {
		if node.Code != Invalid && node.Code != Where {
			n++
		}
	}
	return n
}

// complete fills in what follows from other fields.
func (r Row) complete() Row {
	r.max = max(r.max, r.min)
	if r.Group == Elementwise && r.infer == nil {
		r.infer = same
		if r.min > 1 {
			r.infer = equal
		}
	}
	if r.Value != "" {
		r.Fused = true
	}
	if r.Rule != nil {
		r.Group, r.Class, r.Fused, r.min, r.max, r.Params = Updates, Floats, true, 1, many, ruleParams+len(r.Rule.Settings)
		r.infer, r.flops, r.Gradient, r.Tolerance = inferRule, ruleFlops, noGradient(isUpdate), RuleSteps
	}
	return r
}

func (r *Row) traits() (t trait) {
	if r.Group == Views {
		t |= isView
	}
	if r.Fused || r.Value != "" || r.Rule != nil {
		t |= isFused
	}
	if r.Strides == AnyStride {
		t |= anyStride
	}
	return t
}

// Row is the code's row. The caller must not change it; that of an unknown code is empty.
func (c Code) Row() *Row {
	if c >= codeCount {
		return &table[Invalid]
	}
	return &table[c]
}

// KeepsWide reports whether [CastLow] leaves operand i in f32.
func (r *Row) KeepsWide(i int) bool { return r.keeps>>i&1 == 1 }

// OverAxes reports a reduction over any of the operand's dimensions.
func (r *Row) OverAxes() bool { return r.reads.fields&fieldAxes != 0 }

// Operands is the least and the largest number of operands; the largest is very large where there is no limit.
func (r *Row) Operands() (least, most int) { return r.min, r.max }

// View reports whether the op only makes another type of the same storage.
func (c Code) View() bool { return traits[c]&isView != 0 }

// Fused reports whether the op has a lowering to simpler ones.
func (c Code) Fused() bool { return traits[c]&isFused != 0 }

// AnyStride reports whether engines take operands of this code with any strides. Others are made row-major first.
func (c Code) AnyStride() bool { return traits[c]&anyStride != 0 }

// NumParams is the number of launch parameters of a code.
func (c Code) NumParams() int { return c.Row().Params }

// String is the code's name in the text form.
func (c Code) String() string {
	if name := c.Row().Name; name != "" {
		return name
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}
