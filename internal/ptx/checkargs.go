package ptx

import (
	"slices"
	"strconv"
	"strings"
)

// operands checks the operands of an instruction against the alternatives of its form.
func (c *checker) operands(in *Inst, k *checked) {
	var best *Error
	for _, alt := range k.alts {
		e := c.match(in, k, alt)
		if e == nil {
			c.copySize(in)
			return
		}
		if best == nil || e.Text != "" && best.Text == "" {
			best = e
		}
	}
	if best.Text == "" {
		best.Text = in.String()
	}
	c.report(best)
}

// copySize checks the source size of cp.async, which may not exceed the copy's.
func (c *checker) copySize(in *Inst) {
	if in.Op != "cp" || len(in.Args) < 4 {
		return
	}
	size, ok1 := in.Args[2].(*Imm)
	source, ok2 := in.Args[3].(*Imm)
	if ok1 && ok2 && !in.Has("L2::cache_hint") && source.Bits > size.Bits {
		c.report(&Error{Pos: source.Pos, Text: strconv.FormatUint(source.Bits, 10), Msg: "source size larger than the copy", Want: "at most " + strconv.FormatUint(size.Bits, 10)})
	}
}

// match compares operands with one signature. The error has no text if their number is wrong.
func (c *checker) match(in *Inst, k *checked, specs []argSpec) *Error {
	args := in.Args
	for i := range specs {
		s := &specs[i]
		if !s.present(k.words) {
			continue
		}
		if len(args) == 0 {
			if s.optional {
				continue
			}
			return &Error{Pos: in.Pos, Msg: "too few operands", Want: strconv.Itoa(len(specs))}
		}
		if s.since.met(c.m) != "" || !c.arg(args[0], s, k, i) {
			return c.badOperand(in, args[0], s, k, len(in.Args)-len(args)+1)
		}
		args = args[1:]
	}
	if len(args) > 0 {
		return &Error{Pos: args[0].Position(), Msg: "too many operands", Want: strconv.Itoa(len(in.Args) - len(args))}
	}
	return nil
}

func (c *checker) badOperand(in *Inst, o Operand, s *argSpec, k *checked, number int) *Error {
	w := &printer{}
	w.operand(o)
	e := &Error{Pos: o.Position(), Text: w.String(), Msg: "bad operand " + strconv.Itoa(number) + " of " + in.Name(), Want: s.want(k)}
	if lack := s.since.met(c.m); lack != "" {
		e.Msg += ", which " + lack + ","
		e.Want = ""
	}
	if r, ok := o.(*Reg); ok && r.Sel != "" && c.f.Regs[r.ID].Vec == 0 && strings.HasPrefix(r.Name, "%") && SpecialType(r.Name[1:]+"."+r.Sel) != NoType {
		e.Msg += ", since " + r.Name + " is the register declared in line " + strconv.Itoa(c.f.Body.declared(r.Name).Line) + " and hides the special one:"
		e.Want = "another name for it"
	}
	return e
}

// declared is where the block or one in it declares a register; zero if none does.
func (b *Block) declared(name string) Pos {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Block:
			if at := s.declared(name); at != (Pos{}) {
				return at
			}
		case *RegDecl:
			for _, n := range s.Names {
				if n.Name == name {
					return s.Pos
				}
			}
		}
	}
	return Pos{}
}

// want describes what an operand may be.
func (s *argSpec) want(k *checked) string {
	reg := "a register for ." + s.t.String()
	if s.count > 0 {
		return strconv.Itoa(s.count) + " registers for ." + s.t.String() + " in braces"
	}
	switch s.role {
	case 'm':
		return "an address [register + integer], or of a variable in the instruction's state space"
	case 'L':
		return "a label"
	case 'b':
		return "the address of an mbarrier in shared memory"
	case 'M':
		return "a tensor map with " + strconv.Itoa(dims(k.words)) + " coordinates, [map, {c0, …}]"
	case 'O':
		return "the offsets of im2col, " + strconv.Itoa(max(dims(k.words)-2, 0)) + " registers for .u16 in braces"
	case 'K':
		return "a register for .b16 with the mask of blocks"
	case 'h':
		return "a 64-bit register with the cache policy"
	case 'p':
		return "a predicate"
	case 'P':
		return "a predicate register"
	case 'Q':
		return "a predicate p, or two p|q"
	case 'x':
		return "a register d, or with a predicate d|p"
	case 'X':
		return "a register with a predicate, d|p"
	case 'i':
		return s.wantImmediate()
	case 'k', 'u':
		return "2 or 4 registers in braces that make up ." + s.t.String()
	case 'v', 'w':
		if n := k.vecLen(); n > 1 {
			return strconv.Itoa(n) + " registers for ." + s.t.String() + " in braces"
		}
		return reg
	case 'd', 'c', 'r':
		return reg
	case 'D':
		return reg + " or _"
	case 'a':
		return reg + " or a variable of that space"
	case 'S':
		return reg + ", an immediate, a special register or a variable"
	}
	if s.ranged() {
		return "a register, or an immediate in range"
	}
	return reg + " or an immediate"
}

