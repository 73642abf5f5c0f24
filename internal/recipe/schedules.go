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
