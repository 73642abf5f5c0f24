package check

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

//go:embed torch.py
var script string

// PythonEnv names the Python that has PyTorch.
const PythonEnv = "WARPLINE_PYTHON"

// Comparison is a piece of work done here and by PyTorch on the same inputs.
type Comparison struct {
	Job     string  `json:"job"`
	Shape   string  `json:"shape"`
	DType   string  `json:"dtype"`
	Ours    float64 `json:"seconds"`
	Theirs  float64 `json:"torch_seconds"`
	Ratio   float64 `json:"ratio"`   // of speeds: above 1 we are faster
	Apart   float64 `json:"apart"`   // |ours - theirs| / |theirs|, over all results
	Allowed float64 `json:"allowed"` // of Apart
	Error   string  `json:"error,omitempty"`
}

// Failed reports whether the results differ by more than is allowed, or there are none.
func (c *Comparison) Failed() bool { return c.Error != "" || c.Apart > c.Allowed }

// Torch is a comparison with PyTorch.
type Torch struct {
	Version string       `json:"version"` // of PyTorch
	Device  string       `json:"device"`  // "cpu" or the name of the card that PyTorch used
	Rows    []Comparison `json:"rows"`
}

// Failed is the number of jobs that failed.
func (t *Torch) Failed() (n int) {
	for i := range t.Rows {
		if t.Rows[i].Failed() {
			n++
		}
	}
	return n
}

