package ptx

import (
	"slices"
	"strconv"
	"strings"
)

// maxErrors bounds what Check reports of one module.
const maxErrors = 100

// targetSince gives the PTX version that first knew an architecture, measured with ptxas 12.9 and 13.4; the oldest that Check
// takes is sm_70.
var targetSince = map[string]Version{
	"sm_70": {6, 0}, "sm_72": {6, 1}, "sm_75": {6, 3}, "sm_80": {7, 0}, "sm_86": {7, 1}, "sm_87": {7, 4}, "sm_88": {9, 0}, "sm_89": {7, 8},
	"sm_90": {7, 8}, "sm_90a": {8, 0}, "sm_100": {8, 6}, "sm_100a": {8, 6}, "sm_100f": {8, 8}, "sm_101": {8, 6}, "sm_101a": {8, 6},
	"sm_101f": {8, 8}, "sm_103": {8, 8}, "sm_103a": {8, 8}, "sm_103f": {8, 8}, "sm_110": {9, 0}, "sm_110a": {9, 0}, "sm_110f": {9, 0},
	"sm_120": {8, 7}, "sm_120a": {8, 7}, "sm_120f": {8, 8}, "sm_121": {8, 8}, "sm_121a": {8, 8}, "sm_121f": {8, 8},
}

// formsUpTo is the last PTX version of which Check knows the instructions.
var formsUpTo = Version{8, 8}

type looseFamily struct {
	prefix string
	need   need
}

// looseFamilies are instructions whose forms the table does not list: they are told apart by prefix only. The simulator has
// none of them.
var looseFamilies = []looseFamily{
	{"wgmma.mma_async.sp", need{Version{8, 0}, Target{90, 'a'}, 90}},
	{"multimem", need{Version{8, 1}, Target{SM: 90}, 0}},
	{"red.async", need{Version{8, 1}, Target{SM: 90}, 0}},
	{"st.async", need{Version{8, 1}, Target{SM: 90}, 0}},
	{"st.bulk", need{Version{8, 6}, Target{SM: 100}, 0}},
	{"tensormap.replace.tile.swizzle_atomicity", need{Version{8, 6}, Target{100, 'a'}, 0}},
	{"clusterlaunchcontrol", need{Version{8, 6}, Target{SM: 100}, 0}},
	{"tcgen05", need{Version{8, 6}, Target{100, 'a'}, 110}},
	{"mma.sp", need{Version{7, 1}, Target{SM: 80}, 0}},
	{"mma.sp::ordered_metadata", need{Version{8, 5}, Target{SM: 80}, 0}},
	{"vadd", need{}}, {"vsub", need{}}, {"vabsdiff", need{}}, {"vmin", need{}}, {"vmax", need{}}, {"vshl", need{}}, {"vshr", need{}},
	{"vmad", need{}}, {"vset", need{}}, {"vadd2", need{}}, {"vsub2", need{}}, {"vavrg2", need{}}, {"vabsdiff2", need{}},
	{"vmin2", need{}}, {"vmax2", need{}}, {"vset2", need{}}, {"vadd4", need{}}, {"vsub4", need{}}, {"vavrg4", need{}},
	{"vabsdiff4", need{}}, {"vmin4", need{}}, {"vmax4", need{}}, {"vset4", need{}},
	{"tex", need{}}, {"tld4", need{}}, {"txq", need{}}, {"istypep", need{}},
	{"suld", need{}}, {"sust", need{}}, {"sured", need{}}, {"suq", need{}},
}

// bulkOfBlackwell are the modifiers of bulk copies that sm_90 lacks, whose forms the table does not list either.
var bulkOfBlackwell = map[string]bool{"cp_mask": true, "ignore_oob": true, "cta_group::1": true, "cta_group::2": true,
	"tile::gather4": true, "tile::scatter4": true, "im2col::w": true, "im2col::w::128": true}

// Check compares a module with what ptxas accepts: each instruction's form, the PTX version and target that it needs, and
// its operands. It returns the findings in source order, at most a hundred; nil means none. What depends on run-time values
// is not its affair. An instruction that it does not know, in a module of a later PTX version than it knows, may be right:
// the finding is marked as Newer.
func Check(m *Module) []*Error {
	c := &checker{m: m, known: map[string]*checked{}, funcs: map[string]*Func{}}
	c.module()
	for f := range m.Funcs() {
		if c.funcs[f.Name] == nil || f.Body != nil {
			c.funcs[f.Name] = f
		}
	}
	c.items()
	for f := range m.Funcs() {
		c.f = f
		if f.Body != nil {
			c.initialisers(f.Body)
		}
		for in := range f.Insts() {
			if len(c.errs) >= maxErrors {
				return c.errs
			}
			c.inst(in)
		}
	}
	return c.errs
}

