package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// wgmma multiplies for four warps, of which each has 16 of the 64 rows: for a warp it is a row of mma.sync, whose B comes from
// shared memory, 8 columns each. What it reads there is 32 bytes of k for each row of A and each column of B, hence matrices as
// ldmatrix loads them.

// part is a piece of an instruction that has forms in Go and in assembly of its own.
type part struct {
	run    warp.Op
	vector []lanes.Inst
}

func (e *emitter) wgmma() warp.Op {
	s := e.site
	switch {
	case e.in.Has("fence"):
		e.check("fence sync aligned")
		return e.waitAll(func(w *warp.Warp) { w.FenceRegisters() })
	case e.in.Has("commit_group"):
		e.check("commit_group sync aligned")
		return e.waitAll(func(w *warp.Warp) { w.CommitProducts() })
	case e.in.Has("wait_group"):
		e.check("wait_group sync aligned")
		n, ok := e.arg(0).(*ptx.Imm)
		if !ok || n.Int() < 0 {
			e.fail("wants a number")
			return nil
		}
		e.term = &warp.Terminator{Kind: warp.TermProducts, P: -1, Site: s, Keep: n.Int()}
		return nil
	case e.in.Has("sp"), e.in.Has("sp::ordered_metadata"):
		e.fail("a sparse operand; wgmma.mma_async with its zeros written out does without")
		return nil
	case e.in.Has("b1"):
		e.fail("elements of one bit")
		return nil
	}
	m := e.product64()
	if e.err != nil {
		return nil
	}
	m.site = s
	e.parts = m.parts(e)
	return e.waitAll(func(w *warp.Warp) {
		for _, p := range m.list {
			if p.run(w); w.CTA.Fault != nil {
				return
			}
		}
	})
}

// wgmmaOp is a compiled wgmma.mma_async.
type wgmmaOp struct {
	site        *check.Site
	tile        mmaShape // of 16×8
	t           [2]ptx.Type
	acc         ptx.Type
	sat         bool
	n           int
	d           []warp.Slot
	a, b        operand64
	scale       int32 // the predicate of scale-d, -1 for a number
	scaleNeg    bool
	accumulates bool // where that is a number
	negative    bool
	read        *check.Access
	rows        warp.Slot // addresses of rows of A
	columns     []warp.Slot
	use         check.Product
	list        []part
}

// operand64 is A or B: registers, or a descriptor.
type operand64 struct {
	desc  warp.Slot
	regs  []warp.Slot
	major bool // the rows of A, or columns of B, are neighbours in memory instead of k
}

// product64 reads the operands of wgmma.mma_async.
func (e *emitter) product64() *wgmmaOp {
	m := &wgmmaOp{}
	shape := ""
	for _, x := range e.in.Mods {
		if strings.HasPrefix(x, "m64n") {
			shape = x
		}
	}
	e.check("mma_async sync aligned satfinite " + shape)
	var k int
	if _, err := fmt.Sscanf(shape, "m64n%dk%d", &m.n, &k); err != nil || len(e.in.Types()) != 3 {
		e.fail("wants a shape and three types")
		return m
	}
	ts := e.in.Types()
	s := mmaShapes[fmt.Sprintf("m16n8k%d.%s", k, ts[1])]
	if s == nil || !mmaTypes(s, []ptx.Type{ts[0], ts[1], ts[2], ts[0]}, e.in.Has("satfinite")) || m.n%8 != 0 || m.n < 8 || m.n > 256 {
		e.fail("not a form of sm_90a that is simulated")
		return m
	}
	m.tile, m.t, m.acc, m.sat = *s, [2]ptx.Type{ts[1], ts[2]}, ts[0], e.in.Has("satfinite")
	if m.acc == ptx.F16 {
		m.tile.c = c16
	}
	e.operands64(m)
	return m
}

