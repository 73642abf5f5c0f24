package recipe

import (
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/optim"
)

// Schedule is a course of the learning rate. See docs/add-a-row.md.
type Schedule struct {
	Name     string
	Help     string // after the name; empty where that says it
	Ends     bool   // it is about a number of steps, which --schedule-steps may set
	Settings []Setting
	New      func(lr float64, steps int, v Values) optim.Schedule // steps: after the warm-up; 0 unless it ends
}

// Schedules are all that there are, in the order in which people are told of them.
var Schedules = []Schedule{
	{Name: Constant, New: func(lr float64, _ int, _ Values) optim.Schedule { return optim.Constant(lr) }},
	{Name: "cosine", Help: "to 0", Ends: true, New: func(lr float64, steps int, _ Values) optim.Schedule { return optim.Cosine(lr, 0, steps) }},
	{Name: "linear", Help: "to 0", Ends: true, New: func(lr float64, steps int, _ Values) optim.Schedule { return optim.Linear(lr, 0, steps) }},
	{Name: "polynomial", Help: "to 0", Ends: true, Settings: []Setting{{Name: "lr-power", Default: 2, Below: 100, Usage: "of the share of steps that is left"}},
		New: func(lr float64, steps int, v Values) optim.Schedule {
			return optim.Polynomial(lr, v["lr-power"], max(steps, 1))
		}},
	{Name: "wsd", Help: "(stays, and goes to 0 at the end)", Ends: true, Settings: []Setting{{Name: "lr-decay", Default: 0.2, Below: 1, Usage: "the share of steps in which the rate goes to 0"}},
		New: func(lr float64, steps int, v Values) optim.Schedule {
			decay := max(int(v["lr-decay"]*float64(steps)), 1)
			return optim.WarmupStableDecay(lr, 0, 0, steps-decay, decay)
		}},
	{Name: "step", Settings: []Setting{factor(0.1), {Name: "lr-every", Default: 1000, Least: 1, Below: 1e9, Usage: "steps from one change of the rate to the next"}},
		New: func(lr float64, _ int, v Values) optim.Schedule {
			return optim.Stepwise(lr, v["lr-factor"], int(v["lr-every"]))
		}},
	{Name: "exponential", Settings: []Setting{factor(0.999)}, New: func(lr float64, _ int, v Values) optim.Schedule { return optim.Exponential(lr, v["lr-factor"]) }},
	{Name: "restarts", Help: "(cosines to 0)", Settings: []Setting{{Name: "lr-period", Default: 1000, Least: 1, Below: 1e9, Usage: "steps of the first cosine"},
		{Name: "lr-longer", Default: 2, Least: 1, Below: 100, Usage: "how many times as long each cosine is as the one before"}},
		New: func(lr float64, _ int, v Values) optim.Schedule {
			return optim.CosineRestarts(lr, 0, int(v["lr-period"]), int(v["lr-longer"]))
		}},
}

// factor is what the rate is multiplied by.
func factor(def float64) Setting {
	return Setting{Name: "lr-factor", Default: def, Below: 1, Usage: "of the rate at each change"}
}

// Constant is the name of the rate that stays as it is.
const Constant = "constant"

// ScheduleOf is the row with that name, or nil.
func ScheduleOf(name string) *Schedule {
	if i := slices.IndexFunc(Schedules, func(s Schedule) bool { return s.Name == name }); i >= 0 {
		return &Schedules[i]
	}
	return nil
}

// ScheduleNames are those of the table; ending asks for those that are about a number of steps.
func ScheduleNames(ending bool) (names []string) {
	for _, s := range Schedules {
		if s.Ends || !ending {
			names = append(names, s.Name)
		}
	}
	return names
}

// ScheduleHelp names them for people.
func ScheduleHelp() string {
	var parts []string
	for _, s := range Schedules {
		parts = append(parts, strings.TrimSpace(s.Name+" "+s.Help))
	}
	return strings.Join(parts, ", ")
}

// Make is New after a warm-up, with what was given and the row's defaults for the rest. steps is where it ends, warm-up
// included.
func (s *Schedule) Make(lr float64, steps, warmup int, v Values) optim.Schedule {
	if !s.Ends {
		steps = warmup
	}
	course := s.New(lr, steps-warmup, v.of(s.Settings))
	if warmup == 0 {
		return course
	}
	return optim.Warmup(warmup, course)
}
