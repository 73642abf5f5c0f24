package main

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/simrun"
)

// row is a published figure, and how to run the kernel that it is of.
type row struct {
	what   string  // kernel and shape
	card   string  // of package cards
	source string  // a key of sources
	figure float64 // as published, in unit
	unit   string  // GB/s, TFLOP/s, or µs of a launch
	work   float64 // bytes or operations of a launch, as the source counts them
	events bool    // timed by two events around each launch; else over many launches
	gap    *gap    // in place of work and tries: many launches
	tries  []try   // of which the quickest counts, as for the published program that chooses so
}

// try is a kernel with its launch.
type try struct {
	file, kernel string // of testdata
	grid, block  string
	shared       int // dynamic bytes; for Triton's kernels its metadata says
	args         []string
}

// sources are where figures are from.
var sources = map[string]string{
	"add":     "triton-lang/triton pull request 3894, table \"before\": tutorial 01, A100; its bandwidth is that of 80 GB. Cold L2, do_bench",
	"mm":      "triton-lang/triton issue 7085, columns of Triton 3.2: tutorial 03 in float16, A100. do_bench",
	"mm2":     "triton-lang/triton issue 6523, comment of 2025-11-25: tutorial 03 in float16, A100. do_bench. Its sizes below 2304 are left out: there the interpreter's launch takes longer than the kernel (132 µs for 256³)",
	"mm32":    "triton-lang/triton issue 2491, comment of 2023-11-28: tutorial 03 in float32 without tf32, A100 PCIe 80 GB, whose memory is 5 % slower than that of the card in the table. do_bench",
	"flash":   "triton-lang.org, tutorial 06 (fused attention), batch 4, 32 heads of 64, float16, forward; made on an A100, as float8 no faster than float16 shows. do_bench",
	"llmc":    "karpathy/llm.c pull request 645: layernorm_forward, 8192 rows of 768 float32, A100 80 GB, \"before\" (two passes for the variance) and \"after\" (one). Cold L2, two events a launch",
	"apex":    "NVIDIA/apex pull request 1037: FastLayerNorm forward, 16384 rows of 1024 float16, GA100",
	"quack":   "Dao-AILab/quack, AI/global_memory_coalescing_notes.md: patterns of a warp's accesses of 16 bytes, 528 blocks of 8 warps, H100 80GB HBM3",
	"soft":    "Dao-AILab/quack, media/2025-07-10-membound-sol.md: softmax of float32, rows held on the chip, \"about 3 TB/s\" from 4096 columns on, H100 80GB HBM3; theirs is no Triton kernel, ours moves the same",
	"clone":   "Dao-AILab/quack, AI/hadamard_roofline_analysis.md: torch.clone of 16384×32768, H100 SXM. do_bench",
	"sum":     "pranjalssh/fast.cu, sum.cu: sum of 2³⁰ int32, H100, kernel 2",
	"h200":    "measured on an H200 for this project's specification: copy",
	"pcie":    "news.ycombinator.com item 45236545: contiguous copy, H100 PCIe",
	"gunrock": "gunrock/gunrock issue 438 and tests/unit_tests/test_for.cu: 20 × 1000 launches of 512 blocks over 1,024,000 integers, in a stream and as a graph of 1000 nodes, by the host's clock; Quadro GV100, the chip of V100 with memory of 870 GB/s, which this does not ask",
	"sgemm":   "siboehm/SGEMM_CUDA, README: products of 4096×4096 float32, RTX A6000",
}

// mib is a number of elements.
const mib = 1 << 20

// rows are all figures.
func rows() (list []row) {
	add := func(r ...row) { list = append(list, r...) }
	add(additions()...)
	add(products()...)
	add(attention()...)
	add(norms()...)
	add(copies()...)
	add(patterns()...)
	add(ladder()...)
	add(gaps()...)
	return list
}

func additions() (list []row) {
	for i, figure := range []float64{6.48, 12.96, 29.54, 59.08, 113.78, 206.52, 322.31, 576.56, 768.00, 985.50, 1206.18, 1400.59, 1546.57, 1620.47, 1665.18} {
		n := 4096 << i
		buffer := fmt.Sprintf("f32[%d]", n)
		list = append(list, row{fmt.Sprintf("x + y, %d float32", n), "a100-80", "add", figure, "GB/s", 12 * float64(n), true, nil,
			[]try{{file: "vector_add", grid: fmt.Sprint(n / 1024), args: []string{buffer, buffer, buffer, fmt.Sprintf("i32:%d", n)}}}})
	}
	return list
}

// tile is a configuration of tutorial 03.
type tile struct{ m, n int }

