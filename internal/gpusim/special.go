package gpusim

// specialWhen says when a special register may change.
type specialWhen uint8

const (
	perWarp   specialWhen = iota // never while the warp exists
	perLaunch                    // with each launch
	perBlock                     // with each block of the grid
	always
)

type specialReg struct {
	when    specialWhen
	bits    uint8
	read    func(w *warp, lane uint32) uint64
	uniform bool
}

// specialRegs are the special registers of PTX by name, without "%".
var specialRegs = func() map[string]specialReg {
	m := map[string]specialReg{
		"laneid":            {perWarp, 32, func(_ *warp, lane uint32) uint64 { return uint64(lane) }, false},
		"warpid":            {perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(w.id) }, true},
		"nwarpid":           {perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.grid.dev.Card.ThreadsPerSM / warpSize) }, true},
		"smid":              {perBlock, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.index % max(w.cta.grid.dev.Card.SMs, 1)) }, true},
		"nsmid":             {perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.grid.dev.Card.SMs) }, true},
		"gridid":            {perLaunch, 64, func(w *warp, _ uint32) uint64 { return w.cta.grid.serial }, true},
		"lanemask_eq":       {perWarp, 32, func(_ *warp, lane uint32) uint64 { return 1 << lane }, false},
		"lanemask_le":       {perWarp, 32, func(_ *warp, lane uint32) uint64 { return 2<<lane - 1 }, false},
		"lanemask_lt":       {perWarp, 32, func(_ *warp, lane uint32) uint64 { return 1<<lane - 1 }, false},
		"lanemask_ge":       {perWarp, 32, func(_ *warp, lane uint32) uint64 { return 1<<32 - 1<<lane }, false},
		"lanemask_gt":       {perWarp, 32, func(_ *warp, lane uint32) uint64 { return 1<<32 - 2<<lane }, false},
		"total_smem_size":   {perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.grid.shared) }, true},
		"dynamic_smem_size": {perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(max(w.cta.grid.shared-w.code.dynamic, 0)) }, true},
		"clock":             {always, 32, func(w *warp, _ uint32) uint64 { return w.tick() }, true},
		"clock_hi":          {always, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.steps) >> 32 }, true},
		"clock64":           {always, 64, func(w *warp, _ uint32) uint64 { return w.tick() }, true},
		"globaltimer":       {always, 64, func(w *warp, _ uint32) uint64 { return w.nanoseconds() }, true},
		"globaltimer_lo":    {always, 32, func(w *warp, _ uint32) uint64 { return w.nanoseconds() & 0xffffffff }, true},
		"globaltimer_hi":    {always, 32, func(w *warp, _ uint32) uint64 { return w.nanoseconds() >> 32 }, true},
	}
	for i, dim := range []string{"x", "y", "z"} {
		m["tid."+dim] = specialReg{perWarp, 32, func(w *warp, lane uint32) uint64 {
			return uint64(w.cta.grid.threadID(w.id*warpSize + lane)[i])
		}, false}
		m["ntid."+dim] = specialReg{perWarp, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.grid.block[i]) }, true}
		m["nctaid."+dim] = specialReg{perLaunch, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.grid.dims[i]) }, true}
		m["ctaid."+dim] = specialReg{perBlock, 32, func(w *warp, _ uint32) uint64 { return uint64(w.cta.id[i]) }, true}
	}
	return m
}()

// nanoseconds is a clock that depends on nothing but what the block has executed: one instruction is one nanosecond.
func (w *warp) nanoseconds() uint64 { return w.cta.grid.serial<<32 + uint64(w.cta.steps) }

// tick reads the clock, which is the number of instructions that the block has run and rises with each read.
func (w *warp) tick() uint64 {
	w.cta.steps++
	return uint64(w.cta.steps)
}