type checker struct {
	m     *Module
	f     *Func
	errs  []*Error
	funcs map[string]*Func
	known map[string]*checked // by opcode with modifiers
	name  []byte              // the current opcode with modifiers; reused
}

// checked is what is known of an opcode with its modifiers.
type checked struct {
	bad   string // the finding, if there is one
	text  string
	want  string
	newer bool
	words []string
	alts  [][]argSpec // nil for a family that is not checked further
}

func (c *checker) report(e *Error) { c.errs = append(c.errs, e) }

func (c *checker) module() {
	at := Pos{1, 1}
	since, ok := targetSince[c.m.Target.String()]
	if !ok {
		c.report(&Error{Pos: at, Text: c.m.Target.String(), Msg: "unknown target", Want: "sm_70 or a later architecture"})
	} else if c.m.Version.Less(since) {
		c.report(&Error{Pos: at, Text: c.m.Target.String(), Msg: "target needs PTX " + since.String() + " or later"})
	}
	if c.m.AddressSize != 64 {
		c.report(&Error{Pos: at, Msg: "addresses of 32 bits", Want: ".address_size 64"})
	}
}

// items checks the variables and the aliases of the module.
func (c *checker) items() {
	for _, it := range c.m.Items {
		switch it := it.(type) {
		case *Var:
			c.initialiser(it, it.Init)
		case *Alias:
			switch f := c.funcs[it.Of]; {
			case c.funcs[it.Name] == nil:
				c.report(&Error{Pos: it.Pos, Text: it.Name, Msg: "undefined alias", Want: "a function that is declared"})
			case f == nil || f.Body == nil:
				c.report(&Error{Pos: it.Pos, Text: it.Of, Msg: "alias of an undefined function", Want: "a function with a body"})
			}
		}
	}
}

// initialisers checks the variables of a body.
func (c *checker) initialisers(b *Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Var:
			c.initialiser(s, s.Init)
		case *Block:
			c.initialisers(s)
		}
	}
}

// initialiser checks the kinds of values: floats for f32 and f64, integers for integers, either for bits, none for others.
func (c *checker) initialiser(v *Var, init *Init) {
	if init == nil || len(c.errs) >= maxErrors {
		return
	}
	for _, e := range init.List {
		c.initialiser(v, e)
	}
	kind := v.Type.Kind()
	imm, ok := init.Value.(*Imm)
	switch float := ok && imm.Kind >= ImmF32; {
	case kind == KindFloat && v.Type != F32 && v.Type != F64:
		c.report(&Error{Pos: init.Pos, Text: v.Name, Msg: "initialiser of a ." + v.Type.String(), Want: "a variable of a type of bits"})
	case ok && (float && (kind == KindInt || kind == KindUint) || !float && kind == KindFloat):
		w := &printer{}
		w.operand(imm)
		c.report(&Error{Pos: init.Pos, Text: w.String(), Msg: "initialiser of another type than ." + v.Type.String()})
	}
}

func (c *checker) inst(in *Inst) {
	c.name = in.appendName(c.name[:0])
	k := c.known[string(c.name)]
	if k == nil {
		k = c.form(in)
		c.known[string(c.name)] = k
	}
	if k.bad != "" {
		c.report(&Error{Pos: in.Pos, Text: k.text, Msg: k.bad, Want: k.want, Newer: k.newer})
		return
	}
	if in.Op == "call" {
		c.call(in)
		return
	}
	if k.alts != nil {
		c.operands(in, k)
	}
}