func (s *argSpec) wantImmediate() string {
	switch s.typ {
	case "cg":
		return "16"
	case "ca":
		return "4, 8 or 16"
	case "128":
		return "128"
	case "event":
		return "0 to 15"
	case "mask":
		return "a mask of 16 events"
	case "power":
		return "a power of two"
	case "bit":
		return "0 or 1"
	case "ord":
		return "a dimension from 0 to 4"
	case "nreg":
		return "a multiple of 8 from 24 to 256"
	case "sign":
		return "1 or -1"
	}
	return "an integer"
}

// arg checks operand i.
func (c *checker) arg(o Operand, s *argSpec, k *checked, i int) bool {
	if s.count > 0 {
		return c.list(o, s, k)
	}
	switch s.role {
	case 'm':
		return c.addr(o, k, i)
	case 'b':
		return c.addrIn(o, Shared)
	case 'M':
		return c.tensor(o, k)
	case 'O':
		return c.offsets(o, dims(k.words)-2)
	case 'K':
		return c.reg(o, B16, false) || immFits(o, U16)
	case 'L':
		return isA[*Label](o)
	case 'h':
		return c.reg(o, B64, false) || immFits(o, U64)
	case 'p':
		return c.predicate(o)
	case 'P', 'Q', 'x', 'X':
		return c.destination(o, s)
	case 'i':
		return immediate(o, s)
	case 'k', 'u':
		return c.pack(o, s)
	case 'v', 'w':
		return c.memoryValue(o, s, k)
	}
	return c.scalar(o, s, k)
}

func isA[T Operand](o Operand) bool {
	_, ok := o.(T)
	return ok
}

// scalar checks a register or an immediate.
func (c *checker) scalar(o Operand, s *argSpec, k *checked) bool {
	if r, ok := o.(*Reg); ok && s.strict() && c.f.Regs[r.ID].Type == F16x2 {
		return false
	}
	switch s.role {
	case 'd', 'r':
		return c.reg(o, s.t, false)
	case 'c':
		return c.reg(o, s.t, true)
	case 'e':
		return c.reg(o, s.t, true) || immFits(o, s.t) || convertible(o, k)
	case 'D':
		return isA[*Sink](o) || !s.sink && c.reg(o, s.t, false)
	case 'a':
		return c.reg(o, s.t, false) || isVariable(o) && spaceFits(o.(*Sym).Var.Space, k, 0) || immFits(o, s.t)
	case 'S':
		return c.reg(o, s.t, false) || immFits(o, s.t) || c.movable(o, s.t)
	}
	if s.ranged() {
		return c.reg(o, s.t, false) || rangedImm(o, s.typ)
	}
	return c.reg(o, s.t, false) || immFits(o, s.t)
}

// strict: an operand that does not take a .f16x2 register for an integer.
func (s *argSpec) strict() bool { return s.typ == "i32" || s.ranged() }

// ranged: an operand whose immediates have a range.
func (s *argSpec) ranged() bool { return s.typ == "bar" || s.typ == "threads" || s.typ == "parity" }

// rangedImm: there are 16 barriers, whole warps take part in them, and a phase has parity 0 or 1.
func rangedImm(o Operand, what string) bool {
	imm, ok := o.(*Imm)
	if !ok || imm.Kind > ImmUint {
		return false
	}
	switch what {
	case "bar":
		return imm.Bits < 16
	case "parity":
		return imm.Bits < 2
	}
	return imm.Bits%32 == 0
}

func isVariable(o Operand) bool {
	s, ok := o.(*Sym)
	return ok && s.Var != nil
}

// movable is what only mov takes: special registers, and addresses of variables and functions.
func (c *checker) movable(o Operand, t Type) bool {
	switch o := o.(type) {
	case *Special:
		return specialNeed(o.Name).met(c.m) == "" && !vectorSpecial(o.Name) && (RegInfo{Type: SpecialType(o.Name)}.fits(t) || oldWidth(o.Name, t))
	case *Sym:
		return t.Kind() != KindFloat
	}
	return false
}

