package mutate

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// testKernels are launches of the kernels in internal/gpusim/testdata/kernels.ptx. Shapes are no multiples of the tiles
// where the kernel allows it, so that its guards matter; where one launch cannot make all of them matter, there are more.
func testKernels() []*Case {
	x := floats(64 * 128)
	return []*Case{
		{Kernel: "add", Grid: row(2), Block: row(64), Args: []any{In(x[:100]), In(x[100:200]), Out(400), int32(100)}},
		{Kernel: "saxpy", Grid: row(2), Block: row(64), Args: []any{float32(1.5), In(x[:300]), In(x[300:600]), int32(300)}},
		{Kernel: "saxpy", Grid: row(2), Block: row(64), Args: []any{float32(1.5), In(x[:100]), In(x[300:400]), int32(100)}},
		{Kernel: "reduce", Grid: row(1), Block: row(256), Args: []any{In(x[:200]), Out(4), int32(200)}},
		{Kernel: "reduce", Grid: row(1), Block: row(256), Args: []any{In(x[:999]), Out(4), int32(999)}},
		{Kernel: "softmax", Grid: row(3), Block: row(32), Args: []any{In(x[:303]), Out(4 * 303), int32(101)}},
		{Kernel: "softmax", Grid: row(3), Block: row(32), Args: []any{In(x[:60]), Out(4 * 60), int32(20)}},
		{Kernel: "layernorm", Grid: row(2), Block: row(256), Args: []any{In(x[:600]), In(x[600:900]), In(x[900:1200]), Out(2400), int32(300)}},
		{Kernel: "layernorm", Grid: row(2), Block: row(256), Args: []any{In(x[:400]), In(x[600:800]), In(x[900:1100]), Out(1600), int32(200)}},
		transpose(x, 1, 45), transpose(x, 37, 50), transpose(x, 45, 58), transpose(x, 58, 34),
		{Kernel: "transpose", Grid: [3]int{2, 2, 1}, Block: [3]int{32, 8, 1}, Args: []any{In(x[:50*37]), Out(4 * 50 * 37), int32(50), int32(37)}},
		{Kernel: "sgemm", Grid: row(1), Block: row(256), Args: []any{In(x[:64*32]), In(x[64*32 : 64*64]), Out(4 * 64 * 64), int32(64), int32(64), int32(32)}},
		{Kernel: "histogram", Grid: row(2), Block: row(256), Args: []any{In(bytesOf(1000)), In(make([]uint32, 256)), int32(1000)}},
		{Kernel: "histogram", Grid: row(2), Block: row(256), Args: []any{In(bytesOf(300)), In(make([]uint32, 256)), int32(300)}},
		{Kernel: "scan", Grid: row(1), Block: row(256), Args: []any{In(wordsOf(256)), Out(1024)}},
		{Kernel: "gemm_bf16", Grid: row(1), Block: row(128), Args: []any{In(halvesOf(64 * 160)), In(halvesOf(160 * 64)), Out(4 * 64 * 64), int32(64), int32(64), int32(160)}},
		{Kernel: "gemm_bf16", Grid: row(1), Block: row(128), Args: []any{In(halvesOf(64 * 32)), In(halvesOf(32 * 64)), Out(4 * 64 * 64), int32(64), int32(64), int32(32)}},
		{Kernel: "spinlock", Grid: row(2), Block: row(64), Args: []any{In([]int32{0}), In([]int32{0})}},
		{Kernel: "handshake", Grid: row(2), Block: row(32), Args: []any{In([]int32{0}), Out(4)}},
		{Kernel: "calls", Grid: row(1), Block: row(40), Args: []any{In(x[:40]), Out(160), int32(5)}},
		{Kernel: "warptranspose", Grid: row(1), Block: row(64), Args: []any{In(x[:4096]), Out(4 * 4096)}},
		{Kernel: "smooth", Grid: row(2), Block: row(128), Args: []any{In(x[:700]), Out(2800), int32(700)}},
		{Kernel: "smooth", Grid: row(2), Block: row(128), Args: []any{In(x[:504]), Out(2016), int32(504)}},
		{Kernel: "smooth", Grid: row(2), Block: row(128), Args: []any{In(x[:640]), Out(2560), int32(640)}},
		{Kernel: "handoff", Grid: row(1), Block: row(64), Args: []any{In(x[:160]), Out(640), int32(5)}},
		{Kernel: "total", Grid: row(3), Block: row(128), Args: []any{In(x[:1000]), Out(12), In([]int32{0}), Out(4), int32(1000)}},
		{Kernel: "total", Grid: row(11), Block: row(128), Args: []any{In(x[:1300]), Out(44), In([]int32{0}), Out(4), int32(1300)}},
		{Kernel: "total", Grid: row(8), Block: row(128), Args: []any{In(x[:1000]), Out(32), In([]int32{0}), Out(4), int32(1000)}},
		{Kernel: "rowmax", Grid: row(3), Block: row(32), Args: []any{In(x[:33]), Out(12), int32(3), int32(11)}},
		{Kernel: "embed", Grid: row(4), Block: [3]int{32, 4, 1}, Args: []any{In([]int32{0, 9, -1, 10, 5, 3, 1 << 20, 2, 9, 9, 4, 0, 7}), In(x[:370]), Out(4 * 13 * 37), int32(13), int32(10), int32(37)}},
		{Kernel: "embed", Grid: row(4), Block: [3]int{32, 4, 1}, Args: []any{In([]int32{0, 9, -1, 10, 5, 3, 1 << 20, 2, 9, 9, 4, 0, 7}), In(x[:200]), Out(4 * 13 * 20), int32(13), int32(10), int32(20)}},
		{Kernel: "box", Grid: [3]int{2, 3, 1}, Block: [3]int{16, 4, 1}, Args: []any{In(x[:11*19]), Out(4 * 11 * 19), int32(11), int32(19)}},
	}
}

