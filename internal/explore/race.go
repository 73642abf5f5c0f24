package explore

import (
	"fmt"
	"math"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/render"
)

// Runners are who races, and over what.
type Runners struct {
	CPU, Card          string // whose rates count
	CPUCores, GPUCores int
	Tasks              int
	Parallel           float64 // share of the tasks that do not wait for each other
	Work               float64 // operations of float32 of a task, one after the other
	Bytes              int64   // of a task, to the card and back
	Vectors            bool    // a core of the CPU uses its vectors
}

// Race is how it goes.
type Race struct {
	CPU Side `json:"cpu"`
	GPU Side `json:"gpu"`

	Tasks    int     `json:"tasks"`
	Parallel int     `json:"parallel_tasks"`
	Serial   int     `json:"serial_tasks"` // on one core of the CPU, on both sides
	Speedup  float64 `json:"speedup"`      // of the GPU over the CPU

	Amdahl Amdahl `json:"amdahl"`
	Note   string `json:"note"`
}

// Side is one of the two.
type Side struct {
	Name    string  `json:"name"`
	Cores   int     `json:"cores"`
	Rate    float64 `json:"core_flops"`   // a second, of a core
	Task    float64 `json:"task_seconds"` // on a core
	Rounds  int     `json:"rounds"`
	Elapsed float64 `json:"elapsed"` // seconds
	Phases  []Phase `json:"phases"`  // one after the other
	Frames  []Frame `json:"frames"`  // evenly spaced over the longer of both sides
}

// Phase is a part of a side's time.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Frame is a moment of a side.
type Frame struct {
	Seconds   float64 `json:"seconds"`
	Active    int     `json:"active"` // cores
	Completed int     `json:"completed"`
	Percent   float64 `json:"percent"`
}

// Amdahl is what a share of work that cannot be shared leaves to win: speed-up over one core of N such cores, 1 / ((1 − p) + p / N),
// after Amdahl, "Validity of the single processor approach", 1967.
type Amdahl struct {
	P     float64      `json:"p"`
	CPU   float64      `json:"cpu_cores_speedup"`
	GPU   float64      `json:"gpu_cores_speedup"`
	Limit *float64     `json:"limit"` // of any number of cores; null: none
	Curve [][2]float64 `json:"curve"` // cores, speed-up
}

// Frames is how many moments of a race are told.
const Frames = 100

// What runners may have.
const (
	mostRunners = 100_000
	mostTasks   = 1_000_000
)

// NewRace computes a race.
func NewRace(r Runners) (*Race, error) {
	c, cpu, err := r.check()
	if err != nil {
		return nil, err
	}
	x := &Race{Tasks: r.Tasks, Serial: int(math.Round(float64(r.Tasks) * (1 - r.Parallel))), Amdahl: amdahl(&r)}
	x.Parallel = r.Tasks - x.Serial
	lanes := 2 * cpu.Units // multiply-adds of one number at a time
	if r.Vectors {
		lanes = cpu.Float32Rate()
	}
	x.CPU = Side{Name: cpu.Model, Cores: r.CPUCores, Rate: 1e6 * float64(cpu.Clock*lanes)}
	x.GPU = Side{Name: c.Model, Cores: r.GPUCores, Rate: 2e6 * float64(c.Clock)}
	for _, s := range []*Side{&x.CPU, &x.GPU} {
		s.Task, s.Rounds = r.Work/s.Rate, int(ceil(int64(x.Parallel), int64(s.Cores)))
	}
	one := x.CPU.Task
	x.CPU.Phases = phases(Phase{"serial", float64(x.Serial) * one}, Phase{"rounds", float64(x.CPU.Rounds) * x.CPU.Task})
	bytes := r.Bytes * int64(x.Parallel)
	x.GPU.Phases = phases(Phase{"serial", float64(x.Serial) * one})
	if x.Parallel > 0 {
		there := Phase{"copy to device", estimate.Copy(c, bytes, true)}
		x.GPU.Phases = append(x.GPU.Phases, there, Phase{"launch", estimate.PerCall + estimate.PerLaunch}, Phase{"rounds", float64(x.GPU.Rounds) * x.GPU.Task}, Phase{"copy back", there.Seconds})
	}
	for _, s := range []*Side{&x.CPU, &x.GPU} {
		for _, p := range s.Phases {
			s.Elapsed += p.Seconds
		}
	}
	x.Speedup = x.CPU.Elapsed / x.GPU.Elapsed
	longest := max(x.CPU.Elapsed, x.GPU.Elapsed)
	x.CPU.frames(x, one, longest)
	x.GPU.frames(x, one, longest)
	x.Note = Modelled + ": a core of the CPU multiplies and adds " + map[bool]string{false: "one number at a time", true: "whole vectors"}[r.Vectors]
	return x, nil
}

