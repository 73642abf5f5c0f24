package tensor

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower"
)

// opPlan is everything a device needs to know of an op to run it again: found once, then read without a lock.
type opPlan struct {
	op     ir.Op
	out    []*ir.Type
	kernel *device.Kernel // nil for views, and where the op is lowered
	lower  lower.Rule
	rule   *autograd.Rule
	offset int // of a view, in elements
}

const planSlots = 1 << 12

// plan returns the plan of an op. The table is direct-mapped: bounded, and a clash costs a preparation.
func (d *Device) plan(op *ir.Op) *opPlan {
	slot := &d.plans[op.Hash()%planSlots]
	if p := slot.Load(); p != nil && p.op == *op {
		return p
	}
	p := d.newPlan(*op)
	slot.Store(p)
	return p
}

func (d *Device) newPlan(op ir.Op) *opPlan {
	out, err := op.Infer()
	if err != nil {
		raiseErr(op.Code.String(), advice(err), described{err, &op})
	}
	p := &opPlan{op: op, out: out, rule: autograd.Of(op.Code)}
	if op.Code.View() {
		p.offset = op.ViewOffset()
		return p
	}
	p.kernel, err = d.dev.Prepare(op)
	if err == nil {
		return p
	}
	if !errors.Is(err, device.ErrUnsupported) {
		raiseErr(op.Code.String(), "", err)
	}
	if p.lower = lower.Of(op.Code); p.lower == nil {
		raise(op.Code.String(), "move the values to another device or convert their dtype", "%s cannot do %v: %v", d.name, op, err)
	}
	return p
}

// advice is what to do about operands that do not fit.
func advice(err error) string {
	var dt *ir.DTypeError
	if errors.As(err, &dt) {
		return "convert with Cast"
	}
	return "go doc tensor says which shapes and dtypes it takes"
}

// described is an engine's error without the op's name, which Error prints already.
type described struct {
	err error
	op  *ir.Op
}

// Error implements error.
func (d described) Error() string {
	return strings.TrimPrefix(d.err.Error(), d.op.Code.String()+": ")
}

// Unwrap returns the engine's error.
func (d described) Unwrap() error { return d.err }

func (t *Tensor) apply1(code ir.Code, attr ir.Attr, p ir.Params) *Tensor {
	t.present()
	in := [1]*Tensor{t}
	var out [1]*Tensor
	run(t.env, code, &attr, &p, in[:], out[:])
	return out[0]
}

func apply2(code ir.Code, attr ir.Attr, p ir.Params, a, b *Tensor) *Tensor {
	in := [2]*Tensor{a, b}
	var out [1]*Tensor
	run(join(code.String(), a, b), code, &attr, &p, in[:], out[:])
	return out[0]
}

func apply3(code ir.Code, attr ir.Attr, p ir.Params, a, b, c *Tensor) *Tensor {
	a.present()
	in := [3]*Tensor{a, b, c}
	var out [1]*Tensor
	run(joinAll(code.String(), in[:]), code, &attr, &p, in[:], out[:])
	return out[0]
}

// maxOut is the most results an op has, multi-tensor updates apart.
const maxOut = 3

func apply(code ir.Code, attr ir.Attr, p ir.Params, in ...*Tensor) []*Tensor {
	in[0].present()
	out := make([]*Tensor, maxOut)
	n := run(joinAll(code.String(), in), code, &attr, &p, in, out)
	return out[:n]
}

// view is a value of the same storage with another type.
func (t *Tensor) view(code ir.Code, attr ir.Attr) *Tensor { return t.apply1(code, attr, ir.Params{}) }

// create runs an op without operands.
func (e *Env) create(code ir.Code, typ *ir.Type, p ir.Params) *Tensor {
	attr := ir.Attr{Out: typ}
	var out [1]*Tensor
	run(e, code, &attr, &p, nil, out[:])
	return out[0]
}

// run is the one way an op runs: check, cast by the policy, allocate, launch, record. It fills out with the results and
// returns their number. The caller's slices are not kept.
func run(e *Env, code ir.Code, attr *ir.Attr, p *ir.Params, in, out []*Tensor) int {
	if e.policy != dtype.Invalid && e.policy != dtype.F32 {
		autocast(e, code, in)
	}
	return exec(e, code, attr, p, in, out)
}

