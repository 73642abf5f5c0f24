package simcuda

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

type module struct {
	ctx      *context
	handle   driver.Module
	prog     *gpusim.Program
	version  ptx.Version
	constant int // bytes of constant memory
	gone     bool
	funcs    map[string]driver.Function
}

type function struct {
	mod       *module
	kernel    *gpusim.Kernel
	registers int // per thread, as the compiler bounds them
	threads   int // that a block may have
	dynamic   int // bytes of dynamic shared memory that a launch may ask for
	carveout  int
}

// maxStaticShared is the shared memory that a block may have without opting in.
const maxStaticShared = 48 << 10

// moduleLoad takes PTX, whose findings make the log in the form of NVIDIA's compiler.
func (s *System) moduleLoad(image []byte) (h driver.Module, log string, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		if r := c.quiet("ModuleLoadData"); r != driver.Success {
			return r
		}
		m, why, r := c.compile(image)
		if r != driver.Success {
			log = why
			return c.refuse(r, "%s", strings.TrimSpace(why))
		}
		h = driver.Module(s.handle())
		m.handle = h
		s.modules[h] = m
		return driver.Success
	})
	return h, log, r
}

// compile parses and checks an image, or says what is wrong with it.
func (c *context) compile(image []byte) (*module, string, driver.Result) {
	if bytes.HasPrefix(image, []byte("\x7fELF")) {
		return nil, "the image is a cubin, machine code; a simulated GPU runs PTX only", driver.NoBinaryForGPU
	}
	if len(image) == 0 {
		return nil, "the image is empty", driver.InvalidValue
	}
	s, err := parse(string(image))
	m := s.Module
	if v, ok := headerVersion(image, m); ok && (ptx.Version{Major: ptxMajor, Minor: ptxMinor}).Less(v) {
		return nil, fmt.Sprintf("the module is of PTX %s; the driver, of CUDA %d.%d, knows PTX up to %d.%d", v, driverVersion/1000, driverVersion%1000/10, ptxMajor, ptxMinor), driver.UnsupportedPTXVersion
	}
	if err != nil {
		var e *ptx.Error
		if errors.As(err, &e) {
			return nil, logLine(e), driver.InvalidPTX
		}
		return nil, err.Error(), driver.InvalidPTX
	}
	if why := unfit(m.Target, c.dev.sim.Card.Compute); why != "" {
		return nil, why, driver.NoBinaryForGPU
	}
	return c.place(s)
}

// place puts a module that is right onto the device.
func (c *context) place(s *gpusim.Source) (*module, string, driver.Result) {
	prog, err := c.dev.sim.LoadSource(s)
	var bad gpusim.Rejected
	if errors.As(err, &bad) {
		var log strings.Builder
		for _, e := range bad {
			log.WriteString(logLine(e))
		}
		return nil, log.String(), driver.InvalidPTX
	}
	if err != nil {
		r := driver.InvalidPTX
		var e *gpusim.Error
		if errors.As(err, &e) {
			r = driver.Result(e.Code)
		}
		return nil, err.Error(), r
	}
	m := s.Module
	x := &module{ctx: c, prog: prog, version: m.Version, funcs: map[string]driver.Function{}}
	for v := range m.Vars() {
		if v.Space == ptx.ConstSpace {
			x.constant += int(v.Size())
		}
	}
	return x, "", driver.Success
}

// logLine is a finding in the form of NVIDIA's compiler, with the column, which that lacks.
func logLine(e *ptx.Error) string {
	text := strings.TrimPrefix(e.Error(), "ptx:"+e.Pos.String()+": ")
	return fmt.Sprintf("ptxas application ptx input, line %d:%d; error   : %s\n", e.Pos.Line, e.Pos.Col, text)
}

// headerVersion is a module's version, also where what follows it could not be parsed.
func headerVersion(image []byte, m *ptx.Module) (ptx.Version, bool) {
	if m != nil {
		return m.Version, true
	}
	_, rest, ok := bytes.Cut(image, []byte(".version"))
	var v ptx.Version
	if !ok {
		return v, false
	}
	n, _ := fmt.Sscanf(string(rest[:min(len(rest), 16)]), "%d.%d", &v.Major, &v.Minor)
	return v, n == 2
}

