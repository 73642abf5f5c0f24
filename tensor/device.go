package tensor

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines" // which registers them by name, too
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Device is a place where values live, with its caching allocator, its queues and its heap of values.
// It may be used by several goroutines at once.
type Device struct {
	name  string
	dev   device.Device
	info  device.Info
	alloc *device.Allocator
	heap  *heap.Heap
	plans planTable
	first *queue
	base  *Env // the env that parameters set: device and root scope

	queuesMu sync.Mutex
	queues   atomic.Pointer[[]*queue] // by id; replaced whole, under queuesMu

	handed atomic.Int64 // queues handed out a second time

	stream  device.Stream           // of all that is asked of the device, and of its memory
	policy  atomic.Int32            // Waits
	watcher atomic.Pointer[watcher] // of anomalies; nil: none
	syncs   book                    // of waits
	aside   sideQueue               // of copies to the host's memory and back
	unknown book                    // of reads of values that nothing computed
}

var devices = struct {
	sync.Mutex
	byName map[string]*Device
}{byName: map[string]*Device{}}

// Open returns the root env of a device: "cpu"; "cuda" or "cuda:1", an NVIDIA GPU; "sim" or "sim:a100-80x4:2", a simulated
// one, here the third of four; "null:h100-80", a card that allocates and computes nothing. The same name gives the same
// device. The env records and trains. The error says what the name lacks, or why the device cannot be used.
func Open(name string) (*Env, error) {
	d, err := openDevice(name)
	if err != nil {
		return nil, err
	}
	return d.base, nil
}

// Fresh returns the root env of a device of its own: unlike Open it shares no scope, queue or counter with others of
// the same name. Tests and measurements use it.
func Fresh(name string) (*Env, error) {
	raw, canonical, err := device.Open(name)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(canonical, raw)
	if err != nil {
		return nil, err
	}
	return d.base, nil
}

func openDevice(name string) (*Device, error) {
	raw, canonical, err := device.Open(name)
	if err != nil {
		return nil, err
	}
	devices.Lock()
	defer devices.Unlock()
	if d := devices.byName[canonical]; d != nil {
		return d, nil
	}
	d, err := newDevice(canonical, raw)
	if err == nil {
		devices.byName[canonical] = d
		presence.AddDevice(d.presence)
	}
	return d, err
}

// presence is what other processes are told of the device.
func (d *Device) presence() presence.Device {
	s := d.alloc.Stats()
	return presence.Device{Name: d.name, Model: d.info.Model, Bus: d.info.Bus, Total: d.info.Memory,
		Allocated: s.AllocatedBytes.All.Current, Reserved: s.ReservedBytes.All.Current, Peak: s.AllocatedBytes.All.Peak}
}

func newDevice(name string, raw device.Device) (*Device, error) {
	settings, err := device.FromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	d, q, err := begin(name, raw)
	if err != nil {
		return nil, err
	}
	d.OnWait(policies[settings.Waits])
	if c, ok := d.Clock(); ok {
		d.stream.Clock = func() time.Duration { t, _ := c.HostTime(); return t }
	}
	d.watch(q)
	if settings.Verbose {
		d.print(os.Stderr)
	}
	conf := settings.Alloc.On(raw)
	if err := conf.CheckFor(raw); err != nil {
		return nil, fmt.Errorf("open %s: %s=%s: %w", name, device.AllocEnv, conf.Text, err)
	}
	d.furnish(q, device.Config{Conf: conf, Gap: gap(q)})
	if d.info.Host && conf.Fraction == 0 {
		d.alloc.SetLimit(d.info.Memory) // the system would rather end the process than refuse
	}
	return d, nil
}

// begin is a device without memory, and its first queue.
func begin(name string, raw device.Device) (*Device, device.Queue, error) {
	d := &Device{name: name, dev: raw, info: raw.Info()}
	d.queues.Store(new([]*queue))
	q, err := raw.NewQueue()
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	return d, q, nil
}

// furnish gives d memory and the root env.
func (d *Device) furnish(q device.Queue, conf device.Config) {
	conf.Marks, conf.Stream = d.markOn, &d.stream
	d.alloc = device.NewAllocator(d.dev, conf)
	d.heap = heap.New(d.alloc)
	d.first = d.addQueue(q)
	d.base = &Env{dev: d, scope: newScope(d, nil, rootKey)}
}

// Rehearse returns the root env of a device like d, empty, which computes nothing and has memory without end: what a program
// needs there, scratch memory of kernels included, it needs on d. The error is the device's.
func (d *Device) Rehearse() (*Env, error) { return d.rehearse(0, 0, d.alloc.Settings()) }

