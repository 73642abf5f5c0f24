package litmus

import (
	"slices"
	"strings"
)

// mnemonic is a dotted word, taken apart: ld.acquire.gpu
type mnemonic struct {
	first token
	rest  []token
}

// instruction reads one instruction into in.
func (p *parser) instruction(thread int, in *Instruction) error {
	m := mnemonic{}
	var err error
	if m.first, err = p.word("an instruction"); err != nil {
		return err
	}
	for p.is(".") {
		t, err := p.word("what follows the dot")
		if err != nil {
			return err
		}
		m.rest = append(m.rest, t)
	}
	read, known := instructions[m.first.text]
	if !known {
		return errorAt(m.first, "there is no instruction %q; known are %s", m.first.text, strings.Join(mnemonics(), ", "))
	}
	return read(p, thread, m, in)
}

type reader func(p *parser, thread int, m mnemonic, in *Instruction) error

var instructions map[string]reader

// init breaks a cycle: readers name the table in what they say.
func init() {
	instructions = map[string]reader{
		"ld": access(opLoad, generic), "suld": access(opLoad, surface), "tld": access(opLoad, texture), "cold": access(opLoad, constant),
		"st": access(opStore, generic), "sust": access(opStore, surface),
		"atom": access(opAtomic, generic), "suatom": access(opAtomic, surface),
		"red": reduction(generic), "sured": reduction(surface),
		"fence": (*parser).fence, "membar": (*parser).membar, "bar": (*parser).barrier, "barrier": (*parser).barrier,
		"goto": (*parser).jump, "mov": (*parser).move,
	}
	for name := range operations {
		instructions[string(name)] = (*parser).local
	}
	for name := range branches {
		instructions[name] = (*parser).branch
	}
}

