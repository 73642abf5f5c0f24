package gpusim

import (
	"errors"
	"strings"
	"testing"
)

const stacked = `.func (.param .b32 r) total(.param .b32 n)
{
	.reg .b64 %a, %b, %size; .reg .b32 %n, %i, %s, %v; .reg .pred %p;
	ld.param.b32 %n, [n];
	mul.wide.u32 %size, %n, 4;
	alloca.u64 %a, %size, 16;
	cvta.local.u64 %b, %a;
	mov.u32 %i, 0;
FILL:
	setp.ge.u32 %p, %i, %n; @%p bra SUM;
	mul.wide.u32 %size, %i, 4; add.u64 %size, %b, %size;
	st.u32 [%size], %i; add.u32 %i, %i, 1;
	bra FILL;
SUM:
	mov.u32 %s, 0; mov.u32 %i, 0;
NEXT:
	setp.ge.u32 %p, %i, %n; @%p bra END;
	mul.wide.u32 %size, %i, 4; add.u64 %size, %a, %size;
	ld.local.u32 %v, [%size]; add.u32 %s, %s, %v; add.u32 %i, %i, 1;
	bra NEXT;
END:
	st.param.b32 [r], %s;
	ret;
}
.visible .entry k(.param .u64 out, .param .u32 times)
{
	.reg .b64 %o, %d, %x, %y; .reg .b32 %i, %n, %r, %s, %times; .reg .pred %p;
	.param .b32 a, b; .local .align 4 .b8 own[12];
	ld.param.u64 %o, [out]; ld.param.u32 %times, [times];
	mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 8; add.u64 %o, %o, %d;
	mov.u32 %n, 0; mov.u32 %s, 0;
	stacksave.u64 %x;
LOOP:
	st.param.b32 [a], %i; call (b), total, (a); ld.param.b32 %r, [b]; add.u32 %s, %s, %r;
	add.u32 %n, %n, 1; setp.lt.u32 %p, %n, %times; @%p bra LOOP;
	alloca.u64 %d, 100; stackrestore.u64 %x; // again
	alloca.u64 %y, 100, 64; and.b64 %y, %y, 63; cvt.u32.u64 %r, %y;
	st.global.v2.u32 [%o], {%s, %r};
	ret;
}
`

// TestAlloca takes memory of a size known only at run time, again and again, and gives it back.
func TestAlloca(t *testing.T) {
	r, err := load(t, stacked)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {Checks: inBlock}, {Schedule: Independent, Seed: 2}} {
		out := r.alloc(8*70, "out")
		r.launch("k", d1(2), d1(70), o, out, uint32(200))
		for i, v := range download[[2]uint32](r, out, 70) {
			if n := uint32(i); v != [2]uint32{200 * (n * (n - 1) / 2), 0} && n > 0 {
				t.Fatalf("thread %d: %v", i, v)
			}
		}
	}
	for change, want := range map[string]string{
		"alloca.u64 %d, 20000;":                          "the stack overflows",
		"L: alloca.u64 %d, 100; bra L;":                  "the stack overflows",
		"add.u64 %x, %x, 8; stackrestore.u64 %x;":        "no stacksave gave",
		"alloca.u64 %d, 8; st.local.u32 [%d+20000], %i;": "out-of-bounds write",
	} {
		r, err := load(t, strings.Replace(stacked, "alloca.u64 %d, 100; stackrestore.u64 %x; // again", change, 1))
		if err != nil {
			t.Fatal(err)
		}
		var f *Fault
		_, err = r.try("k", d1(1), d1(1), Options{}, r.alloc(8, "out"), uint32(1))
		if !errors.As(err, &f) || !strings.Contains(f.Finding.Msg, want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}
