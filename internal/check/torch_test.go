package check

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

// bePython, set in the environment, makes the test binary a Python that speaks torch.py's protocol, in one of several ways.
const bePython = "WARPLINE_TEST_PYTHON"

func TestMain(m *testing.M) {
	if how := os.Getenv(bePython); how != "" {
		os.Exit(python(how, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// untried, in the environment, is a file that is there until a Python has died.
const untried = "WARPLINE_TEST_UNTRIED"

// python is told a program, as with -c.
func python(how, program string) int {
	if how == "bare" {
		fmt.Fprintln(os.Stderr, "Traceback\nModuleNotFoundError: no torch")
		return 1
	}
	if program == "import torch" {
		return 0
	}
	if how == "mute" {
		fmt.Fprintln(os.Stderr, "Traceback\nImportError: half a torch")
		return 1
	}
	fmt.Println(`{"torch": "0.1", "cuda": ["odd"]}`)
	in := json.NewDecoder(os.Stdin)
	for {
		var q question
		if in.Decode(&q) != nil {
			return 0
		}
		switch how {
		case "hangs":
			time.Sleep(time.Hour)
		case "dies":
			fmt.Fprintln(os.Stderr, "Segmentation fault")
			return 3
		case "dies once":
			if os.Remove(os.Getenv(untried)) == nil {
				fmt.Fprintln(os.Stderr, "Segmentation fault")
				return 3
			}
		case "refuses":
			fmt.Println(`{"error": "RuntimeError: no"}`)
			continue
		}
		if err := product(&q, how); err != nil {
			fmt.Printf("{\"error\": %q}\n", err)
			continue
		}
		fmt.Println(`{"seconds": 0.5}`)
	}
}

// product is a matrix product in float64, spoilt in the way that how says.
func product(q *question, how string) error {
	raw, err := os.ReadFile(q.In)
	if err != nil {
		return err
	}
	f, err := safetensors.Parse(raw)
	if err != nil {
		return err
	}
	a, okA := f.Lookup("a")
	b, okB := f.Lookup("b")
	if !okA || !okB || q.Job != "gemm" || q.Rounds < 1 || q.Warm <= 0 || q.Device != "cpu" && q.Device != "cuda:0" {
		return fmt.Errorf("asked for %+v", q)
	}
	value := func(e *safetensors.Entry, i int) float64 {
		if e.DType == "BF16" {
			return float64(dtype.BFloat16(binary.LittleEndian.Uint16(e.Data()[2*i:])).Float32())
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(e.Data()[4*i:])))
	}
	m, k, n := a.Shape[0], a.Shape[1], b.Shape[1]
	y := make([]float32, m*n)
	for i := range y {
		var sum float64
		for j := range k {
			sum += value(a, i/n*k+j) * value(b, j*n+i%n)
		}
		y[i] = float32(sum)
	}
	switch how {
	case "wrong":
		y[0] += 1
	case "nan":
		y[3] = float32(math.NaN())
	case "short":
		y = y[1:]
	}
	data, err := binary.Append(nil, binary.LittleEndian, y)
	if err != nil {
		return err
	}
	return durable.WriteFile(q.Out, func(w io.Writer) error {
		return safetensors.Write(w, nil, []safetensors.Tensor{{Name: "y", DType: "F32", Shape: []int{len(y)}, Data: data}})
	})
}

var products = []job{{name: "gemm", dt: dtype.F32, sizes: []int{8, 9, 7}, build: gemm}, {name: "gemm", dt: dtype.BF16, sizes: []int{5, 16, 3}, build: gemm}}

// TestTorch compares with a Python that computes right, and with such as do not.
func TestTorch(t *testing.T) {
	for how, want := range map[string]string{"right": "", "wrong": "apart, allowed is", "nan": "NaN", "short": "results here", "refuses": "RuntimeError: no", "dies": "no answer from PyTorch"} {
		t.Setenv(bePython, how)
		jobs := products[:1]
		if how == "right" {
			jobs = products
		}
		got, err := compare(t.Context(), device.Name{Kind: "cpu"}, os.Args[0], jobs, nil)
		if err != nil || how == "dies" && !strings.Contains(got.Rows[0].Error, "Segmentation fault") {
			t.Fatalf("%s: %v, %+v", how, err, got)
		}
		failed, text := len(jobs), got.Text(100)
		if how == "right" {
			failed = 0
		}
		if len(got.Rows) != len(jobs) || got.Failed() != failed || got.Version != "0.1" || !strings.Contains(text, want) {
			t.Errorf("%s: %d failed\n%s", how, got.Failed(), text)
		}
		if r := got.Rows[0]; how == "right" && (r.Ours <= 0 || r.Theirs != 0.5 || math.Abs(r.Ratio*r.Ours-0.5) > 1e-9 || r.Work.Kernels != 1 || r.Work.FLOPs != 2*8*9*7 || r.Apart <= 0 || r.Shape != "8×9×7") {
			t.Errorf("%+v", r)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// TestTorchAgain: a Python that dies costs its own row, and another answers the rest.
func TestTorchAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "untried")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(untried, file)
	t.Setenv(bePython, "dies once")
	got, err := compare(t.Context(), device.Name{Kind: "cpu"}, os.Args[0], products, nil)
	if err != nil || len(got.Rows) != 2 || !strings.Contains(got.Rows[0].Error, "Segmentation fault") || got.Rows[1].Failed() {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestMeasureMedian: a turn of any length is measured in rounds of it, of which the odd one out does not count.
func TestMeasureMedian(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ first, turn, want float64 }{{0.5, 1e-3, 1e-3}, {2, 0.5, 0.5}, {0.3, 1e-5, 1e-5}} {
		synctest.Test(t, func(t *testing.T) {
			turns := 0
			var seconds float64
			if err := try(env, func(e *tensor.Env) error {
				seconds = timings.measure(e, func(*tensor.Env) *tensor.Tensor {
					s := c.turn
					if turns++; turns == 1 {
						s = c.first
					}
					time.Sleep(time.Duration(s * 1e9))
					return nil
				})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if math.Abs(seconds/c.want-1) > 1e-6 || turns < 3 {
				t.Errorf("a turn of %v s is measured as %v s in %d turns", c.turn, seconds, turns)
			}
		})
	}
}

// TestMemoryIsGivenBack: while PyTorch works, no cache of ours keeps the card's memory from it.
func TestMemoryIsGivenBack(t *testing.T) {
	t.Setenv(bePython, "right")
	env, err := tensor.Open("counting")
	if err != nil {
		t.Fatal(err)
	}
	left := []int64{}
	got, err := compare(t.Context(), device.Name{Kind: "counting"}, os.Args[0], products, func(_, _ int, name string) {
		left = append(left, env.Device().Memory().Reserved.Current)
	})
	if err != nil || got.Failed() != 0 {
		t.Fatalf("%v\n%s", err, got.Text(100))
	}
	if m := env.Device().Memory(); m.Reserved.Current != 0 || m.Reserved.Peak == 0 || left[len(left)-1] != 0 {
		t.Errorf("%d bytes are reserved after each job, at the end %v", left, m)
	}
}

// TestTorchInterrupted ends a Python that does not answer.
func TestTorchInterrupted(t *testing.T) {
	t.Setenv(bePython, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	got, err := compare(ctx, device.Name{Kind: "cpu"}, os.Args[0], products, func(done, all int, name string) {
		if name == "gemm" {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	})
	if err != nil || len(got.Rows) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFindPython(t *testing.T) {
	t.Setenv(PythonEnv, os.Args[0])
	t.Setenv(bePython, "right")
	if p, err := FindPython(t.Context()); p != os.Args[0] || err != nil {
		t.Error(p, err)
	}
	t.Setenv(bePython, "bare")
	_, err := FindPython(t.Context())
	if e, ok := err.(*advice.Error); !ok || !strings.Contains(e.Text, "ModuleNotFoundError: no torch") || !strings.Contains(e.Hint, PythonEnv) {
		t.Error(err)
	}
	t.Setenv(bePython, "mute")
	if _, err := compare(t.Context(), device.Name{Kind: "cpu"}, os.Args[0], products, nil); err == nil || !strings.Contains(err.Error(), "half a torch") {
		t.Error(err)
	}
	t.Setenv(PythonEnv, "no-such-python")
	if _, err := FindPython(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-python") {
		t.Error(err)
	}
}

// TestJobs: sizes are given for every kind of device and amount of memory.
func TestJobs(t *testing.T) {
	for _, kind := range []string{"cpu", "cuda", "sim"} {
		for _, memory := range []int64{0, 4 << 30, 8 << 30, 80 << 30} {
			for _, j := range jobsFor(kind, memory) {
				if j.name == "" || j.build == nil || len(j.sizes) < 2 || (j.allowed() != 1e-3) == j.steps || j.steps && j.name == "gpt step" && j.layers*j.heads == 0 {
					t.Errorf("%s: %+v", kind, j)
				}
			}
		}
	}
}

// TestJobsFit plans the largest job of cards of several sizes: it leaves the card room for PyTorch's way of doing it.
func TestJobsFit(t *testing.T) {
	batches := map[int]bool{}
	for _, memory := range []int64{6 << 30, 8 << 30, 16 << 30, 24 << 30} {
		jobs := jobsFor("cuda", memory)
		j := jobs[len(jobs)-1]
		batches[j.sizes[0]] = true
		env, err := tensor.Fresh("null:h200")
		if err != nil {
			t.Fatal(err)
		}
		if err := try(env, func(e *tensor.Env) error {
			_, once := j.build(e, j)
			for range 2 {
				e.Do(func(e *tensor.Env) *tensor.Tensor { once(e); return nil })
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if peak := env.Device().Memory().Reserved.Peak; peak > memory/3*2 || peak < 1<<30 {
			t.Errorf("%s of %s takes %d of %d bytes", j.name, j.shape(), peak, memory)
		}
	}
	if len(batches) != 4 || jobsFor("cuda", 4<<30)[7].sizes[3] != 128 {
		t.Errorf("batches %v", batches)
	}
}

// counting is a CPU that counts how often somebody waits for it.
type counting struct {
	device.Device
	syncs *int
}

func (c counting) NewQueue() (device.Queue, error) {
	q, err := c.Device.NewQueue()
	return countingQueue{q, c.syncs}, err
}

type countingQueue struct {
	device.Queue
	syncs *int
}

func (q countingQueue) Sync() error {
	*q.syncs++
	return q.Queue.Sync()
}

var waited int

func init() {
	device.Register("counting", device.Engine{Open: func(device.Name) (device.Device, error) { return counting{cpu.New(), &waited}, nil }})
}

// TestMeasure: turns are queued without waiting, as torch.py's are, and what they make does not pile up.
func TestMeasure(t *testing.T) {
	env, err := tensor.Fresh("counting")
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is let go is let go by its scope
	for _, j := range jobsFor("sim", 0) {
		if err := try(env, func(e *tensor.Env) error {
			_, once := j.build(e, j)
			results(e, j, once)
			used, syncs, turns := env.Device().Memory().Used, waited, 0
			seconds := timing{Round: 0.02, Most: 50, Rounds: 2, Enough: 1}.measure(e, func(e *tensor.Env) *tensor.Tensor {
				turns++
				return once(e)
			})
			if waits := waited - syncs; waits > 2+2 || turns < waits || seconds <= 0 {
				t.Errorf("%s: %d waits in %d turns, %g s each", j.name, waits, turns, seconds)
			}
			if more := env.Device().Memory().Used - used; more > 1<<10 {
				t.Errorf("%s: %d turns leave %d bytes", j.name, turns, more)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestSave: what torch.py does not read is refused, not written as something else.
func TestSave(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []dtype.DType{dtype.F32, dtype.BF16, dtype.I64, dtype.F64, dtype.Bool} {
		path := filepath.Join(t.TempDir(), "in")
		err := save(path, map[string]*tensor.Tensor{"a": env.Zeros(2, 3).Cast(dt)})
		if read := strings.Contains(script, `"`+dt.Safetensors()+`": torch.`); read != (err == nil) {
			t.Errorf("%s: %v", dt, err)
		}
	}
}