// form finds the variant that an opcode with modifiers is a form of.
func (c *checker) form(in *Inst) *checked {
	variants := grammar()[in.Op]
	k := &checked{bad: "no such form of the instruction", text: in.Name()}
	for _, v := range variants {
		words, bad, ok := v.assign(in.Mods)
		if !ok {
			k.note(in, variants, bad)
			continue
		}
		n, ok := v.need(words)
		if !ok {
			continue
		}
		if lack := n.met(c.m); lack != "" {
			return &checked{bad: in.Op + " in this form " + lack + ", the module has PTX " + c.m.Version.String() + " and " + c.m.Target.String(), text: in.Name()}
		}
		return &checked{words: words, alts: resolved(v.operandsOf(words), words)}
	}
	if loose := c.loose(in); loose != nil {
		return loose
	}
	if variants == nil {
		k = &checked{bad: "unknown instruction", text: in.Op}
	}
	if k.newer = formsUpTo.Less(c.m.Version); k.newer {
		k.want = "what PTX " + formsUpTo.String() + " has: the module is of " + c.m.Version.String() + ", and what is new since then is not known here"
	}
	return k
}

// resolved fills in the types of operand specifications, in a copy.
func resolved(alts [][]argSpec, words []string) [][]argSpec {
	out := make([][]argSpec, len(alts))
	for i, alt := range alts {
		out[i] = slices.Clone(alt)
		for j := range alt {
			out[i][j].t = alt[j].resolve(words)
		}
	}
	return out
}

// note keeps the most telling reason why no variant took the modifiers: one that no variant knows.
func (k *checked) note(in *Inst, variants []*variant, bad string) {
	for _, v := range variants {
		for _, s := range v.slots {
			if slices.Contains(s.words, bad) {
				return
			}
		}
	}
	if bad != "" {
		k.bad = "unknown modifier of " + in.Op
		k.text = "." + bad
	}
}

// loose recognises the families that the table leaves out.
func (c *checker) loose(in *Inst) *checked {
	name := in.Name()
	families := looseFamilies
	if in.Has("bulk") && slices.ContainsFunc(in.Mods, func(m string) bool { return bulkOfBlackwell[m] }) {
		families = append(slices.Clone(families), looseFamily{in.Op, need{Version{8, 6}, Target{SM: 100}, 0}})
	}
	for _, l := range families {
		if name == l.prefix || strings.HasPrefix(name, l.prefix+".") {
			if lack := l.need.met(c.m); lack != "" {
				return &checked{bad: l.prefix + " " + lack + ", the module has PTX " + c.m.Version.String() + " and " + c.m.Target.String(), text: name}
			}
			return &checked{}
		}
	}
	return nil
}

// need joins what the facets of a form ask for; ok is false if ptxas knows no such form.
func (v *variant) need(words []string) (need, bool) {
	n, ok := need{}, false
	if v.op == "call" || v.op == "brx" {
		return n, true
	}
	for facet := 1; facet <= v.facetCount(); facet++ {
		one, found := forms().find(v.family(facet), v.key(words, facet))
		if !found {
			return n, false
		}
		if !ok {
			n, ok = one, true
		} else {
			n = n.join(one)
		}
	}
	return n, ok
}

// Canonical is the opcode with its modifiers in the order of the PTX manual, whatever order they were written in; ok is
// false if the grammar does not know the form.
func (in *Inst) Canonical() (name string, ok bool) {
	for _, v := range grammar()[in.Op] {
		words, _, ok := v.assign(in.Mods)
		if !ok {
			continue
		}
		if _, ok := v.need(words); ok {
			name = in.Op
			for _, w := range words {
				if w != "" {
					name += "." + w
				}
			}
			return name, true
		}
	}
	return in.Name(), false
}

// call compares a direct call with the declaration of its function.
func (c *checker) call(in *Inst) {
	call, _ := in.Call()
	sym, direct := call.Target.(*Sym)
	if !direct {
		if call.Prototype == nil {
			c.report(&Error{Pos: in.Pos, Text: in.String(), Msg: "indirect call without a prototype", Want: "the label of a .callprototype or .calltargets"})
		}
		return
	}
	f := c.funcs[sym.Name]
	switch {
	case sym.Var != nil || f == nil || f.Entry:
		c.report(&Error{Pos: sym.Pos, Text: sym.Name, Msg: "not a device function", Want: "a .func"})
	case len(call.Ret) != len(f.Ret):
		c.report(&Error{Pos: in.Pos, Text: in.String(), Msg: "wrong number of results", Want: strconv.Itoa(len(f.Ret))})
	case len(call.Args) != len(f.Params):
		c.report(&Error{Pos: in.Pos, Text: in.String(), Msg: "wrong number of arguments", Want: strconv.Itoa(len(f.Params))})
	}
}
