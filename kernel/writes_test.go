package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestWrites has for each way of an address from a parameter to a store what is written: "a,b" for parameters, "own" for the
// kernel's own memory, "?" for what is not known.
func TestWrites(t *testing.T) {
	const head = ".version 7.4\n.target sm_80\n.address_size 64\n.global .u32 g[4];\n.extern .shared .align 16 .b8 dyn[];\n"
	const params = "(.param .u64 a, .param .u64 b, .param .u64 n)"
	const regs = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [n];\n"
	for name, c := range map[string]struct{ before, body, want string }{
		"nothing":                 {"", "ld.global.u32 %r1, [%rd1];", ""},
		"a store":                 {"", "st.global.u32 [%rd1], 1;", "a"},
		"by a number":             {"", "shl.b64 %rd4, %rd3, 2; cvta.to.global.u64 %rd5, %rd2; add.s64 %rd6, %rd5, %rd4; st.global.v2.u32 [%rd6+8], {%r1, %r2};", "b|n"},
		"by a loaded index":       {"", "ld.global.u32 %r1, [%rd1]; mad.wide.u32 %rd4, %r1, 4, %rd2; st.u32 [%rd4], 1;", "b"},
		"a choice":                {"", "setp.eq.u64 %p1, %rd1, 0; selp.b64 %rd4, %rd1, %rd2, %p1; st.global.u32 [%rd4], 1;", "a|b"},
		"a loop":                  {"", "L: st.global.u32 [%rd4], 1; mov.u64 %rd4, %rd5; mov.u64 %rd5, %rd1; setp.eq.u64 %p1, %rd4, 0; @%p1 bra L;", "a"},
		"atomics":                 {"", "atom.global.add.u32 %r1, [%rd1], 1; red.global.add.u32 [%rd2], 1;", "a b"},
		"own memory":              {"", "st.global.u32 [g], 1; mov.u64 %rd4, g; st.u32 [%rd4], 1;", "own"},
		"shared":                  {"", "mov.u32 %r1, dyn; st.shared.u32 [%r1], 1;", ""},
		"shared, generic":         {"", "mov.u64 %rd4, dyn; cvta.shared.u64 %rd5, %rd4; st.u32 [%rd5], 1;", "own"},
		"by memory":               {"", "ld.global.u64 %rd4, [%rd1]; st.global.u32 [%rd4], 1;", "?"},
		"by local memory":         {"", ".local .align 8 .b8 l[16]; mov.u64 %rd4, l; st.local.u64 [%rd4], %rd2; ld.local.u64 %rd5, [%rd4]; st.global.u32 [%rd5], 1;", "b"},
		"by generic local memory": {"", ".local .align 8 .b8 l[16]; mov.u64 %rd4, l; cvta.local.u64 %rd5, %rd4; st.u64 [%rd5], %rd2; ld.u64 %rd6, [%rd5]; st.global.u32 [%rd6], 1;", "b own"},
		"by halves":               {"", "mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd4, {%r1, %r2}; st.global.u32 [%rd4], 1;", "a"},
		"the parameter's address": {"", "mov.u64 %rd4, b; ld.param.u64 %rd5, [%rd4]; st.global.u32 [%rd5], 1;", "b"},
		"asynchronous copies":     {"", "mov.u32 %r1, dyn; cp.async.cg.shared.global [%r1], [%rd1], 16;", ""},
		"a bulk copy":             {"", "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "a"},
		"a tensor map":            {"", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [%r3];", "?"},
		"a prefetch":              {"", "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r1, %r2}];", ""},
		"a call": {".func (.param .b64 r) f(.param .b64 x, .param .b64 y) { .reg .b64 %rd<3>; ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; st.global.u32 [%rd1], 1; st.param.b64 [r], %rd2; ret; }\n",
			"{ .param .b64 p; .param .b64 q; .param .b64 s; st.param.b64 [p], %rd2; st.param.b64 [q], %rd1; call.uni (s), f, (p, q); ld.param.b64 %rd4, [s]; } red.global.add.u32 [%rd4], 1;", "a b"},
		"a call with registers": {".func (.reg .b64 %r) f(.reg .b64 %x) { mov.b64 %r, %x; ret; }\n", "call.uni (%rd4), f, (%rd2); st.global.u32 [%rd4], 1;", "b"},
		"an unknown function":   {".extern .func f(.param .b64 x);\n", "{ .param .b64 p; st.param.b64 [p], %rd2; call.uni f, (p); }", "?"},
	} {
		m, err := ptx.Parse(head + c.before + ".visible .entry k" + params + "\n{ " + regs + c.body + " ret; }\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := written(writesOf(m, m.Func("k"))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func written(sets []origins) string {
	var words []string
	for _, s := range sets {
		var of []string
		for i, name := range []string{"a", "b", "n"} {
			if s>>i&1 == 1 {
				of = append(of, name)
			}
		}
		if s&ownMemory != 0 {
			of = append(of, "own")
		}
		if s == 0 {
			of = append(of, "?")
		}
		words = append(words, strings.Join(of, "|"))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestWritesOfCompilers: of the kernels that clang and Triton have made here it is known what they write, but for those that find
// addresses in memory or in tensor maps.
func TestWritesOfCompilers(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../examples/sim/*.ptx", "../examples/kernels/*.ptx", "../internal/simrun/testdata/triton/*.ptx"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, list...)
	}
	seen := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ptx.Parse(string(b))
		if err != nil {
			t.Fatal(err)
		}
		for f := range m.Funcs() {
			if !f.Entry {
				continue
			}
			seen++
			sets := writesOf(m, f)
			found := f.Name == "matmul_groups" || strings.Contains(string(b), ".global.shared::cta.bulk_group")
			if len(sets) == 0 || slices.Contains(sets, 0) != found {
				t.Errorf("%s: %s writes %v", path, f.Name, sets)
			}
			if strings.Contains(f.Name, "PKf") && slices.ContainsFunc(sets, func(s origins) bool { return s&1 == 1 }) {
				t.Errorf("%s: %s writes to constants: %v", path, f.Name, sets)
			}
		}
	}
	if seen < 20 {
		t.Error(fmt.Sprint(seen, " kernels"))
	}
}

// FuzzMangled: whatever a kernel is called, its name gives as many types as it says, or none.
func FuzzMangled(f *testing.F) {
	for _, name := range []string{"_Z5swishPKfPfi", "_Z1fv", "_Z10swish_gradPKfS0_Pfi", "_Z1fP6__halfS0_DF16_", "_Z1fPVKiS1_", "_Z3addIfEvPT_", "_Z1fS_", "_Z99f", "_ZN1a1bEv", "_Z1fPP"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		types, ok := mangled(name)
		for _, c := range types {
			if !ok || c.text == "" {
				t.Fatalf("%q has %+v, %v", name, types, ok)
			}
		}
	})
}

func TestMangled(t *testing.T) {
	for name, want := range map[string]string{
		"_Z5swishPKfPfi": "const float*, float*, int", "_Z1fv": "", "_Z10swish_gradPKfS0_Pfi": "const float*, const float*, float*, int",
		"_Z1fP6__halfS0_DF16_": "__half*, __half*, half", "_Z1fPVKiS1_": "volatile const int*, volatile const int*", "_Z1fPPfS0_S_": "float**, float**, float*",
		"_Z3addIfEvPT_": "?", "plain": "?", "_ZN1a1bEv": "?", "_Z1fR1a": "?", "_Z1fS_": "?",
	} {
		types, ok := mangled(name)
		var words []string
		for _, c := range types {
			words = append(words, c.text)
		}
		if got := strings.Join(words, ", "); ok && got != want || !ok && want != "?" {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, want)
		}
	}
}
