package compile

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// byteFlow is where the poison of an instruction's result comes from, byte by byte: by byte of the result and by source
// register, the bytes that it depends on, a bit each. Instructions that have none poison all of the result.
type byteFlow struct {
	dst   int
	size  int // of the destination
	guard int // register of the predicate, -1 without
	src   []int
	needs []uint8 // of a source, one for each byte of the destination, then those of the next
}

// byteFlow is nil for an instruction whose bytes are not followed.
func (e *emitter) byteFlow() *byteFlow {
	depends, ok := e.dependence()
	d, isReg := ptx.Operand(nil), false
	if ok && len(e.in.Args) > 0 {
		d = e.in.Args[0]
		_, isReg = d.(*ptx.Reg)
	}
	if !ok || !isReg {
		return nil
	}
	id := e.in.Frame.Reg + d.(*ptx.Reg).ID
	b := e.flows.New()
	*b = byteFlow{dst: id, size: e.f.Regs[id].Type.Size(), guard: -1}
	if e.in.Guard != nil {
		b.guard = e.in.GuardReg()
	}
	src, needs := make([]int, 0, 4), make([]uint8, 0, 4*8)
	for k, o := range e.in.Args[1:] {
		r, ok := o.(*ptx.Reg)
		if !ok {
			continue
		}
		from := e.in.Frame.Reg + r.ID
		src = append(src, from)
		for i := range b.size {
			needs = append(needs, depends(i, k)&uint8(1<<e.f.Regs[from].Type.Size()-1))
		}
	}
	b.src, b.needs = e.sources.Clone(src), e.needs.Clone(needs)
	return b
}

// follow gives the bytes of the result the poison of what they depend on, in the active lanes. It reads all before it
// writes any: the result may be a source.
func (b *byteFlow) follow(w *warp.Warp) {
	var bad [8]uint32
	all, nothing := uint32(0), simt.Full // nothing: what the result has of its sources is undefined, the rest are constants
	for i := range b.size {
		if b.guard >= 0 {
			bad[i] = w.Undef[b.guard]
		}
		constant := true
		for k, r := range b.src {
			for bytes := b.needs[k*b.size+i]; bytes != 0; bytes &= bytes - 1 {
				bad[i] |= w.UndefIn(r, simt.Lowest(uint32(bytes)), 1)
				constant = false
			}
		}
		if all |= bad[i]; !constant {
			nothing &= bad[i]
		}
	}
	for i := range b.size {
		w.SetBytes(b.dst, i, 1, bad[i]|all&nothing)
	}
	w.Undef[b.dst] = w.Undef[b.dst]&^w.Mask | all&w.Mask
}

// dependence says which bytes of source k byte i of the result depends on.
func (e *emitter) dependence() (depends func(i, k int) uint8, ok bool) {
	in := e.in.Inst
	t := in.Type()
	switch size := t.Size(); {
	case in.Has("cc") || in.Has("sat"):
	case in.Op == "cvt":
		return convertedBytes(in)
	case packedResult(in):
		return func(i, _ int) uint8 { return 3 << (i / 2 * 2) & (1<<4 - 1) }, true
	case in.Op == "mov" && t != ptx.Pred && e.plainMove():
		return func(i, _ int) uint8 { return 1 << i }, true
	case (in.Op == "add" || in.Op == "sub") && isInteger(t) && !counts(in): // carries go up
		return func(i, _ int) uint8 { return uint8(1<<min(i+1, size) - 1) }, true
	case in.Op == "prmt" && len(in.Mods) == 1:
		return permutedBytes(in)
	case in.Op == "shl" || in.Op == "shr":
		return shiftedBytes(in)
	case t.Kind() == ptx.KindBits:
		return bitwiseBytes(in)
	}
	return nil, false
}

// counts is whether an addition is of a small constant: that is arithmetic on one number, not on the parts of a register.
func counts(in *ptx.Inst) bool {
	for _, o := range in.Args[1:] {
		if imm, ok := o.(*ptx.Imm); ok && (imm.Bits < 1<<16 || -imm.Bits < 1<<16) {
			return true
		}
	}
	return false
}

// plainMove is whether a mov has no vector.
func (e *emitter) plainMove() bool {
	v, _, _ := packs(e.in.Inst)
	return v == nil
}