// FindPython returns a Python that imports torch: that of WARPLINE_PYTHON, or the first of python3 and python.
func FindPython(ctx context.Context) (string, error) {
	names := []string{"python3", "python"}
	if p := os.Getenv(PythonEnv); p != "" {
		names = []string{p}
	}
	var why []string
	for _, name := range names {
		out, err := exec.CommandContext(ctx, name, "-c", "import torch").CombinedOutput()
		if err == nil {
			return name, nil
		}
		text := err.Error()
		if said := lastLine(out); said != "" {
			text = name + ": " + said
		}
		why = append(why, text)
	}
	return "", &Error{"no Python with PyTorch: " + strings.Join(why, "; "), "pip install torch, name a Python that has it in " + PythonEnv + ", or leave --torch out"}
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// question is what torch.py is asked.
type question struct {
	Job    string `json:"job"`
	Device string `json:"device"`
	In     string `json:"in"`
	Out    string `json:"out"`
	Turns  int    `json:"turns"`
	Losses int    `json:"losses"`
	Layers int    `json:"layers"`
	Heads  int    `json:"heads"`
}

// torch is a running torch.py.
type torch struct {
	in  io.WriteCloser
	out *json.Decoder
	err bytes.Buffer // what it said on its standard error; to be read once it has ended
	cmd *exec.Cmd
	dir string
}

// Comparable is an error with a hint unless the device of a name gives results.
func Comparable(name string) error {
	_, dev, err := open(name)
	if err == nil && dev.Info().Null {
		return &Error{name + " computes nothing, so there is nothing to compare", "leave --torch out, or give --device cuda:N, cpu or sim:N"}
	}
	return err
}

// CompareTorch does the jobs on a device and in PyTorch: on the same card if ours is a real one and PyTorch sees it, else on the
// host. A cancelled
// context ends it with what was done.
func CompareTorch(ctx context.Context, where, python string, progress func(done, all int, name string)) (*Torch, error) {
	name, err := device.ParseName(where)
	if err != nil {
		return nil, err
	}
	return compare(ctx, name, python, jobsFor(name.Kind), progress)
}

func compare(ctx context.Context, name device.Name, python string, jobs []job, progress func(done, all int, name string)) (*Torch, error) {
	env, err := tensor.Open(name.String())
	if err != nil {
		return nil, err
	}
	if progress != nil {
		progress(0, len(jobs), "starting "+python)
	}
	p, hello, err := startTorch(ctx, python)
	if err != nil {
		return nil, err
	}
	t := &Torch{Version: hello.Torch, Device: "cpu"}
	place := "cpu"
	if name.Kind == "cuda" && name.Index < len(hello.CUDA) {
		t.Device, place = hello.CUDA[name.Index], name.String()
	}
	for i, j := range jobs {
		if progress != nil {
			progress(i, len(jobs), j.name)
		}
		row := p.compare(env, j, place)
		if ctx.Err() != nil {
			break
		}
		t.Rows = append(t.Rows, row)
	}
	err = p.close()
	if ctx.Err() != nil {
		return t, nil
	}
	return t, err
}

// greeting is the first thing that torch.py says.
type greeting struct {
	Torch string   // version
	CUDA  []string // names of the cards
}

func startTorch(ctx context.Context, python string) (p *torch, g greeting, err error) {
	p = &torch{cmd: exec.CommandContext(ctx, python, "-c", script)}
	p.cmd.Stderr, p.cmd.WaitDelay = &p.err, 5*time.Second
	if p.dir, err = os.MkdirTemp("", "warpline-check-"); err != nil {
		return nil, g, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, g, errors.Join(err, os.RemoveAll(p.dir))
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	if err := p.out.Decode(&g); err != nil {
		return nil, g, cmp.Or(p.close(), fmt.Errorf("%s has ended without a word", python))
	}
	return p, g, nil
}

// close ends Python. The error is how it failed, with the last line it said.
func (p *torch) close() error {
	failed := p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		failed = &Error{fmt.Sprintf("%s: %v: %s", p.cmd.Path, err, lastLine(p.err.Bytes())), "run it by hand: " + p.cmd.Path + " -c 'import torch; print(torch.rand(3))'"}
	}
	return errors.Join(failed, os.RemoveAll(p.dir))
}

// losses is how many steps of training are compared.
const losses = 3

// compare does a job on both sides.
func (p *torch) compare(env *tensor.Env, j job, place string) Comparison {
	c := Comparison{Job: j.name, Shape: j.shape(), DType: j.dt.String(), Allowed: j.allowed()}
	err := tensorTry(env, func(e *tensor.Env) error {
		named, once := j.build(e, j)
		q := question{Job: j.name, Device: place, In: filepath.Join(p.dir, "in"), Out: filepath.Join(p.dir, "out"), Losses: losses, Layers: j.layers, Heads: j.heads}
		if err := save(q.In, named); err != nil {
			return err
		}
		ours := results(j, once)
		var turns int
		c.Ours, turns = measure(env, once)
		q.Turns = turns
		theirs, seconds, err := p.ask(&q)
		if err != nil {
			return err
		}
		c.Theirs, c.Ratio = seconds, seconds/c.Ours
		c.Apart, err = apart(ours, theirs)
		return err
	})
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

// tensorTry runs f in a scope, and makes an error of what it panics with.
func tensorTry(env *tensor.Env, f func(e *tensor.Env) error) (err error) {
	if _, failed := env.Try(func(e *tensor.Env) *tensor.Tensor { err = f(e); return nil }); failed != nil {
		return failed
	}
	return err
}

// ask sends a question and reads the results.
func (p *torch) ask(q *question) (y []float64, seconds float64, err error) {
	if err := json.NewEncoder(p.in).Encode(q); err != nil {
		return nil, 0, err
	}
	var a struct {
		Seconds float64
		Error   string
	}
	if err := p.out.Decode(&a); err != nil {
		return nil, 0, fmt.Errorf("no answer from PyTorch: %w", err)
	}
	if a.Error != "" {
		return nil, 0, fmt.Errorf("PyTorch: %s", a.Error)
	}
	data, err := os.ReadFile(q.Out)
	if err != nil {
		return nil, 0, err
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return nil, 0, err
	}
	e, ok := f.Lookup("y")
	if !ok {
		return nil, 0, errors.New("PyTorch gave no result")
	}
	for b := e.Data(); len(b) > 0; b = b[4:] {
		y = append(y, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return y, a.Seconds, nil
}

// results are the values of one run, or the losses of several steps.
func results(j job, once func() *tensor.Tensor) (y []float64) {
	turns := 1
	if j.steps {
		turns = losses
	}
	for range turns {
		y = append(y, once().Cast(dtype.F64).Floats()...)
	}
	return y
}

// measure times a job until a fifth of a second has passed. It has been run before, and is run once more so that the
// memory of a turn is there.
func measure(env *tensor.Env, once func() *tensor.Tensor) (seconds float64, turns int) {
	turn := func() {
		tensor.Do(env, func(*tensor.Env) *tensor.Tensor { once(); return nil })
		env.Sync()
	}
	turn()
	start := time.Now()
	for turns = 0; turns < 1 || time.Since(start) < 200*time.Millisecond; turns++ {
		turn()
	}
	return time.Since(start).Seconds() / float64(turns), turns
}

// apart is |ours - theirs| / |theirs|.
func apart(ours, theirs []float64) (float64, error) {
	if len(ours) != len(theirs) {
		return 0, fmt.Errorf("%d results here, %d from PyTorch", len(ours), len(theirs))
	}
	var d, n float64
	for i := range ours {
		d += (ours[i] - theirs[i]) * (ours[i] - theirs[i])
		n += theirs[i] * theirs[i]
	}
	if v := math.Sqrt(d / max(n, math.SmallestNonzeroFloat64)); v <= math.MaxFloat64 {
		return v, nil
	}
	return 0, errors.New("NaN or infinities among the results")
}

// save writes tensors for PyTorch.
func save(path string, named map[string]*tensor.Tensor) error {
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	var list []safetensors.Tensor
	for name, t := range named {
		t := t.To(host)
		s := safetensors.Tensor{Name: name, DType: t.DType().Safetensors(), Shape: t.Shape()}
		switch t.DType() {
		case dtype.I64:
			s.Data, _ = binary.Append(nil, binary.LittleEndian, tensor.Data[int64](t))
		case dtype.BF16:
			for _, v := range tensor.Data[dtype.BFloat16](t) {
				s.Data = binary.LittleEndian.AppendUint16(s.Data, uint16(v))
			}
		default:
			s.Data, _ = binary.Append(nil, binary.LittleEndian, tensor.Data[float32](t))
		}
		list = append(list, s)
	}
	return durable.WriteFile(path, func(w io.Writer) error { return safetensors.Write(w, nil, list) })
}
