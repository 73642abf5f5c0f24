package simrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Python is the module by which Python programs use Serve.
func Python() ([]byte, error) { return fs.ReadFile(python, "simgpu.py") }

// server runs kernels for another process, launch by launch, on one card.
type server struct {
	card    cards.Card
	options gpusim.Options
	memory  *os.File // in which arrays come and go
	dev     *gpusim.Device
	modules []*served
}

// served is a module that the other process has loaded.
type served struct {
	file *file
	meta *meta
	prog *gpusim.Program // on the device; nil once that is a fresh one
}

// request is a line of the other process.
type request struct {
	Op string `json:"op"` // open, load, launch or cards

	Card, Check, Schedule, Numerics string // of open
	Seed                            uint64
	StepLimit                       int64 `json:"step_limit"`
	Memory                          string

	Name, Text, Meta string // of load

	Module              int // of launch
	Kernel, Grid, Block string
	Shared              int
	Args                []servedArg
}

// servedArg is an argument of a launch: a word of the command line, a number for the parameter's type, or an array in the shared memory.
type servedArg struct {
	Word   string `json:"word"`
	Number string `json:"number"`
	Type   string `json:"type"` // of an array
	Shape  []int  `json:"shape"`
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
	Fresh  bool   `json:"fresh"` // nobody has written it
}

// answer is what comes back on a line.
type answer struct {
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	Cards    []string       `json:"cards,omitempty"`
	Compute  int            `json:"compute,omitempty"` // capability of the card, ten times the major number and the minor one
	Module   int            `json:"module"`
	Kernels  map[string]int `json:"kernels,omitempty"` // with their numbers of parameters
	Findings []Finding      `json:"findings,omitempty"`
	Result   *Result        `json:"result,omitempty"`
	Text     string         `json:"text,omitempty"`
}

// Serve answers the lines of in, which are JSON, until there are no more.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{}
	defer func() {
		if s.memory != nil {
			s.memory.Close()
		}
	}()
	lines, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the other process has ended, or wants no more
		}
		a := s.answered(ctx, line)
		if err := json.NewEncoder(w).Encode(a); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (s *server) answered(ctx context.Context, line []byte) *answer {
	var q request
	err := json.Unmarshal(line, &q)
	var a *answer
	if err == nil {
		a, err = s.answer(ctx, &q)
	}
	var known *advice.Error
	switch {
	case err == nil:
		return a
	case errors.As(err, &known):
		return &answer{Error: known.Text, Hint: known.Hint}
	}
	return &answer{Error: err.Error()}
}

func (s *server) answer(ctx context.Context, q *request) (*answer, error) {
	switch {
	case q.Op == "cards":
		return &answer{Cards: cards.Names()}, nil
	case q.Op == "open":
		err := s.open(q)
		return &answer{Compute: 10*s.card.Compute[0] + s.card.Compute[1]}, err
	case s.dev == nil:
		return nil, advice.Failf("open first", "there is no card yet")
	case q.Op == "load":
		return s.load(q)
	case q.Op == "launch":
		return s.launch(ctx, q)
	}
	return nil, advice.Failf("use the simgpu.py of the same warpline: warpline sim python", "no operation %q", q.Op)
}

func (s *server) open(q *request) (err error) {
	if s.options, err = options(Config{Checks: q.Check, Seed: q.Seed, Schedule: q.Schedule, Numerics: q.Numerics, StepLimit: q.StepLimit}); err != nil {
		return err
	}
	if s.card, err = findCard(q.Card); err != nil {
		return err
	}
	if s.memory, err = os.OpenFile(q.Memory, os.O_RDWR, 0); err != nil {
		return advice.Failf("use the simgpu.py of the same warpline: warpline sim python", "no shared memory: %v", err)
	}
	s.fresh()
	return nil
}

// fresh takes a new device in the place of one that is in an error, or that holds what a refused launch has left.
func (s *server) fresh() {
	s.dev = gpusim.NewDevice(simulated(s.card), s.options.Checks&gpusim.Initcheck != 0)
	for _, m := range s.modules {
		m.prog = nil
	}
}

func (s *server) load(q *request) (*answer, error) {
	f, err := parseFile(q.Name, []byte(q.Text))
	if err != nil {
		return nil, err
	}
	m := &served{file: f}
	if q.Meta != "" {
		if m.meta, err = parseMeta("the metadata of "+q.Name, []byte(q.Meta)); err != nil {
			return nil, err
		}
	}
	if m.prog, err = f.load(s.dev); err != nil {
		return nil, err
	}
	kernels := map[string]int{}
	for _, fn := range f.kernels() {
		kernels[fn.Name] = len(fn.Params)
	}
	s.modules = append(s.modules, m)
	return &answer{Module: len(s.modules) - 1, Kernels: kernels}, nil
}

