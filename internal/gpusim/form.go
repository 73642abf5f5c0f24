package gpusim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// lane is what an instruction does for one lane: from the bits of up to four operands to the bits of the result. Bits
// above the operand's type are unspecified going in and dropped coming out.
type lane func(a, b, c, d uint64) uint64

// form is the arithmetic of one instruction.
type form struct {
	dst ptx.Type
	src []ptx.Type
	f   lane
}

// unsupported is the error of Load for what is not simulated.
type unsupported struct {
	pos  ptx.Pos
	inst string
	why  string
}

func (u *unsupported) Error() string {
	return fmt.Sprintf("gpusim: PTX line %d: %s is not supported: %s", u.pos.Line, u.inst, u.why)
}

func notSupported(in *ptx.Inst, format string, args ...any) error {
	return &unsupported{in.Pos, in.Name(), fmt.Sprintf(format, args...)}
}

// allow refuses modifiers that are neither types nor listed.
func allow(in *ptx.Inst, mods string) error {
	list := strings.Fields(mods)
	for _, m := range in.Mods {
		if ptx.ParseType(m) == ptx.NoType && !slices.Contains(list, m) {
			return notSupported(in, "modifier .%s", m)
		}
	}
	return nil
}

// typed checks the modifiers and that the instruction has one type out of those listed.
func typed(in *ptx.Inst, mods, types string) (ptx.Type, error) {
	if err := allow(in, mods); err != nil {
		return 0, err
	}
	ts := in.Types()
	if len(ts) != 1 || !slices.Contains(strings.Fields(types), ts[0].String()) {
		return 0, notSupported(in, "wants one type of %s", types)
	}
	return ts[0], nil
}

// same is a form whose n operands and result have one type.
func same(t ptx.Type, n int, f lane) (form, error) {
	return form{t, slices.Repeat([]ptx.Type{t}, n), f}, nil
}

// modeOf reads the rounding modifier; to nearest without one.
func modeOf(in *ptx.Inst) rounding {
	for i, m := range []string{"rn", "rz", "rm", "rp", "rna"} {
		if in.Has(m) || i < 4 && in.Has(m+"i") {
			return rounding(i)
		}
	}
	return rn
}

// notSimulated is said of opcodes that a card has.
const notSimulated = "the simulator does not have this instruction"

// formOf finds the arithmetic of an instruction by its opcode.
func formOf(in *ptx.Inst) (form, error) {
	if build := forms[in.Op]; build != nil {
		return build(in)
	}
	return form{}, notSupported(in, notSimulated)
}

// hasForm reports whether an opcode is plain arithmetic: operands in, one result out.
func hasForm(op string) bool { return forms[op] != nil }

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
