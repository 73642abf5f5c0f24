package mutate

import (
	_ "embed" // the reasons
	"maps"
	"math/rand/v2"
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

//go:embed known.txt
var known string

// TestSuites are the suites of the simulator's own test kernels. read gives the text of a file in
// internal/gpusim/testdata.
func TestSuites(read func(name string) (string, error)) ([]*Suite, error) {
	var all []*Suite
	for _, s := range []*Suite{{Name: "kernels.ptx", Cases: testKernels()}, {Name: "predicated.ptx", Cases: predicatedKernels()}} {
		var err error
		if s.Source, err = read(s.Name); err != nil {
			return nil, err
		}
		s.Known = s.ofMine(ReadKnown(known))
		all = append(all, s)
	}
	return all, nil
}

// ofMine keeps what is known of the suite's kernels.
func (s *Suite) ofMine(known map[string]string) map[string]string {
	maps.DeleteFunc(known, func(id, _ string) bool {
		name, _, _ := strings.Cut(id, " ")
		return !slices.ContainsFunc(s.Cases, func(c *Case) bool { return c.Kernel == name })
	})
	return known
}