// packedResult is whether an instruction computes two halves, each from those of its operands.
func packedResult(in *ptx.Inst) bool {
	ts := in.Types()
	for _, t := range ts {
		if !arith.Packed(t) && !(in.Op == "set" && t.Bits() == 32) {
			return false
		}
	}
	return len(ts) > 0 && arith.Packed(ts[len(ts)-1]) && in.Op != "setp" && in.Op != "atom" && in.Op != "red" && in.Op != "mma"
}

// convertedBytes is for conversions between integers, and of two f32 to a pair of halves.
func convertedBytes(in *ptx.Inst) (func(i, k int) uint8, bool) {
	ts := in.Types()
	switch {
	case len(ts) == 2 && arith.Packed(ts[0]) && ts[1] == ptx.F32 && len(in.Args) == 3:
		return func(i, k int) uint8 {
			if i < 4 && i/2 != k { // the first source is the upper half
				return 0xf
			}
			return 0
		}, true
	case len(ts) != 2 || !isInteger(ts[0]) || !isInteger(ts[1]):
		return nil, false
	}
	from := ts[1]
	return func(i, _ int) uint8 {
		switch {
		case i < from.Size():
			return 1 << i
		case from.Kind() == ptx.KindInt:
			return 1 << (from.Size() - 1)
		}
		return 0
	}, true
}

func isInteger(t ptx.Type) bool { return t.Kind() == ptx.KindInt || t.Kind() == ptx.KindUint }

func permutedBytes(in *ptx.Inst) (func(i, k int) uint8, bool) {
	sel, ok := in.Args[len(in.Args)-1].(*ptx.Imm)
	if !ok || len(in.Args) != 4 {
		return nil, false
	}
	return func(i, k int) uint8 {
		if from := int(sel.Bits >> (4 * i) & 7); i < 4 && from/4 == k {
			return 1 << (from % 4)
		}
		return 0
	}, true
}

func shiftedBytes(in *ptx.Inst) (func(i, k int) uint8, bool) {
	by, ok := in.Args[len(in.Args)-1].(*ptx.Imm)
	size := in.Type().Size()
	if !ok || by.Bits >= uint64(8*size) {
		return nil, false
	}
	n := int(by.Bits)
	if in.Op == "shl" {
		n = -n
	}
	return func(i, k int) uint8 {
		var bytes uint8
		for bit := 8*i + n; bit < 8*i+n+8; bit++ {
			switch {
			case bit >= 0 && bit < 8*size:
				bytes |= 1 << (bit / 8)
			case bit >= 8*size && in.Type().Kind() == ptx.KindInt:
				bytes |= 1 << (size - 1)
			}
		}
		return bytes
	}, true
}

// bitwiseBytes is for logic: a byte of the result depends on that byte of a source, but not where a constant decides it.
func bitwiseBytes(in *ptx.Inst) (func(i, k int) uint8, bool) {
	n := map[string]int{"and": 2, "or": 2, "xor": 2, "not": 1, "lop3": 3}[in.Op]
	if n == 0 || len(in.Args) < 1+n || in.Op == "lop3" && len(in.Args) != 5 {
		return nil, false
	}
	var table uint64
	if in.Op == "lop3" {
		imm, ok := in.Args[4].(*ptx.Imm)
		if !ok {
			return nil, false
		}
		table = imm.Bits
	}
	f := func(v [3]uint64) uint64 {
		switch in.Op {
		case "and":
			return v[0] & v[1]
		case "or":
			return v[0] | v[1]
		case "xor":
			return v[0] ^ v[1]
		case "not":
			return ^v[0]
		}
		return arith.Lop3(v[0], v[1], v[2], table)
	}
	return func(i, k int) uint8 {
		if k >= n {
			return 0
		}
		var differs uint64
		for others := range 1 << n { // all bits of the others that are no constants 0, or 1
			var v [3]uint64
			for j := range n {
				v[j] = -uint64(others >> j & 1)
				if imm, ok := in.Args[1+j].(*ptx.Imm); ok {
					v[j] = imm.Bits
				}
			}
			v[k] = 0
			zero := f(v)
			v[k] = math.MaxUint64
			differs |= zero ^ f(v)
		}
		return uint8(simt.Bit(differs>>(8*i)&0xff != 0) << i)
	}, true
}
