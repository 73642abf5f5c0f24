//go:build linux

package simexec

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/simrun"
	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

// program is testdata/program.c, compiled against the library, in a folder of its own that is the current one.
func program(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("testdata/program.c")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := install(t.Context(), "libcuda.so.1"); err != nil {
		t.Fatal(err)
	}
	compiled.Do(func() { compiled.file, err = os.ReadFile(cc.Program(t, source, "libcuda.so.1", "-lpthread")) })
	if err != nil || len(compiled.file) == 0 {
		t.Skipf("the program was not compiled: %v", err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, compiled.file, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiled is the program, once it is.
var compiled struct {
	sync.Once
	file []byte
}

// outcome is what became of a program.
type outcome struct {
	*Result
	stdout, stderr string
}

func runProgram(t *testing.T, c Config, command ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Command, c.Stdout, c.Stderr = command, &stdout, &stderr
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{r, stdout.String(), stderr.String()}
}

// TestPrograms runs each part of the program, and compares how it ends, what it prints, and what is told of it.
func TestPrograms(t *testing.T) {
	path := program(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	runProgram(t, Config{}, path, "broken") // what starts once has started
	for _, c := range []struct {
		what     string
		config   Config
		status   int
		findings int
		stdout   string
		told     []string // in the text of the result
	}{
		{what: "everything", stdout: "all is right\n", told: []string{
			"add            9", "cuInit: CUDA_ERROR_INVALID_VALUE (1)\n", "unknown instruction \"nonsense\"", "16 bytes at host address 0x8: ",
			"no finding by memcheck, initcheck, synccheck, racecheck"}},
		{what: "everything", config: Config{Late: true, Sim: simrun.Config{Seed: 3, Schedule: "independent", Checks: "memcheck"}}, stdout: "all is right\n",
			told: []string{"no finding by memcheck\n"}},
		{what: "threads", told: []string{"add          960"}},
		{what: "refused", told: []string{
			"cuMemAllocManaged: CUDA_ERROR_NOT_SUPPORTED (801): managed memory is not simulated",
			"cuIpcGetMemHandle: CUDA_ERROR_NOT_SUPPORTED (801): memory and events of other processes",
			"cuGetExportTable: CUDA_ERROR_NOT_SUPPORTED (801): the tables that the CUDA runtime library",
			"cuLinkCreate_v2: CUDA_ERROR_NOT_SUPPORTED (801): the driver's linker",
			"cuTexRefCreate: CUDA_ERROR_NOT_SUPPORTED (801): textures",
			"cuMemAlloc: CUDA_ERROR_NOT_SUPPORTED (801): it is the form with addresses of 32 bits: call cuMemAlloc_v2",
			"machine code (a cubin)", "machine code only", "is compressed"}},
		{what: "maps", config: Config{Sim: simrun.Config{Card: "h100-80"}}, told: []string{"tiled ", "im2col ", "which is no multiple of 16", "a tensor map lies on a multiple of 64 bytes",
			"a tensor map has 1 to 5 dimensions", "no finding by"}},
		{what: "maps", status: 3, told: []string{"cuTensorMapEncodeTiled: CUDA_ERROR_NOT_SUPPORTED (801): a tensor map on a card of compute capability 8.0"}},
		{what: "broken", status: 0, findings: 1, told: []string{"memcheck: out-of-bounds read", "ld.global.f32 %f, [%p];", "232,0,0 of block 3,0,0 in broken",
			"cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "1 finding\n"}},
		{what: "column", told: []string{"\nadvice, uncoalesced: 31.00 sectors of global memory a request, where 3.86", "PTX       line 45  ld.global.f32 %t, [%p];\n", "kernel    column\n", "no finding"}},
		{what: "unwritten", findings: 1, told: []string{"initcheck: read of memory that was never written\n  by        a copy to the host"}},
		{what: "late", stdout: "1\n"},
		{what: "late", config: Config{Late: true}, stdout: "77\n"},
		{what: "fork", told: []string{"was forked from one that used the driver", "CUDA_ERROR_NOT_INITIALIZED (3)", "spawn"}},
		{what: "exit", status: 5, told: []string{"leak: 3.91 KiB never freed"}},
		{what: "twice", findings: 1, told: []string{"memory: double free: MemFree of 0x", "a call of the program"}},
		{what: "die", status: 128 + 9, told: []string{"was ended by a signal: killed"}},
		{what: "nothing", told: []string{"did not call the driver"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			before := runtime.NumGoroutine()
			r := runProgram(t, c.config, path, c.what)
			text := r.Text(100)
			if r.Status != c.status || r.Found != c.findings || r.stdout != c.stdout {
				t.Errorf("status %d, %d findings, %q\n%s%s", r.Status, r.Found, r.stdout, r.stderr, text)
			}
			for _, want := range c.told {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			noMoreThan(t, before)
		})
	}
	empty(t, dir)
}

// TestCounts are those of a launch of 4 blocks of 8 warps over 1000 numbers, which are 125 sectors to read and to write.
func TestCounts(t *testing.T) {
	r := runProgram(t, Config{}, program(t), "fork")
	if len(r.Kernels) != 1 || r.Kernels[0].GlobalSectors != 250 || r.Kernels[0].GlobalRequests != 64 || r.Kernels[0].Launches != 1 || r.Processes != 1 {
		t.Errorf("%+v", r.Kernels)
	}
}

// TestStreams hands the program's standard input, output and error on.
func TestStreams(t *testing.T) {
	path := program(t)
	if r := runProgram(t, Config{Stdin: strings.NewReader("HAL")}, path, "echo"); r.stdout != "IBM" || r.stderr != "told\n" || r.Status != 0 {
		t.Errorf("%q, %q, status %d", r.stdout, r.stderr, r.Status)
	}
}

// written tells when something is written.
type written chan struct{}

func (r written) Write(p []byte) (int, error) {
	select {
	case r <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestSignals sends this process a signal, which the program gets.
func TestSignals(t *testing.T) {
	path := program(t)
	up := make(written, 1)
	go func() {
		<-up
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	}()
	r, err := Run(t.Context(), Config{Command: []string{path, "signal"}, Stdout: up, Stderr: os.Stderr})
	if err != nil || r.Status != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

// noMoreThan waits until there are no more goroutines than before a program was run.
func noMoreThan(t *testing.T, before int) {
	t.Helper()
	for i := 0; i < 200 && runtime.NumGoroutine() > before; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines after the program, %d before", n, before)
	}
}

// empty is a folder for temporary files that has none left.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestStopped ends a run in the middle of a launch, of which nothing is left: no process, no goroutine, no file.
func TestStopped(t *testing.T) {
	path := program(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	runProgram(t, Config{}, path, "broken") // what starts once has started
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	up := make(written, 1)
	go func() {
		<-up
		time.Sleep(50 * time.Millisecond) // until the launch has begun, most likely
		cancel()
	}()
	r, err := Run(ctx, Config{Command: []string{path, "hang"}, Stdout: up, Stderr: os.Stderr})
	if err != nil || r.Status != 128+9 || r.Found != 0 || !strings.Contains(r.Text(100), "was ended by a signal: killed") {
		t.Errorf("%v %+v", err, r)
	}
	noMoreThan(t, before)
	empty(t, dir)
}

// TestOrphan refuses the calls of a process that outlives the program that was run.
func TestOrphan(t *testing.T) {
	path := program(t)
	r, err := Run(t.Context(), Config{Command: []string{path, "orphan", "answer"}, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil || r.Status != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for range 500 {
		if got, err := os.ReadFile("answer"); err == nil && len(got) > 0 {
			if string(got) != "4\n" { // CUDA_ERROR_DEINITIALIZED
				t.Errorf("%q", got)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the process has not ended")
}

// TestAlone runs the program without this one.
func TestAlone(t *testing.T) {
	cmd := exec.Command(program(t), "exit")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH=.")
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Count(string(out), "this one runs alone") != 1 {
		t.Errorf("%s", out)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "no program"},
		{Config{Command: []string{"no-such-program"}}, "cannot run no-such-program"},
		{Config{Command: []string{"/"}}, "cannot run /"},
		{Config{Command: []string{"true"}, Sim: simrun.Config{Card: "h1000"}}, "no card"},
		{Config{Command: []string{"true"}, Sim: simrun.Config{Checks: "nocheck"}}, "no check"},
	} {
		if _, err := Run(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.config.Command, err)
		}
	}
}

// TestClang compiles the program as C++ by clang, and runs it right and wrong.
func TestClang(t *testing.T) {
	source, err := filepath.Abs("testdata/program.c")
	if err != nil {
		t.Fatal(err)
	}
	program(t) // which goes to a folder with the library
	tried := []string{"clang++-19", "clang++", "clang-19", "clang"}
	i := slices.IndexFunc(tried, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if i < 0 {
		t.Skipf("no clang: none of %v is in the PATH", tried)
	}
	if out, err := exec.Command(tried[i], "-x", "c++", "-std=c++17", "-O2", "-Wall", "-Werror", "-Wno-deprecated", "-o", "clang", source, "-x", "none", "libcuda.so.1", "-lpthread").CombinedOutput(); err != nil {
		if strings.Contains(string(out), "file not found") {
			t.Skipf("no C library for %s: %s", tried[i], out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for what, findings := range map[string]int{"everything": 0, "threads": 0, "broken": 1} {
		if r := runProgram(t, Config{}, "./clang", what); r.Status != 0 || r.Found != findings {
			t.Errorf("%s: status %d, %d findings\n%s%s", what, r.Status, r.Found, r.stderr, r.Text(100))
		}
	}
}
