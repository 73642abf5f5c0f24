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
	Averages bool    // what is learnt is its own average of the weights: it has an Averaged, as optim.ScheduleFree has
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
	{Name: "sgd", Settings: []Setting{momentum(0)}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewSGD(p, optim.SGDConfig{LR: meant(s.LR), Momentum: s.Values["momentum"], WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adam", Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewAdam(p, s.adam()) }},
	{Name: "adamw", Decay: 0.01, Matrices: true, Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewAdamW(p, s.adam()) }},
	{Name: "amsgrad", Decay: 0.01, Matrices: true, Settings: moments, New: func(p Params, s Step) optim.Optimizer {
		c := s.adam()
		c.AMSGrad = true
		return optim.NewAdamW(p, c)
	}},
	{Name: "nadam", Settings: append(slices.Clip(moments), Setting{Name: "momentum-decay", Default: 4e-3, Below: math.Inf(1)}), New: func(p Params, s Step) optim.Optimizer {
		c := s.moments()
		c.Fading = meant(s.Values["momentum-decay"])
		return optim.NewNAdam(p, c)
	}},
	{Name: "radam", Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewRAdam(p, s.moments()) }},
	{Name: "adamax", Settings: moments, New: func(p Params, s Step) optim.Optimizer { return optim.NewAdamax(p, s.moments()) }},
	{Name: "rmsprop", Settings: []Setting{{Name: "alpha", Default: 0.99, Below: 1}, momentum(0), eps(1e-8)}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewRMSprop(p, optim.RMSpropConfig{LR: meant(s.LR), Alpha: meant(s.Values["alpha"]), Eps: meant(s.Values["eps"]), Momentum: s.Values["momentum"],
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adagrad", Settings: []Setting{{Name: "accumulator", Below: math.Inf(1), Usage: "what the sums of squares begin with"}, eps(1e-10)}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewAdagrad(p, optim.AdagradConfig{LR: meant(s.LR), Initial: s.Values["accumulator"], Eps: meant(s.Values["eps"]),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adadelta", Settings: []Setting{{Name: "rho", Default: 0.9, Below: 1}, eps(1e-6)}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewAdadelta(p, optim.AdadeltaConfig{LR: meant(s.LR), Rho: meant(s.Values["rho"]), Eps: meant(s.Values["eps"]),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "rprop", Settings: []Setting{
		{Name: "step-less", Default: 0.5, Least: 1e-6, Below: 1, Usage: "what the step of a weight is multiplied by where its gradient changed sign"},
		{Name: "step-more", Default: 1.2, Least: 1 + 1e-6, Below: math.Inf(1), Usage: "and where it kept it"},
		{Name: "step-least", Default: 1e-6, Below: 0.01, Usage: "the smallest step of a weight; --lr is the first"},
		{Name: "step-most", Default: 50, Least: 0.01, Below: math.Inf(1), Usage: "the largest"},
	}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewRprop(p, optim.RpropConfig{LR: meant(s.LR), Less: s.Values["step-less"], More: s.Values["step-more"], Least: meant(s.Values["step-least"]), Most: s.Values["step-most"],
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "asgd", Averages: true, Settings: []Setting{
		{Name: "lambd", Default: 1e-4, Below: math.Inf(1), Usage: "how fast weights and the rate fall"},
		{Name: "rate-power", Default: 0.75, Below: math.Inf(1), Usage: "the power with which the rate falls"},
		{Name: "average-after", Default: 1e6, Below: math.Inf(1), Usage: "the step after which the average of the weights begins; what is learnt is that"},
	}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewASGD(p, optim.ASGDConfig{LR: meant(s.LR), Lambda: meant(s.Values["lambd"]), Alpha: meant(s.Values["rate-power"]), T0: meant(s.Values["average-after"]),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "lion", Matrices: true, Settings: []Setting{beta("beta1", 0.9), beta("beta2", 0.99)}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewLion(p, optim.LionConfig{LR: meant(s.LR), Beta1: meant(s.Values["beta1"]), Beta2: meant(s.Values["beta2"]),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adafactor", Matrices: true, Settings: []Setting{{Name: "beta2-decay", Default: -0.8, Least: -100, Usage: "the newest square counts the number of the step to this power"}}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewAdafactor(p, optim.AdafactorConfig{LR: meant(s.LR), Beta2Decay: s.Values["beta2-decay"],
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	// One rate serves the matrices and the rest.
	{Name: "muon", Decay: 0.1, Matrices: true, Settings: append(slices.Clip(moments), momentum(0.95)), New: func(p Params, s Step) optim.Optimizer {
		return optim.NewMuon(p, optim.MuonConfig{LR: meant(s.LR), Momentum: meant(s.Values["momentum"]), MatchAdamW: true, Rest: s.adam(),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "schedulefree", Matrices: true, Averages: true, Settings: []Setting{beta("beta2", 0.999), eps(1e-8), {Name: "towards-average", Default: 0.9, Least: 1e-3, Below: 1, Usage: "how far the weights that train lie from what the gradients move to the average"}}, New: func(p Params, s Step) optim.Optimizer {
		return optim.NewScheduleFree(p, optim.ScheduleFreeConfig{LR: meant(s.LR), Beta1: s.Values["towards-average"], Beta2: meant(s.Values["beta2"]), Eps: meant(s.Values["eps"]),
			WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed})
	}},
	{Name: "adam8bit", Decay: 0.01, Matrices: true, Settings: moments, New: func(p Params, s Step) optim.Optimizer {
		c := s.adam()
		return optim.NewAdam8bit(p, optim.Adam8bitConfig{LR: c.LR, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps,
			WeightDecay: c.WeightDecay, Clip: c.Clip, Rule: c.Rule, Rounding: c.Rounding, Seed: c.Seed})
	}},
}

// moments are the settings of Adam and its kin, with PyTorch's defaults.
var moments = []Setting{beta("beta1", 0.9), beta("beta2", 0.999), eps(1e-8)}

// Settings that rows share.
func beta(name string, def float64) Setting { return Setting{Name: name, Default: def, Below: 1} }
func eps(def float64) Setting               { return Setting{Name: "eps", Default: def, Below: math.Inf(1)} }
func momentum(def float64) Setting          { return Setting{Name: "momentum", Default: def, Below: 1} }

func (s *Step) adam() optim.AdamWConfig {
	return optim.AdamWConfig{
		LR: meant(s.LR), Beta1: meant(s.Values["beta1"]), Beta2: meant(s.Values["beta2"]), Eps: meant(s.Values["eps"]),
		WeightDecay: meant(s.WeightDecay), Clip: s.Clip, Rule: s.Rule, Rounding: s.Rounding, Seed: s.Seed,
	}
}

func (s *Step) moments() optim.MomentsConfig {
	return optim.MomentsConfig{
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
