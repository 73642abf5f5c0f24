package doctor

import (
	"fmt"
	"strings"
)

// Step is a rung of the ladder of layers, P0 to P10, each of which needs those below.
type Step int

// The steps.
const (
	P0  Step = iota // what the machine is
	P1              // a card on the bus, and who has it
	P2              // the kernel's half of the driver
	P3              // device nodes
	P4              // what the kernel's half answers
	P5              // unified memory
	P6              // the driver's libraries
	P7              // the management library, NVML
	P8              // CUDA
	P9              // libraries for compute and communication
	P10             // health, and what makes it slow
)

var steps = []struct {
	name  string
	shows func(f *Facts) (text string, ok bool) // that it is fine
}{
	{"platform", func(f *Facts) (string, bool) { return machineOf(f), true }},
	{"bus", showsBus},
	{"kernel module", showsModule},
	{"device nodes", showsNodes},
	{"kernel interface", func(f *Facts) (string, bool) {
		return "answers as version " + f.Control.Version, f.Control.Version != ""
	}},
	{"unified memory", func(f *Facts) (string, bool) {
		return "nvidia-uvm initialises", f.UVM.Asked && f.UVM.Errno == "" && f.UVM.Status == 0
	}},
	{"driver libraries", showsLibraries},
	{"NVML", func(f *Facts) (string, bool) {
		return fmt.Sprintf("%d cards, driver %s", len(f.NVML.Cards), f.NVML.Driver), f.NVML.works() && len(f.NVML.Cards) > 0
	}},
	{"CUDA", showsCUDA},
	{"compute libraries", showsCompute},
	{"performance and health", func(f *Facts) (string, bool) {
		return "judged by what NVML and the system tell of an idle machine", f.NVML.works() && len(f.NVML.Cards) > 0
	}},
}

// ID is "P4".
func (s Step) ID() string { return fmt.Sprintf("P%d", int(s)) }

// String is the layer's name.
func (s Step) String() string { return steps[s].name }

// State is what is known of a step.
type State string

// The states.
const (
	OK       State = "ok"
	Broken   State = "broken"
	Weak     State = "can be better"
	Untested State = "untested"
	Absent   State = "not on this system"
)

// Rung is a step and its state.
type Rung struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text,omitempty"` // what was seen
}

// climb tells the state of each step. One that is not seen to be fine is untested.
func climb(f *Facts, found []applied) []Rung {
	var out []Rung
	for i := range steps {
		s := Step(i)
		r := Rung{ID: s.ID(), Name: s.String(), State: Untested}
		if text, ok := steps[i].shows(f); ok {
			r.State, r.Text = OK, text
		} else if s >= P2 && s <= P5 && !f.hasModule() || s >= P2 && s <= P9 && f.OS == "darwin" {
			r.State = Absent
		}
		for _, a := range found {
			switch {
			case a.step != s || r.State == Broken:
			case a.breaks:
				r.State, r.Text = Broken, a.Rule
			case r.State == OK || r.State == Weak:
				r.State, r.Text = Weak, strings.TrimPrefix(r.Text+"; ", "; ")+a.Rule
			}
		}
		out = append(out, r)
	}
	return out
}

func showsBus(f *Facts) (string, bool) {
	if f.Platform.Tegra {
		return "a GPU of the Tegra kind, which is not on the bus", true
	}
	if f.Platform.DXG {
		return "/dev/dxg lends the card of Windows", true
	}
	var names []string
	for _, c := range f.cards() {
		names = append(names, c.Address)
	}
	for _, a := range f.Adapters {
		if a.Vendor == nvidia && len(names) == 0 {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, ", "), len(names) > 0
}

func showsModule(f *Facts) (string, bool) {
	text := "version " + f.Kernel.Driver
	if f.Kernel.Open != nil && *f.Kernel.Open {
		text += ", the open flavour"
	}
	return text, f.Kernel.Driver != ""
}

func showsNodes(f *Facts) (string, bool) {
	opened := 0
	for _, n := range f.Nodes {
		if n.isCard() && n.Open == "ok" {
			opened++
		}
	}
	return fmt.Sprintf("/dev/nvidiactl and %d of cards open", opened), f.node("/dev/nvidiactl").Open == "ok" && opened > 0
}

func showsLibraries(f *Facts) (string, bool) {
	l := f.library("libcuda.so.1")
	return strings.TrimSpace("libcuda " + l.Version), l.Path != "" && l.Bits == 64
}

func showsCUDA(f *Facts) (string, bool) {
	text := fmt.Sprintf("CUDA %s, %d cards", cudaText(f.CUDA.Version), len(f.CUDA.Cards))
	ran, failed := 0, 0
	for _, d := range f.Deep {
		ran, failed = ran+d.Cases, failed+d.Failed
	}
	switch {
	case ran == 0:
		text += "; kernels and copies only with --deep"
	case failed == 0:
		text += fmt.Sprintf("; %d kernels and copies were right", ran)
	}
	return text, f.CUDA.works() && len(f.CUDA.Cards) > 0 && failed == 0
}

func showsCompute(f *Facts) (string, bool) {
	var have []string
	for _, l := range f.Libraries {
		if isCompute(l.Name) && l.Path != "" && l.Bits == 64 {
			have = append(have, strings.TrimSpace(stem(l.Name)+" "+l.Version))
		}
	}
	if len(have) == 0 && f.OS == "windows" {
		return "those of the frameworks in use", f.sawTorch()
	}
	if len(have) == 0 {
		return "none is where the loader looks, and this program needs none; PyTorch brings its own", f.Libraries != nil
	}
	return strings.Join(have, ", "), true
}
