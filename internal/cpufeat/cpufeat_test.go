package cpufeat

import (
	"runtime"
	"slices"
	"testing"
)

func TestLevels(t *testing.T) {
	list := Levels()
	if list[0] != Generic || !slices.IsSorted(list) {
		t.Errorf("levels %v", list)
	}
	if Active() != list[len(list)-1] {
		t.Errorf("%v is active, of %v", Active(), list)
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
