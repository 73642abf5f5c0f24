package exercise

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/simrun"
)

// clangLine makes PTX of a puzzle's CUDA C++ without anything of NVIDIA's.
const clangLine = "clang -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 -O2 -include puzzle.h -S kernel.cu -o kernel.ptx"

// puzzle is a kernel to be mended, with what it is run on and what must come out. In _files/puzzles are NAME.start and NAME.solution,
// in CUDA C++ and as the PTX that build.sh makes of it.
type puzzle struct {
	name, title, about string
	formula            string // what must come out, for hints
	hints              []string
	grid, block        string
	inputs             []int // elements of each input
	numbers            []int // behind the output
	output             int   // elements
	want               func(in [][]float32) []float32
	quiet              bool // shared memory must be used, without bank conflicts
}

// files are those of a form of it.
func (p *puzzle) files(form string) (list []File, err error) {
	own := p.name + "." + form
	for _, f := range [][2]string{{"kernel.cu", own + ".cu"}, {"kernel.ptx", own + ".ptx"}, {"puzzle.h", "puzzle.h"}} {
		text, err := fs.ReadFile(files, "_files/puzzles/"+f[1])
		if err != nil {
			return nil, err
		}
		list = append(list, File{f[0], string(text)})
	}
	return list, nil
}

// input is what an input holds: numbers that differ from element to element, small enough for sums to be exact.
func input(k, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32((i*(7+4*k)+3*k)%23) - 11
	}
	return list
}

// check runs the kernel of a folder. Its tests are: it ends, nothing is found, the numbers are right, and no bank conflicts where that
// is asked.
func (p *puzzle) check(ctx context.Context, e *Exercise, dir string) (*Report, error) {
	if newer(filepath.Join(dir, "kernel.cu"), filepath.Join(dir, "kernel.ptx")) {
		return nil, advice.Failf("compile it: "+clangLine, "kernel.cu is newer than kernel.ptx, which is what is judged")
	}
	temp, err := os.MkdirTemp("", "puzzle")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	var in [][]float32
	c := simrun.Config{File: filepath.Join(dir, "kernel.ptx"), Kernel: "puzzle", Grid: p.grid, Block: p.block, Checks: "all", Card: "a100-80", StepLimit: 1e6, Registers: 32}
	for k, n := range p.inputs {
		in = append(in, input(k, n))
		name := filepath.Join(temp, strconv.Itoa(k)+".npy")
		if err := save(name, in[k]); err != nil {
			return nil, err
		}
		c.Args = append(c.Args, "@"+name)
	}
	out := filepath.Join(temp, "out.npy")
	c.Outs = []string{fmt.Sprintf("%d=%s", len(c.Args), out)}
	c.Args = append(c.Args, fmt.Sprintf("f32[%d]", p.output))
	for _, n := range p.numbers {
		c.Args = append(c.Args, "i32:"+strconv.Itoa(n))
	}
	r, err := simrun.Run(ctx, c)
	if err != nil {
		return nil, advice.Explain(err, "the kernel is called puzzle and keeps its parameters: compare with warpline learn start "+e.Name+" in another folder")
	}
	return p.judge(e, r, out, p.want(in))
}

// newer reports whether a file was written after another, a second at least.
func newer(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	return err == nil && other == nil && x.ModTime().Sub(y.ModTime()).Seconds() > 1
}

