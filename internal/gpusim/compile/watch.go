package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// watcher makes the step for an access whose address addr computes. fill writes what a lane is about to store to w.Data.
func (e *emitter) watcher(a *check.Access, addr warp.Op, lanes uint32, fill func(w *warp.Warp, lane int)) {
	e.watch = func(w *warp.Warp) {
		addr(w)
		w.Mask = lanes
		w.CountAccess(a)
		if a.Space == ptx.Shared {
			w.WatchShared(a, fill)
		} else {
			w.WatchGlobal(a)
		}
		w.Mask = simt.Full
	}
}

// reviewer makes the step after a load of 16 bytes by the first lanes.
func (e *emitter) reviewer(a *check.Access, lanes int) {
	if a.Space == ptx.Shared {
		e.review = func(w *warp.Warp) { w.ReviewShared(a, lanes) }
	} else {
		e.review = func(w *warp.Warp) { w.ReviewGlobal(a) }
	}
}

// seen makes the form in Go of a watched access skip what has been done.
func seen(run warp.Op) warp.Op {
	return func(w *warp.Warp) {
		w.Seen = true
		run(w)
		w.Seen = false
	}
}
