// Package finding is what is said of a training, a machine or a file that something is wrong with: findings, each with its
// evidence, one thing to do, and what that gains; and the rules over figures of a window of a training's steps. The rules and
// their thresholds are those that trainers' tools have in common; each names its own.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Finding is one thing that is wrong, or that costs time or memory. Its JSON is documented, and stays.
type Finding struct {
	Rule        string     `json:"rule"`               // the same for ever: "R17", "D01", "O05", "J02"
	Name        string     `json:"name,omitempty"`     // of the rule, where it has one: "loader-bound"
	Title       string     `json:"title"`              // what is wrong, one sentence
	Evidence    []Evidence `json:"evidence"`           // what it was concluded from
	Fix         string     `json:"fix"`                // one thing to do, and the command where there is one
	More        string     `json:"more,omitempty"`     // what else to know of doing it
	Gain        Gain       `json:"gain"`               // what doing it gives
	Confidence  Confidence `json:"confidence"`         // in the conclusion
	DisprovedBy string     `json:"disproved_by"`       // what would show that it is not so
	Line        string     `json:"line,omitempty"`     // of the program or the file, where one is to blame
	Modelled    bool       `json:"modelled,omitempty"` // its times are a model's
}

// Evidence is a figure, a name or a row that a finding was concluded from.
type Evidence struct {
	Name  string `json:"name,omitempty"`
	Value any    `json:"value,omitempty"` // a number or a string
	Unit  string `json:"unit,omitempty"`  // of a number: "us", "bytes", "share"
	Text  string `json:"text"`            // for people
}

// Says is evidence that is one sentence.
func Says(format string, args ...any) []Evidence {
	return []Evidence{{Text: fmt.Sprintf(format, args...)}}
}

// Gain is what mending gives.
type Gain struct {
	Text   string  `json:"text"`              // how it was computed, or what it is if it is no number
	StepUS float64 `json:"step_us,omitempty"` // microseconds of a step
	Bytes  int64   `json:"bytes,omitempty"`   // of memory
	Whole  bool    `json:"whole,omitempty"`   // StepUS is of all that the file has, which marks no steps
}

// Saves is a gain of time in each step.
func Saves(d time.Duration, formula string) Gain {
	return Gain{Text: formula, StepUS: float64(d) / float64(time.Microsecond)}
}

// Step is the gain of each step.
func (g Gain) Step() time.Duration { return time.Duration(g.StepUS * float64(time.Microsecond)) }

// Confidence in a finding.
type Confidence string

// The degrees of confidence.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// rank is larger for more.
func (c Confidence) rank() int { return slices.Index([]Confidence{Low, Medium, High}, c) }

// Sort puts what gains most first: time, then memory, then what is surest. Equals keep their order.
func Sort(all []Finding) {
	sorting.By(all, ByGain)
}

// ByGain compares findings in the order of Sort.
func ByGain(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Gain.StepUS, a.Gain.StepUS), cmp.Compare(b.Gain.Bytes, a.Gain.Bytes), cmp.Compare(b.Confidence.rank(), a.Confidence.rank()))
}

// String is the finding as a paragraph for people.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", cmp.Or(f.Name, f.Rule), f.Title)
	if f.Line != "" {
		fmt.Fprintf(&b, " (%s)", f.Line)
	}
	b.WriteString("\n")
	for _, e := range f.Evidence {
		fmt.Fprintf(&b, "  %s\n", e.Text)
	}
	fmt.Fprintf(&b, "  to do: %s\n", f.Fix)
	if f.More != "" {
		fmt.Fprintf(&b, "         %s\n", f.More)
	}
	if gain := f.GainText(); gain != "" {
		fmt.Fprintf(&b, "  gain:  %s\n", gain)
	}
	return b.String()
}

// GainText is the gain in words.
func (f *Finding) GainText() string {
	model := ""
	if f.Modelled {
		model = ", as modelled"
	}
	switch g := f.Gain; {
	case g.StepUS > 0 && g.Whole:
		return fmt.Sprintf("some %s of the whole%s (%s)", render.Duration(g.Step()), model, g.Text)
	case g.StepUS > 0:
		return fmt.Sprintf("some %s a step%s (%s)", render.Duration(g.Step()), model, g.Text)
	case g.Bytes > 0:
		return fmt.Sprintf("%s (%s)", render.Bytes(g.Bytes), g.Text)
	default:
		return g.Text
	}
}

// Report is what is said of one file or machine.
type Report struct {
	File     string         `json:"file"`
	Kind     string         `json:"kind"`              // "trace", "snapshot", "error", "job-log", …
	Figures  map[string]any `json:"figures"`           // by names that stay
	Findings []Finding      `json:"findings"`          // in order of gain
	Checked  []string       `json:"checked"`           // what was looked at, and is healthy
	Members  []string       `json:"members,omitempty"` // the files of a group
	Notes    []string       `json:"notes,omitempty"`   // of the reading: where a file is cut, bytes that are no text
	Detail   any            `json:"-"`                 // what a comparison of several files of a kind needs
}