// exec is run without the precision policy.
func exec(e *Env, code ir.Code, attr *ir.Attr, p *ir.Params, in, out []*Tensor) int {
	var types [4]*ir.Type
	list := types[:0]
	dense := !code.View() && !code.AnyStride()
	for i, t := range in {
		t.alive(code.String())
		if dense && !t.typ.IsDense() {
			t = t.inside(e).Contiguous()
			in[i] = t
		}
		list = append(list, t.typ)
	}
	op := ir.New(code, *attr, list...)
	pl := e.dev.plan(&op)
	out = out[:len(pl.out)]
	switch {
	case code.View():
		out[0] = &Tensor{st: in[0].st, typ: pl.out[0], off: in[0].off + pl.offset, env: e}
	case pl.kernel == nil:
		e.runLowered(pl, p, in, out)
	default:
		e.compute(pl, p, in, out)
	}
	if pl.rule != nil && len(in) > 0 {
		recordOp(pl, p, e, in, out)
	}
	runtime.KeepAlive(in)
	return len(out)
}

// belowRun is how many calls lie between make and run: compute and exec. A site leaves them out, because it has room for
// few calls, and those of layers and losses lead to the program.
const belowRun = 2

// compute allocates the results and launches the kernel.
func (e *Env) compute(pl *opPlan, p *ir.Params, in, out []*Tensor) {
	for i, t := range pl.out {
		out[i] = e.make(pl.op.Code, t, belowRun)
	}
	e.launch(pl, p, in, out)
}

// launch runs a prepared kernel into existing values.
func (e *Env) launch(pl *opPlan, p *ir.Params, in, out []*Tensor) {
	q := e.onQueue()
	var scratch *storage
	var block *device.Block
	if pl.kernel.Workspace > 0 {
		s := e.live()
		scratch = s.newStorage(pl.kernel.Workspace, pl.op.Code, q, e.site, 1)
		block = scratch.rec.block
	}
	err := q.launch(pl.kernel, out, in, block, p)
	runtime.KeepAlive(in) // Go may think an operand dead once its memory's address is known
	runtime.KeepAlive(out)
	if scratch != nil {
		e.dev.drop(scratch.rec, internal)
	}
	if err != nil {
		raiseErr(pl.op.Code.String(), "", described{err, &pl.op})
	}
}

// drop releases a value at once.
func (d *Device) drop(r *record, why *cause) {
	d.mu.Lock()
	d.release(r, why)
	d.mu.Unlock()
}

// runLowered runs a fused op's decomposition in a block of its own, so that temporaries go at once.
func (e *Env) runLowered(pl *opPlan, p *ir.Params, in, out []*Tensor) {
	s := newScope(e.dev, e.live(), 0)
	s.block = true
	defer s.end(internal)
	inner := *e
	inner.scope, inner.policy = s, dtype.Invalid
	if inner.site == nil {
		inner.site = new(callsite.Site)
		callsite.Capture(1, inner.site)
	}
	values := make([]ir.Value, len(in))
	for i, t := range in {
		values[i] = t.quiet()
	}
	params := *p
	results := pl.lower(ir.B{Builder: &builder{env: &inner}}, &pl.op, &params, values)
	if len(results) != len(pl.out) {
		panic(fmt.Sprintf("BUG: the lowering of %s gives %d results, not %d", pl.op.Code, len(results), len(pl.out)))
	}
	for i, v := range results {
		out[i] = s.result(v.(*Tensor), in, pl.out[i], e)
	}
}

// result hands a lowering's result to env e: a fresh row-major value, copied when it shares an operand's storage.
func (s *scope) result(t *Tensor, in []*Tensor, want *ir.Type, e *Env) *Tensor {
	if t.typ != want || t.off != 0 || t.st.rec.scope.Load() != s || t.st.rec.bytes != want.Bytes() {
		t = t.quiet()
		t = t.apply1(ir.Copy, ir.Attr{}, ir.Params{})
	}
	c := *t
	c.env, c.node = e, nil
	s.dev.mu.Lock()
	e.live().inherit(t.st.rec)
	s.dev.mu.Unlock()
	return &c
}

// builder runs the ops of gradient rules and lowerings in one env.
type builder struct{ env *Env }

// Emit runs an op. Nothing is cast, and what is recorded follows from the env and the operands.
func (b *builder) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	var buf [4]*Tensor
	ts := buf[:0]
	for _, v := range in {
		ts = append(ts, v.(*Tensor))
	}
	out := make([]*Tensor, max(maxOut, len(in)))
	values := make([]ir.Value, exec(b.env, code, &attr, &p, ts, out))
	for i := range values {
		values[i] = out[i]
	}
	return values
}