func products() (list []row) {
	half := []tile{{128, 256}, {64, 256}, {128, 128}, {128, 64}, {64, 128}, {128, 32}, {64, 32}, {32, 64}}
	for _, c := range []struct {
		card, source, dtype string
		tiles               []tile
		first, step         int
		figures             []float64
	}{
		{"a100-80", "mm", "f16", half, 256, 128, []float64{3.64, 11.06, 23.83, 39.38, 55.30, 87.81, 97.54}},
		{"a100-80", "mm2", "f16", half, 2304, 128, []float64{143.04, 168.23, 143.72, 158.05, 156.32, 170.09}},
		{"a100-80", "mm32", "f32", []tile{{64, 32}, {128, 64}}, 256, 256, []float64{1.42, 6.55, 10.41, 12.34, 15.34, 15.62, 16.17, 17.07}},
	} {
		for i, figure := range c.figures {
			n := c.first + i*c.step
			r := row{fmt.Sprintf("product %d³ %s", n, c.dtype), c.card, c.source, figure, "TFLOP/s", 2 * float64(n) * float64(n) * float64(n), true, nil, nil}
			for _, t := range c.tiles {
				buffer := fmt.Sprintf("%s[%d]", c.dtype, n*n)
				size := fmt.Sprintf("i32:%d", n)
				r.tries = append(r.tries, try{file: fmt.Sprintf("matmul_%s_%dx%d", c.dtype, t.m, t.n), grid: fmt.Sprint(over(n, t.m) * over(n, t.n)),
					args: []string{buffer, buffer, buffer, size, size, size}})
			}
			list = append(list, r)
		}
	}
	return list
}

func over(a, b int) int { return (a + b - 1) / b }

func attention() (list []row) {
	tiles := []struct {
		m, n, warps int
	}{{128, 32, 4}, {128, 64, 4}, {128, 64, 8}, {128, 128, 8}, {64, 64, 4}}
	for _, c := range []struct {
		name    string
		share   float64 // of the operations that are counted
		figures []float64
	}{
		{"causal", 0.5, []float64{111.68, 136.48, 150.00, 160.37, 164.26}},
		{"full", 1, []float64{141.41, 159.68, 160.63, 163.40, 166.63}},
	} {
		for i, figure := range c.figures {
			t := 1024 << i
			heads := min(128, 128*8192/t) // a run has 1 GiB
			work := c.share * 4 * float64(heads) * float64(t) * float64(t) * 64
			r := row{fmt.Sprintf("attention %s, %d heads of %d×64", c.name, heads, t), "a100-80", "flash", figure, "TFLOP/s", work, true, nil, nil}
			for _, x := range tiles {
				buffer := fmt.Sprintf("f16[%d]", heads*t*64)
				r.tries = append(r.tries, try{file: fmt.Sprintf("attention_%s_%dx%dw%d", c.name, x.m, x.n, x.warps), grid: fmt.Sprintf("%d,%d", t/x.m, heads),
					args: []string{buffer, buffer, buffer, buffer, fmt.Sprintf("i32:%d", t), "f32:0.125"}})
			}
			list = append(list, r)
		}
	}
	return list
}

func norms() (list []row) {
	const rows, cols = 8192, 768
	for _, c := range []struct {
		kernel, name string
		figures      []float64
	}{
		{"norm_two", "two passes", []float64{1079.39, 1152.29, 1160.60, 1183.23, 1162.06, 1151.32}},
		{"norm_one", "one pass", []float64{1120.00, 1220.50, 1237.67, 1268.84, 1243.80, 1221.16}},
	} {
		for i, figure := range c.figures {
			threads := 32 << i
			x, w, r := fmt.Sprintf("f32[%d]", rows*cols), fmt.Sprintf("f32[%d]", cols), fmt.Sprintf("f32[%d]", rows)
			list = append(list, row{fmt.Sprintf("layer norm, %s, %d threads", c.name, threads), "a100-80", "llmc", figure, "GB/s", 8 * rows * cols, true, nil,
				[]try{{"kernels", c.kernel, fmt.Sprint(over(rows, threads/32)), fmt.Sprint(threads), (2 + threads/32) * 4 * cols,
					[]string{x, r, r, x, w, w, fmt.Sprintf("i32:%d", rows), fmt.Sprintf("i32:%d", cols)}}}})
		}
	}
	half, weight := fmt.Sprintf("f16[%d]", 16*mib), "f16[1024]"
	return append(list, row{"layer norm in registers, 16384×1024 float16", "a100-40", "apex", 1258.03, "GB/s", 64 * mib, false, nil,
		[]try{{"kernels", "norm_half", "4096", "128", 0, []string{half, "f32[16384]", "f32[16384]", half, weight, weight}}}})
}

