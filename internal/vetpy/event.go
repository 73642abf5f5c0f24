package vetpy

import "github.com/warpline-ml/warpline/internal/pysyntax"

// kind is what happens.
type kind uint8

const (
	evZero       kind = iota // gradients are zeroed
	evBackward               // by x.backward(), or engine.backward(x)
	evStep                   // an optimizer steps
	evSchedule               // a scheduler steps
	evScale                  // a scaler scales a loss
	evScalerStep             // a scaler steps an optimizer
	evUpdate                 // a scaler is updated
	evUnscale                //
	evClip                   // gradients are clipped
	evForward                // a module is called
	evWork                   // the device computes, by a function of torch
	evCriterion              // a loss is computed
	evRead                   // the host reads a tensor of the device: item, cpu, numpy, print
	evMove                   // a tensor is moved to a device
	evKeep                   // a value is put into a list, or added to what goes on
	evTrain                  // a module's mode is set
	evEval                   //
	evSync                   // the host waits for the device
	evClock                  // the host's clock is read
	evElapsed                // two of its times are subtracted
	evEmptyCache             //
	evMeet                   // an operation is given what lies on the device and on the host
	evCall                   // a call that a rule looks at by its name
)

// event is one thing that happens to tensors, modules or optimizers, where the walk comes by.
type event struct {
	kind    kind
	node    pysyntax.Node
	what    string    // canonical name of what is called, or of what is written into
	on      *value    // the receiver
	onText  string    // as it is written
	arg     *value    // the first argument
	args    []*value  // all of them
	loop    *loop     // the innermost one
	guarded bool      // by a condition within the innermost loop, which is not met each time
	guards  int       // how many there are
	arm     *arm      // the branch
	modes   modes     //
	forward bool      // within the forward of a module
	fn      *function // in whose body
	call    *pysyntax.Call
}

// modes are those of the with statements and decorators around.
type modes uint8

const (
	noGrad modes = 1 << iota
	autocast
	anomaly
)

// loop is a loop that is walked.
type loop struct {
	parent   *loop
	node     pysyntax.Node
	iter     *value
	text     string // what it goes over
	before   int    // the turn before the one that is recorded
	from     int    // events of a turn
	to       int
	fn       *function
	guards   int  // conditions around it within the loop around it
	lighting bool // made up around Lightning's training_step
	alone    bool // made up around a function that does a step, which another file calls
}

// within tells whether l is m or lies within m.
func (l *loop) within(m *loop) bool {
	for ; l != nil; l = l.parent {
		if l == m {
			return true
		}
	}
	return m == nil
}