// unfit says why code for a target does not run on a card; empty if it does.
func unfit(t ptx.Target, compute [2]int) string {
	cc := compute[0]*10 + compute[1]
	card := fmt.Sprintf("; the card is of compute capability %d.%d", compute[0], compute[1])
	switch {
	case t.SM > cc:
		return "the module is for " + t.String() + " and later" + card
	case t.Suffix == 'a' && t.SM != cc:
		return "the module is for " + t.String() + " alone" + card
	case t.Suffix == 'f' && t.SM/10 != compute[0]:
		return "the module is for the family of " + t.String() + " alone" + card
	}
	return ""
}

func (c *context) module(h driver.Module) (*module, driver.Result) {
	m := c.dev.sys.modules[h]
	if m == nil || m.ctx != c {
		return nil, c.refuse(driver.InvalidHandle, "there is no module %#x in the context of device %d", uintptr(h), c.dev.ordinal)
	}
	return m, driver.Success
}

// moduleUnload waits for the context's work, which may use the module.
func (s *System) moduleUnload(h driver.Module) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("ModuleUnload, which waits"); r != driver.Success {
			return r
		}
		m, r := c.module(h)
		if r != driver.Success {
			return r
		}
		if r := c.wait(c.tails()...); r != driver.Success {
			return r
		}
		for _, f := range m.funcs {
			delete(s.funcs, f)
		}
		delete(s.modules, h)
		m.gone = true
		return c.accept(m.prog.Unload("ModuleUnload"))
	})
}

func (s *System) moduleFunction(h driver.Module, name string) (fh driver.Function, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		m, r := c.module(h)
		if r != driver.Success {
			return r
		}
		if known, ok := m.funcs[name]; ok {
			fh = known
			return driver.Success
		}
		k := m.prog.Kernel(name)
		if k == nil {
			return c.refuse(driver.NotFound, "the module has no kernel %q; it has %s", name, strings.Join(m.prog.Kernels(), ", "))
		}
		if err := k.Refused(); err != nil {
			return c.refuse(driver.NotSupported, "kernel %s: %v", name, err)
		}
		f := &function{mod: m, kernel: k, carveout: -1, dynamic: maxStaticShared - k.Shared}
		f.registers = bounded(k, c.dev.sim.Card)
		f.threads = maxThreads(k, f.registers, c.dev.sim.Card)
		fh = driver.Function(s.handle())
		m.funcs[name], s.funcs[fh] = fh, f
		return driver.Success
	})
	return fh, r
}

// bounded is the registers per thread, which a compiler lowers by spilling where a launch bound or the card asks for it.
func bounded(k *gpusim.Kernel, card gpusim.Card) int {
	n := min(k.Registers, cards.MaxRegisters)
	if k.MaxBlock < cards.ThreadsPerBlock {
		warps := (k.MaxBlock + 31) / 32
		n = min(n, card.SM.Registers/(warps*32)/8*8)
	}
	return max(n, 1)
}

// maxThreads is the largest block whose registers fit on a multiprocessor.
func maxThreads(k *gpusim.Kernel, registers int, card gpusim.Card) int {
	n := min(k.MaxBlock, cards.ThreadsPerBlock)
	for n > 32 && card.Occupancy(registers, n, 0).Blocks == 0 {
		n = (n - 1) / 32 * 32
	}
	return n
}

func (s *System) moduleGlobal(h driver.Module, name string) (p driver.Ptr, n int64, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		m, r := c.module(h)
		if r != driver.Success {
			return r
		}
		addr, size, ok := m.prog.Global(name)
		if !ok {
			return c.refuse(driver.NotFound, "the module has no variable %q", name)
		}
		p, n = driver.Ptr(addr), int64(size)
		return driver.Success
	})
	return p, n, r
}

