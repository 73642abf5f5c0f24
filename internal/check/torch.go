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
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/tensor"
)

//go:embed torch.py
var script string

// PythonEnv names the Python that has PyTorch.
const PythonEnv = "WARPLINE_PYTHON"

// Comparison is a piece of work done here and by PyTorch on the same inputs.
type Comparison struct {
	Job     string      `json:"job"`
	Shape   string      `json:"shape"`
	DType   string      `json:"dtype"`
	Ours    float64     `json:"seconds"`
	Theirs  float64     `json:"torch_seconds"`
	Ratio   float64     `json:"ratio"`   // of speeds: above 1 we are faster
	Apart   float64     `json:"apart"`   // |ours - theirs| / |theirs|, over all results
	Allowed float64     `json:"allowed"` // of Apart
	Work    device.Work `json:"work"`    // of a turn here
	Error   string      `json:"error,omitempty"`
}

// Failed reports whether the results differ by more than is allowed, or there are none.
func (c *Comparison) Failed() bool { return c.Error != "" || c.Apart > c.Allowed }

// Torch is a comparison with PyTorch.
type Torch struct {
	Version string       `json:"version"` // of PyTorch
	Device  string       `json:"device"`  // "cpu" or the name of the card that PyTorch used
	Rows    []Comparison `json:"rows"`
	Broken  string       `json:"broken,omitempty"` // the job with which the device went out of use
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
	return "", advice.Failf("pip install torch, name a Python that has it in "+PythonEnv+", or leave --torch out", "no Python with PyTorch: %s", strings.Join(why, "; "))
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
	Losses int    `json:"losses"`
	Layers int    `json:"layers"`
	Heads  int    `json:"heads"`
	timing
}

// torch is a running torch.py.
type torch struct {
	in   io.WriteCloser
	out  *json.Decoder
	err  bytes.Buffer // what it said on its standard error; to be read once it has ended
	cmd  *exec.Cmd
	ctx  context.Context // of cmd
	kill context.CancelCauseFunc
	dir  string

	failed bool // a question has no answer but an error
	ended  bool
}

// Comparable is an error with a hint unless the device of a name gives results.
func Comparable(name string) error {
	_, dev, err := open(name)
	if err == nil && dev.Info().Null {
		return advice.Failf("leave --torch out, or give --device cuda:N, cpu or sim:N", "%s computes nothing, so there is nothing to compare", name)
	}
	return err
}

// CompareTorch does the jobs on a device and in PyTorch: on the same card if ours is a real one and PyTorch sees it, else
// on the host. A cancelled context ends it with what was done.
func CompareTorch(ctx context.Context, where, python string, progress func(done, all int, name string)) (*Torch, error) {
	name, dev, err := open(where)
	if err != nil {
		return nil, err
	}
	return compare(ctx, name, python, jobsFor(name.Kind, dev.Info().Memory), progress)
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
	defer func() { _ = p.close() }() // it has answered all it was asked, or a row says why not
	t := &Torch{Version: hello.Torch, Device: "cpu"}
	place := "cpu"
	if name.Kind == "cuda" && name.Index < len(hello.CUDA) {
		t.Device, place = hello.CUDA[name.Index], name.String()
	}
	for i, j := range jobs {
		if progress != nil {
			progress(i, len(jobs), j.name)
		}
		row, broken := p.compare(ctx, env, j, place, patienceWith(name))
		if ctx.Err() != nil {
			break
		}
		if t.Rows = append(t.Rows, row); broken != nil {
			t.Broken = j.name
			break
		}
		if p.failed && i+1 < len(jobs) { // an error of the card may leave Python's half of it useless, too
			_ = p.close() // likewise
			if p, _, err = startTorch(ctx, python); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// greeting is the first thing that torch.py says.
type greeting struct {
	Torch string   // version
	CUDA  []string // names of the cards
}

func startTorch(ctx context.Context, python string) (p *torch, g greeting, err error) {
	ctx, kill := context.WithCancelCause(ctx)
	p = &torch{cmd: exec.CommandContext(ctx, python, "-c", script), ctx: ctx, kill: kill}
	p.cmd.Stderr, p.cmd.WaitDelay = &p.err, 5*time.Second
	if p.dir, err = os.MkdirTemp("", "warpline-check-"); err != nil {
		kill(err)
		return p, g, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		kill(err)
		return p, g, errors.Join(err, os.RemoveAll(p.dir))
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	if err := p.read(&g); err != nil {
		return p, g, cmp.Or(p.close(), fmt.Errorf("%s has ended without a word", python))
	}
	return p, g, nil
}

// How long Python may take for an answer, its libraries' first use among it, and to end.
const (
	longestAnswer = 5 * time.Minute
	longestEnd    = 10 * time.Second
)

// within ends Python after a while.
func (p *torch) within(d time.Duration) *time.Timer {
	return time.AfterFunc(d, func() { p.kill(fmt.Errorf("it was stopped after %v", d)) })
}

// read reads an answer, and ends a Python that gives none for too long.
func (p *torch) read(v any) error {
	defer p.within(longestAnswer).Stop()
	return p.out.Decode(v)
}

// close ends Python. The error is how it failed, with the last line it said.
func (p *torch) close() error {
	if p.ended || p.out == nil {
		return nil
	}
	p.ended = true
	defer p.kill(nil)
	defer p.within(longestEnd).Stop()
	failed := p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		err = cmp.Or(context.Cause(p.ctx), err)
		failed = advice.Failf("run it by hand: "+p.cmd.Path+" -c 'import torch; print(torch.rand(3))'", "%s: %v: %s", p.cmd.Path, err, lastLine(p.err.Bytes()))
	}
	return errors.Join(failed, os.RemoveAll(p.dir))
}

// ask sends a question and reads the results.
func (p *torch) ask(q *question) (y []float64, seconds float64, err error) {
	var a struct {
		Seconds float64
		Error   string
	}
	err = json.NewEncoder(p.in).Encode(q)
	if err == nil {
		err = p.read(&a)
	}
	if p.failed = err != nil || a.Error != ""; err != nil {
		return nil, 0, fmt.Errorf("no answer from PyTorch: %w", cmp.Or(p.close(), err))
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
	y = make([]float64, 0, len(e.Data())/4)
	for b := e.Data(); len(b) > 0; b = b[4:] {
		y = append(y, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return y, a.Seconds, nil
}
