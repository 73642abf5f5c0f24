package cpu

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			offer(prepareRule, code)
		}
	}
}

// ruleNumbers computes what is one number for a parameter, in float64. A slot is a leaf, a number of the text or a step.
type ruleNumbers struct {
	u     *ir.Update
	slots map[*ir.Expr]int
	fixed []float64 // by slot, of numbers of the text
	steps []*ir.Expr
}

func newRuleNumbers(u *ir.Update) *ruleNumbers {
	r := &ruleNumbers{u: u, slots: map[*ir.Expr]int{}, fixed: make([]float64, u.Numbers())}
	for _, n := range u.Steps {
		for _, a := range n.Args {
			if i, ok := u.Number(a); ok {
				r.slots[a] = i
			} else if a.IsNumber() {
				r.slot(a, a.Number)
			}
		}
		if u.Scalar(n) {
			r.slot(n, 0)
			r.steps = append(r.steps, n)
		}
	}
	return r
}

func (r *ruleNumbers) slot(e *ir.Expr, v float64) {
	if _, ok := r.slots[e]; !ok {
		r.slots[e] = len(r.fixed)
		r.fixed = append(r.fixed, v)
	}
}

// compute fills the slots, of which the first are the leaves; turn is t as an integer.
func (r *ruleNumbers) compute(v []float64, turn int64) {
	copy(v[r.u.Numbers():], r.fixed[r.u.Numbers():])
	for _, n := range r.steps {
		v[r.slots[n]] = r.step(n, v, turn)
	}
}

func (r *ruleNumbers) step(n *ir.Expr, v []float64, turn int64) float64 {
	if n.Code == ir.Where {
		c := n.Args[0]
		if holds(c.Code, v[r.slots[c.Args[0]]], v[r.slots[c.Args[1]]]) {
			return v[r.slots[n.Args[1]]]
		}
		return v[r.slots[n.Args[2]]]
	}
	x, y := v[r.slots[n.Args[0]]], v[r.slots[n.Args[len(n.Args)-1]]]
	switch n.Code {
	case ir.Add:
		return x + y
	case ir.Sub:
		return x - y
	case ir.Mul:
		return x * y
	case ir.Div:
		return x / y
	case ir.Neg:
		return -x
	case ir.Sqrt:
		return math.Sqrt(x)
	case ir.Pow:
		return power(x, turn)
	}
	panic(fmt.Sprintf("cpu: a rule computes a number by %s, for which there is no case in step", n.Code))
}

func holds(code ir.Code, x, y float64) bool {
	switch code {
	case ir.Lt:
		return x < y
	case ir.Le:
		return x <= y
	case ir.Eq:
		return x == y
	}
	return x != y
}

// ruleSteps computes what is of elements: each step is a pass over registers of a strip. The first registers are the
// operands.
type ruleSteps[T float] struct {
	list    []ruleStep[T]
	filled  map[int]int // registers that hold a number of a slot
	results []int       // registers of those that are no operand's yet, by operand; -1: it is where it belongs
	regs    int
	masks   int
}

// ruleStep is one pass. Where slot is not -1, it is an affine one, of scale·number or plus sign·number.
type ruleStep[T float] struct {
	f            pass[T, T]
	test         pass[bool, T]
	choose       bool
	dst, x, y    int
	mask         int
	slot         int
	p, q         float64
	times, under bool // the number is what x is multiplied by; else added q times
}

// newRuleSteps compiles the steps of a rule for elements.
func newRuleSteps[T float](u *ir.Update, numbers *ruleNumbers, words func(ir.Code) pass[T, T], tests func(ir.Code) pass[bool, T]) *ruleSteps[T] {
	s := &ruleSteps[T]{filled: map[int]int{}, regs: 2 + len(u.Rule.State)}
	at, inSlot := map[*ir.Expr]int{}, map[int]int{}
	reg := func(e *ir.Expr) int {
		if i, ok := u.Operand(e); ok {
			return i
		}
		if r, ok := at[e]; ok {
			return r
		}
		slot := numbers.slots[e]
		if _, ok := inSlot[slot]; !ok {
			inSlot[slot] = s.regs
			s.filled[s.regs] = slot
			s.regs++
		}
		return inSlot[slot]
	}
	for i, n := range u.Steps {
		if u.Scalar(n) || partOfNumber(u, n) {
			continue
		}
		step := s.step(u, numbers, n, reg, words, tests)
		if step.test != nil {
			step.dst, s.masks = s.masks, s.masks+1
		} else if k := home(u, n, u.Steps[i+1:]); k >= 0 {
			step.dst = k
		} else {
			step.dst, s.regs = s.regs, s.regs+1
		}
		at[n] = step.dst
		s.list = append(s.list, step)
	}
	for i, e := range u.Results {
		s.results = append(s.results, -1)
		if k := writtenAt(i); reg(e) != k {
			s.results[i] = reg(e)
		}
	}
	return s
}

