package recipe_test

import (
	"go/ast"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestEveryOptimizerHasARow: what package optim makes from parameters can be had by name.
func TestEveryOptimizerHasARow(t *testing.T) {
	var made []string
	for _, f := range testutil.Source(t, "../../optim", false) {
		for _, d := range f.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || len(f.Type.Params.List) == 0 {
				continue
			}
			if f.Name.Name == "NewLBFGS" { // which wants its loss as a function, of all data: a run's is a batch's
				continue
			}
			if _, walks := f.Type.Params.List[0].Type.(*ast.IndexListExpr); walks && strings.HasPrefix(f.Name.Name, "New") {
				made = append(made, strings.ToLower(f.Name.Name[3:]))
			}
		}
	}
	if len(made) < 3 {
		t.Fatalf("package optim makes %v", made)
	}
	for _, name := range made {
		if recipe.OptimizerOf(name) == nil {
			t.Errorf("%s has no row; the rows are %v", name, recipe.OptimizerNames())
		}
	}
}

// learnt is a matrix and a vector after some steps against a gradient that is not theirs.
func learnt(t *testing.T, o *recipe.Optimizer, s recipe.Step, rate func(step int) float64) []float64 {
	t.Helper()
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	w, b := tensor.From(env, []float32{1, -2, 3, -4}, 2, 2).RequireGrad(), tensor.From(env, []float32{2, 1}, 2).RequireGrad()
	params := iter.Seq2[string, *tensor.Tensor](func(yield func(string, *tensor.Tensor) bool) {
		_ = yield("w", w) && yield("b", b)
	})
	opt := o.Make(params, s)
	for step := range 16 {
		opt.SetLR(rate(step))
		x := tensor.From(env, []float32{float32(step%5) - 1.5, 0.5 - float32(step%3)}, 1, 2) // gradients change their signs
		x.MatMul(w).Add(b).Square().Sum().Backward()
		opt.Step()
	}
	var is []float64
	read := func() { is = append(w.Floats(), b.Floats()...) }
	if o.Averages {
		opt.(interface{ Averaged(f func()) }).Averaged(read)
	} else {
		read()
	}
	return is
}

func constant(int) float64 { return 0.03 }

// TestOptimizers: every row learns as it is, again the same, and otherwise where anything that it is told is changed.
func TestOptimizers(t *testing.T) {
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		t.Run(o.Name, func(t *testing.T) {
			base := recipe.Step{LR: 0.03, WeightDecay: o.Decay}
			is := learnt(t, o, base, constant)
			if !slices.Equal(is, learnt(t, o, base, constant)) {
				t.Error("the same steps end elsewhere")
			}
			if slices.Equal(is, []float64{1, -2, 3, -4, 2, 1}) || slices.ContainsFunc(is, func(v float64) bool { return math.IsNaN(v) }) {
				t.Errorf("it learns %v", is)
			}
			if slices.Equal(is, learnt(t, o, recipe.Step{LR: base.LR, WeightDecay: o.Decay + 0.5}, constant)) {
				t.Error("another weight decay changes nothing")
			}
			for _, s := range o.Settings {
				if !slices.ContainsFunc(others(s), func(v float64) bool {
					return !slices.Equal(is, learnt(t, o, recipe.Step{LR: base.LR, WeightDecay: o.Decay, Values: recipe.Values{s.Name: v}}, constant))
				}) {
					t.Errorf("%s changes nothing", s.Name)
				}
			}
			explicit := recipe.Values{}
			for _, s := range o.Settings {
				explicit[s.Name] = s.Default
			}
			if base.Values = explicit; !slices.Equal(is, learnt(t, o, base, constant)) {
				t.Error("the defaults, when they are given, are others")
			}
			if o.Matrices {
				frozen := learnt(t, o, recipe.Step{WeightDecay: 0.5}, constant)
				plain := learnt(t, o, recipe.Step{}, constant)
				if slices.Equal(frozen[:4], plain[:4]) {
					t.Error("matrices do not decay")
				}
			}
			still := recipe.Step{LR: 0.03, Rule: func(_ string, _ *tensor.Tensor, r *optim.Rates) { r.Scale = 0 }}
			if !slices.Equal(learnt(t, o, still, constant), []float64{1, -2, 3, -4, 2, 1}) {
				t.Error("a rule that is given does not hold")
			}
			if s := (recipe.Step{}); !slices.Equal(learnt(t, o, s, func(int) float64 { return 0 }), []float64{1, -2, 3, -4, 2, 1}) {
				t.Error("a rate of 0 learns")
			}
		})
	}
}

