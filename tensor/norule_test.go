package tensor

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ir"
)

// TestNoRuleIsAnError: a gradient through an op that has no rule is refused by name, first and second.
func TestNoRuleIsAnError(t *testing.T) {
	env, err := Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	without := func(x *Tensor) *Tensor {
		in := [1]*Tensor{x}
		y := x.quiet().Sin()
		op := ir.New(ir.Sin, ir.Attr{}, x.typ)
		plan := *env.dev.plan(&op, nil)
		plan.rule = nil
		recordOp(&plan, &ir.Params{}, x.env, in[:], []*Tensor{y}, 0)
		return y
	}
	for name, f := range map[string]func(x *Tensor){
		"first": func(x *Tensor) { without(x).Sum().Backward() },
		"second": func(x *Tensor) {
			Grad(GradGraph(x.Square().Mul(without(x.Detach())).Sum(), x)[0].Mul(without(x)).Sum(), x)
		},
	} {
		_, err := env.Try(func(e *Env) *Tensor { f(e.Ones(3).RequireGrad()); return nil })
		var own *Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), "sin") || !strings.Contains(err.Error(), "norule_test.go") || !strings.Contains(err.Error(), "no gradient") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