// judge makes the report of a run.
func (p *puzzle) judge(e *Exercise, r *simrun.Result, out string, want []float32) (*Report, error) {
	report := &Report{Name: e.Name}
	add := func(name, trouble, hint string) {
		report.Tests = append(report.Tests, Test{Name: name, Pass: trouble == "", Output: trouble})
		if trouble != "" && report.Hint == "" {
			report.Hint = hint
		}
	}
	found, hint := p.found(r)
	if r.Fault != nil {
		add("ends", "the kernel was stopped, by what checks tell", hint)
		add("checks", found, hint)
		add("numbers", "there are none of a kernel that was stopped", hint)
		return report, nil
	}
	got, err := load(out)
	if err != nil {
		return nil, err
	}
	add("ends", "", "")
	add("checks", found, hint)
	wrong, hint := compare(got, want, p.formula)
	add("numbers", wrong, hint)
	switch {
	case p.quiet && r.SharedRequests == 0:
		add("banks", "nothing goes by way of shared memory", "without it threads beside each other read or write a column of global memory, 32 elements apart: go by way of shared memory")
	case p.quiet && r.BankConflicts > 0:
		add("banks", fmt.Sprintf("%d bank conflicts", r.BankConflicts), p.hints[0])
	case p.quiet:
		add("banks", "", "")
	}
	report.Pass = report.Hint == ""
	return report, nil
}

// launchTimeout is CUDA_ERROR_LAUNCH_TIMEOUT, of kernels that do not end.
const launchTimeout = 702

// found is the finding that says most, and what it says of the cause: a race before others, since what is read too early is often
// unwritten as well.
func (p *puzzle) found(r *simrun.Result) (text, hint string) {
	all := r.Findings
	if len(all) == 0 {
		return "", p.hints[0]
	}
	f := all[0]
	for _, other := range all {
		if other.Check == "racecheck" && f.Check != "racecheck" {
			f = other
		}
	}
	switch {
	case f.Check == "racecheck", f.Check == "initcheck" && f.Space == "shared":
		hint = "a thread reads in shared memory what another writes, and nothing lies between: a __syncthreads() (bar.sync 0 in PTX) that all threads reach"
	case f.Check == "global":
		hint = "two threads are at one element of global memory: work out the index of both that are named, as each has elements of its own: " + p.formula
	case f.Check == "memcheck":
		hint = "a thread reads or writes beside the data: work out the index of the one that is named. If it has nothing to do let only those go on whose element is there, else the index is wrong: " + p.formula
	case f.Check == "initcheck":
		hint = "something is read that nobody has written: " + p.hints[0]
	case f.Check == "synccheck" || strings.Contains(f.Message, "deadlock"):
		hint = "every thread of a block must reach each barrier: no barrier within an if, and no return in front of one"
	case r.Fault != nil && r.Fault.Code == launchTimeout:
		hint = "a loop never ends: does what it counts change in every round, and is there a value at which it stops?"
	default:
		hint = p.hints[0]
	}
	return f.Text(), hint
}

func save(name string, values []float32) error {
	var b bytes.Buffer
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	if err := npy.Write(&b, &npy.Array{DType: "<f4", Shape: []int{len(values)}, Data: raw}); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o600)
}

func load(name string) (values []float32, err error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	a, err := npy.Parse(raw)
	if err != nil {
		return nil, err
	}
	for i := 0; i+4 <= len(a.Data); i += 4 {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:])))
	}
	return values, nil
}

// Judge runs PTX of a puzzle, which an exercise in Go is not.
func (e *Exercise) Judge(ctx context.Context, ptx string) (*Report, error) {
	if !e.Puzzle {
		return nil, advice.Failf("warpline learn start "+e.Name+" makes a folder for it", "%s is judged by its tests in a folder", e.Name)
	}
	dir, err := os.MkdirTemp("", "puzzle")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "kernel.ptx"), []byte(ptx), 0o600); err != nil {
		return nil, err
	}
	r, err := e.puzzle.check(ctx, e, dir)
	if err != nil { // the folder is nobody's business
		return nil, advice.Explain(errors.New(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")), advice.HintOf(err))
	}
	return r, nil
}

// Begin is the PTX that a puzzle begins with, and the CUDA C++ that it was made of.
func (e *Exercise) Begin() (ptx, source string, err error) {
	list, err := e.puzzle.files("start")
	for _, f := range list {
		switch f.Name {
		case "kernel.ptx":
			ptx = f.Text
		case "kernel.cu":
			source = f.Text
		}
	}
	return ptx, source, err
}
