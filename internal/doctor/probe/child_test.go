package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

// TestMain lets the test binary be the child, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == ChildCommand {
		if Answer(os.Args[2], os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shared compiles a C library to a file.
func shared(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(path, cc.Library(t, "lib.c", map[string][]byte{"lib.c": []byte(source)}), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked is what children of this test say, with libraries named by the environment.
func asked(t *testing.T, limit time.Duration) *doctor.Facts {
	t.Helper()
	p := &prober{Config: Config{Executable: os.Args[0], Limit: limit, Say: func(string) {}}, facts: &doctor.Facts{}}
	p.askNVML(context.Background())
	p.askCUDA(context.Background())
	return p.facts
}

// TestNoAnswer: a library that hangs, one that crashes and one that ends its process are told as such, and the probe goes on.
func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		limit time.Duration
		check func(c *doctor.Child) bool
	}{
		"hangs":   {"for (;;) sleep(1);", time.Second, func(c *doctor.Child) bool { return c.TimedOut && c.At == "init" }},
		"crashes": {"volatile int *volatile p = 0; *p = 1;", time.Minute, func(c *doctor.Child) bool { return c.Signal != "" && c.At == "init" }},
		"aborts":  {"abort();", time.Minute, func(c *doctor.Child) bool { return c.Signal != "" }},
		"exits":   {"_exit(7);", time.Minute, func(c *doctor.Child) bool { return strings.Contains(c.Error, "exit status 7") }},
	} {
		t.Run(name, func(t *testing.T) {
			path := shared(t, "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { "+c.body+" }\n")
			t.Setenv(nvml.PathEnv, path)
			t.Setenv(libcuda.PathEnv, path)
			f := asked(t, c.limit)
			for _, child := range []*doctor.Child{&f.NVML.Child, &f.CUDA.Child} {
				if !child.Asked || !c.check(child) {
					t.Errorf("%+v", child)
				}
			}
			f.OS, f.Platform.DXG = "linux", true // so that nothing below P7 is judged
			if v := doctor.Judge(f).Verdict; v.Broken != "P7" || v.Command == "" {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestNVMLTells: the child's answer is what the library tells, health too.
func TestNVMLTells(t *testing.T) {
	source, err := os.ReadFile("../../nvml/testdata/nvml.c")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(nvml.PathEnv, shared(t, string(source)))
	var said []string
	p := &prober{Config: Config{Executable: os.Args[0], Limit: time.Minute, Say: func(w string) { said = append(said, w) }}, facts: &doctor.Facts{}}
	p.askNVML(context.Background())
	n := p.facts.NVML
	if n.Code != 0 || n.Name != "NVML_SUCCESS" || n.Driver != "535.54.03" || n.CUDA != "12.2" || len(n.Cards) != 2 || len(n.Peers) != 2 || n.Peers[0].Status != 4 {
		t.Fatalf("%+v", n)
	}
	c := n.Cards[0]
	if c.Bus != "0000:01:00.0" || c.Values["compute_mode"] != 3 || c.Values["memory_total_bytes"] != 81920<<20 || c.Values["remapped_rows_pending"] != 1 || c.Reasons != 0x44 || len(c.Links) != 3 || len(c.Processes) != 1 {
		t.Errorf("%+v", c)
	}
	if got := strings.Join(said, ", "); got != "NVML: init, NVML: card 1 of 2, NVML: card 2 of 2, NVML: peers" {
		t.Errorf("said %s", got)
	}
	d := doctor.Judge(p.facts)
	for _, rule := range []string{"D16", "D49", "D52"} {
		if !strings.Contains(ids(d), rule) {
			t.Errorf("%s is not among %s", rule, ids(d))
		}
	}
}

// TestGarbage: what a library prints itself, with and without ends of lines, does not hide the answer.
func TestGarbage(t *testing.T) {
	source, err := os.ReadFile("../../nvml/testdata/nvml.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"an open line":    `fputs("{\"nvml\": {\"code\": 7", stdout);`,
		"no end":          `for (int i = 0; i < 9000000; i++) putchar('x');`,
		"many lines":      `for (int i = 0; i < 100000; i++) puts("{\"at\": \"\\u0000\"}");`,
		"no characters":   `for (int i = 0; i < 70000; i++) putchar(i & 255);`,
		"errors, a flood": `for (int i = 0; i < 100000; i++) fputs("error\n", stderr);`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(nvml.PathEnv, shared(t, string(source)+"\n#include <stdio.h>\n__attribute__((constructor)) static void noise(void) { "+body+" fflush(stdout); }\n"))
			p := &prober{Config: Config{Executable: os.Args[0], Limit: time.Minute, Say: func(string) {}}, facts: &doctor.Facts{}}
			p.askNVML(context.Background())
			if n := p.facts.NVML; n.Code != 0 || len(n.Cards) != 2 || n.Error != "" || n.TimedOut {
				t.Errorf("%d cards, %+v", len(n.Cards), n.Child)
			}
		})
	}
}

func ids(d *doctor.Diagnosis) string {
	var out []string
	for _, f := range d.Findings {
		out = append(out, f.Rule)
	}
	return strings.Join(out, " ")
}

// TestCUDATells: what the driver's library tells, and the code with which it refuses.
func TestCUDATells(t *testing.T) {
	s, err := simcuda.New(simcuda.Config{Devices: 2})
	if err != nil {
		t.Fatal(err)
	}
	api := s.API()
	api.DevicePrimaryCtxRetain = func(driver.Device) (driver.Context, driver.Result) {
		t.Error("a context was made")
		return 0, driver.DeviceUnavailable
	}
	t.Setenv(libcuda.PathEnv, shimtest.Install(t, api))
	c := answer(t)
	if c.Code != 0 || len(c.Cards) != 2 || c.Version < 11040 || c.Cards[1].Index != 1 || c.Cards[0].Compute[0] < 7 || c.Cards[0].Memory == 0 || c.Missing || c.Error != "" {
		t.Errorf("%+v", c)
	}
	api = s.API()
	api.Init = func(uint32) driver.Result { return driver.DriverMismatch }
	t.Setenv(libcuda.PathEnv, shimtest.Install(t, api))
	if c := answer(t); c.Code != int(driver.DriverMismatch) || c.Name == "" || c.Missing || c.Error != "" {
		t.Errorf("%+v", c)
	}
	t.Setenv(libcuda.PathEnv, "/nonexistent/libcuda.so.1")
	if c := answer(t); !c.Missing || c.Code != 0 {
		t.Errorf("%+v", c)
	}
}

// answer asks CUDA in this process, whose shim forwards to a table here.
func answer(t *testing.T) *doctor.CUDA {
	t.Helper()
	var out bytes.Buffer
	if err := Answer("cuda", &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last line
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.CUDA == nil {
		t.Fatal(err, out.String())
	}
	return last.CUDA
}

// TestNoProgram: a child that cannot be started is told.
func TestNoProgram(t *testing.T) {
	p := &prober{Config: Config{Executable: "/nonexistent/warpline", Limit: time.Second, Say: func(string) {}}, facts: &doctor.Facts{}}
	p.askNVML(context.Background())
	if !p.facts.NVML.Asked || p.facts.NVML.Error == "" {
		t.Errorf("%+v", p.facts.NVML)
	}
	if Answer("nccl", &bytes.Buffer{}) == nil {
		t.Error("a library that nobody knows is asked")
	}
}