func (e *emitter) operands64(m *wgmmaOp) {
	e.arity(4, 8)
	if e.err != nil {
		return
	}
	for _, o := range e.list(e.in.Args[0], m.tile.c.registers*m.n/8) {
		m.d = append(m.d, e.src(o, ptx.B32)) // read, but for scale-d of 0
		e.dst(o, ptx.B32)
	}
	inRegisters := false
	if _, inRegisters = e.in.Args[1].(*ptx.Vec); inRegisters {
		m.a.regs = e.fragment(1, &m.tile.a, ptx.B32)
	} else {
		m.a.desc = e.src(e.in.Args[1], ptx.B64)
	}
	m.b.desc = e.src(e.in.Args[2], ptx.B64)
	m.scale = -1
	if imm, ok := e.in.Args[3].(*ptx.Imm); ok {
		m.accumulates = imm.Bits != 0
	} else {
		m.scale, m.scaleNeg = e.pred(e.in.Args[3])
	}
	var imms []int64
	for _, o := range e.in.Args[4:] {
		imm, ok := o.(*ptx.Imm)
		if !ok {
			e.fail("wants numbers behind the predicate")
			return
		}
		imms = append(imms, imm.Int())
	}
	if len(imms) > 1 {
		m.negative = imms[0] != imms[1]
		imms = imms[2:]
	}
	if len(imms) > 0 {
		m.b.major = imms[len(imms)-1] != 0
		m.a.major = !inRegisters && imms[0] != 0
	}
	m.use.D = e.regIDs(e.in.Args[0])
	m.use.A = e.regIDs(e.in.Args[1])
}

// regIDs are the registers of a vector; none of anything else.
func (e *emitter) regIDs(o ptx.Operand) (ids []int) {
	v, ok := o.(*ptx.Vec)
	if !ok {
		return nil
	}
	for _, o := range v.Elems {
		if r, ok := o.(*ptx.Reg); ok {
			ids = append(ids, e.in.Frame.Reg+r.ID)
		}
	}
	return ids
}

// scratch is a register for what all wgmma of the kernel share between their parts.
func (e *emitter) scratch(name string, i int) warp.Slot {
	key := fmt.Sprint("wgmma ", name, i)
	s, ok := e.specials[key]
	if !ok {
		s = e.fresh(simt.Bank32)
		s.Bits = 32
		e.specials[key] = s
	}
	return s
}

// parts compiles the product: what finds the addresses, what loads A, and for each 16 columns what loads B and multiplies.
func (m *wgmmaOp) parts(e *emitter) []part {
	m.read = &check.Access{Site: e.site, Space: ptx.Shared, Size: 16}
	e.code.Watch(m.read)
	m.use.Site = e.site
	m.list = append(m.list, part{run: m.prepare})
	a := m.a.regs
	if a == nil || m.negative {
		a = nil
		for i := range m.tile.a.registers {
			a = append(a, e.scratch("a", i))
		}
	}
	if m.a.regs == nil {
		m.rows = e.scratch("rows", 0)
		m.list = append(m.list, e.loadMatrices(m.read, m.rows, a, m.a.major))
	}
	if m.negative {
		m.list = append(m.list, part{run: m.negate(a)})
	}
	e.tag++
	e.tileOf = nil
	for j := 0; j < m.n/8; j += 2 {
		tiles := min(2, m.n/8-j)
		at := e.scratch("columns", j)
		var b []warp.Slot
		for i := range 2 * tiles {
			b = append(b, e.scratch("b", i))
		}
		m.columns = append(m.columns, at)
		m.list = append(m.list, e.loadMatrices(m.read, at, b, m.b.major))
		for i := range tiles {
			c := m.tile.c.registers
			m.list = append(m.list, e.multiplyTile(m, a, b[2*i:2*i+2], m.d[(j+i)*c:][:c]))
		}
	}
	return m.list
}

