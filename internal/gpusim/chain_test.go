package gpusim

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/compile"
)

// TestChainEnds has instructions of whole warps where a chain ends, by its length and before a read of the clock: each is
// carried out once. An exchange of neighbours done twice is as if it were not done.
func TestChainEnds(t *testing.T) {
	const swap = "shfl.sync.bfly.b32 %lane, %lane, 1, 31, -1; "
	for name, body := range map[string]string{
		"length": strings.Repeat(swap, 2*compile.MaxChain+1),
		"clock":  swap + "mov.u32 %r1, %clock; " + swap + "mov.u32 %r1, %clock; " + swap,
	} {
		for _, o := range []Options{{}, {Checks: AllChecks}, {Seed: 1, Schedule: Independent}} {
			r := newRig(t, wrap(".reg .b32 %r<3>;", body+"st.global.u32 [%out], %lane;"), true)
			out := r.alloc(256, "out")
			r.launch("k", d1(1), d1(32), o, r.upload(make([]uint64, 128), "in"), out)
			for i, v := range download[uint32](r, out, 64) {
				if i%2 == 0 && v != uint32(i/2)^1 {
					t.Fatalf("%s, %+v: lane %d has %d", name, o, i/2, v)
				}
			}
		}
	}
}
