package gpusim

import "testing"

// TestPoisonOfHalves packs a half that nobody wrote with one that somebody did: only the former may not be used.
func TestPoisonOfHalves(t *testing.T) {
	const pack = "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; mov.b32 {%h2, %h3}, %r1; "
	for body, want := range map[string]int{
		pack + "st.global.u16 [%out], %h2;":                                                                            0,
		pack + "st.global.u16 [%out], %h3;":                                                                            1,
		pack + "st.global.u32 [%out], %r1;":                                                                            1,
		pack + "mov.b32 %r2, {%h2, %h1}; st.global.u32 [%out], %r2;":                                                   0,
		pack + "add.u32 %r1, %r1, 1; mov.b32 {%h2, %h3}, %r1; st.global.u16 [%out], %h2;":                              1,
		pack + "mov.u32 %r1, 5; mov.b32 {%h2, %h3}, %r1; st.global.u16 [%out], %h3;":                                   0,
		pack + "mov.b64 %d1, {%r1, %r9}; mov.b64 {%h4, %h5, %h6, %h7}, %d1; st.global.u16 [%out], %h4;":                0,
		pack + "mov.b64 %d1, {%r1, %r9}; mov.b64 {%h4, %h5, %h6, %h7}, %d1; st.global.u16 [%out], %h5;":                1,
		pack + "mov.b64 %d1, {%r1, %r9}; mov.b64 {%r2, %r3}, %d1; mov.b32 {%h4, %h5}, %r2; st.global.u16 [%out], %h4;": 0,
	} {
		r := newRig(t, wrap(".reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %d<3>;", body), true)
		rep, err := r.try("k", d1(1), d1(32), Options{Checks: AllChecks}, r.upload(make([]uint64, 128), "in"), r.alloc(256, "out"))
		if err != nil || len(rep.Findings) != want {
			t.Errorf("%s: findings %v, error %v", body, rep.Findings, err)
		}
	}
}