func (s *server) launch(ctx context.Context, q *request) (a *answer, err error) {
	if q.Module < 0 || q.Module >= len(s.modules) {
		return nil, advice.Failf("load it first", "there is no module %d", q.Module)
	}
	m := s.modules[q.Module]
	defer func() {
		if err != nil || a.Result.Fault != nil {
			s.fresh()
		}
	}()
	j, fn, err := s.job(m, q)
	if err != nil {
		return nil, err
	}
	if err := s.bind(j, fn, m.meta, q); err != nil {
		return nil, err
	}
	rep, err := j.launch(ctx, nil)
	var fault *gpusim.Fault
	if err != nil && !errors.As(err, &fault) {
		return nil, refused(err)
	}
	r := j.result(rep, fault)
	a = &answer{Result: r, Findings: r.Findings}
	if r.Found > 0 {
		a.Text = r.Text(widest)
	}
	if fault != nil {
		return a, nil
	}
	return a, s.give(j, q)
}

// widest is room enough for the tables of a result.
const widest = 100

// job is a launch without its arguments.
func (s *server) job(m *served, q *request) (*job, *ptx.Func, error) {
	j := &job{card: s.card, file: m.file, options: s.options, dev: s.dev}
	fn, err := m.file.choose(q.Kernel, m.meta)
	if err != nil {
		return nil, nil, err
	}
	if m.prog == nil {
		if m.prog, err = m.file.load(s.dev); err != nil {
			return nil, nil, err
		}
	}
	j.kernel = m.prog.Kernel(fn.Name)
	if err := m.file.refused(s.dev, j.kernel.Refused()); err != nil {
		return nil, nil, err
	}
	return j, fn, j.dimensions(Config{Grid: q.Grid, Block: q.Block, Shared: q.Shared}, m.meta)
}

// bind puts the arguments on the device.
func (s *server) bind(j *job, fn *ptx.Func, m *meta, q *request) error {
	var words []word
	for i := range q.Args {
		w, err := s.word(fn, i, &q.Args[i])
		if err != nil {
			return err
		}
		words = append(words, w)
	}
	words, err := m.scratch(words, fn, j.grid)
	if err != nil {
		return err
	}
	if err := match(fn, words); err != nil {
		return m.missed(err, fn, words)
	}
	return j.bind(words)
}

// word is an argument as the command line has it.
func (s *server) word(fn *ptx.Func, i int, a *servedArg) (word, error) {
	switch {
	case a.Word != "":
		list, err := parseWords([]string{a.Word})
		if err != nil {
			return word{}, err
		}
		return list[0], nil
	case a.Number != "":
		text := a.Number
		if i < len(fn.Params) {
			text = numberFor(fn.Params[i], a.Number)
		}
		list, err := parseWords([]string{text})
		if err != nil {
			return word{}, err
		}
		return list[0], nil
	}
	e, ok := elems[a.Type]
	if !ok || a.Bytes < 0 || int64(a.Bytes) > maxBuffers {
		return word{}, advice.Failf("the types are "+elemNames, "argument %d is an array of %q with %d bytes", i, a.Type, a.Bytes)
	}
	w := word{text: fmt.Sprintf("%s%s", a.Type, shapeText(a.Shape)), kind: newBuffer, elem: e, shape: a.Shape, bytes: a.Bytes}
	if a.Fresh {
		return w, nil
	}
	w.kind, w.data = fromFile, make([]byte, a.Bytes)
	if _, err := s.memory.ReadAt(w.data, a.Offset); err != nil {
		return word{}, advice.Failf("use the simgpu.py of the same warpline", "argument %d: %v", i, err)
	}
	return w, nil
}

// numberFor is a number as a word of the type of a parameter.
func numberFor(v *ptx.Var, text string) string {
	bits, letter := v.Type.Bits(), "u"
	kind := v.Type.Kind()
	switch fraction := strings.ContainsAny(text, ".eEni"); {
	case kind == ptx.KindFloat || kind == ptx.KindBits && fraction:
		letter = "f"
	case strings.HasPrefix(text, "-"):
		letter = "i"
	}
	return fmt.Sprintf("%s%d:%s", letter, bits, text)
}

// give puts the arrays back where they came from, and frees what the launch had.
func (s *server) give(j *job, q *request) error {
	for i := range j.args {
		a := &j.args[i]
		if a.kind == scalar || a.kind == null {
			continue
		}
		if i < len(q.Args) && q.Args[i].Type != "" {
			data := make([]byte, a.bytes)
			if err := j.dev.Read(data, a.addr); err != nil {
				return refused(err)
			}
			if _, err := s.memory.WriteAt(data, q.Args[i].Offset); err != nil {
				return err
			}
		}
		if err := j.dev.Free(a.addr, "the end of the launch"); err != nil {
			return refused(err)
		}
	}
	return nil
}
