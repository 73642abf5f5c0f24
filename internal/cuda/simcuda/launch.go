package simcuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// launch refuses what the driver refuses, and a parameter buffer of the wrong size, which the driver cannot see.
func (s *System) launch(cfg *driver.LaunchConfig, h driver.Function, params []byte) driver.Result {
	return s.in(func(c *context) driver.Result {
		if cfg == nil {
			return c.refuse(driver.InvalidValue, "a launch without a configuration")
		}
		return c.target(cfg.Stream, func(st *stream) driver.Result {
			if st.ctx != c {
				return c.refuse(driver.InvalidHandle, "stream %#x is of device %d, the current context of device %d", uintptr(cfg.Stream), st.ctx.dev.ordinal, c.dev.ordinal)
			}
			t, r := c.newKernelTask(h, cfg, params, s.cfg.LateEffects || st.capture != nil)
			if r == driver.Success {
				c.give(st, t)
			}
			return r
		})
	})
}

func ints(d [3]uint32) [3]int { return [3]int{int(d[0]), int(d[1]), int(d[2])} }

// admissible checks a launch against the limits of card and kernel.
func (c *context) admissible(cfg *driver.LaunchConfig, f *function, params int) driver.Result {
	card, k := &c.dev.sim.Card, f.kernel
	for i, most := range [3]uint32{1<<31 - 1, 65535, 65535} {
		if cfg.Grid[i] < 1 || cfg.Grid[i] > most {
			return c.refuse(driver.InvalidValue, "%s: a grid of %v blocks; dimension %d goes from 1 to %d", k.Name, cfg.Grid, i, most)
		}
	}
	threads := 1
	for i, most := range [3]uint32{1024, 1024, 64} {
		if cfg.Block[i] < 1 || cfg.Block[i] > most {
			return c.refuse(driver.InvalidValue, "%s: a block of %v threads; dimension %d goes from 1 to %d", k.Name, cfg.Block, i, most)
		}
		threads *= int(cfg.Block[i])
	}
	switch {
	case threads > cards.ThreadsPerBlock:
		return c.refuse(driver.InvalidValue, "%s: a block of %v is %d threads, more than %d", k.Name, cfg.Block, threads, cards.ThreadsPerBlock)
	case k.Required != [3]int{} && k.Required != ints(cfg.Block):
		return c.refuse(driver.InvalidValue, "%s: a block of %v threads; the kernel was compiled for %v and no other", k.Name, cfg.Block, k.Required)
	case threads > f.threads:
		return c.refuse(driver.OutOfResources, "%s: a block of %d threads; with %d registers a thread and its .maxntid it can have %d", k.Name, threads, f.registers, f.threads)
	case int64(cfg.Shared) > int64(f.dynamic):
		return c.refuse(driver.InvalidValue, "%s: %d bytes of dynamic shared memory; %d are set, and FuncSetAttribute allows up to %d", k.Name, cfg.Shared, f.dynamic, card.SM.SharedPerBlock-k.Shared)
	case params != k.Params:
		return c.refuse(driver.InvalidValue, "%s: a parameter buffer of %d bytes; the kernel's parameters, at %v, take %d", k.Name, params, k.Offsets, k.Params)
	}
	if _, err := c.dev.sim.Cluster(k, ints(cfg.Grid), ints(cfg.Cluster)); err != nil {
		return c.refuse(driver.InvalidClusterSize, "%s: %s", k.Name, strings.TrimPrefix(err.Error(), "gpusim: invalid value: "))
	}
	return driver.Success
}