// loadMatrices loads a matrix of 8 rows of 16 bytes into each of some registers, from the addresses in the lanes of another.
func (e *emitter) loadMatrices(a *check.Access, at warp.Slot, d []warp.Slot, trans bool) part {
	p := part{run: func(w *warp.Warp) {
		var rows [simt.WarpSize][]byte
		w.Seen = true
		for i := range 8 * len(d) {
			if rows[i] = w.Ref(a, i, uint64(w.R32[at.I][i])); rows[i] == nil {
				break
			}
		}
		if w.Seen = false; w.CTA.Fault != nil {
			return
		}
		for j, s := range d {
			for l := range simt.WarpSize {
				w.R32[s.I][l] = uint32(matrixPair(rows[8*j:8*j+8], l, trans))
			}
		}
	}}
	ops := matrixOps[len(d)]
	if e.engine == nil || ops == nil || !e.engine.Has[ops[2*simt.Bit(trans)]] {
		return p
	}
	x := lanes.Inst{uint32(ops[2*simt.Bit(trans)])}
	e.addr, e.addrOff = at, 0
	if !e.locate(a) {
		return p
	}
	e.encodeAddress(&x, a)
	for i, s := range d {
		x[[...]int{lanes.AtD, lanes.AtB, lanes.AtC, lanes.AtX}[i]] = s.Offset()
	}
	p.vector = []lanes.Inst{x}
	return p
}

// multiplyTile multiplies for 8 columns.
func (e *emitter) multiplyTile(m *wgmmaOp, a, b, d []warp.Slot) part {
	tile := &mmaOp{&m.tile, valueOf(m.t[0]), valueOf(m.t[1]), valueOf(m.acc), m.acc, m.sat, a, b, d, d,
		[3][]uint16{m.tile.a.positions(), m.tile.b.positions(), m.tile.c.positions()}}
	p := part{run: tile.run}
	op, ok := mmaOps[fmt.Sprintf("m16n8k%d.%s", m.tile.k, m.t[0])]
	if !ok || m.acc != ptx.F32 || e.v.Modelled || e.engine == nil || !e.engine.Has[op] {
		return p
	}
	p.vector = encodedMMA(op, e.tag, d, a, b, d)
	return p
}

// negate changes the sign of A, which changes that of all products.
func (m *wgmmaOp) negate(to []warp.Slot) warp.Op {
	from := m.a.regs
	if from == nil {
		from = to
	}
	signs := map[int]uint32{8: 0x80808080, 16: 0x80008000, 32: 1 << 31}[m.t[0].Bits()]
	return func(w *warp.Warp) {
		for i, s := range from {
			for l, v := range &w.R32[s.I] {
				w.R32[to[i].I][l] = v ^ signs
			}
		}
	}
}

// prepare makes D zero where it is not added to, and finds the rows that the warp reads.
func (m *wgmmaOp) prepare(w *warp.Warp) {
	lane := simt.Lowest(w.Mask)
	adds := m.accumulates
	if m.scale >= 0 {
		p := w.Pred(m.scale, m.scaleNeg) & w.Mask
		if adds = p>>lane&1 == 1; p != 0 && p != w.Mask {
			w.CTA.Note(w, m.site, w.Mask, check.Synccheck, "lanes of one warp give wgmma different values of scale-d")
		}
	}
	if !adds {
		for _, s := range m.d {
			w.R32[s.I] = simt.Vec32{}
		}
	}
	if !w.BeginProduct(&m.use) {
		return
	}
	if m.a.regs == nil && !m.addresses(w, m.a.desc, lane, 1+w.Id%4, []warp.Slot{m.rows}) {
		return
	}
	if m.addresses(w, m.b.desc, lane, 0, m.columns) && w.CTA.Race != nil {
		w.ReadProduct(&m.use, m.read, m.reads(w))
	}
}

// reads are the addresses of 16 bytes that the warp reads.
func (m *wgmmaOp) reads(w *warp.Warp) (rows []uint32) {
	if m.a.regs == nil {
		rows = append(rows, w.R32[m.rows.I][:]...)
	}
	for j, s := range m.columns {
		rows = append(rows, w.R32[s.I][:16*min(2, m.n/8-2*j)]...)
	}
	return rows
}

// period is how far the swizzles look: matrices that begin so far apart lie alike.
const period = 1024

// addresses puts where the rows of a matrix are into lanes of registers: of B where part is 0, of A for warp part-1 of the four.
// They are found once for matrices that lie alike.
func (m *wgmmaOp) addresses(w *warp.Warp, desc warp.Slot, lane int, part uint32, to []warp.Slot) bool {
	d, ok := m.descriptor(w, desc, lane)
	if !ok {
		return false
	}
	base := d.start &^ (period - 1)
	d.start -= base
	key := warp.LayoutKey{Site: m.site.Id, Part: part, Start: d.start, Leading: d.leading, Stride: d.stride, Units: d.units}
	offsets := w.CTA.Worker.Layout(key, func() []simt.Vec32 { return m.layout(&d, part, len(to)) })
	for j, s := range to {
		simt.AddTo(&w.R32[s.I], &offsets[j], base)
	}
	return true
}

