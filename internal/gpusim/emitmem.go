package gpusim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// access is how an instruction touches memory.
type access struct {
	site   *site
	space  ptx.Space
	size   int // bytes of one lane
	write  bool
	atomic bool
	strong bool // volatile, relaxed, acquire, release
	// Of strong ones: what they order on their own, and whether the value of a load is waited for, see polled.
	acquire, release, polled bool
	plain                    bool   // a store, whose bytes are in w.data
	nc                       bool   // a load by way of the cache that is not coherent
	id                       int    // in code.accesses, for global memory
	used                     uint32 // by the pragma used_bytes_mask: bytes that matter; 0 for all
	region                   int    // of the assembly; 0 without
}

const memMods = "global shared shared::cta local const param param::entry param::func nc volatile weak relaxed acquire release mmio " +
	"cta gpu sys cluster ca cg cs lu cv wb wt v2 v4 L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last " +
	"L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_first L2::evict_last L2::evict_normal noftz"

// address compiles a memory operand: it fills w.addr.
func (e *emitter) address(o ptx.Operand, space *ptx.Space) op {
	a, ok := o.(*ptx.Addr)
	if !ok || len(a.Rest) > 0 {
		e.fail("wants an address in brackets")
		return nil
	}
	off := uint64(a.Off)
	e.paramAt = -1
	var s slot
	switch b := a.Base.(type) {
	case *ptx.Reg:
		t := ptx.U64
		if bankOf(e.f.regs[e.in.fr.reg+b.ID].Type) == bank32 {
			t = ptx.U32
		}
		s = e.src(b, t)
		if *space == ptx.Param && (e.in.fr.end >= 0 || !e.f.fn.Entry) && !e.in.Has("param::entry") {
			*space = ptx.Local // where a parameter of a function is whose address was taken
		}
	case *ptx.Imm:
		s = e.constant(uint64(b.Int()), ptx.U64)
	case *ptx.Sym:
		off += e.symbol(b, space)
		if *space == ptx.Param {
			e.paramAt = int(off)
		}
		s = e.constant(off, ptx.U64)
		off = 0
	default:
		e.fail("an address of this kind")
		return nil
	}
	e.addr, e.addrOff = s, off
	return addressing(s, off)
}

// addressing fills w.addr with a slot's values plus an offset; those of 32 bits wrap around.
func addressing(s slot, off uint64) op {
	if s.bank == bank32 {
		return func(w *warp) {
			for i, v := range &w.r[s.i] {
				w.addr[i] = uint64(v + uint32(off))
			}
		}
	}
	return func(w *warp) {
		for i, v := range &w.q[s.i] {
			w.addr[i] = v + off
		}
	}
}

// symbol is the address of a variable in the space of the access. Parameters of inlined functions live in local memory,
// and a generic access wants the address in the window.
func (e *emitter) symbol(b *ptx.Sym, space *ptx.Space) uint64 {
	p, ok := place{}, false
	if b.Var != nil {
		p, ok = e.f.find(b.Var, e.in.fr)
	}
	if !ok {
		e.fail("the address of %s", b.Name)
		return 0
	}
	at := uint64(e.offset(p) + b.Off)
	switch {
	case *space == ptx.Param:
		*space = p.space
	case *space == ptx.Generic:
		at += window(p.space)
	case *space != p.space:
		e.fail("%s is in .%s", b.Name, p.space)
	}
	return at
}

// memory reads what ld, st, atom and red have in common.
func (e *emitter) memory(o ptx.Operand, size int, write bool) (*access, op) {
	a := &access{site: e.site, space: e.in.Space(), size: size, write: write, used: e.in.used}
	a.strong, a.nc = talking(e.in.Inst), e.in.Has("nc") || e.in.Op == "ldu"
	a.acquire, a.release, a.polled = e.in.Has("acquire") || e.in.Has("acq_rel"), e.in.Has("release") || e.in.Has("acq_rel"), e.polled[e.in]
	addr := e.address(o, &a.space)
	if a.space == ptx.SharedCluster {
		a.space = ptx.Shared
	}
	e.code.signals = e.code.signals || a.strong && (a.space == ptx.Shared || a.space == ptx.Generic)
	e.code.watch(a)
	e.access = a
	return a, addr
}

// list is an operand that may be a vector of n.
func (e *emitter) list(o ptx.Operand, n int) []ptx.Operand {
	v, ok := o.(*ptx.Vec)
	switch {
	case !ok && n == 1:
		return []ptx.Operand{o}
	case ok && len(v.Elems) == n:
		return v.Elems
	}
	e.fail("wants %d values", n)
	return nil
}

// memType checks the type of a load or store.
func (e *emitter) memType() ptx.Type {
	t := e.in.Type()
	if t == ptx.NoType || t == ptx.Pred || t.Bits() < 8 || t.Bits() > 64 || len(e.in.Types()) != 1 || t.Size()*e.in.VecLen() > 16 {
		e.fail("an access of this type")
		return ptx.B32
	}
	return t
}

