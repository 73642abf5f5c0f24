package mutate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Case is a correct kernel with a launch of it.
type Case struct {
	Kernel      string
	Grid, Block [3]int
	Shared      int   // bytes of dynamic shared memory
	Args        []any // a *Buffer, or a scalar of the parameter's size
	// Check judges what the buffers hold at the end, in the order of Args; nil means that a run of the kernel as it is
	// decides.
	Check func(out [][]byte) error
	// Loose means that results depend on the schedule, so that a difference says nothing.
	Loose bool

	// Of a recorded launch, instead of Args:
	params   []byte
	pointers []pointer
	buffers  []*Buffer
}

// Buffer is memory that a kernel gets a pointer to.
type Buffer struct {
	Data []byte // nil for memory that nobody wrote
	Size int    // in bytes, where Data is nil
}

// In is a buffer with content: a slice of numbers.
func In(data any) *Buffer {
	b, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		panic(err) // only tables of cases call this
	}
	return &Buffer{Data: b}
}

// Out is a buffer of n bytes that nobody wrote.
func Out(n int) *Buffer { return &Buffer{Size: n} }

func (b *Buffer) size() int { return max(len(b.Data), b.Size) }

// Opened is a Case with its kernel and mutants.
type Opened struct {
	*Case
	Mutants []*Mutant

	module *ptx.Module
	limit  int64
	want   [][]byte // the buffers after a correct run
}

// Seeds are the schedules that verdicts rest on.
var Seeds = []gpusim.Options{
	{Checks: gpusim.AllChecks},
	{Checks: gpusim.AllChecks, Seed: 1, Schedule: gpusim.Independent},
	{Checks: gpusim.AllChecks, Seed: 2},
	{Checks: gpusim.AllChecks, Seed: 3, Schedule: gpusim.Independent},
	{Checks: gpusim.AllChecks, Seed: 4},
}

// Open parses the module of a case and runs the kernel as it is, which must give no finding under any of the Seeds.
func Open(source string, c *Case) (*Opened, error) { return open(source, c, Seeds) }

func open(source string, c *Case, seeds []gpusim.Options) (*Opened, error) {
	m, err := ptx.Parse(source)
	if err != nil {
		return nil, err
	}
	fn := m.Func(c.Kernel)
	if fn == nil || fn.Body == nil {
		return nil, fmt.Errorf("mutate: no kernel %s in the module", c.Kernel)
	}
	m.Items = slices.DeleteFunc(m.Items, func(it ptx.Item) bool {
		f, ok := it.(*ptx.Func)
		return ok && f.Entry && f != fn
	})
	fn.Split()
	o := &Opened{Case: c, module: m, Mutants: mutants(fn)}
	for _, seed := range seeds {
		if err := o.openUnder(seed); err != nil {
			return nil, fmt.Errorf("mutate: %s as it is, seed %d: %w", c.Kernel, seed.Seed, err)
		}
	}
	return o, nil
}

func (o *Opened) openUnder(seed gpusim.Options) error {
	rep, out, err := o.run(seed, &apart{})
	if err != nil {
		return err
	}
	if len(rep.Findings) > 0 {
		return errors.New(rep.Findings[0].String())
	}
	o.limit = max(o.limit, 20*int64(rep.Counters.Instructions)+10000)
	if o.Check != nil {
		return o.Check(out)
	}
	if o.want == nil {
		o.want = out
	}
	if !o.Loose && !slices.EqualFunc(o.want, out, bytes.Equal) {
		return errors.New("other results than under the first seed, for a case that is not Loose")
	}
	return nil
}

func (o *Opened) right(out [][]byte) bool {
	if o.Check != nil {
		return o.Check(out) == nil
	}
	return o.Loose || slices.EqualFunc(o.want, out, bytes.Equal)
}

// layout is how the buffers of a launch lie in memory.
type layout interface {
	place(d *gpusim.Device, bufs []*Buffer) (addrs []uint64, err error)
	read(d *gpusim.Device) error // what lies around the buffers
}

// run launches the kernel once on a new device and returns the buffers.
func (o *Opened) run(opt gpusim.Options, l layout) (*gpusim.Report, [][]byte, error) {
	opt.StepLimit, opt.Cores = o.limit, 1
	_, whole := l.(*apart)
	card := gpusim.A100()
	if o.module.Target.SM >= 90 {
		card = gpusim.NewCard("h100", 80<<30, 132, [2]int{9, 0})
	}
	d := gpusim.NewDevice(card, whole)
	p, err := d.Load(o.module)
	if err != nil {
		return nil, nil, err
	}
	k := p.Kernel(o.Kernel)
	bufs := o.buffers
	for _, a := range o.Args {
		if b, ok := a.(*Buffer); ok {
			bufs = append(bufs, b)
		}
	}
	addrs, err := l.place(d, bufs)
	if err != nil {
		return nil, nil, err
	}
	params, err := o.pack(k, addrs)
	if err != nil {
		return nil, nil, err
	}
	rep, err := d.Launch(k, o.Grid, o.Block, o.Shared, params, opt)
	if err != nil {
		return rep, nil, err
	}
	out := make([][]byte, len(bufs))
	for i, b := range bufs {
		out[i] = make([]byte, b.size())
		if err := d.Read(out[i], addrs[i]); err != nil {
			return rep, nil, err
		}
	}
	return rep, out, l.read(d)
}

func (o *Opened) pack(k *gpusim.Kernel, addrs []uint64) ([]byte, error) {
	if o.params != nil {
		return o.fill(addrs), nil
	}
	if len(o.Args) != len(k.Offsets) {
		return nil, fmt.Errorf("mutate: %d arguments; %s takes %d", len(o.Args), k.Name, len(k.Offsets))
	}
	params := make([]byte, k.Params)
	next := 0
	for i, a := range o.Args {
		if _, ok := a.(*Buffer); ok {
			a = addrs[next]
			next++
		}
		b, err := binary.Append(nil, binary.LittleEndian, a)
		if err != nil || len(b) != k.Sizes[i] {
			return nil, fmt.Errorf("mutate: argument %d of %s has %d bytes, not %d", i, k.Name, len(b), k.Sizes[i])
		}
		copy(params[k.Offsets[i]:], b)
	}
	return params, nil
}

// apart gives each buffer an allocation, far from the others.
type apart struct{}

// gap is more than an index that is off by a row of any case reaches.
const gap = 1 << 16

func (*apart) place(d *gpusim.Device, bufs []*Buffer) (addrs []uint64, err error) {
	for i, b := range bufs {
		spare, err := d.Alloc(gap, "gap")
		if err != nil {
			return nil, err
		}
		if err := d.Free(spare, "gap"); err != nil {
			return nil, err
		}
		at, err := d.Alloc(b.size(), fmt.Sprintf("buffer %d", i))
		if err != nil {
			return nil, err
		}
		if err := d.Write(at, b.Data); err != nil {
			return nil, err
		}
		addrs = append(addrs, at)
	}
	return addrs, nil
}

func (*apart) read(*gpusim.Device) error { return nil }