func mnemonics() []string {
	var all []string
	for name := range instructions {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

var semantics = map[string]sem{"weak": weak, "relaxed": relaxed, "acquire": acquire, "release": release, "acq_rel": acqRel, "sc": sc}

var scopes = map[string]scope{"cta": scopeCTA, "cluster": scopeCluster, "gpu": scopeGPU, "sys": scopeSys}

var branches = map[string]compare{"beq": "==", "bne": "!=", "blt": "<", "bgt": ">", "ble": "<=", "bge": ">="}

// refused is what PTX knows and this package does not.
var refused = map[string]string{
	"mmio": "memory-mapped input and output", "async": "the asynchronous proxy", "tensormap": "the proxy of tensor maps", "bulk": "bulk copies",
	"global": "state spaces: all locations are alike here", "shared": "state spaces: all locations are alike here",
}

// modifiers reads ordering and scope; others are left to the caller, in order.
func modifiers(m mnemonic, in *Instruction) ([]token, error) {
	var others []token
	ordered := false
	for _, t := range m.rest {
		s, isSem := semantics[t.text]
		c, isScope := scopes[t.text]
		switch {
		case isSem && ordered, isScope && in.scope != noScope:
			return nil, errorAt(t, ".%s is one too many behind %s", t.text, m.first.text)
		case isSem:
			in.sem, ordered = s, true
		case isScope:
			in.scope = c
		case t.text == "volatile": // PTX: as relaxed at system scope
			in.sem, in.scope, ordered = relaxed, scopeSys, true
		case refused[t.text] != "":
			return nil, errorAt(t, ".%s: litmus tests do not model %s", t.text, refused[t.text])
		default:
			others = append(others, t)
		}
	}
	if !ordered && (in.op == opLoad || in.op == opStore) && len(m.rest) > 0 {
		return nil, errorAt(m.first, "%s says no ordering: .weak, .relaxed, .acquire, .release or .volatile", m.first.text)
	}
	return others, nil
}

// access is a load, a store or an atomic.
func access(o op, via proxy) reader {
	return func(p *parser, thread int, m mnemonic, in *Instruction) error {
		if o == opLoad && len(m.rest) == 0 { // ld r0, 1
			return p.move(thread, m, in)
		}
		in.op, in.proxy = o, via
		others, err := modifiers(m, in)
		if err != nil {
			return err
		}
		if err := ordering(m, in); err != nil {
			return err
		}
		if o == opAtomic {
			return p.atomic(thread, m, others, true, in)
		}
		if len(others) > 0 {
			return errorAt(others[0], ".%s means nothing behind %s", others[0].text, m.first.text)
		}
		if o == opLoad {
			return each(p.destination(thread, in), p.comma, p.location(in))
		}
		return each(p.location(in), p.comma, p.operand(thread, in))
	}
}

// ordering says whether an access may have its ordering and its scope.
func ordering(m mnemonic, in *Instruction) error {
	may := map[op][]sem{opLoad: {weak, relaxed, acquire}, opStore: {weak, relaxed, release}, opAtomic: {relaxed, acquire, release, acqRel}}[in.op]
	if !slices.Contains(may, in.sem) {
		if in.sem == weak {
			return errorAt(m.first, "%s says no ordering: .relaxed, .acquire, .release or .acq_rel", m.first.text)
		}
		return errorAt(m.first, "%s cannot be of that ordering", m.first.text)
	}
	switch {
	case in.sem == weak && in.scope != noScope:
		return errorAt(m.first, "a weak %s has no scope", m.first.text)
	case in.sem != weak && in.scope == noScope:
		return errorAt(m.first, "%s says no scope: .cta, .cluster, .gpu or .sys", m.first.text)
	}
	return nil
}

// atomic is what follows the ordering of atom and red.
func (p *parser) atomic(thread int, m mnemonic, others []token, result bool, in *Instruction) error {
	if len(others) != 1 {
		return errorAt(m.first, "%s says one operation, as in %s.relaxed.gpu.add", m.first.text, m.first.text)
	}
	in.arith = arith(others[0].text)
	n := 1
	switch _, two := operations[in.arith]; {
	case two:
	case result && in.arith == exch:
	case result && in.arith == cas:
		n = 2
	default:
		return errorAt(others[0], "%s cannot %s: add, sub, mul, div, and, or, xor, min, max, and of atom exch and cas", m.first.text, others[0].text)
	}
	steps := []func() error{p.location(in)}
	if result {
		steps = []func() error{p.destination(thread, in), p.comma, p.location(in)}
	}
	for range n {
		steps = append(steps, p.comma, p.operand(thread, in))
	}
	return each(steps...)
}

// reduction is an atomic without a result.
func reduction(via proxy) reader {
	return func(p *parser, thread int, m mnemonic, in *Instruction) error {
		in.op, in.proxy = opAtomic, via
		others, err := modifiers(m, in)
		if err != nil {
			return err
		}
		if err := ordering(m, in); err != nil {
			return err
		}
		return p.atomic(thread, m, others, false, in)
	}
}

// fence is fence.SEM.SCOPE or fence.proxy.KIND.
func (p *parser) fence(_ int, m mnemonic, in *Instruction) error {
	in.op = opFence
	if len(m.rest) == 2 && m.rest[0].text == "proxy" {
		return proxyFence(m.rest[1], in)
	}
	others, err := modifiers(m, in)
	switch {
	case err != nil:
		return err
	case len(others) > 0:
		return errorAt(others[0], ".%s means nothing behind fence", others[0].text)
	case in.sem < acquire:
		return errorAt(m.first, "fence says no ordering: .sc, .acq_rel, .acquire or .release")
	case in.scope == noScope:
		return errorAt(m.first, "fence says no scope: .cta, .cluster, .gpu or .sys")
	}
	return nil
}

func proxyFence(k token, in *Instruction) error {
	via, known := proxies[k.text]
	switch {
	case k.text == "alias":
		in.op = opAliasFence
	case refused[k.text] != "":
		return errorAt(k, ".%s: litmus tests do not model %s", k.text, refused[k.text])
	case !known:
		return errorAt(k, "%q is no proxy: alias, generic, constant, texture or surface", k.text)
	default:
		in.op, in.proxy = opProxyFence, via
	}
	return nil
}

// membar is a fence.sc by its old name.
func (p *parser) membar(_ int, m mnemonic, in *Instruction) error {
	in.op, in.sem = opFence, sc
	old := map[string]scope{"cta": scopeCTA, "gl": scopeGPU, "sys": scopeSys}
	if len(m.rest) != 1 || old[m.rest[0].text] == noScope {
		return errorAt(m.first, "membar is .cta, .gl or .sys")
	}
	in.scope = old[m.rest[0].text]
	return nil
}

// barrier is bar.cta.sync INSTANCE[, NUMBER[, COUNT]].
func (p *parser) barrier(thread int, m mnemonic, in *Instruction) error {
	in.op = opBarrier
	rest := m.rest
	if len(rest) > 0 && rest[0].text == "cta" {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].text == "cluster" {
		return errorAt(rest[0], ".cluster: litmus tests do not model barriers of clusters")
	}
	if len(rest) != 1 || rest[0].text != "sync" && rest[0].text != "arrive" {
		return errorAt(m.first, "%s is .cta.sync or .cta.arrive", m.first.text)
	}
	in.arrive = rest[0].text == "arrive"
	t := p.take()
	if t.kind != number {
		return errorAt(t, "%s where the barrier's number should be", found(t))
	}
	in.bar = t.text
	for len(in.args) < 2 && p.is(",") {
		if err := p.operand(thread, in)(); err != nil {
			return err
		}
	}
	return nil
}

// move is mov r0, 1 or ld r0, 1.
func (p *parser) move(thread int, m mnemonic, in *Instruction) error {
	if len(m.rest) > 0 {
		return errorAt(m.rest[0], ".%s means nothing behind %s", m.rest[0].text, m.first.text)
	}
	in.op, in.arith = opLocal, move
	return each(p.destination(thread, in), p.comma, p.operand(thread, in))
}

// local is add r0, r1, 1 and its like.
func (p *parser) local(thread int, m mnemonic, in *Instruction) error {
	if len(m.rest) > 0 {
		return errorAt(m.rest[0], ".%s means nothing behind %s", m.rest[0].text, m.first.text)
	}
	in.op, in.arith = opLocal, arith(m.first.text)
	return each(p.destination(thread, in), p.comma, p.operand(thread, in), p.comma, p.operand(thread, in))
}

func (p *parser) branch(thread int, m mnemonic, in *Instruction) error {
	in.cmp = branches[m.first.text]
	return each(p.operand(thread, in), p.comma, p.operand(thread, in), p.comma, func() error { return p.jump(thread, m, in) })
}

func (p *parser) jump(thread int, m mnemonic, in *Instruction) error {
	if len(m.rest) > 0 {
		return errorAt(m.rest[0], ".%s means nothing behind %s", m.rest[0].text, m.first.text)
	}
	in.op = opBranch
	t, err := p.word("a label")
	p.jumps[thread][len(p.test.Threads[thread].Code)] = t
	return err
}

func (p *parser) comma() error { return p.want(",", " behind an operand") }

// destination is the register that takes a result.
func (p *parser) destination(thread int, in *Instruction) func() error {
	return func() error {
		t, err := p.word("a register")
		if err != nil {
			return err
		}
		if p.find(t.text) >= 0 {
			return errorAt(t, "%s is a location where a register should be", t.text)
		}
		in.dst = p.register(thread, t.text)
		return nil
	}
}

// location is where an access goes; one without an initial value holds 0.
func (p *parser) location(in *Instruction) func() error {
	return func() error {
		bracket := p.is("[")
		t, err := p.word("a location")
		if err != nil {
			return err
		}
		for _, th := range p.test.Threads {
			if slices.Contains(th.Registers, t.text) && p.find(t.text) < 0 {
				return errorAt(t, "%s is a register where a location should be", t.text)
			}
		}
		if in.loc = p.find(t.text); in.loc < 0 {
			in.loc = len(p.test.Locations)
			p.test.Locations = append(p.test.Locations, Location{Name: t.text, Memory: in.loc, Virtual: in.loc})
		}
		if bracket {
			return p.want("]", " behind the location")
		}
		return nil
	}
}

// operand is a register or a constant.
func (p *parser) operand(thread int, in *Instruction) func() error {
	return func() error {
		t := p.take()
		v := value{reg: -1}
		var err error
		switch {
		case t.kind == number:
			v.constant, err = constantOf(t)
		case t.kind == word && p.find(t.text) >= 0:
			err = errorAt(t, "%s is a location: load it into a register first", t.text)
		case t.kind == word:
			v.reg = p.register(thread, t.text)
		default:
			err = errorAt(t, "%s where a register or a number should be", found(t))
		}
		in.args = append(in.args, v)
		return err
	}
}
