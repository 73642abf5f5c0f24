package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
)

// SetRegisters changes how many registers each thread of the warp has. That warps wait for others to give theirs up is left out.
func (w *Warp) SetRegisters(s *check.Site, n int, more bool) {
	if old := w.registers; old != 0 && (more && n < old || !more && n > old) {
		w.CTA.Note(w, s, w.Mask, check.Synccheck, fmt.Sprintf("setmaxnreg to %d of a warp that has %d", n, old))
	}
	w.registers = n
}

// Depends is griddepcontrol.wait.
func (w *Warp) Depends() {
	if o := w.CTA.Order; o != nil {
		o.Depended()
	}
}

// FenceProxy is fence.proxy.async.
func (w *Warp) FenceProxy() {
	if o := w.CTA.Order; o != nil {
		o.FenceProxy(w.Id, w.Mask)
	}
}

// FenceInit is fence.mbarrier_init. It is taken for one of all that the thread has done.
func (w *Warp) FenceInit() {
	if o := w.CTA.Order; o != nil {
		o.Fence(w.Id, w.Mask, false, true, check.OfCluster)
	}
}
