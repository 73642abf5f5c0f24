// Package arith is the arithmetic of PTX: what an instruction makes of the bits of one lane's operands. FormOf finds it by
// opcode and modifiers; vector.go has loops over whole warps for what kernels spend their time in.
package arith

import (
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Lane is what an instruction does for one lane: from the bits of up to four operands to the bits of the result. Bits
// above the operand's type are unspecified going in and dropped coming out.
type Lane func(a, b, c, d uint64) uint64

// form is the arithmetic of one instruction.
type form struct {
	Dst ptx.Type
	Src []ptx.Type
	F   Lane
}

// Allow refuses modifiers that are neither types nor listed.
func Allow(in *ptx.Inst, mods string) error {
	list := strings.Fields(mods)
	for _, m := range in.Mods {
		if ptx.ParseType(m) == ptx.NoType && !slices.Contains(list, m) {
			return simt.NotSupported(in, "modifier .%s", m)
		}
	}
	return nil
}

// Typed checks the modifiers and that the instruction has one type out of those listed.
func Typed(in *ptx.Inst, mods, types string) (ptx.Type, error) {
	if err := Allow(in, mods); err != nil {
		return 0, err
	}
	ts := in.Types()
	if len(ts) != 1 || !slices.Contains(strings.Fields(types), ts[0].String()) {
		return 0, simt.NotSupported(in, "wants one type of %s", types)
	}
	return ts[0], nil
}

// same is a form whose n operands and result have one type.
func same(t ptx.Type, n int, f Lane) (form, error) {
	return form{t, slices.Repeat([]ptx.Type{t}, n), f}, nil
}

// modeOf reads the rounding modifier; to nearest without one.
func modeOf(in *ptx.Inst) rounding {
	for i, m := range []string{"rn", "rz", "rm", "rp", "rna"} {
		if in.Has(m) || i < 4 && in.Has(m+"i") {
			return rounding(i)
		}
	}
	return RN
}

// NotSimulated is said of opcodes that a card has.
const NotSimulated = "the simulator does not have this instruction"

// FormOf finds the arithmetic of an instruction by its opcode.
func FormOf(in *ptx.Inst) (form, error) {
	if build := forms[in.Op]; build != nil {
		return build(in)
	}
	return form{}, simt.NotSupported(in, NotSimulated)
}

// HasForm reports whether an opcode is plain arithmetic: operands in, one result out.
func HasForm(op string) bool { return forms[op] != nil }

var forms map[string]func(in *ptx.Inst) (form, error)

func init() {
	forms = map[string]func(in *ptx.Inst) (form, error){
		"add": addForm, "sub": addForm, "mul": mulForm, "mad": madForm, "fma": fmaForm, "div": divForm, "rem": divForm,
		"mul24": mul24Form, "mad24": mul24Form, "sad": sadForm, "abs": signForm, "neg": signForm, "min": minForm, "max": minForm,
		"popc": countForm, "clz": countForm, "bfind": bfindForm, "fns": fnsForm, "brev": brevForm, "bfe": bfeForm, "bfi": bfiForm,
		"szext": szextForm, "bmsk": bmskForm, "dp4a": dotForm, "dp2a": dotForm,
		"and": logicForm, "or": logicForm, "xor": logicForm, "not": logicForm, "cnot": logicForm, "lop3": lop3Form,
		"shl": shiftForm, "shr": shiftForm, "shf": funnelForm, "prmt": prmtForm,
		"rcp": unaryFloatForm, "sqrt": unaryFloatForm, "rsqrt": unaryFloatForm, "sin": unaryFloatForm, "cos": unaryFloatForm,
		"lg2": unaryFloatForm, "ex2": unaryFloatForm, "tanh": unaryFloatForm, "copysign": copysignForm,
		"cvt": cvtForm, "slct": slctForm,
	}
}

// ImmBits is an immediate as the bits of a type: floats are converted, integers kept.
func ImmBits(x *ptx.Imm, t ptx.Type) uint64 {
	isFloat := x.Kind == ptx.ImmF32 || x.Kind == ptx.ImmF64
	switch {
	case x.Kind == ptx.ImmF32 && t.Bits() == 32, !isFloat && t.Kind() != ptx.KindFloat:
		return x.Bits
	case t == ptx.F64:
		return math.Float64bits(x.Float())
	case t == ptx.F32:
		return uint64(math.Float32bits(float32(x.Float())))
	case isFloat && FormatOf(t) != nil && !Packed(t):
		return FormatOf(t).Round(x.Float(), RN)
	}
	return x.Bits
}
