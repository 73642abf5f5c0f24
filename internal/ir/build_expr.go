package ir

import "math"

// Expr builds an expression from values of one shape and dtype: value gives those that it names, params the parameters. A
// result that is one number everywhere is a view of type t. Sums and products with numbers are gathered into one op.
func (b B) Expr(e *Expr, t *Type, params *Params, value func(n Name) Value) Value {
	x := exprBuilder{b: b, t: t, params: params, value: value, terms: make([]term, e.id+1)}
	return x.full(e)
}

type exprBuilder struct {
	b      B
	t      *Type // shape and dtype of all values
	params *Params
	value  func(n Name) Value
	terms  []term // by node
}

// term is a·v + c, or the number c where v is nil.
type term struct {
	v    Value
	a, c float64
	made bool
}

func number(c float64) term { return term{c: c} }
func whole(v Value) term    { return term{v: v, a: 1} }

// term of a node, made once.
func (x *exprBuilder) term(e *Expr) term {
	t := &x.terms[e.id]
	if !t.made {
		*t = x.make(e)
		t.made = true
	}
	return *t
}

func (x *exprBuilder) make(e *Expr) term {
	switch {
	case e.constant():
		return number(e.Number)
	case e.Name == NameP || e.Name == NameQ:
		return number(math.Float64frombits(x.params.Value[e.Name-NameP]))
	case e.Name != NoName:
		return whole(x.value(e.Name))
	case e.Code == Where:
		return x.where(e)
	case len(e.Args) == 1:
		return x.unary(e)
	}
	return x.binary(e)
}

func (x *exprBuilder) unary(e *Expr) term {
	s := x.term(e.Args[0])
	switch f := folds[e.Code]; {
	case f != nil && s.v == nil:
		return number(f(s.c, 0))
	case e.Code == Neg:
		return term{v: s.v, a: -s.a, c: -s.c}
	}
	return whole(x.b.Unary(e.Code, x.full(e.Args[0])))
}

func (x *exprBuilder) binary(e *Expr) term {
	s, t := x.term(e.Args[0]), x.term(e.Args[1])
	if f := folds[e.Code]; f != nil && s.v == nil && t.v == nil {
		return number(f(s.c, t.c))
	}
	if r, ok := linear(e.Code, s, t); ok {
		return r
	}
	if e.Code == Pow && t.v == nil {
		return whole(x.b.One(PowScalar, Attr{}, Scalars(t.c), x.full(e.Args[0])))
	}
	return whole(x.b.Binary(e.Code, x.short(e.Args[0]), x.short(e.Args[1])))
}

// linear is a sum or product with a number.
func linear(code Code, s, t term) (r term, ok bool) {
	switch {
	case s.v == nil && (code == Add || code == Mul):
		return linear(code, t, s)
	case s.v == nil && t.v != nil && code == Sub:
		return term{v: t.v, a: -t.a, c: s.c - t.c}, true
	case s.v == nil || t.v != nil:
		return term{}, false
	case code == Add:
		return term{v: s.v, a: s.a, c: s.c + t.c}, true
	case code == Sub:
		return term{v: s.v, a: s.a, c: s.c - t.c}, true
	case code == Mul:
		return product(s, s.a*t.c, s.c*t.c)
	case code == Div:
		return product(s, s.a/t.c, s.c/t.c)
	}
	return term{}, false
}

// product is s times an infinite number too, or by 0: without an offset none arises, and with one it is that of the sum.
func product(s term, a, c float64) (r term, ok bool) {
	if s.c == 0 {
		return term{v: s.v, a: a}, true
	}
	return term{v: s.v, a: a, c: c}, !math.IsInf(c, 0) && !math.IsNaN(c)
}

// where chooses at once where the condition is of numbers.
func (x *exprBuilder) where(e *Expr) term {
	c := e.Args[0]
	if len(c.Args) == 2 {
		if s, t := x.term(c.Args[0]), x.term(c.Args[1]); s.v == nil && t.v == nil {
			if holds(c.Code, s.c, t.c) {
				return x.term(e.Args[1])
			}
			return x.term(e.Args[2])
		}
	}
	return whole(x.b.Where(x.full(c), x.short(e.Args[1]), x.short(e.Args[2])))
}

func holds(code Code, s, t float64) bool {
	switch code {
	case Eq:
		return s == t
	case Ne:
		return s != t
	case Lt:
		return s < t
	}
	return s <= t
}

// short is a node as a value, a number as one without dimensions.
func (x *exprBuilder) short(e *Expr) Value {
	if t := x.term(e); t.v == nil {
		return x.b.Number(x.t.DType, t.c)
	}
	return x.full(e)
}

// full is a node as a value in the expression's shape.
func (x *exprBuilder) full(e *Expr) Value {
	switch t := x.term(e); {
	case t.v == nil:
		return x.b.Expand(x.b.Number(x.t.DType, t.c), x.t.shape)
	case t.a == 1 && t.c == 0:
		return t.v
	case t.a == -1 && t.c == 0:
		x.terms[e.id].v = x.b.Unary(Neg, t.v)
	case t.c == 0:
		x.terms[e.id].v = x.b.Scale(t.v, t.a)
	default:
		x.terms[e.id].v = x.b.Affine(t.v, t.a, t.c)
	}
	t := &x.terms[e.id]
	t.a, t.c = 1, 0
	return t.v
}