// oldWidth: registers that older versions of PTX had in other widths can be moved in those as well.
func oldWidth(name string, t Type) bool {
	if t.Kind() == KindFloat || t == Pred {
		return false
	}
	base, _, _ := strings.Cut(name, ".")
	switch base {
	case "tid", "ntid", "ctaid", "nctaid":
		return t.Bits() == 16
	case "gridid":
		return t.Bits() == 16 || t.Bits() == 32
	}
	return false
}

// convertible is a special register that a conversion of integers takes: one that is not narrower.
func convertible(o Operand, k *checked) bool {
	s, ok := o.(*Special)
	if !ok || vectorSpecial(s.Name) || slices.Contains(k.words, "pack") {
		return false
	}
	types := typeWords(k.words)
	float := slices.ContainsFunc(types, func(t Type) bool { return t.Kind() == KindFloat })
	return len(types) == 2 && !float && SpecialType(s.Name).Bits() >= types[1].Bits()
}

// reg checks a register against a type; wide lets it be wider, as loads, stores and conversions do.
func (c *checker) reg(o Operand, t Type, wide bool) bool {
	r, ok := o.(*Reg)
	if !ok {
		return false
	}
	info := &c.f.Regs[r.ID]
	if info.Vec != 0 != (r.Sel != "") {
		return false
	}
	return info.fits(t) || wide && info.holds(t)
}

// fits: same width, and the same family or one of the two untyped. A .f16x2 register passes for an integer.
func (r RegInfo) fits(t Type) bool {
	if r.Type == Pred || t == Pred || r.Type.Bits() != t.Bits() {
		return r.Type == t
	}
	rk, tk := r.Type.Kind(), t.Kind()
	if r.Type == F16x2 && tk != KindFloat {
		return true
	}
	return rk == KindBits || tk == KindBits || rk != KindFloat && tk != KindFloat || r.Type == t
}

// holds: a register that is wider than an untyped value, or untyped itself, or an integer for an integer.
func (r RegInfo) holds(t Type) bool {
	if r.Type == Pred || t == Pred || r.Type.Bits() <= t.Bits() {
		return false
	}
	rk, tk := r.Type.Kind(), t.Kind()
	return rk == KindBits || tk == KindBits || rk != KindFloat && tk != KindFloat
}

// immFits: integers for integer types, floats for float types of 32 and 64 bits, either for untyped ones.
func immFits(o Operand, t Type) bool {
	imm, ok := o.(*Imm)
	if !ok {
		return false
	}
	float := imm.Kind >= ImmF32
	switch t {
	case F32, F64:
		return float
	case B32:
		return !float || imm.Kind == ImmF32
	case B64:
		return !float || imm.Kind == ImmF64
	}
	return !float && t.Kind() != KindFloat
}

func (c *checker) predicate(o Operand) bool {
	switch o := o.(type) {
	case *Not:
		return c.reg(o.X, Pred, false)
	case *Imm:
		return o.Kind <= ImmUint
	}
	return c.reg(o, Pred, false)
}

// destination checks predicates and results with a predicate.
func (c *checker) destination(o Operand, s *argSpec) bool {
	pred := func(o Operand) bool { return isA[*Sink](o) || c.reg(o, Pred, false) }
	pair, paired := o.(*Pair)
	switch s.role {
	case 'P':
		return c.reg(o, Pred, false)
	case 'Q':
		return paired && pred(pair.A) && pred(pair.B) || !paired && pred(o)
	case 'x':
		return paired && c.result(pair.A, s) && pred(pair.B) || c.result(o, s)
	}
	return paired && (c.result(pair.A, s) || isA[*Sink](pair.A)) && pred(pair.B)
}

// result checks the register of a result that may have a predicate.
func (c *checker) result(o Operand, s *argSpec) bool {
	return c.reg(o, s.t, false) && !(s.strict() && c.f.Regs[o.(*Reg).ID].Type == F16x2)
}

func immediate(o Operand, s *argSpec) bool {
	imm, ok := o.(*Imm)
	if !ok || imm.Kind > ImmUint {
		return false
	}
	switch s.typ {
	case "cg":
		return imm.Bits == 16
	case "ca":
		return imm.Bits == 4 || imm.Bits == 8 || imm.Bits == 16
	case "128":
		return imm.Bits == 128
	case "event":
		return imm.Bits < 16
	case "mask":
		return imm.Bits < 1<<16
	case "bit":
		return imm.Bits < 2
	case "ord":
		return imm.Bits < 5
	case "nreg":
		return imm.Bits >= 24 && imm.Bits <= 256 && imm.Bits%8 == 0
	case "sign":
		return imm.Int() == 1 || imm.Int() == -1
	case "power":
		return imm.Bits > 0 && imm.Bits&(imm.Bits-1) == 0
	}
	return true
}

