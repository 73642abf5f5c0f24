package cpufeat

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestLevels(t *testing.T) {
	list := Levels()
	if list[0] != Generic || !slices.IsSorted(list) {
		t.Errorf("levels %v", list)
	}
	if want := best(list, Describe); os.Getenv(Env) == "" && Active() != want {
		t.Errorf("%v is active, of %v, want %v", Active(), list, want)
	}
	list[0] = 99
	if Levels()[0] != Generic {
		t.Error("callers can change the levels")
	}
}

// TestLevelsMatchFeatures checks the choice against the list of features: a
// machine that can is never left at a lower level by mistake.
func TestLevelsMatchFeatures(t *testing.T) {
	list := features()
	has := func(names ...string) bool {
		for _, n := range names {
			if !slices.Contains(list, n) {
				return false
			}
		}
		return true
	}
	want := []Level{Generic}
	if assembly && has("avx2", "fma") {
		want = append(want, AVX2)
	}
	if len(want) > 1 && has("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
		want = append(want, AVX512)
	}
	if len(want) > 2 && has("avx512bf16") {
		want = append(want, AVX512BF16)
	}
	if assembly && has("asimd") {
		want = append(want, NEON)
	}
	if !slices.Equal(Levels(), want) {
		t.Errorf("levels %v with features %v, want %v", Levels(), list, want)
	}
}

func TestSet(t *testing.T) {
	before := Active()
	for _, l := range Levels() {
		restore := Set(l)
		if Active() != l {
			t.Errorf("%v is active after Set(%v)", Active(), l)
		}
		restore()
		if Active() != before {
			t.Errorf("%v is active after restore, want %v", Active(), before)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Set took a level that no machine has")
		}
	}()
	Set(99)
}

func TestParseLevel(t *testing.T) {
	for _, l := range Levels() {
		if got, err := ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("ParseLevel(%q) = %v, %v", l, got, err)
		}
	}
	for _, name := range []string{"", "AVX2", "sse"} {
		if _, err := ParseLevel(name); err == nil {
			t.Errorf("ParseLevel(%q) succeeded", name)
		}
	}
	for _, name := range names {
		if _, err := ParseLevel(name); err != nil && !strings.Contains(err.Error(), "this machine has no level "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEnv starts processes: the level of one is chosen before any of it runs.
func TestEnv(t *testing.T) {
	if os.Getenv("WARPLINE_TEST_LEVEL") != "" {
		fmt.Printf("level %v, %v\n", Active(), Check())
		return
	}
	absent := "neon" // of another architecture
	if runtime.GOARCH == "arm64" {
		absent = "avx2"
	}
	for _, c := range []struct{ asked, want string }{
		{"", "level " + best(Levels(), Describe).String() + ", <nil>"},
		{"generic", "level generic, <nil>"},
		{Levels()[len(Levels())-1].String(), "level " + Levels()[len(Levels())-1].String() + ", <nil>"},
		{"fast", "WARPLINE_CPU=fast: there is no level \"fast\"; this machine has generic"},
		{absent, "WARPLINE_CPU=" + absent + ": this machine has no level " + absent + ", or this build no kernels for it; there are generic"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestEnv$")
		cmd.Env = append(os.Environ(), "WARPLINE_TEST_LEVEL=1", Env+"="+c.asked)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v\n%s", c.asked, err, out)
		}
	}
}

// TestModels reads signatures that makers publish.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		maker     string
		signature uint32
		id        ID
		name      string
		fast      bool // pairs of bfloat16
	}{
		{amd, 0x00a10f11, ID{amd, 0x19, 0x11}, "Zen 4", true},
		{amd, 0x00a20f12, ID{amd, 0x19, 0x21}, "Zen 3", false},
		{amd, 0x00b00f21, ID{amd, 0x1a, 0x02}, "Zen 5", true},
		{amd, 0x00830f10, ID{amd, 0x17, 0x31}, "Zen 2", false},
		{intel, 0x000806f8, ID{intel, 6, 0x8f}, "Sapphire Rapids", false},
		{intel, 0x000c06f2, ID{intel, 6, 0xcf}, "Emerald Rapids", false},
		{intel, 0x00050657, ID{intel, 6, 0x55}, "Skylake to Cooper Lake", false},
		{intel, 0x000306c3, ID{intel, 6, 0x3c}, "Haswell", false},
		{"VIA VIA VIA ", 0x000006f2, ID{"VIA VIA VIA ", 6, 15}, "", false},
	} {
		id := decode(c.maker, c.signature)
		if id != c.id || id.Rate().Name != c.name || (Processor{ID: id}).FastPairs() != c.fast {
			t.Errorf("%s %x is %+v, %+v", c.maker, c.signature, id, id.Rate())
		}
	}
	for _, m := range models {
		if m.from > m.to || m.rate.AVX2 == 0 || m.rate.AVX512 > 0 && m.rate.AVX512 < m.rate.AVX2 || m.rate.Pairs > 0 && m.rate.AVX512 == 0 {
			t.Errorf("%+v", m)
		}
	}
}

// TestBest takes pairs of bfloat16 only where the table says that they are fast.
func TestBest(t *testing.T) {
	all := []Level{Generic, AVX2, AVX512, AVX512BF16}
	of := func(id ID) func() Processor { return func() Processor { return Processor{ID: id} } }
	for _, c := range []struct {
		levels []Level
		id     ID
		want   Level
	}{
		{all, ID{amd, 0x19, 0x11}, AVX512BF16}, {all, ID{intel, 6, 0x8f}, AVX512}, {all, ID{}, AVX512},
		{all[:3], ID{amd, 0x19, 0x11}, AVX512}, {all[:2], ID{intel, 6, 0x3c}, AVX2}, {all[:1], ID{}, Generic},
	} {
		if got := best(c.levels, of(c.id)); got != c.want {
			t.Errorf("%v on %+v: %v, want %v", c.levels, c.id, got, c.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	p := Describe()
	if p.Cores < 1 || p.Threads != runtime.NumCPU() {
		t.Errorf("%+v", p)
	}
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" && p.Model == "" {
		t.Error("no model name")
	}
	t.Logf("%+v", p)
}
