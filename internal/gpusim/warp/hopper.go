package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
)

// maxBlockRegisters is how many registers of 32 bits a multiprocessor has for all threads of a block.
const maxBlockRegisters = 64 << 10

// SetRegisters changes how many registers each thread of the warp has.
func (w *Warp) SetRegisters(s *check.Site, n int, more bool) {
	if old := w.registers; old != 0 && (more && n < old || !more && n > old) {
		w.CTA.Note(w, s, w.Mask, check.Synccheck, fmt.Sprintf("setmaxnreg to %d of a warp that has %d", n, old))
	}
	w.registers = n
	total := 0
	for _, v := range w.CTA.warps {
		total += v.registers * 32
	}
	if more && total > maxBlockRegisters {
		w.CTA.Note(w, s, w.Mask, check.Synccheck, fmt.Sprintf("setmaxnreg.inc to %d waits for ever: the warps of the block would have %d registers, more than %d", n, total, maxBlockRegisters))
	}
}

// Depends is griddepcontrol.wait.
func (w *Warp) Depends() { w.CTA.waited = true }

// FenceProxy is fence.proxy.async.
func (w *Warp) FenceProxy() {
	if r := w.CTA.Race; r != nil {
		r.FenceProxy(w.Id)
	}
}