func (e *emitter) load() op {
	e.check(memMods)
	e.arity(2, 3)
	if e.err != nil {
		return nil
	}
	t, n := e.memType(), e.in.VecLen()
	a, addr := e.memory(e.in.Args[1], t.Size()*n, false)
	var d []slot
	for _, o := range e.list(e.in.Args[0], n) {
		d = append(d, e.dst(o, t))
	}
	if e.err != nil {
		return nil
	}
	if a.space == ptx.Param && e.paramAt >= 0 {
		return e.loadParam(d, t)
	}
	if t.Kind() == ptx.KindInt && slices.ContainsFunc(d, func(x slot) bool { return int(x.bits) > t.Bits() }) {
		return loadOp(a, addr, d, t.Size(), extend(t))
	}
	e.encodeLoad(a, t, d)
	if a.size == vectorSize && n == 4 {
		e.reviewer(a, warpSize)
	} else {
		e.watcher(a, addr, full, nil)
	}
	return loadOp(a, addr, d, t.Size(), nil)
}

// loadOp loads a value of so many bytes for each slot; ext extends its sign, nil where it has none.
func loadOp(a *access, addr op, d []slot, size int, ext func(uint64) uint64) op {
	return func(w *warp) {
		addr(w)
		w.countAccess(a)
		if mem := w.area(a); mem != nil && size == 4 && ext == nil {
			if w.row && len(d) == 1 && d[0].bank == bank32 {
				loadRow(&w.r[d[0].i], mem[w.off[0]:])
				return
			}
			for j, x := range d {
				w.loadWords(x, mem[4*j:])
			}
			return
		}
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			p := w.ref(a, i, w.addr[i])
			if p == nil {
				return
			}
			for j, x := range d {
				v := decode(p[j*size:], size)
				if ext != nil {
					v = ext(v)
				}
				w.set(x, i, v)
			}
		}
	}
}

// loadParam copies a parameter of the kernel, which is the same in all lanes of the launch.
func (e *emitter) loadParam(d []slot, t ptx.Type) op {
	at := e.paramAt
	if at < 0 || at+len(d)*t.Size() > int(e.f.params) || at%t.Size() != 0 {
		e.fail("reads past the end of the parameters, or across their alignment")
		return nil
	}
	var ops []op
	for j, x := range d {
		s := e.paramSlot(at+j*t.Size(), t, x.bank, x.bits)
		if len(d) == 1 {
			return e.copy(x, s)
		}
		ops = append(ops, copyOp(x, s))
	}
	return func(w *warp) {
		for _, f := range ops {
			f(w)
		}
	}
}

// paramSlot holds the bytes of the parameters from an offset on, as a register of a bank and a width has them.
func (e *emitter) paramSlot(from int, t ptx.Type, b bankID, width uint8) slot {
	key := fmt.Sprint("param", from, t, b, width)
	s, ok := e.specials[key]
	if !ok {
		ext := extend(t)
		s = e.fresh(b)
		s.bits = width
		e.specials[key] = s
		e.code.launched = append(e.code.launched, special{s, func(w *warp, _ uint32) uint64 {
			return ext(decode(w.cta.grid.params[from:], t.Size()))
		}, true})
	}
	return s
}

func (e *emitter) store() op {
	e.check(memMods)
	e.arity(2, 3)
	if e.err != nil {
		return nil
	}
	t, n := e.memType(), e.in.VecLen()
	a, addr := e.memory(e.in.Args[0], t.Size()*n, true)
	var s []slot
	for _, o := range e.list(e.in.Args[1], n) {
		s = append(s, e.src(o, t))
	}
	if a.space == ptx.Param || a.space == ptx.ConstSpace {
		e.fail("a store to memory that cannot be written")
	}
	if e.err != nil {
		return nil
	}
	size := t.Size()
	a.plain = true
	fill := func(w *warp, lane int) {
		for j, x := range s {
			encode(w.data[j*size:], size, w.get(x, lane))
		}
	}
	e.encodeStore(a, t, s)
	e.watcher(a, addr, full, fill)
	return storeOp(a, addr, s, size, fill)
}

// storeOp stores the values of slots, of so many bytes each.
func storeOp(a *access, addr op, s []slot, size int, fill func(w *warp, lane int)) op {
	return func(w *warp) {
		addr(w)
		w.countAccess(a)
		if mem := w.area(a); mem != nil && size == 4 {
			if w.row && len(s) == 1 && s[0].bank == bank32 {
				storeRow(mem[w.off[0]:], &w.r[s[0].i])
				return
			}
			for j, x := range s {
				w.storeWords(x, mem[4*j:])
			}
			return
		}
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			fill(w, i)
			p := w.ref(a, i, w.addr[i])
			if p == nil {
				return
			}
			copy(p, w.data[:])
		}
	}
}

