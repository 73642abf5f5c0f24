package conform

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Promise is something that package device says of every Device and Queue.
type Promise struct {
	Name  string
	What  string // in a few words
	Check func(dev device.Device) error
}

// Promises lists what engines must keep beside the results of their kernels.
func Promises() []Promise {
	return []Promise{
		{"info", "name, model, dtypes, alignment", checkInfo},
		{"memory", "aligned blocks that do not overlap, can be had again, and are refused beyond what there is", checkMemory},
		{"copy", "odd numbers of bytes at odd offsets, to the device, within it and back", checked(checkCopy)},
		{"bulk", "more bytes than engines stage at once, there and back, while the host goes on", checked(checkBulk)},
		{"source", "host memory may change once a copy from it has been asked for", checked(checkSource)},
		{"stager", "where the host does not read the device's memory: what is uploaded comes back by fetches, each taken once", checked(checkStager)},
		{"timer", "where a queue tells times: they run on with its work", checked(checkTimer)},
		{"queues", "a queue waits for a mark of another; what was recorded is done after a Sync", checked(checkQueues)},
		{"marks", "marks of many points, asked in any order", checked(checkMarks)},
		{"prepare", "an op that is none is an error; one that is prepared keeps its types", checkPrepare},
		{"launch", "kernels one after another see what the one before has written", checked(checkLaunch)},
		{"allocator", "reuse of cached memory in the order of queues, with exact counters", checked(checkAllocator)},
	}
}

// rig is what a check takes of a device and gives back.
type rig struct {
	dev    device.Device
	queues []device.Queue
	blocks []hostmem.Block
	mems   []device.Mem
}

// checked makes a check of a function of a rig.
func checked(f func(*rig) error) func(device.Device) error {
	return func(dev device.Device) error {
		r := &rig{dev: dev}
		err := f(r)
		return errors.Join(err, r.close())
	}
}

func (r *rig) close() error {
	var errs []error
	for _, q := range r.queues {
		errs = append(errs, q.Close())
	}
	for _, m := range r.mems {
		r.dev.Free(m)
	}
	for _, b := range r.blocks {
		errs = append(errs, b.Free())
	}
	return errors.Join(errs...)
}

// host returns n bytes that any device may copy from and to.
func (r *rig) host(n int) ([]byte, device.Arg, error) {
	b, err := hostmem.Alloc(n)
	if err != nil {
		return nil, device.Arg{}, err
	}
	r.blocks = append(r.blocks, b)
	return hostmem.Bytes(b.Addr, n), device.Arg{Mem: device.Mem{Addr: uint64(b.Addr), Size: int64(n), Host: true}}, nil
}

func (r *rig) queue() (device.Queue, error) {
	q, err := r.dev.NewQueue()
	if err == nil {
		r.queues = append(r.queues, q)
	}
	return q, err
}

func (r *rig) alloc(n int64) (device.Arg, error) {
	m, err := r.dev.Alloc(n)
	if err == nil {
		r.mems = append(r.mems, m)
	}
	return device.Arg{Mem: m}, err
}

// transfers is what most checks need: a queue, memory of n bytes on the device, and two pieces of host memory.
type transfers struct {
	q        device.Queue
	mem      device.Arg
	src, dst []byte
	from, to device.Arg
}

func (r *rig) transfers(n int) (t transfers, err error) {
	if t.q, err = r.queue(); err != nil {
		return t, err
	}
	if t.mem, err = r.alloc(int64(n)); err != nil {
		return t, err
	}
	if t.src, t.from, err = r.host(n); err != nil {
		return t, err
	}
	t.dst, t.to, err = r.host(n)
	return t, err
}

func checkInfo(dev device.Device) error {
	info := dev.Info()
	if info.Name == "" || info.Model == "" || len(info.DTypes) == 0 {
		return fmt.Errorf("info %+v", info)
	}
	if a := info.Alignment; a <= 0 || a&(a-1) != 0 {
		return fmt.Errorf("alignment %d is no power of two", a)
	}
	return nil
}

