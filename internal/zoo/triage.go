package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/data/tickets"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// triage tells what becomes of tickets, whose samples have the mask as one more feature.
var triage = Kind{
	Name: "triage", Task: "triage", Data: Drawn, Defaults: Defaults{Steps: 300, Batch: 32, LR: 3e-3, Average: 0.97},
	Help: "what becomes of support tickets, sets of vectors drawn on the fly",
	Check: func(a *Arch) error {
		c := a.TriageConfig
		if c == nil || min(c.Tokens, c.Features, c.Outcomes, a.Hidden) < 1 || max(c.Tokens, c.Features, c.Outcomes, a.Hidden) > 1<<16 {
			return errors.New("tokens, features, outcomes and hidden must be from 1 to 65536")
		}
		return nil
	},
	Make: func(env *tensor.Env, a *Arch) nn.Module { return model.NewTriage(env, *a.TriageConfig, a.Hidden) },
	Begin: func(a *Arch) {
		a.TriageConfig, a.Hidden = &model.TriageConfig{Tokens: tickets.Tokens, Features: tickets.Features, Outcomes: len(tickets.Outcomes)}, 64
	},
	Title: func(a *Arch) string {
		return fmt.Sprintf("classifier of sets of up to %d vectors of %d, with %d units", a.Tokens, a.Features, a.Hidden)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("triage of features %d, hidden %d, outcomes %d", a.Features, a.Hidden, a.Outcomes)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("Token.weight", 2) || !s.rank("Head.weight", 2) {
			return Arch{}, false
		}
		c := model.TriageConfig{Tokens: tickets.Tokens, Features: s["Token.weight"][1], Outcomes: s["Head.weight"][0]}
		if like.TriageConfig != nil {
			c.Tokens = like.Tokens
		}
		return Arch{Kind: "triage", TriageConfig: &c, Hidden: s["Token.weight"][0]}, true
	},
	Input:   func(a *Arch) []int { return []int{a.Tokens, a.Features + 1} },
	Measure: func(_ *Arch, m *metric.Meters, out, y *tensor.Tensor) { m.Classes(out, y) },
	Classes: tickets.Outcomes,
}
