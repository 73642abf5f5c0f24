package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// batch is how many kernels are compiled together.
const batch = 100

// perRow is how many kernels a row of the report has.
const perRow = 1000

var levels = []string{"-O0", "-O1", "-O3"}

// compiled is a file of kernels with its PTX by level, and what the host computes for sets of inputs.
type compiled struct {
	n      int
	levels []string
	ptx    [][]byte
	in     [][]byte
	wants  [][][]byte // by set and kernel
}

// compile generates n kernels and lets clang translate and the host run them.
func (c *config) compile(dir string, seed uint64, n, depth, sets int, levels []string) (*compiled, error) {
	src := filepath.Join(dir, "k.cpp")
	if err := os.WriteFile(src, []byte(program(seed, n, depth)+driver(n)), 0o600); err != nil {
		return nil, err
	}
	x := &compiled{n: n, levels: levels, in: inputs(seed, sets)}
	for _, level := range levels {
		out, err := c.output(nil, c.clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80", "-Xclang", "-target-feature",
			"-Xclang", "+ptx74", level, "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", "-S", src, "-o", "-")
		if err != nil {
			return nil, err
		}
		x.ptx = append(x.ptx, out)
	}
	exe := filepath.Join(dir, "k")
	args := []string{"-O0", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", src, "-o", exe, "-lm"}
	if runtime.GOARCH == "amd64" {
		args = append(args, "-mfma", "-mf16c", "-msse4.1")
	}
	if _, err := c.output(nil, c.clang, args...); err != nil {
		return nil, err
	}
	out, err := c.output(slices.Concat(x.in...), exe)
	if err != nil {
		return nil, err
	}
	const size = 4 * threads * outWords
	for range sets {
		x.wants = append(x.wants, slices.Collect(slices.Chunk(out[:n*size], size)))
		out = out[n*size:]
	}
	return x, nil
}

func (c *config) output(in []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, errs.String())
	}
	return out, nil
}

// inputs are sets of random words, a third of them edges of integers and floats.
func inputs(seed uint64, sets int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 4))
	edges := []uint32{0, 1, 2, 31, 32, 1<<31 - 1, 1 << 31, math.MaxUint32, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 1 << 23, 1<<23 - 1, 0x7f7fffff}
	var b []byte
	for range sets * threads * inWords {
		v := r.Uint32() >> r.IntN(32)
		switch r.IntN(3) {
		case 0:
			v = edges[r.IntN(len(edges))]
		case 1:
			v = math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(40)-20))))
		}
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return slices.Collect(slices.Chunk(b, 4*threads*inWords))
}

// simulator is a device with the module and its inputs.
type simulator struct {
	dev  *gpusim.Device
	prog *gpusim.Program
	src  []uint64
}

func newSimulator(m *ptx.Module, in [][]byte) (*simulator, error) {
	s := &simulator{dev: gpusim.NewDevice(gpusim.A100(), true)}
	var err error
	if s.prog, err = s.dev.Load(m); err != nil {
		return nil, err
	}
	for _, set := range in {
		addr, err := s.dev.Alloc(len(set), "in")
		if err != nil {
			return nil, err
		}
		if err := s.dev.Write(addr, set); err != nil {
			return nil, err
		}
		s.src = append(s.src, addr)
	}
	return s, nil
}

// run runs kernel i on a set of inputs.
func (s *simulator) run(i, set int, o gpusim.Options) ([]byte, error) {
	out := make([]byte, 4*threads*outWords)
	dst, err := s.dev.Alloc(len(out), "out")
	if err != nil {
		return nil, err
	}
	params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s.src[set]), dst)
	rep, err := s.dev.Launch(s.prog.Kernel(fmt.Sprintf("k%d", i)), [3]int{1, 1, 1}, [3]int{threads, 1, 1}, 0, params, o)
	if err != nil {
		return nil, err
	}
	if len(rep.Findings) > 0 {
		return nil, fmt.Errorf("finding: %v", rep.Findings[0])
	}
	return out, s.dev.Read(out, dst)
}

// tally counts comparisons of the kernels of a seed, or of several from one on.
type tally struct {
	seed         uint64
	kernels      int
	compared     int
	instructions int
	differences  []string
}

// String is a row of the report, with the differences after it.
func (t *tally) String() string {
	row := fmt.Sprintf("| %d | %d | %d | %d | %d | %d |\n", t.seed, t.kernels, t.compared, t.compared*threads*outWords, t.instructions, len(t.differences))
	for _, d := range t.differences {
		row += d + "\n"
	}
	return row
}

