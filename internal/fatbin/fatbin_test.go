package fatbin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/fatbin/fatbintest"
)

func read(t *testing.T, lib []byte, limit int) *Code {
	t.Helper()
	c, err := Read(bytes.NewReader(lib), int64(len(lib)), limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func counts(c *Code) string {
	var all []string
	for _, r := range c.Rows {
		all = append(all, fmt.Sprintf("%v×%d", r.Target, r.Containers))
	}
	return strings.Join(all, " ")
}

var library = [][]byte{
	fatbintest.Container("sm_75", "sm_80", "sm_90", "compute_90@8.4"),
	fatbintest.Container("sm_75", "sm_80", "sm_90", "sm_90a", "compute_90@8.7"),
	fatbintest.Container(),
	fatbintest.Container("sm_75", "sm_120"),
}

func TestRead(t *testing.T) {
	for name, lib := range map[string][]byte{
		"ELF":         fatbintest.ELF(".nv_fatbin", library...),
		"relocatable": fatbintest.ELF("__nv_relfatbin", library...),
		"PE":          fatbintest.PE(".nv_fatbin", library...),
		"padded":      fatbintest.ELF(".nv_fatbin", library[0], make([]byte, 40), library[1], library[2], library[3], make([]byte, 8)),
	} {
		c := read(t, lib, 0)
		if got := counts(c); got != "sm_75×3 sm_80×2 sm_90×2 sm_90a×1 sm_120×1 compute_90×2" || c.Containers != 4 || c.More || c.Broken != 0 {
			t.Errorf("%s: %s, %+v", name, got, c)
		}
		if v := c.Rows[5].Version; v != [2]int{8, 7} {
			t.Errorf("%s: PTX of version %v", name, v)
		}
		if got := fmt.Sprint(len(c.Common())); got != "4" {
			t.Errorf("%s: %s targets are common", name, got)
		}
	}
}

func TestLimit(t *testing.T) {
	lib := fatbintest.ELF(".nv_fatbin", library...)
	if c := read(t, lib, 2); c.Containers != 2 || !c.More || counts(c) != "sm_75×2 sm_80×2 sm_90×2 sm_90a×1 compute_90×2" {
		t.Errorf("%+v", c)
	}
	if c := read(t, lib, 4); c.Containers != 4 || c.More {
		t.Errorf("%+v: a limit that is reached with the last container leaves none", c)
	}
}

func TestNone(t *testing.T) {
	for name, lib := range map[string][]byte{"ELF": fatbintest.ELF(".text", library...), "PE": fatbintest.PE(".text", library...)} {
		if _, err := Read(bytes.NewReader(lib), int64(len(lib)), 0); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "#!/bin/sh\n"} {
		if _, err := Read(strings.NewReader(text), int64(len(text)), 0); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A cut library gives what is whole, and the place where it ends.
func TestBroken(t *testing.T) {
	whole := bytes.Join(library, nil)
	second := len(library[0])
	for cut := range whole {
		lib := fatbintest.ELF(".nv_fatbin", whole[:cut])
		c := read(t, lib, 0)
		ends := cut == 0 || cut == second || cut == second+len(library[1]) || cut == second+len(library[1])+len(library[2])
		if (c.Broken == 0) != (ends || len(whole[:cut])-lastEnd(cut) < headerSize) {
			t.Fatalf("cut at %d: %+v", cut, c)
		}
		if cut >= second && c.Containers == 0 {
			t.Fatalf("cut at %d: the first container is whole, and not read", cut)
		}
	}
	bad := bytes.Clone(whole)
	bad[second] ^= 1
	if c := read(t, fatbintest.ELF(".nv_fatbin", bad), 0); c.Containers != 1 || c.Broken != int64(64+second) {
		t.Errorf("a wrong magic number: %+v", c)
	}
}

// lastEnd is where the last container ends that is whole in so many bytes of library.
func lastEnd(cut int) int {
	end := 0
	for _, c := range library {
		if end+len(c) > cut {
			break
		}
		end += len(c)
	}
	return end
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		target  Target
		compute [2]int
		want    bool
	}{
		{Target{SM: 80}, [2]int{8, 0}, true},
		{Target{SM: 80}, [2]int{8, 9}, true},
		{Target{SM: 86}, [2]int{8, 0}, false},
		{Target{SM: 80}, [2]int{9, 0}, false},
		{Target{SM: 90}, [2]int{12, 0}, false},
		{Target{SM: 120}, [2]int{12, 1}, true},
		{Target{SM: 100}, [2]int{12, 0}, false},
		{Target{SM: 90, Exact: true}, [2]int{9, 0}, true},
		{Target{SM: 100, Exact: true}, [2]int{10, 3}, false},
		{Target{SM: 90, PTX: true}, [2]int{12, 0}, true},
		{Target{SM: 90, PTX: true}, [2]int{8, 9}, false},
		{Target{SM: 90, PTX: true, Exact: true}, [2]int{10, 0}, false},
	} {
		if got := c.target.Runs(c.compute); got != c.want {
			t.Errorf("%v on %v: %v", c.target, c.compute, got)
		}
	}
}

// TestAgainstCuobjdump compares the walk of a real library with what NVIDIA's tool lists, where both are named:
// WARPLINE_FATBIN=libtorch_cuda.so and cuobjdump in the PATH.
func TestAgainstCuobjdump(t *testing.T) {
	lib := os.Getenv("WARPLINE_FATBIN")
	tool, err := exec.LookPath("cuobjdump")
	if lib == "" || err != nil {
		t.Skip("WARPLINE_FATBIN names no library, or there is no cuobjdump in the PATH")
	}
	c, err := Open(lib, 0)
	if err != nil || c.Broken != 0 {
		t.Fatal(c, err)
	}
	want := map[string]int{}
	for _, flag := range []string{"--list-elf", "--list-ptx"} {
		out, _ := exec.Command(tool, flag, lib).CombinedOutput() // fails where it lists nothing
		for _, m := range regexp.MustCompile(`\.(sm_\w+)\.(cubin|ptx)\n`).FindAllStringSubmatch(string(out), -1) {
			want[strings.Replace(m[1], "sm", map[string]string{"cubin": "sm", "ptx": "compute"}[m[2]], 1)]++
		}
	}
	for _, r := range c.Rows {
		// The tool counts entries: several of a target in a container are several.
		if n := want[r.String()]; n < r.Containers || r.Containers == 0 {
			t.Errorf("%v: in %d containers, %d listed", r.Target, r.Containers, n)
		}
		delete(want, r.String())
	}
	if len(want) != 0 {
		t.Errorf("listed, and not found: %v", want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(fatbintest.ELF(".nv_fatbin", library...))
	f.Add(fatbintest.PE(".nv_fatbin", library...))
	f.Fuzz(func(t *testing.T, lib []byte) {
		c, err := Read(bytes.NewReader(lib), int64(len(lib)), 0)
		if err != nil {
			return
		}
		if c.Broken < 0 || c.Broken > int64(len(lib)) {
			t.Errorf("broken at %d of %d bytes", c.Broken, len(lib))
		}
		for _, r := range c.Rows {
			if r.Containers < 1 || r.Containers > c.Containers+1 { // the last may be cut
				t.Errorf("%+v of %d", r, c.Containers)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	whole := make([][]byte, 500)
	for i := range whole {
		whole[i] = library[1]
	}
	path := filepath.Join(b.TempDir(), "lib.so")
	if err := os.WriteFile(path, fatbintest.ELF(".nv_fatbin", whole...), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Open(path, 0); err != nil {
			b.Fatal(err)
		}
	}
}
