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
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

type config struct {
	clang string
	seed  uint64
	n     int
}

// batch is how many kernels are compiled together.
const batch = 50

var levels = []string{"-O0", "-O1", "-O3"}

// compiled is a file of kernels with its PTX by level, and what the host computes for sets of inputs.
type compiled struct {
	n     int
	ptx   [][]byte
	in    [][]byte
	wants [][][]byte // by set and kernel
}

// compile generates n kernels and lets clang translate and the host run them.
func (c *config) compile(dir string, seed uint64, n, depth, sets int) (*compiled, error) {
	src := filepath.Join(dir, "k.cpp")
	if err := os.WriteFile(src, []byte(program(seed, n, depth)+driver(n)), 0o600); err != nil {
		return nil, err
	}
	x := &compiled{n: n, in: inputs(seed, sets)}
	for _, level := range levels {
		out, err := c.output(nil, c.clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80", "-Xclang", "-target-feature",
			"-Xclang", "+ptx74", level, "-ffp-contract=off", "-fwrapv", "-w", "-S", src, "-o", "-")
		if err != nil {
			return nil, err
		}
		x.ptx = append(x.ptx, out)
	}
	exe := filepath.Join(dir, "k")
	args := []string{"-O0", "-ffp-contract=off", "-fwrapv", "-w", src, "-o", exe, "-lm"}
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

// tally counts comparisons.
type tally struct {
	kernels      int
	compared     int
	instructions int
	differences  []string
}

// compare runs all kernels of a file, each schedule in turn.
func (t *tally) compare(seed uint64, x *compiled) error {
	for l, text := range x.ptx {
		m, err := ptx.Parse(string(text))
		if err != nil {
			return fmt.Errorf("seed %d %s: %w", seed, levels[l], err)
		}
		for f := range m.Funcs() {
			for range f.Insts() {
				t.instructions++
			}
		}
		sim, err := newSimulator(m, x.in)
		if err != nil {
			return fmt.Errorf("seed %d %s: %w", seed, levels[l], err)
		}
		for i := range x.n {
			for set, wants := range x.wants {
				o := gpusim.Options{Checks: gpusim.AllChecks, Cores: 1, Seed: uint64((i + set) % 4), Schedule: gpusim.Schedule(i / 2 % 2), StepLimit: 1e8}
				got, err := sim.run(i, set, o)
				t.compared++
				what := ""
				if err != nil {
					what = err.Error()
				} else if j := firstDifference(got, wants[i]); j >= 0 {
					what = fmt.Sprintf("thread %d word %d is %#x, the host has %#x", j/outWords, j%outWords,
						binary.LittleEndian.Uint32(got[4*j:]), binary.LittleEndian.Uint32(wants[i][4*j:]))
				}
				if what != "" {
					t.differences = append(t.differences, fmt.Sprintf("seed %d, k%d at %s, inputs %d: %s", seed, i, levels[l], set, what))
					fmt.Fprintln(os.Stderr, t.differences[len(t.differences)-1])
				}
			}
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	for i := 0; i < len(a); i += 4 {
		if !bytes.Equal(a[i:i+4], b[i:i+4]) {
			return i / 4
		}
	}
	return -1
}

// random compares c.n kernels, or as many as there is time for until an interrupt, and returns a row of the report.
func (c *config) random() ([]byte, error) {
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := &tally{}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for done := 0; done < c.n && ctx.Err() == nil; done += batch {
		seed := c.seed + uint64(done/batch)
		x, err := c.compile(dir, seed, min(batch, c.n-done), 1+done/batch%3, 3)
		if err != nil {
			return nil, err
		}
		if err := t.compare(seed, x); err != nil {
			return nil, err
		}
		t.kernels += x.n
		fmt.Fprintf(os.Stderr, "%d comparisons, %d differences\n", t.compared, len(t.differences))
	}
	return []byte(fmt.Sprintf("| %d | %d | %d | %d | %d | %d |\n%s", c.seed, t.kernels, t.compared, t.compared*threads*outWords, t.instructions,
		len(t.differences), strings.Join(t.differences, "\n"))), nil
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
	x, err := c.compile(dir, c.seed, c.n, 1, 1)
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
		if err := os.WriteFile(filepath.Join(to, "k"+levels[l]+".ptx.gz"), b.Bytes(), 0o644); err != nil {
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
