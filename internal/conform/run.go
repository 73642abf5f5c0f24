package conform

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower"
	"github.com/warpline-ml/warpline/internal/ref"
)

// Status is what became of a case.
type Status uint8

// The outcomes.
const (
	Passed      Status = iota
	Failed             // a wrong result, a write outside, an error where none should be, or none where one should be
	Lowered            // no kernel, and the op's lowering passed
	Unsupported        // no kernel and no lowering
)

var statusNames = [...]string{"passed", "failed", "lowered", "unsupported"}

// String is the outcome as a word.
func (s Status) String() string { return statusNames[s] }

// Result is the outcome of one case.
type Result struct {
	Case   *Case
	Status Status
	Err    error  // of a failure that no element shows
	Worst  Worst  // the element that is farthest off
	Sum    uint64 // of the results' bytes: equal for equal bits
}

// String is the case with its outcome, one line.
func (r *Result) String() string {
	s := fmt.Sprintf("%s: %s (%s), %s", r.Status, r.Case.Name, r.Case.Why, r.Case.Op.String())
	switch {
	case r.Err != nil:
		return s + ": " + r.Err.Error()
	case r.Status == Failed:
		return s + ": " + r.Worst.String()
	}
	return s
}

// Runner runs cases on a device.
type Runner struct {
	dev    device.Device
	bench  *bench
	lowers *Launcher
}

// NewRunner returns a runner with queues of its own.
func NewRunner(dev device.Device) (*Runner, error) {
	b, err := newBench(dev)
	if err != nil {
		return nil, err
	}
	l, err := NewLauncher(dev)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return &Runner{dev, b, l}, nil
}

// Close gives the runner's memory and queues back.
func (r *Runner) Close() error { return errors.Join(r.bench.close(), r.lowers.Close()) }

// Run runs one case.
func (r *Runner) Run(c *Case) Result {
	if c.Op.Code.View() {
		return c.viewed()
	}
	k, err := r.dev.Prepare(c.Op)
	switch {
	case errors.Is(err, device.ErrUnsupported):
		return r.Lower(c)
	case err != nil:
		return Result{Case: c, Status: Failed, Err: err}
	}
	got, sum, err := r.bench.launch(c, k, false)
	if r.bench.null {
		return c.judge(nil, exact, err)
	}
	if c.Fails {
		if refused := new(refusal); errors.As(err, &refused) {
			return Result{Case: c}
		}
		return Result{Case: c, Status: Failed, Err: fmt.Errorf("the launch must be an error, got %v", err)}
	}
	row, _ := Tolerance(c.Op.Code)
	res := r.widened(c).judge(got, row, err)
	res.Case, res.Sum = c, sum
	return res
}

// widened is the case that a device computes: with every product in float32 where it rounds no operands.
func (r *Runner) widened(c *Case) *Case {
	if r.dev.Info().Wider == "" || c.Op.Attr.Precision == ir.Highest {
		return c
	}
	w := &Case{Name: c.Name, Why: c.Why, Op: c.Op, Params: c.Params, In: c.In, Alias: c.Alias, Shift: c.Shift, dt: c.dt, image: c.image}
	w.Op.Attr.Precision = ir.Highest
	return w
}

// Changing lists the ops whose launch parameters an engine must take from cells: what differs from step to step.
func Changing() []ir.Code {
	list := []ir.Code{ir.Uniform, ir.Normal, ir.RandInt, ir.Dropout, ir.Affine, ir.Axpy, ir.Lerp, ir.GradNorm, ir.LossScale, ir.SGD, ir.AdamW, ir.Adam8bit}
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			list = append(list, code)
		}
	}
	return list
}

// Cells runs a case with its launch parameters in cells, and demands the bits that it gives by value, whose sum is given.
// taken is false where the engine refuses them, with a [device.CellError].
func (r *Runner) Cells(c *Case, sum uint64) (taken bool, err error) {
	k, err := r.dev.Prepare(c.Op)
	if err != nil {
		return false, err
	}
	_, got, err := r.bench.launch(c, k, true)
	var refused *device.CellError
	switch {
	case errors.As(err, &refused):
		if refused.Code != c.Op.Code || refused.Param < 0 || refused.Param >= c.Params.N {
			return false, fmt.Errorf("the wrong parameter is refused: %w", refused)
		}
		return false, nil
	case err != nil:
		return true, err
	case got != sum:
		return true, errors.New("parameters in cells give other bits than by value")
	}
	return true, nil
}

// judge compares results with the reference, unless the device has none.
func (c *Case) judge(got []ref.Array, row Row, err error) Result {
	res := Result{Case: c, Status: Failed, Err: err}
	switch {
	case err != nil:
		return res
	case got == nil:
		res.Status = Passed
		return res
	}
	if res.Worst, res.Err = c.compare(got, row); res.Err == nil && res.Worst.excess() <= 1 {
		res.Status = Passed
	}
	return res
}

// viewed checks that the type and offset of a view name the elements that the reference does.
func (c *Case) viewed() Result {
	out, err := c.Op.Infer()
	if err != nil {
		return Result{Case: c, Status: Failed, Err: err}
	}
	from := min(c.Op.ViewOffset()*out[0].DType.Size(), len(c.image[0]))
	return c.judge([]ref.Array{ref.Decode(c.image[0][from:], out[0])}, exact, nil)
}

// Lower runs the lowering of a case's op in place of its kernel. Simpler ops need not see a bad index: the lowering of a
// case that must fail is only run.
func (r *Runner) Lower(c *Case) Result {
	rule := lower.Of(c.Op.Code)
	if rule == nil {
		return Result{Case: c, Status: Unsupported}
	}
	var got []ref.Array
	err := r.lowers.Try(func() {
		defer r.lowers.Release()
		in := make([]ir.Value, len(c.In))
		for i, a := range c.In {
			in[i] = r.lowers.Put(c.Op.In(i), a)
		}
		for _, v := range rule(ir.B{Builder: r.lowers}, &c.Op, &c.Params, in) {
			got = append(got, r.lowers.Get(v))
		}
	})
	if c.Fails || r.bench.null && err == nil {
		return Result{Case: c, Status: Lowered}
	}
	row, _ := Tolerance(c.Op.Code)
	res := r.widened(c).judge(got, row.lowered(c.Op.In(0).DType), err)
	res.Case = c
	if res.Status == Passed {
		res.Status = Lowered
	}
	return res
}

// Share is the error of the worst element as a share of what is allowed, at most 1e9.
func (r *Result) Share() float64 { return min(r.Worst.excess(), 1e9) }
