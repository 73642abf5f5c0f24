package simcuda

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// The assumed driver: of CUDA 12.8, the first that knows every card there is here.
const (
	driverVersion = 12080
	ptxMajor      = 8
	ptxMinor      = 7
)

type device struct {
	sys     *System
	ordinal int
	sim     *gpusim.Device
	ctx     *context // the primary context; nil until it is retained
	retains int
	flags   uint32
}

// context is the state of a primary context, from its first use to its release or reset.
type context struct {
	dev     *device
	handle  driver.Context
	gone    bool
	err     driver.Result // sticky
	why     string        // of err
	refused string        // why the last refused call was
	time    timeline

	legacy  *stream
	threads map[uint64]*stream // per-thread default streams
	queues  []*stream          // in the order of creation, destroyed ones until they are empty
	streams int                // ever made
	allocs  map[driver.Ptr]*allocation
	peers   []*context
}

// enter locks the machine for a call that needs no context.
func (s *System) enter() driver.Result {
	s.mu.Lock()
	if !s.inited {
		return driver.NotInitialized
	}
	return driver.Success
}

// in runs a call in the context that is current on this thread.
func (s *System) in(f func(c *context) driver.Result) driver.Result {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return r
	}
	c := s.current[thread()]
	switch {
	case c == nil:
		s.why = "no context is current on the calling thread: one is to be made so there before (CtxSetCurrent; in Go driver.Do)"
		return driver.InvalidContext
	case c.gone:
		s.why = fmt.Sprintf("the context of device %d was released or reset", c.dev.ordinal)
		return driver.ContextDestroyed
	case c.err != driver.Success:
		return c.err
	}
	s.lap(c)
	before := c.refused
	c.refused = ""
	if r = f(c); r == driver.Success || r == driver.NotReady {
		c.refused = before
	}
	if s.cfg.RealHost {
		s.left = time.Now()
	}
	return r
}

// refuse answers a call with an error that leaves the context usable.
func (c *context) refuse(r driver.Result, format string, args ...any) driver.Result {
	c.refused = fmt.Sprintf(format, args...)
	return r
}

// fail puts the context into an error for good. The first one stays.
func (c *context) fail(r driver.Result, why string) {
	if c.err == driver.Success {
		c.err, c.why = r, why
	}
}

// explain is the table's Explain.
func (s *System) explain() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.current[thread()]
	switch {
	case c == nil || c.gone:
		return s.why
	case c.err != driver.Success:
		return c.why
	}
	return c.refused
}

func (s *System) init(flags uint32) driver.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if flags != 0 {
		return driver.InvalidValue
	}
	s.inited = true
	return driver.Success
}

// driverVersion answers before Init, as the real function does.
func (s *System) driverVersion() (int, driver.Result) { return driverVersion, driver.Success }

func (s *System) deviceCount() (int, driver.Result) {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return 0, r
	}
	return len(s.devices), r
}

func (s *System) deviceGet(ordinal int) (driver.Device, driver.Result) {
	d, r := s.device(driver.Device(ordinal))
	if r != driver.Success {
		return 0, r
	}
	return driver.Device(d.ordinal), r
}

// device finds a device; for calls that need no more of the machine than that.
func (s *System) device(d driver.Device) (*device, driver.Result) {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return nil, r
	}
	return s.at(d)
}

func (s *System) at(d driver.Device) (*device, driver.Result) {
	if d < 0 || int(d) >= len(s.devices) {
		return nil, driver.InvalidDevice
	}
	return s.devices[d], driver.Success
}

func (s *System) deviceName(d driver.Device) (string, driver.Result) {
	if _, r := s.device(d); r != driver.Success {
		return "", r
	}
	return "Simulated " + s.card.Model, driver.Success
}

func (s *System) deviceUUID(d driver.Device) (id [16]byte, r driver.Result) {
	if _, r = s.device(d); r != driver.Success {
		return id, r
	}
	h := fnv.New128a()
	fmt.Fprintf(h, "%s %d", s.card.Name, d)
	return [16]byte(h.Sum(nil)), r
}

