// Package vet is what reading a training program can find: one table of rules for programs in Python and in Go. Rules that
// [diagnose] has too, over what a run leaves behind, have its ids; those that only a source shows begin with V.
//
// [diagnose]: https://github.com/warpline-ml/warpline/blob/main/docs/diagnose.md
package vet

import (
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Rule is one mistake.
type Rule struct {
	ID   string // the same for ever
	Name string
	Why  string // what it costs, or what goes wrong; a sentence or two
	In   Languages
}

// Languages are those in which programs can make a mistake.
type Languages uint8

// The languages.
const (
	Python Languages = 1 << iota
	Go
)

// Has tells whether l is among them.
func (s Languages) Has(l Languages) bool { return s&l != 0 }

// String names them.
func (s Languages) String() string {
	switch s {
	case Python:
		return "Python"
	case Go:
		return "Go"
	}
	return "Python and Go"
}

// Rules are all, in the order of their ids.
func Rules() []Rule { return rules }

// Find is the rule of an id or a name, in letters of either case.
func Find(name string) (Rule, bool) {
	for _, r := range rules {
		if r.is(name) {
			return r, true
		}
	}
	return Rule{}, false
}

// is tells whether a name is the rule's, or its id.
func (r Rule) is(name string) bool {
	return strings.EqualFold(name, r.ID) || strings.EqualFold(name, r.Name)
}

// Found is a finding in a file.
type Found struct {
	Line   int    `json:"line_number"`    // from 1
	Column int    `json:"column"`         // in characters, from 1
	Cell   int    `json:"cell,omitempty"` // of a notebook, from 1; the line is the cell's
	Source string `json:"source"`         // the line
	File   string `json:"file,omitempty"` // in which it is, if that is one that the program imports
	// Mechanical tells that --fix can write the fix into the file.
	Mechanical bool `json:"mechanical,omitempty"`
	finding.Finding
}

var rules = []Rule{
	{"R01", "moved-in-part", "Part of a batch lies on the device and part on the host: the first operation that meets both fails.", Python | Go},
	{"R06", "kept-across-steps", "What is kept with its graph keeps all values of its step: memory grows from step to step until none is left.", Python | Go},
	{"R07", "never-zeroed", "Gradients are added to those that are there: without zeroing, each step takes the sum of all steps before it.", Python},
	{"R09", "graph-in-evaluation", "Without no_grad a forward pass keeps every value for a backward that never comes: several times the memory, and slower.", Python | Go},
	{"R13", "waits-in-loop", "Reading a value of the device makes the host wait until all that was launched is done; until it launches again, the device has nothing to do.", Python | Go},
	{"R14", "pageable-copies", "Only copies from pinned memory run beside the program; from other memory the host waits for each, at half of the rate.", Python},
	{"R17", "loader-bound", "Without workers, samples are decoded and transformed between the steps, while the device waits.", Python},
	{"R38", "data-parallel", "DataParallel copies the model to each device in every step and drives all from one thread; DistributedDataParallel is faster, on one machine too.", Python},
	{"R48", "timed-without-waiting", "Launches return before the device has worked: without waiting for it, the clock tells how long launching took.", Python | Go},
	{"V01", "zeroed-before-step", "Gradients are thrown away between backward and the step, which then changes nothing.", Python | Go},
	{"V02", "state-with-graph", "A state that goes on into the next step with its graph makes backward go through all steps before: an error, or memory and time that grow.", Python | Go},
	{"V03", "not-in-evaluation-mode", "Dropout drops and batch norm takes the batch's figures, and learns them, as long as the model is not in evaluation mode.", Python | Go},
	{"V04", "stays-in-evaluation-mode", "After the first evaluation the model stays in evaluation mode: dropout is off and batch norm does not learn for the rest of the training.", Python},
	{"V05", "backward-in-autocast", "Backward runs in the types that forward took; under autocast its operations are cast once more, and gradients lose precision.", Python},
	{"V06", "scaler-order", "A gradient scaler works only in its order: scale the loss, unscale, step by the scaler, update. Else steps take scaled gradients, or infinities.", Python | Go},
	{"V07", "clips-scaled-gradients", "Gradients are clipped while they are scaled by thousands: the limit then holds for the scaled ones, and nearly all is clipped.", Python},
	{"V08", "clips-too-late", "Gradients are clipped after the step that was to take them clipped, or before they are there.", Python},
	{"V09", "schedule-before-step", "The learning rate is changed before the first step: its first value is never used.", Python},
	{"V10", "empty-cache-in-loop", "Emptying the cache gives memory back to the driver, which is asked for it again in the next step: each time the device waits.", Python},
	{"V11", "deprecated-amp", "torch.cuda.amp has been deprecated since PyTorch 2.4; torch.amp takes the device's type.", Python},
	{"V12", "same-order-each-epoch", "A distributed sampler shuffles by seed and epoch: without set_epoch, all epochs have the same order.", Python},
	{"V13", "flags-that-contradict", "Benchmarking picks algorithms by their time, which differs from run to run: results cannot be reproduced with it.", Python},
	{"V14", "made-then-moved", "A tensor is made on the host and copied to the device each time, where it could be made there.", Python | Go},
	{"V15", "device-in-forward", "A device that is fixed within forward breaks the model on every other one: on a second GPU, on the CPU, under DistributedDataParallel.", Python},
	{"V16", "result-dropped", "A tensor's method gives a new tensor, and the result is not kept: nothing happens.", Python | Go},
	{"V17", "not-called", "The method is named and not called: nothing happens.", Python},
	{"V18", "hidden-parameters", "Modules in a plain list are not found: their parameters are in no optimizer, on no device and in no checkpoint.", Python},
	{"V19", "parameters-missed", "A module that is replaced after the optimizer was made has parameters that the optimizer does not have: they never learn.", Python | Go},
	{"V20", "probabilities-into-loss", "The loss takes scores and computes probabilities itself; of probabilities it computes them twice, and gradients nearly vanish.", Python | Go},
	{"V21", "graph-cut", "The loss has no graph any more: backward fails, or reaches no parameter.", Python},
	{"V22", "graph-retained", "A graph that is retained keeps all its values; mostly it hides a state that should have been detached.", Python},
	{"V23", "not-shuffled", "The training data comes in the same order in every epoch, often sorted by class.", Python},
	{"V24", "anomaly-mode", "Anomaly mode records a stack for every operation and looks at every gradient: for debugging, several times slower.", Python},
	{"V25", "counted-twice", "A loss goes backward by itself and as part of a sum: its gradient counts twice.", Python},
	{"V26", "copied-piecewise", "Every copy to the device has a price of its own, and the host waits for each: a batch is copied once, not element by element.", Python},
	{"V27", "used-after-turn", "What is made of a batch, or in a block, is released when it ends: a value that was not taken out cannot be read any more.", Go},
	{"V28", "used-after-backward", "Backward releases what the graph has made, from the first operation on a parameter down: what is to stay goes into its Slot, or is kept, before.", Go},
	{"V29", "errors-ignored", "A sample that cannot be read, or settings that do not fit, come as the loop's error, and the batch is nil then.", Go},
	{"V30", "copied-each-step", "A copy that gives the same values each time takes the link to the device, and often a wait, in every step.", Go},
	{"V31", "two-for-one-step", "Gradients add up until the step: two losses that go backward before it are one sum, whether that is meant or not.", Go},
	{"V32", "schedule-miscounted", "A schedule counts its own steps: one of epochs that steps in every batch is over within the first epochs, one of batches that steps once per epoch hardly begins.", Python},
}
