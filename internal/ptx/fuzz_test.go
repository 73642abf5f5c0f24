package ptx

import (
	"strings"
	"testing"
)

// FuzzParse: no panic; what parses prints to something that parses to an equal module, and prints the same again.
func FuzzParse(f *testing.F) {
	for _, text := range golden(f) {
		f.Add(text)
	}
	for _, body := range []string{"{ }", "mov.b32 %r1, (1+2)*-3;", "bra L; L:", ".reg .b32 %a, %b<7>;", "call (%r1), k, (%r2);", "ld.b32 %r1, [%rd1, {%r1, %r2}];"} {
		f.Add(frame(body))
	}
	f.Add(".version 8.0\n.target sm_90a\n.global .b8 x[] = {1, 0xFF(x)};\n.section .debug_x { a: .b8 1 }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		Check(m)
		roundTrip(t, m)
	})
}

// FuzzInst mutates single instructions, which reach deeper into operands and the checker.
func FuzzInst(f *testing.F) {
	for _, inst := range []string{
		"add.rn.f32 %f32_1, %f32_2, 0f3F800000;", "ld.global.v2.b32 {%b32_1, _}, [vglobal+4];", "setp.lt.and.u64 %pred_1|_, %b64_1, 5U, !%pred_2;",
		"mov.b64 {%b32_1, %b32_2}, %b64_1;", "@%pred_1 bra Target;", "call (%b32_1), k, (%b32_2);", "cvt.rn.satfinite.e4m3x2.f32 %b16_1, %f32_1, %f32_2;",
		"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%f64_0,%f64_1}, {%f64_2}, {%f64_3}, {%f64_0,%f64_1};", "shfl.sync.idx.b32 %b32_1|%pred_1, %b32_2, 1, 31, -1;",
	} {
		f.Add(inst)
	}
	last := ""
	for c := range Candidates() { // one of each kind of what Hopper has
		if op := c.Family; op != last && (strings.HasPrefix(op, "cp#") || strings.HasPrefix(op, "wgmma#") || strings.HasPrefix(op, "tensormap#") || strings.HasPrefix(op, "mbarrier#") || strings.HasPrefix(op, "fence#")) {
			last = op
			f.Add(c.Text)
		}
	}
	f.Fuzz(func(t *testing.T, inst string) {
		module, body := CandidateDeclarations()
		target := "sm_120a"
		if len(inst)%2 == 1 {
			target = "sm_90a"
		}
		m, err := Parse(".version 8.8\n.target " + target + "\n.address_size 64\n" + module + ".entry k(.param .align 16 .b8 vparam[64]) {\n" + body + inst + "\nTarget: ret; }")
		if err != nil {
			return
		}
		Check(m)
		roundTrip(t, m)
	})
}

func BenchmarkParse(b *testing.B) {
	text := golden(b)["sgemm.ptx"]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	m := mustParse(b, golden(b)["sgemm.ptx"])
	for b.Loop() {
		if errs := Check(m); errs != nil {
			b.Fatal(errs[0])
		}
	}
}