// layout finds them: of A matrices of rows 0 to 7 and 8 to 15 of the first units, then of the second; of B of 8 columns with the
// first units and the second, then of the next 8.
func (m *wgmmaOp) layout(d *descriptor, part uint32, n int) []simt.Vec32 {
	offsets := make([]simt.Vec32, n)
	for j := range offsets {
		for l := range offsets[j] {
			if part > 0 {
				offsets[j][l] = d.at(m.a.major, int(part-1)*2+l/8%2, l/16, l%8)
			} else {
				offsets[j][l] = d.at(m.b.major, 2*j+l/16, l/8%2, l%8)
			}
		}
	}
	return offsets
}

// descriptor is a matrix in shared memory as wgmma names it.
type descriptor struct {
	start, leading, stride uint32
	units                  uint32 // of 16 bytes, that rows within the swizzle have
	mask                   uint32 // of the bits that it exchanges
}

func (m *wgmmaOp) descriptor(w *warp.Warp, s warp.Slot, lane int) (d descriptor, ok bool) {
	bits := w.R64[s.I][lane]
	for l := w.Mask; l != 0; l &= l - 1 {
		if w.R64[s.I][simt.Lowest(l)] != bits {
			w.CTA.Note(w, m.site, l, check.Synccheck, "lanes of one warp give wgmma different descriptors")
			break
		}
	}
	d.start, d.leading, d.stride = uint32(bits&0x3fff)<<4, uint32(bits>>16&0x3fff)<<4, uint32(bits>>32&0x3fff)<<4
	d.units = [...]uint32{1, 8, 4, 2}[bits>>62]
	d.mask = (d.units - 1) << 4
	if base := bits >> 49 & 7; base != 0 {
		w.CTA.Stop(w, m.site, lane, memory.IllegalInstruction, check.Memcheck, "a descriptor with a base offset of %d: the simulator wants matrices that begin where their swizzle does", base)
		return d, false
	}
	return d, true
}

// at is where 16 bytes are: of k by rows, unit u of row i of the 8 rows of block j; of rows by k, the rows of block j at k = 8u+i.
func (d *descriptor) at(major bool, j, u, i int) uint32 {
	block, unit, row := uint32(j), uint32(u), uint32(i)
	a := d.start + row*16*d.units
	switch {
	case !major && d.units == 1:
		a += block*d.stride + unit*d.leading
	case !major:
		a += block*d.stride + unit*16
	case d.units == 1:
		a += block*d.stride + unit*d.leading
	default:
		a += block/d.units*d.leading + block%d.units*16 + unit*d.stride
	}
	return a ^ a>>3&d.mask
}

// flyingRegisters are those that any wgmma of the kernel reads or writes.
func (e *emitter) flyingRegisters() map[int]bool {
	regs := map[int]bool{}
	for i := range e.f.Code {
		if in := &e.f.Code[i]; in.Op == "wgmma" && len(in.Args) > 3 {
			e.in = in
			for _, o := range in.Args[:2] {
				for _, r := range e.regIDs(o) {
					regs[r] = true
				}
			}
		}
	}
	return regs
}

// watchRegisters makes the instruction under way look whether a wgmma under way has what it uses.
func (e *emitter) watchRegisters(run warp.Op) warp.Op {
	if len(e.flying) == 0 || !e.v.Watched || e.in.Op == "wgmma" {
		return run
	}
	only := func(list []int) []int {
		return slices.DeleteFunc(slices.Clone(list), func(r int) bool { return !e.flying[r] })
	}
	uses, defs, s := only(e.use.Uses), only(e.use.Defs), e.site
	if len(uses)+len(defs) == 0 {
		return run
	}
	e.vector, e.watch, e.review = e.vector[:0], nil, nil
	return func(w *warp.Warp) {
		w.TouchRegisters(s, uses, defs)
		run(w)
	}
}
