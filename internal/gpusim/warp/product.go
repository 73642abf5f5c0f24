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
	flights     []groupFlight
	issued      uint64 // which products, as a hash
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
	p.group, p.done, p.time, p.fence, p.issued, p.flights = 0, 0, 0, 0, 0, nil
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

// CommitProducts ends a group. Warps of the four that wait for it may go on.
func (w *Warp) CommitProducts() {
	w.products.group++
	w.wakeFour()
}

// wakeFour lets those of the four go on that wait for products which now are all issued.
func (w *Warp) wakeFour() {
	for _, v := range w.four() {
		for i := range v.splits {
			if sp := &v.splits[i]; sp.state == atProducts && v.issued(v.Code.Blocks[sp.pc].Term.Keep) {
				v.waitProducts(v.Code.Blocks[sp.pc].Term.Keep)
				sp.state, sp.pc = ready, v.Code.Blocks[sp.pc].Next
			}
		}
	}
}

// four are the warps that the warp makes products with.
func (w *Warp) four() []*Warp {
	first := int(w.Id) / 4 * 4
	return w.CTA.warps[first:min(first+4, len(w.CTA.warps))]
}

// issued is whether all of the four have issued the groups that a wait is for: a product is one operation of them all.
func (w *Warp) issued(keep int64) bool {
	for _, v := range w.four() {
		if v.live != 0 && v.products.group < w.products.group-keep {
			return false
		}
	}
	return true
}

// waitForProducts brings split s to a wait for products.
func (w *Warp) waitForProducts(s int, b *Basic) (int, bool) {
	if !w.issued(b.Term.Keep) {
		w.splits[s].state = atProducts
		return 0, false
	}
	w.waitProducts(b.Term.Keep)
	return b.Next, true
}

// waitProducts waits for all groups but the newest keep. What one of the four has waited for is over for all.
func (w *Warp) waitProducts(keep int64) {
	p := &w.products
	p.done = max(p.done, p.group-keep)
	for _, v := range w.four() {
		for _, f := range v.products.flights {
			if f.group < p.done && w.CTA.Race != nil {
				w.CTA.Race.See(f.f, w.Id, w.live)
			}
		}
	}
	const keepFlights = 16 // that others of the four may still wait for
	if n := len(p.flights); n > keepFlights {
		p.flights = p.flights[n-keepFlights:]
	}
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
func (w *Warp) ReadProduct(u *check.Product, a *check.Access, rows []uint32) {
	r, p := w.CTA.Race, &w.products
	if n := len(p.flights); n == 0 || p.flights[n-1].group != p.group {
		p.flights = append(p.flights, groupFlight{p.group, r.NewFlight(u.Site, w.Id)})
	}
	f := p.flights[len(p.flights)-1].f
	lane := simt.Lowest(w.Mask)
	for _, at := range rows {
		if int(at)+16 > len(w.CTA.shared) {
			return // loading it stops the kernel
		}
		if !r.ReadRow(f, w.Id, a, lane, int(at)) {
			return
		}
	}
}

// groupFlight is what a group of products reads.
type groupFlight struct {
	group int64
	f     *check.Flight
}

// LayoutKey is what the addresses of a matrix of a product depend on: the instruction, the part of the matrix, and its descriptor.
type LayoutKey struct{ Site, Part, Start, Leading, Stride, Units uint32 }

// layouts are the addresses of rows that a worker remembers, each in a place that its key chooses.
type layouts [512]struct {
	key     LayoutKey
	offsets []simt.Vec32
}

// Layout is what find gives for a key, and gave before.
func (wk *Worker) Layout(key LayoutKey, find func() []simt.Vec32) []simt.Vec32 {
	if wk.layouts == nil {
		wk.layouts = new(layouts)
	}
	at := &wk.layouts[(key.Site*0x9e3779b1+key.Part*0x85ebca6b+key.Start*0xc2b2ae35)>>16%uint32(len(wk.layouts))]
	if at.offsets == nil || at.key != key {
		at.key, at.offsets = key, find()
	}
	return at.offsets
}