// others are values within a setting's bounds that are not its default.
func others(s recipe.Setting) (list []float64) {
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 0.97} {
		if v := s.Least + share*(min(s.Below, s.Least+2)-s.Least); v != s.Default {
			list = append(list, v)
		}
	}
	return list
}

// TestSchedules: every row begins with the rate, after a warm-up that rises to it, and those that end do so.
func TestSchedules(t *testing.T) {
	const lr, warmup, end = 0.5, 3, 13
	for i := range recipe.Schedules {
		s := &recipe.Schedules[i]
		t.Run(s.Name, func(t *testing.T) {
			f := s.Make(lr, end, warmup, nil)
			for step := range warmup {
				if got, want := f(step), lr*float64(step+1)/(warmup+1); math.Abs(got-want) > 1e-15 {
					t.Errorf("rate %v in step %d of the warm-up, want %v", got, step, want)
				}
			}
			if f(warmup) != lr || s.Make(lr, end, 0, nil)(0) != lr {
				t.Errorf("it begins with %v and %v", f(warmup), s.Make(lr, end, 0, nil)(0))
			}
			if s.Ends && (f(end) != f(end+100) || f(end) == f(warmup)) {
				t.Errorf("it ends at step %d with %v, and goes on with %v", end, f(end), f(end+100))
			}
			for _, own := range s.Settings {
				if !slices.ContainsFunc(others(own), func(v float64) bool {
					g := s.Make(lr, end, warmup, recipe.Values{own.Name: v})
					return slices.ContainsFunc([]int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 3000}, func(step int) bool { return f(step) != g(step) })
				}) {
					t.Errorf("%s changes nothing", own.Name)
				}
			}
		})
	}
}

// TestFlags: names are unique in their table and apart from each other; settings that share a name share their bounds.
func TestFlags(t *testing.T) {
	for _, names := range [][]string{recipe.OptimizerNames(), recipe.ScheduleNames(false)} {
		if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
			t.Errorf("names twice: %v", names)
		}
	}
	for _, f := range recipe.Flags() {
		for _, o := range f.Owners {
			s := o.Setting
			if s.Least != f.Least || s.Below != f.Below || s.Usage != f.Usage || !(s.Least <= s.Default && s.Default < s.Below) {
				t.Errorf("%s of --%s %s: %+v, elsewhere %+v", f.Name, o.Flag, o.Name, s, f.Setting)
			}
		}
		if help := f.Help(); !strings.HasPrefix(help, "of "+f.Owners[0].Name) && !strings.HasPrefix(help, "of --"+f.Owners[0].Flag+" "+f.Owners[0].Name) {
			t.Errorf("help of %s: %s", f.Name, help)
		}
	}
	for _, c := range []struct {
		owners []recipe.Owner
		usage  string
		want   string
	}{
		{[]recipe.Owner{own("a", 0)}, "", "of a"}, {[]recipe.Owner{own("a", 0.5)}, "what it is", "of a: what it is (default 0.5)"},
		{[]recipe.Owner{own("a", 1e-8), own("b", 1e-8), own("c", 1e-8)}, "", "of a, b and c (default 1e-08)"},
		{[]recipe.Owner{own("a", 0.9), own("b", 0.5), own("c", 0.9)}, "", "of a, b and c (default a and c 0.9, b 0.5)"},
	} {
		f := recipe.Flag{Setting: recipe.Setting{Name: "x", Usage: c.usage}, Owners: c.owners}
		if f.Help() != c.want {
			t.Errorf("%q, want %q", f.Help(), c.want)
		}
	}
}

// own is an optimizer with a setting x.
func own(name string, value float64) recipe.Owner {
	return recipe.Owner{Flag: "optimizer", Name: name, Setting: recipe.Setting{Name: "x", Default: value}}
}
