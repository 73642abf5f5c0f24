package gpusim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// TestArrayGaps: what leaves an array of shared or local memory for the next is found under checks, by whatever access, and
// told as it would be without gaps; what stays inside is not, and addresses, sizes and bank conflicts are as without.
func TestArrayGaps(t *testing.T) {
	const regs = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 a[1024]; .shared .align 16 .b8 b[1024]; .local .align 8 .b8 u[64]; .local .align 8 .b8 v[64];"
	for _, c := range []struct{ name, body, says string }{
		{"a store", "shl.b32 %r1, %lane, 2; mov.u32 %r2, a; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2+%d], %lane;", "0 bytes past the end of a of 1024 bytes"},
		{"a load", "shl.b32 %r1, %lane, 2; mov.u32 %r2, a; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %lane; ld.shared.u32 %r3, [%r2+%d];", "0 bytes past the end of a of 1024 bytes"},
		{"a load of a vector", "shl.b32 %r1, %lane, 4; mov.u32 %r2, a; add.u32 %r2, %r2, %r1; st.shared.v4.u32 [%r2], {%lane, %lane, %lane, %lane}; ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2+%d];", "0 bytes past the end of a of 1024 bytes"},
		{"a generic store", "mov.u64 %rd1, a; cvta.shared.u64 %rd1, %rd1; mul.wide.u32 %rd2, %lane, 4; add.u64 %rd1, %rd1, %rd2; st.u32 [%rd1+%d], %lane;", "0 bytes past the end of a of 1024 bytes"},
		{"an atomic", "mov.u32 %r2, a; st.shared.u32 [%r2], 0; bar.sync 0; atom.shared.add.u32 %r3, [%r2+%d], 1;", "0 bytes past the end of a of 1024 bytes"},
		{"a copy", "shl.b32 %r1, %lane, 4; mov.u32 %r2, a; add.u32 %r2, %r2, %r1; ld.param.u64 %rd1, [in]; cp.async.cg.shared.global [%r2+%d], [%rd1], 16; cp.async.wait_all;", "0 bytes past the end of a of 1024 bytes"},
		{"local memory", "st.local.u32 [u+%d], %lane;", "0 bytes past the end of u of 64 bytes"},
	} {
		for _, l := range cpufeat.Levels() {
			t.Run(c.name+"/"+l.String(), func(t *testing.T) {
				defer cpufeat.Set(l)()
				run := func(over int, o Options) (*Report, error) {
					// The first array is used up to its end: what is further on by 0 stays inside.
					end := map[string]int{"a store": 1024 - 128, "a load": 1024 - 128, "a load of a vector": 512, "a generic store": 1024 - 128, "an atomic": 1020, "a copy": 512, "local memory": 60}[c.name]
					body := strings.ReplaceAll(c.body, "%d", fmt.Sprint(end+over))
					if c.name == "a load" || c.name == "a load of a vector" || c.name == "an atomic" {
						body = strings.Replace(body, "[%r2]", fmt.Sprintf("[%%r2+%d]", end), 1)
					}
					r := newRig(t, wrap(regs, body+"mov.u32 %r7, b; st.shared.u32 [%r7], 1; st.local.u32 [v], 1;"), false)
					return r.try("k", d1(1), d1(32), o, r.upload(make([]uint64, 128), "in"), r.alloc(256, "out"))
				}
				step := map[string]int{"a load of a vector": 16, "a copy": 16}[c.name] + 4
				if step > 4 {
					step = 16
				}
				plain, err := run(0, Options{Counters: true})
				if err != nil {
					t.Fatal(err)
				}
				checked, err := run(0, Options{Counters: true, Checks: Initcheck | Synccheck})
				if err != nil || len(checked.Findings) > 0 || checked.Shared != 2048 || checked.Shared != plain.Shared || fmt.Sprint(checked.Counters) != fmt.Sprint(plain.Counters) {
					t.Errorf("inside: %v, %+v beside %+v", err, checked, plain)
				}
				_, err = run(step, Options{Checks: Initcheck | Synccheck})
				var f *Fault
				if !errors.As(err, &f) || !strings.Contains(err.Error(), "out-of-bounds") || !strings.Contains(f.Finding.Alloc, c.says) {
					t.Errorf("outside: %v", err)
				} else if f.Finding.Space == "shared" && f.Finding.Addr != 1024 {
					t.Errorf("at %#x", f.Finding.Addr)
				}
			})
		}
	}
}