func decode(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

func encode(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}

// ref is the bytes that a lane accesses, after all checks; nil when the kernel was stopped.
func (w *warp) ref(a *access, lane int, addr uint64) []byte {
	space := a.space
	if space == ptx.Generic {
		space = spaceAt(addr)
		addr -= window(space)
	}
	if addr&uint64(a.size-1) != 0 {
		w.badAccess(a, lane, space, addr, MisalignedAddress, "misaligned "+a.verb(), "")
		return nil
	}
	switch space {
	case ptx.Shared:
		return w.refShared(a, lane, addr)
	case ptx.Local:
		return w.refBytes(a, lane, space, addr, w.local[lane*w.code.kernel.Local:][:w.code.kernel.Local])
	case ptx.Param:
		return w.refBytes(a, lane, space, addr, w.cta.grid.params)
	}
	return w.refGlobal(a, lane, addr)
}

func (a *access) verb() string {
	switch {
	case a.atomic:
		return "atomic"
	case a.write:
		return "write"
	}
	return "read"
}

func (w *warp) badAccess(a *access, lane int, space ptx.Space, addr uint64, code Code, msg, alloc string) {
	c := w.cta
	if c.fault != nil {
		return
	}
	c.stop(w, a.site, lane, code, Memcheck, "%s", msg)
	f := &c.fault.Finding
	f.Space, f.Addr, f.Size, f.Alloc = space.String(), addr, a.size, alloc
	if space == ptx.Global && alloc == "" {
		f.Alloc = c.grid.dev.nearest(addr)
	}
}

// refBytes is an access to local memory or parameters.
func (w *warp) refBytes(a *access, lane int, space ptx.Space, addr uint64, mem []byte) []byte {
	if addr > uint64(len(mem)) || uint64(len(mem))-addr < uint64(a.size) || space == ptx.Param && a.write {
		w.badAccess(a, lane, space, addr, LaunchFailed, "out-of-bounds "+a.verb(), "")
		return nil
	}
	return mem[addr:][:a.size]
}

func (w *warp) refGlobal(a *access, lane int, addr uint64) []byte {
	wk := w.cta.worker
	al := wk.last
	if al == nil || addr < al.lo || addr >= al.hi {
		if al = w.cta.grid.dev.find(addr); al != nil {
			wk.last = al
		}
	}
	switch {
	case al == nil || al.hi-addr < uint64(a.size):
		w.badAccess(a, lane, ptx.Global, addr, IllegalAddress, "out-of-bounds "+a.verb(), "")
		return nil
	case al.data == nil:
		w.badAccess(a, lane, ptx.Global, addr, IllegalAddress, a.verb()+" after free", al.String())
		return nil
	}
	if a.write && al.constant {
		w.badAccess(a, lane, ptx.ConstSpace, addr, IllegalAddress, a.verb()+" to constant memory", al.String())
		return nil
	}
	if w.seen {
		return al.data[addr-al.lo:][:a.size]
	}
	if al.tracked() {
		w.checkInit(a, lane, addr, al)
	}
	if a.watched(w.cta.grid) {
		w.cta.grid.stale.touch(w, a, lane, al, addr)
	}
	if a.write && len(w.cta.sources) > 0 {
		w.checkSource(a, lane, al, addr)
	}
	return al.data[addr-al.lo:][:a.size]
}

// checkInit follows which bytes of an allocation have been written.
func (w *warp) checkInit(a *access, lane int, addr uint64, al *allocation) {
	written := al.init[addr-al.lo:][:a.size]
	if !a.write && allSet(written) {
		return
	}
	if !a.write || a.atomic {
		if i := unwritten(written, a.used); i >= 0 {
			w.cta.noteAt(w, a.site, lane, Initcheck, "read of memory that was never written", "global", addr, a.size, al.String())
		}
	}
	if a.write {
		for i := range written {
			written[i] = 1
		}
	}
}

// unwritten is the first byte that matters and was not written, or -1.
func unwritten(written []byte, used uint32) int {
	for i, b := range written {
		if b == 0 && (used == 0 || used>>i&1 == 1) {
			return i
		}
	}
	return -1
}

func (w *warp) refShared(a *access, lane int, addr uint64) []byte {
	c := w.cta
	if addr > uint64(len(c.shared)) || uint64(len(c.shared))-addr < uint64(a.size) {
		w.badAccess(a, lane, ptx.Shared, addr, LaunchFailed, "out-of-bounds "+a.verb(), sharedSize(c))
		return nil
	}
	if c.race != nil && !w.seen {
		c.race.check(w, a, lane, int(addr))
	}
	if c.written != nil && !w.seen {
		w.checkWritten(a, lane, int(addr))
	}
	return c.shared[addr:][:a.size]
}
