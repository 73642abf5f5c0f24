package recipe

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Optimizer is a way to apply gradients. See docs/add-a-row.md.
type Optimizer struct {
	Name     string
	Decay    float64 // of weights, where nothing else is asked for
	Matrices bool    // only tensors of two or more dimensions decay, and not biases and norms
	Settings []Setting
	New      func(p Params, s Step) optim.Optimizer
}

// Params are the parameters of a model with their paths.
type Params = iter.Seq2[string, *tensor.Tensor]

// Step is what an optimizer is told. Zeros are meant.
type Step struct {
	LR, WeightDecay, Clip float64
	Rule                  optim.Rule // nil: the row's
	Rounding              optim.Rounding
	Seed                  uint64
	Values                Values // of each of the row's settings
}

// Optimizers are all that there are, in the order in which people are told of them.
var Optimizers = []Optimizer{
	{Name: "sgd", Settings: []Setting{{Name: "momentum", Below: 1}}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewSGD(p, optim.SGDConfig{LR: meant(s.LR), Momentum: s.Values["momentum"], WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adam", Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewAdam(p, s.adam()) }},
	{Name: "adamw", Decay: 0.01, Matrices: true, Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewAdamW(p, s.adam()) }},
}

// moments are the settings of Adam and its kin, with PyTorch's defaults.
var moments = []Setting{
	{Name: "beta1", Default: 0.9, Below: 1}, {Name: "beta2", Default: 0.999, Below: 1}, {Name: "eps", Default: 1e-8, Below: math.Inf(1)},
}

func (s *Step) adam() optim.AdamWConfig {
	return optim.AdamWConfig{
		LR: meant(s.LR), Beta1: meant(s.Values["beta1"]), Beta2: meant(s.Values["beta2"]), Eps: meant(s.Values["eps"]),
		WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed,
	}
}

// meant is a number for the configurations of package optim, in which 0 asks for the default and a negative number for 0.
func meant(v float64) float64 {
	if v == 0 {
		return -1
	}
	return v
}

// OptimizerOf is the row with that name, or nil.
func OptimizerOf(name string) *Optimizer {
	if i := slices.IndexFunc(Optimizers, func(o Optimizer) bool { return o.Name == name }); i >= 0 {
		return &Optimizers[i]
	}
	return nil
}

// OptimizerNames are those of the table.
func OptimizerNames() (names []string) {
	for _, o := range Optimizers {
		names = append(names, o.Name)
	}
	return names
}

// Make is New with what was given, and the row's defaults and rule for the rest.
func (o *Optimizer) Make(p Params, s Step) optim.Optimizer {
	s.Values = s.Values.of(o.Settings)
	if o.Matrices && s.Rule == nil {
		s.Rule = optim.DecayMatricesOnly
	}
	return o.New(p, s)
}

// DecayHelp tells people what weight decay is about with each optimizer.
func DecayHelp() string {
	type group struct {
		decay    float64
		matrices bool
	}
	names := map[group][]string{}
	var order []group
	for _, o := range Optimizers {
		g := group{o.Decay, o.Matrices}
		if names[g] = append(names[g], o.Name); len(names[g]) == 1 {
			order = append(order, g)
		}
	}
	var parts []string
	for _, g := range order {
		what := "of all tensors"
		if g.matrices {
			what = "of those with two or more dimensions"
		}
		parts = append(parts, advice.List(names[g])+": "+what+" (default "+number(g.decay)+")")
	}
	return strings.Join(parts, "; ")
}