// rehearse is the root env of a device like d that computes nothing, empty and under limits: of the bytes in use, and of those
// that its allocator may have; 0 is none.
func (d *Device) rehearse(most, reserve int64, conf device.Config) (*Env, error) {
	like, q, err := begin(d.name, engines.Imitate(d.dev))
	if err != nil {
		return nil, err
	}
	like.furnish(q, conf)
	like.heap.SetLimit(most)
	like.alloc.SetLimit(reserve)
	return like.base, nil
}

// Rehearse returns the root env of a device like the one of a name, a card's that is not there among them ("null:h100-80"): of its
// own, empty, and computing nothing. It has the allocator's settings of the environment, and memory without end, so that a
// program shows what it needs. The error is that of [Open].
func Rehearse(name string) (*Env, error) {
	raw, canonical, err := device.Open(name)
	if err != nil {
		return nil, err
	}
	settings, err := device.FromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	d, q, err := begin(canonical, engines.Imitate(raw))
	if err != nil {
		return nil, err
	}
	d.watch(q)
	conf := settings.Alloc.On(d.dev)
	conf.Fraction = 0
	if err := conf.CheckFor(d.dev); err != nil {
		return nil, fmt.Errorf("open %s: %s=%s: %w", name, device.AllocEnv, conf.Text, err)
	}
	d.furnish(q, device.Config{Conf: conf})
	return d.base, nil
}

// gap is how many bytes lie unused between blocks of a device whose queues are like q.
func gap(q device.Queue) int64 {
	if c, ok := device.As[device.Checker](q); ok {
		return c.Gap()
	}
	return 0
}

// watch sets up what observes the device as long as it lives. Its queues are like q.
func (d *Device) watch(q device.Queue) {
	switch {
	case d.info.Null:
		d.stream.Observe(d.noteUnknown, device.KindCopy)
	case !d.info.Host:
		d.stream.Observe(d.noteWait, device.KindWait)
	}
	if c, ok := device.As[device.Checker](q); ok && c.Checked() {
		d.stream.Observe(d.noteBlock, device.KindAlloc, device.KindFreeCompleted)
	}
}

// print tells each operation and copy as it runs.
func (d *Device) print(w io.Writer) {
	level := ""
	if d.info.Host {
		level = cpufeat.Active().String()
	}
	d.stream.Observe(device.NewPrinter(w, d.name, level).Observe, device.KindLaunch, device.KindFill, device.KindCopy)
}

// noteBlock tells a device that checks accesses what the allocator does with its memory.
func (d *Device) noteBlock(e *device.Event) {
	c, _ := device.As[device.Checker]((*d.queues.Load())[e.Queue].q)
	m, inUse := e.Mem, e.Kind == device.KindAlloc
	if inUse {
		m.Size = e.Bytes
	}
	_ = c.Note(m, inUse, e.Site.String()) // an error here is one of earlier work, which the next call on the queue reports
}

// Best returns the root env of the best device this process can use: a GPU that works, else the CPU.
func Best() *Env {
	var last error
	for _, name := range Devices() {
		e, err := Open(name)
		if err == nil {
			return e
		}
		last = err
	}
	raiseErr("Best", "", last) // the CPU cannot be opened with the settings that the environment has
	return nil
}

// Name is the device's name, as Open takes it.
func (d *Device) Name() string { return d.name }

// Info describes the hardware.
func (d *Device) Info() string {
	if d.info.Model == "" {
		return d.name
	}
	return d.name + " (" + d.info.Model + ")"
}

// Properties are the facts of a device that programs ask for; what does not apply is zero.
type Properties struct {
	Name            string // as Open takes it
	Model           string // what the hardware calls itself
	Memory          int64  // bytes in all
	Compute         [2]int // compute capability of a GPU: major, minor
	Multiprocessors int
	Clock           int64  // of the GPU's processors, Hz
	Warp            int    // threads that run together
	Bus             string // PCI address
}

// Properties returns the facts of the device.
func (d *Device) Properties() Properties {
	i := &d.info
	return Properties{Name: d.name, Model: i.Model, Memory: i.Memory, Compute: i.Compute, Multiprocessors: i.SMs, Clock: i.Clock, Warp: i.Warp, Bus: i.Bus}
}

// Devices lists the devices that are here, best first, by the names that Open takes: GPUs that the driver knows, then
// the CPU. Whether one works shows on Open.
func Devices() []string { return device.Here() }

// Computes tells whether the device computes values, which the null device does not.
func (d *Device) Computes() bool { return !d.info.Null }

// Collect releases now what no handle reaches.
func (d *Device) Collect() { d.heap.Collect() }

// SetLimit makes allocations fail, as out of memory, that would bring the bytes in use beyond n; 0 lifts the limit.
func (d *Device) SetLimit(n int64) { d.heap.SetLimit(n) }