func checkMemory(dev device.Device) error {
	var all []device.Mem
	defer func() {
		for _, m := range all {
			dev.Free(m)
		}
	}()
	for _, n := range []int64{1, 7, 64, 4095, 4097, 1 << 20} {
		m, err := dev.Alloc(n)
		if err != nil {
			return err
		}
		if m.Size != n || m.Addr%uint64(dev.Info().Alignment) != 0 {
			return fmt.Errorf("%d bytes: got %d at %#x", n, m.Size, m.Addr)
		}
		for _, o := range all {
			if m.Addr < o.Addr+uint64(o.Size) && o.Addr < m.Addr+uint64(m.Size) {
				return fmt.Errorf("%+v and %+v overlap", m, o)
			}
		}
		all = append(all, m)
	}
	if _, err := dev.Alloc(1 << 59); !errors.Is(err, device.ErrOutOfMemory) {
		return fmt.Errorf("an allocation of 2^59 bytes: want an error that is device.ErrOutOfMemory, got %v", err)
	}
	return nil
}

// offset is an argument n bytes further on.
func offset(a device.Arg, n int64) device.Arg {
	a.Offset += n
	return a
}

func checkCopy(r *rig) error {
	const size = 5003
	t, err := r.transfers(size)
	if err != nil {
		return err
	}
	other, err := r.alloc(size)
	if err != nil {
		return err
	}
	for i := range t.src {
		t.src[i] = byte(i * 7)
	}
	for _, c := range []struct{ at, n int64 }{{0, size}, {1, 1}, {3, 4999}, {17, 64}, {5002, 1}, {5, 0}} {
		clear(t.dst)
		mirrored, n := size-c.at-c.n, min(c.n, size-1)
		err := errors.Join(
			t.q.Copy(offset(t.mem, c.at), offset(t.from, c.at), c.n),
			t.q.Copy(offset(other, mirrored), offset(t.mem, c.at), c.n),
			t.q.Copy(offset(t.to, 1), offset(other, mirrored), n),
			t.q.Sync())
		if err != nil {
			return err
		}
		want := make([]byte, size)
		if copy(want[1:1+n], t.src[c.at:]); !r.dev.Info().Null && !bytes.Equal(t.dst, want) {
			return fmt.Errorf("%d bytes at %d came back wrong", c.n, c.at)
		}
	}
	return nil
}