// assembled takes the registers that an assembler has given a kernel, in the place of the estimate.
func (s *System) assembled(h driver.Function, registers int) driver.Result {
	return s.in(func(c *context) driver.Result {
		f, r := c.function(h)
		switch {
		case r != driver.Success:
			return r
		case registers < 1 || registers > cards.MaxRegisters:
			return c.refuse(driver.InvalidValue, "%s: %d registers a thread; there are 1 to %d", f.kernel.Name, registers, cards.MaxRegisters)
		}
		f.registers = registers
		f.threads = maxThreads(f.kernel, registers, c.dev.sim.Card)
		return driver.Success
	})
}

// parameters is the table's Parameters.
func (s *System) parameters(h driver.Function) (offsets, sizes []int, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		f, r := c.function(h)
		if r == driver.Success {
			offsets, sizes = f.kernel.Offsets, f.kernel.Sizes
		}
		return r
	})
	return offsets, sizes, r
}

func (c *context) function(h driver.Function) (*function, driver.Result) {
	f := c.dev.sys.funcs[h]
	if f == nil || f.mod.ctx != c {
		return nil, c.refuse(driver.InvalidHandle, "there is no function %#x in the context of device %d", uintptr(h), c.dev.ordinal)
	}
	return f, driver.Success
}

func (s *System) funcLoad(h driver.Function) driver.Result {
	return s.in(func(c *context) driver.Result {
		_, r := c.function(h)
		return r
	})
}

func (s *System) funcAttribute(a driver.FuncAttribute, h driver.Function) (v int, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		f, r := c.function(h)
		if r != driver.Success {
			return r
		}
		var ok bool
		if v, ok = f.attribute(a); !ok {
			return c.refuse(driver.InvalidValue, "function attribute %d", a)
		}
		return driver.Success
	})
	return v, r
}

func (f *function) attribute(a driver.FuncAttribute) (int, bool) {
	card := &f.mod.ctx.dev.sim.Card
	switch a {
	case driver.FuncMaxThreadsPerBlock:
		return f.threads, true
	case driver.FuncSharedSize:
		return f.kernel.Shared, true
	case driver.FuncConstSize:
		return f.mod.constant, true
	case driver.FuncLocalSize:
		return f.kernel.Local, true
	case driver.FuncNumRegs:
		return f.registers, true
	case driver.FuncPTXVersion:
		return f.mod.version.Major*10 + f.mod.version.Minor, true
	case driver.FuncBinaryVersion:
		return card.Compute[0]*10 + card.Compute[1], true
	case driver.FuncMaxDynamicShared:
		return f.dynamic, true
	case driver.FuncPreferredCarveout:
		return f.carveout, true
	}
	return 0, false
}

// funcSetAttribute takes the two attributes that can be set.
func (s *System) funcSetAttribute(h driver.Function, a driver.FuncAttribute, value int) driver.Result {
	return s.in(func(c *context) driver.Result {
		f, r := c.function(h)
		if r != driver.Success {
			return r
		}
		switch most := c.dev.sim.Card.SM.SharedPerBlock - f.kernel.Shared; {
		case a == driver.FuncMaxDynamicShared && value >= 0 && value <= most:
			f.dynamic = value
		case a == driver.FuncMaxDynamicShared:
			return c.refuse(driver.InvalidValue, "%d bytes of dynamic shared memory for %s; 0 to %d can be", value, f.kernel.Name, most)
		case a == driver.FuncPreferredCarveout && value >= -1 && value <= 100:
			f.carveout = value
		default:
			return c.refuse(driver.InvalidValue, "function attribute %d cannot be set to %d", a, value)
		}
		return driver.Success
	})
}

// occupancy is exact for the registers that are estimated.
func (s *System) occupancy(h driver.Function, block int, dynamic int64) (n int, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		f, r := c.function(h)
		if r != driver.Success {
			return r
		}
		card := c.dev.sim.Card
		if block < 1 || dynamic < 0 {
			return c.refuse(driver.InvalidValue, "the occupancy of blocks of %d threads with %d bytes of dynamic shared memory", block, dynamic)
		}
		if block <= f.threads && int64(f.kernel.Shared)+dynamic <= int64(card.SM.SharedPerBlock) {
			n = card.Occupancy(f.registers, block, f.kernel.Shared+int(dynamic)).Blocks
		}
		return driver.Success
	})
	return n, r
}