// execute runs a kernel and returns what it takes by the model.
func (c *context) execute(t *kernelTask) cost {
	s, f, grid, block, cluster, shared, params := c.dev.sys, t.f, t.grid, t.block, t.cluster, t.shared, t.params
	if s.cfg.Off {
		return c.sampled(t)
	}
	o := gpusim.Options{Checks: s.cfg.Checks, Seed: s.cfg.Seed, Schedule: s.cfg.Schedule, Numerics: s.cfg.Numerics,
		StepLimit: s.cfg.StepLimit, Cores: s.cfg.Cores, Counters: s.cfg.Counters, Cluster: cluster}
	var key alike
	var known estimate.Launch
	o.Stop = s.cfg.Stop
	if (s.cfg.Clock || s.timed) && !o.Counters {
		key = c.alike(f, grid, block, shared, params)
		if known = s.traffic[key]; known.Blocks == 0 {
			o.Counters, o.Sample = true, sampleBlocks
		}
	}
	o.Ahead = s.ahead(t)
	touching := s.touching(c)
	o.Touched = touching || s.order.on && c.dev.sim.Card.Compute[0] >= 9
	rep, err := c.dev.sim.Launch(f.kernel, grid, block, shared, params, o)
	if rep == nil {
		c.fail(driver.LaunchFailed, fmt.Sprintf("%s: %v", f.kernel.Name, err))
		return cost{}
	}
	if o.Touched && s.order.now != nil {
		s.order.now.stream.ran = ran{s.order.now.seq, &gpusim.Ahead{Reads: rep.Reads, Writes: rep.Writes}}
	}
	if touching {
		s.touched(c, "kernel "+f.kernel.Name, rep.Reads, rep.Writes)
	}
	var fault *gpusim.Fault
	switch {
	case errors.As(err, &fault):
		c.fail(driver.Result(fault.Code), fault.Error())
	case errors.Is(err, gpusim.ErrStopped):
		c.fail(driver.Deinitialized, fmt.Sprintf("%s was stopped before its end", f.kernel.Name))
	}
	if s.cfg.OnRun != nil {
		s.cfg.OnRun(Run{f.mod.handle, f.kernel.Name, rep, fault})
	}
	s.found(c, rep.Findings)
	if len(rep.Output) > 0 {
		if _, err := s.cfg.Output.Write(rep.Output); err != nil {
			c.fail(driver.Unknown, fmt.Sprintf("%s: writing what it printed: %v", f.kernel.Name, err))
		}
	}
	if s.cfg.OnLaunch != nil {
		s.cfg.OnLaunch(f.kernel.Name, rep)
	}
	w := rep.Work
	w.Registers = f.registers
	switch {
	case known.Blocks > 0:
		w.Wavefronts, w.Requested, w.Touched, w.Own, w.Hottest = known.Wavefronts, known.Requested, known.Touched, known.Own, known.Hottest
	case key.kernel != nil && w.Blocks > 0 && len(s.traffic) < maxTraffic:
		s.traffic[key] = w
	}
	w.Warm = s.cfg.Warm
	seconds, share := estimate.Seconds(&s.card, &w)
	return t.took(seconds, share)
}

// took is what the kernel takes.
func (t *kernelTask) took(seconds, share float64) cost {
	return cost{ns: int64(math.Round(1e9 * seconds)), share: share, early: t.dependent, triggers: t.f.kernel.Triggers}
}

// fewThreads is of how many threads all run: kernels that make tables, of what others read, have no more. That of a convolution has one for
// each weight of a filter.
const fewThreads = 1 << 13

// sampleBlocks is how many blocks of a launch are counted, and maxTraffic of how many launches what was counted is kept.
const (
	sampleBlocks = 12
	maxTraffic   = 1 << 12
)

// alike is what launches have in common that do about the same: the kernel, its dimensions and its parameters, of pointers only how
// they are aligned.
type alike struct {
	kernel      *gpusim.Kernel
	grid, block [3]int
	shared      int
	params      string
}

// alike is that of a launch.
func (c *context) alike(f *function, grid, block [3]int, shared int, params []byte) alike {
	key := bytes.Clone(params)
	for at := 0; at+8 <= len(key); at += 8 {
		if p := binary.LittleEndian.Uint64(key[at:]); c.dev.sim.Owns(p) {
			binary.LittleEndian.PutUint64(key[at:], p%128)
		}
	}
	return alike{f.kernel, grid, block, shared, string(key)}
}

// sampled is what a kernel takes of which some blocks run, once for launches that are alike, and the others do not. Where there are
// few blocks, they all run each time: kernels that make tables, of what others read, have no more.
func (c *context) sampled(t *kernelTask) cost {
	s, f, grid, block, cluster, shared, params := c.dev.sys, t.f, t.grid, t.block, t.cluster, t.shared, t.params
	if !s.cfg.Clock {
		return cost{}
	}
	key := c.alike(f, grid, block, shared, params)
	w, known := s.traffic[key]
	few := grid[0]*grid[1]*grid[2]*block[0]*block[1]*block[2] <= fewThreads
	if !known || few {
		o := gpusim.Options{Checks: s.cfg.Checks, Numerics: s.cfg.Numerics, StepLimit: s.cfg.StepLimit, Cores: s.cfg.Cores, Skip: !few, Cluster: cluster}
		if !known {
			o.Counters, o.Sample = true, sampleBlocks
		}
		rep, err := c.dev.sim.Launch(f.kernel, grid, block, shared, params, o)
		if err != nil {
			c.fail(driver.LaunchFailed, fmt.Sprintf("%s: %v", f.kernel.Name, err))
			return cost{}
		}
		if !known {
			w = rep.Work
			w.Registers, w.Warm = f.registers, s.cfg.Warm
		}
	}
	if len(s.traffic) < maxTraffic {
		s.traffic[key] = w
	}
	if s.cfg.OnLaunch != nil {
		s.cfg.OnLaunch(f.kernel.Name, &gpusim.Report{Work: w})
	}
	seconds, share := estimate.Seconds(&s.card, &w)
	return t.took(seconds, share)
}