// list checks {a, b, …} of s.count elements.
func (c *checker) list(o Operand, s *argSpec, k *checked) bool {
	v, ok := o.(*Vec)
	if !ok || len(v.Elems) != s.count {
		return false
	}
	for _, e := range v.Elems {
		if !c.scalar(e, s, k) {
			return false
		}
	}
	return true
}

// pack checks the vector of a mov that packs ('k') or unpacks ('u') a register.
func (c *checker) pack(o Operand, s *argSpec) bool {
	v, ok := o.(*Vec)
	if !ok || len(v.Elems) != 2 && len(v.Elems) != 4 {
		return false
	}
	part := bitsType(s.t.Bits() / len(v.Elems))
	for _, e := range v.Elems {
		if !c.reg(e, part, false) && !(s.role == 'u' && isA[*Sink](e)) && !(s.role == 'k' && immFits(e, part)) {
			return false
		}
	}
	return true
}

func bitsType(bits int) Type {
	switch bits {
	case 8:
		return B8
	case 16:
		return B16
	case 32:
		return B32
	case 64:
		return B64
	}
	return NoType
}

// vecLen is 2, 4 or 8 for a form with .v2, .v4 or .v8, else 1.
func (k *checked) vecLen() int {
	for _, w := range k.words {
		if len(w) == 2 && w[0] == 'v' {
			return int(w[1] - '0')
		}
	}
	return 1
}

// memoryValue checks what a load writes ('v') or a store reads ('w').
func (c *checker) memoryValue(o Operand, s *argSpec, k *checked) bool {
	n := k.vecLen()
	v, list := o.(*Vec)
	if !list {
		return n == 1 && c.memoryElem(o, s)
	}
	if len(v.Elems) != n {
		return false
	}
	for _, e := range v.Elems {
		if !c.memoryElem(e, s) && !(s.role == 'v' && isA[*Sink](e)) {
			return false
		}
	}
	return true
}

func (c *checker) memoryElem(o Operand, s *argSpec) bool {
	return c.reg(o, s.t, true) || s.role == 'w' && immFits(o, s.t)
}

// addr checks a memory operand: an integer register, or a variable of the instruction's state space. Addresses that are
// immediates are for .local only.
func (c *checker) addr(o Operand, k *checked, i int) bool {
	a, ok := o.(*Addr)
	if !ok || len(a.Rest) > 0 {
		return false
	}
	switch base := a.Base.(type) {
	case *Reg:
		t := c.f.Regs[base.ID].Type
		kind := t.Kind()
		return base.Sel == "" && t.Bits() >= 32 && t.Bits() <= 64 && kind != KindFloat && kind != KindPred
	case *Sym:
		return base.Var != nil && spaceFits(base.Var.Space, k, i)
	}
	return slices.Contains(k.words, "local")
}

// addrIn is addr for an operand whose space the form does not say.
func (c *checker) addrIn(o Operand, space Space) bool {
	return c.addr(o, &checked{words: []string{space.String()}}, 0)
}

// tensor checks a tensor map with its coordinates.
func (c *checker) tensor(o Operand, k *checked) bool {
	a, ok := o.(*Addr)
	if !ok || len(a.Rest) != 1 {
		return false
	}
	v, ok := a.Rest[0].(*Vec)
	if !ok || len(v.Elems) != dims(k.words) || !c.addr(&Addr{Base: a.Base, Off: a.Off}, &checked{}, 0) {
		return false
	}
	for _, e := range v.Elems {
		if !c.reg(e, S32, false) && !immFits(e, S32) {
			return false
		}
	}
	return true
}

// offsets checks those of im2col, one for each dimension between the channels and the images.
func (c *checker) offsets(o Operand, n int) bool {
	v, ok := o.(*Vec)
	if !ok || len(v.Elems) != n {
		return false
	}
	for _, e := range v.Elems {
		if !c.reg(e, U16, false) && !immFits(e, U16) {
			return false
		}
	}
	return true
}

// spaceFits compares a variable's space with that of operand i; an instruction without a space takes what has a generic
// address.
func spaceFits(space Space, k *checked, i int) bool {
	var spaces []Space
	for _, w := range k.words {
		if s, ok := spaceOf(w); ok {
			spaces = append(spaces, s)
		}
	}
	if len(spaces) == 0 {
		return space != Param && space != ConstSpace
	}
	want := spaces[min(i, len(spaces)-1)]
	if len(spaces) == 1 {
		want = spaces[0]
	}
	if want == SharedCluster {
		return space == Shared
	}
	return space == want
}