// phases leaves out what takes no time.
func phases(all ...Phase) []Phase {
	kept := []Phase{}
	for _, p := range all {
		if p.Seconds > 0 {
			kept = append(kept, p)
		}
	}
	return kept
}

func (r *Runners) check() (*cards.Card, *cards.CPU, error) {
	c, err := card(r.Card)
	if err != nil {
		return nil, nil, err
	}
	if !(r.Parallel >= 0 && r.Parallel <= 1) {
		return nil, nil, advice.Failf("give a share from 0% to 100%", "--parallel is %g%%", 100*r.Parallel)
	}
	cpu, err := processor(r.CPU)
	for _, b := range []struct {
		name           string
		v, least, most float64
	}{{"cpu-cores", float64(r.CPUCores), 1, mostRunners}, {"gpu-cores", float64(r.GPUCores), 1, mostRunners}, {"tasks", float64(r.Tasks), 1, mostTasks},
		{"work", r.Work, 1, 1e15}, {"bytes", float64(r.Bytes), 0, 1 << 40}} {
		if err == nil {
			err = within(b.name, b.v, b.least, b.most)
		}
	}
	return c, cpu, err
}

// processor finds a processor by its name.
func processor(name string) (*cards.CPU, error) {
	var names []string
	for i := range cards.CPUs {
		if cards.CPUs[i].Name == name {
			return &cards.CPUs[i], nil
		}
		names = append(names, cards.CPUs[i].Name)
	}
	return nil, advice.Failf(advice.Meant(name, names)+"warpline sim cards lists them", "there is no processor %q", name)
}

// frames tells moments of a side, up to when both have come in.
func (s *Side) frames(x *Race, one, longest float64) {
	for i := range Frames + 1 {
		at := longest * float64(i) / Frames
		f := Frame{Seconds: at}
		if i == Frames {
			f.Completed = x.Tasks
		} else {
			f.Completed, f.Active = s.moment(x, one, at)
		}
		f.Percent = 100 * float64(f.Completed) / float64(x.Tasks)
		s.Frames = append(s.Frames, f)
	}
}

// moment is how many tasks are done at a time, and how many cores work.
func (s *Side) moment(x *Race, one, at float64) (completed, active int) {
	for _, p := range s.Phases {
		inside := at < p.Seconds
		switch {
		case p.Name == "serial" && inside && s == &x.GPU:
			return int(at / one), 0 // it is the CPU's work
		case p.Name == "serial" && inside:
			return int(at / one), 1
		case p.Name == "serial":
			completed += x.Serial
		case p.Name == "rounds" && inside:
			round := int(at / s.Task)
			done := min(round*s.Cores, x.Parallel)
			return completed + done, min(s.Cores, x.Parallel-done)
		case p.Name == "rounds":
			completed += x.Parallel
		case inside:
			return completed, 0
		}
		at -= p.Seconds
	}
	return completed, 0
}

func amdahl(r *Runners) Amdahl {
	p := r.Parallel
	speed := func(n float64) float64 { return 1 / ((1 - p) + p/n) }
	a := Amdahl{P: p, CPU: speed(float64(r.CPUCores)), GPU: speed(float64(r.GPUCores))}
	if p < 1 {
		limit := 1 / (1 - p)
		a.Limit = &limit
	}
	for n := 1.0; n <= 1<<16; n *= 2 {
		a.Curve = append(a.Curve, [2]float64{n, speed(n)})
	}
	return a
}

// Text is the same for people.
func (x *Race) Text(width int) string {
	t := render.Table{Header: []string{"", "cores", "a task", "rounds", "elapsed", "of it"}, Right: []bool{false, true, true, true, true, false}, Spare: []int{5}}
	for _, s := range []*Side{&x.CPU, &x.GPU} {
		var of []string
		for _, p := range s.Phases {
			of = append(of, p.Name+" "+span(p.Seconds))
		}
		t.Rows = append(t.Rows, []string{s.Name, fmt.Sprint(s.Cores), span(s.Task), fmt.Sprint(s.Rounds), span(s.Elapsed), strings.Join(of, ", ")})
	}
	limit := "any number of cores: any speed-up"
	if x.Amdahl.Limit != nil {
		limit = fmt.Sprintf("any number of cores: at most %.4g", *x.Amdahl.Limit)
	}
	return fmt.Sprintf("%d tasks, %d of them one after the other\n\n%s\nspeed-up %.4g\nAmdahl's law, %.4g %% parallel, over one such core: %d cores %.4g, %d cores %.4g, %s\n%s\n",
		x.Tasks, x.Serial, t.String(width), x.Speedup, 100*x.Amdahl.P, x.CPU.Cores, x.Amdahl.CPU, x.GPU.Cores, x.Amdahl.GPU, limit, x.Note)
}