func transpose(x []float32, rows, cols int) *Case {
	return &Case{Kernel: "transpose", Grid: [3]int{(cols + 31) / 32, (rows + 31) / 32, 1}, Block: [3]int{32, 8, 1},
		Args: []any{In(x[:rows*cols]), Out(4 * rows * cols), int32(rows), int32(cols)}}
}

func row(n int) [3]int { return [3]int{n, 1, 1} }

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func floats(n int) []float32 {
	r, out := source(), make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func bytesOf(n int) []byte {
	r, out := source(), make([]byte, n)
	for i := range out {
		out[i] = byte(r.IntN(256))
	}
	return out
}

func wordsOf(n int) []uint32 {
	r, out := source(), make([]uint32, n)
	for i := range out {
		out[i] = r.Uint32()
	}
	return out
}

// halvesOf are bfloat16 between 1 and 2, or negative.
func halvesOf(n int) []uint16 {
	r, out := source(), make([]uint16, n)
	for i := range out {
		out[i] = uint16(0x3f80 | r.IntN(128) | r.IntN(2)<<15)
	}
	return out
}

// predicatedKernels are launches of the kernels in internal/gpusim/testdata/predicated.ptx.
func predicatedKernels() []*Case {
	x := floats(1000)
	return []*Case{
		{Kernel: "maskedadd", Grid: row(2), Block: row(32), Args: []any{In(x[:180]), In(x[180:360]), Out(720), int32(180)}},
		{Kernel: "maskedsum", Grid: row(1), Block: row(128), Args: []any{In(x[:100]), In(make([]uint32, 2)), int32(100)}},
		{Kernel: "staged", Grid: row(1), Block: row(32), Args: []any{In(x[:600]), Out(2400), int32(600)}},
		{Kernel: "staged", Grid: row(1), Block: row(32), Args: []any{In(x[:40]), Out(160), int32(40)}},
	}
}

// parserKernels are launches of the kernels in internal/ptx/testdata.
func parserKernels() map[string][]*Case {
	x := floats(64 * 64)
	whole := make([]float32, 3*300) // sums of integers do not depend on the order of blocks
	for i := range whole {
		whole[i] = float32(i % 7)
	}
	values := make([]uint32, 512)
	for i := range values {
		values[i] = uint32(i * i % 64)
		if i%5 == 0 {
			values[i] = uint32(63 + i*i%2*9999) // the last bin, or none
		}
	}
	return map[string][]*Case{
		"elementwise": {
			{Kernel: "saxpy", Grid: row(2), Block: row(64), Args: []any{In(x[:100]), In(x[100:200]), float32(2), int32(100)}},
			{Kernel: "add4", Grid: row(2), Block: row(32), Args: []any{In(x[:4*50]), In(x[200:400]), Out(16 * 50), int32(50)}},
			{Kernel: "add4", Grid: row(2), Block: row(32), Args: []any{In(x[:4*64]), In(x[256:512]), Out(16 * 64), int32(64)}},
			{Kernel: "to_bf16", Grid: row(2), Block: row(64), Args: []any{In(x[:100]), Out(200), int32(100)}},
		},
		"mma": {{Kernel: "mma_tile", Grid: row(1), Block: row(32), Args: []any{In(halvesOf(3 * 256)), In(halvesOf(3 * 128)), Out(512), int32(3)}}},
		"reduce": {{Kernel: "row_sum", Grid: row(3), Block: row(256), Args: []any{In(whole), In(make([]float32, 2)), int32(300)}},
			{Kernel: "row_sum", Grid: row(3), Block: row(256), Args: []any{In(whole[:600]), In(make([]float32, 2)), int32(200)}}},
		"sgemm": {{Kernel: "sgemm", Grid: row(1), Block: row(256), Args: []any{In(x[:64*32]), In(x[64*32 : 64*64]), Out(4 * 64 * 64), int32(64), int32(32)}}},
		"transpose": {
			{Kernel: "transpose", Grid: [3]int{2, 2, 1}, Block: [3]int{32, 32, 1}, Args: []any{In(x[:50*37]), Out(4 * 50 * 37), int32(50), int32(37)}},
			{Kernel: "reverse", Grid: row(1), Block: row(64), Shared: 200, Args: []any{In(x[:50]), Out(200), int32(50)}},
		},
		"triton": {{Kernel: "histogram", Grid: row(1), Block: row(128), Shared: 512, Args: []any{In(values), In(make([]uint32, 64)), Out(4 * 512), uint64(0), uint64(0)}}},
	}
}

// exampleKernels are launches of the kernels in examples/sim.
func exampleKernels() map[string][]*Case {
	x := floats(4 * 1024) // rows fill a block: this softmax stores without a mask
	return map[string][]*Case{
		"sum":     {{Kernel: "sum", Grid: row(2), Block: row(256), Args: []any{In(x[:300]), Out(8), int32(300)}}},
		"softmax": {{Kernel: "softmax", Grid: row(4), Block: row(128), Shared: 16, Args: []any{In(x), Out(4 * 4096), int32(1024), uint64(0), uint64(0)}}},
	}
}

// kernelsOf are the names of the kernels of a module.
func kernelsOf(source string) (names []string) {
	for _, part := range strings.Split(source, ".visible .entry ")[1:] {
		name, _, _ := strings.Cut(part, "(")
		names = append(names, name)
	}
	return names
}

// smallWords are what lockfree.ptx and cluster.ptx take.
func smallWords() []uint32 {
	x := make([]uint32, 512)
	for i := range x {
		x[i] = uint32(i*7%31 + 1)
	}
	return x
}

// clusterKernels are launches of all kernels of cluster.ptx.
func clusterKernels(source string) (cases []*Case) {
	for _, name := range kernelsOf(source) {
		threads := 64
		if name == "product" {
			threads = 128
		}
		cases = append(cases, &Case{Kernel: name, Grid: row(4), Block: row(threads), Args: []any{In(smallWords()), In(make([]uint32, 512))}})
	}
	return cases
}

// lockFreeKernels are launches of all kernels of lockfree.ptx, which take the same arguments.
func lockFreeKernels(source string) (cases []*Case) {
	x := smallWords()
	for _, name := range kernelsOf(source) {
		var want []byte
		check := func(out [][]byte) error {
			if want == nil {
				want = out[1]
			}
			if !bytes.Equal(want, out[1]) {
				return errors.New("other results")
			}
			return nil
		}
		cases = append(cases, &Case{Kernel: name, Grid: row(8), Block: row(64), Check: check, Args: []any{In(x), In(make([]uint32, 512)), In(make([]uint32, 4096))}})
	}
	return cases
}

//go:embed known/*.txt
var knownFiles embed.FS

// TestSuites are the suites of all kernels in the repository that belong to no engine. read gives the text of a file by
// its path from the root of the repository.
func TestSuites(read func(path string) (string, error)) ([]*Suite, error) {
	suites := []*Suite{{Name: "internal/gpusim/testdata/kernels.ptx", Cases: testKernels()}, {Name: "internal/gpusim/testdata/predicated.ptx", Cases: predicatedKernels()},
		{Name: "internal/gpusim/testdata/lockfree.ptx", Kinds: []Kind{Barrier, Fence, Swap, Scope, Semantics, Plain}, of: lockFreeKernels},
		{Name: "internal/gpusim/testdata/cluster.ptx", of: clusterKernels}}
	for dir, kernels := range map[string]map[string][]*Case{"internal/ptx/testdata": parserKernels(), "examples/sim": exampleKernels()} {
		for name, cases := range kernels {
			suites = append(suites, &Suite{Name: dir + "/" + name + ".ptx", Cases: cases})
		}
	}
	slices.SortFunc(suites, func(a, b *Suite) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range suites {
		var err error
		if s.Source, err = read(s.Name); err != nil {
			return nil, err
		}
		reasons, err := knownFiles.ReadFile("known/" + strings.TrimSuffix(path.Base(s.Name), ".ptx") + ".txt")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		s.Known = ReadKnown(string(reasons))
		if s.of != nil {
			s.Cases = s.of(s.Source)
		}
	}
	return suites, nil
}
