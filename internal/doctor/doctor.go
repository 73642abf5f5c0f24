// Package doctor says why a machine does not compute on its NVIDIA cards, or does so slowly. Probes (package probe) collect
// [Facts]; rules are pure functions of them, so that a machine can be judged elsewhere; [Judge] applies all rules and names the
// first layer that is broken.
//
// The ids of rules, D01 to D67, are those of a catalogue of causes and stay. A rule has a row in a table, and there a fixture
// that it finds and one that it nearly finds.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// ill is a finding, whose Fix is one command to type.
type ill = finding.Finding

// rule is a row of a table of rules.
type rule struct {
	id     string
	name   string              // no other row has it
	step   Step                // of the ladder, that it is about
	breaks bool                // without a cure a card does not compute
	what   string              // what is fine if it finds nothing
	can    func(f *Facts) bool // there is something to judge
	saw    func(f *Facts) bool // it was seen that all is well; nil: where there is something to judge and nothing is found, it was
	judge  func(f *Facts) []ill
}

// rules are all rows. Those of one step are in the order in which causes are likely.
var rules = slices.Concat(busRules, kernelRules, nodeRules, libraryRules, cudaRules, selectionRules, pythonRules, desktopRules, limitRules, healthRules, speedRules)

// Diagnosis is what is said of a machine. Its JSON is documented, and stays.
type Diagnosis struct {
	Kind     string            `json:"kind"` // "doctor"
	Version  int               `json:"version"`
	Machine  string            `json:"machine"` // in words
	Figures  map[string]any    `json:"figures"`
	Findings []finding.Finding `json:"findings"` // what breaks the ladder first, by its steps
	Checked  []string          `json:"checked"`  // what is fine
	Ladder   []Rung            `json:"ladder"`
	Python   []Environment     `json:"python,omitempty"` // environments
	Verdict  Verdict           `json:"verdict"`
	Notes    []string          `json:"notes,omitempty"`
}

// Verdict is the end of it: where the machine is broken first, and what to type.
type Verdict struct {
	Broken   string             `json:"broken,omitempty"` // the step: "P2"; empty: none is
	Rule     string             `json:"rule,omitempty"`
	Text     string             `json:"text"`
	Evidence []finding.Evidence `json:"evidence,omitempty"`
	Command  string             `json:"command,omitempty"`
	Untested []string           `json:"untested,omitempty"` // because of it
}

// Judge applies all rules to a machine's facts.
func Judge(f *Facts) *Diagnosis {
	d := &Diagnosis{Kind: "doctor", Version: Version, Machine: machineOf(f), Figures: figuresOf(f), Findings: []finding.Finding{}, Checked: []string{}, Notes: f.Notes}
	found := d.apply(f, rules)
	if !slices.ContainsFunc(found, func(a applied) bool { return a.breaks }) {
		found = append(found, d.apply(f, lastRules)...)
	}
	sorting.By(found, func(a, b applied) int {
		switch {
		case a.breaks != b.breaks && a.breaks:
			return -1
		case a.breaks != b.breaks:
			return 1
		}
		return int(a.step - b.step)
	})
	for _, a := range found {
		d.Findings = append(d.Findings, a.Finding)
	}
	d.Ladder = climb(f, found)
	d.Python = environments(f)
	d.Verdict = verdict(d.Ladder, found)
	return d
}

// applied is what a row of the table found.
type applied struct {
	*rule
	finding.Finding
}

// apply runs rows, and keeps what they find fine.
func (d *Diagnosis) apply(f *Facts, rows []rule) (found []applied) {
	for i := range rows {
		r := &rows[i]
		if r.can != nil && !r.can(f) {
			continue
		}
		ills := r.judge(f)
		for _, x := range ills {
			x.Rule, x.Name = r.id, r.name
			found = append(found, applied{r, x})
		}
		if len(ills) == 0 && (r.saw == nil || r.saw(f)) {
			d.Checked = append(d.Checked, r.id+" "+r.what)
		}
	}
	return found
}

func verdict(ladder []Rung, found []applied) Verdict {
	var v Verdict
	for _, r := range ladder {
		if r.State == Untested {
			v.Untested = append(v.Untested, r.ID+" "+r.Name)
		}
	}
	if len(found) == 0 || !found[0].breaks {
		v.Text = "no layer is broken"
		if len(v.Untested) > 0 {
			v.Text = "no layer that could be looked at is broken"
		}
		if len(found) > 0 {
			v.Text += fmt.Sprintf("; %s can be better, most of all: %s", things(len(found)), found[0].Title)
			v.Rule, v.Command, v.Evidence = found[0].Rule, found[0].Fix, found[0].Evidence
		}
		return v
	}
	a := found[0]
	v.Broken, v.Rule, v.Evidence, v.Command = a.step.ID(), a.Rule, a.Evidence, a.Fix
	v.Text = fmt.Sprintf("the first broken layer is %s (%s): %s", a.step.ID(), a.step, a.Title)
	return v
}

func things(n int) string {
	if n == 1 {
		return "one thing"
	}
	return fmt.Sprintf("%d things", n)
}

// one is a single ill. do is the command to type; more is what else to know of it, or empty.
func one(title string, evidence []finding.Evidence, do, more string, sure finding.Confidence, disproved string) []ill {
	return []ill{{Title: title, Evidence: evidence, Fix: do, More: more, Confidence: sure, DisprovedBy: disproved, Gain: finding.Gain{Text: "the card computes"}}}
}

// gains replaces what curing gives: of ills that break nothing.
func gains(ills []ill, text string) []ill {
	for i := range ills {
		ills[i].Gain.Text = text
	}
	return ills
}

// value is evidence that has a name and a value.
func value(name string, v any, format string, args ...any) finding.Evidence {
	return finding.Evidence{Name: name, Value: v, Text: fmt.Sprintf(format, args...)}
}

// machineOf is the machine in words.
func machineOf(f *Facts) string {
	words := []string{f.OS + "/" + f.Arch}
	if p := f.Platform; p.Name != "" {
		words = append(words, strings.TrimSpace(p.Name+" "+p.Release))
	}
	if f.Platform.Kernel != "" {
		words = append(words, "kernel "+f.Platform.Kernel)
	}
	switch p := f.Platform; {
	case p.Container != "":
		words = append(words, "in a container ("+p.Container+")")
	case p.WSL:
		words = append(words, "under WSL")
	case p.Hypervisor:
		words = append(words, "in a virtual machine")
	}
	return strings.Join(words, ", ")
}

// figuresOf are the figures of a machine, by names that stay.
func figuresOf(f *Facts) map[string]any {
	out := map[string]any{"cards_on_bus": len(f.cards()), "cards_nvml": len(f.NVML.Cards), "cards_cuda": len(f.CUDA.Cards),
		"cpus": f.CPU.Allowed, "memory_bytes": f.Memory.Total}
	for name, v := range map[string]string{"driver_kernel": f.Kernel.Driver, "driver_library": f.library("libcuda.so.1").Version, "cuda": cudaText(f.CUDA.Version)} {
		if v != "" {
			out[name] = v
		}
	}
	return out
}