func copies() (list []row) {
	for _, c := range []struct {
		card, source, what string
		figure             float64
		events             bool
	}{
		{"h100-80", "clone", "copy of float32", 3029, true},
		{"h100-pcie", "pcie", "copy", 1860, false},
		{"h200", "h200", "copy", 4300, false},
	} {
		const n = 128 * mib
		buffer := fmt.Sprintf("f32[%d]", n)
		list = append(list, row{c.what + ", 512 MiB", c.card, c.source, c.figure, "GB/s", 8 * n, c.events, nil,
			[]try{{"kernels", "copy", fmt.Sprint(n / 4 / 256), "256", 0, []string{buffer, buffer}}}})
	}
	const n = 128 * mib
	soft := fmt.Sprintf("f32[%d]", n)
	list = append(list, row{"softmax, 16384×8192 float32", "h100-80", "soft", 3000, "GB/s", 8 * n, true, nil,
		[]try{{file: "softmax", grid: "16384", args: []string{soft, soft, "i32:8192"}}}})
	return append(list, row{"sum of int32, 512 MiB", "h100-80", "sum", 3239.69, "GB/s", 4 * n, false, nil,
		[]try{{"kernels", "total", fmt.Sprint(n / 32768), "1024", 0, []string{"i32[1]", fmt.Sprintf("i32[%d]", n)}}}})
}

// patterns are those of a warp's accesses: groups of lanes that lie wide apart, and in them pairs or fours of lanes.
func patterns() (list []row) {
	const blocks, warps, times = 528, 528 * 8, 32
	for _, p := range []struct {
		name                             string
		group, wide, inner, narrow, slot int // wide 0: in a region of its own
		loads, stores                    float64
	}{
		{"A: 512 bytes", 32, 512, 32, 512, 512, 2894, 3175},
		{"C: 2 × 256 bytes", 16, 0, 16, 256, 256, 2857, 3150},
		{"D: 4 × 128 bytes", 8, 0, 8, 128, 128, 2679, 2973},
		{"E: 16 × 32 bytes", 2, 0, 2, 32, 128, 1466, 1007},
		{"F: 32 × 16 bytes", 1, 0, 1, 16, 128, 550, 249},
		{"J: 16 sectors, a line each", 2, 128, 2, 32, 2048, 1558, 1244},
		{"K: 16 sectors, 8 half lines", 4, 128, 4, 64, 1024, 2748, 0},
		{"K: 16 sectors, 16 half lines", 4, 128, 2, 64, 1024, 1589, 0},
	} {
		region := p.slot * warps * times
		total := region
		if p.wide == 0 {
			p.wide, total = region, region*32/p.group
		}
		args := []string{fmt.Sprintf("u8[%d]", total), fmt.Sprintf("i32:%d", p.group), fmt.Sprintf("u64:%d", p.wide), fmt.Sprintf("i32:%d", p.inner),
			fmt.Sprintf("u64:%d", p.narrow), fmt.Sprintf("u64:%d", p.slot), fmt.Sprintf("i32:%d", times)}
		grid := fmt.Sprint(blocks)
		list = append(list, row{"loads " + p.name, "h100-80", "quack", p.loads, "GB/s", 512 * warps * times, false, nil,
			[]try{{"kernels", "loads", grid, "256", 0, append([]string{"u32[4]"}, args...)}}})
		if p.stores > 0 {
			list = append(list, row{"stores " + p.name, "h100-80", "quack", p.stores, "GB/s", 512 * warps * times, false, nil,
				[]try{{"kernels", "stores", grid, "256", 0, args}}})
		}
	}
	return list
}

// ladder are products of float32, each a step better than the one before.
func ladder() (list []row) {
	const n = 4096
	for _, c := range []struct {
		kernel, name, block string
		m, n                int // of C, a block
		figure              float64
	}{
		{"product_naive", "naive", "32,32", 32, 32, 0.3090},
		{"product_coalesced", "coalesced", "1024", 32, 32, 1.9865},
		{"product_shared", "shared memory", "1024", 32, 32, 2.9803},
		{"product_column", "8 results a thread", "512", 64, 64, 8.4747},
		{"product_tile", "8×8 results a thread", "256", 128, 128, 15.9717},
		{"product_wide", "8×8, accesses of 16 bytes", "256", 128, 128, 18.2373},
	} {
		buffer := fmt.Sprintf("f32[%d]", n*n)
		list = append(list, row{"product 4096³ float32, " + c.name, "rtx-a6000", "sgemm", c.figure, "TFLOP/s", 2 * n * n * n, false, nil,
			[]try{{"kernels", c.kernel, fmt.Sprintf("%d,%d", n/c.n, n/c.m), c.block, 0, []string{fmt.Sprintf("i32:%d", n), buffer, buffer, buffer}}}})
	}
	return list
}

// path is that of a kernel's files, without what they end in; Triton's have a folder.
func (t *try) path(dir string) string {
	if t.kernel == "" {
		dir += "/triton"
	}
	return dir + "/" + t.file
}

// config is a try on a card.
func (t *try) config(dir, card string, registers int) simrun.Config {
	c := simrun.Config{File: t.path(dir) + ".ptx", Kernel: t.kernel, Grid: t.grid, Block: t.block, Shared: t.shared, Card: card,
		Checks: "none", Args: t.args, Sample: sample, Registers: registers}
	if t.kernel == "" {
		c.Meta, c.Shared = t.path(dir)+".json", -1
	}
	return c
}

// sample is how many blocks of a launch run.
const sample = 12
