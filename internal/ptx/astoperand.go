package ptx

import "math"

// Operand is an argument of an instruction: *Reg, *Special, *Imm, *Sym, *Label, *Addr, *Vec, *Pair, *Not, *Neg, *Sink, *List.
type Operand interface {
	operand()
	Position() Pos
}

// Reg is a register. ID indexes Func.Regs.
type Reg struct {
	Pos  Pos
	Name string
	ID   int
	Sel  string // the part that is meant: "x" of a vector register, "b0" or "h1" of a video operand; mostly ""
}

// Special is a special register; Name is without "%" and with its component: "tid.x".
type Special struct {
	Pos  Pos
	Name string
}

// ImmKind says how an immediate was written.
type ImmKind uint8

// The kinds of immediates.
const (
	ImmInt  ImmKind = iota // signed 64 bit
	ImmUint                // unsigned 64 bit: suffix U, or too large for int64
	ImmF32                 // 0fXXXXXXXX
	ImmF64                 // 0dXXXXXXXXXXXXXXXX, or a decimal fraction
)

// Imm is an immediate; a constant expression is folded into one.
type Imm struct {
	Pos  Pos
	Kind ImmKind
	Bits uint64 // two's complement, or the IEEE bits (of a float32 in the low half)
}

// Int is the value of an integer immediate; a float is truncated.
func (i *Imm) Int() int64 {
	switch i.Kind {
	case ImmF32, ImmF64:
		return int64(i.Float())
	}
	return int64(i.Bits)
}

// Float is the value as a float64.
func (i *Imm) Float() float64 {
	switch i.Kind {
	case ImmF32:
		return float64(math.Float32frombits(uint32(i.Bits)))
	case ImmF64:
		return math.Float64frombits(i.Bits)
	case ImmUint:
		return float64(i.Bits)
	}
	return float64(int64(i.Bits))
}

// Sym is the address of a variable plus an offset, or a function (Var is nil then; see Module.Func).
type Sym struct {
	Pos  Pos
	Name string
	Off  int64
	Var  *Var
}

// Label is a place in the function: ID is that of the LabelDef, whose name may also name a Targets or a Prototype.
type Label struct {
	Pos  Pos
	Name string
	ID   int
}

// Addr is a memory operand [base+off]. Base is *Reg, *Sym or *Imm. Rest holds what follows in the brackets of a texture
// or tensor operand: coordinates and the like.
type Addr struct {
	Pos  Pos
	Base Operand
	Off  int64
	Rest []Operand
}

// Vec is a vector operand {a, b}.
type Vec struct {
	Pos   Pos
	Elems []Operand
}

// Pair is a destination with a predicate, d|p, or two predicates, p|q.
type Pair struct {
	Pos  Pos
	A, B Operand
}

// Not is a negated predicate operand !p.
type Not struct {
	Pos Pos
	X   Operand
}

// Neg is a negated register operand -r, which the video instructions take.
type Neg struct {
	Pos Pos
	X   Operand
}

// Sink is "_": the result is not kept.
type Sink struct {
	Pos Pos
}

// List is a list in parentheses, of a call.
type List struct {
	Pos   Pos
	Elems []Operand
}

func (*Reg) operand()     {}
func (*Special) operand() {}
func (*Imm) operand()     {}
func (*Sym) operand()     {}
func (*Label) operand()   {}
func (*Addr) operand()    {}
func (*Vec) operand()     {}
func (*Pair) operand()    {}
func (*Not) operand()     {}
func (*Neg) operand()     {}
func (*Sink) operand()    {}
func (*List) operand()    {}

// Position is where the operand starts.
func (o *Reg) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Special) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Imm) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Sym) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Label) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Addr) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Vec) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Pair) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Not) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Neg) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *Sink) Position() Pos { return o.Pos }

// Position is where the operand starts.
func (o *List) Position() Pos { return o.Pos }
