package litmus

// Cond is a condition on a final state: And, Or, Not or Compare.
type Cond interface {
	// eval is whether the condition holds, as far as values are known.
	eval(valuation) truth
}

// And, Or and Not combine conditions; Compare compares two terms.
type (
	And     struct{ A, B Cond }
	Or      struct{ A, B Cond }
	Not     struct{ A Cond }
	Compare struct {
		A, B Term
		cmp  compare
	}
)

// Term is what a condition compares: a register of a thread, the final value of a location, or a constant.
type Term struct {
	Name     string // as written: "P1:r0", "x", "1"
	thread   int    // of a register; negative: none
	register int
	loc      int // of a location; negative: none
	constant int64
}

// truth is of three values: a condition on memory is open until the order of its writes is known.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// valuation gives a term its value, if it is known.
type valuation func(Term) (int64, bool)

func (c And) eval(v valuation) truth { return min(c.A.eval(v), c.B.eval(v)) }
func (c Or) eval(v valuation) truth  { return max(c.A.eval(v), c.B.eval(v)) }
func (c Not) eval(v valuation) truth { return yes - c.A.eval(v) }

func (c Compare) eval(v valuation) truth {
	a, known := v(c.A)
	b, also := v(c.B)
	switch {
	case !known || !also:
		return maybe
	case c.cmp.holds(a, b):
		return yes
	}
	return no
}

// terms are those of c that are no constants, in the order of the text, each once.
func terms(c Cond, into []Term) []Term {
	switch c := c.(type) {
	case And:
		return terms(c.B, terms(c.A, into))
	case Or:
		return terms(c.B, terms(c.A, into))
	case Not:
		return terms(c.A, into)
	case Compare:
		return addTerm(addTerm(into, c.A), c.B)
	}
	return into
}

// addTerm appends a term that is no constant and not there yet.
func addTerm(into []Term, t Term) []Term {
	if t.thread < 0 && t.loc < 0 {
		return into
	}
	for _, u := range into {
		if u.thread == t.thread && u.register == t.register && u.loc == t.loc {
			return into
		}
	}
	return append(into, t)
}
