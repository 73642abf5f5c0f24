package ir

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
)

func TestParseExprErrors(t *testing.T) {
	for text, words := range map[string]string{
		"":                       "missing",
		"x +":                    "a number, a name or ( is missing",
		"x y":                    "not understood",
		"(x":                     `')' is missing`,
		"y":                      "neither a name here", // an op of one operand has no y
		"sum(x)":                 "neither a name here nor an elementwise op",
		"clamp(x)":               "without parameters",
		"abs(x, x)":              "abs takes 1 operands, not 2",
		"where(x, 1, 2)":         "operand 0 of where is a condition: false, want true",
		"x + lt(x, 1)":           "operand 1 of add is a condition: true, want false",
		"lt(x, 1)":               "it is a condition",
		"where(x =< 1, 1, 2)":    `there is no comparison "=<"`,
		"where(x < 1, 1)":        "where takes 3 operands, not 2",
		"exp(x, x, x, x":         "is missing before",
		"exp()":                  "a number, a name or ( is missing",
		"a = x; b":               "neither a name here",
		"1e999 * x":              "is no number",
		"not(x)":                 "want true",
		"abs(where(x < 1, 2, ))": "missing before",
	} {
		e, err := ParseExpr(text, 1)
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, %v, want %q", text, e, err, words)
		}
	}
}

// TestRowsParse: every value and gradient is an expression of what its op has.
func TestRowsParse(t *testing.T) {
	for c := Invalid + 1; c < codeCount; c++ {
		row := c.Row()
		texts := slices.Clone(row.Gradient.Of)
		if row.Value != "" {
			texts = append(texts, row.Value)
		}
		for i, text := range texts {
			if text == "" {
				continue
			}
			e, err := ParseExpr(text, row.min)
			if err != nil {
				t.Errorf("%s: %v", c, err)
				continue
			}
			uses := e.Uses()
			if value := i == len(row.Gradient.Of); value && uses>>NameOut != 0 {
				t.Errorf("%s: the value %q names its result or a gradient", c, text)
			}
			if row.Params < 2 && uses>>NameQ&1 == 1 || row.Params < 1 && uses>>NameP&1 == 1 {
				t.Errorf("%s: %q names a parameter that the op does not have", c, text)
			}
		}
		if n := len(row.Gradient.Of); n > 0 && n != row.min {
			t.Errorf("%s has %d operands and %d gradients", c, row.min, n)
		}
	}
}

// noted is a builder that notes what it is asked for.
type noted struct{ ops []string }

type notedValue struct{ t *Type }

func (v notedValue) Type() *Type { return v.t }

func (b *noted) Emit(code Code, attr Attr, p Params, in ...Value) []Value {
	types := make([]*Type, len(in))
	for i, v := range in {
		types[i] = v.Type()
	}
	op := New(code, attr, types...)
	out, err := op.Infer()
	if err != nil {
		panic(err)
	}
	text := code.String()
	for i := range p.N {
		text += " " + strconv.FormatFloat(math.Float64frombits(p.Value[i]), 'g', -1, 64)
	}
	if !code.View() {
		b.ops = append(b.ops, text)
	}
	values := make([]Value, len(out))
	for i, t := range out {
		values[i] = notedValue{t}
	}
	return values
}

// TestExprBuilds pins the ops that expressions become: equal parts once, numbers gathered, branches that numbers choose.
func TestExprBuilds(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"x", ""},
		{"-x", "neg"},
		{"2*x + 1", "affine 2 1"},
		{"0.5 * (1 + erf(x/2))", "affine 0.5 -0, erf, affine 0.5 0.5"},
		{"1 - x*x", "mul, affine -1 1"},
		{"x / (1 + abs(x))", "abs, affine 1 1, div"},
		{"a = 1 + abs(x); g / (a*a)", "abs, affine 1 1, mul, div"},
		{"(1 + abs(x)) * (1 + abs(x))", "abs, affine 1 1, mul"},
		{"pow(x, p - 1)", "pow_scalar 2"},
		{"where(p == 3, x, exp(x))", ""},
		{"where(p < 3, x, exp(x))", "exp"},
		{"where(x > 0, g, 0)", "full 0, lt, full 0, where"},
		{"0 * 5 + sqrt(4)", "full 2"},
		{"maximum(x, -inf)", "full -Inf, maximum"},
		{"gelu(x) - q", "gelu, affine 1 -7"},
		{"inf * x", "affine +Inf -0"},
		{"x / 0", "affine +Inf -0"},
		{"-x * inf", "affine -Inf -0"},
		{"inf * (x + 1)", "full +Inf, affine 1 1, mul"},
		{"(x - 1) / 0", "affine 1 -1, full 0, div"},
		{"(x + 1) * 0", "affine 0 -0"},
	} {
		e, err := ParseExpr(c.text, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		b, p := &noted{}, Scalars(3, 7)
		typ := Dense(dtype.F32, 2, 3)
		out := B{Builder: b}.Expr(e, typ, &p, func(Name) Value { return notedValue{typ} })
		if got := strings.Join(b.ops, ", "); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
		if !out.Type().SameShape(typ) {
			t.Errorf("%q is %s", c.text, out.Type())
		}
	}
}

// TestValueExpr: calls of ops that have a value are replaced by it, where they are not kept.
func TestValueExpr(t *testing.T) {
	e, err := SiLUGrad.ValueExpr(func(Code) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range e.Nodes() {
		if n.Code.Row().Value != "" {
			t.Errorf("%s is left", n.Code)
		}
	}
	p := &exprParser{inline: true, keep: func(c Code) bool { return c == SiLU }}
	e, err = p.parse("gelu(x) + silu(x)", 1)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, n := range e.Nodes() {
		if n.Code == SiLU {
			kept++
		}
		if n.Code == GELU {
			t.Error("gelu is left")
		}
	}
	if kept != 1 {
		t.Errorf("silu is there %d times", kept)
	}
}
