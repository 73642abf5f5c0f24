package cpu

import (
	"fmt"
	"sync"

	"github.com/warpline-ml/warpline/internal/ir"
)

// words are the passes that an op's value may be written with: those of every elementwise op that is here by hand.
var (
	words = map[ir.Code]word{}
	tests = map[ir.Code]test{}
)

type word struct {
	f32 pass[float32, float32]
	f64 pass[float64, float64]
}

type test struct {
	f32 pass[bool, float32]
	f64 pass[bool, float64]
}

// written makes the kernels of elementwise ops that are not here by hand out of the values in their rows.
var written = sync.OnceFunc(func() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Value == "" || code.Row().ByHand {
			continue
		}
		e, err := code.ValueExpr(func(c ir.Code) bool { return words[c].f32 != nil })
		if err != nil {
			panic("cpu: " + code.String() + ": " + err.Error()) // a mistake in the row
		}
		f32 := newSteps(e, func(c ir.Code) pass[float32, float32] { return words[c].f32 }, func(c ir.Code) pass[bool, float32] { return tests[c].f32 })
		f64 := newSteps(e, func(c ir.Code) pass[float64, float64] { return words[c].f64 }, func(c ir.Code) pass[bool, float64] { return tests[c].f64 })
		offer(floatPasses{grainMath, f32.pass, f64.pass}.prepare, code)
	}
})

// stepTile is the number of elements that one step takes at a time: what a value has on the way stays in the first-level
// cache.
const stepTile = 512

// steps computes an expression: each step is a pass over registers of stepTile elements.
type steps[T float] struct {
	list    []rowStep[T]
	numbers []fixedNumber // in registers of their own
	regs    int
	masks   int
	scratch *spare[stepScratch[T]]
}

// rowStep is one node. Registers x and y are operands of the op where they are below 0, dst is the result where it is.
type rowStep[T float] struct {
	f      pass[T, T]
	test   pass[bool, T] // a comparison, into mask dst
	choose bool          // by mask p
	dst    int
	x, y   int
	p, q   float64
	mask   int
}

// fixedNumber is a number, or a launch parameter.
type fixedNumber struct {
	reg   int
	name  ir.Name
	value float64
}

type stepScratch[T float] struct {
	regs  [][]T
	masks [][]bool
}

// Registers that are not scratch.
const (
	regX   = -1
	regY   = -2
	regOut = -3
)

// compiler gives the nodes of an expression registers.
type compiler[T float] struct {
	s    *steps[T]
	word func(ir.Code) pass[T, T]
	test func(ir.Code) pass[bool, T]
	at   map[*ir.Expr]int
	left map[*ir.Expr]int // uses to come
	free []int
}

func newSteps[T float](e *ir.Expr, word func(ir.Code) pass[T, T], test func(ir.Code) pass[bool, T]) *steps[T] {
	c := &compiler[T]{&steps[T]{}, word, test, map[*ir.Expr]int{}, map[*ir.Expr]int{}, nil}
	nodes := e.Nodes()
	for _, n := range nodes {
		for _, a := range n.Args {
			c.left[a]++
		}
	}
	for _, n := range nodes {
		c.place(n, n == e)
	}
	if e.Code == ir.Invalid {
		c.s.list = append(c.s.list, rowStep[T]{f: word(ir.Affine), dst: regOut, x: c.at[e], y: regX, p: 1})
	}
	s := c.s
	s.scratch = newSpare(func() (b stepScratch[T]) {
		for range s.regs {
			b.regs = append(b.regs, make([]T, stepTile))
		}
		for range s.masks {
			b.masks = append(b.masks, make([]bool, stepTile))
		}
		return b
	})
	return s
}

// place makes the step of a node whose operands have theirs.
func (c *compiler[T]) place(n *ir.Expr, last bool) {
	switch {
	case n.Name == ir.NameX:
		c.at[n] = regX
	case n.Name == ir.NameY:
		c.at[n] = regY
	case n.Name != ir.NoName && n.Name != ir.NameP && n.Name != ir.NameQ:
		panic(fmt.Sprintf("cpu: a value of a row names %d; the steps have two operands, x and y, and two parameters", n.Name))
	case n.Code == ir.Invalid:
		c.at[n] = c.s.regs
		c.s.numbers = append(c.s.numbers, fixedNumber{c.s.regs, n.Name, n.Number})
		c.s.regs++
	default:
		c.call(n, last)
	}
}

func (c *compiler[T]) call(n *ir.Expr, last bool) {
	var s rowStep[T]
	switch f := c.test(n.Code); {
	case f != nil:
		s = rowStep[T]{test: f, x: c.at[n.Args[0]], y: c.at[n.Args[1]], dst: c.s.masks}
		c.s.masks++
	case n.Code == ir.Where:
		s = rowStep[T]{choose: true, mask: c.at[n.Args[0]], x: c.at[n.Args[1]], y: c.at[n.Args[2]]}
	default:
		s = c.arithmetic(n)
	}
	for _, a := range n.Args {
		if c.left[a]--; c.left[a] == 0 && a.Code != ir.Invalid && c.test(a.Code) == nil {
			c.free = append(c.free, c.at[a])
		}
	}
	switch {
	case last:
		s.dst = regOut
	case s.test != nil:
	case len(c.free) > 0:
		s.dst = c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
	default:
		s.dst = c.s.regs
		c.s.regs++
	}
	c.at[n] = s.dst
	c.s.list = append(c.s.list, s)
}

// arithmetic is a step of numbers. One with a number as operand needs no register for it.
func (c *compiler[T]) arithmetic(n *ir.Expr) rowStep[T] {
	x, y := n.Args[0], n.Args[len(n.Args)-1]
	if n.Code == ir.Add || n.Code == ir.Mul {
		if fixed(x) {
			x, y = y, x
		}
	}
	s := rowStep[T]{f: c.word(ir.Affine), x: c.at[x], y: regX, p: 1}
	switch {
	case fixed(y) && n.Code == ir.Add:
		s.q = y.Number
	case fixed(y) && n.Code == ir.Sub:
		s.q = -y.Number
	case fixed(y) && n.Code == ir.Mul:
		s.p = y.Number
	case fixed(x) && n.Code == ir.Sub:
		s.x, s.p, s.q = c.at[y], -1, x.Number
	default:
		return rowStep[T]{f: c.word(n.Code), x: c.at[x], y: c.at[y]}
	}
	return s
}

func fixed(n *ir.Expr) bool { return n.Code == ir.Invalid && n.Name == ir.NoName }

// pass computes the expression for all elements.
func (s *steps[T]) pass(dst, x, y []T, p, q float64) {
	b := s.scratch.get()
	defer s.scratch.put(b)
	for _, n := range s.numbers {
		v := n.value
		switch n.name {
		case ir.NameP:
			v = p
		case ir.NameQ:
			v = q
		}
		fill(b.regs[n.reg], T(v))
	}
	for lo := 0; lo < len(dst); lo += stepTile {
		hi := min(lo+stepTile, len(dst))
		s.tile(b, dst[lo:hi], x[lo:hi], tail(y, lo, hi))
	}
}

// tail is y[lo:hi] of an operand that may be missing.
func tail[T any](y []T, lo, hi int) []T {
	if y == nil {
		return nil
	}
	return y[lo:hi]
}

func (s *steps[T]) tile(b *stepScratch[T], dst, x, y []T) {
	n := len(dst)
	reg := func(i int) []T {
		switch i {
		case regX:
			return x
		case regY:
			return y
		case regOut:
			return dst
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
		default:
			st.f(reg(st.dst), reg(st.x), reg(st.y), st.p, st.q)
		}
	}
}
