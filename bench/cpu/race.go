package main

import "github.com/warpline-ml/warpline/internal/bench"

// row is a row of the race: a case of internal/bench, what it is compared with, and how far ahead it must be.
type row struct {
	bench, name string
	n           int    // 0: the case's own
	dtype       string // "" is f32
	layouts     []string
	bars        []bar
	share       float64 // of the ceiling that one thread must reach; 0: none
	scale       float64 // of its rate with one thread that two must reach; 0: none
	most        float64 // nanoseconds of ours that are the bar in place of a ratio; 0: none
	threads     []int   // nil: each that is asked for
	better      bool    // judged beside PyTorch's better number of threads
}

// bar is the least ratio of PyTorch's time to ours with so many threads, 0 for any number, beside a layout, "" for the
// better.
type bar struct {
	threads int
	layout  string
	ratio   float64
}

func least(ratio float64) []bar { return []bar{{0, "", ratio}} }

var (
	plain = []string{"nchw"}
	both  = []string{"nchw", "cl"}
	one   = []int{1}
)

// The sizes of operations beside their own: 2 MiB and 256 MiB of operand.
var sizes = []int{0, 1 << 19, 1 << 26}

// race is the race of the project, in its order.
var race = func() (list []row) {
	add := func(r row) {
		if r.layouts == nil {
			r.layouts = plain
		}
		if r.dtype == "" {
			r.dtype = "f32"
		}
		if r.n == 0 {
			r.n = bench.Find(r.bench, r.name).Sizes[0]
		}
		list = append(list, r)
	}
	for _, n := range []int{512, 1024, 2048} {
		add(row{bench: "gemm", name: "square", n: n, bars: least(1.05), share: 0.92, scale: 1.85})
	}
	add(row{bench: "gemm", name: "square", n: 64, bars: least(1.2), better: true})
	add(row{bench: "gemm", name: "square", n: 256, bars: least(1.0)})
	for i, ratio := range []float64{0.97, 1.05, 1.0} {
		add(row{bench: "gemm", name: "square", n: 512 << i, dtype: "bf16", bars: least(ratio)})
	}
	add(row{bench: "gemm", name: "vector", bars: least(1.2)})
	for _, name := range []string{"tall", "odd", "transposed", "batched", "linear", "linear-dx", "linear-dw"} {
		add(row{bench: "gemm", name: name, bars: least(1.0)})
	}
	add(row{bench: "gemm", name: "square", n: 1024, dtype: "f64", bars: least(1.0)})
	add(row{bench: "ops", name: "conv2d", layouts: both, bars: []bar{{0, "nchw", 1.05}, {0, "cl", 0.95}}})
	add(row{bench: "ops", name: "conv2d-grad", layouts: both, bars: []bar{{0, "nchw", 1.5}, {0, "cl", 1.0}}})
	add(row{bench: "ops", name: "add-4", most: 300, threads: one})
	add(row{bench: "ops", name: "add-4-grad", most: 500, threads: one})
	add(row{bench: "ops", name: "add", bars: least(0.97)})
	for _, o := range []struct {
		name  string
		ratio float64
	}{{"softmax", 1.5}, {"tanh", 3}, {"exp", 2}, {"sum-columns", 2.5}, {"transpose", 1.5}, {"gelu", 0.95}, {"layernorm", 0.95}, {"relu", 0.95}, {"sum-rows", 0.95}} {
		for _, n := range sizes {
			add(row{bench: "ops", name: o.name, n: n, bars: least(o.ratio)})
		}
	}
	add(row{bench: "train", name: "mlp", bars: []bar{{1, "", 1.2}, {0, "", 1.3}}})
	add(row{bench: "train", name: "mlp-adamw", bars: []bar{{1, "", 1.2}, {0, "", 1.3}}})
	add(row{bench: "train", name: "convnet", layouts: both, bars: least(1.1)})
	add(row{bench: "train", name: "gpt-128", bars: []bar{{1, "", 1.2}, {0, "", 1.35}}})
	add(row{bench: "train", name: "gpt-384", bars: least(1.25)})
	add(row{bench: "train", name: "resnet18", layouts: both, bars: least(1.0)})
	for _, name := range []string{"embedding-grad", "cross-entropy", "dropout", "rand", "randn", "cat", "sort", "sort-line", "topk", "topk-line", "scatter", "scatter-max", "scatter-sum", "lstm", "gru", "conv-transpose", "interpolate", "interpolate-nearest", "interpolate-bicubic", "interpolate-antialias"} {
		add(row{bench: "ops", name: name, bars: least(1.0)})
	}
	for _, name := range []string{"batchnorm", "maxpool"} {
		add(row{bench: "ops", name: name, layouts: both, bars: least(1.0)})
	}
	add(row{bench: "ops", name: "adamw", bars: least(0.97)})
	for _, name := range []string{"digits", "idx", "tokens"} {
		add(row{bench: "data", name: name, bars: least(3)})
	}
	add(row{bench: "train", name: "generate-128", bars: least(5)})
	add(row{bench: "train", name: "generate-384", bars: least(2.5)})
	return list
}()

// of is the bar for a number of threads beside a layout; false if the row has none there.
func (r *row) of(threads int, layout string) (ratio float64, ok bool) {
	for _, b := range r.bars {
		if (b.threads == 0 || b.threads == threads) && b.layout == layout {
			return b.ratio, true
		}
	}
	return 0, false
}