func (s *System) deviceTotalMem(d driver.Device) (int64, driver.Result) {
	if _, r := s.device(d); r != driver.Success {
		return 0, r
	}
	return s.card.Memory, driver.Success
}

func (s *System) deviceBus(d driver.Device) (string, driver.Result) {
	if _, r := s.device(d); r != driver.Success {
		return "", r
	}
	return fmt.Sprintf("0000:%02X:00.0", int(d)+1), driver.Success
}

func (s *System) deviceAttribute(a driver.Attribute, d driver.Device) (int, driver.Result) {
	x, r := s.device(d)
	if r != driver.Success {
		return 0, r
	}
	if v, ok := x.attribute(a); ok {
		return v, driver.Success
	}
	return 0, driver.InvalidValue
}

func (d *device) attribute(a driver.Attribute) (int, bool) {
	sim, card := &d.sim.Card, &d.sys.card
	switch a {
	case driver.MaxThreadsPerBlock:
		return cards.ThreadsPerBlock, true
	case driver.PCIBusID:
		return d.ordinal + 1, true
	case driver.MultiprocessorCount:
		return sim.SMs, true
	case driver.ClockRate:
		return card.Clock * 1000, true
	case driver.MemoryClockRate:
		return card.MemoryClock(), true
	case driver.MemoryBusWidth:
		return card.Bus, true
	case driver.L2CacheSize:
		return int(card.L2), true
	case driver.MaxThreadsPerSM:
		return sim.SM.Threads, true
	case driver.MaxBlocksPerSM:
		return sim.SM.Blocks, true
	case driver.MaxRegistersPerBlock, driver.MaxRegistersPerSM:
		return sim.SM.Registers, true
	case driver.MaxSharedPerSM:
		return sim.SM.Shared, true
	case driver.MaxSharedPerBlockOptin:
		return sim.SM.SharedPerBlock, true
	case driver.ReservedSharedPerBlock:
		return sim.SM.SharedReserved, true
	case driver.ClusterLaunch:
		if sim.Compute[0] >= 9 {
			return 1, true
		}
		return 0, true
	case driver.ComputeMajor:
		return sim.Compute[0], true
	case driver.ComputeMinor:
		return sim.Compute[1], true
	}
	v, ok := sameOnAll[a]
	return v, ok
}

// sameOnAll are the attributes in which the cards do not differ. What the simulator lacks is 0.
var sameOnAll = map[driver.Attribute]int{
	driver.MaxBlockDimX: 1024, driver.MaxBlockDimY: 1024, driver.MaxBlockDimZ: 64,
	driver.VirtualMemory: 1, driver.MaxGridDimX: 1<<31 - 1, driver.MaxGridDimY: 65535, driver.MaxGridDimZ: 65535,
	driver.MaxSharedPerBlock: maxStaticShared, driver.TotalConstant: 64 << 10, driver.WarpSize: 32,
	driver.Integrated: 0, driver.CanMapHostMemory: 0, driver.ConcurrentKernels: 1, driver.AsyncEngineCount: 2,
	driver.UnifiedAddressing: 1, driver.ManagedMemory: 0, driver.PageableMemoryAccess: 0, driver.CooperativeLaunch: 0,
	driver.MemoryPoolsSupported: 1,
}

func (s *System) deviceCanAccessPeer(d, peer driver.Device) (bool, driver.Result) {
	if _, r := s.device(d); r != driver.Success {
		return false, r
	}
	if _, r := s.device(peer); r != driver.Success {
		return false, r
	}
	return d != peer && s.peerable(), driver.Success
}

// peerable reports whether the cards reach each other's memory: GeForce cards do not, but for some joined by a bridge.
func (s *System) peerable() bool { return !strings.HasPrefix(s.card.Model, "GeForce") }
