package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

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
	read    func(w *warp.Warp, lane uint32) uint64
	uniform bool
}

// specialRegs are the special registers of PTX by name, without "%".
var specialRegs = func() map[string]specialReg {
	m := map[string]specialReg{
		"laneid":            {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return uint64(lane) }, false},
		"warpid":            {perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.Id) }, true},
		"nwarpid":           {perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.WarpsPerSM) }, true},
		"smid":              {perBlock, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Index % w.CTA.Launch.SMs) }, true},
		"nsmid":             {perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.SMs) }, true},
		"gridid":            {perLaunch, 64, func(w *warp.Warp, _ uint32) uint64 { return w.CTA.Launch.Serial }, true},
		"lanemask_eq":       {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return 1 << lane }, false},
		"lanemask_le":       {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return 2<<lane - 1 }, false},
		"lanemask_lt":       {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return 1<<lane - 1 }, false},
		"lanemask_ge":       {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return 1<<32 - 1<<lane }, false},
		"lanemask_gt":       {perWarp, 32, func(_ *warp.Warp, lane uint32) uint64 { return 1<<32 - 2<<lane }, false},
		"total_smem_size":   {perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.Shared) }, true},
		"dynamic_smem_size": {perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(max(w.CTA.Launch.Shared-w.Code.Dynamic, 0)) }, true},
		"clock":             {always, 32, func(w *warp.Warp, _ uint32) uint64 { return w.Tick() }, true},
		"clock_hi":          {always, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Steps) >> 32 }, true},
		"clock64":           {always, 64, func(w *warp.Warp, _ uint32) uint64 { return w.Tick() }, true},
		"globaltimer":       {always, 64, func(w *warp.Warp, _ uint32) uint64 { return w.Nanoseconds() }, true},
		"globaltimer_lo":    {always, 32, func(w *warp.Warp, _ uint32) uint64 { return w.Nanoseconds() & 0xffffffff }, true},
		"globaltimer_hi":    {always, 32, func(w *warp.Warp, _ uint32) uint64 { return w.Nanoseconds() >> 32 }, true},
	}
	m["cluster_ctarank"] = specialReg{perBlock, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Rank) }, true}
	m["cluster_nctarank"] = specialReg{perLaunch, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.ClusterSize()) }, true}
	m["is_explicit_cluster"] = specialReg{perLaunch, 1, func(w *warp.Warp, _ uint32) uint64 { return simt.Bit(w.CTA.Launch.ClusterSize() > 1) }, true}
	m["aggr_smem_size"] = specialReg{perLaunch, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.Shared) }, true}
	for i, dim := range []string{"x", "y", "z"} {
		m["cluster_ctaid."+dim] = specialReg{perBlock, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.CTAInCluster(w.CTA.Rank)[i]) }, true}
		m["cluster_nctaid."+dim] = specialReg{perLaunch, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.Cluster[i]) }, true}
		m["clusterid."+dim] = specialReg{perBlock, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Id[i] / w.CTA.Launch.Cluster[i]) }, true}
		m["nclusterid."+dim] = specialReg{perLaunch, 32, func(w *warp.Warp, _ uint32) uint64 {
			return uint64(w.CTA.Launch.Dims[i] / w.CTA.Launch.Cluster[i])
		}, true}
		m["tid."+dim] = specialReg{perWarp, 32, func(w *warp.Warp, lane uint32) uint64 {
			return uint64(w.CTA.Launch.ThreadID(w.Id*simt.WarpSize + lane)[i])
		}, false}
		m["ntid."+dim] = specialReg{perWarp, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.Block[i]) }, true}
		m["nctaid."+dim] = specialReg{perLaunch, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Launch.Dims[i]) }, true}
		m["ctaid."+dim] = specialReg{perBlock, 32, func(w *warp.Warp, _ uint32) uint64 { return uint64(w.CTA.Id[i]) }, true}
	}
	return m
}()