// compare runs all kernels of a file, each schedule in turn.
func (t *tally) compare(x *compiled) error {
	for l, text := range x.ptx {
		m, err := ptx.Parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", x.levels[l], err)
		}
		for f := range m.Funcs() {
			for range f.Insts() {
				t.instructions++
			}
		}
		sim, err := newSimulator(m, x.in)
		if err != nil {
			return fmt.Errorf("%s: %w", x.levels[l], err)
		}
		for i := range x.n {
			for set, wants := range x.wants {
				t.compared++
				what, faulted := sim.difference(i, set, wants[i])
				if what != "" {
					t.differences = append(t.differences, fmt.Sprintf("seed %d, k%d at %s, inputs %d: %s", t.seed, i, x.levels[l], set, what))
					fmt.Fprintln(os.Stderr, t.differences[len(t.differences)-1])
				}
				if !faulted {
					continue
				}
				if sim, err = newSimulator(m, x.in); err != nil { // a fault ends the work of a device
					return err
				}
			}
		}
	}
	return nil
}

// difference runs kernel i on a set of inputs and says where it has not what the host has; "" where it has.
func (s *simulator) difference(i, set int, want []byte) (what string, faulted bool) {
	o := gpusim.Options{Checks: gpusim.AllChecks, Cores: 1, Seed: uint64((i + set) % 4), Schedule: gpusim.Schedule(i / 2 % 2), StepLimit: 1e8}
	got, err := s.run(i, set, o)
	if err != nil {
		return err.Error(), true
	}
	j := firstDifference(got, want)
	if j < 0 {
		return "", false
	}
	return fmt.Sprintf("thread %d word %d is %#x, the host has %#x", j/outWords, j%outWords,
		binary.LittleEndian.Uint32(got[4*j:]), binary.LittleEndian.Uint32(want[4*j:])), false
}

func firstDifference(a, b []byte) int {
	for i := 0; i < len(a); i += 4 {
		if !bytes.Equal(a[i:i+4], b[i:i+4]) {
			return i / 4
		}
	}
	return -1
}

// random compares c.n kernels, or as many as there is time for until an interrupt, and writes rows of the report.
func (c *config) random() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for done := 0; done < c.n && ctx.Err() == nil; done += perRow {
		t, err := c.row(ctx, c.seed+uint64(done/batch), min(perRow, c.n-done))
		if t.kernels > 0 {
			fmt.Print(t)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// row compares n kernels, c.jobs files at a time. An interrupt leaves out the first file that is not done, and all after it.
func (c *config) row(ctx context.Context, seed uint64, n int) (*tally, error) {
	files := make([]*tally, (n+batch-1)/batch)
	err := c.each(len(files), func(i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t := &tally{seed: seed + uint64(i), kernels: min(batch, n-i*batch)}
		if err := c.file(t); err != nil {
			return fmt.Errorf("seed %d: %w", t.seed, err)
		}
		fmt.Fprintf(os.Stderr, "seed %d: %d kernels, %d differences\n", t.seed, t.kernels, len(t.differences))
		files[i] = t
		return nil
	})
	sum := &tally{seed: seed}
	for _, t := range files {
		if t == nil {
			break
		}
		sum.kernels += t.kernels
		sum.compared += t.compared
		sum.instructions += t.instructions
		sum.differences = append(sum.differences, t.differences...)
	}
	return sum, err
}

// depthOf is how deep statements of a seed nest: clang takes long for deep ones.
func depthOf(seed uint64) int {
	switch {
	case seed%9 == 0:
		return 3
	case seed%3 == 0:
		return 2
	}
	return 1
}

// levelsOf is at which levels kernels of a seed are compiled for the GPU: unless all are asked for, -O0 and one of the others.
func (c *config) levelsOf(seed uint64) []string {
	if c.all {
		return levels
	}
	return []string{levels[0], levels[1+seed%2]}
}

// file compiles and compares the kernels of a seed.
func (c *config) file(t *tally) error {
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	x, err := c.compile(dir, t.seed, t.kernels, depthOf(t.seed), c.sets, c.levelsOf(t.seed))
	if err != nil {
		return err
	}
	return t.compare(x)
}

// bare drops comments and indentation.
func bare(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("//"))
		if line = bytes.TrimSpace(line); len(line) > 0 {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// golden writes testdata for the simulator's own tests: PTX by level, inputs, and a hash of each answer of the host.
func (c *config) golden() error {
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	x, err := c.compile(dir, c.seed, c.n, 1, 1, levels)
	if err != nil {
		return err
	}
	to := filepath.Join("internal", "gpusim", "testdata", "random")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for l, text := range x.ptx {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(bare(text)); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "k"+x.levels[l]+".ptx.gz"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	var hashes bytes.Buffer
	for i, w := range x.wants[0] {
		h := fnv.New64a()
		h.Write(w)
		fmt.Fprintf(&hashes, "k%d %016x\n", i, h.Sum64())
	}
	if err := os.WriteFile(filepath.Join(to, "answers.txt"), hashes.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "inputs.bin"), x.in[0], 0o644)
}
