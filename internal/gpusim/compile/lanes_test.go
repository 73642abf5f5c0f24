package compile

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// banksOfRegisters are registers for the assembly to work on.
type banksOfRegisters struct {
	r []simt.Vec32
	q []simt.Vec64
	p []uint32
}

func randomRegisters(rnd *rand.Rand) *banksOfRegisters {
	b := &banksOfRegisters{simt.Aligned[simt.Vec32](4), simt.Aligned[simt.Vec64](4), make([]uint32, 4)}
	for i := range b.r {
		b.r[i], b.q[i], b.p[i] = oracle.Words(rnd), oracle.Longs(rnd), rnd.Uint32()
	}
	b.r[1][3], b.q[1][3] = b.r[2][3], b.q[2][3]
	for i := range 8 {
		b.r[2][8+i] = uint32(rnd.IntN(70)) // counts of shifts
	}
	return b
}

func (b *banksOfRegisters) clone() *banksOfRegisters {
	c := &banksOfRegisters{simt.Aligned[simt.Vec32](4), simt.Aligned[simt.Vec64](4), slices.Clone(b.p)}
	copy(c.r, b.r)
	copy(c.q, b.q)
	return c
}

func (b *banksOfRegisters) run(t *testing.T, eng *lanes.Engine, x lanes.Inst) {
	t.Helper()
	if !eng.Has[x[0]] {
		return
	}
	prog := []lanes.Inst{x, {uint32(lanes.Leave)}}
	f := &lanes.Frame{R: uintptr(unsafe.Pointer(&b.r[0])), Q: uintptr(unsafe.Pointer(&b.q[0])), P: uintptr(unsafe.Pointer(&b.p[0]))}
	eng.Run(f, &prog[0])
	if f.Pc != uintptr(unsafe.Pointer(&prog[1])) {
		t.Fatalf("instruction %v was left to Go", x)
	}
}

func (b *banksOfRegisters) get(s warp.Slot, lane int) uint64 {
	if s.Bank == simt.Bank64 {
		return b.q[s.I][lane]
	}
	return uint64(b.r[s.I][lane])
}

// onEngines runs f with the assembly of each level that this machine has.
func onEngines(t *testing.T, f func(t *testing.T, eng *lanes.Engine, rnd *rand.Rand)) {
	for _, l := range cpufeat.Levels() {
		if eng := lanes.EngineOf(l); eng != nil {
			t.Run(l.String(), func(t *testing.T) { f(t, eng, testutil.Rand(t)) })
		}
	}
}

func wholeSlot(t ptx.Type, i int32) warp.Slot {
	return warp.Slot{Bank: simt.BankOf(t), I: i, Bits: uint8(max(t.Bits(), 32))}
}

// TestVectorForms compares the handlers of arithmetic with the lane functions of their forms; the destination is a
// register of its own, or the first operand's.
func TestVectorForms(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *lanes.Engine, rnd *rand.Rand) {
		for name, op := range vectorNames {
			fm, err := arith.FormOf(oracle.Inst(name))
			if err != nil {
				t.Fatal(err)
			}
			for round := range 40 {
				before := randomRegisters(rnd)
				d := wholeSlot(fm.Dst, 3*int32(round&1))
				x := lanes.Inst{uint32(op), d.Offset()}
				var s [3]warp.Slot
				for i, st := range fm.Src {
					s[i] = wholeSlot(st, int32(i))
					x[lanes.AtA+i] = s[i].Offset()
				}
				after := before.clone()
				if eng.Has[op] {
					after.run(t, eng, x)
				} else {
					continue
				}
				for lane := range simt.WarpSize {
					a, b, c := before.get(s[0], lane), before.get(s[1], lane), before.get(s[2], lane)
					want := fm.F(a, b, c, 0)
					if name == "ex2.approx.f32" { // TestApproximations bounds the form in Go
						want = uint64(arith.Canon32(float32(arith.Exp2(float64(arith.FromBits(uint32(a)))))))
					}
					if d.Bank == simt.Bank32 {
						want &= full64 >> 32
					}
					if got := after.get(d, lane); got != want {
						t.Fatalf("%s of %x %x %x is %x, want %x", name, a, b, c, got, want)
					}
				}
			}
		}
	})
}

const full64 = ^uint64(0)

func TestVectorTests(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *lanes.Engine, rnd *rand.Rand) {
		for name, test := range vectorTests {
			cmp, typ, err := arith.Comparison(oracle.Inst(name))
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if !eng.Has[test.op] {
					continue
				}
				b := randomRegisters(rnd)
				e := &emitter{engine: eng, in: &flow.Inst{Inst: oracle.Inst(name)}}
				e.encodeTest(2, wholeSlot(typ, 1), wholeSlot(typ, 2))
				b.run(t, eng, e.vector[0])
				for lane := range simt.WarpSize {
					x, y := b.get(wholeSlot(typ, 1), lane), b.get(wholeSlot(typ, 2), lane)
					if (b.p[2]>>lane&1 == 1) != cmp(x, y) {
						t.Fatalf("%s of %x %x", name, x, y)
					}
				}
			}
		}
	})
}

func TestVectorMoves(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *lanes.Engine, rnd *rand.Rand) {
		for range 20 {
			for size, typ := range map[int]ptx.Type{32: ptx.B32, 64: ptx.B64} {
				b := randomRegisters(rnd)
				was := b.clone()
				e := &emitter{engine: eng, in: &flow.Inst{Inst: oracle.Inst("mov.b32")}}
				d, s, u := wholeSlot(typ, 0), wholeSlot(typ, 1), wholeSlot(typ, 2)
				e.copy(d, s)
				b.run(t, eng, e.vector[0])
				sel, not := lanes.Sel32, rnd.IntN(2) == 1
				if size == 64 {
					sel = lanes.Sel64
				}
				e.encode(sel, wholeSlot(typ, 3), s, u, warp.Slot{Bank: simt.BankPred, I: 1, Bits: 1})[lanes.AtImm] = mask(not)
				b.run(t, eng, e.vector[0])
				for lane := range simt.WarpSize {
					want := was.get(u, lane)
					if (was.p[1]>>lane&1 == 1) != not {
						want = was.get(s, lane)
					}
					if b.get(d, lane) != was.get(s, lane) || b.get(wholeSlot(typ, 3), lane) != want {
						t.Fatalf("a move or selection of %d bits", size)
					}
				}
			}
			b := randomRegisters(rnd)
			for name, f := range maskLogic {
				e := &emitter{engine: eng, in: &flow.Inst{Inst: oracle.Inst(name + ".pred")}}
				other := int32(2)
				if name == "not" {
					other = 1
				}
				e.encodeLogic(0, 1, other, true, other == 1)
				b.run(t, eng, e.vector[0])
				if want := f(^b.p[1], b.p[other]); b.p[0] != want {
					t.Fatalf("%s of %x %x is %x, want %x", name, ^b.p[1], b.p[other], b.p[0], want)
				}
			}
		}
	})
}
