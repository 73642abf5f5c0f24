package doctor

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// Environment is what is said of a Python environment.
type Environment struct {
	Root   string      `json:"root"`
	By     []string    `json:"by"`               // what led to it: VIRTUAL_ENV, PATH, kernel NAME, …
	Python string      `json:"python,omitempty"` // its version
	Builds []BuildSays `json:"builds"`           // of PyTorch, JAX and TensorFlow
}

// BuildSays is what is said of a framework in an environment.
type BuildSays struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Device  string   `json:"device"`         // that it is built for: cpu, cuda, rocm, xpu, metal
	CUDA    string   `json:"cuda,omitempty"` // that it is built with
	Code    []string `json:"code,omitempty"` // for which cards: sm_90, compute_90
	Says    string   `json:"says"`
}

// judges say of a build why a card does not compute by it; the first that finds something has its name.
var judges = []struct {
	judge func(*Facts, build) []ill
	says  string
}{
	{otherBuild, "not built for the card that is here"}, {noCode, "no code for the card that is here"}, {driverOld, "the driver is too old for it"},
	{newerPTX, "the driver does not compile its PTX"}, {librariesMissing, "libraries are missing"},
}

// environments says what is in each environment, and whether the machine's cards compute by it.
func environments(f *Facts) []Environment {
	var all []Environment
	if f.Python == nil {
		return nil
	}
	for _, e := range f.Python.Environments {
		says := Environment{Root: e.Root, By: e.By, Python: e.Python, Builds: []BuildSays{}}
		for i := range e.Frameworks {
			says.Builds = append(says.Builds, saysOf(f, build{e, &e.Frameworks[i]}))
		}
		all = append(all, says)
	}
	return all
}

func saysOf(f *Facts, b build) BuildSays {
	s := BuildSays{Name: b.Name, Version: b.Version, Device: b.Device, CUDA: b.CUDA, Says: "fits the card that is here"}
	for _, r := range b.Code {
		s.Code = append(s.Code, r.String())
	}
	for _, j := range judges {
		if (f.hasCard() || s.Device == "cuda") && len(j.judge(f, b)) > 0 {
			s.Says = j.says
			return s
		}
	}
	switch {
	case f.appleChip() && b.Name == "torch":
		s.Says = "mps, if its Python is for this chip"
		if b.Machine == "arm64" || b.Machine == "universal" {
			s.Says = "mps"
		}
	case !f.hasCard() && b.Device == "cuda":
		s.Says = "no card is here: it computes on the CPU"
	case !f.hasCard():
		s.Says = "computes on the CPU"
	case b.Device == "cuda" && len(b.Code) == 0:
		s.Says = "built for cards; for which could not be told"
	case b.Device == "cuda" && len(f.chips()) == 0:
		s.Says = "built for cards; which one is here could not be told"
	case b.Device == "":
		s.Says = "what it is built for could not be told"
	}
	return s
}

// environmentsText is one line for each environment with a framework, and how many have none.
func environmentsText(all []Environment, width int) string {
	var b strings.Builder
	without := 0
	for _, e := range all {
		if len(e.Builds) == 0 {
			without++
		}
		for _, s := range e.Builds {
			b.WriteString(render.Wrap(fmt.Sprintf("  %s (%s), Python %s: %s", e.Root, strings.Join(e.By, ", "), known(e.Python), s.line()), width, 4) + "\n")
		}
	}
	if without > 0 {
		fmt.Fprintf(&b, "  %s without PyTorch, JAX and TensorFlow\n", counted(without, "environment"))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nPython, by what files say:\n" + b.String()
}

// line is a build in words.
func (s BuildSays) line() string {
	text := s.Name + " " + s.Version
	if s.Device != "" {
		text += ", for " + s.Device
	}
	if s.CUDA != "" {
		text += " " + s.CUDA
	}
	if len(s.Code) > 0 {
		text += " (" + strings.Join(s.Code, " ") + ")"
	}
	return text + ": " + s.Says
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