// partOfNumber reports a condition of which only a choice between numbers is made.
func partOfNumber(u *ir.Update, n *ir.Expr) bool {
	for _, m := range u.Steps {
		if m.Code == ir.Where && m.Args[0] == n && !u.Scalar(m) {
			return false
		}
	}
	return n.Code == ir.Lt || n.Code == ir.Le || n.Code == ir.Eq || n.Code == ir.Ne
}

// writtenAt is the register of result i: the gradient is none.
func writtenAt(i int) int {
	if i > 0 {
		i++
	}
	return i
}

// home is the operand in whose place a step may put its result: it is the operand's new value, and no later step reads the
// old one. It is -1 where there is none.
func home(u *ir.Update, n *ir.Expr, later []*ir.Expr) int {
	for i, e := range u.Results {
		if e != n {
			continue
		}
		k := writtenAt(i)
		for _, m := range later {
			for _, a := range m.Args {
				if j, ok := u.Operand(a); ok && j == k {
					return -1
				}
			}
		}
		return k
	}
	return -1
}

func (s *ruleSteps[T]) step(u *ir.Update, numbers *ruleNumbers, n *ir.Expr, reg func(*ir.Expr) int, words func(ir.Code) pass[T, T], tests func(ir.Code) pass[bool, T]) ruleStep[T] {
	if f := tests(n.Code); f != nil {
		return ruleStep[T]{test: f, slot: -1, x: reg(n.Args[0]), y: reg(n.Args[1])}
	}
	if n.Code == ir.Where {
		return ruleStep[T]{choose: true, slot: -1, mask: reg(n.Args[0]), x: reg(n.Args[1]), y: reg(n.Args[2])}
	}
	x, y := n.Args[0], n.Args[len(n.Args)-1]
	number := func(e *ir.Expr) bool { _, ok := numbers.slots[e]; return ok }
	affine := ruleStep[T]{f: words(ir.Affine), x: 0, y: 0, p: 1}
	switch {
	case n.Code == ir.Mul && number(y):
		affine.x, affine.slot, affine.times = reg(x), numbers.slots[y], true
	case n.Code == ir.Mul && number(x):
		affine.x, affine.slot, affine.times = reg(y), numbers.slots[x], true
	case n.Code == ir.Add && number(y):
		affine.x, affine.slot, affine.q = reg(x), numbers.slots[y], 1
	case n.Code == ir.Add && number(x):
		affine.x, affine.slot, affine.q = reg(y), numbers.slots[x], 1
	case n.Code == ir.Sub && number(y):
		affine.x, affine.slot, affine.q = reg(x), numbers.slots[y], -1
	case n.Code == ir.Div && number(y):
		affine.x, affine.slot, affine.times, affine.under = reg(x), numbers.slots[y], true, true
	default:
		f := words(n.Code)
		if f == nil {
			panic(fmt.Sprintf("cpu: a rule computes elements by %s, for which there is no pass", n.Code))
		}
		return ruleStep[T]{f: f, slot: -1, x: reg(x), y: reg(y)}
	}
	return affine
}

// fill puts numbers in the registers that hold one.
func (s *ruleSteps[T]) fill(b *stepScratch[T], v []float64) {
	for reg, slot := range s.filled {
		fill(b.regs[reg], T(v[slot]))
	}
}

// run makes the steps over a strip of the operands.
func (s *ruleSteps[T]) run(b *stepScratch[T], v []float64, operands [][]T) {
	n := len(operands[0])
	reg := func(i int) []T {
		if i < len(operands) {
			return operands[i]
		}
		return b.regs[i][:n]
	}
	for i := range s.list {
		st := &s.list[i]
		switch {
		case st.test != nil:
			st.test(b.masks[st.dst][:n], reg(st.x), reg(st.y), 0, 0)
		case st.choose:
			choosePass(reg(st.dst), b.masks[st.mask][:n], reg(st.x), reg(st.y))
		case st.slot < 0:
			st.f(reg(st.dst), reg(st.x), reg(st.y), 0, 0)
		case st.under:
			st.f(reg(st.dst), reg(st.x), nil, 1/v[st.slot], negativeZero)
		case st.times:
			st.f(reg(st.dst), reg(st.x), nil, v[st.slot], negativeZero)
		default:
			st.f(reg(st.dst), reg(st.x), nil, 1, st.q*v[st.slot])
		}
	}
	for i, from := range s.results {
		if from >= 0 {
			copy(reg(writtenAt(i)), reg(from))
		}
	}
}

// negativeZero is what may be added to any number.
var negativeZero = math.Copysign(0, -1)

func (s *ruleSteps[T]) scratch() (b stepScratch[T]) {
	for range s.regs {
		b.regs = append(b.regs, make([]T, stepTile))
	}
	for range s.masks {
		b.masks = append(b.masks, make([]bool, stepTile))
	}
	return b
}

