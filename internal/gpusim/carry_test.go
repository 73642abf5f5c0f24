package gpusim

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// carryStep is an instruction with a carry as ptxas assembles it for sm_80: all go through one adder. A subtraction adds
// the complement (IADD3.X d, a, ~b, P) and a one (IADD3 d, P, a, -b), so that the carry says that nothing was borrowed.
type carryStep struct {
	name     string // with % for the type
	operands int
	take     bool // the carry
}

var carrySteps = []carryStep{
	{"add.cc.%", 2, false}, {"sub.cc.%", 2, false}, {"mad.lo.cc.%", 3, false}, {"mad.hi.cc.%", 3, false},
	{"addc.cc.%", 2, true}, {"subc.cc.%", 2, true}, {"madc.lo.cc.%", 3, true}, {"madc.hi.cc.%", 3, true},
}

// adder is what a step makes of operands of n bits.
func (s carryStep) adder(v [3]uint64, carry uint, n int, signed bool) (sum uint64, out uint) {
	x, y := v[0], v[1]
	if s.operands == 3 {
		p := new(big.Int).Mul(wordOf(v[0], n, signed), wordOf(v[1], n, signed))
		if strings.Contains(s.name, "hi") {
			p.Rsh(p, uint(n))
		}
		x, y = p.And(p, new(big.Int).SetUint64(lowBits(n))).Uint64(), v[2]
	}
	in := carry
	if !s.take {
		in = 0
	}
	if s.name[:3] == "sub" {
		if y = ^y; !s.take {
			in = 1
		}
	}
	word := func(v uint64) *big.Int { return new(big.Int).SetUint64(v & lowBits(n)) }
	r := word(x)
	r.Add(r, word(y)).Add(r, big.NewInt(int64(in)))
	return r.Uint64() & lowBits(n), r.Bit(n)
}

// TestCarries: every instruction that takes a carry behind every one that gives one, with the carry that is left.
func TestCarries(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, typ := range []string{"u32", "s32", "u64", "s64"} {
		n := map[bool]int{true: 32, false: 64}[typ[1:] == "32"]
		edges := []uint64{0, 1, lowBits(n), lowBits(n - 1), lowBits(n-1) + 1, rnd.Uint64() & lowBits(n), rnd.Uint64() & lowBits(n)}
		for _, first := range carrySteps {
			for _, second := range carrySteps {
				if !second.take {
					continue
				}
				inst := func(s carryStep, dst string) string {
					return strings.Replace(s.name, "%", typ, 1) + " " + dst + ", " + strings.Join([]string{"%a", "%b", "%c"}[:s.operands], ", ") + ";"
				}
				class := fmt.Sprint("b", n)
				body := "{.reg ." + class + " x, y, z;\n" + // a known carry for the first
					fmt.Sprintf("setp.eq.%s %%first, %%c, 0; @%%first add.cc.%s x, -1, 1; @!%%first add.cc.%s x, 0, 0;\n", class, typ, typ) +
					inst(first, "x") + inst(second, "y") + "addc." + typ + " z, 0, 0;\n" +
					"mul.lo." + typ + " x, x, 3; xor." + class + " %d, x, y; shl." + class + " z, z, 7; xor." + class + " %d, %d, z;}"
				compareLanes(t, ".reg .pred %first;\n"+body, class, class, triples(edges, 3), func(v [3]uint64) uint64 {
					var known uint
					if v[2] == 0 {
						known = 1
					}
					x, c := first.adder(v, known, n, typ[0] == 's')
					y, c := second.adder(v, c, n, typ[0] == 's')
					return (3*x ^ y ^ uint64(c)<<7) & lowBits(n)
				})
			}
		}
	}
}
