package ptx

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Candidate is a form that the grammar can spell, valid or not, as an instruction to show to ptxas.
type Candidate struct {
	Family string // opcode, variant and facet: "ld#0/2"
	Key    string // the words of the facet, joined by dots
	Text   string // an instruction of that form, with operands of CandidateDeclarations
}

// CandidateDeclarations declares what Candidate.Text uses: module scope first, then the body's. Only the registers
// %b128_0 … %b128_139, which need PTX 8.3, are left out.
func CandidateDeclarations() (module, body string) {
	module = ".extern .shared .align 16 .b8 vshared[];\n.global .align 16 .b8 vglobal[64];\n.const .align 16 .b8 vconst[64];\n"
	var b strings.Builder
	for _, t := range []Type{Pred, B8, B16, B32, B64, U8, U16, U32, U64, S16, S32, S64, F16, F16x2, F32, F64} {
		fmt.Fprintf(&b, ".reg .%s %%%s_<%d>;\n", t, t, candidateRegisters)
	}
	b.WriteString(".local .align 16 .b8 vlocal[64];\n.param .align 16 .b8 vfunc[64];\n")
	return module, b.String()
}

// candidateRegisters is how many registers of each type there are.
const candidateRegisters = 140

// Candidates enumerates the forms of the grammar, opcode by opcode. Those of a call and a branch table need more than one
// statement and are left out.
func Candidates() iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		g := grammar()
		ops := make([]string, 0, len(g))
		for op := range g {
			ops = append(ops, op)
		}
		sort.Strings(ops)
		for _, op := range ops {
			for _, v := range g[op] {
				if op != "call" && op != "brx" && !v.candidates(yield) {
					return
				}
			}
		}
	}
}

func (v *variant) candidates(yield func(Candidate) bool) bool {
	for facet := 1; facet <= v.facetCount(); facet++ {
		words := make([]string, len(v.slots))
		if !v.fill(words, 0, facet, yield) {
			return false
		}
	}
	return true
}

// fill tries every word in slot i and those after it; slots outside the facet get their default.
func (v *variant) fill(words []string, i, facet int, yield func(Candidate) bool) bool {
	if i == len(words) {
		c := Candidate{Family: v.family(facet), Key: v.key(words, facet)}
		text, ok := v.sample(words)
		c.Text = text
		return !ok || yield(c)
	}
	s := &v.slots[i]
	choices := s.words
	if s.optional {
		choices = append([]string{""}, choices...)
	}
	if !s.in(facet) {
		choices = choices[:1]
	}
	for _, w := range choices {
		words[i] = w
		if !v.fill(words, i+1, facet, yield) {
			return false
		}
	}
	return true
}

func (v *variant) family(facet int) string {
	return v.op + "#" + strconv.Itoa(v.index) + "/" + strconv.Itoa(facet)
}

// sample spells a form with operands of its first signature that fits.
func (v *variant) sample(words []string) (string, bool) {
	text := v.op
	for _, w := range words {
		if w != "" {
			text += "." + w
		}
	}
	alts := v.operandsOf(words)
	if len(alts) == 0 {
		return "", false
	}
	var ops []string
	for i, a := range alts[0] {
		if a.optional || !a.present(words) {
			continue
		}
		s, ok := v.sampleArg(a, words, i)
		if !ok {
			return "", false
		}
		if s != "" {
			ops = append(ops, s)
		}
	}
	return text + " " + strings.Join(ops, ", ") + ";", true
}

func (v *variant) sampleArg(a argSpec, words []string, i int) (string, bool) {
	t := a.resolve(words)
	switch a.role {
	case 'm':
		return sampleAddr(v.op, words, i), true
	case 'L':
		return "Target", true
	case 'b':
		return "[vshared]", true
	case 'M':
		return "[%b64_2, " + sampleList("%b32_", dims(words)) + "]", true
	case 'O':
		return sampleList("%b16_", dims(words)-2), dims(words) > 2
	case 'K':
		return "%b16_3", true
	case 'h':
		return "%b64_1", true
	case 'p', 'P', 'Q':
		return "%pred_" + strconv.Itoa(i), true
	case 'i':
		return sampleImm(a), true
	case 'D':
		if a.sink {
			return "_", true
		}
	}
	if a.typ == "bar" {
		return "1", true
	}
	if a.typ == "threads" {
		return "64", true
	}
	if t == NoType {
		return "", false
	}
	reg := "%" + sampleReg(t).String() + "_"
	if a.role == 'x' && v.op == "match" || a.role == 'X' {
		return reg + strconv.Itoa(i) + "|%pred_9", true
	}
	return sampleVec(a, words, reg, i), true
}

// sampleVec spells a register or as many as the operand takes.
func sampleVec(a argSpec, words []string, reg string, i int) string {
	n := a.count
	if a.role == 'v' || a.role == 'w' {
		for _, w := range words {
			if len(w) == 2 && w[0] == 'v' {
				n = int(w[1] - '0')
			}
		}
	}
	if n == 0 {
		return reg + strconv.Itoa(i)
	}
	list := make([]string, n)
	for j := range list {
		list[j] = reg + strconv.Itoa((i*32+j)%candidateRegisters)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// sampleList spells registers 0 to n-1.
func sampleList(reg string, n int) string {
	return sampleVec(argSpec{count: max(n, 1)}, nil, reg, 0)
}

func sampleImm(a argSpec) string {
	switch a.typ {
	case "sign", "bit", "ord", "field":
		return "1"
	case "cg":
		return "16"
	case "ca":
		return "4"
	case "event":
		return "8"
	}
	return "128"
}

// sampleReg is the type of register that holds an operand of type t.
func sampleReg(t Type) Type {
	switch {
	case t == Pred || t == F32 || t == F64 || t == B128:
		return t
	case t.Bits() <= 16:
		return B16
	case t.Bits() == 32:
		return B32
	}
	return B64
}

func sampleAddr(op string, words []string, i int) string {
	space := ""
	for _, w := range words {
		if s, ok := spaceOf(w); ok && (op != "cp" || i == 1) {
			space = s.String()
			if w == "param::func" || w == "param" && op == "st" {
				space = "func"
			}
			break
		}
	}
	if slices.Contains(words, "bulk") || op == "tensormap" {
		return sampleBulk(words, i)
	}
	switch {
	case op == "cp" && i == 0:
		return "[vshared]"
	case op == "cp":
		return "[vglobal]"
	case space == "param":
		return "[vparam]"
	case space == "" || space == "shared::cluster":
		return "[%b64_1]"
	}
	return "[v" + space + "]"
}

// sampleBulk is an address of operand i, whose space is the i-th that the form names, or the last.
func sampleBulk(words []string, i int) string {
	space := "global"
	for _, w := range words {
		if s, ok := spaceOf(w); ok {
			space = s.String()
			if i--; i < 0 {
				break
			}
		}
	}
	if space == "shared::cluster" {
		space = "shared"
	}
	return "[v" + space + "]"
}
