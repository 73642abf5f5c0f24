package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ir"
)

// valued are the units of a source for elementwise ops whose value is in their row: one for each op that is not by hand,
// and each floating dtype.
func valued(source string) (units []unit, err error) {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		row := code.Row()
		if row.Value == "" || row.ByHand {
			continue
		}
		text, err := cpp(code)
		if err != nil {
			return nil, fmt.Errorf("the row of %s: %w", code, err)
		}
		operands, _ := row.Operands()
		for _, dt := range dtype.All() {
			if !row.Class.Has(dt) {
				continue
			}
			name := code.String() + "_" + dt.String()
			units = append(units, unit{source: source, name: "value_" + name, target: kernels.Base, defines: []string{
				"-DELEMENT=" + dt.String(), "-DFUNCTION=" + name, fmt.Sprintf("-DOPERANDS=%d", operands),
				"-DPARAMETERS=" + [...]string{"", ", C p", ", C p, C q"}[row.Params], "-DVALUE=" + text,
			}})
		}
	}
	return units, nil
}

// words are elementwise ops in C++, of C, the type that is computed in; math.cuh has the functions.
var words = map[ir.Code]string{
	ir.Neg: "-%s", ir.Add: "%s + %s", ir.Sub: "%s - %s", ir.Mul: "%s * %s", ir.Div: "%s / %s",
	ir.Eq: "%s == %s", ir.Ne: "%s != %s", ir.Lt: "%s < %s", ir.Le: "%s <= %s", ir.Where: "%s ? %s : %s",
	ir.Abs: "abs(%s)", ir.Sign: "C((%[1]s > 0) - (%[1]s < 0))", ir.Floor: "floor(%s)", ir.Ceil: "ceil(%s)", ir.Round: "rint(%s)", ir.Trunc: "trunc(%s)",
	ir.Sqrt: "sqrt(%s)", ir.Rsqrt: "1 / sqrt(%s)", ir.Exp: "exp(%s)", ir.Expm1: "expm1(%s)", ir.Log: "log(%s)", ir.Log1p: "log1p(%s)",
	ir.Sin: "sin(%s)", ir.Cos: "cos(%s)", ir.Tanh: "tanh(%s)", ir.Sigmoid: "sigmoid(%s)", ir.Erf: "erf(%s)", ir.ReLU: "larger(%s, C(0))",
	ir.Pow: "pow(%s, %s)", ir.Rem: "floorMod(%s, %s)", ir.Maximum: "larger(%s, %s)", ir.Minimum: "smaller(%s, %s)",
	ir.GELU: "gelu(%s)", ir.GELUTanh: "geluTanh(%s)", ir.SiLU: "silu(%s)",
	ir.ReLUGrad: "%s > 0 ? %s : C(0)", ir.GELUGrad: "geluGrad(%s, %s)", ir.GELUTanhGrad: "geluTanhGrad(%s, %s)", ir.SiLUGrad: "siluGrad(%s, %s)",
}

// cpp is an op's value as C++: a statement for each step, and a return. No step is joined with another, so that nothing is
// fused that the other engines round.
func cpp(code ir.Code) (string, error) {
	e, err := code.ValueExpr(func(c ir.Code) bool { return words[c] != "" })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	names := map[*ir.Expr]any{}
	for i, n := range e.Nodes() {
		if names[n] = leaf(n); n.Code == ir.Invalid {
			continue
		}
		format, ok := words[n.Code]
		if !ok {
			return "", fmt.Errorf("%s has no word in C++", n.Code)
		}
		var args []any
		for _, a := range n.Args {
			args = append(args, names[a])
		}
		names[n] = fmt.Sprintf("v%d", i)
		fmt.Fprintf(&b, "auto v%d = %s; ", i, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "return %s;", names[e])
	return b.String(), nil
}

func leaf(n *ir.Expr) string {
	switch {
	case n.Name != ir.NoName:
		return map[ir.Name]string{ir.NameX: "x", ir.NameY: "y", ir.NameP: "p", ir.NameQ: "q"}[n.Name]
	case math.IsInf(n.Number, 0):
		return map[bool]string{true: "C(infinity64)", false: "-C(infinity64)"}[n.Number > 0]
	}
	return "C(" + strconv.FormatFloat(n.Number, 'g', -1, 64) + ")"
}
