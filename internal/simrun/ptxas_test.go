package simrun

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestRegisters: where there is a ptxas, registers and occupancy are by what it says of the kernel, else by the estimate.
func TestRegisters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the ptxas of this test is a shell script")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	write(t, "k.ptx", ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n.visible .entry k() { ret; }\n")
	run := func() *Result {
		t.Helper()
		r, err := Run(t.Context(), Config{File: "k.ptx", Kernel: "k", Block: "1024"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(); r.RegistersBy != byLiveness || r.Occupancy.Blocks != 2 || !strings.Contains(r.Text(100), "a thread, estimated from liveness") {
		t.Errorf("without ptxas: %+v", r)
	}
	says := func(text string, status string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "ptxas"), []byte("#!/bin/sh\necho \"$@\" > asked\n/bin/cat >&2 <<'EOF'\n"+text+"EOF\nexit "+status+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	const said = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 1024 bytes smem, 372 bytes cmem[0]
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Used 5 registers, 372 bytes cmem[0]
`
	says(said, "0")
	if r := run(); r.Registers != 64 || r.RegistersBy != byPtxas || r.Occupancy.Blocks != 1 || r.Occupancy.Limiter != "registers" || !strings.Contains(r.Text(100), "64  a thread, by ptxas") {
		t.Errorf("by ptxas: %+v", r)
	}
	if asked, err := os.ReadFile("asked"); err != nil || string(asked) != "-v --gpu-name sm_80 -o "+os.DevNull+" k.ptx\n" {
		t.Errorf("%q, %v", asked, err)
	}
	l, err := Explain("k.ptx", "")
	if err != nil || l.Kernels[0].Registers != 5 || l.Kernels[1].Registers != 64 || strings.Count(l.Text(100), "by ptxas") != 2 {
		t.Errorf("%v, %+v", err, l)
	}
	says(said, "255")
	if r := run(); r.RegistersBy != byLiveness {
		t.Errorf("of a ptxas that fails: %+v", r)
	}
}
