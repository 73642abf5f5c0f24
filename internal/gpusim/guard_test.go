package gpusim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

const guarded = `setp.lt.u32 %%p, %%lane, %d; mov.u32 %%r1, %%lane; mov.u32 %%r2, 7;
	ld.global.u32 %%r3, [%%in]; @%%p add.s32 %%r1, %%r1, %%r3; @!%%p mul.lo.s32 %%r1, %%r1, 3; @%%p ld.global.u32 %%r2, [%%in+4];
	@!%%p mad.lo.s32 %%r2, %%r1, %%r3, %%r2; mov.u64 %%rd1, 0; %s
	@%%p st.global.u32 [%%out], %%r1; @!%%p st.global.u32 [%%out], %%r2; st.global.u32 [%%out+4], %%r2;`

// guardedResult is what the kernel stores when the guard holds in the first lanes and the input counts from 100.
func guardedResult(lanes int) (want []uint32) {
	for l := range uint32(simt.WarpSize) {
		in, next := 100+8*l, 101+8*l
		if int(l) < lanes {
			want = append(want, l+in, next)
		} else {
			want = append(want, 3*l*in+7, 3*l*in+7)
		}
	}
	return want
}

// TestGuards runs guarded instructions whose guards hold in no, some and all lanes on each level of assembly. An access
// with a bad address does no harm where its guard holds nowhere, and stops the kernel where it holds somewhere.
func TestGuards(t *testing.T) {
	in := make([]uint32, 8*simt.WarpSize)
	for i := range in {
		in[i] = uint32(100 + i)
	}
	for _, lanes := range []int{0, 5, simt.WarpSize} {
		for _, access := range []string{"", "@%p ld.global.u32 %r2, [%rd1];"} {
			var first *Report
			for _, level := range cpufeat.Levels() {
				t.Run(fmt.Sprint(lanes, level, access), func(t *testing.T) {
					defer cpufeat.Set(level)()
					r := newRig(t, wrap(".reg .b32 %r<9>; .reg .b64 %rd<3>;", fmt.Sprintf(guarded, lanes, access)), false)
					out := r.alloc(8*simt.WarpSize, "out")
					rep, err := r.try("k", d1(1), d1(simt.WarpSize), Options{}, r.upload(in, "in"), out)
					var f *Fault
					if access != "" && lanes > 0 {
						if !errors.As(err, &f) || f.Code != IllegalAddress {
							t.Error(err)
						}
						return
					}
					if got := download[uint32](r, out, 2*simt.WarpSize); err != nil || !slices.Equal(got, guardedResult(lanes)) {
						t.Errorf("%v: %d", err, got)
					}
					if first == nil {
						first = rep
					}
					if !reflect.DeepEqual(first.Counters, rep.Counters) {
						t.Errorf("counts %+v, and %+v", rep.Counters, first.Counters)
					}
				})
			}
		}
	}
}
