package simrun

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/render"
)

// Card is a model of GPU with what bounds a launch on it and what the model of its time goes by.
type Card struct {
	Kind           string             `json:"kind"` // always "gpu"
	Name           string             `json:"name"`
	Model          string             `json:"model"`
	Memory         int64              `json:"memory_bytes"`
	SMs            int                `json:"multiprocessors"`
	Compute        string             `json:"compute"` // capability
	ThreadsPerSM   int                `json:"threads_per_multiprocessor"`
	BlocksPerSM    int                `json:"blocks_per_multiprocessor"`
	SharedPerSM    int                `json:"shared_per_multiprocessor_bytes"`
	SharedPerBlock int                `json:"shared_per_block_bytes"`
	Registers      int                `json:"registers_per_multiprocessor"`
	Clock          int                `json:"clock_mhz"`
	TensorClock    int                `json:"tensor_clock_mhz"`
	Float32        float64            `json:"float32_flops"`     // a second
	Tensor         map[string]float64 `json:"tensor_operations"` // a second, dense, by type; empty without tensor cores
	L2             int64              `json:"l2_bytes"`
	L2Bandwidth    float64            `json:"l2_bytes_per_second"`
	Bandwidth      float64            `json:"memory_bytes_per_second"`
	Link           float64            `json:"host_bytes_per_second"`
	Peer           float64            `json:"peer_bytes_per_second"` // both directions together; 0: by way of the host
	Source         string             `json:"source"`
	SMSource       string             `json:"multiprocessor_source"`
	Sources        map[string]string  `json:"sources"` // of each figure, by its name above
}

// sources is where each figure of a card is from.
func (c *Card) sources() map[string]string {
	of := map[string]string{}
	for _, name := range []string{"memory_bytes", "multiprocessors", "compute", "clock_mhz", "tensor_clock_mhz", "l2_bytes", "memory_bytes_per_second"} {
		of[name] = c.Source
	}
	for _, name := range []string{"threads_per_multiprocessor", "blocks_per_multiprocessor", "shared_per_multiprocessor_bytes", "shared_per_block_bytes",
		"registers_per_multiprocessor"} {
		of[name] = c.SMSource
	}
	of["float32_flops"] = "derived: multiprocessors × lanes × 2 × clock; lanes: " + c.SMSource
	of["tensor_operations"] = "derived: multiprocessors × operations a clock × tensor clock; operations a clock: " + c.Source
	of["l2_bytes_per_second"], of["host_bytes_per_second"], of["peer_bytes_per_second"] = cards.L2RateSource, cards.LinkSource, cards.PeerSource
	return of
}

// Cards lists every card that can be imitated.
func Cards() (list []Card) {
	for _, c := range cards.All {
		m := c.SM()
		x := Card{"gpu", c.Name, c.Model, c.Memory, c.SMs, fmt.Sprintf("%d.%d", c.Compute[0], c.Compute[1]), m.Threads, m.Blocks, m.Shared, m.SharedPerBlock,
			m.Registers, c.Clock, c.TensorClock, c.Vector(), map[string]float64{}, c.L2, c.L2Bandwidth(), 1e9 * float64(c.Bandwidth),
			1e9 * float64(c.Link), 1e9 * float64(c.Peer), c.Source, cards.SMSource, nil}
		x.Sources = x.sources()
		for t := range cards.Types {
			if peak := c.TensorPeak(t); peak > 0 {
				x.Tensor[t.String()] = peak
			}
		}
		list = append(list, x)
	}
	return list
}

// CardsText is two tables of the cards: what bounds a launch, and what the model of time goes by; then where that is from.
func CardsText(list []Card, width int) string {
	bounds := render.Table{Header: []string{"card", "model", "CC", "memory", "SMs", "threads", "shared", "a block"},
		Right: []bool{false, false, true, true, true, true, true, true}, Spare: []int{1, 2, 4, 6, 5}}
	rates := render.Table{Header: []string{"card", "MHz", "float32", "half", "float8", "L2", "L2 GB/s", "GB/s", "host", "peer"},
		Right: []bool{false, true, true, true, true, true, true, true, true, true}, Spare: []int{9, 4, 5, 8, 1}}
	sources := ""
	for _, c := range list {
		bounds.Rows = append(bounds.Rows, []string{c.Name, c.Model, c.Compute, render.Bytes(c.Memory), fmt.Sprint(c.SMs), fmt.Sprint(c.ThreadsPerSM),
			render.Bytes(int64(c.SharedPerSM)), render.Bytes(int64(c.SharedPerBlock))})
		rates.Rows = append(rates.Rows, []string{c.Name, fmt.Sprint(c.Clock), teras(c.Float32), teras(c.Tensor[cards.Float16.String()]),
			teras(c.Tensor[cards.Float8.String()]), render.Bytes(c.L2), gigas(c.L2Bandwidth), gigas(c.Bandwidth), gigas(c.Link), gigas(c.Peer)})
		sources += render.Wrap(fmt.Sprintf("%s: %s", c.Name, c.Source), width, 2) + "\n"
	}
	return bounds.String(width) + "\nthreads and shared memory of a multiprocessor (SM), and what one block may have of the latter; CC: compute capability\n\n" +
		rates.String(width) + "\n" + render.Wrap("float32 without and half and float8 with tensor cores, TFLOP/s, dense: multiprocessors × operations a clock × clock; GB/s of L2, "+
		"of memory, from and to the host (pinned) and between cards (both directions)", width, 0) + "\n\nsources\n" + sources +
		render.Wrap("multiprocessors: "+cards.SMSource, width, 2) + "\n" + render.Wrap("L2 GB/s: "+cards.L2RateSource, width, 2) + "\n" +
		render.Wrap("host: "+cards.LinkSource, width, 2) + "\n" + render.Wrap("peer: "+cards.PeerSource, width, 2) + "\n"
}

// teras and gigas are figures of a table; a dash where there is none.
func teras(v float64) string { return scaled(v, 1e12, "%.1f") }
func gigas(v float64) string { return scaled(v, 1e9, "%.0f") }

func scaled(v, unit float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v/unit)
}
