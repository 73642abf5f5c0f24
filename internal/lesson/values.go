package lesson

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/cards"
)

// card is a row of the table of cards. The names are constants of this file.
func card(name string) cards.Card {
	c, ok := cards.Find(name)
	if !ok {
		panic("no card " + name)
	}
	return c
}

// Figures that others have published, for which lessons name the source.
const (
	gptFLOP    = 2.15e25 // training compute of GPT-4, estimated by Epoch AI
	gptCards   = 25000   // of A100, estimated in the press
	gptDays    = 90
	cpuPeak    = 1e12 // FLOP/s of a desktop processor, of its order
	secondsDay = 86400
)

// Bytes of three tensors: a batch of pictures, a matrix of weights and its bias, in float32.
const (
	pictures = 32 * 3 * 224 * 224 * 4
	matrix   = 512 * 512 * 4
	bias     = 512 * 4
)

// Value is the number that a text names, as text.
func Value(name string) (string, bool) {
	f, ok := values[name]
	if !ok {
		return "", false
	}
	return f(), true
}

func number(f func() float64, format string) func() string {
	return func() string { return fmt.Sprintf(format, f()) }
}

func whole(f func() int) func() string {
	return func() string { return grouped(f()) }
}

// grouped is a whole number with commas between thousands.
func grouped(n int) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// sm is what the multiprocessors of a card have.
func sm(name string) *cards.SM { c := card(name); return c.SM() }

func lanes(name string) int { return card(name).SMs * sm(name).Float32 }

func vector(name string) float64 { c := card(name); return c.Vector() }

func tensorPeak(name string, t cards.Type) float64 { c := card(name); return c.TensorPeak(t) }

func years(rate float64) float64 { return gptFLOP / rate / (365.25 * secondsDay) }

// amdahl is the most that a program gains when a share of it takes no time at all.
func amdahl(share float64) float64 { return 1 / (1 - share) }

// values are what texts may name.
var values = map[string]func() string{
	"a100.sms":       whole(func() int { return card("a100-80").SMs }),
	"a100.perSM":     whole(func() int { return sm("a100-80").Float32 }),
	"a100.lanes":     whole(func() int { return lanes("a100-80") }),
	"a100.clock":     number(func() float64 { return float64(card("a100-80").Clock) / 1000 }, "%.2f"),
	"a100.tflops":    number(func() float64 { return vector("a100-80") / 1e12 }, "%.1f"),
	"a100.tensor":    number(func() float64 { return tensorPeak("a100-80", cards.Float16) / 1e12 }, "%.0f"),
	"a100.tf32":      number(func() float64 { return tensorPeak("a100-80", cards.TF32) / 1e12 }, "%.0f"),
	"a100.times":     number(func() float64 { return tensorPeak("a100-80", cards.Float16) / vector("a100-80") }, "%.0f"),
	"a100.overtf32":  number(func() float64 { return tensorPeak("a100-80", cards.Float16) / tensorPeak("a100-80", cards.TF32) }, "%.0f"),
	"a100.bandwidth": whole(func() int { return card("a100-80").Bandwidth }),
	"a100.shared":    whole(func() int { return sm("a100-80").Shared >> 10 }),
	"h100.sms":       whole(func() int { return card("h100-80").SMs }),
	"h100.lanes":     whole(func() int { return lanes("h100-80") }),
	"h100.tensors":   whole(func() int { return 4 * card("h100-80").SMs }),
	"h100.fp8":       whole(func() int { return int(tensorPeak("h100-80", cards.Float8)/1e12 + .5) }),
	"gtx1650.lanes":  whole(func() int { return lanes("gtx-1650") }),
	"rtx4090.gbps":   whole(func() int { return card("rtx-4090").Bandwidth }),
	"link.a100":      number(func() float64 { return float64(card("a100-80").Bandwidth) / 32 }, "%.0f"),
	"link.4090":      number(func() float64 { return float64(card("rtx-4090").Bandwidth) / 32 }, "%.1f"),
	"gpt.cpuyears":   whole(func() int { return int(math.Round(years(cpuPeak)/1000) * 1000) }),
	"gpt.a100years":  whole(func() int { return int(math.Round(years(19.5e12)/100) * 100) }),
	"gpt.rate":       number(func() float64 { return gptFLOP / (gptCards * gptDays * secondsDay) / 1e12 }, "%.1f"),
	"gpt.share":      number(func() float64 { return 100 * gptFLOP / (gptCards * gptDays * secondsDay) / 312e12 }, "%.0f"),
	"matvec.macs":    whole(func() int { return 1024 * 1024 }),
	"relu.elements":  whole(func() int { return 1024 * 512 }),
	"relu.warps":     whole(func() int { return 1024 * 512 / 32 }),
	"relu.rounds":    number(func() float64 { return 1024 * 512 / float64(lanes("a100-80")) }, "%.2f"),
	"relu.mb":        number(func() float64 { return 2 * 4 * 1024 * 512 / 1e6 }, "%.2f"),
	"relu.us":        number(func() float64 { return 2 * 4 * 1024 * 512 / float64(card("a100-80").Bandwidth) / 1e3 }, "%.2f"),
	"floor.gib":      number(func() float64 { return 16e9 / (1 << 30) }, "%.2f"),
	"amdahl.95":      number(func() float64 { return amdahl(.95) }, "%.0f"),
	"amdahl.99":      number(func() float64 { return amdahl(.99) }, "%.0f"),
	"three.pictures": number(func() float64 { return pictures / 1e6 }, "%.6f"),
	"three.matrix":   number(func() float64 { return matrix / 1e6 }, "%.6f"),
	"three.bias":     number(func() float64 { return bias / 1e6 }, "%.6f"),
	"three.mb":       number(func() float64 { return (pictures + matrix + bias) / 1e6 }, "%.2f"),
	"three.mib":      number(func() float64 { return float64(pictures+matrix+bias) / (1 << 20) }, "%.2f"),
	"batch.mb":       number(func() float64 { return 32 * 128 * 768 * 4 / 1e6 }, "%.2f"),
	"batch.us":       number(func() float64 { return 32 * 128 * 768 * 4 / 32e9 * 1e6 }, "%.0f"),
}