// Available is how many bytes values may have in all as things are: the limit of SetLimit, or the device's memory without what
// others have taken of it, this process's allocator included in what is available. Zero where the system does not tell.
func (d *Device) Available() int64 {
	if n := d.heap.Limit(); n > 0 {
		return n
	}
	n := cmp.Or(d.alloc.Limit(), d.info.Memory)
	if m, ok := device.As[device.Meter](d.dev); ok {
		if free, ok := m.Unused(); ok {
			n = min(n, free+d.alloc.Stats().ReservedBytes.All.Current)
		}
	}
	return n
}

// SetAllocConf configures how memory is cached, as WARPLINE_ALLOC_CONF does for all devices, by PyTorch's keys:
// "expandable_segments:True,garbage_collection_threshold:0.8". The error says which key or value is wrong, what the device
// cannot do, or that memory is cached by other rules already: it is for a device that has no values yet, or none any more and an
// emptied cache.
func (d *Device) SetAllocConf(conf string) error {
	c, err := device.ParseConf(conf)
	if err != nil {
		return err
	}
	return d.alloc.Configure(c)
}

// SetMemoryFraction limits what is taken of the device's memory, cached memory included, to a share above 0 and up to 1: an
// allocation beyond it is out of memory. The error says what is wrong with the share, or that the device has no size.
func (d *Device) SetMemoryFraction(share float64) error { return d.alloc.SetFraction(share) }

// limit is what an out-of-memory error reports as available in all.
func (d *Device) limit() int64 {
	return cmp.Or(d.heap.Limit(), d.alloc.Limit(), d.info.Memory)
}

// FailAt makes the k-th allocation from now fail once, as out of memory; 0 takes that back. For tests.
func (d *Device) FailAt(k int) { d.heap.FailAt(k) }

// Poison fills released memory with NaN, and checks before reuse that nobody wrote to it. For tests.
func (d *Device) Poison(on bool) error { return d.alloc.Poison(on) }

// Unknown lists the lines of the program that read values which a device without arithmetic did not compute, with how
// often. What depended on them (a branch, a learning rate) may go another way on a real device.
func (d *Device) Unknown() map[string]int {
	out := map[string]int{}
	for _, p := range d.unknown.points() {
		out[p.Line] += p.Count
	}
	return out
}

func (d *Device) noteUnknown(e *device.Event) {
	if e.What == device.CopyDownload {
		d.unknown.note(e)
	}
}

// Memory is a snapshot of a device's memory, in bytes.
type Memory struct {
	Allocated   device.Stat // blocks handed out, rounded
	Reserved    device.Stat // segments taken from the device
	Requested   device.Stat // what programs asked for
	Active      device.Stat // blocks handed out or waiting for a queue
	Used        int64       // requested and not released: the sum of live storages
	Peak        int64       // the most of Used since ResetPeak
	ValuesPeak  int64       // that without what kernels work in, which differs from engine to engine
	ScopeOnly   int64       // of Used, what no graph holds
	Scopes      int         // open scopes
	Collections int         // runs of the collector that allocation asked for
}

// Memory reports what is in use.
func (d *Device) Memory() Memory {
	s := d.alloc.Stats()
	u := d.heap.Usage()
	return Memory{Allocated: s.AllocatedBytes.All, Reserved: s.ReservedBytes.All, Requested: s.RequestedBytes.All, Active: s.ActiveBytes.All,
		Used: u.InUse, Peak: u.Peak, ValuesPeak: u.ValuesPeak, ScopeOnly: u.Loose, Scopes: u.Scopes, Collections: u.Collections}
}

// String prints the counters on one line.
func (m Memory) String() string {
	return fmt.Sprintf("allocated %s (peak %s), reserved %s (peak %s), requested %s, active %s", render.Bytes(m.Allocated.Current),
		render.Bytes(m.Allocated.Peak), render.Bytes(m.Reserved.Current), render.Bytes(m.Reserved.Peak), render.Bytes(m.Requested.Current), render.Bytes(m.Active.Current))
}

// MemoryStats are the allocator's counters by PyTorch's names: "reserved_bytes.all.peak", "num_alloc_retries".
func (d *Device) MemoryStats() map[string]int64 { return d.alloc.StatsMap() }

// ResetMemoryStats sets to zero what only grows of MemoryStats, numbers of retries and failures among it.
func (d *Device) ResetMemoryStats() { d.alloc.ResetAccumulated() }

// MemorySummary is the allocator's table, in PyTorch's layout.
func (d *Device) MemorySummary() string { return d.alloc.Summary() }

// ResetPeak starts a new measurement of the peaks and of the number of collections.
func (d *Device) ResetPeak() {
	d.alloc.ResetPeak()
	d.heap.ResetPeak()
}

// EmptyCache gives memory that no value uses back to the device.
func (d *Device) EmptyCache() error { return d.alloc.EmptyCache() }