// ruler updates many parameters by a rule, piece by piece.
type ruler struct {
	u       *ir.Update
	numbers *ruleNumbers
	f32     *ruleSteps[float32]
	f64     *ruleSteps[float64]
	params  []*ir.Type
	list    []piece
	space   *spare[ruleSpace]
	each    *loop[ruleCall]
}

type ruleCall struct {
	args  []device.Arg
	leafs [ir.MaxParams]float64 // lr, coupled, decay and the settings
	scale float64
	skip  bool
}

// ruleSpace is what a chunk works in.
type ruleSpace struct {
	numbers []float64
	s32     stepScratch[float32]
	s64     stepScratch[float64]
	in32    [][]float32
	in64    [][]float64
}

func prepareRule(k *device.Kernel) (run, error) {
	u, err := k.Op.Code.Update()
	if err != nil {
		return nil, err
	}
	r := &ruler{u: u, numbers: newRuleNumbers(u)}
	r.f32 = newRuleSteps(u, r.numbers, func(c ir.Code) pass[float32, float32] { return words[c].f32 }, func(c ir.Code) pass[bool, float32] { return tests[c].f32 })
	r.f64 = newRuleSteps(u, r.numbers, func(c ir.Code) pass[float64, float64] { return words[c].f64 }, func(c ir.Code) pass[bool, float64] { return tests[c].f64 })
	for i := 1; i < k.Op.NumIn(); i += u.Rule.Group() {
		r.params = append(r.params, k.Op.In(i))
	}
	r.list = pieces(r.params)
	whole := 2 + len(u.Rule.State)
	r.space = newSpare(func() ruleSpace {
		return ruleSpace{make([]float64, len(r.numbers.fixed)), r.f32.scratch(), r.f64.scratch(), make([][]float32, whole), make([][]float64, whole)}
	})
	r.each = newLoop(r.chunk)
	scale, last := k.Op.In(0).DType, k.Op.Code.NumParams()-1
	return func(args []device.Arg, p *device.Params) error {
		c := ruleCall{args: args, scale: numberAt(args[len(k.Out)], scale), skip: param(p, last) != 0}
		c.leafs[0] = scalar(p, ir.RuleRate) * scalar(p, ir.RuleFactor)
		for i := ir.RuleCoupled; i < last; i++ {
			c.leafs[i-1] = scalar(p, i)
		}
		r.each.run(len(r.list), 1, c)
		return nil
	}, nil
}

func (r *ruler) chunk(c *ruleCall, lo, hi int) {
	s := r.space.get()
	defer r.space.put(s)
	whole := 2 + len(r.u.Rule.State)
	for _, p := range r.list[lo:hi] {
		outs := c.args[p.tensor*(whole-1):][:whole-1]
		ins := c.args[len(r.params)*(whole-1)+1+p.tensor*r.u.Rule.Group():][:r.u.Rule.Group()]
		turn := values[int64](ins[whole], 1)[0]
		n := copy(s.numbers, c.leafs[:r.u.Turn()])
		s.numbers[n] = float64(turn)
		for i, a := range ins[whole+1:] {
			s.numbers[n+1+i] = values[float64](a, 1)[0]
		}
		r.numbers.compute(s.numbers, turn)
		if dt := r.params[p.tensor].DType; dt == dtype.F64 {
			rulePiece(r.f64, &s.s64, s.numbers, s.in64, c, outs, ins[:whole], dt, p, words[ir.Affine].f64)
		} else {
			rulePiece(r.f32, &s.s32, s.numbers, s.in32, c, outs, ins[:whole], dt, p, words[ir.Affine].f32)
		}
	}
}

// rulePiece updates a piece in strips: the gradient is scaled into a buffer, and state and weight are updated where they are
// written, or if they are of a 16-bit type in buffers.
func rulePiece[T kernels.Float](s *ruleSteps[T], b *stepScratch[T], v []float64, in [][]T, c *ruleCall, outs, ins []device.Arg, dt dtype.DType, p piece, affine pass[T, T]) {
	s.fill(b, v)
	narrow := dt == dtype.F16 || dt == dtype.BF16
	for lo := p.lo; lo < p.hi; lo += stepTile {
		hi := min(lo+stepTile, p.hi)
		for i, a := range ins {
			x := widen(a, dt, lo, hi, b.regs[i])
			switch {
			case i == 1:
				in[i] = b.regs[i][:len(x)]
				affine(in[i], x, nil, c.scale, negativeZero)
				continue
			case !narrow:
				y := widen(outs[max(i-1, 0)], dt, lo, hi, b.regs[i])
				if &y[0] != &x[0] {
					copy(y, x)
				}
				x = y
			}
			in[i] = x
		}
		if !c.skip {
			s.run(b, v, in)
		}
		for i, a := range outs {
			narrowInto(a, dt, lo, in[writtenAt(i)])
		}
	}
}
