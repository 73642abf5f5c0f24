package warp

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// A product by wgmma is made at any moment between its issue and the wait for its group. The simulator makes it at once; what
// reads or writes its registers in between, or writes the shared memory that it reads, is a finding.

// products is what a warp knows of its products under way.
type products struct {
	group, done int64   // of the next product; those of groups before done are over
	in          []int64 // by register: 1 more than the group of the product that has it, 0 for none
	reads       []bool  // by register: as A alone
	written     []int64 // by register: when something else wrote it last
	time, fence int64   // of writes; of the last wgmma.fence
	issued      uint64  // which products, as a hash
}

func (w *Warp) productsOf() *products {
	p := &w.products
	if p.in == nil {
		n := w.Code.Regs
		p.in, p.reads, p.written = make([]int64, n), make([]bool, n), make([]int64, n)
	}
	return p
}

// reset forgets the products of the block before.
func (p *products) reset() {
	if p.group > 0 || p.time > 0 || p.issued > 0 {
		clear(p.in)
		clear(p.reads)
		clear(p.written)
	}
	p.group, p.done, p.time, p.fence, p.issued = 0, 0, 0, 0, 0
}

// watchesProducts is whether registers are followed.
func (w *Warp) watchesProducts() bool { return w.CTA.Launch.Checks&check.Racecheck != 0 }

// BeginProduct checks the registers of a product. It reports whether the kernel goes on.
func (w *Warp) BeginProduct(u *check.Product) bool {
	c := w.CTA
	if int(w.Id)/4*4+4 > len(c.warps) {
		c.Note(w, u.Site, w.Mask, check.Synccheck, "wgmma by warps of which there are not four")
	}
	w.products.issued = w.products.issued*0x9e3779b97f4a7c15 + uint64(u.Site.Id) + 1
	if !w.watchesProducts() {
		return c.Fault == nil
	}
	p := w.productsOf()
	for _, r := range u.D {
		w.checkProduct(u, r, p.in[r] > p.done && p.reads[r])
		p.in[r], p.reads[r] = p.group+1, false
	}
	for _, r := range u.A {
		w.checkProduct(u, r, p.in[r] > p.done && !p.reads[r])
		p.in[r], p.reads[r] = p.group+1, true
	}
	return c.Fault == nil
}

// checkProduct checks one of the registers; taken says that a product under way has it for something else.
func (w *Warp) checkProduct(u *check.Product, r int, taken bool) {
	p := &w.products
	switch {
	case taken:
		w.CTA.Note(w, u.Site, w.Mask, check.Racecheck, "a register of wgmma that another, which nobody has waited for, still uses otherwise")
	case p.written[r] > p.fence:
		w.CTA.Note(w, u.Site, w.Mask, check.Racecheck, "a register of wgmma was written without a wgmma.fence in between")
	}
}

// FenceRegisters is wgmma.fence.
func (w *Warp) FenceRegisters() { w.products.fence = w.products.time }

// CommitProducts ends a group.
func (w *Warp) CommitProducts() { w.products.group++ }

// WaitProducts waits for all groups but the newest keep.
func (w *Warp) WaitProducts(keep int64) {
	p := &w.products
	p.done = max(p.done, p.group-keep)
	w.productsOver()
}

// TouchRegisters looks whether products under way have registers that an instruction reads or writes.
func (w *Warp) TouchRegisters(s *check.Site, uses, defs []int) {
	if !w.watchesProducts() {
		return
	}
	p := w.productsOf()
	for _, r := range uses {
		if p.in[r] > p.done && !p.reads[r] {
			w.CTA.Note(w, s, w.Mask, check.Racecheck, "read of a register that a wgmma under way writes: wgmma.wait_group comes first")
			break
		}
	}
	p.time++
	for _, r := range defs {
		if p.in[r] > p.done {
			w.CTA.Note(w, s, w.Mask, check.Racecheck, "write of a register that a wgmma under way uses: wgmma.wait_group comes first")
		}
		p.written[r], p.in[r] = p.time, 0
	}
}

// sameProducts checks, at the end of a block, that the warps of each group of four have made the same products.
func (c *CTA) sameProducts() {
	for i := 0; i+4 <= len(c.warps); i += 4 {
		for _, w := range c.warps[i+1 : i+4] {
			if w.products.issued != c.warps[i].products.issued && c.Launch.Checks&check.Synccheck != 0 {
				c.Note(w, w.firstProduct(), 1, check.Synccheck, "the four warps of a group have not executed the same wgmma in the same order")
				break
			}
		}
	}
}

// firstProduct is a wgmma of the kernel.
func (w *Warp) firstProduct() *check.Site {
	for _, s := range w.Code.Sites {
		if s.Inst.Op == "wgmma" && s.Inst.Has("mma_async") {
			return s
		}
	}
	return w.Code.Sites[0]
}

// ReadProduct checks the rows of 16 bytes of shared memory that a product reads, until its group is waited for.
func (w *Warp) ReadProduct(u *check.Product, a *check.Access, rows []uint32) {}

// productsOver tells who comes behind the wait that the products before it read no more.
func (w *Warp) productsOver() {}

// LayoutKey is what the addresses of a matrix of a product depend on: the instruction, the part of the matrix, and its descriptor.
type LayoutKey struct{ Site, Part, Start, Leading, Stride, Units uint32 }

// maxLayouts bounds what a worker remembers.
const maxLayouts = 1 << 12

// Layouts are the addresses of rows that the worker remembers.
func (wk *Worker) Layouts() map[LayoutKey][]simt.Vec32 {
	if wk.layouts == nil || len(wk.layouts) > maxLayouts {
		wk.layouts = map[LayoutKey][]simt.Vec32{}
	}
	return wk.layouts
}
