// Package litmus decides what PTX's memory model lets small concurrent programs do: whether some execution ends in a state
// that a litmus test names, which one, and if none does, which axiom stands in the way.
//
// Tests are written in the table format of Dat3M's PTX tests (github.com/hernanponcedeleon/Dat3M): initial values, one column
// a thread with its place in the machine, and a condition on the final state behind exists, ~exists or forall:
//
//	PTX MP
//	{ x=0; flag=0; }
//	 P0@cta 0,gpu 0         | P1@cta 1,gpu 0          ;
//	 st.weak x, 1           | ld.acquire.gpu r0, flag ;
//	 st.release.gpu flag, 1 | ld.weak r1, x           ;
//	~exists (P1:r0 == 1 /\ P1:r1 == 0)
//
// The model is that of the PTX ISA's chapter "Memory Consistency Model" (8.x), with its axioms of coherence, fence-SC,
// atomicity, no thin air, SC per location and causality, proxies included. What the chapter has and this package has not is
// refused by name: accesses of several sizes that overlap, the asynchronous proxy, barriers of clusters.
package litmus

// Pos is a place in a file; lines and columns count from 1, columns in bytes.
type Pos struct{ Line, Col int }

// Test is one litmus test.
type Test struct {
	Name       string
	Locations  []Location
	Threads    []Thread
	Filter     Cond // states that count; nil: all
	Quantifier Quantifier
	Cond       Cond
	Shown      []Term // what states are told by: the terms of the condition, then those asked for by "locations"

	source string // of the condition
}

// Location is a name of a piece of memory. Names may share the memory (aliases), and then also the virtual address, if only
// the proxy differs.
type Location struct {
	Name    string
	Init    int64
	Memory  int // index of the location that owns the memory
	Virtual int // index of the location that owns the virtual address
}

// Thread is one column.
type Thread struct {
	Name              string // P0
	CTA, Cluster, GPU int
	Registers         []string
	Init              []int64 // of the registers
	Code              []Instruction
}

// Quantifier says what is asked about the condition.
type Quantifier string

// The quantifiers.
const (
	Exists Quantifier = "exists"  // some execution ends so
	Never  Quantifier = "~exists" // none does
	Forall Quantifier = "forall"  // all do
)

// op is what an instruction does.
type op int

const (
	opLoad op = iota
	opStore
	opAtomic // also red, whose result nobody takes
	opLocal  // arithmetic on registers
	opFence
	opProxyFence
	opAliasFence
	opBarrier
	opBranch // also goto, whose condition has no operands
)

// sem is the ordering that an operation has.
type sem int

const (
	weak sem = iota
	relaxed
	acquire
	release
	acqRel
	sc
)

func (s sem) acquires() bool { return s == acquire || s == acqRel || s == sc }
func (s sem) releases() bool { return s == release || s == acqRel || s == sc }

// scope is which threads an operation is for.
type scope int

const (
	noScope scope = iota
	scopeCTA
	scopeCluster
	scopeGPU
	scopeSys
)

// proxy is the way to memory that an access takes.
type proxy int

const (
	generic proxy = iota
	surface
	texture
	constant
)

// Instruction is one instruction of a thread.
type Instruction struct {
	Pos  Pos
	Text string // as written

	op     op
	sem    sem
	scope  scope
	proxy  proxy
	loc    int     // of an access
	dst    int     // a register, or -1
	arith  arith   // of opAtomic and opLocal
	args   []value // operands; of a barrier its number and its count, if it has them
	cmp    compare // of opBranch
	target int     // of opBranch: an index into Code, perhaps its length
	bar    string  // of a barrier: which instance
	arrive bool    // a barrier that does not wait
}

// value is an operand: a register, or a constant where reg is negative.
type value struct {
	reg      int
	constant int64
}

// arith is arithmetic of two operands; cas has three.
type arith string

const (
	move arith = "mov"
	cas  arith = "cas"
	exch arith = "exch"
)

// compare is a comparison, as conditions write it.
type compare string

// holds compares.
func (c compare) holds(a, b int64) bool {
	switch c {
	case "==", "=":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	default:
		return a >= b
	}
}

// operations are the arithmetic of two operands, on 64 bits with a sign; atomics know them too.
var operations = map[arith]func(a, b int64) int64{
	"add": func(a, b int64) int64 { return a + b },
	"sub": func(a, b int64) int64 { return a - b },
	"mul": func(a, b int64) int64 { return a * b },
	"div": divide,
	"and": func(a, b int64) int64 { return a & b },
	"or":  func(a, b int64) int64 { return a | b },
	"xor": func(a, b int64) int64 { return a ^ b },
	"min": func(a, b int64) int64 { return min(a, b) },
	"max": func(a, b int64) int64 { return max(a, b) },
}

// divide has what PTX leaves open be all ones, as on cards.
func divide(a, b int64) int64 {
	if b == 0 {
		return -1
	}
	return a / b
}
