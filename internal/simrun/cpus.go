package simrun

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/render"
)

// CPU is a model of processor, to stand beside the cards, or the machine's own with what it has just shown.
type CPU struct {
	Kind      string  `json:"kind"` // always "cpu"
	Name      string  `json:"name"`
	Model     string  `json:"model"`
	Measured  bool    `json:"measured"`
	Cores     int     `json:"cores"`
	Efficient int     `json:"efficient_cores"` // which the rates leave out
	Clock     int     `json:"clock_mhz"`
	Boost     int     `json:"boost_mhz"`
	Vector    int     `json:"vector_bits"`
	Units     int     `json:"multiply_add_units"` // of a core
	Float32   float64 `json:"float32_flops"`      // a second
	Float64   float64 `json:"float64_flops"`
	BFloat16  float64 `json:"bfloat16_flops"` // 0: no instruction for its products
	Int8      float64 `json:"int8_operations"`
	Channels  int     `json:"memory_channels"`
	Bandwidth float64 `json:"memory_bytes_per_second"`
	L1        int64   `json:"l1_bytes"` // of a core, for data
	L2        int64   `json:"l2_bytes"`
	L3        int64   `json:"l3_bytes"` // of the processor
	Source    string  `json:"source"`

	Sources map[string]string `json:"sources"` // of each figure, by its name above
}

// cpuSources is where each figure of a processor is from: its maker or the guides of its cores.
func cpuSources(maker, guides string) map[string]string {
	of := map[string]string{}
	for _, name := range []string{"cores", "efficient_cores", "clock_mhz", "boost_mhz", "memory_channels", "memory_bytes_per_second", "l1_bytes", "l2_bytes", "l3_bytes"} {
		of[name] = maker
	}
	for _, name := range []string{"vector_bits", "multiply_add_units"} {
		of[name] = guides
	}
	for _, name := range []string{"float32_flops", "float64_flops", "bfloat16_flops", "int8_operations"} {
		of[name] = "derived: cores × operations a clock × nominal clock; operations a clock: " + guides
	}
	return of
}

// MeasuredCPU is the processor of this machine, with what it has just shown; figures that are 0 were not looked for.
func MeasuredCPU(model string, cores, clock int, float32, bandwidth float64) CPU {
	const source = "measured just now, on as many threads as there are"
	x := CPU{Kind: "cpu", Name: "here", Model: model, Measured: true, Cores: cores, Clock: clock, Float32: float32, Bandwidth: bandwidth, Source: source}
	x.Sources = map[string]string{"cores": source, "clock_mhz": source, "float32_flops": source, "memory_bytes_per_second": source}
	return x
}

// CPUs lists the processors.
func CPUs() (list []CPU) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range cards.CPUs {
		x := CPU{Kind: "cpu", Name: c.Name, Model: c.Model, Cores: c.Cores, Efficient: c.Efficient, Clock: c.Clock, Boost: c.Boost, Vector: c.Vector,
			Units: c.Units, Channels: c.Channels, Bandwidth: 1e9 * float64(c.Bandwidth), L1: kib * int64(c.L1), L2: kib * int64(c.L2), L3: mib * int64(c.L3),
			Source: c.Source + "; " + cards.CPURatesSource}
		x.Float32, x.Float64, x.BFloat16, x.Int8 = c.Peaks()
		x.Sources = cpuSources(c.Source, cards.CPURatesSource)
		list = append(list, x)
	}
	return list
}

// CPUsText is a table of processors, and where it is from.
func CPUsText(list []CPU, width int) string {
	t := render.Table{Header: []string{"processor", "cores", "MHz", "boost", "vector", "float32", "float64", "bfloat16", "int8", "memory", "GB/s", "L2", "L3"},
		Right: []bool{false, true, true, true, true, true, true, true, true, true, true, true, true}, Spare: []int{11, 12, 3, 6, 9, 8}}
	sources := ""
	for _, c := range list {
		t.Rows = append(t.Rows, c.cells())
		if !c.Measured {
			sources += render.Wrap(fmt.Sprintf("%s: %s", c.Name, firstSource(&c)), width, 2) + "\n"
		}
	}
	return t.String(width) + "\n" + render.Wrap("all cores at the nominal clock, TFLOP/s: lanes × units × 2 × cores × clock; bfloat16 and int8 by instructions for their products "+
		"(VDPBF16PS, VNNI, AMX, BFMMLA, SMMLA), a dash where there are none; of two kinds of cores the faster alone; vector: bits × units; memory: channels; "+
		"L2 of a core (Apple: of a cluster), L3 of the processor", width, 0) + "\n\nsources\n" + sources + render.Wrap("cores: "+cards.CPURatesSource, width, 2) + "\n"
}

func firstSource(c *CPU) string {
	return c.Source[:len(c.Source)-len("; "+cards.CPURatesSource)]
}

func (c *CPU) cells() []string {
	known := func(n int, format string) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf(format, n)
	}
	cores, vector := fmt.Sprint(c.Cores), "–"
	if c.Efficient > 0 {
		cores += fmt.Sprintf("+%d", c.Efficient)
	}
	if c.Units > 0 {
		vector = fmt.Sprintf("%d×%d", c.Vector, c.Units)
	}
	cache := func(n int64) string {
		if n == 0 {
			return "–"
		}
		return render.Bytes(n)
	}
	name := c.Name
	if c.Measured {
		name = c.Model + ", measured"
	}
	return []string{name, cores, known(c.Clock, "%d"), known(c.Boost, "%d"), vector, teras2(c.Float32), teras2(c.Float64), teras2(c.BFloat16), teras2(c.Int8),
		known(c.Channels, "%d"), gigas(c.Bandwidth), cache(c.L2), cache(c.L3)}
}

// teras2 has two digits behind the point: processors are slower than cards.
func teras2(v float64) string { return scaled(v, 1e12, "%.2f") }
