package finding

import (
	"strings"
	"time"
)

// Facts are what the rules look at. Times are of the whole window, not of a step.
type Facts struct {
	Device   string        `json:"device"`
	Took     time.Duration `json:"took_ns"`
	Steps    int           `json:"steps"`
	Timed    bool          `json:"timed"`    // the device tells when it works; without, only what needs no times is judged
	OnHost   bool          `json:"on_host"`  // the host computes: nothing is launched, and nobody waits
	Modelled bool          `json:"modelled"` // times of the device are a model's

	Busy   time.Duration `json:"busy_ns"`   // the device worked: side by side counts once
	Copies time.Duration `json:"copies_ns"` // of Busy, in which it did nothing but copy
	Idle   Idle          `json:"idle"`

	Launches   int           `json:"launches"`
	LaunchHost time.Duration `json:"launch_host_ns"` // in which the host launched
	Kernel     time.Duration `json:"kernel_ns"`      // the median kernel
	Pauses     time.Duration `json:"pauses_ns"`      // of Idle.Host, in gaps longer than Pause
	Captured   time.Duration `json:"captured_ns"`    // of Idle.Host, between launches of a captured step, which is one launch where nobody times each
	Watching   time.Duration `json:"watching_ns"`    // of the host, between launches: what it takes to tell their times

	Waits []Wait `json:"waits"`
	Moves []Move `json:"moves"`

	Products    time.Duration `json:"products_ns"`    // matrix products and convolutions
	Wide        time.Duration `json:"wide_ns"`        // of them in float32 and float64
	WideLine    string        `json:"wide_line"`      // of the program that most of Wide is of
	Tensor      float64       `json:"tensor"`         // peak of tensor cores over that without them; 0 where there are none
	Elementwise time.Duration `json:"elementwise_ns"` // what only reads and writes, at more than 60 % of the memory's bandwidth

	NoGradient []string `json:"no_gradient"` // parameters that no gradient reached
	Growing    []Growth `json:"growing"`
}

// Idle is why no device worked.
type Idle struct {
	Loader time.Duration `json:"loader_ns"` // the program waited for a batch
	Wait   time.Duration `json:"wait_ns"`   // the host had waited for the device, and had not launched again
	Host   time.Duration `json:"host_ns"`   // the host was on its way to the next launch
}

// Sum is all of it.
func (i Idle) Sum() time.Duration { return i.Loader + i.Wait + i.Host }

// Wait is where the host waited for the device.
type Wait struct {
	What  string        `json:"what"`
	Line  string        `json:"line"`
	Count int           `json:"count"`
	Took  time.Duration `json:"took_ns"`
	Idle  time.Duration `json:"idle_ns"` // that followed: from the device's last work to its next
}

// Move is copies of a line, in one direction.
type Move struct {
	What   string        `json:"what"`
	Line   string        `json:"line"`
	Count  int           `json:"count"`
	Bytes  int64         `json:"bytes"`
	Took   time.Duration `json:"took_ns"`
	Host   time.Duration `json:"host_ns"`      // in which the host asked for them
	Median int64         `json:"median_bytes"` // bytes
}

// Growth is memory that every step leaves behind.
type Growth struct {
	Line  string `json:"line"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"` // a step
	Steps int    `json:"steps"` // in a row
}

// rule is one of the table's.
type rule struct {
	id    string // of the rules that all tools of the house share
	name  string
	needs string // what it looks at, for the list of what was checked
	judge func(f *Facts) []Finding
	can   func(f *Facts) bool // whether there is such a thing to look at; nil: on every device
}

// most is how many findings are told: more are not read.
const most = 5

// Judge applies all rules. Findings are in order of gain, those of memory and of mistakes behind those of time; at most five.
func Judge(f *Facts) []Finding {
	var all []Finding
	for _, r := range rules {
		for _, found := range r.judge(f) {
			found.Rule, found.Name, found.Modelled = r.id, r.name, f.Modelled && found.Gain.StepUS > 0
			found.Confidence = High
			all = append(all, found)
		}
	}
	Sort(all)
	return all[:min(len(all), most)]
}

// Rules are the names of all rules, in their order.
func Rules() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Checked says what was looked at, for those who are told that nothing was found.
func Checked(f *Facts) string {
	var of []string
	for _, r := range rules {
		if r.can == nil || r.can(f) {
			of = append(of, r.needs)
		}
	}
	return strings.Join(of, ", ")
}