func checkBulk(r *rig) error {
	const n = 9<<20 + 5
	t, err := r.transfers(n)
	if err != nil {
		return err
	}
	for i := range t.src {
		t.src[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	want := bytes.Clone(t.src)
	for range 3 { // the second and third find staging memory in use
		if err := t.q.Copy(t.mem, t.from, n); err != nil {
			return err
		}
	}
	clear(t.src)
	if err := errors.Join(t.q.Copy(t.to, t.mem, n), t.q.Sync()); err != nil {
		return err
	}
	if !r.dev.Info().Null && !bytes.Equal(t.dst, want) {
		return fmt.Errorf("%d bytes came back changed", n)
	}
	return nil
}

func checkSource(r *rig) error {
	const n = 1 << 16
	t, err := r.transfers(4 * n)
	if err != nil {
		return err
	}
	for part := range int64(4) {
		set(t.src[:n], byte(part+1))
		if err := t.q.Copy(offset(t.mem, part*n), t.from, n); err != nil {
			return err
		}
	}
	set(t.src, 0xEE)
	if err := errors.Join(t.q.Copy(t.to, t.mem, 4*n), t.q.Sync()); err != nil {
		return err
	}
	for i, v := range t.dst {
		if want := byte(i/n + 1); !r.dev.Info().Null && v != want {
			return fmt.Errorf("byte %d is %d, want %d: the copy read its source after it had returned", i, v, want)
		}
	}
	return nil
}

func checkStager(r *rig) error {
	const n = 70_001
	t, err := r.transfers(n)
	if err != nil {
		return err
	}
	if i := r.dev.Info(); i.Host || i.Null {
		return nil
	}
	s := device.Staging(t.q)
	for i := range t.src {
		t.src[i] = byte(i*13) ^ byte(i>>8)
	}
	want := bytes.Clone(t.src)
	if w := s.Crowded(); w != nil {
		return errors.New("an idle queue is crowded")
	}
	if err := s.Upload(t.mem, t.src); err != nil {
		return err
	}
	clear(t.src)
	if err := checkFetches(s, &t, want); err != nil {
		return err
	}
	return checkStaged(s, &t, want)
}

// checkStaged sends bytes that another goroutine has staged, once, and drops others.
func checkStaged(s device.Stager, t *transfers, data []byte) (err error) {
	slices.Reverse(data)
	copy(t.src, data)
	staged := make([]device.Staged, 3)
	var stage sync.WaitGroup
	stage.Go(func() {
		for i := range staged {
			if staged[i], err = s.Stage(t.src[:len(data)]); err != nil {
				return
			}
		}
	})
	stage.Wait()
	if err != nil {
		return err
	}
	clear(t.src)
	staged[0].Drop()
	staged[0].Drop()
	if s.Send(t.mem, staged[0]) == nil {
		return errors.New("what was dropped is sent")
	}
	if err := s.Send(t.mem, staged[1]); err != nil {
		return err
	}
	if s.Send(t.mem, staged[1]) == nil {
		return errors.New("what was staged once is sent twice")
	}
	staged[1].Drop()
	staged[2].Drop()
	return checkFetches(s, t, data)
}

// checkFetches asks for parts of device memory that holds want, and takes them in another order.
func checkFetches(s device.Stager, t *transfers, want []byte) (err error) {
	n := int64(len(want))
	parts := []struct{ at, n int64 }{{0, n}, {1, 1}, {17, 4097}, {5, 0}}
	fetches := make([]device.Fetch, len(parts))
	for i, p := range parts {
		if fetches[i], err = s.Fetch(offset(t.mem, p.at), p.n); err != nil {
			return err
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		p, f := parts[i], fetches[i]
		f.Wait()
		if done, err := f.Done(); !done || err != nil {
			return fmt.Errorf("after Wait a fetch is done: %v, error %v", done, err)
		}
		if err := f.Take(t.dst[:p.n]); err != nil {
			return err
		}
		if !bytes.Equal(t.dst[:p.n], want[p.at:p.at+p.n]) {
			return fmt.Errorf("%d bytes at %d came back wrong", p.n, p.at)
		}
		if f.Take(t.dst[:p.n]) == nil {
			return errors.New("a fetch was taken twice")
		}
	}
	return nil
}

// checkTimer asks stamps around launches, in and out of order.
func checkTimer(r *rig) error {
	q, err := r.queue()
	if err != nil {
		return err
	}
	timer, ok := device.As[device.Timer](q)
	if !ok {
		return nil
	}
	const n = 1 << 12
	d, err := newDoubling(r.dev, n)
	if err != nil {
		return err
	}
	x, err := r.alloc(4 * n)
	if err != nil {
		return err
	}
	var stamps [3]device.Stamp
	for i := range stamps {
		if stamps[i], err = timer.Stamp(); err != nil {
			return err
		}
		if err := d.run(q, x, 1, 3); err != nil {
			return err
		}
	}
	if err := q.Sync(); err != nil {
		return err
	}
	for _, s := range stamps {
		if done, err := s.Done(); !done || err != nil {
			return fmt.Errorf("after Sync a stamp is done: %v, error %v", done, err)
		}
	}
	first, err := stamps[1].Since(stamps[0])
	second, err2 := stamps[2].Since(stamps[1])
	both, err3 := stamps[2].Since(stamps[0])
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if first < 0 || second < 0 || both < max(first, second) {
		return fmt.Errorf("times of %v and %v, and %v of both", first, second, both)
	}
	if back, err := stamps[0].Since(stamps[2]); err != nil || back != -both {
		return fmt.Errorf("%v from one stamp to another, %v back, error %v", both, back, err)
	}
	return nil
}

func checkQueues(r *rig) error {
	const n = 1 << 16
	t, err := r.transfers(n)
	if err != nil {
		return err
	}
	two, err := r.queue()
	if err != nil {
		return err
	}
	for i := range t.src {
		t.src[i] = byte(i>>3) | 1
	}
	if err := t.q.Copy(t.mem, t.from, n); err != nil {
		return err
	}
	e, err := t.q.Record()
	if err != nil {
		return err
	}
	if err := errors.Join(two.Wait(e), two.Copy(t.to, t.mem, n), two.Sync(), t.q.Sync()); err != nil {
		return err
	}
	if done, err := e.Done(); !done || err != nil {
		return fmt.Errorf("after Sync a mark is done: %v, error %v", done, err)
	}
	if !r.dev.Info().Null && !bytes.Equal(t.dst, t.src) {
		return errors.New("the second queue did not wait for the first")
	}
	return nil
}

func checkMarks(r *rig) error {
	const n = 1 << 12
	t, err := r.transfers(n)
	if err != nil {
		return err
	}
	var marks []device.Mark
	for range 100 {
		if err := t.q.Copy(t.mem, t.from, n); err != nil {
			return err
		}
		e, err := t.q.Record()
		if err != nil {
			return err
		}
		marks = append(marks, e)
	}
	last := len(marks) - 1
	for _, i := range []int{50, 0, last} {
		if _, err := marks[i].Done(); err != nil {
			return err
		}
	}
	if err := t.q.Sync(); err != nil {
		return err
	}
	for i := last; i >= 0; i-- {
		if done, err := marks[i].Done(); !done || err != nil {
			return fmt.Errorf("after Sync mark %d is done: %v, error %v", i, done, err)
		}
	}
	return nil
}

func checkPrepare(dev device.Device) error {
	bad := ir.New(ir.Add, ir.Attr{}, ir.Dense(dtype.F32, 2), ir.Dense(dtype.F32, 3))
	if k, err := dev.Prepare(bad); err == nil {
		return fmt.Errorf("a sum of 2 and 3 elements was prepared: %v", k.Out)
	}
	good := ir.New(ir.Add, ir.Attr{}, ir.Dense(dtype.F32, 2), ir.Dense(dtype.F32, 2))
	k, err := dev.Prepare(good)
	if err != nil {
		return err
	}
	if k.Op != good || len(k.Out) != 1 || k.Out[0] != good.In(0) {
		return fmt.Errorf("kernel of %v with results %v", k.Op, k.Out)
	}
	return nil
}

// doubling is the two kernels that checks of order use: Full, and x + x.
type doubling struct{ full, double *device.Kernel }

func newDoubling(dev device.Device, n int) (d doubling, err error) {
	typ := ir.Dense(dtype.F32, n)
	if d.full, err = dev.Prepare(ir.New(ir.Full, ir.Attr{Out: typ})); err != nil {
		return d, err
	}
	d.double, err = dev.Prepare(ir.New(ir.Add, ir.Attr{}, typ, typ))
	return d, err
}

// run fills x with v and doubles it so many times.
func (d *doubling) run(q device.Queue, x device.Arg, v float64, times int) error {
	values := ir.Scalars(v)
	var p device.Params
	p.Set(&values)
	err := q.Launch(d.full, []device.Arg{x}, &p)
	for range times {
		err = errors.Join(err, q.Launch(d.double, []device.Arg{x, x, x}, nil))
	}
	return err
}

func checkLaunch(r *rig) error {
	const n = 1 << 10
	d, err := newDoubling(r.dev, n)
	if err != nil {
		return err
	}
	t, err := r.transfers(4 * n)
	if err != nil {
		return err
	}
	if err := errors.Join(d.run(t.q, t.mem, 1, 10), t.q.Copy(t.to, t.mem, 4*n), t.q.Sync()); err != nil {
		return err
	}
	want := bytes.Repeat([]byte{0, 0, 0x80, 0x44}, n) // 1024
	if !r.dev.Info().Null && !bytes.Equal(t.dst, want) {
		return fmt.Errorf("ten doublings of 1 gave the bytes % x", t.dst[:4])
	}
	return nil
}

// checkAllocator works on two queues in cached memory: a block that one queue frees is not given to the other while the
// first still uses it.
func checkAllocator(r *rig) error {
	const n = 1 << 10
	d, err := newDoubling(r.dev, n)
	if err != nil {
		return err
	}
	t, err := r.transfers(4 * n)
	if err != nil {
		return err
	}
	two, err := r.queue()
	if err != nil {
		return err
	}
	queues := []device.Queue{t.q, two}
	a := device.NewAllocator(r.dev, device.Config{Marks: func(i int) (device.Mark, error) { return queues[i].Record() }})
	for round := range 20 {
		b, err := a.Alloc(4*n, round%2)
		if err != nil {
			return err
		}
		x := device.Arg{Mem: b.Mem()}
		err = errors.Join(d.run(queues[round%2], x, 1, round%5), queues[round%2].Sync())
		if err == nil && round%3 == 0 { // the other queue reads it last
			err = queues[(round+1)%2].Copy(t.to, x, 4*n)
			a.RecordUse(b, (round+1)%2)
		}
		a.Free(b)
		if err != nil {
			return err
		}
	}
	if err := errors.Join(t.q.Sync(), two.Sync(), a.EmptyCache()); err != nil {
		return err
	}
	if s := a.Stats(); s.AllocatedBytes.All.Current != 0 || s.ReservedBytes.All.Current != 0 {
		return fmt.Errorf("%d bytes are still allocated, %d reserved", s.AllocatedBytes.All.Current, s.ReservedBytes.All.Current)
	}
	return nil
}
