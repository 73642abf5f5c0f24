package tensor

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
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

// what names the operation, or the program's own kernel.
func (pl *opPlan) what() string {
	if pl.kernel != nil {
		return pl.kernel.What()
	}
	return pl.op.Code.String()
}

// The table of plans is bounded: by its hash an op belongs to one of planSets sets, and a set has room for planWays. A program
// has some hundred ops, and of so many a few always meet in a set: with one way each, two that take turns in a step would be
// prepared anew every time.
const (
	planSets = 1 << 11
	planWays = 4
)

// planTable is read without a lock. What several goroutines write at once may push out a plan too many, or be there twice.
type planTable [planSets][planWays]atomic.Pointer[opPlan]

// plan returns the plan of an op; its operands are named where they do not fit.
func (d *Device) plan(op *ir.Op, in []*Tensor) *opPlan {
	set := &d.plans[op.Hash()%planSets]
	for i := range set {
		if p := set[i].Load(); p != nil && p.op == *op {
			return p
		}
	}
	p := d.newPlan(*op, in)
	for i := planWays - 1; i > 0; i-- {
		set[i].Store(set[i-1].Load())
	}
	set[0].Store(p)
	return p
}

func (d *Device) newPlan(op ir.Op, in []*Tensor) *opPlan {
	out, err := op.Infer()
	if err != nil {
		raiseErr(op.Code.String(), advice(err), described{err, op.Code.String(), parameters(in)})
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
	op  string
	of  string // which operands are parameters, and which
}

// parameters names the parameters among operands by their paths.
func parameters(in []*Tensor) string {
	var words []string
	for i, t := range in {
		if l := t.parameter(); l != nil && l.path() != "" {
			words = append(words, fmt.Sprintf("operand %d is %s", i, l.path()))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// Error implements error.
func (d described) Error() string {
	return strings.TrimPrefix(d.err.Error(), d.op+": ") + d.of
}

// Unwrap returns the engine's error.
func (d described) Unwrap() error { return d.err }

// What most operations have none of; for passing on by address.
var (
	noAttr   ir.Attr
	noParams ir.Params
)

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
const maxOut = 4

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
	var own temporaries
	if e.policy != dtype.Invalid && e.policy != dtype.F32 {
		own = autocast(e, code, in)
	}
	if e.products > Highest {
		attr = e.precisely(code, attr, in)
	}
	return own.exec(e, code, attr, p, in, out)
}

// temporaries are the operands, by number, that were made for one operation. What lies beyond the 64th is left to its
// scope.
type temporaries uint64

func (own *temporaries) add(i int) { *own |= 1 << i }

// end releases them, or leaves them to what the operation's node holds.
func (own temporaries) end(in []*Tensor) {
	for ; own != 0; own &= own - 1 {
		t := in[bits.TrailingZeros64(uint64(own))]
		t.env.dev.heap.Orphan(t.st.Storage, internal)
	}
}

// exec is run without the precision policy.
func exec(e *Env, code ir.Code, attr *ir.Attr, p *ir.Params, in, out []*Tensor) int {
	return temporaries(0).exec(e, code, attr, p, in, out)
}

func (own temporaries) exec(e *Env, code ir.Code, attr *ir.Attr, p *ir.Params, in, out []*Tensor) int {
	var types [4]*ir.Type
	list := types[:0]
	dense := !code.View() && !code.AnyStride()
	for i, t := range in {
		t.alive(code.String())
		if t.st.Tag != nil {
			t = t.current(code.String(), e)
			in[i] = t
		}
		if dense && !t.typ.IsDense() {
			p := t.parameter()
			t = t.inside(e).Contiguous()
			t.named, in[i] = p, t
			own.add(i)
		}
		list = append(list, t.typ)
	}
	op := ir.New(code, *attr, list...)
	pl := e.dev.plan(&op, in)
	out = out[:len(pl.out)]
	var o *device.Origin
	seq := uint64(0)
	if e.dev.stream.WantsWork() && !code.View() {
		var origin device.Origin
		seq = e.traced(pl, in, &origin)
		o = &origin
	}
	switch {
	case code.View():
		x := in[0]
		out[0] = &Tensor{st: x.st, typ: pl.out[0], off: x.off + pl.offset, env: e, apart: x.apart || x.leaf != nil || x.param, named: x.parameter()}
	case pl.kernel == nil:
		e.runLowered(pl, p, in, out, o)
	default:
		e.compute(pl, p, in, out, o)
	}
	if len(in) > 0 {
		recordOp(pl, p, e, in, out, seq)
		if w := e.looks(); w != nil && !code.View() {
			w.looked(e, code.String(), "", sound, in, out)
		}
	}
	runtime.KeepAlive(in)
	own.end(in)
	return len(out)
}

// traced finds the origin of an operation for observers. One that will be recorded is numbered now, before its work.
//
//go:noinline
func (e *Env) traced(pl *opPlan, in []*Tensor, o *device.Origin) (seq uint64) {
	*o = e.origin(belowRun)
	o.Paths = pathsOf(in)
	if len(in) > 0 && pl.wants(e, in) != 0 {
		seq = nodeSeq.Add(1)
		if o.Seq == 0 {
			o.Seq = seq
		}
	}
	return seq
}

// belowRun is how many calls lie between make and run: compute and exec. A site leaves them out, because it has room for
// few calls, and those of layers and losses lead to the program.
const belowRun = 2

// compute allocates the results and launches the kernel.
func (e *Env) compute(pl *opPlan, p *ir.Params, in, out []*Tensor, o *device.Origin) {
	for i, t := range pl.out {
		out[i] = e.make(pl.op.Code, t, belowRun, in, o)
	}
	e.launch(pl, p, nil, in, out, o)
}

// launch runs a prepared kernel into existing values. from may be nil; o is nil unless somebody observes the work.
func (e *Env) launch(pl *opPlan, p *ir.Params, from *cells, in, out []*Tensor, o *device.Origin) {
	q := e.onQueue()
	step := e.recordings(pl, q, in, out)
	var scratch *heap.Ref
	var block *device.Block
	if pl.kernel.Workspace > 0 {
		scratch = e.live().scratch(e, pl.kernel.Workspace, pl.op.Code, in, o)
		block = scratch.Block()
	}
	err := q.launch(pl.kernel, out, in, block, p, from, o)
	runtime.KeepAlive(in) // Go may think an operand dead once its memory's address is known
	runtime.KeepAlive(out)
	runtime.KeepAlive(from)
	if err == nil && step != nil {
		step.add(pl, p, from, in, out, scratch, o)
	}
	switch {
	case err == nil && e.program.recording():
		e.program.add(pl, p, from, in, out, scratch)
	case scratch != nil:
		e.dev.heap.Drop(scratch.Storage, internal)
	}
	if err != nil {
		raiseErr(pl.what(), "", described{err, pl.what(), ""})
	}
}

// recordings is the step that a launch on q is to be recorded in; nil for none. It refuses what neither that nor a program
// would repeat.
func (e *Env) recordings(pl *opPlan, q *queue, in, out []*Tensor) *recording {
	if !recordings.any() {
		return nil
	}
	if s := recordings.find(); s != nil {
		s.admits(pl, q, out)
		if !s.first {
			return s
		}
		return nil
	}
	recordings.strays(pl.what(), in, out)
	if !e.program.recording() {
		recordings.refuse(e.dev, pl.what())
	}
	return nil
}

// dropCopy releases c, a row-major form of t, unless it is t's own value.
func (t *Tensor) dropCopy(c *Tensor) {
	if c.st != t.st {
		c.drop(internal)
	}
}

// drop releases a value at once.
func (t *Tensor) drop(why *heap.Cause) { t.env.dev.heap.Drop(t.st.Storage, why) }

// runLowered runs a fused op's decomposition in a block of its own, so that temporaries go at once.
func (e *Env) runLowered(pl *opPlan, p *ir.Params, in, out []*Tensor, o *device.Origin) {
	s := newScope(e.dev, e.live(), 0)
	s.block = true
	defer s.End(internal)
	inner := *e
	inner.scope, inner.policy, inner.products, inner.within = s, dtype.Invalid, 0, true
	if inner.site == nil {
		inner.site = callsite.At(1)
	}
	if o != nil {
		inner.seq = o.Seq
	}
	values := make([]ir.Value, len(in))
	for i, t := range in {
		values[i] = t.quiet()
	}
	params := *p
	results := pl.lower(new(builder).in(&inner), &pl.op, &params, values)
	if len(results) != len(pl.out) {
		panic(fmt.Sprintf("BUG: the lowering of %s gives %d results, not %d", pl.op.Code, len(results), len(pl.out)))
	}
	for i, v := range results {
		out[i] = s.result(v.(*Tensor), in, pl.out[i], e)
	}
}

// result hands a lowering's result to env e: a fresh row-major value, copied when it shares an operand's storage.
func (s *scope) result(t *Tensor, in []*Tensor, want *ir.Type, e *Env) *Tensor {
	if t.typ != want || t.off != 0 || !s.owns(t.st.Storage) || t.st.Bytes() != want.Bytes() {
		t = t.quiet()
		t = t.apply1(ir.Copy, ir.Attr{}, ir.Params{})
	}
	c := *t
	c.env, c.node = e, nil
	l := s.dev.heap.Lock()
	l.Inherit(&e.live().Scope, t.st.Storage)
	l.Unlock()
	return &c
}

// builder runs the ops of gradient rules and lowerings in one env.
type builder struct {
	env      *Env
	operands [4]ir.Value
	results  [16]ir.Value // of the ops of a rule; later ones have their own
	used     int
}

// in begins a rule in an env: what Emit has returned before is not used any more.
func (b *builder) in(e *Env) ir.B {
	clear(b.results[:b.used])
	b.env, b.used = e, 0
	return ir.B{Builder: b, Room: &b.operands}
}

// Emit runs an op. Nothing is cast, and what is recorded follows from the env and the operands.
func (b *builder) Emit(code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) []ir.Value {
	var buf [4]*Tensor
	ts := buf[:0]
	for _, v := range in {
		ts = append(ts, v.(*Tensor))
	}
	out := make([]*Tensor, max(maxOut, len(in)))
	values := b.take(exec(b.env, code, &attr, &p, ts, out))
	for i := range values {
		values[i] = out[i]
	}
	return values
}

// take is room for n results.
func (b *builder) take(n int) []ir.Value {
	if b.used+n > len(b.results) {
		return make([]ir.Value, n)
	}
	b.used += n
	return b.results[b.used-n : b.used : b.used]
}
