// Package onepage is one page for a person who asks or is asked for help. It is about a machine and how it trains (the
// environment, one operation measured, a short training with its memory and its time, and what is wrong), about files that
// other programs left behind (what is wrong, with pictures of their time and memory), or both. It needs nothing to be wrong,
// and no card: what there is none of it says. The page is a file of its own, without scripts and without anything to fetch.
package onepage

import (
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/prof"
)

// Report is what is told. Its JSON is documented in docs/report.md.
type Report struct {
	Made        time.Time         `json:"made"`
	Version     string            `json:"version"`
	Device      string            `json:"device"` // that was measured; "" if the machine was not looked at
	Why         string            `json:"why"`    // that one
	Environment []Row             `json:"environment"`
	Operation   *Operation        `json:"operation"`
	Training    *Training         `json:"training"`
	Verdict     *doctor.Verdict   `json:"verdict"` // of the machine; null: nobody looked
	Findings    []finding.Finding `json:"findings"`
	Checked     []string          `json:"checked"` // what is fine
	Files       []*finding.Report `json:"files,omitempty"`
	Pictures    []*Picture        `json:"pictures,omitempty"` // of files
	Notes       []string          `json:"notes,omitempty"`    // what could not be done
}

// Wrong tells whether there are findings, of the machine or of files; those of the small training are its own.
func (r *Report) Wrong() bool {
	return len(r.Findings) > 0 || slices.ContainsFunc(r.Files, func(f *finding.Report) bool { return len(f.Findings) > 0 })
}

// machine tells whether the page is of a machine, and not of files alone.
func (r *Report) machine() bool { return r.Device != "" }

// title is the page's heading.
func (r *Report) title() string {
	switch {
	case r.machine():
		return "This machine, and how it trains"
	case len(r.Files) == 1:
		return name(r.Files[0].File)
	}
	return "What these files say"
}

// Row is a fact with its name.
type Row struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Operation is a product of two square matrices of float32, timed with the device waited for before and after.
type Operation struct {
	Size     int     `json:"n"`
	Device   string  `json:"device"`
	Times    int     `json:"times"`
	Median   float64 `json:"median_seconds"` // asked for and waited for
	Least    float64 `json:"least_seconds"`
	Most     float64 `json:"most_seconds"`
	Asked    float64 `json:"asked_seconds"` // until the call returned, the median: what a program without a wait measures
	FLOPS    float64 `json:"flops_per_second"`
	Peak     float64 `json:"peak_flops_per_second,omitempty"` // of a card that is known
	Modelled bool    `json:"modelled,omitempty"`              // a simulated card: the times are those of its simulation on this host
}

// Training is some steps of a small model.
type Training struct {
	Model      string            `json:"model"`
	Parameters int               `json:"parameters"`
	Batch      int               `json:"batch"`
	Steps      int               `json:"steps"`
	Step       float64           `json:"step_seconds"`
	Shares     []Share           `json:"shares"` // of the time of a step
	Memory     *prof.Timeline    `json:"memory"`
	Terms      []Term            `json:"memory_terms"`
	Strip      *Strip            `json:"timeline"`
	Findings   []finding.Finding `json:"findings"` // of the profile: they are of this small program, not of the machine
	Checked    string            `json:"checked"`
	Modelled   bool              `json:"modelled,omitempty"`
}

// Share is a part of the time of a step.
type Share struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"` // of a step
	Share   float64 `json:"share"`
	Idle    bool    `json:"idle"`
	Text    string  `json:"text"` // what it is, for people
}

// Term is a part of a device's memory that may be what runs out.
type Term struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Known bool   `json:"known"` // Bytes were seen here
	Grows string `json:"grows"` // with what
	Less  string `json:"less"`  // what makes it less
}
