package conform

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

const (
	guard  = 64   // bytes before and after every region
	fence  = 0xA5 // what they hold
	poison = 0xFF // unwritten results and the gaps of operands: NaN of any dtype, -1, and no bool
	cut    = 256  // alignment of regions, at least the device's
)

// bench lays a case out in one piece of device memory and in an image of it on the host.
type bench struct {
	dev   device.Device
	queue device.Queue
	align int
	null  bool
	mem   device.Mem
	host  hostmem.Block
	kept  []byte // the image before the launch
}

func newBench(dev device.Device) (*bench, error) {
	q, err := dev.NewQueue()
	if err != nil {
		return nil, err
	}
	info := dev.Info()
	return &bench{dev: dev, queue: q, align: max(cut, int(info.Alignment)), null: info.Null}, nil
}

func (b *bench) close() error {
	b.free()
	return b.queue.Close()
}

func (b *bench) free() {
	if b.mem.Size > 0 {
		b.dev.Free(b.mem)
		b.mem = device.Mem{}
	}
	if b.host.Size > 0 {
		_ = b.host.Free() // it is the bench's own
		b.host = hostmem.Block{}
	}
}

// reserve makes room for n bytes.
func (b *bench) reserve(n int) (err error) {
	if int(b.mem.Size) >= n {
		return nil
	}
	b.free()
	n += n / 2
	if b.host, err = hostmem.Alloc(n); err != nil {
		return err
	}
	b.mem, err = b.dev.Alloc(int64(n))
	return err
}

func (b *bench) image() []byte { return hostmem.Bytes(b.host.Addr, b.host.Size) }

// region is a piece of the memory: guards, a shift off the alignment, and the data.
type region struct {
	at, shift, size int // of the data's memory, before the shift
}

func (r region) data(image []byte) []byte { return image[r.at+r.shift:][:r.size] }

// plan places regions one after another.
type plan struct {
	align, end int
}

func (p *plan) place(t *ir.Type, shift int) region {
	return p.bytes(t.Span()*t.DType.Size(), shift*t.DType.Size())
}

func (p *plan) bytes(size, shift int) region {
	at := (p.end + guard + p.align - 1) / p.align * p.align
	p.end = at + shift + size + guard
	return region{at, shift, size}
}

// layout is where the operands, results and workspace of a launch lie.
type layout struct {
	in, out []region
	work    []region
	cells   region // of the launch parameters
	end     int
}

func (b *bench) layout(c *Case, k *device.Kernel) (l layout) {
	p := plan{align: b.align}
	for _, t := range c.Op.Ins() {
		l.in = append(l.in, p.place(t, c.Shift))
	}
	for i, t := range k.Out {
		if a := c.alias(i); a >= 0 {
			l.out = append(l.out, l.in[a])
		} else {
			l.out = append(l.out, p.place(t, c.Shift))
		}
	}
	if k.Workspace > 0 {
		l.work = append(l.work, p.bytes(int(k.Workspace), 0))
	}
	l.cells = p.bytes(device.CellSize*c.Params.N, 0)
	l.end = p.end
	return l
}

// args are the launch's: results, operands, workspace.
func (b *bench) args(l *layout) (args []device.Arg) {
	for _, list := range [][]region{l.out, l.in, l.work} {
		for _, r := range list {
			m := device.Mem{Addr: b.mem.Addr + uint64(r.at), Size: int64(r.shift + r.size), Host: b.mem.Host}
			args = append(args, device.Arg{Mem: m, Offset: int64(r.shift)})
		}
	}
	return args
}

// params are a launch's: by value, or each in a cell of device memory, with another value beside it.
func (b *bench) params(c *Case, l *layout, cells bool) (p device.Params) {
	p.Set(&c.Params)
	for i := range c.Params.N {
		if cells {
			at := b.mem.Addr + uint64(l.cells.at+device.CellSize*i)
			p.P[i] = device.Param{Value: ^c.Params.Value[i], Cell: device.Mem{Addr: at, Size: device.CellSize, Host: b.mem.Host}}
		}
	}
	return p
}

// launch runs a case and returns its results, and a sum of their bytes. Memory other than the results must be as before.
func (b *bench) launch(c *Case, k *device.Kernel, cells bool) (got []ref.Array, sum uint64, err error) {
	l := b.layout(c, k)
	if err := b.reserve(l.end); err != nil {
		return nil, 0, err
	}
	image := b.image()[:l.end]
	b.draw(image, c, &l)
	b.kept = append(b.kept[:0], image...)
	before := b.kept
	p := b.params(c, &l, cells)
	if err := b.copy(device.Arg{Mem: b.mem}, b.hostArg(), l.end); err != nil {
		return nil, 0, err
	}
	launched := b.queue.Launch(k, b.args(&l), &p)
	if err := errors.Join(launched, b.queue.Sync()); err != nil {
		return nil, 0, &refusal{err}
	}
	if err := b.copy(b.hostArg(), device.Arg{Mem: b.mem}, l.end); err != nil || b.null {
		return nil, 0, err
	}
	h := fnv.New64a()
	for i, r := range l.out {
		got = append(got, ref.Decode(r.data(image), k.Out[i]))
		h.Write(r.data(image))
		b.restore(image, before, r, k.Out[i])
	}
	for _, r := range l.work {
		copy(r.data(image), r.data(before))
	}
	return got, h.Sum64(), intact(image, before, &l)
}

// refusal is an error of a launch.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

func (b *bench) hostArg() device.Arg {
	return device.Arg{Mem: device.Mem{Addr: uint64(b.host.Addr), Size: int64(b.host.Size), Host: true}}
}

func (b *bench) copy(dst, src device.Arg, n int) error {
	if n == 0 {
		return nil
	}
	if err := b.queue.Copy(dst, src, int64(n)); err != nil {
		return err
	}
	return b.queue.Sync()
}

// draw fills the image: fences everywhere, poison where results go, then the operands.
func (b *bench) draw(image []byte, c *Case, l *layout) {
	set(image, fence)
	for _, r := range append(l.out[:len(l.out):len(l.out)], l.work...) {
		set(r.data(image), poison)
	}
	for i, r := range l.in {
		copy(r.data(image), c.image[i])
	}
	for i := range c.Params.N {
		binary.LittleEndian.PutUint64(l.cells.data(image)[device.CellSize*i:], c.Params.Value[i])
	}
}

// set fills b by copies of what is filled, each twice as long as the one before: images are large.
func set(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// restore puts what was there before into a result's elements, so that what is left of a difference lies outside.
func (b *bench) restore(image, before []byte, r region, t *ir.Type) {
	if t.IsDense() {
		copy(r.data(image), r.data(before))
		return
	}
	ref.Encode(r.data(image), t, ref.Decode(r.data(before), t))
}

// intact reports the first byte that was changed and is no result's.
func intact(image, before []byte, l *layout) error {
	if bytes.Equal(image, before) {
		return nil
	}
	at := 0
	for image[at] == before[at] {
		at++
	}
	for i, r := range l.in {
		if at >= r.at-guard && at < r.at+r.shift+r.size+guard {
			return fmt.Errorf("byte %d of operand %d, which has %d, was written", at-r.at-r.shift, i, r.size)
		}
	}
	for i, r := range l.out {
		if at >= r.at-guard && at < r.at+r.shift+r.size+guard {
			return fmt.Errorf("byte %d of result %d, which has %d, was written beside its elements", at-r.at-r.shift, i, r.size)
		}
	}
	return fmt.Errorf("byte %d beside the workspace was written", at)
}
